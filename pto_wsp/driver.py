"""compile(): the whole pipeline on one page.

workload + schedule → plan → passes → checks → C sources → artifact → loaded library. Every stage is a function of values.
"""

from __future__ import annotations

import difflib
import hashlib
import time
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import ABI_VERSION, LoadedArtifact, build_artifact, load_artifact, machine_key, tree_digest
from pto_wsp.artifact.manifest import CheckEntry, Compiler, KernelEntry, Manifest, SymbolEntry, TensorEntry
from pto_wsp.artifact.store import lookup, publish
from pto_wsp.artifact.toolchain import cache_bytes, cpu_features
from pto_wsp.codegen.c.syntax import c_ident
from pto_wsp.codegen.cpu_sim import SourceTree, emit_cpu_sim, symbols_of
from pto_wsp.codegen.kernel.own_body import error_in_own_body
from pto_wsp.errors import CompileOptionError, CompilerFailedError, DirectiveError, raise_all
from pto_wsp.expr import workload as wl
from pto_wsp.expr.kernel import Kernel
from pto_wsp.expr.kernel_text import print_kernel, print_param
from pto_wsp.plan.capability import TARGETS, Capability, capabilities
from pto_wsp.plan.digest import plan_digest
from pto_wsp.plan.kernel.check_finite import CHECKED_PASSES
from pto_wsp.plan.kernel.context import context_of
from pto_wsp.plan.kernel.passes import KERNEL_PASSES, run_kernel_passes
from pto_wsp.plan.lower import lower
from pto_wsp.plan.model import Context, TaskPlan, TensorSlot
from pto_wsp.plan.passes import run_passes
from pto_wsp.plan.text import print_plan
from pto_wsp.records import Field, Record, first_problem
from pto_wsp.resources import csrc_dir, templates_dir
from pto_wsp.runtime.interp import Interpreter
from pto_wsp.runtime.native import Engine
from pto_wsp.runtime.pass_check import check_kernel_passes
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.types.scalar import print_scalar
from pto_wsp.values import dataclass
from pto_wsp.verify.bodies import missing_bodies
from pto_wsp.verify.bounds import check_bounds
from pto_wsp.verify.capacity import capacity_errors
from pto_wsp.verify.verdict import Finding

_LATER = ("overheads", "sanitize", "options")


class CompileOptions(Record):
    """What compile() takes beside target, arch and strict."""

    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = Field(
        default=None, description="host threads; None: all that this process may use")
    portable: Annotated[bool, Field(strict=True)] = Field(default=False, description="code for the baseline CPU instead of this one")
    dump: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="write plan and kernels before and after each pass into ir/")
    check_finite: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="end a run at the first operation that makes a NaN or infinity out of finite numbers; slow")
    verify_passes: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="run each kernel before and after each of its passes and compare the numbers")


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """What compile() makes: the plan, what was found out about it, and what runs it."""

    plan: TaskPlan
    target: str
    arch: Arch
    schedule: Schedule
    findings: tuple[Finding, ...]
    runner: Engine | Interpreter
    artifact_dir: Path | None
    manifest: Manifest | None
    compile_time_ms: float
    from_cache: bool


