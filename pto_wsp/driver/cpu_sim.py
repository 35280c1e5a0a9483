"""The cpu_sim target: a plan to a loaded library, from the cache where it has been built before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import ABI_VERSION, LoadedArtifact, build_artifact, load_artifact, machine_key, tree_digest
from pto_wsp.artifact.manifest import CheckEntry, Compiler, KernelEntry, Manifest
from pto_wsp.artifact.store import lookup, publish
from pto_wsp.artifact.toolchain import cpu_features
from pto_wsp.codegen.c.syntax import c_ident
from pto_wsp.codegen.cpu_sim import SourceTree, emit_cpu_sim, symbols_of
from pto_wsp.codegen.kernel.own_body import error_in_own_body
from pto_wsp.driver.dumps import observer
from pto_wsp.driver.entries import symbol_entries, tensor_entries
from pto_wsp.driver.options import CompileOptions
from pto_wsp.errors import CompilerFailedError
from pto_wsp.expr.kernel_text import print_kernel, print_param
from pto_wsp.plan.kernel.check_finite import CHECKED_PASSES
from pto_wsp.plan.kernel.context import context_of
from pto_wsp.plan.kernel.passes import KERNEL_PASSES, run_kernel_passes
from pto_wsp.plan.kernel.unit import unit_of
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.rules import print_rules
from pto_wsp.plan.written.digest import plan_digest
from pto_wsp.resources import csrc_dir, templates_dir
from pto_wsp.runtime.interpreter.pass_check import check_kernel_passes
from pto_wsp.runtime.native.run import Engine
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.types.scalar import print_scalar
from pto_wsp.values import dataclass
from pto_wsp.verify.verdict import Finding


@dataclass(frozen=True, slots=True)
class CpuSimBuild:
    """What compiling for cpu_sim gives."""

    engine: Engine
    root: Path
    manifest: Manifest
    from_cache: bool


def compile_cpu_sim(plan: TaskPlan, schedule: Schedule, arch: Arch, findings: tuple[Finding, ...], recorded: tuple[str, ...],
                    dumps: Mapping[str, str], options: CompileOptions, undefined: Mapping[int, np.ndarray]) -> CpuSimBuild:
    """Return the engine of a plan; `dumps`: the plan before and after its passes, by file; `undefined`: by tensor slot, the memory that
    a run finds without contents. A sanitized plan gives the order of its structure too: races are what it leaves to the data.

    Raises: C102 when the C compiler refuses a body of the user's own, and what the store raises.
    """
    if options.verify_passes:
        for use in plan.kernels:
            check_kernel_passes(use.kernel, context_of(use), KERNEL_PASSES)
    asked, plan = plan, replace(plan, structure=True) if options.sanitize else plan
    digest = plan_digest(plan)
    key = _key(digest, schedule, arch, recorded, dumps, options)
    found = lookup(key, Manifest)
    from_cache = found is not None
    if found is None:
        found = publish(key, c_ident(plan.name), Manifest,
                        lambda root: _build(root, plan, digest, schedule, arch, findings, recorded, dumps, options))
    root, manifest = found
    try:
        engine = engine_of(root, manifest, asked, options, undefined)
    except CompilerFailedError as problem:
        raise error_in_own_body((use.kernel for use in plan.kernels), problem) or problem from None
    return CpuSimBuild(engine, root, manifest, from_cache)


def engine_of(root: Path, manifest: Manifest, plan: TaskPlan, options: CompileOptions, undefined: Mapping[int, np.ndarray]) -> Engine:
    """Return what runs the library in `root`; `undefined`: as `compile_cpu_sim`.

    Raises: C102, C105 when it cannot be loaded.
    """
    artifact = _load(str(root), manifest.library, manifest.plan_digest)
    return Engine(artifact, plan, 1 if options.sanitize else options.threads, undefined=undefined if options.sanitize else None,
                  wall_trace=options.wall_trace)


def _key(digest: str, schedule: Schedule, arch: Arch, recorded: tuple[str, ...], dumps: Mapping[str, str], options: CompileOptions) -> str:
    parts = (digest, repr(schedule), arch.model_dump_json(), repr(recorded), "dump" if dumps else "", machine_key(options.portable),
             "check_finite" if options.check_finite else "", _generator_digest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def _generator_digest() -> str:
    """What turns a plan into files: the code generator, its templates and the C headers."""
    here_dir = Path(__file__).parent.parent
    return "".join((tree_digest(here_dir / "codegen", "*.py"), tree_digest(here_dir / "expr", "own_text.py"),
                    tree_digest(here_dir / "ops", "*.py"),
                    tree_digest(here_dir / "plan" / "kernel", "*.py"),
                    tree_digest(templates_dir(), "*.j2"), tree_digest(csrc_dir() / "include", "*.h")))


def _build(root: Path, plan: TaskPlan, digest: str, schedule: Schedule, arch: Arch, findings: tuple[Finding, ...],
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
        raise error_in_own_body((use.kernel for use in plan.kernels), problem) or problem from None
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


@lru_cache(maxsize=256)
def _load(root: str, library: str, digest: str) -> LoadedArtifact:
    return load_artifact(Path(root), library, digest)
