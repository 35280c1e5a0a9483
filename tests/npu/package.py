"""Packages as the runtime's driver reads them: kernel_config.py and golden.py are executed, paths and signatures checked."""

from __future__ import annotations

import ctypes
import runpy
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pto_wsp.npu.isa.runtime import limit

Array: TypeAlias = npt.NDArray[Any]
Number: TypeAlias = ctypes._SimpleCData  # type: ignore[type-arg]
Params: TypeAlias = Mapping[str, object]

RUNTIMES = ("tensormap_and_ringbuffer", "host_build_graph")
MAX_TENSORS = limit("tensors")
MAX_CALLABLES = limit("callables")
FORBIDDEN_KEYS = frozenset({"block_dim", "rounds"})


class Direction(IntEnum):
    """What a tensor is to a kernel, or to the orchestration."""

    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3


class PackageFault(AssertionError):
    """A package is not what a driver of the runtime could read."""


@dataclass(frozen=True)
class KernelEntry:
    """One entry of KERNELS."""

    name: str
    source: Path
    core_type: str
    signature: tuple[Direction, ...]


@dataclass(frozen=True)
class Package:
    """A package directory as its two Python files describe it."""

    root: Path
    runtime: str
    orchestration: Path
    function: str
    signature: tuple[Direction, ...]
    kernels: tuple[KernelEntry, ...]      # by func_id
    generate_inputs: Callable[[Params | None], list[tuple[str, Array | Number]]]
    compute_golden: Callable[[dict[str, Array | Number], Params | None], None]
    outputs: tuple[str, ...]
    rtol: float
    atol: float

    def inputs(self, params: Params | None = None) -> tuple[dict[str, Array], dict[str, Number]]:
        """Return the tensors and, behind them, the scalars that the orchestration is given."""
        tensors: dict[str, Array] = {}
        scalars: dict[str, Number] = {}
        for name, value in self.generate_inputs(params):
            if isinstance(value, np.ndarray):
                if scalars:
                    raise PackageFault(f"golden.py: tensor `{name}` stands behind a scalar")
                if not value.flags.c_contiguous:
                    raise PackageFault(f"golden.py: tensor `{name}` is not contiguous")
                tensors[name] = value
            else:
                scalars[name] = value
        if len(tensors) != len(self.signature):
            raise PackageFault(f"golden.py makes {len(tensors)} tensors, ORCHESTRATION's signature has {len(self.signature)}")
        return tensors, scalars

    def expected(self, tensors: dict[str, Array], scalars: dict[str, Number], params: Params | None = None) -> dict[str, Array]:
        """Return the outputs as golden.py computes them; the tensors given stay as they are."""
        given: dict[str, Array | Number] = {name: value.copy() for name, value in tensors.items()}
        self.compute_golden(given | scalars, params)
        return {name: np.asarray(given[name]) for name in self.outputs}


@contextmanager
def _task_interface(present: bool) -> Iterator[None]:
    """Make `simpler.task_interface` importable with ArgDirection, or see that it is not."""
    names = ("simpler", "simpler.task_interface")
    before = {name: sys.modules.pop(name, None) for name in names}
    if present:
        parent, module = types.ModuleType(names[0]), types.ModuleType(names[1])
        module.ArgDirection = IntEnum("ArgDirection", {d.name: d.value for d in Direction})  # type: ignore[attr-defined]
        parent.task_interface = module  # type: ignore[attr-defined]
        sys.modules.update({names[0]: parent, names[1]: module})
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
            if (old := before[name]) is not None:
                sys.modules[name] = old


def load_package(root: Path, *, interface: bool = True) -> Package:
    """Read a package directory. `interface`: as where the runtime's Python package is installed, else as where it is not.

    Raises: PackageFault for what a driver could not read or would refuse.
    """
    with _task_interface(interface):
        config = runpy.run_path(str(root / "kernel_config.py"))
    golden = runpy.run_path(str(root / "golden.py"))
    orchestration, runtime = config["ORCHESTRATION"], config["RUNTIME_CONFIG"]["runtime"]
    for entry in (config["RUNTIME_CONFIG"], orchestration, *config["KERNELS"]):
        if forbidden := FORBIDDEN_KEYS & entry.keys():
            raise PackageFault(f"kernel_config.py: key {min(forbidden)} must not appear")
    if runtime not in RUNTIMES:
        raise PackageFault(f"kernel_config.py: no runtime {runtime!r}")
    if len(config["KERNELS"]) > MAX_CALLABLES:
        raise PackageFault("kernel_config.py: more than 64 kernels")
    kernels = []
    for func_id, entry in enumerate(config["KERNELS"]):
        if entry["func_id"] != func_id:
            raise PackageFault(f"kernel_config.py: kernel {entry['name']}: func_id is {entry['func_id']}, its place {func_id}")
        if entry["core_type"] not in ("aiv", "aic"):
            raise PackageFault(f"kernel_config.py: kernel {entry['name']}: core_type {entry['core_type']!r}")
        kernels.append(KernelEntry(entry["name"], _source(entry), entry["core_type"], _signature(entry)))
    outputs = tuple(golden["__outputs__"])
    return Package(root, runtime, _source(orchestration), orchestration["function_name"], _signature(orchestration), tuple(kernels),
                   golden["generate_inputs"], golden["compute_golden"], outputs, golden["RTOL"], golden["ATOL"])


def _source(entry: Mapping[str, Any]) -> Path:
    path = Path(entry["source"])
    if not path.is_file():
        raise PackageFault(f"kernel_config.py: no file {path}")
    return path


def _signature(entry: Mapping[str, Any]) -> tuple[Direction, ...]:
    signature = tuple(Direction(direction) for direction in entry["signature"])
    if Direction.SCALAR in signature:
        raise PackageFault("kernel_config.py: signatures name tensors only")
    if "func_id" in entry and len(signature) > MAX_TENSORS:
        raise PackageFault("kernel_config.py: more than 32 tensors")    # of a task
    return signature
