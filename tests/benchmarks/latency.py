"""How long until the first result: `python -m tests.benchmarks.latency [--json FILE]`.

Times of fresh processes, least and median of several: the import, the first result of a kernel never compiled before (cold: the
runtime library is built, the program is not) and of one that is in the cache, and compile() of a program that this process has
compiled before; the first call of a decode layer on whole tensors that is in the cache, from the call to the start of its kernels,
imports apart; `f.plan` of a decode layer, 6 kernels, and of two layers, 11. Beside it, each peer's import and first result of the same
computation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.page import put_between, stamp
from tests.benchmarks.peers.catalogue import PEERS

ROOT = Path(__file__).resolve().parents[2]

FIRST = """
import numpy as np
from pto_wsp import Dense, DType, In, Out, P, Tensor, Tile, kernel, pto, workload

@kernel
def rmsnorm(x: In[Tile[16, 128, DType.F32]], out: Out[Tile[16, 128, DType.F32]]):
    pto.store(out, x * pto.rsqrt(pto.rowmean(x * x) + 1e-6))

x = np.arange(8 * 16 * 128, dtype=np.float32).reshape(8, 16, 128)
y = np.zeros_like(x)
X, Y = Tensor(x), Tensor(y)

@workload
def normalise():
    for t in P(Dense[8]()):
        rmsnorm[t](x=X[t], out=Y[t])

program = normalise().compile().run()
"""
AGAIN = """
import time
compile_ms = []
for _ in range(20):
    started = time.perf_counter()
    normalise().compile()
    compile_ms.append((time.perf_counter() - started) * 1e3)
print(min(compile_ms))
"""
LAYER = """
import sys
sys.path.insert(0, "examples/tensors")
from decode_layer import decode_layer, draw
arrays = draw()
"""
LAYER_MODULES = LAYER + """
decode_layer(**arrays)
print(*(name for name in sys.modules if name.startswith("pto_wsp.") or name in ("cffi", "cffi.api", "_cffi_backend")))
"""
LAYER_CALL = LAYER + """
import gc, importlib, time
for name in MODULES.split():
    importlib.import_module(name)
from pto_wsp.run.native import Engine
run = Engine.run
def begin(*args):
    print((time.perf_counter() - called) * 1e3)
    run(*args)
Engine.run = begin
gc.collect()      # the objects of the imports, else anywhere
called = time.perf_counter()
decode_layer(**arrays)
"""
PLAN = LAYER + """
import time
from decode_layer import DIM, F32, GROUPS, HEAD, I32, Layer
from pto_wsp import Injective, InOut, Tensor, jit

@jit
def two_layers(x: Tensor["b", DIM, F32], w: Layer, w_2: Layer, cos: Tensor["b", HEAD, F32], sin: Tensor["b", HEAD, F32],
               slots: Injective[Tensor["b", I32]], table: Tensor["b", "m", I32], lengths: Tensor["b", I32],
               k_cache: InOut[Tensor["rows", GROUPS, HEAD, F32]], v_cache: InOut[Tensor["rows", GROUPS, HEAD, F32]],
               k_cache_2: InOut[Tensor["rows", GROUPS, HEAD, F32]], v_cache_2: InOut[Tensor["rows", GROUPS, HEAD, F32]]):
    between = decode_layer(x, w, cos, sin, slots, table, lengths, k_cache, v_cache)
    return decode_layer(between, w_2, cos, sin, slots, table, lengths, k_cache_2, v_cache_2)

if N_LAYERS == 2:
    arrays |= {"w_2": arrays["w"], "k_cache_2": arrays["k_cache"].copy(), "v_cache_2": arrays["v_cache"].copy()}
plan_ms = []
for _ in range(8):
    started = time.perf_counter()
    (two_layers if N_LAYERS == 2 else decode_layer).plan(**arrays)
    plan_ms.append((time.perf_counter() - started) * 1e3)
print(min(plan_ms))
"""
CHECK = "\nassert np.allclose(y, x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6), rtol=1e-5)\n"
ARRAYS = "import numpy as np\nx = np.arange(8 * 16 * 128, dtype=np.float32).reshape(8, 16, 128)\n"
PEER_FIRST = {
    "numpy": "y = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)",
    "numba": """import numba
@numba.njit
def rmsnorm(x, y):
    for r in range(x.shape[0]):
        total = np.float32(0)
        for c in range(x.shape[1]):
            total += x[r, c] * x[r, c]
        for c in range(x.shape[1]):
            y[r, c] = x[r, c] / np.sqrt(total / np.float32(x.shape[1]) + np.float32(1e-6))
