"""Selection for vector cores: the programs of small kernels, read line by line in the goldens."""

from __future__ import annotations

import pytest

from pto_wsp import DType, In, Kernel, Out, Scalar, Tensor, Tile, kernel, pto
from pto_wsp.errors import NpuOpError
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.isa.tile_program_text import print_program
from tests.conftest import Golden
from tests.npu.select.kernels import ragged, selected, whole

F32, BF16, I32, F64 = DType.F32, DType.BF16, DType.I32, DType.F64


@kernel
def rmsnorm(x: In[Tile[16, 128, F32]], gamma: In[Tile[1, 128, F32]], out: Out[Tile[16, 128, F32]], eps: Scalar[F32]) -> None:
    stat = pto.rowmean(x * x)
    pto.store(out, x * pto.rsqrt(stat + eps) * gamma)


@kernel
def running(x: In[Tensor], out: Out[Tile[1, 64, F32]], n: Scalar[I32]) -> None:
    acc = pto.alloc((1, 64), F32, init=0)
    for j in pto.range(n):
        acc += pto.load(x, (j, 0), shape=(1, 64))
    pto.store(out, acc)


@kernel
def relu_rows(x: In[Tile[16, 128, F32]], out: Out[Tile[16, 128, F32]], scale: Scalar[F32]) -> None:
    pto.store(out, pto.relu(x) * scale)


@kernel
def double(x: In[Tile[5, 7, F32]], out: Out[Tile[5, 7, F32]]) -> None:
    pto.store(out, x * 2)


@kernel
def centred(x: In[Tile[5, 7, BF16]], out: Out[Tile[5, 7, BF16]]) -> None:
    pto.store(out, x - pto.rowmax(x))


@kernel
def wide(x: In[Tile[4, 4, F64]], out: Out[Tile[4, 4, F64]]) -> None:
    pto.store(out, x * x)


@kernel
def copied(x: In[Tile[4, 4, F64]], out: Out[Tile[4, 4, F64]]) -> None:
    pto.store(out, x)


@kernel
def printing(x: In[Tile[4, 4, F32]], out: Out[Tile[4, 4, F32]]) -> None:
    pto.print(x)
    pto.store(out, x)


def test_rows_normalised(golden: Golden) -> None:
    golden(print_program(selected(rmsnorm)))


def test_sum_over_a_loop_is_made_in_its_buffer(golden: Golden) -> None:
    golden(print_program(selected(running, {"x": ParamAccess(0, 1, cols=64)}, x=F32)))


def test_rows_known_at_run_time(golden: Golden) -> None:
    rows = ragged(whole(16, 128))
    golden(print_program(selected(relu_rows, {"x": rows, "out": rows})))


def test_transposed_parameters_turn_on_chip(golden: Golden) -> None:
    turned = ParamAccess(1, 0, rows=5, cols=7, unit_cols=False, unit_rows=True)
    golden(print_program(selected(double, {"x": turned, "out": turned})))


def test_strided_columns_move_element_by_element(golden: Golden) -> None:
    strided = ParamAccess(0, 1, col_step=2, rows=5, cols=7, unit_cols=False)
    golden(print_program(selected(double, {"x": strided, "out": strided})))


def test_bf16_is_computed_in_f32_and_rounded_once(golden: Golden) -> None:
    golden(print_program(selected(centred)))


@pytest.mark.parametrize("k", [wide, copied])
def test_a_dtype_that_the_arch_lacks_is_refused_at_the_line(k: Kernel) -> None:
    with pytest.raises(NpuOpError, match=r"ascend_910b does not run .* on f64") as caught:
        selected(k)
    assert caught.value.span is not None and "test_vector.py" in str(caught.value.span)


def test_printing_is_refused() -> None:
    with pytest.raises(NpuOpError, match="a vector core has nowhere to print to"):
        selected(printing)
