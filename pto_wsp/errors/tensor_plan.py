"""Errors of tile plans: entries that say nothing, too much, or what does not fit; plan files; statements without a form as kernels."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class PlanEntryError(PtoError):
    code = "J301"
    cause = "An entry of a plan has a key that plans do not have, or a value that its key does not take."
    example = 'plan.but(tiles={"out": {1: "large"}})'
    fix = "Give what the key takes: docs/tensor_plan.md has an example of each."


class PlanNameError(PtoError):
    code = "J302"
    cause = "An entry of a plan names a value, an axis, a loop or a group that the function does not have, so it would change nothing."
    example = 'plan.but(tiles={"normd": {"t": 8}})  # the variable is called normed'
    fix = "Use the names of the function's own variables, symbols and loops; print(plan) shows them."


class PlanConflictError(PtoError):
    code = "J303"
    cause = "Two entries of a plan contradict each other, or an entry contradicts itself."
    example = 'plan.but(tails={"t": (4, 16, 64)})  # sizes of tails fall'
    fix = "Leave one of the two out, or make them agree."


class PlanFitError(PtoError):
    code = "J304"
    cause = "A tile that a plan asks for does not fit: into the axis that it cuts, or into the memory of a core."
    example = 'plan.but(tiles={"normed": {"t": 1024}})  # 1024 rows of 4096 numbers'
    fix = "Take an extent up to the largest one that the report names, or share the kernel with fewer values."


class PlanFileError(PtoError):
    code = "J305"
    cause = "A file cannot be read or written as a plan: it is not there, it is cut off or changed, or a later version wrote it."
    example = 'TilePlan.load("notes.txt")'
    fix = "Save the plan again with plan.save(path)."


class PlanUseError(PtoError):
    code = "J306"
    cause = "A plan is used with a function, an arch or a target that it was not made for."
    example = "softmax(x, plan=layernorm.plan(x))"
    fix = "Make a plan of the function itself: f.plan(x, arch=...)."


class NoTileFormError(PtoError):
    """`group`: the name of the group whose kernel has no form, "" where none is known."""

    code = "J310"
    group: str = ""
    cause = "A statement of a function on tensors has no form as tiles of a kernel, in the way that the plan cuts it."
    example = "y = np.transpose(x, (2, 0, 1))  # with a tile that has more than one position along each axis"
    fix = "The error names what stands in the way: cut an axis into other tiles in the plan, or store a value in a tensor of its own first."
