"""`print_ir`: the text of an IR, which `pto_wsp.parse` reads back."""

from __future__ import annotations

from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.kernel_text import print_kernel


def print_ir(ir: Kernel) -> str:
    """Return the text of an IR."""
    return print_kernel(ir)
