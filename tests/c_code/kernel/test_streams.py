"""Stores past the caches: the same numbers wherever the output starts, whatever its width, and nothing beside it is touched."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out

from .test_emit import Build, check, trace

F32 = DType.F32


@pytest.mark.sampled(4)
@pytest.mark.parametrize("portable", [False, True], ids=["native", "portable"])
@pytest.mark.parametrize("dtype, cols", [(DType.F32, 256), (DType.F32, 700), (DType.F64, 300), (DType.I8, 1500), (DType.BF16, 512)])
def test_streamed_rows_are_what_plain_rows_are(build: Build, dtype: DType, cols: int, portable: bool) -> None:
    def twice(x: In[Tile[3, cols, dtype]], y: Out[Tile[3, cols, dtype]]) -> None:
        pto.store(y, x + x)

    built = build(trace(twice), portable=portable, streamed=["y"])
    assert "pto_stream(" in built.code.text and "pto_stream_end();" in built.code.text
    x = np.random.default_rng(0).integers(-60, 60, (3, cols)).astype(dtype.np)
    for start in (0, 1, 7, 33):                            # elements behind a cache line
        memory = np.zeros(3 * (cols + 5) + 200, dtype.np)
        line = -memory.__array_interface__["data"][0] % 64 // dtype.nbytes
        y = memory[line + start:][:3 * (cols + 5)].reshape(3, cols + 5)[:, :cols]
        check(built, {"x": x, "y": y})
        assert np.count_nonzero(memory) == np.count_nonzero(y)


@pytest.mark.parametrize("rows, cols", [(2, 700), (3, 256), (1, 3), (0, 0)])
def test_a_short_tile_is_streamed_to_scratch_first(build: Build, rows: int, cols: int) -> None:
    def twice(x: In[Tile[3, 700, F32]], y: Out[Tile[3, 700, F32]]) -> None:
        pto.store(y, x + x)

    x = np.random.default_rng(0).standard_normal((rows, cols)).astype(np.float32)
    check(build(trace(twice), streamed=["y"]), {"x": x, "y": np.zeros((rows, cols), np.float32)})


def test_two_outputs_and_a_sum_share_a_loop(build: Build) -> None:
    def split(x: In[Tile[2, 600, DType.I32]], y: Out[Tile[2, 600, DType.I32]], z: Out[Tile[2, 600, DType.I8]],
              total: Out[Tile[2, 1, DType.I32]]) -> None:
        pto.store(y, x * 3)
        pto.store(z, pto.cast(x, DType.I8))
        pto.store(total, pto.rowsum(x))

    built = build(trace(split), streamed=["y", "z", "total"])
    assert built.code.text.count("pto_stream(") == 1       # z has rows of 600 bytes, too short
    x = np.random.default_rng(0).integers(-100, 100, (2, 600), np.int32)
    check(built, {"x": x, "y": np.zeros_like(x), "z": np.zeros((2, 600), np.int8), "total": np.zeros((2, 1), np.int32)})
