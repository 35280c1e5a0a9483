"""What instructions demand of their operands besides dtypes, and which conversions each family of cores has: the rules of the table.

A rule is one row: an instruction, the operands that it is about, by their names in the instruction's forms, and what is demanded of them.
Selection asks for a rule where it has a choice, `verify/npu/demands.py` holds every tile program to all of them, the emulated core of the
tests reads them from a header that is written from these rows, and so is the page docs/tile_rules.md.

>>> [str(rule.demand.value) for rule in rules_of("TSEL", "a2a3")][0]
'are of one tile type: dtype, layout, storage, and what the type says of the valid part'
>>> converts(DType.I8, DType.I16, "a2a3"), converts(DType.I8, DType.I16, "a5")
(False, True)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache

from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

BOTH = ("a2a3", "a5")


class Demand(Enum):
    """What is demanded of operands; {n} stands for the rule's number."""

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
    """A rule of an instruction. `memory`: of a move, the kind of tile that its source must be for the rule to apply; `widths`: bytes of
    an element that it applies to, any where empty; `why`: what refuses a program that breaks it."""

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
        """What is demanded, in words."""
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
    # Of bytes the device wants 32, which rows of 32 bytes have anyway.
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

# Pairs, not only dtypes: what one TCVT makes of what. Dtypes of four and eight bits that no tile of ours has are left out.
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
    """Tell whether an instruction has a rule of that kind on a family of cores."""
    return any(rule.demand is demand for rule in rules_of(name, family))


def number_of(name: str, demand: Demand, family: str, nbytes: int) -> int:
    """Return the number in an instruction's rule of one kind, for elements of a size in bytes; 1 without such a rule."""
    return next((rule.number for rule in rules_of(name, family) if rule.demand is demand and nbytes in (rule.widths or (nbytes,))), 1)


def converts(source: DType, target: DType, family: str) -> bool:
    """Tell whether one TCVT converts between two dtypes on a family of cores."""
    return target in converted_to(source, family)


@cache
def converted_to(source: DType, family: str) -> tuple[DType, ...]:
    """Return what one TCVT makes of a dtype on a family of cores."""
    return tuple(DType(name) for name in _TCVT[family].get(str(source), "").split())


def conversions(family: str) -> Iterator[tuple[DType, DType]]:
    """Yield all pairs of one TCVT on a family of cores."""
    for source in _TCVT[family]:
        for target in converted_to(DType(source), family):
            yield DType(source), target
