"""C++ of kernels: goldens that read like the ones written by hand, and names that hide nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import InternalError
from pto_wsp.npu.emit.kernel_cpp import cpp_ident, emit_kernel_cpp
from pto_wsp.npu.isa.tile_program import Form, ParamAccess, TileProgram
from pto_wsp.npu.tiles.plan_memory import plan_memory
from tests.conftest import Golden
from tests.npu.emit.programs import doubled_blocks, product, rms_rows

PROGRAMS = {"rms_rows": rms_rows(), "doubled_blocks": doubled_blocks(), "product": product(False), "product_turned": product(True)}


def text(program: TileProgram) -> str:
    """The C++ of a program that has addresses and no flags yet."""
    emitted = emit_kernel_cpp(plan_memory(program, builtin_arch("ascend_910b")))
    return "\n".join((*emitted.plan, *emitted.body)) + "\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_reads_like_one_written_by_hand(name: str, golden: Golden) -> None:
    golden(text(PROGRAMS[name]), suffix=".cpp")


def test_a_program_without_addresses_is_refused() -> None:
    with pytest.raises(InternalError, match="has no address"):
        emit_kernel_cpp(rms_rows())


def test_rows_that_do_not_lie_side_by_side_are_no_tile_of_rows() -> None:
    program = replace(rms_rows(), access=(ParamAccess(2, 1, cols=128, unit_cols=False, unit_rows=True), ParamAccess(1, 2, cols=128)))
    with pytest.raises(InternalError, match="lies across its rows"):
        text(program)


def test_a_turned_operand_goes_by_columns_into_a_tile_of_its_own_form() -> None:
    turned, plain = text(product(True)), text(product(False))
    assert "Shape<1, 1, 1, 128, 64>, Stride<1, 1, 1, 1, -1>, Layout::DN" in turned and "Layout::DN" not in plain
    assert product(True).tile(1).form is Form.ZN and "BLayout::RowMajor, 128, 64, SLayout::ColMajor, 512" in turned


@pytest.mark.parametrize(("wanted", "given"), [("x", "x"), ("K", "K"), ("new", "user_new"), ("TADD", "user_TADD"), ("half", "user_half"),
                                               ("kUbX", "user_kUbX"), ("VecF32_1x8", "user_VecF32_1x8"), ("int", "int_"),
                                               ("2nd", "user_2nd"), ("g_x", "user_g_x"), ("__x", "user_x")])
def test_names_of_the_headers_are_not_given_to_users(wanted: str, given: str) -> None:
    assert cpp_ident(wanted) == given
