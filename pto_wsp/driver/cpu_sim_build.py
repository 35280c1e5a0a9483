"""An artifact for cpu_sim: kernel passes, generated C, the compiler. Loaded where the cache has none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import ABI_VERSION, build_artifact
from pto_wsp.artifact.manifest import CheckEntry, Compiler, KernelEntry, Manifest
from pto_wsp.artifact.store import publish
from pto_wsp.artifact.toolchain import cpu_features
from pto_wsp.codegen.c.syntax import c_ident
from pto_wsp.codegen.cpu_sim import SourceTree, emit_cpu_sim, symbols_of
from pto_wsp.codegen.kernel.own_body import error_in_own_body
from pto_wsp.driver.dumps import observer
from pto_wsp.driver.entries import symbol_entries, tensor_entries
from pto_wsp.driver.options import CompileOptions
from pto_wsp.errors import CompilerFailedError, PtoError
from pto_wsp.expr.kernel_text import print_kernel, print_param
from pto_wsp.plan.kernel.check_finite import CHECKED_PASSES
from pto_wsp.plan.kernel.context import context_of
from pto_wsp.plan.kernel.passes import KERNEL_PASSES, run_kernel_passes
from pto_wsp.plan.kernel.unit import unit_of
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.rules import print_rules
from pto_wsp.runtime.interpreter.pass_check import check_kernel_passes
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.verify.verdict import Finding


def build_cpu_sim(key: str, plan: TaskPlan, digest: str, schedule: Schedule, arch: Arch, findings: tuple[Finding, ...],
                  recorded: tuple[str, ...], dumps: Mapping[str, str], options: CompileOptions) -> tuple[Path, Manifest]:
    """Generate and compile the artifact of a plan, publish it under `key`, and return its folder and manifest.

    Raises: C102 when the C compiler refuses a body of the user's own, and what the store raises.
    """
    return publish(key, plan.name, Manifest,
                   lambda root: _fill(root, plan, digest, schedule, arch, findings, recorded, dumps, options))


def check_passes(plan: TaskPlan) -> None:
    """Hold the kernels' passes to the interpreter: same numbers before and after each."""
    for use in plan.kernels:
        check_kernel_passes(use.kernel, context_of(use), KERNEL_PASSES)


def refusal(plan: TaskPlan, problem: CompilerFailedError) -> PtoError:
    """Return what the compiler refused as the user's error, at the line of a body of the user's own where it is in one."""
    return error_in_own_body((use.kernel for use in plan.kernels), problem) or problem


def _fill(root: Path, plan: TaskPlan, digest: str, schedule: Schedule, arch: Arch, findings: tuple[Finding, ...],
          recorded: tuple[str, ...], dumps: Mapping[str, str], options: CompileOptions) -> Manifest:
    """Fill an empty folder with the artifact and return its manifest, not sealed yet."""
    kernel_dumps: dict[str, str] = {}
    passes = CHECKED_PASSES if options.check_finite else KERNEL_PASSES
    lowered = tuple(run_kernel_passes(use.kernel, context_of(use), passes,
                                      observer(kernel_dumps, f"{symbol}/", print_kernel) if dumps else None)
                    for symbol, use in zip(symbols_of(plan), plan.kernels, strict=True))
    tree = emit_cpu_sim(plan, lowered, digest)
    library = f"lib{c_ident(plan.name)}.so"
    try:
        version, flags = build_artifact(root, {**tree.files, **dumps, **kernel_dumps}, library, tree.unit, portable=options.portable)
    except CompilerFailedError as problem:
        raise refusal(plan, problem) from None
    return Manifest(
        abi_version=ABI_VERSION, target="cpu_sim", arch=arch.name, name=plan.name, library=library, plan_digest=digest,
        kernels=_kernel_entries(plan, tree), rules=tuple(print_rules(plan.rules)),
        tensors=tensor_entries(plan.tensors), symbols=symbol_entries(plan.symbols),
        schedule=schedule.model_dump_json(), recorded_directives=recorded,
        checks=tuple(CheckEntry(check=f.check, verdict=f.verdict.value, detail=f.detail) for f in findings),
        compiler=Compiler(version=version, flags=flags, cpu=("portable",) if options.portable else cpu_features()))


def _kernel_entries(plan: TaskPlan, tree: SourceTree) -> tuple[KernelEntry, ...]:
    return tuple(
        KernelEntry(id=k, name=use.kernel.name, unit=unit_of(use.kernel).value, entry=emitted.symbol, scratch_bytes=emitted.scratch_bytes,
                    cost=print_scalar(use.cost), source=use.kernel.span.short,
                    params=tuple(print_param(p) for p in use.kernel.params))
        for k, (use, emitted) in enumerate(zip(plan.kernels, tree.kernels, strict=True)))
