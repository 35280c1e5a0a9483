"""A function is decorated for a target that there is none of."""

from pto_wsp import jit


def mistake() -> None:
    @jit(target="cpusim")
    def f(x):
        return x * 2
    f.trace()


# error[C104]: there is no target 'cpusim'
#   --> jit_for_no_target.py:7:6
#     |
#   7 |     @jit(target="cpusim")
#     |      ^^^^^^^^^^^^^^^^^^^^
#    = expected: one of cpu_sim, interp, ascend_npu, pto
#    = help:     did you mean cpu_sim?
