"""Whether each kernel of a plan has a body that the target can run."""

from __future__ import annotations

from collections.abc import Iterable

from pto_wsp.errors import MissingBodyError
from pto_wsp.expr.kernel import Kernel


def missing_bodies(kernels: Iterable[Kernel], target: str) -> tuple[MissingBodyError, ...]:
    """Return an error for each kernel without a body for the target: `interp` runs Python bodies, `cpu_sim` C ones too."""
    runs_c = target != "interp"
    return tuple(
        MissingBodyError(
            f"kernel `{kernel.name}` has no body for target {target}", kernel.span,
            expected="a Python body, c_src or c_path" if runs_c else "a Python body",
            found=f"a Python body that does nothing, and bodies of its own: {', '.join(own.form.value for own in kernel.bodies)}",
            help="write the Python body, which every target can run" + (", or @kernel(c_src=...) for this one" if runs_c else ""))
        for kernel in dict.fromkeys(kernels) if not kernel.has_meaning and not (runs_c and kernel.c_body is not None))
