"""The cpu_sim target: a plan to a loaded library, from the cache where it has been built before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import LoadedArtifact, load_artifact, machine_key, package_key
from pto_wsp.artifact.manifest import Manifest
from pto_wsp.artifact.store import lookup
from pto_wsp.driver.options import CompileOptions
from pto_wsp.errors import CompilerFailedError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.written.digest import plan_digest
from pto_wsp.runtime.native.run import Engine
from pto_wsp.schedule.schedule import Schedule
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
        from pto_wsp.driver.cpu_sim_build import check_passes  # loads code generation and the interpreter

        check_passes(plan)
    asked, plan = plan, replace(plan, structure=True) if options.sanitize else plan
    digest = plan_digest(plan)
    key = _key(digest, schedule, arch, recorded, dumps, options)
    found = lookup(key, plan.name, Manifest)
    from_cache = found is not None
    if found is None:
        from pto_wsp.driver.cpu_sim_build import build_cpu_sim  # loads code generation: only a cache miss generates

        found = build_cpu_sim(key, plan, digest, schedule, arch, findings, recorded, dumps, options)
    root, manifest = found
    try:
        engine = engine_of(root, manifest, asked, options, undefined)
    except CompilerFailedError as problem:
        from pto_wsp.driver.cpu_sim_build import refusal  # loads code generation, which knows the user's lines

        raise refusal(plan, problem) from None
    return CpuSimBuild(engine, root, manifest, from_cache)


def engine_of(root: Path, manifest: Manifest, plan: TaskPlan, options: CompileOptions, undefined: Mapping[int, np.ndarray]) -> Engine:
    """Return what runs the library in `root`; `undefined`: as `compile_cpu_sim`.

    Raises: C102, C105 when it cannot be loaded.
    """
    artifact = _load(str(root), manifest.library, manifest.plan_digest)
    return Engine(artifact, plan, 1 if options.sanitize else options.threads, undefined=undefined if options.sanitize else None,
                  wall_trace=options.wall_trace)


def _key(digest: str, schedule: Schedule, arch: Arch, recorded: tuple[str, ...], dumps: Mapping[str, str], options: CompileOptions) -> str:
    parts = (digest, schedule.model_dump_json(), arch.model_dump_json(), repr(recorded), "dump" if dumps else "",
             machine_key(options.portable), "check_finite" if options.check_finite else "", package_key())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=32)      # the latest stay open for programs that are compiled again; the others are closed with their last program
def _load(root: str, library: str, digest: str) -> LoadedArtifact:
    return load_artifact(Path(root), library, digest)