def compile_workload(workload: wl.Workload, schedule: Schedule, *, target: str, arch: object, strict: bool,
                     options: Mapping[str, object]) -> Compiled:
    """Lower a workload (in canonical form) under a schedule and build what runs it.

    Raises: C104 for unknown options, S101 for directives that the target does not enforce, T301 for views outside their tensors,
    and whatever the stages raise.
    """
    started = time.perf_counter()
    _check_target(target)
    if not isinstance(strict, bool):
        raise CompileOptionError("compile() option `strict` does not take this value", here(), expected="True or False",
                                 found=repr(strict))
    checked, model = read_options(options), _read_arch(arch)
    if target == "interp" and checked != CompileOptions(check_finite=checked.check_finite):
        refused = ", ".join(name for name in options if name != "check_finite")
        raise CompileOptionError(f"target interp has no {refused}", here(),
                                 help="these options are for targets that generate code")
    recorded = _check_directives(schedule, target, strict=strict)
    dumps: dict[str, str] = {}
    context = Context(schedule, model, None if target == "interp" or checked.portable else cache_bytes())
    plan = run_passes(lower(workload), context, observe=_dumper(dumps) if checked.dump else None)
    raise_all(missing_bodies((use.kernel for use in plan.kernels), target))
    findings = check_bounds(plan)
    raise_all([finding.error for finding in findings if finding.error is not None])
    raise_all(capacity_errors((use.kernel for use in plan.kernels), model))
    if target == "interp":
        interpreter = Interpreter(plan, check_finite=checked.check_finite)
        return Compiled(plan, target, model, schedule, findings, interpreter, None, None, _since(started), False)
    if checked.verify_passes:
        for use in plan.kernels:
            check_kernel_passes(use.kernel, context_of(use), KERNEL_PASSES)
    digest = plan_digest(plan)
    key = _key(digest, schedule, model, recorded, dumps, checked)
    found = lookup(key)
    from_cache = found is not None
    if found is None:
        found = publish(key, c_ident(plan.name), lambda root: _build(root, plan, digest, schedule, model, findings, recorded, dumps,
                                                                     checked))
    root, manifest = found
    try:
        artifact = _load(str(root), manifest.library, digest)
    except CompilerFailedError as problem:
        raise error_in_own_body((use.kernel for use in plan.kernels), problem) or problem from None
    engine = Engine(artifact, plan, checked.threads)
    return Compiled(plan, target, model, schedule, findings, engine, root, manifest, _since(started), from_cache)


def read_options(options: Mapping[str, object]) -> CompileOptions:
    """Return checked options.

    Raises: C104 naming the nearest option, or the value that does not fit.
    """
    known = list(CompileOptions.model_fields)
    for name in options:
        if name in _LATER:
            raise CompileOptionError(f"compile() option `{name}` is not supported yet", here(), expected=f"one of {', '.join(known)}")
        if name not in known:
            near = difflib.get_close_matches(name, ["target", "arch", "strict", *known], 1)
            raise CompileOptionError(f"compile() has no option `{name}`", here(), expected=f"one of {', '.join(known)}",
                                     help=f"did you mean {near[0]}=...?" if near else None)
    try:
        return CompileOptions.model_validate(dict(options))
    except ValueError as problem:
        name, expected, found = first_problem(problem)
        raise CompileOptionError(f"compile() option `{name}` does not take this value", here(), expected=expected,
                                 found=repr(found)) from None


def _check_target(target: object) -> None:
    if target not in TARGETS:
        later = target in ("ascend_npu", "pto")
        raise CompileOptionError(f"target {target!r} is not supported yet" if later else f"there is no target {target!r}", here(),
                                 expected=f"one of {', '.join(TARGETS)}")


def _read_arch(arch: object) -> Arch:
    if isinstance(arch, Arch):
        return arch
    return builtin_arch("unit" if arch is None else str(arch))


def _check_directives(schedule: Schedule, target: str, *, strict: bool) -> tuple[str, ...]:
    """Return the directives that are only recorded; refuse them when `strict`."""
    able = capabilities(target)
    refused = [(name, text) for name, text in schedule.directives() if able[name] is not Capability.ENFORCED]
    if strict:
        raise_all([DirectiveError(f"target {target} does not enforce {name}", here(), found=text,
                                  expected=_alternatives(name, able),
                                  help="drop it, or compile(..., strict=False) to have it recorded and not enforced")
                   for name, text in refused])
    elif refused:
        names = ", ".join(name for name, _ in refused)
        span = here()
        warnings.warn_explicit(f"recorded and not enforced by target {target}: {names}", UserWarning, span.file, span.line)
    return tuple(text for _, text in refused)


def _alternatives(name: str, able: Mapping[str, Capability]) -> str:
    """The directives of the same kind that the target does enforce."""
    kind = name.rsplit(".", 1)[0] + "." if "." in name else name
    others = [other for other, status in able.items() if status is Capability.ENFORCED and other.startswith(kind)]
    return f"one of {', '.join(others)}" if others else "no such directive: no target of this version enforces it"


