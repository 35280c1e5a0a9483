"""Whether each kernel of a plan has a body that the target can run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pto_wsp.errors import MissingBodyError
from pto_wsp.expr.kernel import Kernel

# Of the targets that run bodies of the user's own: how they are given, and which one a kernel has.
_OWN_FORMS: Mapping[str, tuple[str, Callable[[Kernel], object]]] = {
    "cpu_sim": ("c_src or c_path", lambda kernel: kernel.c_body),
    "ascend_npu": ("cpp_src, cpp_body_path or cpp_tu_path", lambda kernel: kernel.cpp_body),
}


def missing_bodies(kernels: Iterable[Kernel], target: str) -> tuple[MissingBodyError, ...]:
    """Return an error for each kernel without a body for the target: all run Python bodies, `cpu_sim` C ones too, `ascend_npu` C++ ones."""
    forms, body_of = _OWN_FORMS.get(target, ("", lambda kernel: None))
    return tuple(
        MissingBodyError(
            f"kernel `{kernel.name}` has no body for target {target}", kernel.span,
            expected=f"a Python body, {forms}" if forms else "a Python body",
            found=f"a Python body that does nothing, and bodies of its own: {', '.join(own.form.value for own in kernel.bodies)}",
            help="write the Python body, which every target can run" + (f", or @kernel({forms.split()[0].rstrip(',')}=...) for this one"
                                                                        if forms else ""))
        for kernel in dict.fromkeys(kernels) if not kernel.has_meaning and body_of(kernel) is None)