y = np.empty_like(x)
rmsnorm(x.reshape(-1, 128), y.reshape(-1, 128))""",
    "torch": "import torch\ny = torch.nn.functional.rms_norm(torch.from_numpy(x), (128,), eps=1e-6).numpy()",
    "jax": """import jax, jax.numpy as jnp
y = np.asarray(jax.jit(lambda x: x * jax.lax.rsqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6))(x))""",
}


def run_ms(code: str, environment: Mapping[str, str]) -> tuple[float, str]:
    """Return how long a fresh interpreter takes from start to end, and what it prints."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, text=True, capture_output=True)
    taken = (time.perf_counter() - started) * 1e3
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return taken, done.stdout


def without_first(cache: Path) -> None:
    """Forget the program of `FIRST`, and keep the runtime library."""
    for artifact in (cache / "artifacts").glob("normalise-*"):
        shutil.rmtree(artifact)


def measures(cache: Path) -> dict[str, Callable[[], float]]:
    """Return what is measured, by what it is called."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(ROOT), "PTO_WSP_CACHE_DIR": str(cache)}

    def fresh(code: str) -> float:
        return run_ms(code, environment)[0]

    def inside(code: str) -> float:
        """What the code itself measured."""
        return float(run_ms(code, environment)[1])

    def imported(module: str) -> float:
        return inside(f"import time; started = time.perf_counter(); import {module}; print((time.perf_counter() - started) * 1e3)")

    def cold() -> float:
        without_first(cache)
        return fresh(FIRST)

    def cached() -> float:
        return fresh(FIRST)

    def layer_called() -> float:
        """Return the milliseconds from the first call of the decode layer to the start of its kernels, without imports."""
        if not modules:      # its first process fills the cache, a second knows what a cached call loads
            modules.extend(run_ms(LAYER_MODULES, environment)[1] for _ in range(2))
        return inside(f"MODULES = {modules[-1]!r}\n{LAYER_CALL}")

    modules: list[str] = []
    run_ms(FIRST + CHECK, environment)   # builds the runtime library, writes byte code, and is right
    found: dict[str, Callable[[], float]] = {
        "python starts": lambda: fresh("pass"),
        "import pto_wsp": lambda: imported("pto_wsp"),
        "first result, cold": cold,
        "first result, cached": cached,
        "first call of a decode layer, cached": layer_called,
        "f.plan of a decode layer": lambda: inside(f"N_LAYERS = 1\n{PLAN}"),
        "f.plan of two decode layers": lambda: inside(f"N_LAYERS = 2\n{PLAN}"),
        "compile() from the cache, in process": lambda: inside(FIRST + AGAIN),
    }
    for name, code in PEER_FIRST.items():
        if PEERS[name].installed:
            run_ms(ARRAYS + code + CHECK, environment)
            found[f"import {name}"] = lambda name=name: imported(name)   # type: ignore[misc]
            found[f"first result, {name}"] = lambda code=code: fresh(ARRAYS + code)   # type: ignore[misc]
    return found


def measure(repeats: int, cache: Path) -> list[dict[str, Any]]:
    """Return a row for each measure; they take turns, so that what disturbs the machine disturbs all."""
    found = measures(cache)
    taken: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(repeats):
        for name, one in found.items():
            taken[name].append(one())
    return [{"what": name, "ms": min(times), "median_ms": statistics.median(times)} for name, times in taken.items()]


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows."""
    for row in rows:
        print(f"{row['what']:<38}{row['ms']:>9.1f} ms (median {row['median_ms']:.1f})")


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as a table for documentation."""
    return "\n".join([f"{stamp()}: `python -m tests.benchmarks.latency`", "", "| what | ms | median |", "| --- | --- | --- |",
                      *(f"| {row['what']} | {row['ms']:.1f} | {row['median_ms']:.1f} |" for row in rows)])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how long the first result takes.")
    parser.add_argument("--json", type=Path, help="write the rows there")
    parser.add_argument("--repeats", type=int, default=9, help="processes a measure")
    parser.add_argument("--markdown", action="store_true", help="print a table for documentation")
    parser.add_argument("--page", type=Path, help="put that table between its marks in this page")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats is at least 1")
    with tempfile.TemporaryDirectory(prefix="latency-") as folder:
        rows = measure(options.repeats, Path(folder))
    if options.markdown:
        print(markdown(rows))
    else:
        show(rows)
    if options.page is not None:
        put_between(options.page, "latency", markdown(rows))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
