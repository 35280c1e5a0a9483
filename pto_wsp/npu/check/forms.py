"""Check that the core supports the layouts of tiles and the operands and dtypes of instructions.

`check_forms` covers tile layouts, operand kinds and dtypes; `broken_demands` covers the rules of the instruction table: types, storage,
masks, multiples. A divisor of 0 is known only in a run, so guards of selection cover it; flags are checked in `flags`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pto_wsp.arch.model import Arch
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import TileFormError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import ScalarParamDecl
from pto_wsp.ir.scalar import Const, Scalar, print_scalar
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.instructions import FAMILIES, Kind, find_instruction, legal
from pto_wsp.npu.isa.rules import Demand, Rule, converts, rules_of
from pto_wsp.npu.isa.tile_program import ALIGN_BYTES, Form, Space
from pto_wsp.ops.entry import Unit

_KINDS: Mapping[Form, str] = {Form.ROWS: "Vec", Form.COLUMN: "Vec", Form.NZ: "Mat", Form.ZN: "Mat"}
_NAMED_DEMANDS = frozenset({Demand.TEMPLATE, Demand.FLAGS_DOWN})     # of the instruction, not of its tiles


def broken_demands(step: tp.Instr, tiles: Mapping[int, tp.TileView], family: str) -> Iterator[tuple[str, str]]:
    """Yield (demand, found) for every rule of the instruction that a step breaks on a family of cores."""
    named = _named(step)
    if step.name == "TCVT":
        yield from _conversion(named, tiles, family)
    for rule in rules_of(step.name, family):
        args = [named[name] for name in rule.operands if name in named]
        if len(args) < len(rule.operands) or not _applies(rule, named, tiles):
            continue
        fault = _broken(rule, step, args, tiles)
        if fault is not None:
            yield f"{' and '.join(rule.operands) or step.name}, which {rule.text}", fault


def own_flags(step: tp.Instr, program: tp.TileProgram, family: str) -> Iterator[tuple[tp.Pipe, tp.Pipe, int]]:
    """Yield the flags, by pipes and event, that an instruction sets and awaits itself on a family of cores."""
    for rule in rules_of(step.name, family):
        if rule.demand is Demand.FLAGS_DOWN and _applies(rule, _named(step), {tile.id: tile for tile in program.tiles}):
            yield tp.Pipe.V, tp.Pipe.S, rule.number
            yield tp.Pipe.S, tp.Pipe.V, rule.number


def _named(step: tp.Instr) -> Mapping[str, tp.Arg]:
    """Return the operands of an instruction by name; empty if no form has that number of operands, which `_instruction` reports."""
    form = find_instruction(step.name).form(len(step.args))
    return {} if form is None else {operand.name: arg for operand, arg in zip(form, step.args, strict=True)}


def _conversion(named: Mapping[str, tp.Arg], tiles: Mapping[int, tp.TileView], family: str) -> Iterator[tuple[str, str]]:
    to, source = named.get("to"), named.get("from")
    if isinstance(to, tp.TileArg) and isinstance(source, tp.TileArg):
        pair = tiles[source.tile].dtype, tiles[to.tile].dtype
        if not converts(*pair, family):
            yield f"a pair of dtypes that one TCVT converts on {family}", f"{pair[0]} to {pair[1]}"


def _applies(rule: Rule, named: Mapping[str, tp.Arg], tiles: Mapping[int, tp.TileView]) -> bool:
    source = named.get("src")
    if rule.memory and (not isinstance(source, tp.TileArg) or _KINDS.get(tiles[source.tile].form, "") != rule.memory):
        return False
    first = named.get(rule.operands[0]) if rule.operands else None
    return not rule.widths or (isinstance(first, tp.TileArg) and tiles[first.tile].dtype.nbytes in rule.widths)


def _broken(rule: Rule, step: tp.Instr, args: list[tp.Arg], tiles: Mapping[int, tp.TileView]) -> str | None:
    """Return what a broken rule finds, None if the rule holds."""
    if rule.demand in _NAMED_DEMANDS:
        return "none" if rule.demand is Demand.TEMPLATE and not step.template else None
    numbers = [arg for arg in args if isinstance(arg, tp.NumberArg)]
    if numbers:
        return next(filter(None, (_of_number(rule, number) for number in numbers)), None)
    given = [tiles[arg.tile] for arg in args if isinstance(arg, tp.TileArg)]
    shapes = " and ".join(f"[{tile.rows}, {tile.cols}] of {tile.dtype}" for tile in given)
    parts = " and ".join(f"[{print_scalar(tile.valid_rows)}, {print_scalar(tile.valid_cols)}]" for tile in given)
    match rule.demand:
        case Demand.ONE_TYPE:
            return None if len({_type(tile) for tile in given}) == 1 else f"{shapes}, of which {parts} are valid"
        case Demand.ONE_STORAGE:
            return None if len({(tile.rows, tile.cols) for tile in given}) == 1 else shapes
        case Demand.ONE_STORED_ROWS:
            return None if len({tile.rows for tile in given}) == 1 else shapes
        case Demand.ONE_VALID:
            return None if len({(tile.valid_rows, tile.valid_cols) for tile in given}) == 1 else parts
        case Demand.STORED_AS_PRODUCT:
            into, left, right = given
            agree = (into.rows, into.cols, left.cols) == (left.rows, right.cols, right.rows)
            return None if agree else shapes
        case Demand.STORED_COLS_BY:
            return None if all(tile.cols % rule.number == 0 for tile in given) else shapes
        case Demand.VALID_COLS_BY:
            return None if all(_whole(tile.valid_cols, rule.number) for tile in given) else parts
        case Demand.BITS_OF:
            mask, about = given
            cols = about.valid_cols
            wanted = Const(int(cols.value) // rule.number) if isinstance(cols, Const) else None
            return None if (mask.valid_rows, mask.valid_cols) == (about.valid_rows, wanted) else parts
        case Demand.TURNING_ROOM:
            scratch, source = given
            down, across = _most(source.valid_rows, source.rows), _most(source.valid_cols, source.cols)
            least = across * (-(-down // rule.number) * rule.number)
            return None if scratch.rows * scratch.cols >= least else f"{scratch.rows * scratch.cols} elements, of at least {least}"
        case Demand.ONE_ROW:
            return None if all(tile.valid_rows == Const(1) for tile in given) else parts
        case Demand.U32:
            return None if all(tile.dtype is DType.U32 for tile in given) else shapes
        case _:
            return None


def _of_number(rule: Rule, number: tp.NumberArg) -> str | None:
    if rule.demand is Demand.U32 and number.dtype is not DType.U32:
        return str(number.dtype)
    return "0" if rule.demand is Demand.NOT_ZERO and number.value == Const(0) else None


def _type(tile: tp.TileView) -> tuple[object, ...]:
    """Return the components of a tile's C++ type, which has either both valid extents or none."""
    fixed = isinstance(tile.valid_rows, Const) and isinstance(tile.valid_cols, Const)
    return tile.dtype, tile.form, tile.rows, tile.cols, (tile.valid_rows, tile.valid_cols) if fixed else None