def _key(digest: str, schedule: Schedule, arch: Arch, recorded: tuple[str, ...], dumps: Mapping[str, str], options: CompileOptions) -> str:
    parts = (digest, repr(schedule), arch.model_dump_json(), repr(recorded), "dump" if dumps else "", machine_key(options.portable),
             "check_finite" if options.check_finite else "", _generator_digest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def _generator_digest() -> str:
    """What turns a plan into files: the code generator, its templates and the C headers."""
    here_dir = Path(__file__).parent
    return "".join((tree_digest(here_dir / "codegen", "*.py"), tree_digest(here_dir / "expr", "own_text.py"),
                    tree_digest(here_dir / "ops", "*.py"),
                    tree_digest(here_dir / "plan" / "kernel", "*.py"),
                    tree_digest(templates_dir(), "*.j2"), tree_digest(csrc_dir() / "include", "*.h")))


def _build(root: Path, plan: TaskPlan, digest: str, schedule: Schedule, arch: Arch, findings: tuple[Finding, ...],
           recorded: tuple[str, ...], dumps: Mapping[str, str], options: CompileOptions) -> Manifest:
    """Fill an empty folder with the artifact and return its manifest, not sealed yet."""
    kernel_dumps: dict[str, str] = {}
    passes = CHECKED_PASSES if options.check_finite else KERNEL_PASSES
    lowered = tuple(run_kernel_passes(use.kernel, context_of(use), passes, _kernel_dumper(kernel_dumps, symbol) if dumps else None)
                    for symbol, use in zip(symbols_of(plan), plan.kernels, strict=True))
    tree = emit_cpu_sim(plan, lowered, digest)
    library = f"lib{c_ident(plan.name)}.so"
    try:
        version, flags = build_artifact(root, {**tree.files, **dumps, **kernel_dumps}, library, tree.unit, portable=options.portable)
    except CompilerFailedError as problem:
        raise error_in_own_body((use.kernel for use in plan.kernels), problem) or problem from None
    return Manifest(
        abi_version=ABI_VERSION, target="cpu_sim", arch=arch.name, name=plan.name, library=library, plan_digest=digest,
        kernels=_kernel_entries(plan, tree),
        tensors=tuple(TensorEntry(slot=k, name=slot.ref.shown, dtype=str(slot.ref.dtype), shape=slot.ref.shape, access=_access(slot))
                      for k, slot in enumerate(plan.tensors)),
        symbols=tuple(SymbolEntry(slot=k, name=symbol.name, dtype=str(symbol.dtype), default=symbol.default)
                      for k, symbol in enumerate(plan.symbols)),
        schedule=schedule.model_dump_json(), recorded_directives=recorded,
        checks=tuple(CheckEntry(check=f.check, verdict=f.verdict.value, detail=f.detail) for f in findings),
        compiler=Compiler(version=version, flags=flags, cpu=("portable",) if options.portable else cpu_features()))


def _kernel_entries(plan: TaskPlan, tree: SourceTree) -> tuple[KernelEntry, ...]:
    return tuple(
        KernelEntry(id=k, name=use.kernel.name, unit="vector", entry=emitted.symbol, scratch_bytes=emitted.scratch_bytes,
                    cost=print_scalar(use.cost), source=use.kernel.span.short,
                    params=tuple(print_param(p) for p in use.kernel.params))
        for k, (use, emitted) in enumerate(zip(plan.kernels, tree.kernels, strict=True)))


def _access(slot: TensorSlot) -> Literal["in", "out", "inout", "scalars"]:
    if slot.reads and slot.writes:
        return "inout"
    return "out" if slot.writes else "in" if slot.reads else "scalars"


@lru_cache(maxsize=256)
def _load(root: str, library: str, digest: str) -> LoadedArtifact:
    return load_artifact(Path(root), library, digest)


def _dumper(dumps: dict[str, str]) -> Callable[[str, TaskPlan, TaskPlan], None]:
    def observe(name: str, before: TaskPlan, after: TaskPlan) -> None:
        number = len(dumps) // 2
        dumps[f"ir/{number:02}_before_{name}.wsp"] = print_plan(before)
        dumps[f"ir/{number:02}_after_{name}.wsp"] = print_plan(after)
    return observe


def _kernel_dumper(dumps: dict[str, str], symbol: str) -> Callable[[str, Kernel, Kernel], None]:
    """A kernel's passes are numbered on their own, in a folder named after its C function."""
    first = len(dumps)

    def observe(name: str, before: Kernel, after: Kernel) -> None:
        number = (len(dumps) - first) // 2
        dumps[f"ir/{symbol}/{number:02}_before_{name}.wsp"] = print_kernel(before) + "\n"
        dumps[f"ir/{symbol}/{number:02}_after_{name}.wsp"] = print_kernel(after) + "\n"
    return observe


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1e3
