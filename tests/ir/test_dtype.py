"""Dtypes: what NumPy calls them, how large they are, and what has no member."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from pto_wsp.errors import DTypeNameError
from pto_wsp.ir.dtype import DType

NUMPY = {
    DType.F64: np.float64, DType.F32: np.float32, DType.F16: np.float16, DType.BF16: ml_dtypes.bfloat16, DType.I8: np.int8,
    DType.I16: np.int16, DType.I32: np.int32, DType.I64: np.int64, DType.U8: np.uint8, DType.U16: np.uint16,
    DType.U32: np.uint32, DType.U64: np.uint64, DType.BOOL: np.bool_, DType.FP8E4M3: ml_dtypes.float8_e4m3fn,
    DType.FP8E5M2: ml_dtypes.float8_e5m2,
}


def test_every_member_is_listed_here() -> None:
    assert set(NUMPY) == set(DType)


@pytest.mark.parametrize("member", DType)
def test_np_is_numpys_own_dtype(member: DType) -> None:
    assert member.np == np.dtype(NUMPY[member])


@pytest.mark.parametrize("member", DType)
def test_nbytes_is_numpys_itemsize(member: DType) -> None:
    assert member.nbytes == np.dtype(NUMPY[member]).itemsize


@pytest.mark.parametrize("member", DType)
def test_from_numpy_gives_the_member_back(member: DType) -> None:
    assert DType.from_numpy(NUMPY[member]) is member
    assert DType.from_numpy(np.zeros(1, NUMPY[member]).dtype) is member


def test_computing_dtypes_are_floats_and_integers() -> None:
    assert [member.name for member in DType if member.is_float] == ["F64", "F32", "F16", "BF16"]
    assert [member for member in DType if member.is_integer] == [m for m in DType if NUMPY[m] in np.sctypeDict.values()
                                                                and np.dtype(NUMPY[m]).kind in "iu"]


@pytest.mark.parametrize("name", ["complex64", "U8", "M8[ns]", [("a", "i4")], object, "no such dtype"])
def test_other_dtypes_have_no_member(name: object) -> None:
    with pytest.raises(DTypeNameError) as caught:
        DType.from_numpy(name)  # type: ignore[arg-type]
    assert caught.value.code == "D102"
    assert "bf16" in str(caught.value.expected)


@pytest.mark.parametrize("name, native", [(">f4", "float32"), (">i8", "int64")])
def test_the_other_byte_order_has_no_member_and_says_so(name: str, native: str) -> None:
    with pytest.raises(DTypeNameError, match="byte order") as caught:
        DType.from_numpy(name)
    assert caught.value.code == "D102" and native in str(caught.value.help)


@pytest.mark.parametrize("member", DType)
def test_repr_evaluates_to_the_member(member: DType) -> None:
    assert eval(repr(member), {"DType": DType}) is member


@pytest.mark.parametrize("member", DType)
def test_a_dtype_is_known_by_its_names(member: DType) -> None:
    torch = type("dtype", (), {"__module__": "torch", "__repr__": lambda self: f"torch.{member.np.name}"})
    jax = type("ScalarMeta", (), {"dtype": member.np, "__call__": lambda self: None})
    for name in (member, str(member), member.np.name, f"torch.{member.np.name}", member.np, member.np.type, torch(), jax()):
        assert DType.of(name) is member, name


@pytest.mark.parametrize("value", [float, int, None, "", "f31", ">f4", np.dtype(">f4"), np.complex64, object, 32, np.zeros(3),
                                   [("a", "i4")]])
def test_what_names_no_dtype_is_none(value: object) -> None:
    assert DType.of(value) is None


@pytest.mark.parametrize("member", DType)
def test_equal_is_what_names_the_member(member: DType) -> None:
    same = (member, member.value, member.np, member.np.name, f"torch.{member.np.name}", member.np.type)
    assert all(member == other for other in same) and not any(member != other for other in same)
    others = {other for other in DType if other is not member} | {"", "float", None, float, int, 4, object()}
    assert not any(member == other for other in others)
    assert len({*DType, member}) == len(DType) and {member: 1}[DType(member.value)] == 1
