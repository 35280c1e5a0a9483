from pto_wsp import DType, Tensor, jit, tt


@jit
def total(x: Tensor["t", 64, DType.F32]):
    seen = tt.zeros(x.shape)
    for j in tt.loop(8):
        twice = seen + x
        peak = twice.max(axis=0, keepdims=True)
        seen[:] = twice - peak * j
    return seen * 2


def mistake():
    total.plan().but(loops={"j": "kernel"})


# error[J303]: the loop over `j` cannot be in a kernel
#   --> loop_with_a_statement_in_the_way.py:15:5
#      |
#   15 |     total.plan().but(loops={"j": "kernel"})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> loop_with_a_statement_in_the_way.py:7:5: the loop
#     |
#   7 |     for j in tt.loop(8):
#     |     ^^^^^^^^^^^^^^^^^^^^
#   --> loop_with_a_statement_in_the_way.py:9:16: the statement
#     |
#   9 |         peak = twice.max(axis=0, keepdims=True)
#     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a loop whose state is made, updated and read by statements that can share one task
#    = found:    its state cannot stay in one task: `peak` and the rest of the loop make no kernel
#    = help:     leave the entry out: the iterations are tasks
