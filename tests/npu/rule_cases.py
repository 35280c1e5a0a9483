"""Instructions with operands that keep every rule of the table, and the same with one rule broken: as tile steps and as C++."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const
from pto_wsp.npu.emit.kernel_cpp import tile_type
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.instructions import ROWS, FormOperand, Kind, find_instruction
from pto_wsp.npu.isa.rules import RULES, Demand, Rule
from pto_wsp.npu.isa.tile_program import Form

# Not instructions of the table: they move between cores, or are not emulated.
OUTSIDE = frozenset({"TPUSH", "TDEQUANT"})
STATIC = tuple(rule for rule in RULES if rule.name not in OUTSIDE and rule.demand not in (Demand.TEMPLATE, Demand.NOT_ZERO))
_CUBE = frozenset({"TMATMUL", "TMATMUL_ACC"})


@dataclass(frozen=True)
class RuleCase:
    """An instruction with its tiles; `flag_up`: event 0 from V to S is set before it."""

    rule: Rule
    step: tp.Instr
    tiles: Mapping[int, tp.TileView]
    flag_up: bool = False

    @property
    def cube(self) -> bool:
        """True for what the cube core runs."""
        return any(tile.form not in (Form.ROWS, Form.COLUMN) for tile in self.tiles.values())

    def source(self) -> str:
        """Return a kernel that gives the instruction its operands."""
        lines = []
        for at, tile in self.tiles.items():
            valid = ", ".join(str(int(extent.value)) for extent in (tile.valid_rows, tile.valid_cols) if isinstance(extent, Const))
            lines.append(f"{tile_type(tile)} t{at}; TASSIGN(t{at}, {at * 0x2000});  // {valid}")
        if self.flag_up:
            lines.append("set_flag(PIPE_V, PIPE_S, EVENT_ID0);")
        args = ", ".join(_spelled(arg) for arg in self.step.args)
        lines.append(f"{self.step.name}({args});")
        body = "\n    ".join(lines)
        return f'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *) {{\n    using namespace pto;\n    {body}\n}}\n'


def _spelled(arg: tp.Arg) -> str:
    match arg:
        case tp.TileArg(tile):
            return f"t{tile}"
        case tp.NumberArg(Const(value)):
            return str(value)
        case tp.Word(text):
            return text
    raise AssertionError(arg)


def cases_of(rule: Rule) -> Iterator[tuple[RuleCase, RuleCase]]:
    """Yield, for every form that the rule is about, operands that keep all rules, and operands that break this one."""
    assert rule.name in {row.name for row in ROWS}
    for form in find_instruction(rule.name).forms:
        if all(name in [operand.name for operand in form] for name in rule.operands):
            right = _right(rule, form)
            yield right, _broken(right, [operand.name for operand in form])


def _right(rule: Rule, form: tuple[FormOperand, ...]) -> RuleCase:
    args: list[tp.Arg] = []
    tiles: dict[int, tp.TileView] = {}
    for operand in form:
        match operand.kind:
            case Kind.SCALAR:
                args.append(tp.NumberArg(Const(256 if rule.name == "TMRGSORT" else 0), DType.U32))
            case Kind.WORD:
                args.append(tp.Word("CmpMode::EQ"))
            case _:
                args.append(tp.TileArg(len(tiles), operand.access))
                tiles[len(tiles)] = _tile(rule, operand, len(tiles))
    return RuleCase(rule, tp.Instr(rule.name, tuple(args)), tiles)


def _tile(rule: Rule, operand: FormOperand, at: int) -> tp.TileView:
    """Return a tile that is right for an operand: 8 x 32 of f32, where nothing else is asked for."""
    def made(rows: int, cols: int, dtype: DType = DType.F32, form: Form = Form.ROWS, valid: tuple[int, int] | None = None) -> tp.TileView:
        down, across = valid or (rows, cols)
        return tp.TileView(at, operand.name, at, dtype, rows, cols, form, Const(down), Const(across))

    name = rule.name
    if operand.kind is Kind.BITS:
        return made(8, 32, DType.U8, valid=(8, 4))
    if operand.kind is Kind.INDEX:
        return made(8, 32, DType.U32)
    if name.startswith("TROW") and operand.name == "dst":
        return made(8, 1, form=Form.COLUMN)
    if name == "TTRANS":
        return {"dst": made(32, 16, valid=(32, 8)), "src": made(8, 32), "tmp": made(32, 16)}[operand.name]
    if name in _CUBE:
        left, right = made(16, 32, DType.F16, Form.LEFT), made(32, 48, DType.F16, Form.RIGHT)
        return {"left": left, "right": right}.get(operand.name, made(16, 48, form=Form.ACC))
    if name == "TMOV" and rule.memory == "Mat":
        return made(16, 32, form=Form.LEFT if operand.name == "dst" else Form.NZ)
    return made(1, 1024) if name == "TMRGSORT" else made(8, 32)


def _broken(right: RuleCase, names: list[str]) -> RuleCase:
    """Return a case with its rule, and no rule before it in the table, broken."""
    rule = right.rule
    place = {name: arg.tile for name, arg in zip(names, right.step.args, strict=True) if isinstance(arg, tp.TileArg)}
    tiles = dict(right.tiles)
    about = [tiles[place[name]] for name in rule.operands] or [tiles[0]]
    first, last = about[0], about[-1]
    match rule.demand:
        case Demand.ONE_TYPE | Demand.ONE_STORAGE | Demand.ONE_STORED_ROWS | Demand.STORED_AS_PRODUCT:
            tiles[last.id] = replace(last, rows=2 * last.rows)
        case Demand.ONE_VALID:
            tiles[last.id] = replace(last, valid_rows=Const(last.rows - 1))
        case Demand.STORED_COLS_BY:
            tiles[first.id] = replace(first, cols=first.cols * 3 // 2)
        case Demand.VALID_COLS_BY:
            for tile in right.tiles.values():
                if tile.valid_cols == first.valid_cols:
                    tiles[tile.id] = replace(tile, valid_cols=Const(tile.cols - 1))
        case Demand.BITS_OF:
            tiles[first.id] = replace(first, valid_cols=Const(5))
        case Demand.TURNING_ROOM:
            tiles[first.id] = replace(first, rows=31, valid_rows=Const(31))
        case Demand.ONE_ROW:
            for tile in right.tiles.values():
                tiles[tile.id] = replace(tile, rows=2, valid_rows=Const(2))
        case Demand.U32:
            tiles[first.id] = replace(first, dtype=DType.I32)
        case Demand.FLAGS_DOWN:
            return replace(right, flag_up=True)
        case _:
            raise AssertionError(rule)
    return replace(right, tiles=tiles)
