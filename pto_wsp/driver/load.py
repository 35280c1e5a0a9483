"""`load`: a program from the folder that it was saved to, in a process that need not have its source."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import ABI_VERSION, build_artifact, machine_key, package_key
from pto_wsp.artifact.manifest import FORMAT_VERSION, MANIFEST, Compiler, Manifest, read_manifest
from pto_wsp.artifact.store import lookup, publish
from pto_wsp.artifact.toolchain import cpu_features
from pto_wsp.codegen.cpu_sim import UNIT
from pto_wsp.driver.compiled import Compiled
from pto_wsp.driver.cpu_sim import engine_of
from pto_wsp.driver.options import CompileOptions
from pto_wsp.driver.save import PLAN, PLAN_FORMAT
from pto_wsp.errors import CacheCorruptError, CompilerFailedError, LoadError, WorkloadStructureError
from pto_wsp.expr import workload as wl
from pto_wsp.expr.codec import from_data
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.written.codec import plan_from_data
from pto_wsp.runtime.bound.binding import Array
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.verify.verdict import Finding, Verdict

_AGAIN = "save the program again"
_SOURCES = "src/"


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """A program that was loaded; `arrays`: by tensor slot, memory for results between tasks, None for what a run binds."""

    compiled: Compiled
    arrays: tuple[Array | None, ...]


@dataclass(frozen=True, slots=True)
class _PlanFile:
    """What plan.json says."""

    workload: wl.Workload
    plan: TaskPlan
    unscheduled: TaskPlan
    arch: Arch
    options: CompileOptions
    intermediates: frozenset[int]


def load_saved(folder: Path, threads: int | None) -> Saved:
    """Return what `save_compiled` wrote to a folder; `threads`: None for as many as it was compiled for.

    Raises: C111 for a folder with no saved program for this machine, or a damaged one.
    """
    started = time.perf_counter()
    manifest = _manifest(folder)
    said = _plan(folder)
    plan, intermediates = said.plan, said.intermediates
    options = said.options if threads is None else said.options.model_copy(update={"threads": threads})
    arrays = tuple(np.empty(slot.ref.shape, slot.ref.dtype.np) if k in intermediates and not slot.fresh else None
                   for k, slot in enumerate(plan.tensors))
    root, built = _library(folder, manifest, options)
    undefined = {k: array for k, array in enumerate(arrays) if array is not None}
    engine = engine_of(root, built, plan, options, undefined)
    findings = tuple(Finding(entry.check, Verdict(entry.verdict), entry.detail) for entry in manifest.checks)
    compiled = Compiled(said.workload, plan, said.unscheduled, manifest.target, said.arch, Schedule.model_validate_json(manifest.schedule),
                        findings, engine, folder, manifest, options, (time.perf_counter() - started) * 1e3, from_cache=False)
    return Saved(compiled, arrays)


def _manifest(folder: Path) -> Manifest:
    """Read and verify the manifest, and every file against it."""
    try:
        said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version, target = said["format_version"], said["target"]
    except OSError as problem:
        raise LoadError(f"{folder} holds no saved program", expected=f"a folder with {MANIFEST}", found=str(problem.strerror)) from None
    except (ValueError, KeyError, TypeError):
        raise _damaged(folder, f"{MANIFEST}: it names no format and no target") from None
    if version != FORMAT_VERSION:
        raise LoadError(f"{folder} was saved in another format", expected=f"format {FORMAT_VERSION}", found=f"format {version}",
                        help="load it with the version of pto_wsp that saved it, or compile and save it with this one")
    if target != "cpu_sim":
        raise LoadError(f"{folder} is a package for target {target}, which does not run in this process", expected="target cpu_sim",
                        help="a driver of the device runtime builds and runs it; `pto-wsp inspect` shows what it holds")
    if not (folder / PLAN).is_file():
        raise LoadError(f"{folder} has no {PLAN}", expected="a folder that program.save(folder) has written",
                        found="an artifact of the cache, or a part of a saved one", help=_AGAIN)
    try:
        return read_manifest(folder, Manifest)
    except CacheCorruptError as problem:
        raise _damaged(folder, problem.found or "") from None


def _plan(folder: Path) -> _PlanFile:
    """Read plan.json. Its checksum is right by now, so what does not fit comes of another version."""
    try:
        said: dict[str, Any] = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        if said["format_version"] != PLAN_FORMAT:
            raise ValueError(f"format {said['format_version']}, this pto_wsp has {PLAN_FORMAT}")
        workload = from_data(said["workload"])
        if not isinstance(workload, wl.Workload):
            raise ValueError("its workload is none")
        return _PlanFile(workload, plan_from_data(said["plan"]), plan_from_data(said["unscheduled"]),
                         Arch.model_validate_json(json.dumps(said["arch"])),
                         CompileOptions.model_validate_json(json.dumps(said["options"])), frozenset(said["intermediates"]))
    except (ValueError, KeyError, TypeError, WorkloadStructureError) as problem:
        why = problem.found if isinstance(problem, WorkloadStructureError) else str(problem)
        raise LoadError(f"{folder / PLAN} is not what this version of pto_wsp writes", found=why, help=_AGAIN) from None


def _library(folder: Path, manifest: Manifest, options: CompileOptions) -> tuple[Path, Manifest]:
    """Return where the library is and its manifest: the one saved, or one made of the sources for this machine, kept in the cache."""
    cpu = ("portable",) if options.portable else cpu_features()
    interface = f"interface {manifest.abi_version}" if manifest.abi_version != ABI_VERSION else ""
    reason = interface or ("another CPU" if manifest.compiler.cpu != cpu else "")
    if not reason:
        return folder, manifest
    key = hashlib.sha256(f"{manifest.digest}\0{machine_key(options.portable)}\0{ABI_VERSION}\0{package_key()}".encode()).hexdigest()
    found = lookup(key, manifest.name, Manifest)
    if found is not None:
        return found
    span = here()
    warnings.warn_explicit(f"{folder} was built for {reason}: it is built again from {_SOURCES} for this machine, once", UserWarning,
                           span.file, span.line)
    try:
        return publish(key, manifest.name, Manifest, lambda root: _build(root, folder, manifest, cpu, options))
    except CompilerFailedError as problem:
        raise LoadError(f"{folder} was built for {reason}, and its sources do not compile here", expected=f"interface {ABI_VERSION}",
                        found=problem.found, notes=problem.notes, help=f"compile the workload and {_AGAIN}") from None


def _build(root: Path, folder: Path, manifest: Manifest, cpu: tuple[str, ...], options: CompileOptions) -> Manifest:
    """Fill an empty folder with the saved sources and a library of them."""
    files: Mapping[str, str] = {name: (folder / name).read_text(encoding="utf-8") for name, _ in manifest.files
                                if name.startswith(_SOURCES)}
    version, flags = build_artifact(root, files, manifest.library, UNIT, portable=options.portable)
    return manifest.model_copy(update={"abi_version": ABI_VERSION, "compiler": Compiler(version=version, flags=flags, cpu=cpu)})


def _damaged(folder: Path, found: str) -> LoadError:
    return LoadError(f"the program in {folder} is damaged", expected="files as its manifest lists them", found=found, help=_AGAIN)