def _most(extent: Scalar, stored: int) -> int:
    return int(extent.value) if isinstance(extent, Const) else stored


def _whole(extent: Scalar, step: int) -> bool:
    return isinstance(extent, Const) and int(extent.value) % step == 0


# -- layouts, operands, dtypes ---------------------------------------------------------------------


_TILES, _OPERANDS = "tile layouts", "instructions"
_FRACTAL_ROWS = 16
_SPACES: Mapping[Form, Space] = {Form.ROWS: Space.UB, Form.COLUMN: Space.UB, Form.NZ: Space.L1, Form.ZN: Space.L1, Form.LEFT: Space.L0A,
                                 Form.RIGHT: Space.L0B, Form.ACC: Space.L0C}
_INDICES = frozenset({DType.U32, DType.I32})
_BITS = frozenset({DType.U8})

# Instructions whose tiles all have the same valid part, and instructions that reduce rows.
_ELEMENTWISE = frozenset({"TABS", "TADD", "TAND", "TDIV", "TEXP", "TLOG", "TMAX", "TMIN", "TMUL", "TNEG", "TNOT", "TOR", "TRECIP", "TRELU",
                          "TRSQRT", "TSHL", "TSHR", "TSQRT", "TSUB", "TADDS", "TANDS", "TDIVS", "TMAXS", "TMINS", "TMULS", "TORS", "TSHLS",
                          "TSHRS", "TSUBS", "TCVT"})
_BY_ROW = frozenset({"TROWSUM", "TROWMAX", "TROWMIN", "TROWPROD"})


