"""The rules of tile instructions besides dtypes, and the dtype conversions of each family of cores.

A rule is one row: an instruction, the operands concerned, by their names in the instruction's forms, and the demand on them. Selection
consults the rules when it has a choice, `npu/check/forms.py` checks every tile program against all of them, and the emulated core of the
tests and the page docs/tile_rules.md are generated from these rows.

>>> [str(rule.demand.value) for rule in rules_of("TSEL", "a2a3")][0]
'are of one tile type: dtype, layout, storage, and what the type says of the valid part'
>>> converts(DType.I8, DType.I16, "a2a3"), converts(DType.I8, DType.I16, "a5")
(False, True)
>>> rules_page().splitlines()[0]
'# What tile instructions demand'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache

from pto_wsp.ir.dtype import DType
from pto_wsp.npu.isa.instructions import FAMILIES
from pto_wsp.values import dataclass

BOTH = ("a2a3", "a5")


class Demand(Enum):
    """A demand on operands; {n} is the rule's number."""

    ONE_TYPE = "are of one tile type: dtype, layout, storage, and what the type says of the valid part"
    ONE_STORAGE = "have equally many stored rows and stored columns"
    ONE_STORED_ROWS = "have equally many stored rows"
    ONE_VALID = "have the same valid part"
    STORED_AS_PRODUCT = "are stored as M x N, M x K and K x N"
    STORED_COLS_BY = "have stored columns in multiples of {n}"
    VALID_COLS_BY = "have valid columns in multiples of {n}"
    BITS_OF = "are a mask and what it is about: as many valid rows, and valid columns / {n} of them"
    TURNING_ROOM = "are a scratch tile and the source: at least columns x rows, rows rounded up to {n}, elements of scratch"
    ONE_ROW = "have one valid row"
    U32 = "are of u32"
    NOT_ZERO = "have no element 0"
    FLAGS_DOWN = "are given while event {n} between V and S is down: the instruction sets it itself"
    TEMPLATE = "are given with template arguments: the destination's type, its dtype, and the order"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of an instruction.

    `memory`: for a move, the kind of source tile to which the rule applies. `widths`: element sizes in bytes to which it applies; empty:
    all. `why`: what rejects a program that breaks the rule.
    """

    name: str
    operands: tuple[str, ...]
    demand: Demand
    families: tuple[str, ...]
    number: int
    memory: str
    widths: tuple[int, ...]
    why: str

    @property
    def text(self) -> str:
        """Return the demand in words."""
        return self.demand.value.format(n=self.number)


_SIMULATOR, _DEVICE, _WRONG = "the simulator does not build it", "the device's headers refuse it", "results are wrong"
_ASKED = "the instruction asks for it"
_OWN = "it sets and awaits that flag"
_FORMS = "not stated; operands of one type is the form that is known to build"


def _rules(names: str, operands: str, demand: Demand, why: str, families: str = "a2a3 a5", *, number: int = 0, memory: str = "",
           widths: tuple[int, ...] = ()) -> tuple[Rule, ...]:
    return tuple(Rule(name, tuple(operands.split()), demand, tuple(families.split()), number, memory, widths, why)
                 for name in names.split())


RULES: tuple[Rule, ...] = (
    *_rules("TSEL", "dst src0 src1", Demand.ONE_TYPE, "it does not compile"),
    *_rules("TSEL", "dst", Demand.VALID_COLS_BY, f"{_WRONG} on the simulator, which reads bits on from row to row", number=8),
    *_rules("TSELS", "dst", Demand.VALID_COLS_BY, "as TSEL", number=8),
    *_rules("TSEL TSELS", "bits dst", Demand.BITS_OF, f"{_WRONG} on the simulator", number=8),
    *_rules("TCMP", "src0", Demand.VALID_COLS_BY, "its mask is for TSEL", number=8),
    *_rules("TCMPS", "src", Demand.VALID_COLS_BY, "its mask is for TSEL", number=8),
    *_rules("TCMP", "bits_out src0", Demand.BITS_OF, "its mask is for TSEL", number=8),
    *_rules("TCMPS", "bits_out src", Demand.BITS_OF, "its mask is for TSEL", number=8),
    *_rules("TADD TSUB TMUL TDIV TMAX TMIN TAND TOR TXOR TSHL TSHR TFMOD TREM TPRELU TPOW TSUBRELU", "dst src0 src1", Demand.ONE_TYPE,
            _FORMS),
    *_rules("TMULADDDST TFUSEDMULADD TFUSEDMULADDRELU", "sum src0 src1", Demand.ONE_TYPE, _FORMS),
    *_rules("TROWSUM", "dst src", Demand.ONE_STORED_ROWS, _SIMULATOR),
    *_rules("TROWSUM TROWMAX TROWMIN TROWPROD", "src tmp", Demand.ONE_TYPE, _FORMS),
    *_rules("TMOV", "dst src", Demand.ONE_STORAGE, _DEVICE, "a2a3", memory="Vec"),
    *_rules("TMOV", "dst src", Demand.ONE_STORAGE, _DEVICE, "a5", memory="Mat"),
    # The device demands 32 for bytes, which rows of 32 bytes satisfy anyway.
    *_rules("TTRANS", "dst", Demand.STORED_COLS_BY, "the fast path of the device", number=16, widths=(2, 4)),
    *_rules("TTRANS", "tmp src", Demand.TURNING_ROOM, "scratch of the device", number=16),
    *_rules("TFILLPAD TFILLPAD_INPLACE", "dst src", Demand.ONE_STORAGE, f"{_ASKED}: a larger destination is TFILLPAD_EXPAND"),
    *_rules("TPAIRREDUCESUM", "dst src", Demand.ONE_VALID, _ASKED),
    *_rules("TINTERLEAVE", "dst0 dst1 src0 src1", Demand.VALID_COLS_BY, _ASKED, number=2),
    *_rules("TDEINTERLEAVE", "dst0 dst1 src0 src1", Demand.VALID_COLS_BY, _ASKED, number=2),
    *_rules("TDEINTERLEAVE", "dst0 dst1 src", Demand.VALID_COLS_BY, _ASKED, number=2),
    *_rules("TSORT32", "src", Demand.VALID_COLS_BY, _ASKED, number=32),
    *_rules("TSORT32", "index", Demand.U32, _ASKED),
    *_rules("TMRGSORT", "dst src", Demand.ONE_ROW, _ASKED),
    *_rules("TCI", "dst", Demand.TEMPLATE, f"{_ASKED}; the start is exactly of that dtype"),
    *_rules("TMATMUL", "out left right", Demand.STORED_AS_PRODUCT, _ASKED),
    *_rules("TMATMUL_ACC", "out left right", Demand.STORED_AS_PRODUCT, _ASKED),
    *_rules("TFMOD", "src1", Demand.NOT_ZERO, "the simulator ends with an assertion"),
    *_rules("TFMODS", "number", Demand.NOT_ZERO, "the simulator ends with an assertion"),
    *_rules("TCONCAT", "", Demand.FLAGS_DOWN, _OWN, "a2a3"),
    *_rules("TEXTRACT", "src", Demand.FLAGS_DOWN, _OWN, "a2a3", memory="Vec"),
    *_rules("TFILLPAD TFILLPAD_INPLACE TFILLPAD_EXPAND", "", Demand.FLAGS_DOWN, _OWN, "a2a3"),
    *_rules("TPUSH TDEQUANT", "", Demand.FLAGS_DOWN, _OWN, "a2a3"),
)

# Conversions of a single TCVT, by pair. Four-bit dtypes, which no tile has, are left out.
_TCVT: Mapping[str, Mapping[str, str]] = {
    "a2a3": {"f32": "f16 bf16 f32 i64 i32 i16", "f16": "f32 i32 i16 i8 u8", "bf16": "f32 i32", "u8": "f16", "i8": "f16", "i16": "f16 f32",
             "i32": "f32 f16 i16 i64", "i64": "f32 i32"},
    "a5": {"f32": "f16 bf16 i16 i32 i64 f32", "f16": "f32 i8 u8 i16 i32", "bf16": "f32 f16 i32", "u8": "f16 u16", "i8": "f16 i16 i32",
           "i16": "f16 f32 i32 u32 u8", "i32": "f32 i16 u16 i64 u8", "u32": "i16 u16 u8", "i64": "f32 i32"},
}


@cache
def rules_of(name: str, family: str) -> tuple[Rule, ...]:
    """Return the rules of an instruction on a family of cores."""
    return tuple(rule for rule in RULES if rule.name == name and family in rule.families)


def demands(name: str, demand: Demand, family: str) -> bool:
    """Return whether an instruction has a rule with that demand on a family of cores."""
    return any(rule.demand is demand for rule in rules_of(name, family))


def number_of(name: str, demand: Demand, family: str, nbytes: int) -> int:
    """Return the number of an instruction's rule with that demand, for elements of `nbytes` bytes; 1 without such a rule."""
    return next((rule.number for rule in rules_of(name, family) if rule.demand is demand and nbytes in (rule.widths or (nbytes,))), 1)


