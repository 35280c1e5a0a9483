"""Each thing that a tile program may do wrong, and the report at the user's line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.check.verdict import Verdict
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Role, TensorParam
from pto_wsp.ir.scalar import Binary, Const, Op, ParamExtent, Scalar, Var
from pto_wsp.npu.check.checks import check_tile_program
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.tile_program import Pipe
from pto_wsp.ops.entry import Unit
from pto_wsp.source import Span

ARCH = builtin_arch("ascend_910b")
READ, WRITE, BOTH = tp.Access.READ, tp.Access.WRITE, tp.Access.BOTH
J = Var("j", 0)
SOME = ParamExtent("x", 0)


def at(line: int) -> Span:
    return Span("k.py", line)


def flag(first: Pipe, then: Pipe, event: int | Scalar = 0, line: int = 9) -> tuple[tp.Step, tp.Step]:
    given = Const(event) if isinstance(event, int) else event
    return tp.SetFlag(first, then, given, at(line)), tp.WaitFlag(first, then, given, at(line))


LOAD = tp.GmLoad(0, "x", Const(0), Const(0), span=at(1))
EXP = tp.Instr("TEXP", (tp.TileArg(1, WRITE), tp.TileArg(0, READ)), span=at(2))
STORE = tp.GmStore("x", 1, Const(0), Const(0), span=at(3))
IN, OUT, DRAIN = flag(Pipe.MTE2, Pipe.V), flag(Pipe.V, Pipe.MTE3), flag(Pipe.MTE3, Pipe.S, 7)


def program(*body: tp.Step, tiles: tuple[tp.TileView, ...] | None = None,
            buffers: tuple[tp.ChipBuffer, ...] | None = None) -> tp.TileProgram:
    """Return a program over two tiles [4, 64] f32."""
    given_buffers = buffers or (tp.ChipBuffer(0, "a", tp.Space.UB, 1024, address=0), tp.ChipBuffer(1, "b", tp.Space.UB, 1024, address=1024))
    given = tiles or tuple(tp.TileView(n, name, n, DType.F32, 4, 64, tp.Form.ROWS, Const(4), Const(64)) for n, name in enumerate("ab"))
    declared = tuple(tp.BindTile(tile.id) for tile in given)
    return tp.TileProgram("k", Unit.VECTOR, (TensorParam("x", Role.INOUT, DType.F32),), (tp.ParamAccess(0, 1),), given_buffers, given,
                          (*declared, *body), span=at(1))


GOOD = program(LOAD, *IN, EXP, *OUT, STORE, *DRAIN)


def refusal(made: tp.TileProgram, arch: str = "ascend_910b") -> str:
    errors = [finding.error for finding in check_tile_program(made, builtin_arch(arch)) if finding.error is not None]
    return str(errors[0]) if errors else ""


def test_a_right_program_is_proved() -> None:
    assert {finding.verdict for finding in check_tile_program(GOOD, ARCH)} == {Verdict.PROVED}


def test_a_family_that_is_not_known_leaves_instructions_open() -> None:
    verdicts = {finding.check: finding.verdict for finding in check_tile_program(GOOD, builtin_arch("unit"))}
    assert verdicts.pop("instructions") is Verdict.NOT_PROVED
    assert set(verdicts.values()) == {Verdict.PROVED}


# ---- flags ----

@pytest.mark.parametrize(("body", "says"), [
    ((LOAD, IN[0], EXP, *OUT, STORE, *DRAIN), "a flag from PIPE_MTE2 to PIPE_V is up at the kernel's end"),
    ((LOAD, IN[1], EXP, *OUT, STORE, *DRAIN), "PIPE_V waits for a flag of PIPE_MTE2 that is not set"),
    ((LOAD, IN[0], *IN, EXP, *OUT, STORE, *DRAIN), "a flag from PIPE_MTE2 to PIPE_V is set twice"),
    ((tp.If(Binary(Op.LT, SOME, Const(3)), (LOAD, IN[0])), IN[1]), "the two sides of a branch leave different flags up"),
    ((tp.For(J, Const(0), SOME, Const(1), (LOAD, IN[0])),), "an iteration of the loop changes which flags are up"),
    ((LOAD, IN[0], tp.Leave(Binary(Op.LT, SOME, Const(3))), IN[1]), "is up where the kernel may end"),
    ((LOAD, *flag(Pipe.MTE2, Pipe.V, 8)), "the event of a flag is not one of eight"),
    ((LOAD, *flag(Pipe.MTE2, Pipe.V, SOME)), "the event of a flag is not one of eight"),
])
def test_flags_that_do_not_pair(body: tuple[tp.Step, ...], says: str) -> None:
    assert says in refusal(program(*body)).splitlines()[0]


def test_the_report_of_a_flag() -> None:
    assert refusal(program(LOAD, IN[1])) == """\
