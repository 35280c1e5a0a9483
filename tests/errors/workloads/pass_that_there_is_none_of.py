import numpy as np

from pto_wsp import DType, InOut, P, Tensor, Tile, kernel, pto, workload


@kernel
def shifted(x: InOut[Tile[8, 16, DType.F32]]):
    pto.store(x, x + 1)


def mistake():
    X = Tensor(np.zeros((4, 8, 16), np.float32), name="X")

    @workload
    def shift_all():
        for b in P(4):
            shifted[b](x=X[b])

    print(shift_all().lower("pto", until="insert_synch"))


# error[C114]: target pto has no pass 'insert_synch'
#   --> pass_that_there_is_none_of.py:19:11
#      |
#   19 |     print(shift_all().lower("pto", until="insert_synch"))
#      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of drop_repeated_checks, order_tasks, widen_part_writes, number_guards, forward_buffers, simplify, merge_common, narrow_loads, hoist_invariants, drop_dead_code, narrow_products, part_products, sum_in_loops, turn_loads, merge_common_of_part, drop_unused, double_buffer, plan_memory, insert_sync
#    = help:     did you mean 'insert_sync'? `pto-wsp passes --target pto` says what each does
