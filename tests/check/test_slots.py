"""Slots: which reads of one mean the same in every order that a workload leaves open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import Dense, DType, InOut, P, PtoError, Scalar, Sparse, Tensor, Tile, combine, kernel, pto, slot_set_u64, slot_u64, workload
from pto_wsp.check.slots import slot_errors
from pto_wsp.passes.lower import lower

I64 = DType.I64
Y = Tensor(np.zeros((4, 1), np.int64), name="Y")
routing = Sparse(Dense[4](), np.array([0, 1, 2, 3, 4]), np.array([0, 1, 2, 3]))


@kernel
def put(y: InOut[Tile[1, 1, I64]], n: Scalar[I64]) -> None:
    pto.store(y, y + n)


def use(n: object = 0) -> None:
    put(Y[0], slot_u64(0))
    del n


@workload
def sets() -> None:
    slot_set_u64(0, 1)


@workload
def reads() -> None:
    use()


@workload
def sets_and_reads() -> None:
    slot_set_u64(0, 1)
    use()


def before_the_loop() -> None:
    slot_set_u64(0, 5)
    for _ in P(4):
        use()


def in_the_same_iteration() -> None:
    for b in P(4):
        slot_set_u64(0, b)
        use()


def in_the_same_iteration_of_a_sparse_row() -> None:
    for b, e in P(routing):
        slot_set_u64(0, b + e)
        use()


def carried_in_order() -> None:
    for b in P.seq(4):
        use()
        slot_set_u64(0, slot_u64(0) + b)
    use()


def set_again_behind_the_loop() -> None:
    for b in P(4):
        slot_set_u64(0, b)
    slot_set_u64(0, 3)
    use()


def set_in_every_branch() -> None:
    for b in P(4):
        with P.when(b > 1):
            slot_set_u64(0, 1)
        with P.otherwise():
            slot_set_u64(0, 2)
        use()


def each_side_for_itself() -> None:
    combine(sets_and_reads(), sets_and_reads())


def one_side_sets_and_what_follows_reads() -> None:
    combine(sets(), sets())
    slot_set_u64(0, 7)
    combine(sets(), workload(lambda: None)())
    use()


def never_set() -> None:
    for _ in P(4):
        use()


SOUND = [before_the_loop, in_the_same_iteration, in_the_same_iteration_of_a_sparse_row, carried_in_order, set_again_behind_the_loop,
         set_in_every_branch, each_side_for_itself, one_side_sets_and_what_follows_reads, never_set]


def behind_the_loop() -> None:
    for b in P(4):
        slot_set_u64(0, b)
    use()


def before_its_own_set() -> None:
    slot_set_u64(0, 5)
    for b in P(4):
        use()
        slot_set_u64(0, b)


def set_in_one_branch() -> None:
    for b in P(4):
        with P.when(b > 1):
            slot_set_u64(0, 1)
        use()


def set_in_a_loop_that_may_not_run() -> None:
    for b in P(4):
        for _ in P.seq(b):
            slot_set_u64(0, 1)
        use()


def from_side_to_side() -> None:
    combine(sets(), reads())


def two_sides_set_and_what_follows_reads() -> None:
    combine(sets(), sets())
    use()


def in_a_condition() -> None:
    for b in P(4):
        slot_set_u64(0, b)
    with P.when(slot_u64(0) > 2):
        put(Y[0], 1)


def in_a_second_condition() -> None:
    for b in P(4):
        slot_set_u64(0, b)
    with P.when(False):
        pass
    with P.elif_(slot_u64(0) > 2):
        put(Y[0], 1)


def in_an_extent() -> None:
    for b in P(4):
        slot_set_u64(0, b)
    for _ in P(slot_u64(0)):
        put(Y[0], 1)


def in_a_view() -> None:
    for b in P(4):
        slot_set_u64(0, b)
    put(Y[slot_u64(0)], 1)


def in_another_slot() -> None:
    for b in P(4):
        slot_set_u64(0, b)
    slot_set_u64(1, slot_u64(0))


def carried_by_a_loop_inside() -> None:
    for _ in P(4):
        for i in P.seq(3):
            use()
            slot_set_u64(0, i)


UNSOUND = [behind_the_loop, before_its_own_set, set_in_one_branch, set_in_a_loop_that_may_not_run, from_side_to_side,
           two_sides_set_and_what_follows_reads, in_a_condition, in_a_second_condition, in_an_extent, in_a_view, in_another_slot,
           carried_by_a_loop_inside]


@pytest.mark.parametrize("body", SOUND, ids=lambda body: body.__name__)
def test_a_read_that_means_one_value_is_sound(body: Callable[[], object]) -> None:
    assert slot_errors(lower(workload(body)().node)) == ()


@pytest.mark.parametrize("body", UNSOUND, ids=lambda body: body.__name__)
def test_a_read_that_depends_on_an_order_is_refused(body: Callable[[], object]) -> None:
    (error,) = slot_errors(lower(workload(body)().node))
    assert error.code == "W107" and error.notes[0].startswith("it is set at")
    with pytest.raises(PtoError, match="W107"):
        workload(body)().compile("interp")
