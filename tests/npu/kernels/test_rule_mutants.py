"""Emitted kernels as they were before a rule of the instruction table was kept: the emitter refuses the tile program, and the emulated core
what is emitted from it all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from pto_wsp import DType, In, Out, Tile, kernel, pto
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir.scalar import Const
from pto_wsp.npu.check.forms import check_forms
from pto_wsp.npu.isa import tile_program as tp
from tests.npu.harness import RunFault
from tests.npu.kernels.batch import ARCHES, Bound, Case, load_programs, program_of, run_case

F32, F16, I32, I8 = DType.F32, DType.F16, DType.I32, DType.I8
BOTH = ("a2a3", "a5")


@kernel
def chosen(x: In[Tile[3, 5, F32]], y: In[Tile[3, 5, F32]], out: Out[Tile[3, 5, F32]]) -> None:
    pto.store(out, pto.where(x < y, x, y * 2))


@kernel
def few_rows(x: In[Tile[4, 40, F32]], out: Out[Tile[4, 1, F32]]) -> None:
    pto.store(out, pto.rowsum(x))


@kernel
def one_long_row(x: In[Tile[1, 2000, F32]], out: Out[Tile[1, 1, F32]]) -> None:
    pto.store(out, pto.rowsum(x))


@kernel
def turned(x: In[Tile[5, 9, F32]], out: Out[Tile[9, 5, F32]]) -> None:
    pto.store(out, x.T * 2)


@kernel
def remainders(x: In[Tile[3, 5, F32]], y: In[Tile[3, 5, F32]], out: Out[Tile[3, 5, F32]]) -> None:
    pto.store(out, x % y)


@kernel
def sizes(x: In[Tile[3, 5, I32]], out: Out[Tile[3, 5, I32]]) -> None:
    pto.store(out, pto.abs(x))


@kernel
def widened(x: In[Tile[3, 32, I8]], out: Out[Tile[3, 32, F16]]) -> None:
    pto.store(out, pto.cast(x, F16))


def _numbers(rows: int, cols: int, dtype: DType = F32, seed: int = 0) -> Bound:
    return Bound.plain(np.random.default_rng(seed).integers(-8, 8, (rows, cols)).astype(dtype.np))


CASES: dict[str, Callable[[], Case]] = {
    "chosen": lambda: Case(chosen, {"x": _numbers(3, 5), "y": _numbers(3, 5, seed=1), "out": _numbers(3, 5)}),
    "few_rows": lambda: Case(few_rows, {"x": _numbers(4, 40), "out": _numbers(4, 1)}),
    "one_long_row": lambda: Case(one_long_row, {"x": _numbers(1, 2000), "out": _numbers(1, 1)}),
    "turned": lambda: Case(turned, {"x": _numbers(5, 9), "out": _numbers(9, 5)}),
    "remainders": lambda: Case(remainders, {"x": _numbers(3, 5), "y": Bound.plain(np.array([[0, 2, -3, 4, 0]] * 3, np.float32)),
                                            "out": _numbers(3, 5)}),
    "sizes": lambda: Case(sizes, {"x": Bound.plain(np.array([[-2**31, 2**31 - 1, 0, -1, 7]] * 3, np.int32)), "out": _numbers(3, 5, I32)}),
    "widened": lambda: Case(widened, {"x": _numbers(3, 32, I8), "out": _numbers(3, 32, F16)}),
}

Change = Callable[[tp.TileView], tp.TileView]


def _with_tiles(program: tp.TileProgram, name: str, operands: tuple[int, ...], change: Change) -> tp.TileProgram:
    """Return the program with the tiles changed that an instruction is given at some places; others that lie there stay."""
    body, tiles = list(program.body), list(program.tiles)
    for at, step in enumerate(program.body):
        if isinstance(step, tp.Instr) and step.name == name:
            args, declared = list(step.args), []
            for place in operands:
                old = args[place]
                assert isinstance(old, tp.TileArg)
                new = replace(change(program.tile(old.tile)), id=len(tiles), name=f"{program.tile(old.tile).name}_other{len(tiles)}")
                tiles.append(new)
                declared.append(tp.BindTile(new.id))
                args[place] = replace(old, tile=new.id)
            body[at:at + 1] = [*declared, replace(step, args=tuple(args))]
            return replace(program, tiles=tuple(tiles), body=tuple(body))
    raise AssertionError(f"no {name} in {program.name}")


def _instead(program: tp.TileProgram, name: str, make: Callable[[tp.Instr], tp.Instr]) -> tp.TileProgram:
    """Return the program with another step in place of the first instruction of that name."""
    at, step = next((at, step) for at, step in enumerate(program.body) if isinstance(step, tp.Instr) and step.name == name)
    return replace(program, body=(*program.body[:at], make(step), *program.body[at + 1:]))


def _undivided(program: tp.TileProgram) -> tp.TileProgram:
    """Divide by what was given, not by what the guard made of it."""
    given = next(tile.id for tile in program.tiles if tile.name == "y")
    return _instead(program, "TFMOD", lambda step: replace(step, args=(*step.args[:2], tp.TileArg(given, tp.Access.READ))))


def _as_abs(step: tp.Instr) -> tp.Instr:
    return replace(step, name="TABS", args=(step.args[0], replace(step.args[2])))


@dataclass(frozen=True)
class Mutant:
    """A change to a kernel of CASES, and what both say. `proved`: False for what only a run can tell."""

    case: str
    change: Callable[[tp.TileProgram], tp.TileProgram]
    says: str
    families: tuple[str, ...] = BOTH
    proved: bool = False


MUTANTS: dict[str, Mutant] = {
    "choice of another pitch": Mutant("chosen", lambda p: _with_tiles(p, "TSEL", (2,), lambda tile: replace(tile, cols=16)),
                                      r"TSEL: operand 3 is stored as \[3, 16\], and operand 1 as \[3, 8\]"),
    "choice of the columns that there are": Mutant(
        "chosen", lambda p: _with_tiles(p, "TSEL", (0, 2, 3), lambda tile: replace(tile, valid_cols=Const(5))),
        "TSEL: operand 1 .* not valid columns in multiples of 8"),
    "mask of a byte more": Mutant("chosen", lambda p: _with_tiles(p, "TCMP", (0,), lambda tile: replace(tile, valid_cols=Const(2))),
                                  "TCMP: operand 1 and operand 2 have valid parts of .*, not a bit for each column"),
    "sum of fewer stored rows": Mutant(
        "few_rows", lambda p: _with_tiles(p, "TROWSUM", (1, 2), lambda tile: replace(tile, rows=4)),
        r"TROWSUM: operand 2 is stored as \[4, 40\], and operand 1 as \[8, 1\]"),
    "scratch of another type": Mutant("few_rows", lambda p: _with_tiles(p, "TROWSUM", (2,), lambda tile: replace(tile, rows=4)),
                                      r"TROWSUM: operand 3 is stored as \[4, 40\]"),
    "turned rows of 8": Mutant("turned", lambda p: _with_tiles(p, "TTRANS", (0,), lambda tile: replace(tile, cols=8)),
                                "TTRANS: operand 1 .* not stored columns in multiples of 16"),
    "too little room to turn": Mutant(
        "turned", lambda p: _with_tiles(p, "TTRANS", (2,), lambda tile: replace(tile, rows=5, valid_rows=Const(5))),
        r"TTRANS: operand 3 is scratch of \[5, 16\], of at least 144 elements"),
    "size of integers": Mutant("sizes", lambda p: _instead(p, "TMAX", _as_abs), "TABS: i32 on a2a3: it takes f32 f16", ("a2a3",)),
    "a conversion that there is not": Mutant(
        "widened", lambda p: _with_tiles(p, "TCVT", (0,), lambda tile: replace(tile, dtype=DType.I16)),
        "TCVT: no conversion from i8 to i16 on a2a3", ("a2a3",)),
    "remainder of 0": Mutant("remainders", _undivided, "TFMOD: operand 3 has a 0 in row 0", proved=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", BOTH)
def test_kernels_that_break_a_rule_are_refused(family: str) -> None:
    arch = builtin_arch(ARCHES[family])
    wanted = {name: mutant for name, mutant in MUTANTS.items() if family in mutant.families}
    right = {name: program_of(make(), family) for name, make in CASES.items()}
    made = {name: mutant.change(right[mutant.case]) for name, mutant in wanted.items()}
    loaded = load_programs([*right.values(), *made.values()], family)
    for (name, program), kernel_of in zip(right.items(), loaded, strict=False):
        run_case(CASES[name](), program, kernel_of)
    for (name, mutant), kernel_of in zip(wanted.items(), loaded[len(right):], strict=True):
        refused = [finding.error for finding in check_forms(made[name], arch) if finding.error is not None]
        assert bool(refused) is not mutant.proved, name
        with pytest.raises(RunFault, match=mutant.says):
            run_case(CASES[mutant.case](), made[name], kernel_of)
