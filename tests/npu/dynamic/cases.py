"""Workloads whose tasks depend on data, as packages: what golden.py says is also held against the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pto_wsp import DType, In, InOut, Out, Tensor, Tile, Workload, kernel, pto
from tests.npu.graph import Graph
from tests.npu.harness import Outcome, Target, build, check_package, run
from tests.npu.package import Array, load_package

F32 = DType.F32


@kernel
def move(x: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]) -> None:
    """Double a tile."""
    pto.store(y, x * 2)


@kernel
def add(x: In[Tile[8, 16, F32]], y: InOut[Tile[8, 16, F32]]) -> None:
    """Add a tile to another."""
    pto.store(y, y + x)


@kernel
def grow(x: InOut[Tile[8, 16, F32]]) -> None:
    """Add one in place."""
    pto.store(x, x + 1)


@kernel
def mix(a: In[Tile[16, 16, F32]], b: In[Tile[16, 16, F32]], y: Out[Tile[16, 16, F32]]) -> None:
    """A product on one core, a sum on another."""
    pto.store(y, a @ b + 1)


def whole_numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Return small whole numbers, the same each time, on which the kernels above are exact."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


def tensors(names: str, *shape: int) -> tuple[Tensor, ...]:
    """Return a tensor of whole numbers for each letter."""
    return tuple(Tensor(whole_numbers(*shape) + ord(name), name=name) for name in names)


def run_with(root: Path, family: str = "a2a3", **changed: Any) -> tuple[Outcome, dict[str, Array]]:
    """Run a package once, in program order, some of its tensors changed; return the outcome and what it was given."""
    package = load_package(root)
    given, scalars = package.inputs()
    given |= {name: np.asarray(value, given[name].dtype) for name, value in changed.items()}
    built = build(package, Target(family, package.runtime))
    return run(package, built, given, scalars, (("program", 0),))[0], given


def run_package(workload: Workload, family: str = "a2a3", **symbols: int) -> tuple[Graph, dict[str, Array]]:
    """Build a workload's package, run it in several orders, and return its graph and what golden.py gives.

    Raises: AssertionError where golden.py gives something else than `interp` does on the same numbers.
    """
    arch = {"a2a3": "ascend_910b", "a5": "ascend_950"}[family]
    program = workload.compile(target="ascend_npu", arch=arch)
    root = program.artifact_dir
    assert isinstance(root, Path)
    package = load_package(root)
    given, scalars = package.inputs(symbols)
    expected = package.expected(given, scalars, symbols)
    arrays = {name: value.copy() for name, value in given.items()}
    workload.compile(target="interp").run(**arrays, **symbols)
    for name, value in expected.items():
        np.testing.assert_allclose(value, arrays[name], rtol=1e-5, atol=1e-5, err_msg=f"golden.py and interp differ in `{name}`")
    return check_package(root, family, params=symbols or None).graph, expected
