"""Where a kernel keeps what: how long things live, who shares a place, and what needs none."""

from __future__ import annotations

import pytest

from pto_wsp import DType, In, InOut, Kernel, Out, Tensor, Tile, kernel, pto
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.passes.kernel.arena import verify_after_plan_arena
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.passes import run_kernel_passes
from pto_wsp.values import dataclass

F16, F32 = DType.F16, DType.F32


@dataclass(frozen=True, slots=True)
class Planned:
    """A kernel with its arena."""

    kernel: k.Kernel

    def names(self) -> list[str]:
        """Return what has a place."""
        return [slot.name for slot in self.kernel.arena]

    def slot(self, name: str) -> k.Slot:
        """Return the only place of that name."""
        (found,) = [slot for slot in self.kernel.arena if slot.name == name]
        return found

    def loop(self) -> tuple[int, int]:
        """Return the first and last statement of the only loop."""
        stmts = list(walk(self.kernel.body))
        (at,) = [n for n, stmt in enumerate(stmts) if isinstance(stmt, k.For)]
        loop = stmts[at]
        assert isinstance(loop, k.For)
        return at, at + sum(1 for _ in walk(loop.body))


def plan(made: Kernel, unit: bool = True, **dtypes: DType) -> Planned:
    """Return a kernel after its passes; `unit`: its columns are neighbours in memory."""
    traced = made.specialise(**dtypes)
    return Planned(run_kernel_passes(traced, None if unit else KernelContext(frozenset())))


@kernel
def again(a: In[Tile[8, 8, F32]], b: In[Tile[8, 8, F32]], y: Out[Tile[8, 8, F32]]):
    start = pto.exp(a @ b)
    acc = pto.alloc((8, 8), F32, init=0)
    for _ in pto.range(3):
        acc[:] = acc + start
        acc[:] = pto.tanh(acc @ b) @ b
    pto.store(y, acc)


def test_what_is_made_before_a_loop_lives_as_long_as_the_loop() -> None:
    planned = plan(again)
    first, last = planned.loop()
    for name in ("start_tile", "acc"):
        assert planned.slot(name).first < first and planned.slot(name).last >= last
    assert planned.slot("tanh_tile").first > first and planned.slot("tanh_tile").last <= last


def test_places_are_shared_by_what_is_never_needed_at_the_same_time() -> None:
    @kernel
    def chain(a: In[Tile[8, 8, F32]], y: Out[Tile[8, 8, F32]]):
        for _ in range(6):
            a = pto.exp(a @ a)
        pto.store(y, a)

    planned = plan(chain)
    assert len([name for name in planned.names() if name == "matmul"]) == 6
    kept = sum(slot.type.size_bytes for slot in planned.kernel.arena if slot.kind is not k.SlotKind.WORK)
    work = max(slot.type.size_bytes for slot in planned.kernel.arena if slot.kind is k.SlotKind.WORK)
    assert kept > 12 * 256 and planned.kernel.arena_bytes <= work + 4 * 256


def test_a_whole_piece_of_an_out_tensor_needs_no_place() -> None:
    @kernel
    def whole(x: In[Tile[4, 8, F32]], y: Out[Tensor]):
        pto.store(y, x * 2, (4, 0))

    @kernel
    def part(x: In[Tile[4, 8, F32]], y: Out[Tensor]):
        pto.store(y, x * 2, (4, 0), valid=(3, None))

    @kernel
    def both(x: In[Tile[4, 8, F32]], y: InOut[Tensor], z: Out[Tensor]):
        pto.store(y, x * 2, (4, 0))
        pto.store(z, x * 2, (4, 0))

    assert "y_tile" not in plan(whole, y=F32).names()
    assert "y_tile" in plan(whole, unit=False, y=F32).names()
    assert "y_tile" in plan(part, y=F32).names()
    assert "y_tile" in plan(both, y=F32, z=F32).names()      # what y was may still be read through an argument that overlaps it
    assert "z_tile" not in plan(both, y=F32, z=F32).names()


def test_a_row_is_kept_where_a_value_is_needed_twice_within_it() -> None:
    @kernel
    def softmax(x: In[Tile[4, 256, F32]], y: Out[Tile[4, 256, F32]]):
        weight = pto.exp(x - pto.rowmax(x))
        pto.store(y, weight / pto.rowsum(weight))

    assert plan(softmax).slot("weight_row").type.shape == (1, 256)


def test_halves_add_up_columns_in_f32() -> None:
    @kernel
    def sums(x: In[Tile[4, 8, F16]], y: Out[Tile[1, 8, F16]]):
        pto.store(y, pto.colsum(x))

    planned = plan(sums)
    assert (planned.slot("colsum").type.dtype, planned.slot("colsum_sums").type.dtype) == (F16, F32)


def test_overlapping_places_are_refused() -> None:
    planned = plan(again).kernel
    with pytest.raises(AssertionError):
        verify_after_plan_arena(k.Kernel("bad", planned.params, planned.body, arena=tuple(
            k.Slot(s.name, s.kind, s.key, s.type, 0, s.first, s.last) for s in planned.arena)))
