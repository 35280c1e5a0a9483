"""Branches and loops in a kernel's body: what they become, and what is known after them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from pto_wsp.api.pto import pto
from pto_wsp.errors import BufferMisuseError, OutsideTraceError, SymbolicControlError
from pto_wsp.ir import codec
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.ops.guards import guards_of
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar

from .test_trace import lines, trace

F32, I32 = DType.F32, DType.I32
SMALL = Tile[4, 8, F32]


def both_sides(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """Store on both sides, with a branch inside one."""
    with pto.when((n > 2) & ~(n == 5)):
        pto.store(y, x)
    with pto.otherwise():
        pto.store(y, 0)
        with pto.when(n < 0):
            pto.store(y, 1)


def test_a_branch_has_two_sides() -> None:
    assert lines(trace(both_sides)) == [
        "%0 = load x", "when (n > 2) & ~(n == 5):", "store y, %0", "otherwise:", "%1 = expand 0.0, shape=(4, 8), dtype=f32",
        "store y, %1", "when n < 0:", "%2 = expand 1.0, shape=(4, 8), dtype=f32", "store y, %2"]


def test_conditions_nest_in_loops_and_loops_in_branches() -> None:
    def body(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
        acc = pto.alloc((4, 8), F32, init=0)
        for j in pto.range(n):
            with pto.when(j % 2 == 0):
                for _ in pto.range(j, n):
                    acc += x
        pto.store(y, acc)
    assert lines(trace(body)) == [
        "%1 = load x", "acc = alloc Tile[4, 8, f32], init=0.0", "for j in range(0, n, 1):", "when j % 2 == 0:", "for _ in range(j, n, 1):",
        "%0 = read acc", "%2 = add %0, %1", "acc[:] = %2", "%3 = read acc", "store y, %3"]


def test_what_both_sides_write_is_written() -> None:
    def body(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
        acc = pto.alloc((4, 8), F32)
        with pto.when(n > 0):
            acc[:] = x
            pto.store(y, 1)
        with pto.otherwise():
            acc[:] = 2
            with pto.when(n < -5):
                pto.store(y, 2)
            with pto.otherwise():
                pto.store(y, 3)
        pto.store(y, y + acc)
    assert lines(trace(body))[-4:-1] == ["%5 = load y", "%6 = read acc", "%7 = add %5, %6"]


@pytest.mark.parametrize("side", [0, 1])
def test_what_one_of_two_sides_writes_is_not_written(side: int) -> None:
    def body(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
        sides = [pto.alloc((4, 8), F32), pto.alloc((4, 8), F32)]
        with pto.when(n > 0):
            sides[0][:] = x
        with pto.otherwise():
            sides[1][:] = x
        pto.store(y, sides[side])
    with pytest.raises(BufferMisuseError, match="before it is certainly written"):
        trace(body)


def test_extents_and_bool_scalars_are_conditions() -> None:
    def body(x: In[Tensor], flag: Scalar[DType.BOOL], y: InOut[SMALL]) -> None:
        with pto.when(flag | (x.shape[0] > 4) | (y.valid[1] == 8)):
            pto.store(y, 1)
    assert lines(trace(body))[0] == "when flag | (x.shape[0] > 4) | (y.shape[1] == 8):"


def test_guards_of_a_branch_are_numbered_first_side_first() -> None:
    def body(x: In[Tensor], n: Scalar[I32], y: Out[Tensor]) -> None:
        with pto.when(n > 0):
            pto.store(y, pto.load(x, (n, 0), shape=(2, 2)), (0, 0))
        with pto.otherwise():
            pto.store(y, pto.load(x, (0, n), shape=(2, 2)), (1, 1))
        pto.store(y, pto.load(x, (7, 0), shape=(2, 2)), (2, 2))
    assert [guard.what for guard in guards_of(trace(body))] == [
        "load x[n, 0]", "store y[0, 0]", "load x[0, n]", "store y[1, 1]", "load x[7, 0]", "store y[2, 2]"]


def test_an_unrolled_loop_makes_a_branch_a_turn() -> None:
    def body(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
        for j in range(3):
            with pto.when(n == j):
                pto.store(y, x * j)
    assert [line for line in lines(trace(body)) if line.startswith("when")] == ["when n == 0:", "when n == 1:", "when n == 2:"]


def test_a_condition_may_be_kept_and_opened_again() -> None:
    def body(n: Scalar[I32], y: Out[SMALL]) -> None:
        large = pto.when(n > 2)
        with large:
            pto.store(y, 1)
        with large, ExitStack() as stack:
            stack.enter_context(large)
            pto.store(y, 2)
    assert [line for line in lines(trace(body)) if line.startswith("when")] == ["when n > 2:"] * 3


def test_json_repr_and_digest_know_branches() -> None:
    kernel = trace(both_sides)
    assert codec.loads(codec.dumps(kernel)) == kernel
    assert eval(repr(kernel), dict(codec.NAMES)) == kernel
    assert kernel_digest(codec.loads(codec.dumps(kernel))) == kernel_digest(kernel)  # type: ignore[arg-type]


def test_a_caught_error_does_not_end_a_branch() -> None:
    def body(n: Scalar[I32], y: Out[SMALL]) -> None:
        try:
            with pto.when(n > 2):
                raise KeyError
        except KeyError:
            pto.store(y, 1)
    with pytest.raises(SymbolicControlError, match="left early"):
        trace(body)


def test_branches_stand_in_kernels() -> None:
    with pytest.raises(OutsideTraceError, match=r"pto\.when"):
        pto.when(True)
    with pytest.raises(OutsideTraceError, match=r"pto\.otherwise"):
        pto.otherwise()
