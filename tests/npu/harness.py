"""Build a package with the host compiler, run it, and compare it with its golden.py.

>>> outcome = check_package(Path("tests/npu/packages/rmsnorm"), "a5")
>>> outcome.graph.edges("found")
frozenset()
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.npu.compiled import INCLUDE, KERNEL, ORCHESTRATION, SHARED, WARNINGS, RunFault, compiled, text_of
from tests.npu.emulator import core
from tests.npu.graph import Graph, read_graph
from tests.npu.package import RUNTIMES, Array, Direction, Number, Package, PackageFault, Params, load_package
from tests.npu.real_headers import compile_with_real_headers

_FEW = 3     # up to so many kernels, each is a file of its own, as on the device
HERE = Path(__file__).resolve().parent
HOST = HERE / "host"
FAMILIES = ("a2a3", "a5")
# What is alike on both families is built for one of them in the fast tests, and for the other in the slow ones.
A2A3_FAST = ("a2a3", pytest.param("a5", marks=pytest.mark.slow))
A5_FAST = (pytest.param("a2a3", marks=pytest.mark.slow), "a5")
ORDERS = (("program", 0), ("reversed", 0), ("shuffled", 1), ("shuffled", 2))

DTYPES: dict[np.dtype[np.generic], str] = {
    np.dtype(np.float32): "FLOAT32", np.dtype(np.float16): "FLOAT16", np.dtype(ml_dtypes.bfloat16): "BFLOAT16",
    np.dtype(np.int8): "INT8", np.dtype(np.int16): "INT16", np.dtype(np.int32): "INT32", np.dtype(np.int64): "INT64",
    np.dtype(np.uint8): "UINT8", np.dtype(np.uint16): "UINT16", np.dtype(np.uint32): "UINT32", np.dtype(np.uint64): "UINT64",
    np.dtype(np.bool_): "BOOL",
    np.dtype(ml_dtypes.float8_e4m3fn): "UINT8", np.dtype(ml_dtypes.float8_e5m2): "UINT8",   # no kernel's tile has them
}


@dataclass(frozen=True)
class Target:
    """What a package is built for: an arch family and a runtime."""

    family: str
    runtime: str

    @property
    def defines(self) -> tuple[str, ...]:
        """The compiler's view of it."""
        return (f"-DPTO_HOST_FAMILY_A5={int(self.family == 'a5')}",
                f"-DPTO_HOST_BUILD_GRAPH={int(self.runtime == 'host_build_graph')}")


@dataclass(frozen=True)
class Built:
    """A package as shared objects, and the host that runs them. Kernels are given with the names of their entries."""

    host: Path
    kernels: tuple[tuple[Path, str], ...]
    orchestration: Path


@dataclass(frozen=True)
class Outcome:
    """All tensors after a run, and the task graph."""

    tensors: dict[str, Array]
    graph: Graph


def check_package(root: Path, family: str, runtime: str | None = None, *, params: Params | None = None) -> Outcome:
    """Build a package, run it in several orders, compare every one with golden.py; return the run in program order.

    Raises: AssertionError for what does not compile, for a fault of a run, for another result, for a signature that is not what
    tasks are given, and for tasks in conflict without an order.
    """
    package = load_package(root)
    built = build(package, Target(family, runtime or package.runtime))
    tensors, scalars = package.inputs(params)
    expected = package.expected(tensors, scalars, params)
    outcomes = run(package, built, tensors, scalars)
    for (order, seed), outcome in zip(ORDERS, outcomes, strict=True):
        compare(package, tensors, expected, outcome, f"order {order} {seed}")
    check_graph(package, outcomes[0].graph)
    return outcomes[0]


def build(package: Package, target: Target) -> Built:
    """Compile every file of a package, two at a time; what was compiled before is taken from the cache. Many kernels are one file, which
    takes a third of the time. Kernels are also compiled with the instruction set's own headers, where there are any.

    Raises: RunFault with the compiler's words.
    """
    # --no-as-needed: a kernel without an instruction, which only joins others, is asked for the core's functions too.
    family, _ = target.defines
    ours = sorted(INCLUDE.rglob("*.h*"))
    headers, host_headers = text_of(*ours, *sorted((package.root / "include").rglob("*.h"))), text_of(*ours, *sorted(HOST.glob("*.h")))
    kernel_flags = (*WARNINGS, *SHARED, "-O0", family, f"-I{INCLUDE}", "-Wl,--no-as-needed")
    sources, entries = [kernel.source for kernel in package.kernels], ["kernel_entry"] * len(package.kernels)
    if len(sources) > _FEW and all(source.read_text().count('extern "C"') == 1 for source in sources):      # each its entry alone
        entries = [f"kernel_{number}" for number in range(len(sources))]
        sources = [_together(sources, entries)]
    jobs = [((source, core()), kernel_flags, headers, KERNEL) for source in sources]
    jobs.append(((package.orchestration,), (*WARNINGS, *SHARED, "-O0", *target.defines, f"-I{INCLUDE}"), headers, ORCHESTRATION))
    host_flags = (*WARNINGS, "-O1", *Target("a2a3", RUNTIMES[0]).defines, f"-I{INCLUDE}", "-rdynamic", "-ldl")   # one for all
    jobs.append((tuple(sorted(HOST.glob("*.cpp"))), host_flags, host_headers, ()))
    for kernel in package.kernels:
        compile_with_real_headers(kernel.source, target.family)
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda job: compiled(*job), jobs))
    libraries = paths[:-2] if len(sources) == len(entries) else paths[:1] * len(entries)
    return Built(paths[-1], tuple(zip(libraries, entries, strict=True)), paths[-2])


