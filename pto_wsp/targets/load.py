"""`load`: a program from the folder that it was saved to, in a process that need not have its source."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import ABI_VERSION, build_artifact, machine_key, package_key
from pto_wsp.artifact.folders import open_folder
from pto_wsp.artifact.manifest import FORMAT_VERSION, MANIFEST, Compiler, Manifest, read_head, read_manifest
from pto_wsp.artifact.store import keep, lookup, publish
from pto_wsp.artifact.toolchain import cpu_features
from pto_wsp.c.cpu_sim import UNIT
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import CacheCorruptError, CompilerFailedError, LoadError, PtoError
from pto_wsp.ir import workload as wl
from pto_wsp.ir.codec import check_types, from_data
from pto_wsp.ir.digest import plan_digest
from pto_wsp.ir.exchange import empty_array
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_text import plan_from_data
from pto_wsp.run.bound import Array
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.cpu_sim import engine_of
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.save import PLAN, PLAN_FORMAT
from pto_wsp.trace.workload_data import check_workload
from pto_wsp.values import dataclass

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
    schedule: Schedule
    intermediates: frozenset[int]


def load_saved(folder: Path, threads: int | None) -> Saved:
    """Return what `save_compiled` wrote to a folder; `threads`: None for as many as it was compiled for.

    Raises: C111 for a folder with no saved program for this machine, or a damaged one.
    """
    started = time.perf_counter()
    root, manifest = _verified_copy(folder)
    said = _plan(root, manifest)
    plan, intermediates = said.plan, said.intermediates
    options = said.options if threads is None else said.options.model_copy(update={"threads": threads})
    _check_plan(folder, manifest, said)
    arrays = tuple(empty_array(slot.ref.shape, slot.ref.dtype.np) if k in intermediates and not slot.fresh else None
                   for k, slot in enumerate(plan.tensors))
    built_root, built = _library(folder, root, manifest, options)
    undefined = {k: array for k, array in enumerate(arrays) if array is not None}
    engine = engine_of(built_root, built.library, built.plan_digest, plan, options, undefined)
    findings = tuple(Finding(entry.check, Verdict(entry.verdict), entry.detail) for entry in manifest.checks)
    compiled = Compiled(workload=said.workload, plan=plan, unscheduled=said.unscheduled, target=manifest.target, arch=said.arch,
                        schedule=said.schedule, options=options, findings=findings, runner=engine, artifact_dir=folder, manifest=manifest,
                        compile_time_ms=(time.perf_counter() - started) * 1e3)
    return Saved(compiled, arrays)


def _verified_copy(folder: Path) -> tuple[Path, Manifest]:
    """Read and verify a folder's manifest, and every file against it, and return the store's copy of them.

    Raises: C111.
    """
    try:
        opened = open_folder(folder)
    except OSError as problem:
        raise _no_program(folder, problem) from None
    with opened:
        try:
            version, target = read_head(opened)
        except OSError as problem:
            raise _no_program(folder, problem) from None
        except ValueError:
            raise _damaged(folder, f"{MANIFEST}: it names no format and no target") from None
        if version != FORMAT_VERSION:
            raise LoadError(f"{folder} was saved in another format", expected=f"format {FORMAT_VERSION}", found=f"format {version!r:.60}",
                            help="load it with the version of pto_wsp that saved it, or compile and save it with this one")
        if target != "cpu_sim":
            raise LoadError(f"{folder} is a package for target {target!s:.60}, which does not run in this process",
                            expected="target cpu_sim",
                            help="a driver of the device runtime builds and runs it; `pto-wsp inspect` shows what it holds")
        try:
            manifest = read_manifest(opened, Manifest) if (folder / PLAN).is_file() else None
            if manifest is None or PLAN not in dict(manifest.files):
                raise LoadError(f"{folder} has no {PLAN}", expected="a folder that program.save(folder) has written",
                                found="an artifact of the cache, or a part of a saved one", help=_AGAIN)
            return keep(opened, manifest, manifest.name)
        except CacheCorruptError as problem:
            raise _damaged(folder, problem.found or "") from None


def _plan(root: Path, manifest: Manifest) -> _PlanFile:
    """Read plan.json. Its checksum is right by now, so what does not fit comes of another version.

    Raises: C111.
    """
    try:
        with open_folder(root) as kept:
            said: dict[str, Any] = json.loads(kept.read(PLAN))
        if said["format_version"] != PLAN_FORMAT:
            raise ValueError(f"format {said['format_version']!r:.60}, this pto_wsp has {PLAN_FORMAT}")
        workload = from_data(said["workload"])
        if not isinstance(workload, wl.Workload):
            raise ValueError("its workload is none")
        check_types(workload)
        check_workload(workload, bodies=True)     # the folder is a program: its library is run
        return _PlanFile(workload, plan_from_data(said["plan"]), plan_from_data(said["unscheduled"]),
                         Arch.model_validate_json(json.dumps(said["arch"])),
                         CompileOptions.model_validate_json(json.dumps(said["options"])),
                         Schedule.model_validate_json(manifest.schedule), frozenset(said["intermediates"]))
    except (ValueError, KeyError, TypeError, RecursionError, OSError, PtoError) as problem:
        why = problem.found or problem.message if isinstance(problem, PtoError) else str(problem)
        raise LoadError(f"its {PLAN} is not what this version of pto_wsp writes", found=f"{why:.300}", help=_AGAIN) from None


def _check_plan(folder: Path, manifest: Manifest, said: _PlanFile) -> None:
    """Raise C111 unless the plan is the one that the library was made of, and what stands beside it fits."""
    plan = replace(said.plan, structure=True) if said.options.sanitize else said.plan
    if plan_digest(plan) != manifest.plan_digest:
        raise _damaged(folder, f"{PLAN}: it is not the plan that the library was made of")
    if not all(type(slot) is int and 0 <= slot < len(plan.tensors) for slot in said.intermediates):
        raise _damaged(folder, f"{PLAN}: it has intermediates that are no tensors")


def _library(folder: Path, root: Path, manifest: Manifest, options: CompileOptions) -> tuple[Path, Manifest]:
    """Return where the library is and its manifest: the one saved, or one made of the sources for this machine; both are the store's."""
    cpu = ("portable",) if options.portable else cpu_features()
    interface = f"interface {manifest.abi_version}" if manifest.abi_version != ABI_VERSION else ""
    reason = interface or ("another CPU" if manifest.compiler.cpu != cpu else "")
    if not reason:
        return root, manifest
    key = hashlib.sha256(f"{manifest.digest}\0{machine_key(options.portable)}\0{ABI_VERSION}\0{package_key()}".encode()).hexdigest()
    found = lookup(key, manifest.name, Manifest)
    if found is not None:
        return found
    span = here()
    warnings.warn_explicit(f"{folder} was built for {reason}: it is built again from {_SOURCES} for this machine, once", UserWarning,
                           span.file, span.line)
    try:
        return publish(key, manifest.name, Manifest, lambda building: _build(building, root, manifest, cpu, options))
    except CompilerFailedError as problem:
        raise LoadError(f"{folder} was built for {reason}, and its sources do not compile here", expected=f"interface {ABI_VERSION}",
                        found=problem.found, notes=problem.notes, help=f"compile the workload and {_AGAIN}") from None


def _build(building: Path, root: Path, manifest: Manifest, cpu: tuple[str, ...], options: CompileOptions) -> Manifest:
    """Fill an empty folder with the saved sources and a library of them."""
    with open_folder(root) as kept:
        files: Mapping[str, str] = {name: kept.read(name).decode("utf-8", "replace") for name, _ in manifest.files
                                    if name.startswith(_SOURCES)}
    version, flags = build_artifact(building, files, manifest.library, UNIT, portable=options.portable)
    return manifest.model_copy(update={"abi_version": ABI_VERSION, "compiler": Compiler(version=version, flags=flags, cpu=cpu)})


def _no_program(folder: Path, problem: OSError) -> LoadError:
    return LoadError(f"{folder} holds no saved program", expected=f"a folder with {MANIFEST}", found=str(problem.strerror))


def _damaged(folder: Path, found: str) -> LoadError:
    return LoadError(f"the program in {folder} is damaged", expected="files as its manifest lists them", found=found, help=_AGAIN)
