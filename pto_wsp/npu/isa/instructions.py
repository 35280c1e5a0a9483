"""The instruction table: operands, access and legal dtypes of each tile instruction, per family of cores.

>>> find_instruction("TADD").forms[0][0]
Operand(name='dst', kind=<Kind.DATA: "of the instruction's dtype">, access=<Access.WRITE: 'write'>)
>>> legal("TAND", DType.I32, "a2a3"), legal("TAND", DType.I16, "a2a3")
(False, True)

In a row of `ROWS`, operands are names of `_OPERANDS`, with a form after each `|`. Dtypes are those that the ISA's public headers state for
each family ("=": a5 as a2a3). `ran`: dtypes with correct results on the ISA's CPU simulation. `refused`: dtypes that the simulation rejects
or computes wrongly; no family gets them. A dtype that no source states is illegal, unless `note` names an assumption and its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache

from pto_wsp.errors import InternalError
from pto_wsp.ir.dtype import DType
from pto_wsp.npu.isa.tile_program import Access
from pto_wsp.values import dataclass

_AS_A2A3 = "a5 not stated: as a2a3"
_ONE_HEADER = "a5 states 64-bit dtypes only, which is one header of several: also what a2a3 takes and what ran"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table as text."""

    name: str
    operands: str
    a2a3: str
    a5: str
    ran: str
    refused: str
    note: str


def _row(name: str, operands: str, a2a3: str, a5: str, ran: str = "", refused: str = "", note: str = "") -> Row:
    return Row(name, operands, a2a3, a2a3 if a5 == "=" else a5, ran, refused, note)


