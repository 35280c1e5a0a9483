"""The emulated core as a library, and kernels run on it without a package: one block of one task at a time.

>>> kernel = load_kernel(Path("tests/npu/packages/rmsnorm/kernels/aiv/rmsnorm_tile.cpp"), "a2a3")
>>> kernel.run([Given(x), Given(gamma), Given(out, writable=True)], [f32_bits(1e-6)])
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tests.npu.compiled import INCLUDE, KERNEL, SHARED, WARNINGS, RunFault, compiled, text_of

CORE = Path(__file__).resolve().parent / "core"
_DTYPES: tuple[object, ...] = (   # in the order of DataType in tensor.h
    np.float32, np.float16, np.int32, np.int16, np.int8, np.uint8, ml_dtypes.bfloat16, np.int64, np.uint64, np.uint16, np.uint32, np.bool_)

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Given:
    """A tensor argument of a task: the elements of an array, which may be a strided view."""

    array: Array
    writable: bool = False

    def described(self) -> list[int]:
        """Return the descriptor as the sixteen numbers that the core takes."""
        array = self.array
        strides = [step // array.itemsize for step in array.strides]
        pad = [0] * (5 - array.ndim)
        dtype = [np.dtype(dtype) for dtype in _DTYPES].index(array.dtype)   # type: ignore[call-overload]
        return [array.ctypes.data, array.nbytes, 0, array.ndim, dtype, int(self.writable), *array.shape, *pad, *strides, *pad]


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel that is ready to run."""

    entry: int
    cube: bool

    def run(self, tensors: Sequence[Given], scalars: Sequence[int] = (), block: int = 0, n_blocks: int = 1) -> None:
        """Run one block. Scalars are 64-bit slots.

        Raises: RunFault with the core's words.
        """
        described = [number for tensor in tensors for number in tensor.described()]
        error = _call()(self.entry, int(self.cube), len(tensors), (ctypes.c_uint64 * len(described))(*described), len(scalars),
                        (ctypes.c_int64 * len(scalars))(*scalars), block, n_blocks)
        if error is not None:
            raise RunFault(error.decode())


def f32_bits(value: float) -> int:
    """Return a float as a scalar slot."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits


@cache
def core() -> Path:
    """Return the emulated core as a shared library."""
    headers = sorted(CORE.rglob("*.h")) + sorted((INCLUDE / "pto").iterdir()) + [INCLUDE / "host_task.h", INCLUDE / "tensor.h"]
    flags = (*WARNINGS, *SHARED, "-O1", "-ffp-contract=off", "-DPTO_HOST_FAMILY_A5=1", f"-I{CORE}", f"-I{INCLUDE}")
    return compiled(tuple(sorted(CORE.rglob("*.cpp"))), flags, text_of(*headers))


def load_kernel(source: Path, family: str, *, cube: bool = False, entry: str = "kernel_entry") -> LoadedKernel:
    """Compile a kernel and load it. Several may stand in one file, each with an entry of its own.

    Raises: RunFault with the compiler's words.
    """
    flags = (*WARNINGS, *SHARED, "-O0", f"-DPTO_HOST_FAMILY_A5={int(family == 'a5')}", f"-I{INCLUDE}")
    path = compiled((source, core()), flags, text_of(*sorted((INCLUDE / "pto").iterdir()), *sorted(INCLUDE.glob("*.h"))), KERNEL)
    found = ctypes.cast(getattr(ctypes.CDLL(str(path)), entry), ctypes.c_void_p).value
    assert found is not None
    return LoadedKernel(found, cube)


@cache
def _call() -> ctypes._CFuncPtr:   # type: ignore[name-defined]
    function = ctypes.CDLL(str(core())).pto_emulator_call
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int,
                         ctypes.c_int]
    return function
