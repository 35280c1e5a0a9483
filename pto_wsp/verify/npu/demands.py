"""Does an instruction get what its rules in the instruction table demand of its operands: types, storage, masks, multiples?

What only a run can tell (a divisor that is 0) is left to guards that selection makes; flags are looked at in `flags`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pto_wsp.arch.isa.instruction import find_instruction
from pto_wsp.arch.isa.rules import Demand, Rule, converts, rules_of
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.tile_program import Form
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Scalar
from pto_wsp.types.scalar_text import print_scalar

_KINDS: Mapping[Form, str] = {Form.ROWS: "Vec", Form.COLUMN: "Vec", Form.NZ: "Mat", Form.ZN: "Mat"}
_NAMED_DEMANDS = frozenset({Demand.TEMPLATE, Demand.FLAGS_DOWN})     # of the instruction, not of its tiles


def broken_demands(step: tp.Instr, tiles: Mapping[int, tp.Tile], family: str) -> Iterator[tuple[str, str]]:
    """Yield what is demanded and what is found, for every rule of the instruction on the family of cores that a step breaks."""
    named = _named(step)
    if step.name == "TCVT":
        yield from _conversion(named, tiles, family)
    for rule in rules_of(step.name, family):
        args = [named[name] for name in rule.operands if name in named]
        if len(args) < len(rule.operands) or not _applies(rule, named, tiles):
            continue
        found = _broken(rule, step, args, tiles)
        if found is not None:
            yield f"{' and '.join(rule.operands) or step.name}, which {rule.text}", found


def own_flags(step: tp.Instr, program: tp.TileProgram, family: str) -> Iterator[tuple[tp.Pipe, tp.Pipe, int]]:
    """Yield the flags, by their pipes and event, that an instruction sets and awaits itself on a family of cores."""
    for rule in rules_of(step.name, family):
        if rule.demand is Demand.FLAGS_DOWN and _applies(rule, _named(step), {tile.id: tile for tile in program.tiles}):
            yield tp.Pipe.V, tp.Pipe.S, rule.number
            yield tp.Pipe.S, tp.Pipe.V, rule.number


def _named(step: tp.Instr) -> Mapping[str, tp.Arg]:
    """Return the operands of an instruction by their names, none where no form has so many: forms are checked elsewhere."""
    form = find_instruction(step.name).form(len(step.args))
    return {} if form is None else {operand.name: arg for operand, arg in zip(form, step.args, strict=True)}


def _conversion(named: Mapping[str, tp.Arg], tiles: Mapping[int, tp.Tile], family: str) -> Iterator[tuple[str, str]]:
    to, source = named.get("to"), named.get("from")
    if isinstance(to, tp.TileArg) and isinstance(source, tp.TileArg):
        pair = tiles[source.tile].dtype, tiles[to.tile].dtype
        if not converts(*pair, family):
            yield f"a pair of dtypes that one TCVT converts on {family}", f"{pair[0]} to {pair[1]}"


def _applies(rule: Rule, named: Mapping[str, tp.Arg], tiles: Mapping[int, tp.Tile]) -> bool:
    source = named.get("src")
    if rule.memory and (not isinstance(source, tp.TileArg) or _KINDS.get(tiles[source.tile].form, "") != rule.memory):
        return False
    first = named.get(rule.operands[0]) if rule.operands else None
    return not rule.widths or (isinstance(first, tp.TileArg) and tiles[first.tile].dtype.nbytes in rule.widths)


def _broken(rule: Rule, step: tp.Instr, args: list[tp.Arg], tiles: Mapping[int, tp.Tile]) -> str | None:
    """Return what is found where a rule is broken."""
    if rule.demand in _NAMED_DEMANDS:
        return "none" if rule.demand is Demand.TEMPLATE and not step.template else None
    numbers = [arg for arg in args if isinstance(arg, tp.ScalarArg)]
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


def _of_number(rule: Rule, number: tp.ScalarArg) -> str | None:
    if rule.demand is Demand.U32 and number.dtype is not DType.U32:
        return str(number.dtype)
    return "0" if rule.demand is Demand.NOT_ZERO and number.value == Const(0) else None


def _type(tile: tp.Tile) -> tuple[object, ...]:
    """Return what the C++ type of a tile is made of; both valid extents are dynamic in it, or none."""
    fixed = isinstance(tile.valid_rows, Const) and isinstance(tile.valid_cols, Const)
    return tile.dtype, tile.form, tile.rows, tile.cols, (tile.valid_rows, tile.valid_cols) if fixed else None


def _most(extent: Scalar, stored: int) -> int:
    return int(extent.value) if isinstance(extent, Const) else stored


def _whole(extent: Scalar, step: int) -> bool:
    return isinstance(extent, Const) and int(extent.value) % step == 0
