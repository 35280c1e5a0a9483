"""The NPU targets: a plan to a package that the device runtime builds and runs (`ascend_npu`), or to `.pto` text (`pto`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import package_key
from pto_wsp.artifact.manifest import CheckEntry, DeviceKernelEntry, PackageManifest
from pto_wsp.artifact.store import lookup, publish
from pto_wsp.codegen.c.syntax import c_ident
from pto_wsp.codegen.npu.golden.emit import emit_golden
from pto_wsp.codegen.npu.golden.inputs import deciding_tensors, steering_tensors
from pto_wsp.codegen.npu.mlir.emit import emit_pto
from pto_wsp.codegen.npu.orchestration.emit import emit_orchestration, orchestration_path
from pto_wsp.codegen.npu.package import DeviceKernel, device_kernels, direction, emit_package_files
from pto_wsp.driver.dumps import kernels_observer, observer
from pto_wsp.driver.entries import symbol_entries, tensor_entries
from pto_wsp.driver.options import CompileOptions
from pto_wsp.errors import MissingDataError, raise_all
from pto_wsp.expr.tile_program import Space, TileProgram
from pto_wsp.expr.tile_program_text import print_program
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.npu.between_tasks import mark_between_tasks
from pto_wsp.plan.npu.directions import tensor_directions
from pto_wsp.plan.npu.merge_dims import merge_dims
from pto_wsp.plan.npu.model import NpuKernel, NpuPlan
from pto_wsp.plan.npu.passes import TILE_PROGRAM_PASSES
from pto_wsp.plan.npu.select.select import select
from pto_wsp.plan.npu.split.plan_for_npu import plan_for_npu
from pto_wsp.plan.npu.text import print_npu_plan
from pto_wsp.plan.targets.forms import form_errors
from pto_wsp.plan.written.digest import plan_digest
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.values import dataclass
from pto_wsp.verify.npu.checks import check_tile_program
from pto_wsp.verify.npu.late import with_late_checks
from pto_wsp.verify.npu.writes import check_writes
from pto_wsp.verify.verdict import Finding, Verdict

# Written for these, as the project's own tests execute them; no version of the device's own has been seen by them.
_INTERFACES = {"pto_wsp_abi": "1", "pto_isa": "host emulation of the tests", "pto_orchestration_api": "host emulation of the tests"}


@dataclass(frozen=True, slots=True)
class PackageBuild:
    """What compiling for the NPU gives."""

    root: Path
    manifest: PackageManifest
    findings: tuple[Finding, ...]
    from_cache: bool


def compile_npu(plan: TaskPlan, schedule: Schedule, arch: Arch, target: str, findings: tuple[Finding, ...], recorded: tuple[str, ...],
                dumps: Mapping[str, str], options: CompileOptions, arrays: Mapping[int, np.ndarray],
                intermediates: frozenset[int]) -> PackageBuild:
    """Return the package of a plan. `arrays`: the data that its tensors were made with, by the id of their TensorRef; `intermediates`:
    the ids of those that were made for results between tasks.

    Raises: what the target's forms, selection, the passes and the checks refuse, at the user's line.
    """
    raise_all(form_errors(plan, target))
    plan = merge_dims(mark_between_tasks(plan, intermediates) if target == "ascend_npu" else _without_own_bodies(plan))
    steering = _steering(plan, arrays) if target == "ascend_npu" else {}
    key = _key(plan, schedule, arch, target, recorded, dumps, options, steering)
    found = lookup(key, plan.name, PackageManifest)
    if found is not None:
        root, sealed = found
        return PackageBuild(root, sealed, tuple(Finding(one.check, Verdict(one.verdict), one.detail) for one in sealed.checks), True)
    files, manifest, checks = _package(plan, schedule, arch, target, findings, recorded, dumps, options, steering)
    root, sealed = publish(key, plan.name, PackageManifest, lambda root: _filled(root, files, manifest))
    return PackageBuild(root, sealed, checks, False)


def _package(plan: TaskPlan, schedule: Schedule, arch: Arch, target: str, findings: tuple[Finding, ...], recorded: tuple[str, ...],
             dumps: Mapping[str, str], options: CompileOptions, steering: Mapping[int, np.ndarray],
             ) -> tuple[Mapping[str, str], PackageManifest, tuple[Finding, ...]]:
    """Return the files of a package, its manifest, not sealed yet, and what was found out about it."""
    kept = dict(dumps)
    npu = plan_for_npu(plan, arch, kernels_observer(kept) if options.dump else None)
    programs = tuple(_program(use, number, arch, kept, options) for number, use in enumerate(npu.kernels))
    kernels_checked = (finding for program in programs if program is not None for finding in check_tile_program(program, arch))
    checks = (*with_late_checks(findings, npu), *kernels_checked, *check_writes(npu))
    raise_all([finding.error for finding in checks if finding.error is not None])
    kernels = device_kernels(npu, programs)
    files = {**kept, **_listings(npu, kernels)}
    if target == "pto":
        files |= {f"{kernel.name}.pto": emit_pto(kernel.program, arch) for kernel in kernels if kernel.program is not None}
    else:
        files |= _package_files(plan, npu, kernels, arch, options, steering)
    return files, _manifest(npu, kernels, target, schedule, arch, checks, recorded, options), checks


def _key(plan: TaskPlan, schedule: Schedule, arch: Arch, target: str, recorded: tuple[str, ...], dumps: Mapping[str, str],
         options: CompileOptions, steering: Mapping[int, np.ndarray]) -> str:
    """Everything that a package is made from, and what makes it."""
    parts = (plan_digest(plan), schedule.model_dump_json(), arch.model_dump_json(), target, repr(recorded), "dump" if dumps else "",
             options.options.model_dump_json(), package_key(),
             *(f"{number} {data.dtype} {data.shape} {hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()}"
               for number, data in sorted(steering.items())))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _without_own_bodies(plan: TaskPlan) -> TaskPlan:
    """Return the plan for a target that takes what kernels mean in Python: there is no C++ in a .pto file."""
    return replace(plan, kernels=tuple(replace(use, kernel=replace(use.kernel, bodies=())) for use in plan.kernels))


def _program(use: NpuKernel, number: int, arch: Arch, dumps: dict[str, str], options: CompileOptions) -> TileProgram | None:
    if use.kernel.cpp_body is not None:
        return None
    observe = observer(dumps, f"func_{number}_{c_ident(use.kernel.name)}/", print_program) if options.dump else None
    return run_passes(select(use, arch), arch, TILE_PROGRAM_PASSES, observe)


def _package_files(plan: TaskPlan, npu: NpuPlan, kernels: Sequence[DeviceKernel], arch: Arch, options: CompileOptions,
                   steering: Mapping[int, np.ndarray]) -> Mapping[str, str]:
    return {
        **emit_package_files(npu, kernels, arch=arch.name, runtime=options.options.runtime, interfaces=_INTERFACES),
        orchestration_path(npu): emit_orchestration(npu, options.options.runtime),
        "golden.py": emit_golden(plan, steering, {symbol.id: symbol.default for symbol in plan.symbols
                                                                 if symbol.default is not None}),
    }


def _steering(plan: TaskPlan, arrays: Mapping[int, np.ndarray]) -> Mapping[int, np.ndarray]:
    """Return the elements of the tensors that decide which tasks there are, or which elements they reach.

    Raises: C109 for one that was made without data.
    """
    known = steering_tensors(plan) | (deciding_tensors(plan) & arrays.keys())
    wanted = [slot.ref for slot in plan.tensors if slot.ref.id in known]
    raise_all([MissingDataError(f"`{ref.shown}` has no data, and golden.py needs its elements: they decide what tasks do", None,
                                expected="Tensor(array) for lengths, offsets and indices") for ref in wanted if ref.id not in arrays])
    return {ref.id: arrays[ref.id].reshape(ref.shape) for ref in wanted}


def _listings(npu: NpuPlan, kernels: Sequence[DeviceKernel]) -> Mapping[str, str]:
    """The plan and every kernel as they are emitted, for people and for `inspect`."""
    return {
        "ir/plan.wsp": print_npu_plan(npu),
        **{f"ir/kernels/{kernel.name}.wsp": print_program(kernel.program) for kernel in kernels if kernel.program is not None},
    }


def _manifest(npu: NpuPlan, kernels: Sequence[DeviceKernel], target: str, schedule: Schedule, arch: Arch, checks: tuple[Finding, ...],
              recorded: tuple[str, ...], options: CompileOptions) -> PackageManifest:
    return PackageManifest(
        target=target, arch=arch.name, name=npu.name, tensors=tensor_entries(npu.arguments), symbols=symbol_entries(npu.symbols),
        schedule=schedule.model_dump_json(), recorded_directives=recorded,
        checks=tuple(dict.fromkeys(CheckEntry(check=f.check, verdict=f.verdict.value, detail=f.detail) for f in checks)),
        runtime=options.options.runtime, interfaces=tuple(_INTERFACES.items()), orchestration=orchestration_path(npu),
        signature=tuple(direction(role) for role in tensor_directions(npu)),
        kernels=tuple(map(_kernel_entry, kernels)))


def _kernel_entry(kernel: DeviceKernel) -> DeviceKernelEntry:
    return DeviceKernelEntry(func_id=kernel.func_id, name=kernel.name, core_type=kernel.core_type, source=kernel.path,
                             origin=kernel.kernel.span.short, signature=kernel.signature,
                             scalars=tuple(param.name for param in kernel.kernel.scalar_params), on_chip=_on_chip(kernel.program))


def _on_chip(program: TileProgram | None) -> tuple[tuple[str, int], ...]:
    """How far up each memory is used, in bytes."""
    if program is None:
        return ()
    ends = {space: max((room.address + room.size_bytes * room.copies for room in program.rooms
                        if room.space is space and room.address is not None), default=0) for space in Space}
    return tuple((space.value, end) for space, end in ends.items() if end)


def _filled(root: Path, files: Mapping[str, str], manifest: PackageManifest) -> PackageManifest:
    """Write the files of a package into an empty folder, and return its manifest."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return manifest
