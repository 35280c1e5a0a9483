"""What the NPU targets share: a plan to a folder of files, whose device code a target spells."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import package_key
from pto_wsp.artifact.manifest import CheckEntry, DeviceKernelEntry, PackageManifest
from pto_wsp.artifact.store import lookup, publish
from pto_wsp.c.syntax import c_ident
from pto_wsp.check.forms import form_errors
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import ArchOptionError, CompileOptionError, MissingDataError, raise_all
from pto_wsp.ir.digest import plan_digest
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.npu.check.checks import check_tile_program, with_late_checks
from pto_wsp.npu.check.writes import check_writes
from pto_wsp.npu.emit.orchestration import orchestration_path
from pto_wsp.npu.emit.package import DeviceKernel, device_kernels, direction
from pto_wsp.npu.isa.tile_program import Space, TileProgram
from pto_wsp.npu.isa.tile_program_text import print_listing, print_program
from pto_wsp.npu.plan.arguments import tensor_directions
from pto_wsp.npu.plan.model import NpuKernel, NpuPlan
from pto_wsp.npu.plan.passes import NPU_PASSES, PART_PASSES
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu, run_kernels
from pto_wsp.npu.plan.text import print_npu_plan
from pto_wsp.npu.select.select import select
from pto_wsp.npu.tiles.passes import TILE_PROGRAM_PASSES
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import DEVICE_PASSES
from pto_wsp.passes.pipeline import AnyPass
from pto_wsp.schedule.capability import supports
from pto_wsp.schedule.support import Support
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.dumps import kernels_observer, observer
from pto_wsp.targets.entries import symbol_entries, tensor_entries
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.planning import Planned, make_plan, run_plan_passes
from pto_wsp.targets.replacing import text_key
from pto_wsp.targets.request import CompileRequest
from pto_wsp.values import dataclass

# Written for these, as the project's own tests execute them; no version of the device's own has been seen by them.
INTERFACES = {"pto_wsp_abi": "1", "pto_isa": "host emulation of the tests", "pto_orchestration_api": "host emulation of the tests"}


Spell = Callable[[NpuPlan, Sequence[DeviceKernel]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class DeviceTarget:
    """What targets that make packages have in common: passes of every level, an NPU as the arch, no options of programs that run here."""

    name: str
    default_arch: str = "ascend_910b"

    @property
    def supports(self) -> Mapping[str, Support]:
        """What the target makes of each directive."""
        return supports(self.name)

    def check_options(self, given: Mapping[str, object], checked: CompileOptions) -> None:
        """Refuse options of programs that run in this process.

        Raises: C104.
        """
        on_host = [name for name in given if name in ("threads", "portable", "check_finite", "verify_passes", "sanitize", "overheads",
                                                      "wall_trace")]
        if on_host:
            raise CompileOptionError(f"target {self.name} has no {', '.join(on_host)}", here(),
                                     help="these options are for targets that run, and simulate, in this process")

    def check_arch(self, arch: Arch) -> None:
        """Refuse what is no NPU.

        Raises: C115.
        """
        if not arch.family:
            raise ArchOptionError(f"arch `{arch.name}` is no machine of this target", here(), expected="ascend_910b or ascend_950",
                                  found=f"target {self.name}")

    def passes(self, options: CompileOptions) -> tuple[AnyPass, ...]:
        """Return the passes of all levels in the order of their run."""
        parts = {step.name: step for passes in PART_PASSES.values() for step in passes}
        return (*DEVICE_PASSES, *NPU_PASSES, *parts.values(), *TILE_PROGRAM_PASSES)


def plan_package(request: CompileRequest) -> Planned:
    """Return the plan of a package, checked.

    Raises: C109 for tensors whose size only a run knows, what `make_plan` raises, N106 for forms that the target does not take.
    """
    unsized = request.unsized - request.intermediates or request.unsized      # sizes between tasks come from those of arguments
    if unsized:
        names = [f"`{slot.ref.shown}`" for slot in lower(request.workload).tensors if slot.ref.id in unsized]
        if names:
            raise _unsized(" and ".join(filter(None, (", ".join(names[:-1]), names[-1]))))
    made = make_plan(request, DEVICE_PASSES)
    raise_all(form_errors(made.plan, request.target))
    return made


def make_package(request: CompileRequest, made: Planned, plan: TaskPlan, steering: Mapping[int, np.ndarray], spell: Spell) -> Compiled:
    """Return the package of a plan, from the cache where it has been made before.

    `plan`: that of `made` as the target changes it; `steering`: by the ids of tensors, the data that the files of `spell` hold.
    Raises: what selection, the passes and the checks refuse, at the user's line.
    """
    key, package = _key(request, plan, steering), None
    if request.runner.replaced:      # the text of the user's passes is not known: what they make is known by its own
        package = _package(request, made, plan, spell)
        key = text_key(key, package.files)
    found = lookup(key, plan.name, PackageManifest)
    if found is not None:
        root, sealed = found
        findings = tuple(Finding(one.check, Verdict(one.verdict), one.detail) for one in sealed.checks)
    else:
        files, manifest, findings = package or _package(request, made, plan, spell)
        root, sealed = publish(key, plan.name, PackageManifest, lambda root: _write_package(root, files, manifest))
    return request.compiled(plan=made.plan, unscheduled=made.lowered, findings=findings, artifact_dir=root, manifest=sealed,
                            from_cache=found is not None)


def _unsized(names: str) -> MissingDataError:
    return MissingDataError(f"only a run knows the size of {names}, and a package states the sizes of its tensors", None,
                            expected="a shape of numbers", help="declare the largest, Tensor(shape=(4096, 8), ...), and cut it where "
                            "it is used: X[:n]; of @jit: f.lower(plan, x=X)")


def lower_for_device(request: CompileRequest, change: Callable[[TaskPlan], TaskPlan]) -> None:
    """Run the passes up to the one that the runner of the request stops at. `change`: what the target makes of the plan.

    Raises: what the passes raise, and what stands between them.
    """
    runner = request.runner
    plan = run_plan_passes(request, lower(request.workload), DEVICE_PASSES, None)
    if runner.reached:
        return
    raise_all(form_errors(plan, request.target))
    plan = change(plan)
    run_kernels(plan, runner)
    if runner.reached:
        return
    npu = plan_for_npu(plan, request.arch, None, runner)
    if not runner.reached:
        for number, use in enumerate(npu.kernels):
            _program(request, use, number, {})


class _PackageParts(NamedTuple):
    """The files of a package, its manifest, not sealed yet, and what was found out about it."""

    files: Mapping[str, str]
    manifest: PackageManifest
    findings: tuple[Finding, ...]


def _package(request: CompileRequest, made: Planned, plan: TaskPlan, spell: Spell) -> _PackageParts:
    arch, dumps = request.arch, dict(request.dumps)
    npu = plan_for_npu(plan, arch, kernels_observer(dumps) if request.options.dump else None, request.runner)
    programs = tuple(_program(request, use, number, dumps) for number, use in enumerate(npu.kernels))
    kernels_checked = (finding for program in programs if program is not None for finding in check_tile_program(program, arch))
    checks = (*with_late_checks(made.findings, npu), *kernels_checked, *check_writes(npu))
    raise_all([finding.error for finding in checks if finding.error is not None])
    kernels = device_kernels(npu, programs)
    files = {**dumps, **_listings(npu, kernels), **spell(npu, kernels)}
    return _PackageParts(files, _manifest(request, npu, kernels, checks), checks)


def _key(request: CompileRequest, plan: TaskPlan, steering: Mapping[int, np.ndarray]) -> str:
    """Everything that a package is made from with the package's own passes, and what makes it."""
    parts = (plan_digest(plan), request.schedule.model_dump_json(), request.arch.model_dump_json(), request.target, repr(request.recorded),
             f"dump {sorted(request.texts.items())}" if request.dumps else "", request.options.options.model_dump_json(), package_key(),
             *(f"{number} {data.dtype} {data.shape} {hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()}"
               for number, data in sorted(steering.items())), *sorted(request.runner.left_out))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _program(request: CompileRequest, use: NpuKernel, number: int, dumps: dict[str, str]) -> TileProgram | None:
    if use.kernel.cpp_body is not None:
        return None
    observe = observer(dumps, f"func_{number}_{c_ident(use.kernel.name)}/", print_program) if request.options.dump else None
    return request.runner.run(select(use, request.arch), request.arch, TILE_PROGRAM_PASSES, observe)