error[N201]: kernel `k`: PIPE_V waits for a flag of PIPE_MTE2 that is not set
  --> k.py:9:1
   = expected: event 0 to be set on every way here
   = found:    a way on which it is not"""


JOINED = tp.Instr("TCONCAT", (tp.TileArg(1, WRITE), tp.TileArg(0, READ), tp.TileArg(0, READ)), span=at(2))
OPEN = flag(Pipe.V, Pipe.S, 0, line=4)


@pytest.mark.parametrize(("body", "arch", "refused"), [
    ((LOAD, *IN, OPEN[0], JOINED, OPEN[1], *OUT, STORE, *DRAIN), "ascend_910b", True),
    ((LOAD, *IN, OPEN[0], JOINED, OPEN[1], *OUT, STORE, *DRAIN), "ascend_950", False),
    ((LOAD, *IN, *OPEN, JOINED, *OUT, STORE, *DRAIN), "ascend_910b", False),
    ((LOAD, *IN, *(end for end in flag(Pipe.V, Pipe.S, 1)[:1]), JOINED, *flag(Pipe.V, Pipe.S, 1)[1:], *OUT, STORE, *DRAIN), "ascend_910b",
     False),
])
def test_flags_that_an_instruction_sets_itself_are_down(body: tuple[tp.Step, ...], arch: str, refused: bool) -> None:
    assert ("is up where TCONCAT sets it itself" in refusal(program(*body), arch)) is refused


# ---- hazards ----

def test_the_report_of_a_hazard() -> None:
    assert refusal(program(LOAD, EXP, *OUT, STORE, *DRAIN)) == """\
error[N202]: kernel `k`: PIPE_V reads `a` in UB, bytes 0 to 1024 before PIPE_MTE2 is known to have done with it
  --> k.py:2:1
   = expected: a flag from PIPE_MTE2 to PIPE_V between them
   = found:    none that orders them
   = note:     it was written at k.py:1"""


AGAIN = tp.GmLoad(0, "x", Const(8), Const(0), span=at(4))


@pytest.mark.parametrize(("body", "says"), [
    ((LOAD, *IN, EXP, STORE, *DRAIN), "PIPE_MTE3 reads `b`"),
    ((LOAD, *IN, EXP, EXP, *OUT, STORE, *DRAIN), "PIPE_V writes `b`"),
    ((LOAD, *IN, EXP, AGAIN, *OUT, STORE, *DRAIN), "PIPE_MTE2 writes `a`"),
    ((LOAD, *IN, EXP, *OUT, STORE, *flag(Pipe.V, Pipe.MTE2), LOAD, *DRAIN), "PIPE_MTE2 reads `x` in global memory"),
    ((LOAD, *IN, EXP, *OUT, STORE), "may end before what it stores has arrived"),
    ((LOAD, *IN, *IN), "sets an event again that may not have been awaited yet"),
    ((tp.For(J, Const(0), SOME, Const(1), (LOAD, *IN, EXP)),), "PIPE_MTE2 writes `a`"),
])
def test_what_pipes_do_too_early(body: tuple[tp.Step, ...], says: str) -> None:
    assert says in refusal(program(*body)).splitlines()[0]


def test_other_rows_of_global_memory_may_be_read_while_some_are_written() -> None:
    other = (LOAD, *IN, EXP, *OUT, STORE, *flag(Pipe.V, Pipe.MTE2), AGAIN, *DRAIN)
    assert refusal(program(*other)) == ""


def test_a_hazard_on_one_side_inside_the_other_is_found() -> None:
    """Only where the outer condition does not hold and the inner one does."""
    some = Binary(Op.LT, SOME, Const(1))
    rest = tp.If(Binary(Op.LT, SOME, Const(2)), (EXP,), ())
    made = program(tp.If(some, (), (LOAD, rest)), *DRAIN)
    assert "PIPE_V reads `a`" in refusal(made)
    assert refusal(program(tp.If(some, (), (LOAD, *IN, rest)), *DRAIN)) == ""


def test_parameters_that_may_lie_on_the_same_elements_are_ordered() -> None:
    again = tp.GmLoad(0, "y", Const(8), Const(0), span=at(4))
    made = program(LOAD, *IN, EXP, *OUT, STORE, *flag(Pipe.V, Pipe.MTE2), again, *DRAIN)
    params = (*made.params, TensorParam("y", Role.IN, DType.F32))
    apart, together = (replace(made, params=params, access=(tp.ParamAccess(0, 1, memory=memory),) * 2) for memory in (None, 0))
    assert refusal(apart) == ""
    assert "PIPE_MTE2 reads `x` in global memory before PIPE_MTE3" in refusal(together)


def test_a_hazard_in_a_later_turn_is_found() -> None:
    """Two copies, and flags set before the work that they speak of: the third turn loads over what the first may still read."""
    buffers = tuple(replace(buffer, copies=2, address=2048 * buffer.id) for buffer in GOOD.buffers)
    turn = Binary(Op.MOD, J, Const(2))
    filled = flag(Pipe.MTE2, Pipe.V, turn)
    free = flag(Pipe.V, Pipe.MTE2, turn)
    first = tuple(tp.SetFlag(Pipe.V, Pipe.MTE2, Const(n)) for n in (0, 1))
    last = tuple(tp.WaitFlag(Pipe.V, Pipe.MTE2, Const(n)) for n in (0, 1))
    body = (tp.BindTile(0, J), tp.BindTile(1, J), free[1], LOAD, *filled, tp.Barrier(Pipe.V), EXP, free[0])
    assert refusal(program(*first, tp.For(J, Const(0), SOME, Const(1), body), *last, buffers=buffers)) == ""
    early = (*body[:6], free[0], *body[6:8])
    assert "PIPE_MTE2 writes `a`" in refusal(program(*first, tp.For(J, Const(0), SOME, Const(1), early), *last, buffers=buffers))


def test_a_hazard_in_a_branch_of_the_last_turn_is_found() -> None:
    branch = tp.If(Binary(Op.EQ, J, Const(16)), (EXP,))
    assert "PIPE_V reads `a`" in refusal(program(LOAD, tp.For(J, Const(0), Const(17), Const(1), (branch,))))
    assert refusal(program(LOAD, *IN, tp.For(J, Const(0), Const(17), Const(1), (branch,)))) == ""


# ---- places ----

def moved(**changes: object) -> tp.TileProgram:
    buffers = (GOOD.buffers[0], replace(GOOD.buffers[1], **changes))   # type: ignore[arg-type]
    return replace(GOOD, buffers=buffers)


@pytest.mark.parametrize(("made", "says"), [
    (moved(address=1040), "the address of `b` in UB is off its alignment"),
    (moved(size_bytes=1000), "the size of `b` in UB is off its alignment"),
    (moved(address=188416 - 512), "`b` does not lie inside UB of ascend_910b"),
    (moved(size_bytes=512), "tile `b` does not lie inside its buffer"),
    (moved(address=512), "TEXP is given `b` and `a`, which share bytes"),
])
def test_buffers_in_wrong_places(made: tp.TileProgram, says: str) -> None:
    assert says in refusal(made)


def test_the_report_of_a_room_on_another() -> None:
    """Flags order all of it, but b is written where a is still wanted."""
    again = tp.Instr("TEXP", (tp.TileArg(1, WRITE), tp.TileArg(0, READ)), span=at(5))
    barrier = tp.Barrier(Pipe.V)
    made = replace(program(LOAD, *IN, EXP, barrier, again, *OUT, STORE, *DRAIN), buffers=moved(address=0).buffers)
    assert refusal(made) == """\
