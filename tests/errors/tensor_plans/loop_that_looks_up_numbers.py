from pto_wsp import DType, Tensor, jit, tt


@jit
def total(cache: Tensor[256, 16, 64, DType.F32], table: Tensor[8, DType.I32]):
    seen = tt.zeros((16, 64))
    for j in tt.loop(8):
        seen[:] = seen + cache[j] * table[j]
    return seen


def mistake():
    total.plan().but(loops={"j": "kernel"})


# error[J303]: the loop over `j` cannot be in a kernel
#   --> loop_that_looks_up_numbers.py:13:5
#      |
#   13 |     total.plan().but(loops={"j": "kernel"})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> loop_that_looks_up_numbers.py:7:5: the loop
#     |
#   7 |     for j in tt.loop(8):
#     |     ^^^^^^^^^^^^^^^^^^^^
#    = expected: a loop whose state is made, updated and read by statements that can share one task
#    = found:    a kernel cannot look up table[j] in each iteration
#    = help:     leave the entry out: the iterations are tasks
