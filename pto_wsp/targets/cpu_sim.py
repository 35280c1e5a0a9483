"""The cpu_sim target: a plan to a loaded library, from the cache where it has been built before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from pto_wsp import doors
from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import LoadedArtifact, load_artifact, machine_key, package_key, runtime_begun
from pto_wsp.artifact.manifest import Manifest
from pto_wsp.artifact.store import lookup
from pto_wsp.artifact.toolchain import cache_bytes
from pto_wsp.check.capacity import capacity_errors
from pto_wsp.errors import ArityError, CompileOptionError, CompilerFailedError, raise_all
from pto_wsp.ir.digest import plan_digest
from pto_wsp.ir.kernel import MAX_ARGS, Kernel
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.tile import whole_name
from pto_wsp.passes.kernel.context import context_of
from pto_wsp.passes.kernel.passes import KERNEL_PASSES, KernelPass
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import AnyPass
from pto_wsp.run.native import Engine
from pto_wsp.schedule.capability import supports
from pto_wsp.schedule.support import Support
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import CompileOptions, refuse_npu_options
from pto_wsp.targets.planning import make_plan, run_plan_passes
from pto_wsp.targets.request import CompileRequest
from pto_wsp.values import dataclass

_MAX_SCALARS = 16      # PTO_MAX_SCALARS of csrc/include/pto_abi.h


@dataclass(frozen=True, slots=True)
class _CpuSim:
    name: str = "cpu_sim"
    default_arch: str = "unit"

    @property
    def supports(self) -> Mapping[str, Support]:
        return supports(self.name)

    def check_options(self, given: Mapping[str, object], checked: CompileOptions) -> None:
        if checked.sanitize and (checked.threads or 1) > 1:
            raise CompileOptionError("a sanitized run has one thread", here(), found=f"threads={checked.threads}",
                                     help="leave threads= out: tasks run one by one, in a random legal order")
        if checked.sanitize and checked.wall_trace:
            raise CompileOptionError("a sanitized run has no wall-clock trace", here(),
                                     help="leave sanitize= out: its tasks take the time of looking, not their own")
        refuse_npu_options(self.name, given, checked)

    def check_arch(self, arch: Arch) -> None:
        """Take any."""

    def passes(self, options: CompileOptions) -> tuple[AnyPass, ...]:
        return (*PASSES, *_kernel_passes(options))

    def compile(self, request: CompileRequest) -> Compiled:
        with runtime_begun():
            return self._compiled(request)

    def _compiled(self, request: CompileRequest) -> Compiled:
        options, own = request.options, request.runner.replaced
        if options.check_finite and request.runner.changes(KERNEL_PASSES):
            out = ", ".join(sorted(request.runner.left_out))
            given = f"passes={{{', '.join(repr(name) for name in own)}}}" if own else f"without {out}"
            raise CompileOptionError("check_finite=True goes with the package's own passes on kernels alone", here(), found=given,
                                     help="leave one of them out: a fault is named by its number among the package's checks")
        made = make_plan(request, PASSES, _cache_bytes(options))
        raise_all(tuple(_count_errors(use.kernel for use in made.plan.kernels)))
        raise_all(capacity_errors((use.kernel for use in made.plan.kernels), request.arch))
        if options.verify_passes:
            doors.late_module("pto_wsp.targets.cpu_sim_build").check_passes(request, made.plan)
        plan = replace(made.plan, structure=True) if options.sanitize else made.plan     # races are what it leaves to the data
        key = _key(request, plan)
        found = None if own else lookup(key, plan.name, Manifest)
        from_cache = found is not None
        if found is None:
            building = doors.late_module("pto_wsp.targets.cpu_sim_build")
            found, from_cache = building.build_cpu_sim(request, plan, made.findings, key, _kernel_passes(options))
        root, manifest = found
        undefined = {k: request.arrays[slot.ref.id] for k, slot in enumerate(made.plan.tensors)
                     if slot.ref.id in request.intermediates and slot.ref.id in request.arrays and not slot.fresh}
        try:
            engine = engine_of(root, manifest.library, manifest.plan_digest, made.plan, options, undefined)
        except CompilerFailedError as problem:
            raise doors.late_module("pto_wsp.targets.cpu_sim_build").refusal(plan, problem) from None
        return request.compiled(plan=made.plan, unscheduled=made.lowered, findings=made.findings, runner=engine, artifact_dir=root,
                                manifest=manifest, from_cache=from_cache)

    def lower(self, request: CompileRequest) -> None:
        plan = run_plan_passes(request, lower(request.workload), PASSES, _cache_bytes(request.options))
        if not request.runner.reached:
            for use in plan.kernels:
                request.runner.run(use.kernel, context_of(use), _kernel_passes(request.options))


CPU_SIM = _CpuSim()


def engine_of(root: Path, library: str, digest: str, plan: TaskPlan, options: CompileOptions, undefined: Mapping[int, np.ndarray], *,
              prints: bool | None = None) -> Engine:
    """Return what runs a library in `root` that was made from the plan with this digest; `undefined`: by tensor slot, the memory that a
    run finds without contents; `prints` is as for the engine.

    Raises: C102, C105 when it cannot be loaded.
    """
    return Engine(open_artifact(str(root), library, digest), plan, 1 if options.sanitize else options.threads,
                  undefined=undefined if options.sanitize else None, wall_trace=options.wall_trace, prints=prints)


def _kernel_passes(options: CompileOptions) -> tuple[KernelPass, ...]:
    if not options.check_finite:
        return KERNEL_PASSES
    checked: tuple[KernelPass, ...] = doors.late_module("pto_wsp.passes.kernel.check_finite").CHECKED_PASSES
    return checked


def _cache_bytes(options: CompileOptions) -> int | None:
    return None if options.portable else cache_bytes()


def _key(request: CompileRequest, plan: TaskPlan) -> str:
    """Everything that an artifact is made from with the package's own passes, and what makes it."""
    parts = (plan_digest(plan), request.schedule.model_dump_json(), request.arch.model_dump_json(), repr(request.recorded),
             f"dump {sorted(request.texts.items())}" if request.dumps else "", machine_key(request.options.portable),
             "check_finite" if request.options.check_finite else "", package_key(), *sorted(request.runner.left_out))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=32)      # the latest stay open for programs that are compiled again; the others are closed with their last program
def open_artifact(root: str, library: str, digest: str) -> LoadedArtifact:
    """Return the library of an artifact, opened once for all programs that use it."""
    return load_artifact(Path(root), library, digest)


def _count_errors(kernels: Iterable[Kernel]) -> Iterator[ArityError]:
    """Yield an error for each kernel with more arguments than the native engine passes to a task."""
    for kernel in kernels:
        for params, most, what in ((kernel.memory_params, MAX_ARGS, "tiles and Tensors"),
                                   (kernel.scalar_params, _MAX_SCALARS, "scalars")):
            tiles = dict.fromkeys(f"`{whole}`" for param in params if (whole := whole_name(param.name)) != param.name)
            if len(params) > most:
                yield ArityError(f"a task of kernel `{kernel.name}` has too many arguments", kernel.span, expected=f"at most {most} {what}",
                                 found=f"{len(params)}" + (f", with one for each tile of {', '.join(tiles)}" if tiles else ""),
                                 help="loop over a leading axis in the workload, or over a part of it" if tiles else
                                      "pack some into one tensor, of which the kernel takes parts")
