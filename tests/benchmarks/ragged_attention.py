"""Ragged causal attention beside PyTorch, in one process: `python -m tests.benchmarks.ragged_attention [--json FILE]`.

Each result is checked against NumPy before it is timed. PyTorch runs scaled_dot_product_attention once a request, on as many threads.
The machine's limit is its rate of f32 fused multiply-adds (fma_peak.c) in the same run; causal attention counts half of the products.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import cffi
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 128
CASES = {"example": None, "128…4096": [128, 512, 2048, 4096]}


def load_example() -> ModuleType:
    """Import the example as it stands."""
    path = ROOT / "examples" / "ragged_attention" / "ragged_attention.py"
    spec = importlib.util.spec_from_file_location("ragged_attention", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ragged_attention"] = module
    spec.loader.exec_module(module)
    return module


def best_ms(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the least and the median time of several calls, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e3)
    return min(times), statistics.median(times)


def fma_gflops(threads: int) -> float:
    """Return the machine's rate of f32 fused multiply-adds on so many threads, in 10⁹ operations a second."""
    rounds = 2_000_000
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "fma_peak.so"
        command = ["cc", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread"]
        subprocess.run([*command, "-o", str(library), str(Path(__file__).with_name("fma_peak.c"))], check=True)
        ffi = cffi.FFI()
        ffi.cdef("double pto_bench_fma(int64_t rounds, int32_t threads);")
        lib = ffi.dlopen(str(library))
        least, _ = best_ms(lambda: lib.pto_bench_fma(rounds, threads), 5)
        return float(lib.pto_bench_fma(1, threads)) * rounds / least / 1e6


def torch_call(batch: object, heads: int, threads: int) -> tuple[Callable[[], object], np.ndarray] | None:
    """Return PyTorch's run of the batch and the array that it fills, or None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    torch.set_num_threads(threads)
    q, k, v = (torch.from_numpy(a) for a in (batch.q, batch.k, batch.v))
    out = np.zeros_like(batch.out)
    filled = torch.from_numpy(out)

    def run() -> None:
        for start, length in zip(batch.starts, batch.lens, strict=True):
            mine = slice(int(start), int(start + length))
            filled[:, mine] = scaled_dot_product_attention(q[None, :, mine], k[None, :, mine], v[None, :, mine], is_causal=True)[0]

    with torch.inference_mode():
        run()
    return lambda: torch.inference_mode()(run)(), out


def main() -> int:
    """Measure every case and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    example = load_example()
    heads = 4
    limit_gflops = fma_gflops(options.threads)
    rows = []
    for case, lengths in CASES.items():
        rng = np.random.default_rng(0)
        lens = [min(n, 1024) for n in example.draw_lengths(25, rng)][:13] if lengths is None else lengths
        batch = example.Batch.random(lens, heads, rng)
        program = example.attention_workload(batch, BLOCK).compile(threads=options.threads)
        program.run()
        calls: dict[str, tuple[Callable[[], object], float]] = {"pto_wsp": (program.run, batch.error())}
        peer = torch_call(batch, heads, options.threads)
        if peer is not None:
            ours, batch.out[:] = batch.out.copy(), peer[1]
            calls["torch"] = (peer[0], batch.error())
            batch.out[:] = ours
        flops = sum(2 * 2 * heads * n * (n + 1) // 2 * example.HEAD_DIM for n in lens)
        for name, (call, error) in calls.items():
            if not error < example.TOLERANCE:
                raise SystemExit(f"{name}: wrong result, error {error}")
            least, median = best_ms(call, options.repeats)
            rows.append({"work": f"ragged {case}", "peer": name, "ms": least, "median_ms": median, "error": error,
                         "limit_fraction": flops / least / 1e6 / limit_gflops})
    print(f"limit: {limit_gflops:.0f} GFLOP/s of f32 FMA; {options.threads} threads")
    for row in rows:
        print(f"{row['work']:<20}{row['peer']:<10}{row['ms']:>9.2f} ms (median {row['median_ms']:.2f})"
              f"{row['limit_fraction']:>8.0%} of the limit   max |error| {row['error']:.1e}")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
