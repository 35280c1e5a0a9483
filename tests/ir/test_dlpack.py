"""Arrays of other libraries through DLPack: of a dtype that NumPy lacks as well, without a copy, whatever capsule they offer."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest

from pto_wsp import DType, P, PtoError, Scalar, Tensor, kernel, pto, workload
from pto_wsp.ir.tensor import tensor_in_capsule
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import InOut


class Foreign:
    """An array of another library, of a dtype that NumPy does not know: a capsule says `code` and `bits` for its elements."""

    def __init__(self, bits: np.ndarray, code: int, versioned: bool = True) -> None:  # type: ignore[type-arg]
        self.held, self.code, self.versioned = bits, code, versioned
        self.offered = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: object) -> object:
        self.offered += 1
        if not self.versioned and options:
            raise TypeError("__dlpack__ takes no options")     # as libraries of before 2023 say
        capsule = self.held.__dlpack__(**options)  # type: ignore[arg-type]
        tensor = tensor_in_capsule(capsule)
        assert tensor is not None
        tensor.dtype.code = self.code
        return capsule


# bf16 1, -2, 0.5, 3; fp8e4m3 1, -2, 0.5, 3; fp8e5m2 the same: by hand from the formats
CASES = [(DType.BF16, 4, np.uint16, [0x3F80, 0xC000, 0x3F00, 0x4040]), (DType.FP8E4M3, 10, np.uint8, [0x38, 0xC0, 0x30, 0x44]),
         (DType.FP8E5M2, 12, np.uint8, [0x3C, 0xC0, 0x38, 0x42])]


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("dtype, code, kind, bits", CASES, ids=[str(case[0]) for case in CASES])
def test_a_dtype_that_numpy_lacks_comes_in_without_a_copy(dtype: DType, code: int, kind: type, bits: list[int], versioned: bool) -> None:
    held = np.array(bits * 2, kind).reshape(2, 4)
    foreign = Foreign(held, code, versioned)
    tensor = Tensor.from_dlpack(foreign, name="W")
    assert tensor.dtype is dtype and tensor.shape == (2, 4) and tensor.name == "W" and tensor.data is not None
    assert tensor.data.astype(np.float32).tolist() == [[1.0, -2.0, 0.5, 3.0]] * 2
    held[1, 2] = bits[1]
    assert float(tensor.data[1, 2]) == -2.0


def test_the_array_lives_as_long_as_its_tensor() -> None:
    class Held(np.ndarray):  # type: ignore[type-arg]
        pass

    held = np.zeros((2, 2), np.uint16).view(Held)
    gone = weakref.ref(held)
    tensor = Tensor.from_dlpack(Foreign(held, 4))
    del held
    gc.collect()
    assert gone() is not None or tensor.data is not None
    assert tensor.data is not None and float(tensor.data[0, 0]) == 0.0


def test_what_numpy_knows_comes_in_as_before() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = Tensor.from_dlpack(array)
    assert tensor.dtype is DType.F32 and tensor.data is not None and np.shares_memory(tensor.data, array)


@pytest.mark.parametrize("code, kind", [(2, np.uint8), (7, np.uint8), (4, np.uint8), (5, np.uint16)])
def test_a_dtype_that_nobody_has_is_refused(code: int, kind: type) -> None:
    with pytest.raises(PtoError) as caught:
        Tensor.from_dlpack(Foreign(np.zeros((2, 2), kind), code))
    assert caught.value.code == "D101"


@pytest.mark.parametrize("value, found", [([1, 2], "list"), (None, "nothing"), (ctypes.c_int(3), "ctypes.c_int")])
def test_what_offers_no_memory_is_named(value: object, found: str) -> None:
    with pytest.raises(PtoError) as caught:
        Tensor.from_dlpack(value)
    assert caught.value.code == "D101" and caught.value.found == found


def test_an_array_of_another_library_is_told_how_to_come_in() -> None:
    Y = Tensor(np.zeros((2, 4), np.int64), name="Y")

    @kernel
    def add(n: Scalar[DType.I64], y: InOut[Tile[1, 4, DType.I64]]) -> None:
        pto.store(y, y + n)

    @workload
    def w() -> None:
        for b in P(2):
            add(b, Y[b])
    program = w().compile(target="interp")
    for value, help in ((Foreign(np.zeros((2, 4), np.uint16), 4), "Y=Tensor.from_dlpack(x)"), ([[1, 2]], "Y=np.asarray(x)"), (3, None)):
        with pytest.raises(PtoError) as caught:
            program.run(Y=value)
        assert caught.value.code == "R113" and (caught.value.help or "None").endswith(str(help))
    assert caught.value.found == "int"


def test_a_masked_array_is_no_tensor() -> None:
    with pytest.raises(PtoError, match="has no mask") as caught:
        Tensor(np.ma.masked_array(np.zeros(4), [0, 1, 0, 0]))
    assert caught.value.code == "D101" and "filled" in str(caught.value.help)
