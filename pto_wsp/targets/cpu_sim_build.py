"""An artifact for cpu_sim: kernel passes, generated C, the compiler. Loaded where the cache has none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pto_wsp.artifact.build import ABI_VERSION, build_artifact
from pto_wsp.artifact.manifest import CheckEntry, Compiler, KernelEntry, Manifest
from pto_wsp.artifact.store import lookup, publish
from pto_wsp.artifact.toolchain import cpu_features
from pto_wsp.c.cpu_sim import SourceTree, emit_cpu_sim, symbols_of
from pto_wsp.c.own_body import error_in_own_body
from pto_wsp.c.syntax import c_ident
from pto_wsp.check.verdict import Finding
from pto_wsp.errors import CompilerFailedError, PtoError
from pto_wsp.ir.digest import plan_digest
from pto_wsp.ir.execution_rules import print_rules
from pto_wsp.ir.kernel_text import print_kernel, print_param
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.passes.kernel.context import context_of, unit_of
from pto_wsp.passes.kernel.passes import KERNEL_PASSES, KernelPass
from pto_wsp.run.pass_check import check_kernel_passes
from pto_wsp.targets.dumps import observer
from pto_wsp.targets.entries import symbol_entries, tensor_entries
from pto_wsp.targets.replacing import text_key
from pto_wsp.targets.request import CompileRequest
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class _Generated:
    """The C of an artifact, and what dump=True writes beside it, by file."""

    tree: SourceTree
    files: Mapping[str, str]


def build_cpu_sim(request: CompileRequest, plan: TaskPlan, findings: tuple[Finding, ...], key: str, passes: tuple[KernelPass, ...],
                  ) -> tuple[tuple[Path, Manifest], bool]:
    """Generate and compile the artifact of a plan, publish it, and return its folder and manifest, and whether the store had it.

    With the package's own passes it is known by `key`, what it is made from. With functions of the user's in place of some, whose text
    nobody knows, it is known by its own text as well, and looked up by that.
    Raises: C102 when the C compiler refuses a body of the user's own, and what the store raises.
    """
    generated: _Generated | None = None
    if request.runner.replaced:
        generated = _generated(request, plan, passes)
        key = text_key(key, generated.files)
        found = lookup(key, plan.name, Manifest)
        if found is not None:
            return found, True
    return publish(key, plan.name, Manifest,
                   lambda root: _fill(root, request, plan, findings, generated or _generated(request, plan, passes))), False


def check_passes(request: CompileRequest, plan: TaskPlan) -> None:
    """Hold the kernels' passes that run to the interpreter: same numbers before and after each."""
    for use in plan.kernels:
        check_kernel_passes(use.kernel, context_of(use), request.runner.kept(KERNEL_PASSES))


def refusal(plan: TaskPlan, problem: CompilerFailedError) -> PtoError:
    """Return what the compiler refused as the user's error, at the line of a body of the user's own where it is in one."""
    return error_in_own_body((use.kernel for use in plan.kernels), problem) or problem


def _generated(request: CompileRequest, plan: TaskPlan, passes: tuple[KernelPass, ...]) -> _Generated:
    dumps: dict[str, str] = {}
    lowered = tuple(request.runner.run(use.kernel, context_of(use), passes,
                                       observer(dumps, f"{symbol}/", print_kernel) if request.dumps else None)
                    for symbol, use in zip(symbols_of(plan), plan.kernels, strict=True))
    tree = emit_cpu_sim(plan, lowered, plan_digest(plan))
    return _Generated(tree, {**tree.files, **request.dumps, **dumps})


def _fill(root: Path, request: CompileRequest, plan: TaskPlan, findings: tuple[Finding, ...], generated: _Generated) -> Manifest:
    """Fill an empty folder with the artifact and return its manifest, not sealed yet."""
    library, tree, options = f"lib{c_ident(plan.name)}.so", generated.tree, request.options
    try:
        version, flags = build_artifact(root, generated.files, library, tree.unit, portable=options.portable)
    except CompilerFailedError as problem:
        raise refusal(plan, problem) from None
    return Manifest(
        abi_version=ABI_VERSION, target=request.target, arch=request.arch.name, name=plan.name, library=library,
        plan_digest=plan_digest(plan), kernels=_kernel_entries(plan, tree), rules=tuple(print_rules(plan.rules)),
        tensors=tensor_entries(plan.tensors), symbols=symbol_entries(plan.symbols),
        schedule=request.schedule.model_dump_json(), recorded_directives=request.recorded,
        checks=tuple(CheckEntry(check=f.check, verdict=f.verdict.value, detail=f.detail) for f in findings),
        compiler=Compiler(version=version, flags=flags, cpu=("portable",) if options.portable else cpu_features()))


def _kernel_entries(plan: TaskPlan, tree: SourceTree) -> tuple[KernelEntry, ...]:
    return tuple(
        KernelEntry(id=k, name=use.kernel.name, unit=unit_of(use.kernel).value, entry=emitted.symbol, scratch_bytes=emitted.scratch_bytes,
                    cost=print_scalar(use.cost), source=use.kernel.span.short,
                    params=tuple(print_param(p) for p in use.kernel.params))
        for k, (use, emitted) in enumerate(zip(plan.kernels, tree.kernels, strict=True)))