error[N203]: kernel `k`: `a` in UB is read after another tile was written over it
  --> k.py:5:1
   = expected: buffers that live at the same time to lie apart
   = found:    bytes 0 to 1024 written at k.py:2"""


# ---- forms ----

def tile(**changes: object) -> tp.TileProgram:
    return replace(GOOD, tiles=(GOOD.tiles[0], replace(GOOD.tiles[1], **changes)))   # type: ignore[arg-type]


@pytest.mark.parametrize(("made", "expected"), [
    (tile(cols=56, valid_cols=Const(56)), "tiles of the same valid part"),
    (tile(cols=63, valid_cols=Const(63)), "rows of a multiple of 32 bytes"),
    (tile(form=tp.Form.COLUMN), "one column of a multiple of 32 bytes"),
    (tile(form=tp.Form.NZ), "a tile of form nz in L1"),
    (tile(valid_rows=Const(0)), "1 to 4 valid rows"),
    (tile(valid_rows=Const(5)), "1 to 4 valid rows"),
    (tile(dtype=DType.F16, cols=128), "operands of one dtype"),
    (tile(rows=0), "at least one row and one column"),
])
def test_tiles_and_operands_that_the_core_does_not_take(made: tp.TileProgram, expected: str) -> None:
    assert f"= expected: {expected}" in refusal(made)


def instr(name: str, *args: tp.Arg) -> tp.TileProgram:
    return program(LOAD, *IN, tp.Instr(name, args, span=at(2)))


@pytest.mark.parametrize(("made", "expected"), [
    (instr("TEXP", tp.TileArg(1, WRITE)), "as many operands as one of its forms"),
    (instr("TEXP", tp.TileArg(1, WRITE), tp.Word("x")), "src: of the instruction's dtype"),
    (instr("TEXP", tp.TileArg(1, BOTH), tp.TileArg(0, READ)), "dst as write"),
    (instr("TROWSUM", tp.TileArg(1, WRITE), tp.TileArg(0, READ), tp.TileArg(1, BOTH)), "a result of [4, 1]"),
])
def test_instructions_that_are_given_something_else(made: tp.TileProgram, expected: str) -> None:
    assert f"= expected: {expected}" in refusal(made)


def test_the_report_of_a_dtype() -> None:
    tiles = tuple(replace(one, dtype=DType.U32) for one in GOOD.tiles)
    assert refusal(replace(GOOD, tiles=tiles)) == """\
error[N204]: kernel `k`: TEXP is given what it does not take
  --> k.py:2:1
   = expected: dst of f32, f16 on a2a3
   = found:    u32"""
