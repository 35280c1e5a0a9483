"""The instruction table: complete for the op table, well formed, and what it says of single rows by hand."""

from __future__ import annotations

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import InternalError
from pto_wsp.ir.dtype import DType
from pto_wsp.npu.isa.instructions import FAMILIES, ROWS, Kind, find_instruction, legal
from pto_wsp.npu.isa.rules import conversions, converts
from pto_wsp.npu.isa.tile_program import Access
from pto_wsp.ops.table import ENTRIES

INSTRUCTIONS = tuple(find_instruction(row.name) for row in ROWS)


@pytest.mark.parametrize("name", sorted({entry.npu for entry in ENTRIES if entry.npu}))
def test_every_instruction_that_the_op_table_names_is_there(name: str) -> None:
    assert find_instruction(name).name == name


def test_names_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_operands_that_are_written_come_first() -> None:
    for one in INSTRUCTIONS:
        for form in one.forms:
            written = [place for place, operand in enumerate(form) if operand.kind.is_tile and operand.access.writes and
                       operand.name != "tmp"]
            assert written == list(range(len(written))), one.name
            assert written or one.name == "TSTORE"


def test_forms_of_an_instruction_differ_in_length_or_in_what_a_word_and_a_tile_are() -> None:
    for one in INSTRUCTIONS:
        kinds = [tuple(operand.kind.is_tile for operand in form) for form in one.forms]
        assert len(set(kinds)) == len(kinds), one.name


def test_rows_that_state_nothing_for_a_family_say_what_is_assumed_or_are_legal_nowhere() -> None:
    assert not any(legal("TADDC", dtype, family) for dtype in DType for family in FAMILIES)
    assert legal("TEXP", DType.F32, "a5") and find_instruction("TEXP").note


@pytest.mark.parametrize(("name", "dtype", "a2a3", "a5"), [
    ("TADD", DType.F32, True, True), ("TADD", DType.BF16, False, True), ("TADD", DType.U8, False, True),
    ("TAND", DType.I16, True, True), ("TAND", DType.I32, False, False), ("TCOLSUM", DType.F32, True, True),
    ("TCOLSUM", DType.I32, False, False), ("TROWEXPANDADD", DType.BF16, False, False), ("TDIV", DType.I32, False, True),
    ("TSORT32", DType.F32, True, True), ("TSORT32", DType.U32, False, False),
    ("TABS", DType.I32, False, True), ("TMATMUL", DType.I8, True, True), ("TCOLMAX", DType.I32, False, False),
])
def test_dtypes_by_family(name: str, dtype: DType, a2a3: bool, a5: bool) -> None:
    assert (legal(name, dtype, "a2a3"), legal(name, dtype, "a5")) == (a2a3, a5)


def test_accesses_of_some_operands() -> None:
    select = find_instruction("TSEL").form(5)
    assert select is not None
    assert [(operand.kind, operand.access) for operand in select] == [
        (Kind.DATA, Access.WRITE), (Kind.BITS, Access.READ), (Kind.DATA, Access.READ), (Kind.DATA, Access.READ), (Kind.FREE, Access.BOTH)]
    assert find_instruction("TADD").form(2) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_conversions_are_of_dtypes_that_tcvt_takes(family: str) -> None:
    takes = set(find_instruction("TCVT").dtypes(family))
    assert {dtype for pair in conversions(family) for dtype in pair} == takes


@pytest.mark.parametrize(("source", "target", "a2a3", "a5"), [
    (DType.F32, DType.BF16, True, True), (DType.I8, DType.I32, False, True), (DType.I32, DType.F16, True, False),
    (DType.BF16, DType.F16, False, True), (DType.F16, DType.BF16, False, False), (DType.I32, DType.I8, False, False)])
def test_conversions_by_family(source: DType, target: DType, a2a3: bool, a5: bool) -> None:
    assert (converts(source, target, "a2a3"), converts(source, target, "a5")) == (a2a3, a5)


def test_families_of_archs() -> None:
    assert [builtin_arch(name).family for name in ("unit", "ascend_910b", "ascend_950")] == ["", "a2a3", "a5"]


def test_an_unknown_name_is_our_mistake() -> None:
    with pytest.raises(InternalError, match="TNOSUCH"):
        find_instruction("TNOSUCH")