def check_forms(program: tp.TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return, for tiles and for instructions, that the core supports all of them, or the first that it does not support."""
    findings = []
    for check, errors, proof in ((_TILES, _tiles(program), f"{len(program.tiles)} tiles"),
                                 (_OPERANDS, _steps(program, arch), f"on cores of {arch.family or 'no known family'}")):
        error = next(errors, None)
        if error is not None:
            findings.append(Finding(check, Verdict.COUNTEREXAMPLE, error.message, error))
        else:
            has_rules = check is _TILES or arch.family in FAMILIES
            findings.append(Finding(check, Verdict.PROVED if has_rules else Verdict.NOT_PROVED, proof))
    return tuple(findings)


# -- tiles

def _tiles(program: tp.TileProgram) -> Iterator[TileFormError]:
    buffers = {buffer.id: buffer for buffer in program.buffers}
    lines = {use.tile: step.span for step in reversed(tuple(tp.steps(program.body))) for use in tp.uses_of(step)}
    for tile in program.tiles:
        for rule, found in _faults(tile, buffers[tile.buffer], program.core):
            yield TileFormError(f"kernel `{program.name}`: tile `{tile.name}` is none that the core takes",
                                lines.get(tile.id, program.span),
                                expected=rule, found=found)


def _faults(tile: tp.TileView, buffer: tp.ChipBuffer, core: Unit) -> Iterator[tuple[str, str]]:
    shape, dtype = f"[{tile.rows}, {tile.cols}] {tile.dtype}", tile.dtype
    if tile.rows < 1 or tile.cols < 1:
        yield "at least one row and one column", shape
        return
    if buffer.space is not _SPACES[tile.form]:
        yield f"a tile of form {tile.form.value} in {_SPACES[tile.form].value}", buffer.space.value
    if (buffer.space is Space.UB) != (core is Unit.VECTOR):
        yield f"a memory of the {core.value} core", buffer.space.value
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


# -- instructions

def _steps(program: tp.TileProgram, arch: Arch) -> Iterator[TileFormError]:
    tiles = {tile.id: tile for tile in program.tiles}
    dtypes = {param.name: param.dtype for param in program.params
              if not isinstance(param, ScalarParamDecl)}
    for step in tp.steps(program.body):
        match step:
            case tp.GmLoad(tile=tile, param=param) | tp.GmStore(tile=tile, param=param):
                # A result of the cube core is converted by the store; bool is bytes in memory.
                if tiles[tile].form is not Form.ACC and tiles[tile].dtype.nbytes != dtypes[param].nbytes:
                    yield TileFormError(f"kernel `{program.name}` moves elements of another size between `{param}` and a tile", step.span,
                                        expected=str(dtypes[param]), found=str(tiles[tile].dtype))
            case tp.Instr():
                for rule, found in _instruction(step, tiles, arch):
                    yield TileFormError(f"kernel `{program.name}`: {step.name} is given what it does not take", step.span, expected=rule,
                                        found=found)
            case _:
                pass


def _instruction(step: tp.Instr, tiles: Mapping[int, tp.TileView], arch: Arch) -> Iterator[tuple[str, str]]:
    form = find_instruction(step.name).form(len(step.args))
    if form is None:
        yield "as many operands as one of its forms", str(len(step.args))
        return
    data: set[DType] = set()
    for operand, arg in zip(form, step.args, strict=True):
        wanted = tp.TileArg if operand.kind.is_tile else tp.NumberArg if operand.kind is Kind.SCALAR else tp.Word
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


def _extents(step: tp.Instr, tiles: Mapping[int, tp.TileView]) -> Iterator[tuple[str, str]]:
    form = find_instruction(step.name).form(len(step.args)) or ()
    named = [(operand.name, tiles[arg.tile]) for operand, arg in zip(form, step.args, strict=True)
             if isinstance(arg, tp.TileArg) and operand.name != "tmp"]
    if step.name in _ELEMENTWISE:
        shapes = dict.fromkeys((tile.valid_rows, tile.valid_cols) for _, tile in named)
        if len(shapes) > 1:
            yield "tiles of the same valid part", " and ".join(_shape_text(shape) for shape in shapes)
    elif step.name in _BY_ROW:
        (_, target), (_, source) = named
        if (target.valid_rows, target.valid_cols) != (source.valid_rows, Const(1)):
            yield f"a result of {_shape_text((source.valid_rows, Const(1)))}", _shape_text((target.valid_rows, target.valid_cols))
    elif step.name in ("TMATMUL", "TMATMUL_ACC"):
        into, left, right = named[0][1], named[-2][1], named[-1][1]
        rows_cols = left.valid_rows, right.valid_cols
        if (into.valid_rows, into.valid_cols) != rows_cols:
            yield f"a result of {_shape_text(rows_cols)}", _shape_text((into.valid_rows, into.valid_cols))
        if left.valid_cols != right.valid_rows:
            yield "as many columns on the left as rows on the right", _shape_text((left.valid_cols, right.valid_rows))


def _shape_text(shape: tuple[Scalar, Scalar]) -> str:
    return f"[{print_scalar(shape[0])}, {print_scalar(shape[1])}]"
