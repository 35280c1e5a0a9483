"""What this machine can do, measured in the run that quotes it: multiplications of f32 and of bytes, moving arrays of a work's size."""

from __future__ import annotations

import math
import subprocess
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from tests.benchmarks.works.work import Bound, Work, output

_FMA_ROUNDS, _INT8_ROUNDS, _REPEATS = 500_000, 500_000, 5
_WORKS = {Bound.COPY: (0, 1), Bound.TRIAD: (2, 3)}   # through the cache, around it: the faster one is the limit
_INT8 = 4


@lru_cache(maxsize=1)
def _library() -> Any:
    folder = Path(tempfile.mkdtemp(prefix="limits-"))
    sources = [str(Path(__file__).with_name(name)) for name in ("fma_peak.c", "machine_limits.c")]
    command = ["cc", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", str(folder / "limits.so"), *sources], check=True)
    ffi = cffi.FFI()
    ffi.cdef("double pto_bench_fma(int64_t rounds, int32_t threads); double pto_bench_int8_operations(void);"
             "double pto_bench_limit(int32_t work, const float *x, const float *y, float *out, int64_t count, int64_t repeats,"
             "                       int32_t threads);")
    lib = ffi.dlopen(str(folder / "limits.so"))
    for file in folder.iterdir():   # it stays open
        file.unlink()
    folder.rmdir()
    return ffi, lib


def prepare(work: Work, amount: int, threads: int, clock: Callable[[], float]) -> Callable[[], float]:
    """Return a measurement: the least ms in which this machine could do `amount` of what bounds the work."""
    ffi, lib = _library()

    def fma() -> float:
        started = clock()
        operations = float(lib.pto_bench_fma(_FMA_ROUNDS, threads))
        return amount / operations * (clock() - started) * 1e3

    def int8() -> float:
        operations = float(lib.pto_bench_int8_operations()) * _INT8_ROUNDS * threads
        return amount / operations * float(lib.pto_bench_limit(_INT8, ffi.NULL, ffi.NULL, ffi.NULL, _INT8_ROUNDS, 1, threads)) * 1e3

    if work.bound is Bound.FMA:
        return fma
    if work.bound is Bound.INT8:
        return int8
    n_arrays = 2 if work.bound is Bound.COPY else 3
    count = math.ceil(amount / n_arrays / 4 / 16) * 16
    arrays = [output((count,)) for _ in range(n_arrays)]
    for array in arrays:
        array[:] = np.float32(1)
    x, y, out = (ffi.cast("float *", arrays[k].ctypes.data) for k in (0, n_arrays - 2, n_arrays - 1))

    def moves() -> float:
        assert arrays   # keeps them
        return min(float(lib.pto_bench_limit(kind, x, y, out, count, _REPEATS, threads)) for kind in _WORKS[work.bound]) * 1e3

    return moves