ROWS = (
    # Memory; of global memory no tile is an operand of an instruction: a program's own steps load and store.
    _row("TLOAD", "dst", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", "="),
    _row("TSTORE", "src", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", "="),
    # Elementwise (Tile-Tile)
    _row("TABS", "dst src", "f32 f16", "f32 f16 i32 i16 i8", ran="f32 f16 bf16 i32 i16", refused="u8",
         note="the simulator takes integers on a2a3, the device's headers do not"),
    _row("TADD", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TADDC", "dst src0 src1 src2", "", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TADDDEQRELU", "dst src0 src1 number tmp", "f16 i32", "="),
    _row("TADDRELUCONV", "out src0 src1", "f32 f16 i16 i8", "="),
    _row("TAND", "dst src0 src1", "i16 u16", "=", ran="i32 i16 u8", note=_AS_A2A3),
    _row("TCMP", "bits_out src0 src1 word", "f32 f16 i32", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64"),
    _row("TCVT", "to from word|to from word word|to from tmp word|to from tmp word word", "f32 f16 bf16 i32 i16 i8 u8 i64",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64", note="by pairs: `rules`"),
    _row("TDIV", "dst src0 src1", "f32 f16", "f32 f16 i32 i16 u32 u16 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TEXP", "dst src", "f32 f16", "=", ran="f32 f16 bf16", note=_AS_A2A3),
    _row("TFMOD", "dst src0 src1", "f32", "f32 f16 i32 i16 u32 u16", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TFUSEDMULADD", "sum src0 src1", "f32 f16", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TFUSEDMULADDRELU", "sum src0 src1", "f32 f16", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TLOG", "dst src", "f32 f16", "=", ran="f32 f16 bf16", note=_AS_A2A3),
    _row("TMAX", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TMIN", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TMUL", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 u32 u16 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TMULADDDST", "sum src0 src1", "f32 f16", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TNEG", "dst src", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 u32 u16", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TNOT", "dst src", "i32 i16 i8 u32 u16 u8", "=", ran="i32 i16 u8"),
    _row("TOR", "dst src0 src1", "i16 u16", "=", ran="i32 i16 u8", note=_AS_A2A3),
    _row("TPOW", "dst src0 src1 tmp", "", "i8 u8", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TPRELU", "dst src0 src1 tmp", "f32 f16 u8", "f32 f16", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TRECIP", "dst src", "f32 f16", "=", ran="f32 f16 bf16", note=_AS_A2A3),
    _row("TRELU", "dst src", "f32 f16 i32", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TREM", "dst src0 src1 tmp", "f32 i32", "f32 f16 i32 i16 u32 u16 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TRSQRT", "dst src|dst src tmp", "f32 f16", "=", ran="f32 f16", refused="bf16"),
    _row("TSEL", "dst bits src0 src1 tmp", "f32 f16", "=",
         note="not stated: the floats that comparisons take; other dtypes of their width are seen as these"),
    _row("TSHL", "dst src0 src1", "i32 i16 i8 u32 u16 u8", "i32 i16 i8 u32 u16 u8 i64 u64", ran="i32 i16 u8"),
    _row("TSHR", "dst src0 src1", "i32 i16 i8 u32 u16 u8", "i32 i16 i8 u32 u16 u8 i64 u64", ran="i32 i16 u8"),
    _row("TSQRT", "dst src", "f32 f16", "=", ran="f32 f16 bf16"),
    _row("TSUB", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TSUBC", "dst src0 src1 src2", "", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TSUBRELU", "dst src0 src1", "f32 f16", "=", ran="f32 f16 bf16 i32 i16", refused="u8"),
    _row("TSUBRELUCONV", "out src0 src1", "f32 f16 i16 i8", "="),
    _row("TXOR", "dst src0 src1 tmp", "i16 u16", "i32 i16 i8 u32 u16 u8", ran="i32 i16 u8"),

    # Tile-Scalar / Tile-Immediate
    _row("TADDS", "dst src number", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TADDSC", "dst src0 number src1", "f32 f16 i32 i16", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TANDS", "dst src number", "i32 i16 u32 u16", "i16 u16", ran="i32 i16 u8", note=_AS_A2A3),
    _row("TAXPY", "sum src number", "f32 f16", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TCMPS", "bits_out src number word", "f32 f16 i32 i16 u16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64"),
    _row("TDIVS", "dst src number", "f32 f16 i32 i16", "f32 f16 i32 i16 u32 u16 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TEXPANDS", "dst number", "f32 f16 bf16 i32 i16 i8 u32 u16 u8",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TFMODS", "dst src number", "f32", "f32 f16", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TLRELU", "dst src number", "f32 f16", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TMAXS", "dst src number", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TMINS", "dst src number", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TMULS", "dst src number", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 u32 u16 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TORS", "dst src number", "i32 i16 u32 u16", "i16 u16", ran="i32 i16 u8", note=_AS_A2A3),
    _row("TPOWS", "dst src number tmp", "", "i8 u8", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TREMS", "dst src number tmp", "f32 i32", "f32 f16 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TSELS", "dst bits src tmp number", "f32 f16", "f32 f16 i32 i16 i8 u32 u16 u8 i64 u64",
         note="a2a3 not stated: the floats of TSEL"),
    _row("TSHLS", "dst src number", "i32 i16 i8 u32 u16 u8", "i32 i16 i8 u32 u16 u8 i64 u64", ran="i32 i16 u8"),
    _row("TSHRS", "dst src number", "i32 i16 i8 u32 u16 u8", "i32 i16 i8 u32 u16 u8 i64 u64", ran="i32 i16 u8"),
    _row("TSUBS", "dst src number", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TSUBSC", "dst src0 number src1", "f32 f16 i32 i16", "=", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TXORS", "dst src number tmp", "i32 i16 u32 u16", "i16 u16", ran="i32 i16 u8", note=_AS_A2A3),

    # Axis Reduce / Expand
    _row("TCOLARGMAX", "index_out src tmp|dst index_out src tmp", "f32 f16 i32 u32 u16", "i32 i8 u32 u8"),
    _row("TCOLARGMIN", "index_out src tmp|dst index_out src tmp", "f32 f16 i32 u32 u16", "i32 i8 u32 u8"),
    _row("TCOLEXPAND", "dst src", "f32 f16 bf16 i32 i16 i8 u32 u16 u8",
         "f32 f16 bf16 i32 i16 u32 u16 i8 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8",
         note=_ONE_HEADER),
    _row("TCOLEXPANDADD", "dst src0 src1", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TCOLEXPANDDIV", "dst src0 src1", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TCOLEXPANDEXPDIF", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16", refused="bf16"),
    _row("TCOLEXPANDMAX", "dst src0 src1", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TCOLEXPANDMIN", "dst src0 src1", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TCOLEXPANDMUL", "dst src0 src1", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16 u8", refused="bf16"),
    _row("TCOLEXPANDSUB", "dst src0 src1", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TCOLMAX", "dst src", "f32 f16 i32 i16", "f32 f16 i64 u64", ran="f32 f16 bf16 u8", refused="i32 i16",
         note=_ONE_HEADER),
    _row("TCOLMIN", "dst src", "f32 f16 i32 i16", "f32 f16 i32 i16 i64 u64", ran="f32 f16 bf16 i32 i16 u8",
         note=_ONE_HEADER),
    _row("TCOLPROD", "dst src", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 u32 u16", ran="f32 f16 bf16 i32"),
    _row("TCOLSUM", "dst src|dst src tmp", "f32 f16 i32 i16", "f32 f16 i64 u64", ran="f32 f16 bf16", refused="i32 i16 u8",
         note=_ONE_HEADER),
    _row("TROWARGMAX", "index_out src tmp|dst index_out src tmp", "f32 f16 bf16 i32 i16 u32 u16", "="),
    _row("TROWARGMIN", "index_out src tmp|dst index_out src tmp", "f32 f16 bf16 i32 i16 u32 u16", "="),
    _row("TROWEXPAND", "dst src", "f32 f16 bf16 i32 i16 i8 u32 u16 u8",
         "f32 f16 bf16 i32 i16 u32 u16 i8 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8",
         note=_ONE_HEADER),
    _row("TROWEXPANDADD", "dst src0 src1|dst src0 src1 tmp", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TROWEXPANDDIV", "dst src0 src1|dst src0 src1 tmp", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TROWEXPANDEXPDIF", "dst src0 src1|dst src0 src1 tmp", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16", refused="bf16"),
    _row("TROWEXPANDMAX", "dst src0 src1|dst src0 src1 tmp", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TROWEXPANDMIN", "dst src0 src1|dst src0 src1 tmp", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TROWEXPANDMUL", "dst src0 src1|dst src0 src1 tmp", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16 u8", refused="bf16"),
    _row("TROWEXPANDSUB", "dst src0 src1|dst src0 src1 tmp", "f32 f16 i32 i16",
         "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 i32 i16", refused="bf16 u8"),
    _row("TROWMAX", "dst src tmp", "f32 f16 i32 i16", "f32 f16 i32 i16 i8 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TROWMIN", "dst src tmp", "f32 f16 i32 i16", "f32 f16 i32 i16 i8 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TROWPROD", "dst src tmp", "f32 f16 i32 i16", "=", ran="f32 f16 bf16"),
    _row("TROWSUM", "dst src tmp", "f32 f16 i32 i16", "f32 f16 i32 i16 i64 u64", ran="f32 f16 bf16 i32 i16", refused="u8"),

    # Matrix Multiply
    _row("TGEMV", "out left right", "f16 bf16 f32 i8", "f32 f16 bf16"),
    _row("TGEMV_ACC", "acc left right|out in left right", "f16 bf16 f32 i8", "f32 f16 bf16"),
    _row("TGEMV_BIAS", "out left right in", "f16 bf16 f32 i8", "f32 f16 bf16"),
    _row("TMATMUL", "out left right", "f16 bf16 f32 i8", "f32 f16 bf16 i8"),
    _row("TMATMUL_ACC", "out in left right", "f16 bf16 f32 i8", "=", note=_AS_A2A3),
    _row("TMATMUL_BIAS", "out left right in", "f16 bf16 f32 i8", "=", note=_AS_A2A3),

    # Data Movement / Layout
    _row("TCONCAT", "dst src0 src1", "f32 f16 bf16 i32 i16 i8 u32 u16 u8", "="),
    _row("TDEINTERLEAVE", "dst0 dst1 src0 src1|dst0 dst1 src", "f32 f16 bf16 i32 i16 i8 u32 u16 u8", "="),
    _row("TEXTRACT", "dst src row col", "f32 f16 bf16 i32 i8", "f32 f16 bf16 i32 i16 i8 u32 u16 u8"),
    _row("TFILLPAD", "dst src", "", "="),
    _row("TFILLPAD_EXPAND", "dst src", "", "="),
    _row("TFILLPAD_INPLACE", "dst src", "", "="),
    _row("TINSERT", "part src row col", "", "f32 f16 bf16 i32 i8"),
    _row("TINTERLEAVE", "dst0 dst1 src0 src1", "f32 f16 bf16 i32 i16 i8 u32 u16 u8", "="),
    _row("TMOV", "dst src|dst src tmp", "f32 f16 i32 i64 u64", "f32 f16 bf16 i32 i8 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TPAIRREDUCESUM", "dst src", "f32 f16", "="),
    _row("TRESHAPE", "dst src", "", "="),
    _row("TSUBVIEW", "dst src row col", "", "="),
    _row("TTRANS", "dst src tmp", "f32 f16 bf16 i32 u32 i16 u16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8",
         note="a2a3 not stated: as a5, bytes left out"),

    # Complex
    _row("TCI", "dst number|dst number tmp", "f32 f16 bf16 i32 i16 u32 u16", "i32 i16 u32 u16"),
    _row("TGATHER", "dst src|dst src index tmp", "f32 f16 i32 u32", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64"),
    _row("TGATHERB", "dst src index", "", "="),
    _row("TMRGSORT", "dst src number", "f32 f16", "="),
    _row("TPARTADD", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TPARTMAX", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TPARTMIN", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TPARTMUL", "dst src0 src1", "f32 f16 i32 i16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8", ran="f32 f16 bf16 i32 i16 u8"),
    _row("TSCATTER", "part src index|part src", "f32 f16 bf16 i32 i16 i8 u32 u16 u8", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64"),
    _row("TSORT32", "dst src index|dst src index tmp", "f32 f16", "="),
    _row("TTRI", "dst number", "f32 f16 i32 i16 u32 u16", "f32 f16 bf16 i32 i16 i8 u32 u16 u8 i64 u64"),
)


# -- look-ups --------------------------------------------------------------------------------------


FAMILIES = ("a2a3", "a5")


class Kind(Enum):
    """The kind of an operand."""

    DATA = "of the instruction's dtype"
    EACH = "of any dtype that the instruction takes"
    BITS = "a packed mask, u8"
    INDEX = "u32 or i32"
    FREE = "of any dtype"
    SCALAR = "a number"
    WORD = "an enumerator"

    @property
    def is_tile(self) -> bool:
        """Return False for numbers and enumerators."""
        return self not in (Kind.SCALAR, Kind.WORD)


@dataclass(frozen=True, slots=True)
class FormOperand:
    """An operand of a form; `access`: to the tile, READ for numbers and enumerators."""

    name: str
    kind: Kind
    access: Access


@dataclass(frozen=True, slots=True)
class Instruction:
    """A tile instruction. `ran`: dtypes with correct results on the ISA's CPU simulation; `note`: assumptions of the row."""

    name: str
    forms: tuple[tuple[FormOperand, ...], ...]
    a2a3: tuple[DType, ...]
    a5: tuple[DType, ...]
    ran: tuple[DType, ...]
    note: str

    def form(self, n_operands: int) -> tuple[FormOperand, ...] | None:
        """Return the form with `n_operands` operands, None if there is none."""
        return next((form for form in self.forms if len(form) == n_operands), None)

    def dtypes(self, family: str) -> tuple[DType, ...]:
        """Return the legal dtypes on a family of cores."""
        return {"a2a3": self.a2a3, "a5": self.a5}[family]


def find_instruction(name: str) -> Instruction:
    """Return the instruction of a name.

    Raises: InternalError for a name that the table does not have.
    """
    instruction = _instructions().get(name)
    if instruction is None:
        raise InternalError(f"the instruction table has no `{name}`")
    return instruction


def legal(name: str, dtype: DType, family: str) -> bool:
    """Return whether an instruction supports tiles of a dtype on a family of cores."""
    return dtype in find_instruction(name).dtypes(family)


@cache
def _instructions() -> Mapping[str, Instruction]:
    return {row.name: _instruction(row) for row in ROWS}


def _instruction(row: Row) -> Instruction:
    forms = tuple(tuple(_OPERANDS[name] for name in form.split()) for form in row.operands.split("|"))
    refused = _dtypes(row.refused)
    a2a3, a5 = (tuple(dtype for dtype in _dtypes(text) if dtype not in refused) for text in (row.a2a3, row.a5))
    return Instruction(row.name, forms, a2a3, a5, _dtypes(row.ran), row.note)


def _dtypes(text: str) -> tuple[DType, ...]:
    return tuple(DType(name) for name in text.split())


def _tiles(kind: Kind, access: Access, *names: str) -> Mapping[str, FormOperand]:
    return {name: FormOperand(name, kind, access) for name in names}


_OPERANDS: Mapping[str, FormOperand] = {
    **_tiles(Kind.DATA, Access.WRITE, "dst", "dst0", "dst1"),
    **_tiles(Kind.DATA, Access.READ, "src", "src0", "src1", "src2", "src3", "left", "right"),
    **_tiles(Kind.DATA, Access.BOTH, "sum", "part"),  # the instruction reads the destination, or keeps the elements that it does not write
    **_tiles(Kind.EACH, Access.WRITE, "to"), **_tiles(Kind.EACH, Access.READ, "from"),
    **_tiles(Kind.BITS, Access.WRITE, "bits_out"), **_tiles(Kind.BITS, Access.READ, "bits"),
    **_tiles(Kind.INDEX, Access.WRITE, "index_out"), **_tiles(Kind.INDEX, Access.READ, "index", "index0", "index1"),
    **_tiles(Kind.FREE, Access.WRITE, "out"), **_tiles(Kind.FREE, Access.READ, "in"), **_tiles(Kind.FREE, Access.BOTH, "acc", "tmp"),
    **_tiles(Kind.SCALAR, Access.READ, "number", "row", "col"), **_tiles(Kind.WORD, Access.READ, "word"),
}
