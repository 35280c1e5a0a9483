"""Does the core take what the program gives it: layouts of tiles, and operands and dtypes of instructions on this family of cores?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pto_wsp.arch.isa.instruction import FAMILIES, Kind, find_instruction, legal
from pto_wsp.arch.model import Arch
from pto_wsp.errors import TileFormError
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.kernel import ScalarParamDecl, TileParam
from pto_wsp.expr.tile_program import ALIGN_BYTES, Form, Space
from pto_wsp.ops.entry import Unit
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Scalar
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.verify.npu.demands import broken_demands
from pto_wsp.verify.verdict import Finding, Verdict

_TILES, _OPERANDS = "tile layouts", "instructions"
_FRACTAL_ROWS = 16
_SPACES: Mapping[Form, Space] = {Form.ROWS: Space.UB, Form.COLUMN: Space.UB, Form.NZ: Space.L1, Form.ZN: Space.L1, Form.LEFT: Space.L0A,
                                 Form.RIGHT: Space.L0B, Form.ACC: Space.L0C}
_INDICES = frozenset({DType.U32, DType.I32})
_BITS = frozenset({DType.U8})

# Instructions whose tiles all have the same valid part, and those that reduce rows.
_ELEMENTWISE = frozenset({"TABS", "TADD", "TAND", "TDIV", "TEXP", "TLOG", "TMAX", "TMIN", "TMUL", "TNEG", "TNOT", "TOR", "TRECIP", "TRELU",
                          "TRSQRT", "TSHL", "TSHR", "TSQRT", "TSUB", "TADDS", "TANDS", "TDIVS", "TMAXS", "TMINS", "TMULS", "TORS", "TSHLS",
                          "TSHRS", "TSUBS", "TCVT"})
_BY_ROW = frozenset({"TROWSUM", "TROWMAX", "TROWMIN", "TROWPROD"})


def check_forms(program: tp.TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return that every tile and instruction is one that the core takes, or the first that is not, for each."""
    found = []
    for check, errors, proof in ((_TILES, _tiles(program), f"{len(program.tiles)} tiles"),
                                 (_OPERANDS, _steps(program, arch), f"on cores of {arch.family or 'no known family'}")):
        error = next(errors, None)
        if error is not None:
            found.append(Finding(check, Verdict.COUNTEREXAMPLE, error.message, error))
        else:
            known = check is _TILES or arch.family in FAMILIES
            found.append(Finding(check, Verdict.PROVED if known else Verdict.NOT_PROVED, proof))
    return tuple(found)


# ---- tiles ----

def _tiles(program: tp.TileProgram) -> Iterator[TileFormError]:
    rooms = {room.id: room for room in program.rooms}
    lines = {use.tile: step.span for step in reversed(tuple(tp.steps(program.body))) for use in tp.uses_of(step)}
    for tile in program.tiles:
        for rule, found in _faults(tile, rooms[tile.room], program.core):
            yield TileFormError(f"kernel `{program.name}`: tile `{tile.name}` is none that the core takes",
                                lines.get(tile.id, program.span),
                                expected=rule, found=found)


def _faults(tile: tp.Tile, room: tp.Room, core: Unit) -> Iterator[tuple[str, str]]:
    shape, dtype = f"[{tile.rows}, {tile.cols}] {tile.dtype}", tile.dtype
    if tile.rows < 1 or tile.cols < 1:
        yield "at least one row and one column", shape
        return
    if room.space is not _SPACES[tile.form]:
        yield f"a tile of form {tile.form.value} in {_SPACES[tile.form].value}", room.space.value
    if (room.space is Space.UB) != (core is Unit.VECTOR):
        yield f"a memory of the {core.value} core", room.space.value
    match tile.form:
        case Form.ROWS:
            if tile.cols * dtype.nbytes % ALIGN_BYTES:
                yield f"rows of a multiple of {ALIGN_BYTES} bytes", f"{shape}: {tile.cols * dtype.nbytes} bytes"
        case Form.COLUMN:
            if tile.cols != 1 or tile.rows * dtype.nbytes % ALIGN_BYTES:
                yield f"one column of a multiple of {ALIGN_BYTES} bytes", shape
        case _:
            block = _FRACTAL_ROWS if tile.form is Form.ACC else ALIGN_BYTES // dtype.nbytes
            if tile.rows % _FRACTAL_ROWS or tile.cols % block:
                yield f"rows in blocks of {_FRACTAL_ROWS}, columns in blocks of {block}", shape
    for what, valid, storage in (("rows", tile.valid_rows, tile.rows), ("columns", tile.valid_cols, tile.cols)):
        if isinstance(valid, Const) and not 1 <= int(valid.value) <= storage:
            yield f"1 to {storage} valid {what}", str(valid.value)


