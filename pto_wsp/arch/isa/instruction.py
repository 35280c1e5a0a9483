"""What a tile instruction is, and the look-ups: by name, and whether a family of cores takes a dtype.

>>> find_instruction("TADD").forms[0][0]
Operand(name='dst', kind=<Kind.DATA: "of the instruction's dtype">, access=<Access.WRITE: 'write'>)
>>> legal("TAND", DType.I32, "a2a3"), legal("TAND", DType.I16, "a2a3")
(False, True)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache

from pto_wsp.arch.isa.rows import ROWS, Row
from pto_wsp.errors import InternalError
from pto_wsp.expr.tile_program import Access
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

FAMILIES = ("a2a3", "a5")


class Kind(Enum):
    """What stands for an operand."""

    DATA = "of the instruction's dtype"
    EACH = "of any dtype that the instruction takes"
    BITS = "a packed mask, u8"
    INDEX = "u32 or i32"
    FREE = "of any dtype"
    SCALAR = "a number"
    WORD = "an enumerator"

    @property
    def is_tile(self) -> bool:
        """False for numbers and enumerators."""
        return self not in (Kind.SCALAR, Kind.WORD)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand by its place; `access`: what is done to a tile, READ for what is no tile."""

    name: str
    kind: Kind
    access: Access


@dataclass(frozen=True, slots=True)
class Instruction:
    """A tile instruction. `ran`: dtypes that ran with right results on the ISA's CPU simulation; `note`: where a row is assumed."""

    name: str
    forms: tuple[tuple[Operand, ...], ...]
    a2a3: tuple[DType, ...]
    a5: tuple[DType, ...]
    ran: tuple[DType, ...]
    note: str

    def form(self, n_operands: int) -> tuple[Operand, ...] | None:
        """Return the form with so many operands, None where there is none."""
        return next((form for form in self.forms if len(form) == n_operands), None)

    def dtypes(self, family: str) -> tuple[DType, ...]:
        """Return what a family of cores takes."""
        return {"a2a3": self.a2a3, "a5": self.a5}[family]


def find_instruction(name: str) -> Instruction:
    """Return the instruction of that name."""
    found = _instructions().get(name)
    if found is None:
        raise InternalError(f"the instruction table has no `{name}`")
    return found


def legal(name: str, dtype: DType, family: str) -> bool:
    """Tell whether an instruction takes tiles of a dtype on a family of cores."""
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


def _tiles(kind: Kind, access: Access, *names: str) -> Mapping[str, Operand]:
    return {name: Operand(name, kind, access) for name in names}


_OPERANDS: Mapping[str, Operand] = {
    **_tiles(Kind.DATA, Access.WRITE, "dst", "dst0", "dst1"),
    **_tiles(Kind.DATA, Access.READ, "src", "src0", "src1", "src2", "src3", "left", "right"),
    **_tiles(Kind.DATA, Access.BOTH, "sum", "part"),      # the destination takes part, or keeps what is not written
    **_tiles(Kind.EACH, Access.WRITE, "to"), **_tiles(Kind.EACH, Access.READ, "from"),
    **_tiles(Kind.BITS, Access.WRITE, "bits_out"), **_tiles(Kind.BITS, Access.READ, "bits"),
    **_tiles(Kind.INDEX, Access.WRITE, "index_out"), **_tiles(Kind.INDEX, Access.READ, "index", "index0", "index1"),
    **_tiles(Kind.FREE, Access.WRITE, "out"), **_tiles(Kind.FREE, Access.READ, "in"), **_tiles(Kind.FREE, Access.BOTH, "acc", "tmp"),
    **_tiles(Kind.SCALAR, Access.READ, "number", "row", "col"), **_tiles(Kind.WORD, Access.READ, "word"),
}