def _listings(npu: NpuPlan, kernels: Sequence[DeviceKernel]) -> Mapping[str, str]:
    """The plan and every kernel as they are emitted, for people and for `inspect`."""
    return {
        "ir/plan.wsp": print_npu_plan(npu),
        **{f"ir/kernels/{kernel.name}.wsp": print_listing(kernel.program) for kernel in kernels if kernel.program is not None},
    }


def _manifest(request: CompileRequest, npu: NpuPlan, kernels: Sequence[DeviceKernel], checks: tuple[Finding, ...]) -> PackageManifest:
    return PackageManifest(
        target=request.target, arch=request.arch.name, name=npu.name,
        tensors=tensor_entries(npu.arguments), symbols=symbol_entries(npu.symbols),
        schedule=request.schedule.model_dump_json(), recorded_directives=request.recorded,
        checks=tuple(dict.fromkeys(CheckEntry(check=f.check, verdict=f.verdict.value, detail=f.detail) for f in checks)),
        runtime=request.options.options.runtime, interfaces=tuple(INTERFACES.items()), orchestration=orchestration_path(npu),
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
    ends = {space: max((buffer.address + buffer.size_bytes * buffer.copies for buffer in program.buffers
                        if buffer.space is space and buffer.address is not None), default=0) for space in Space}
    return tuple((space.value, end) for space, end in ends.items() if end)


def _write_package(root: Path, files: Mapping[str, str], manifest: PackageManifest) -> PackageManifest:
    """Write the files of a package into an empty folder, and return its manifest."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return manifest
