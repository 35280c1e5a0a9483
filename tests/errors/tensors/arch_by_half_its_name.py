"""An arch is called by a part of its name."""

from pto_wsp import jit


def mistake() -> None:
    @jit
    def f(x):
        return x * 2
    f.using(arch="910b")


# error[C115]: there is no arch '910b'
#   --> arch_by_half_its_name.py:10:5
#      |
#   10 |     f.using(arch="910b")
#      |     ^^^^^^^^^^^^^^^^^^^^
#    = expected: one of unit, ascend_910b, ascend_950, host_cpu, or an Arch
#    = help:     did you mean ascend_910b?