def _together(sources: Sequence[Path], entries: Sequence[str]) -> Path:
    """Write one file of many kernels, each in a namespace with an entry of its own, and return its path."""
    texts = [source.read_text() for source in sources]
    includes = dict.fromkeys(line for text in texts for line in text.splitlines() if line.startswith("#include"))
    parts = ["#define PTO_WSP_KERNEL", *includes]
    for source, text, entry in zip(sources, texts, entries, strict=True):
        body = re.sub(r"^#include.*$", "", text, flags=re.MULTILINE)
        parts += [f"#define kernel_entry {entry}", f"namespace in_{entry} {{", f'#line 1 "{source.name}"', body, "}", "#undef kernel_entry"]
    path = sources[0].with_name("together.cpp")     # beside the kernels: includes are relative
    path.write_text("\n".join(parts) + "\n")
    return path


def run(package: Package, built: Built, tensors: dict[str, Array], scalars: dict[str, Number],
        orders: Sequence[tuple[str, int]] = ORDERS) -> list[Outcome]:
    """Run a package once for each order. A tensor that the orchestration declares OUT is not copied to the device.

    Raises: RunFault with what went wrong, and in which task.
    """
    data = [value if direction is not Direction.OUT else _poisoned(value)
            for value, direction in zip(tensors.values(), package.signature, strict=True)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").write_bytes(b"".join(value.tobytes() for value in data))
        lines = [f"kernel {kernel.core_type} {path} {entry}" for kernel, (path, entry) in zip(package.kernels, built.kernels, strict=True)]
        lines.append(f"orchestration {built.orchestration} {package.function}")
        lines += [f"tensor {DTYPES[value.dtype]} {' '.join(map(str, value.shape))}" for value in data]
        lines += [f"scalar {_slot(value)}" for value in scalars.values()]
        lines.append(f"data {folder / 'data'}")
        lines += [f"run {order} {seed} {folder / f'out{n}'} {folder / f'graph{n}'}" for n, (order, seed) in enumerate(orders)]
        (folder / "spec").write_text("\n".join(lines) + "\n")
        done = subprocess.run([built.host, folder / "spec"], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RunFault(done.stderr.strip() or f"the run ended with {done.returncode}")
        return [Outcome(_split((folder / f"out{n}").read_bytes(), tensors), read_graph(folder / f"graph{n}"))
                for n in range(len(orders))]


def compare(package: Package, given: dict[str, Array], expected: dict[str, Array], outcome: Outcome, where: str) -> None:
    """Raise AssertionError where an output is not what golden.py says, or where something else changed."""
    for (name, found), direction in zip(outcome.tensors.items(), package.signature, strict=True):
        if name in expected:
            true = expected[name]
            rtol, atol = (package.rtol, package.atol) if true.dtype.kind not in "iub" else (0, 0)
            np.testing.assert_allclose(found.astype(np.float64), true.astype(np.float64), rtol=rtol, atol=atol,
                                       err_msg=f"output `{name}`, {where}")
        elif direction is Direction.IN and found.tobytes() != given[name].tobytes():
            raise RunFault(f"input `{name}` was changed, {where}")
    if unwritten := [name for (name, direction) in zip(given, package.signature, strict=True)
                     if direction is Direction.IN and name in expected]:
        raise PackageFault(f"output `{unwritten[0]}` is declared IN")


def check_graph(package: Package, graph: Graph) -> None:
    """Raise AssertionError for tasks that are given something else than their kernels declare, or that conflict without an order."""
    for number, task in enumerate(graph.tasks):
        found = tuple(argument.direction for argument in task.arguments)
        for func_id in task.kernels:
            kernel = package.kernels[func_id]
            if not _fits(kernel.signature, found):
                raise PackageFault(f"task {number}: kernel `{kernel.name}` declares {_spell(kernel.signature)}, is given {_spell(found)}")
        for argument in task.arguments:
            if argument.writes and argument.buffer < len(package.signature) and package.signature[argument.buffer] is Direction.IN:
                raise PackageFault(f"task {number} writes tensor {argument.buffer}, which the orchestration declares IN")
    for earlier, later, buffer in graph.unordered_conflicts():
        raise RunFault(f"tasks {earlier} and {later} touch the same elements of buffer {buffer}, and nothing orders them")


def _fits(signature: Sequence[Direction], found: Sequence[Direction]) -> bool:
    """Tell whether a kernel may be given tensors so: what it only writes may be INOUT, so that the runtime looks for earlier writers."""
    return len(signature) == len(found) and all(one is other or (one, other) == (Direction.OUT, Direction.INOUT)
                                                for one, other in zip(signature, found, strict=True))


def _spell(signature: Sequence[Direction]) -> str:
    return "[" + ", ".join(direction.name for direction in signature) + "]"


def _poisoned(value: Array) -> Array:
    return np.frombuffer(b"\xff" * value.nbytes, value.dtype).reshape(value.shape) if value.size else value


def _slot(value: Number) -> int:
    """Return a scalar as a 64-bit slot: the bits of a float in its low half, an integer as 64 bits."""
    if isinstance(value, ctypes.c_float):
        bits: int = struct.unpack("<I", struct.pack("<f", value.value))[0]
        return bits
    return int(value.value) & (1 << 64) - 1


def _split(raw: bytes, like: dict[str, Array]) -> dict[str, Array]:
    found, at = {}, 0
    for name, value in like.items():
        found[name] = np.frombuffer(raw[at:at + value.nbytes], value.dtype).reshape(value.shape)
        at += value.nbytes
    return found
