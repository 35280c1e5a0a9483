"""Whether each kernel of a plan has a body that the target can run."""

from __future__ import annotations

from collections.abc import Iterable

from pto_wsp.errors import MissingBodyError
from pto_wsp.expr.kernel import Kernel

_OWN_FORMS = {"interp": "", "cpu_sim": "c_src or c_path", "ascend_npu": "cpp_src, cpp_body_path or cpp_tu_path", "pto": ""}


def missing_bodies(kernels: Iterable[Kernel], target: str) -> tuple[MissingBodyError, ...]:
    """Return an error for each kernel without a body for the target: all run Python bodies, `cpu_sim` C ones too, `ascend_npu` C++ ones."""
    forms = _OWN_FORMS[target]
    return tuple(
        MissingBodyError(
            f"kernel `{kernel.name}` has no body for target {target}", kernel.span,
            expected=f"a Python body, {forms}" if forms else "a Python body",
            found=f"a Python body that does nothing, and bodies of its own: {', '.join(own.form.value for own in kernel.bodies)}",
            help="write the Python body, which every target can run" + (f", or @kernel({forms.split()[0].rstrip(',')}=...) for this one"
                                                                        if forms else ""))
        for kernel in dict.fromkeys(kernels) if not kernel.has_meaning and not _runs(kernel, target))


def _runs(kernel: Kernel, target: str) -> bool:
    """Tell whether the target runs a body of the kernel's own."""
    return (target == "cpu_sim" and kernel.c_body is not None) or (target == "ascend_npu" and kernel.cpp_body is not None)
