"""One instruction, or a few, as a kernel: tiles are loaded from arrays, `code` runs, tiles are stored and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tests.npu.emulator import Array, Given, LoadedKernel
from tests.npu.harness import FAMILIES

C_TYPES: dict[np.dtype[np.generic], str] = {
    np.dtype(np.float32): "float", np.dtype(np.float16): "half", np.dtype(ml_dtypes.bfloat16): "bfloat16_t",
    np.dtype(np.int8): "int8_t", np.dtype(np.int16): "int16_t", np.dtype(np.int32): "int32_t", np.dtype(np.int64): "int64_t",
    np.dtype(np.uint8): "uint8_t", np.dtype(np.uint16): "uint16_t", np.dtype(np.uint32): "uint32_t",
}
_ALIGN = 32
_LOADED = "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);"
_STORED = "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);"
_DRAINED = "set_flag(PIPE_MTE3, PIPE_S, EVENT_ID7); wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);"


@dataclass(frozen=True)
class Column:
    """An [R] array as an [R, 1] column-major tile."""

    array: Array


Given2D = Array | Column


@dataclass(frozen=True)
class Case:
    """Inputs and expected outputs by the name of their tile; `more`: further tiles, by name their dtype, valid rows and columns."""

    name: str
    code: str
    inputs: Mapping[str, Given2D]
    outputs: Mapping[str, Given2D]
    more: Mapping[str, tuple[npt.DTypeLike, int, int]] = field(default_factory=dict)
    families: Sequence[str] = FAMILIES
    rtol: float = 0.0

    def source(self) -> str:
        """Return the kernel."""
        tiles = {**self.inputs, **{name: value for name, value in self.outputs.items() if name not in self.inputs}}
        lines, at = [], 0
        for name, value in tiles.items():
            lines.append(_declared(name, value, at))
            at += _bytes(value)
        for name, (dtype, rows, cols) in self.more.items():
            array = np.zeros((rows, cols), np.dtype(dtype))
            lines.append(_declared(name, array, at))
            at += _bytes(array)
        lines += [f"{_global(f'g_{name}', value, slot)} TLOAD({name}, g_{name});" for slot, (name, value) in enumerate(self.inputs.items())]
        stores = [f"{_global(f's_{name}', value, slot)} TSTORE(s_{name}, {name});"
                  for slot, (name, value) in enumerate(self.outputs.items(), len(self.inputs))]
        code = self.code.replace("; ", "; pipe_barrier(PIPE_V); ")
        body = "\n    ".join([*lines, _LOADED, code, _STORED, *stores, _DRAINED])
        return f'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {{\n    using namespace pto;\n    {body}\n}}\n'

    def check(self, kernel: LoadedKernel) -> None:
        """Run the kernel and compare what it stored."""
        found = {name: np.zeros_like(_array(value)) for name, value in self.outputs.items()}
        kernel.run([*(Given(np.ascontiguousarray(_array(value))) for value in self.inputs.values()),
                    *(Given(array, writable=True) for array in found.values())])
        for name, value in self.outputs.items():
            right = _array(value)
            if self.rtol == 0:
                np.testing.assert_array_equal(found[name], right, err_msg=f"{self.name}: {name}")
            else:
                np.testing.assert_allclose(found[name].astype(np.float64), right.astype(np.float64), rtol=self.rtol, atol=self.rtol,
                                           err_msg=f"{self.name}: {name}")


def _array(value: Given2D) -> Array:
    return value.array if isinstance(value, Column) else value


def _padded(count: int, size: int) -> int:
    return -(-count * size // _ALIGN) * _ALIGN // size


def _bytes(value: Given2D) -> int:
    array = _array(value)
    return (1 if isinstance(value, Column) else array.shape[0]) * _padded(array.shape[-1], array.itemsize) * array.itemsize


def _declared(name: str, value: Given2D, at: int) -> str:
    array = _array(value)
    c_type, length = C_TYPES[array.dtype], _padded(array.shape[-1], array.itemsize)
    if isinstance(value, Column):
        tile = f"Tile<TileType::Vec, {c_type}, {length}, 1, BLayout::ColMajor, {array.shape[0]}, 1>"
    else:
        tile = f"Tile<TileType::Vec, {c_type}, {array.shape[0]}, {length}, BLayout::RowMajor, {array.shape[0]}, {array.shape[1]}>"
    return f"{tile} {name}; TASSIGN({name}, {at});"


def _global(name: str, value: Given2D, slot: int) -> str:
    array = _array(value)
    rows, cols = (array.shape[0], 1) if isinstance(value, Column) else array.shape
    steps, layout = (f"1, {rows}", ", Layout::DN") if isinstance(value, Column) else (f"{cols}, 1", "")
    c_type = C_TYPES[array.dtype]
    pointer = f"reinterpret_cast<{c_type} *>(reinterpret_cast<ChipTensor *>(args[{slot}])->buffer.addr)"
    return f"GlobalTensor<{c_type}, Shape<1, 1, 1, {rows}, {cols}>, Stride<1, 1, 1, {steps}>{layout}> {name}({pointer});"