# ---- instructions ----

def _steps(program: tp.TileProgram, arch: Arch) -> Iterator[TileFormError]:
    tiles = {tile.id: tile for tile in program.tiles}
    dtypes = {param.name: param.type.dtype if isinstance(param, TileParam) else param.dtype for param in program.params
              if not isinstance(param, ScalarParamDecl)}
    for step in tp.steps(program.body):
        match step:
            case tp.GmLoad(tile=tile, param=param) | tp.GmStore(tile=tile, param=param):
                # A result of the cube is converted on its way; bool in memory is bytes on chip.
                if tiles[tile].form is not Form.ACC and tiles[tile].dtype.nbytes != dtypes[param].nbytes:
                    yield TileFormError(f"kernel `{program.name}` moves elements of another size between `{param}` and a tile", step.span,
                                        expected=str(dtypes[param]), found=str(tiles[tile].dtype))
            case tp.Instr():
                for rule, found in _instruction(step, tiles, arch):
                    yield TileFormError(f"kernel `{program.name}`: {step.name} is given what it does not take", step.span, expected=rule,
                                        found=found)
            case _:
                pass


def _instruction(step: tp.Instr, tiles: Mapping[int, tp.Tile], arch: Arch) -> Iterator[tuple[str, str]]:
    form = find_instruction(step.name).form(len(step.args))
    if form is None:
        yield "as many operands as one of its forms", str(len(step.args))
        return
    data: set[DType] = set()
    for operand, arg in zip(form, step.args, strict=True):
        wanted = tp.TileArg if operand.kind.is_tile else tp.ScalarArg if operand.kind is Kind.SCALAR else tp.Word
        if not isinstance(arg, wanted):
            yield f"{operand.name}: {operand.kind.value}", str(arg)
        elif isinstance(arg, tp.TileArg):
            dtype = tiles[arg.tile].dtype
            if arg.access is not operand.access:
                yield f"{operand.name} as {operand.access.value}", arg.access.value
            if operand.kind is Kind.DATA:
                data.add(dtype)
            if operand.kind in (Kind.DATA, Kind.EACH) and arch.family in FAMILIES and not legal(step.name, dtype, arch.family):
                legal_ones = ", ".join(str(one) for one in find_instruction(step.name).dtypes(arch.family))
                yield f"{operand.name} of {legal_ones} on {arch.family}", str(dtype)
            for kind, dtypes in ((Kind.BITS, _BITS), (Kind.INDEX, _INDICES)):
                if operand.kind is kind and dtype not in dtypes:
                    yield f"{operand.name} of {', '.join(sorted(str(one) for one in dtypes))}", str(dtype)
    if len(data) > 1:
        yield "operands of one dtype", ", ".join(sorted(str(dtype) for dtype in data))
    yield from _extents(step, tiles)
    if arch.family in FAMILIES:
        yield from broken_demands(step, tiles, arch.family)


def _extents(step: tp.Instr, tiles: Mapping[int, tp.Tile]) -> Iterator[tuple[str, str]]:
    form = find_instruction(step.name).form(len(step.args)) or ()
    named = [(operand.name, tiles[arg.tile]) for operand, arg in zip(form, step.args, strict=True)
             if isinstance(arg, tp.TileArg) and operand.name != "tmp"]
    if step.name in _ELEMENTWISE:
        shapes = dict.fromkeys((tile.valid_rows, tile.valid_cols) for _, tile in named)
        if len(shapes) > 1:
            yield "tiles of the same valid part", " and ".join(_shown(shape) for shape in shapes)
    elif step.name in _BY_ROW:
        (_, target), (_, source) = named
        if (target.valid_rows, target.valid_cols) != (source.valid_rows, Const(1)):
            yield f"a result of {_shown((source.valid_rows, Const(1)))}", _shown((target.valid_rows, target.valid_cols))
    elif step.name in ("TMATMUL", "TMATMUL_ACC"):
        into, left, right = named[0][1], named[-2][1], named[-1][1]
        rows_cols = left.valid_rows, right.valid_cols
        if (into.valid_rows, into.valid_cols) != rows_cols:
            yield f"a result of {_shown(rows_cols)}", _shown((into.valid_rows, into.valid_cols))
        if left.valid_cols != right.valid_rows:
            yield "as many columns on the left as rows on the right", _shown((left.valid_cols, right.valid_rows))


def _shown(shape: tuple[Scalar, Scalar]) -> str:
    return f"[{print_scalar(shape[0])}, {print_scalar(shape[1])}]"
