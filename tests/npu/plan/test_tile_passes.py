"""Copies of buffers, their places, and flags, on programs small enough to say what they must be."""

from __future__ import annotations

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch, Memory
from pto_wsp.errors import CapacityError, InternalError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Binary, Const, Op, ParamExtent, Scalar, Var, mul
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.tile_program_text import print_program
from pto_wsp.npu.tiles.passes import TILE_PROGRAM_PASSES
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.source import Span
from tests.conftest import Golden

ARCH = builtin_arch("ascend_910b")
READ, WRITE = tp.Access.READ, tp.Access.WRITE
J = Var("j", 0)
ZERO = Const(0)


def vector(body: tuple[tp.Step, ...], sizes: tuple[int, ...]) -> tp.TileProgram:
    """Return a program with a tile of [rows, 64] f32 for each number of rows."""
    buffers = tuple(tp.ChipBuffer(at, f"r{at}", tp.Space.UB, rows * 256) for at, rows in enumerate(sizes))
    tiles = tuple(tp.TileView(at, f"t{at}", at, DType.F32, rows, 64, tp.Form.ROWS, Const(rows), Const(64)) for at, rows in enumerate(sizes))
    return tp.TileProgram("small", Unit.VECTOR, (), (), buffers, tiles, body)


def at(line: int) -> Span:
    return Span("k.py", line)


def load(tile: int, row: Scalar = ZERO, line: int = 1) -> tuple[tp.Step, ...]:
    return tp.BindTile(tile), tp.GmLoad(tile, "x", row, Const(0), span=at(line))


def compute(into: int, source: int, line: int = 1) -> tuple[tp.Step, ...]:
    return tp.BindTile(into), tp.Instr("TEXP", (tp.TileArg(into, WRITE), tp.TileArg(source, READ)), span=at(line))


def store(tile: int, row: Scalar = ZERO, line: int = 1) -> tp.Step:
    return tp.GmStore("y", tile, row, Const(0), span=at(line))


def small(size: int) -> Arch:
    return Arch(name="small", memories=tuple(Memory(name=space.value, capacity_bytes=size) for space in tp.Space))


def addresses(program: tp.TileProgram, arch: Arch = ARCH) -> dict[str, tuple[int | None, int]]:
    return {buffer.name: (buffer.address, buffer.copies) for buffer in run_passes(program, arch, TILE_PROGRAM_PASSES).buffers}


CHAIN = vector((*load(0, line=1), *compute(1, 0, 2), *compute(2, 1, 3), *compute(3, 2, 4), store(3, line=5)), (4, 4, 4, 4))
LOOP = vector((tp.For(J, Const(0), Const(8), Const(1), (*load(0, mul(J, Const(4))), *compute(1, 0), store(1, mul(J, Const(4))))),), (4, 4))


def test_rooms_lie_side_by_side_where_they_fit() -> None:
    assert addresses(CHAIN) == {"r0": (0, 1), "r1": (1024, 1), "r2": (2048, 1), "r3": (3072, 1)}


def test_rooms_share_where_they_must_and_only_after_the_last_use() -> None:
    assert addresses(CHAIN, small(2048)) == {"r0": (0, 1), "r1": (1024, 1), "r2": (0, 1), "r3": (1024, 1)}


def test_what_does_not_fit_is_refused_with_who_lives_there() -> None:
    with pytest.raises(CapacityError) as refused:
        run_passes(CHAIN, small(2047), TILE_PROGRAM_PASSES)
    assert str(refused.value) == """\
error[K110]: kernel `small` needs 2048 bytes of UB, more than small has
  --> k.py:2:1
   = expected: at most 2047 bytes at any time
   = found:    2048 bytes at line 2
   = help:     tiles of 1/2 of the elements fit, e.g. `r0` as [2, 64] instead of [4, 64]
   = note:     tiles that live in UB then:
   = note:         1024  r0             [4, 64] f32  line 1 to 2
   = note:         1024  r1             [4, 64] f32  line 2 to 3"""


@pytest.mark.slow
def test_a_loop_has_two_copies_of_what_goes_between_pipes_and_drops_them_for_memory() -> None:
    assert addresses(LOOP) == {"r0": (0, 2), "r1": (2048, 2)}
    assert addresses(LOOP, small(3072)) == {"r0": (0, 1), "r1": (1024, 2)}
    assert addresses(LOOP, small(2048)) == {"r0": (0, 1), "r1": (1024, 1)}
    with pytest.raises(CapacityError):
        run_passes(LOOP, small(2047), TILE_PROGRAM_PASSES)


def test_a_loop_of_one_turn_and_a_memory_of_unknown_size_get_one_copy() -> None:
    (loop,) = LOOP.body
    assert isinstance(loop, tp.For)
    once = vector((tp.For(J, Const(3), Const(4), Const(1), loop.body),), (4, 4))
    assert addresses(once) == {"r0": (0, 1), "r1": (1024, 1)}
    unknown = Arch(name="unknown", memories=tuple(Memory(name=space.value) for space in tp.Space))
    assert addresses(LOOP, unknown) == {"r0": (0, 1), "r1": (1024, 1)}