def converts(source: DType, target: DType, family: str) -> bool:
    """Return whether a single TCVT converts between two dtypes on a family of cores."""
    return target in converted_to(source, family)


@cache
def converted_to(source: DType, family: str) -> tuple[DType, ...]:
    """Return the dtypes to which a single TCVT converts a dtype on a family of cores."""
    return tuple(DType(name) for name in _TCVT[family].get(str(source), "").split())


def conversions(family: str) -> Iterator[tuple[DType, DType]]:
    """Yield all pairs that a single TCVT converts on a family of cores."""
    for source in _TCVT[family]:
        for target in converted_to(DType(source), family):
            yield DType(source), target


_HEAD = """# What tile instructions demand

Written from the instruction table by `pto_wsp/npu/isa/rules.py`. Kernels of packages keep all of this: selection asks the rules where it
has a choice, the emitter refuses a kernel that breaks one (`N204`, and `N201` for flags), and the emulated core of the tests refuses to
run it. For bodies of your own ([own_bodies.md](own_bodies.md)) nothing is proved: keep these rules there yourself. a2a3 is `ascend_910b`,
a5 is `ascend_950`. A tile's *storage* is what its type says first, rows and columns; its *valid part* is what instructions handle.
"""


def rules_page() -> str:
    """Return the text of docs/tile_rules.md."""
    lines = [_HEAD, "## Operands", "", "| instruction | operands | which | cores | why |", "| --- | --- | --- | --- | --- |"]
    merged: dict[tuple[str, ...], list[str]] = {}
    for rule in RULES:
        merged.setdefault(_cells(rule), []).append(f"`{rule.name}`")
    lines += [f"| {' '.join(names)} | {' | '.join(cells)} |" for cells, names in merged.items()]
    lines += ["", "## Conversions", "",
              "What one `TCVT` makes of a dtype; `pto.cast` goes by several where it has to, and keeps its meaning.", "",
              "| from | a2a3 | a5 |", "| --- | --- | --- |"]
    for dtype in DType:
        targets = [" ".join(str(target) for target in converted_to(dtype, family)) for family in FAMILIES]
        if any(targets):
            lines.append(f"| {dtype} | {' | '.join(targets)} |")
    return "\n".join(lines) + "\n"


def _cells(rule: Rule) -> tuple[str, ...]:
    sources = f" from a {rule.memory} tile" if rule.memory else ""
    widths = f", elements of {' or '.join(map(str, rule.widths))} bytes" if rule.widths else ""
    cores = "both" if rule.families == FAMILIES else rule.families[0]
    return ", ".join(rule.operands) or "all", f"{rule.text}{widths}", f"{cores}{sources}", rule.why
