"""Arrays of PyTorch and JAX in jit functions: every dtype in and out, in memory as it is, and JAX arrays, which are never written."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto_wsp import DType, InOut, PtoError, Tensor, jit

DTYPES = [DType.F32, DType.F64, DType.F16, DType.BF16, DType.FP8E4M3, DType.FP8E5M2, DType.I8, DType.I16, DType.I32, DType.I64, DType.U8]
_TORCH = {DType.F32: "float32", DType.F64: "float64", DType.F16: "float16", DType.BF16: "bfloat16", DType.FP8E4M3: "float8_e4m3fn",
          DType.FP8E5M2: "float8_e5m2", DType.I8: "int8", DType.I16: "int16", DType.I32: "int32", DType.I64: "int64", DType.U8: "uint8"}


def copied(dtype: DType) -> Any:
    @jit(target="interp")
    def f(x: Tensor["t", 6, dtype], state: InOut[Tensor["t", 6, dtype]]):       # type: ignore[valid-type]
        state[:] = x
        return x[:, ::-1]
    return f


def read_only(dtype: DType) -> Any:
    @jit(target="interp")
    def f(x: Tensor["t", 6, dtype]):       # type: ignore[valid-type]
        return x[:, ::-1]
    return f


def numbers(dtype: DType) -> np.ndarray:
    return (np.arange(12) - (0 if dtype is DType.U8 else 3)).astype(np.float32).reshape(2, 6).astype(dtype.np)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_torch_of_every_dtype_go_in_and_come_out(dtype: DType) -> None:
    torch = pytest.importorskip("torch")
    kind = getattr(torch, _TORCH[dtype])
    x = torch.from_numpy(numbers(dtype).astype(np.float32)).to(kind)
    state = torch.zeros((2, 6)).to(kind)
    found = copied(dtype)(x, state)
    assert found.dtype is kind and torch.equal(found.float(), x.float().flip(1)) and torch.equal(state.float(), x.float())


def test_masks_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[True, False, True, True, False, False]])
    assert torch.equal(read_only(DType.BOOL)(x), x.flip(1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays_of_jax_of_every_dtype_go_in_and_come_out(dtype: DType) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        x = jax.numpy.asarray(numbers(dtype))
        found = read_only(dtype)(x)
        assert isinstance(found, jax.Array) and found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found).astype(np.float64), np.asarray(x)[:, ::-1].astype(np.float64))


def test_arrays_of_jax_are_never_written() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones((2, 6), np.float32)
    f = copied(DType.F32)
    for call in (lambda: f(np.ones((2, 6), np.float32), x), lambda: read_only(DType.F32)(np.ones((2, 6), np.float32), out=x)):
        with pytest.raises(PtoError) as caught:
            call()
        assert "read-only" in str(caught.value) or "JAX" in str(caught.value)
    np.testing.assert_array_equal(x, 1)


def test_an_array_of_jax_is_read_where_it_lies_and_may_be_kept() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(12, dtype=np.float32).reshape(2, 6)
    found = read_only(DType.F32)(x)
    again = read_only(DType.F32)(np.zeros((2, 6), np.float32))
    np.testing.assert_array_equal(found, np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::-1])
    assert isinstance(again, np.ndarray) and float((found * 2)[0, 0]) == 10.0


def test_results_are_of_the_kind_of_the_first_array_whatever_the_others_are() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")

    @jit(target="interp")
    def f(x: Tensor["t", 6, DType.F32], y: Tensor["t", 6, DType.F32]):
        return x + y, x * 2.0

    a, b, c = np.ones((2, 6), np.float32), torch.ones(2, 6), jax.numpy.ones((2, 6), np.float32)
    assert isinstance(f(a, b)[0], np.ndarray) and isinstance(f(b, c)[1], torch.Tensor) and isinstance(f(c, a)[0], jax.Array)
    out = torch.zeros(2, 6)
    f(c, a, out=(out, np.zeros((2, 6), np.float32)))
    assert torch.equal(out, torch.full((2, 6), 2.0))


def test_halves_of_jax_and_numpy_are_the_same_dtype() -> None:
    jax = pytest.importorskip("jax")
    assert read_only(DType.BF16)(jax.numpy.ones((2, 6), ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


def test_an_array_under_a_trace_of_jax_is_refused() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(PtoError) as caught:
        jax.jit(read_only(DType.F32))(jax.numpy.ones((2, 6), np.float32))
    assert caught.value.code == "J101" and "jax.pure_callback" in str(caught.value)