def test_what_a_later_turn_reads_keeps_its_place_over_the_whole_loop() -> None:
    """Declared in the loop only, but its first use there is to read what the iteration before wrote."""
    carried = (*compute(1, 0), tp.Instr("TEXP", (tp.TileArg(0, WRITE), tp.TileArg(1, READ))))
    program = vector((tp.For(J, Const(0), Const(8), Const(1), (tp.BindTile(0), *carried, *load(2), *compute(3, 2), store(3))),),
                     (4, 4, 4, 4))
    found = addresses(program, small(3072))
    assert all(copies == 1 for _, copies in found.values())
    assert all(found[name][0] != found["r0"][0] for name in ("r1", "r2", "r3"))
    assert len({address for address, _ in found.values()}) == 3


def test_what_branches_on_one_condition_pass_on_has_two_copies_and_what_others_do_has_not() -> None:
    few, many = (Binary(Op.LT, ParamExtent("x", 0), Const(n)) for n in (3, 9))
    filled = tp.If(few, load(0, mul(J, Const(4))))
    for condition, copies in ((few, 2), (many, 1)):
        taken = tp.If(condition, (tp.BindTile(0), *compute(1, 0), store(1, mul(J, Const(4)))))
        program = vector((tp.For(J, Const(0), Const(8), Const(1), (filled, taken)),), (4, 4))
        assert addresses(program)["r0"] == (0, copies)


def test_tiles_that_nothing_uses_are_left_out() -> None:
    program = vector((tp.BindTile(1), *load(0), store(0)), (4, 4))
    assert [tile.name for tile in run_passes(program, ARCH, TILE_PROGRAM_PASSES).tiles] == ["t0"]


def test_a_kernel_that_ends_inside_a_loop_is_our_mistake() -> None:
    with pytest.raises(InternalError, match="ends inside a loop"):
        run_passes(vector((tp.For(J, Const(0), Const(8), Const(1), (*load(0), tp.Leave(Const(True)))),), (4,)), ARCH, TILE_PROGRAM_PASSES)


def test_no_flag_is_up_where_a_kernel_may_end() -> None:
    program = vector((*load(0), tp.Leave(Const(False)), *compute(1, 0), store(1)), (4, 4))
    body = [step for step in run_passes(program, ARCH, TILE_PROGRAM_PASSES).body if not isinstance(step, tp.BindTile)]
    kinds = [type(step).__name__ for step in body]
    assert kinds == ["GmLoad", "Leave", "SetFlag", "WaitFlag", "Instr", "SetFlag", "WaitFlag", "GmStore", "SetFlag", "WaitFlag"]


def test_more_flags_than_events_become_meetings() -> None:
    """Twelve loads that are all taken later: eight events do not do, and none may be set again too early."""
    body = [step for tile in range(12) for step in load(tile)]
    body += [step for tile in range(12) for step in (*compute(12, tile), store(12))]
    planned = run_passes(vector(tuple(body), (1,) * 13), ARCH, TILE_PROGRAM_PASSES)
    events = {step.event for step in tp.steps(planned.body) if isinstance(step, tp.SetFlag)}
    assert events <= {Const(n) for n in range(8)} and Const(7) in events


@pytest.mark.parametrize(("arch", "event"), [("ascend_910b", 1), ("ascend_950", 0)])
def test_no_event_that_an_instruction_sets_itself(arch: str, event: int) -> None:
    """TCONCAT uses event 0 between V and S on a2a3."""
    joined = tp.BindTile(2), tp.Instr("TCONCAT", (tp.TileArg(2, WRITE), tp.TileArg(1, READ), tp.TileArg(1, READ)))
    body = *load(0), *compute(1, 0), *joined, tp.Peek(J, 1, ZERO), store(2)
    program = run_passes(vector(body, (4, 4, 4)), builtin_arch(arch), TILE_PROGRAM_PASSES)
    flags = {(step.after, step.before, step.event) for step in tp.steps(program.body) if isinstance(step, tp.SetFlag)}
    assert (tp.Pipe.V, tp.Pipe.S, Const(event)) in flags and not {one for one in flags if one[:2] == (tp.Pipe.V, tp.Pipe.S)} - {
        (tp.Pipe.V, tp.Pipe.S, Const(event))}


def test_flags_of_a_loop_with_copies(golden: Golden) -> None:
    golden(print_program(run_passes(LOOP, ARCH, TILE_PROGRAM_PASSES)) + "\n")


def test_flags_of_a_loop_in_a_loop(golden: Golden) -> None:
    i = Var("i", 1)
    inner = tp.For(J, Const(0), Const(8), Const(1), (*load(2, mul(J, Const(4))), tp.Instr("TADD", (
        tp.TileArg(1, WRITE), tp.TileArg(0, READ), tp.TileArg(2, READ)))))
    body = (*load(0, mul(i, Const(4))), *compute(1, 0), inner, store(1, mul(i, Const(4))))
    program = vector((tp.For(i, Const(0), Const(3), Const(1), body),), (4, 4, 4))
    golden(print_program(run_passes(program, ARCH, TILE_PROGRAM_PASSES)) + "\n")
