"""An instruction outside a kernel."""

from pto_wsp import ptoisa


def mistake() -> None:
    ptoisa.TADD(1, 2, 3)


# error[K105]: `ptoisa.TADD` was called outside a kernel
#   --> isa_outside_kernel.py:7:5
#     |
#   7 |     ptoisa.TADD(1, 2, 3)
#     |     ^^^^^^^^^^^^^^^^^^^^
#    = help:     write it in the body of a @ptoisa_kernel
