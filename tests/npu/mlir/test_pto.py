"""`.pto` files of many kernels through a parser of the dialect, and mutants of the text that it must not take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest

from pto_wsp import DType, In, Out, Scalar, Tile, kernel, pto
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import DialectError
from pto_wsp.npu.emit.mlir import emit_pto
from tests.conftest import Golden
from tests.npu.harness import A2A3_FAST
from tests.npu.kernels import test_cube, test_families, test_vector
from tests.npu.kernels.batch import ARCHES, Case, program_of, selected_of
from tests.npu.mlir.meaning import check_pto
from tests.npu.select.kernels import ragged, selected, whole

F32, I32 = DType.F32, DType.I32
AT_AN_ADDRESS = "an address that is known only at run time"
IN_PARTS = "it sees a part of"


@kernel
def scaled(x: In[Tile[16, 128, F32]], gamma: In[Tile[1, 128, F32]], out: Out[Tile[16, 128, F32]], eps: Scalar[F32]) -> None:
    pto.store(out, x * (pto.rowsum(x * x) + eps) * gamma)


@kernel
def compared(x: In[Tile[8, 64, F32]], out: Out[Tile[8, 64, F32]], n: Scalar[I32]) -> None:
    with pto.when(n // 3 > 1):
        pto.store(out, pto.where(x < 0, x * 2, x))
    with pto.otherwise():
        pto.store(out, pto.cast(pto.cast(x, I32), F32))


def text_of(case: Case, family: str = "a2a3") -> str:
    """Return the text of a case."""
    return emit_pto(selected_of(case, family), builtin_arch(ARCHES[family]))


def vector_text() -> str:
    """Return the text of a kernel with rows that are known at run time."""
    rows = ragged(whole(16, 128))
    return emit_pto(selected(scaled, {"x": rows, "out": rows}), builtin_arch("ascend_910b"))


def test_row_statistics(golden: Golden) -> None:
    golden(emit_pto(selected(scaled), builtin_arch("ascend_910b")))


def test_branches_masks_and_casts() -> None:
    text = emit_pto(selected(compared), builtin_arch("ascend_910b"))
    check_pto(text)
    assert "} else {" in text
    assert "{cmpMode = #pto<cmp lt>}" in text
    assert "{rmode = #pto<round_mode CAST_" in text


def test_a_ragged_product(golden: Golden) -> None:
    golden(text_of(test_cube.loops()[2]))


def refusals(cases: Iterable[Case], family: str) -> list[str]:
    """Check the text of every case and return why those were refused that were."""
    found: list[str] = []
    for case in cases:
        try:
            text = text_of(case, family)
        except DialectError as refused:
            assert refused.span is not None
            found.append(str(refused))
            continue
        check_pto(text)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_products_have_a_form(family: str) -> None:
    assert refusals([*test_cube.cases(), *test_cube.loops()], family) == []


@pytest.mark.slow
def test_arithmetic_has_a_form() -> None:
    cases = (*test_vector.broadcasts(), *test_vector.functions(), *test_vector.dtypes(), *test_vector.ragged())
    assert refusals(cases, "a2a3") == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("cases", [test_families.curves, test_families.integers, test_families.masks, test_families.casts])
def test_families_have_a_form(cases: Callable[[], list[Case]]) -> None:
    assert refusals(cases(), "a5") == []


def test_what_sees_parts_of_buffers_is_refused() -> None:
    found = refusals(test_families.movements(), "a2a3")
    assert found
    assert all(AT_AN_ADDRESS in reason or IN_PARTS in reason for reason in found)


def test_the_text_is_the_same_twice() -> None:
    assert vector_text() == vector_text()
    assert "/" not in "".join(re.findall(r'loc\("(.*?)"', vector_text()))


@pytest.mark.slow
def test_memory_and_order_are_left_to_the_assembler() -> None:
    for case in (*test_cube.loops(), *test_vector.loops()):
        try:
            text = text_of(case)
        except DialectError:
            continue
        assert emit_pto(program_of(case, "a2a3"), builtin_arch("ascend_910b")) == text


def test_every_operation_has_a_place_in_the_kernel() -> None:
    lines = vector_text().splitlines()
    bare = [line for line in lines if not re.search(r' loc\("test_pto.py":\d+:\d+\)$', line)]
    assert [line for line in bare if not line.rstrip().endswith("{")] == []


MUTANTS = [
    (r"%x_part(?= :)", "%y_part"),                                  # a value that nothing defines
    (r"%c0 = ", "%c7 = "),
    (r"outs\(%x_2 : !pto.tile_buf<loc=vec", "outs(%x_2 : !pto.tile_buf<loc=mat"),
    (r"dtype=f32", "dtype=f64"),                                    # no such element
    (r"dtype=f32", "dtype=f16"),                                    # declared otherwise
    (r"cols=128, v_row", "cols=127, v_row"),
    (r"v_col=128", "v_col=129"),
    (r"valid_row = %x_rows ", ""),
    (r"blayout=row_major", "blayout=rows"),
    (r", pad=0", ""),
    (r"pto\.tmul ", "pto.tmull "),
    (r"pto\.tmul ", "pto.trowsum "),
    (r"pto\.tload ins\((.*?)\) outs\((.*?)\) loc", r"pto.tload ins(\2) outs(\1) loc"),
    (r"offsets = \[%c0, ", "offsets = ["),
    (r"sizes = \[%x_rows", "sizes = [%eps"),
    (r"!pto.partition_tensor_view<\?x128xf32>", "!pto.partition_tensor_view<16x128xf32>"),
    (r" -> ", " : "),
    (r' loc\("test_pto.py":\d+:\d+\)', ""),
    (r'loc\("', 'loc("folder/'),
    (r": index\b", ": i32"),
    (r"arith\.cmpi eq", "arith.cmpi equal"),
    (r"scf\.if %not", "scf.if %c0"),
    (r"    return ", "    pto.return "),
    (r"kernel_kind<vector>", "kernel_kind<cube>"),
    (r"!pto.ptr<f32>", "!pto.ptr<f16>"),
    (r"%out_part = ", "%x_part = "),                                # a name given twice
    (r"\}(?= loc)", ""),
]


@pytest.mark.parametrize(("pattern", "change"), MUTANTS)
def test_the_checker_finds_what_is_wrong(pattern: str, change: str) -> None:
    text = vector_text()
    check_pto(text)
    mutant, count = re.subn(pattern, change, text, count=1)
    assert count == 1, "the mutant changes nothing"
    with pytest.raises(AssertionError):
        check_pto(mutant)


CUBE_MUTANTS = [
    (r"loc=left", "loc=right"),
    (r"pto\.tmatmul ins\((%\w+), (%\w+) : (.*?>), (.*?>)\)", r"pto.tmatmul ins(\2, \1 : \4, \3)"),     # operands exchanged
    (r"pto\.tmatmul\.acc ins\(%product, ", "pto.tmatmul.acc ins("),
    (r"fractal=1024", "fractal=512"),
    (r"slayout=row_major", "slayout=none_box"),
    (r"pto\.tstore ins\(%product", "pto.tstore ins(%left"),
    (r"scf\.for (%\w+) = %c0 to", r"scf.for \1 = to"),
    (r"else", "otherwise"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("pattern", "change"), CUBE_MUTANTS)
def test_the_checker_finds_what_is_wrong_with_products(pattern: str, change: str) -> None:
    text = text_of(test_cube.cases()[16])
    check_pto(text)
    mutant, count = re.subn(pattern, change, text, count=1)
    assert count == 1, "the mutant changes nothing"
    with pytest.raises(AssertionError):
        check_pto(mutant)
