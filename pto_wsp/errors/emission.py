"""Errors of functions on whole tensors that cannot be written as kernels and tasks."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class NoTileFormError(PtoError):
    code = "J310"
    cause = "A statement of a function on tensors has no form as tiles of a kernel, in the way that the plan cuts it."
    example = "y = np.transpose(x, (2, 0, 1))  # with a tile that has more than one position along each axis"
    fix = "The error names what stands in the way: cut an axis into other tiles in the plan, or store a value in a tensor of its own first."
