"""Lower a traced function: its plan by the passes, a module of the level below by the emitter, a workload on tensors, a program.

Only what is not in a cache comes here: the passes and the emitter load when they are first needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from pto_wsp.api.program import Program
from pto_wsp.api.tensors.fitting import fitted
from pto_wsp.api.tensors.options import DEFAULT_TARGET, JitOptions, arch_of
from pto_wsp.api.tensors.tensor_workload import TensorWorkload
from pto_wsp.arch.model import Arch
from pto_wsp.check.coverage import check_coverage, unwritten_warnings
from pto_wsp.check.unordered import check_unordered
from pto_wsp.check.verdict import CheckList
from pto_wsp.errors import (
    JitOptionError,
    MeshError,
    PassError,
    TensorTypeMismatchError,
    UnknownPassError,
    raise_all,
)
from pto_wsp.ir.exchange import Array
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import Number
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.ir.tensor_layout import TensorLayout
from pto_wsp.passes.pipeline import PassRun, Runner
from pto_wsp.passes.tensor.effects import named_by
from pto_wsp.passes.tensor.emit import emit
from pto_wsp.passes.tensor.emitted import EmittedModule
from pto_wsp.passes.tensor.group_costs import axis_names
from pto_wsp.passes.tensor.passes import TENSOR_PASSES, TensorPass, run_tensor_passes
from pto_wsp.passes.tensor.place_shards import MeshPlacement, place_shards
from pto_wsp.passes.tensor.planned import USUAL_SIZE, LocalArrays, PlannedFunction, TensorContext
from pto_wsp.passes.tensor.rank_moves import without_moves
from pto_wsp.run.tensor_pass_check import check_tensor_passes, difference_of_functions, drawn_arguments
from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, names_of
from pto_wsp.source import here
from pto_wsp.trace.tensor.signature import ArrayLeaf, BoundArguments, sizes_of
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest

Replaced: TypeAlias = Mapping[str, Callable[[PlannedFunction, TensorContext], PlannedFunction]]

_BEFORE_RANKS = tuple(one for one in TENSOR_PASSES if one.name == "simplify")
_HOST = "host_cpu"
_WITHOUT_MEMORIES = "unit"      # this machine's capacities stand in on it
_DRAWN_SIZE = 5                 # of symbols, where a function of the user's in place of a pass is tried


def context_of(arch: Arch, target: str, sizes: Mapping[str, int], ranks: LocalArrays | None = None) -> TensorContext:
    """Return what the passes know beside the function and the plan. `ranks`: of a function that was placed on a mesh."""
    return TensorContext(arch_of(_HOST) if arch.name == _WITHOUT_MEMORIES else arch, target, sizes, ranks)


def placed(function: TensorFunction, bound: BoundArguments, mesh: Mesh | None) -> tuple[TensorFunction, LocalArrays | None]:
    """Return a function as one rank runs it, and the whole array of each part; without a mesh, the function without its collectives.

    Raises: M102 for arguments with a layout where no mesh is known, J109 for sizes that only a run knows; what placing it raises.
    """
    layouts = [given.layout if isinstance(given, Tensor) else None for given in bound.given]
    if mesh is None:
        named = next((leaf.path for leaf, layout in zip(bound.leaves, layouts, strict=True) if layout is not None), None)
        if named is not None:
            axes = dict.fromkeys(axis for layout in layouts if layout is not None for axis in layout.axes if isinstance(axis, str))
            shape = ", ".join(f"{axis}=2" for axis in axes or ("x",))
            raise MeshError(f"`{function.name}`: argument `{named}` has a layout, and no mesh is known", here(), expected="a mesh",
                            help=f"{function.name}.using(mesh=Mesh({shape}))(...) runs the function over the ranks of a mesh")
        return without_moves(function), None
    known = sizes_of(bound.leaves, [given.ref.shape if isinstance(given, Tensor) and not given.sized_by_runs else
                                    None if array is None else array.shape for given, array in zip(bound.given, bound.arrays, strict=True)])
    unknown = [symbol.name for symbol in function.symbols if symbol.name not in known]
    if unknown:
        raise TensorTypeMismatchError(f"`{function.name}` over ranks: nobody says how many {unknown[0]} is", here(),
                                      expected="arrays, or Tensors with a shape of numbers", help="f.lower(plan, x=X, ...) takes Tensors")
    simple = run_tensor_passes(PlannedFunction(function, empty_plan(function, arch_of(_HOST), DEFAULT_TARGET, {})),
                               context_of(arch_of(_HOST), DEFAULT_TARGET, {}), _BEFORE_RANKS).function
    given_layouts = tuple(_whole(leaf) if layout is None else layout.named_on(mesh)
                          for leaf, layout in zip(bound.leaves, layouts, strict=True))
    return place_shards(simple, MeshPlacement(mesh, given_layouts, known))


def _whole(leaf: ArrayLeaf) -> TensorLayout:
    """Return the layout of an argument that has none: every rank has all of it."""
    made = TensorLayout.replicated(len(leaf.type.extents))
    made.span = leaf.span
    return made


@dataclass(frozen=True, slots=True)
class Traces:
    """How a function with Tunable parameters is traced: the names of these, and the function for the values that a plan has of them."""

    tunables: tuple[str, ...]
    of: Callable[[TilePlan], TensorFunction]


def plan_of(function: TensorFunction, given: TilePlan | None, arch: Arch, target: str, sizes: Mapping[str, int],
            traces: Traces | None = None, ranks: LocalArrays | None = None) -> PlannedFunction:
    """Return the function in tiled form, and the plan with every choice. `given`: a plan whose entries are followed.

    `ranks`: of a function that was placed on a mesh.
    Raises: J302 to J304, J306 for a plan that does not fit the function.
    """
    sizes = planned_sizes(function, sizes if ranks is None else {**sizes, **ranks.sizes})
    context = context_of(arch, target, sizes, ranks)
    if given is not None and (carried := _planning_of(given, function, context)) is not None:
        return replace(carried.planned, plan=given)
    planner = planner_of(function, context, traces)
    plan = _chosen(function, empty_plan(function, arch, target, sizes), context, planner) if given is None else \
        given.used_with(function.name, planner)
    known = _planning_of(plan, function, context)
    planned = run_tensor_passes(PlannedFunction(function, replace(plan, planner=None)), context) if known is None else known.planned
    return replace(planned, plan=plan)


@dataclass(frozen=True, slots=True, eq=False)
class _Planning:
    """What the passes made of a function by a plan, which stands in it without its planner: `planned`."""

    function: TensorFunction
    context: TensorContext
    planned: PlannedFunction


def _chosen(function: TensorFunction, plan: TilePlan, context: TensorContext, planner: Planner) -> TilePlan:
    """Return a plan with every choice; its planner carries what the passes made of the function."""
    planned = fitted(PlannedFunction(function, plan), context)
    return replace(planned.plan, planner=replace(planner, planned=_Planning(function, context, planned),
                                                 planned_names=partial(_planned_names, planner.names, planned)))


def _planned_names(names: FunctionNames, planned: PlannedFunction) -> FunctionNames:
    """Return the names of a function with those of its kernels, their axes, and the values that the passes made."""
    kernels = [(name, {key: group.axes.extent(axis) for axis, key in sorted(axis_names(group).items())})
               for name, group in planned.groups.items()]
    return names.with_plan(kernels, (array for group in planned.groups.values() for one in group.statements for array in named_by(one)))


def _planning_of(plan: TilePlan, function: TensorFunction, context: TensorContext) -> _Planning | None:
    """Return what the passes made of this very function by this very plan, if the plan carries that."""
    known = None if plan.planner is None else plan.planner.planned
    if not isinstance(known, _Planning) or known.function is not function or context.ranks is not known.context.ranks:
        return None
    same = plan.entries is known.planned.plan.entries and plan == known.planned.plan and plan.sizes == known.planned.plan.sizes
    return known if same and (context.arch, context.target) == (known.context.arch, known.context.target) else None


def check_passes(function: TensorFunction, plan: TilePlan | None, arch: Arch, target: str, arrays: Sequence[Array],
                 numbers: Mapping[str, Number]) -> None:
    """Evaluate a function before and after each pass on the arrays of a call, as `verify_passes=True` asks; the arrays stay as they are.

    Raises: InternalError naming the pass that changed what is computed; what the passes raise.
    """
    sizes = planned_sizes(function, {} if plan is None else dict(plan.sizes))
    used = empty_plan(function, arch, target, sizes) if plan is None else plan
    check_tensor_passes(PlannedFunction(function, replace(used, planner=None)), context_of(arch, target, sizes), arrays, numbers)


def planned_sizes(function: TensorFunction, given: Mapping[str, int]) -> Mapping[str, int]:
    """Return the sizes that symbols are planned for, beside the usual size: the given ones, and promised bounds that are smaller."""
    return {**{name: most for name, most in function.bounds.items() if most < USUAL_SIZE}, **given}


def empty_plan(function: TensorFunction, arch: Arch, target: str, sizes: Mapping[str, int]) -> TilePlan:
    """Return the plan that says nothing, for the sizes that costs are computed for."""
    planned_for = tuple((symbol.name, sizes.get(symbol.name, USUAL_SIZE)) for symbol in function.symbols)
    return TilePlan(function.name, arch.name, target, planned_for)


def used_plan(function: TensorFunction, given: TilePlan, context: TensorContext, traces: Traces | None = None) -> TilePlan:
    """Return a plan, from a file or of another trace of the function, held against the function's names and complete."""
    return given.used_with(function.name, planner_of(function, context, traces))


def planner_of(function: TensorFunction, context: TensorContext, traces: Traces | None = None) -> Planner:
    """Return what makes the entries of a function that a plan does not say."""
    def choose(plan: TilePlan) -> TilePlan:
        traced = traces.of(plan) if traces is not None and traces.tunables else function
        return _chosen(traced, plan, context, planner)

    planner = Planner(names_of(function, () if traces is None else traces.tunables), choose)
    return planner


def planned_until(function: TensorFunction, plan: TilePlan, context: TensorContext, until: object) -> PlannedFunction:
    """Return the function and its plan as they are after the pass of a name.

    Raises: C114 for a name that no pass has.
    """
    names = [one.name for one in TENSOR_PASSES]
    if until not in names:
        raise _no_pass(until, names)
    return run_tensor_passes(PlannedFunction(function, replace(plan, planner=None)), context, TENSOR_PASSES[:names.index(str(until)) + 1])


def with_passes(function: TensorFunction, plan: TilePlan, context: TensorContext, passes: Replaced) -> PlannedFunction:
    """Return the function in tiled form, by functions of the user's in place of the passes of their names.

    Raises: C114 for a name that no pass has; C113 where a function gives something else, or changes what is computed.
    """
    names = [one.name for one in TENSOR_PASSES]
    if not isinstance(passes, Mapping):
        raise JitOptionError("passes= takes functions by the names of passes", here(), expected='{"partition": function}',
                                found=repr(passes)[:80])
    for name in passes:
        if name not in names:
            raise _no_pass(name, names)
    own: Sequence[TensorPass] = [replace(one, run=_checked(one.name, passes[one.name])) if one.name in passes else one
                                 for one in TENSOR_PASSES]
    return run_tensor_passes(PlannedFunction(function, replace(plan, planner=None)), context, tuple(own))


def _checked(name: str, function: Callable[..., object]) -> Callable[[PlannedFunction, TensorContext], PlannedFunction]:
    def run(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
        made = function(planned, context)
        if not isinstance(made, PlannedFunction):
            raise PassError(f"the function for pass `{name}` gives no function with its plan", here(), expected="a PlannedFunction",
                            found=repr(made)[:80])
        before = planned.function
        arrays = drawn_arguments(before, {symbol.name: _DRAWN_SIZE for symbol in before.symbols}, seed=0)
        changed = difference_of_functions(before, made.function, arrays, {scalar.name: 1 for scalar in before.scalars})
        if changed is not None:
            raise PassError(f"the function for pass `{name}` changes what `{before.name}` computes", here(),
                            expected="the same numbers before and after", found=changed[:200])
        return made

    return run


def _no_pass(name: object, names: Sequence[str]) -> UnknownPassError:
    near = nearest(str(name), names)
    return UnknownPassError(f"no pass of functions on tensors is called {name!r}", here(), expected=f"one of {', '.join(names)}",
                            help=f"did you mean {near}?" if near else None)


def steps_of(function: TensorFunction, plan: TilePlan, context: TensorContext) -> tuple[PassRun, ...]:
    """Return what each pass does to a function under a complete plan: its changes and its seconds."""
    runner = Runner(until=TENSOR_PASSES[-1].name)
    runner.run(PlannedFunction(function, replace(plan, planner=None)), context, TENSOR_PASSES)
    return tuple(runner.ran)


def workload_of(function: TensorFunction, planned: PlannedFunction, context: TensorContext, tensors: Mapping[str, Tensor],
                numbers: Mapping[str, Number], dump: bool = False) -> TensorWorkload:
    """Return a function, which is `planned` in tiled form, as a workload on tensors, by the paths of parameters and the names of results.

    `numbers`: of Scalars, by name. `dump`: keep what each pass does.
    """
    emitted = emit(planned, context)
    again = partial(steps_of, function, planned.plan, context)
    return TensorWorkload.of(emitted.workload(tensors, numbers), emitted.source, planned.plan, covered(planned.function), again,
                             again() if dump else ())


def program_of(function: TensorFunction, planned: PlannedFunction, options: JitOptions, arch: Arch,
               ranks: LocalArrays | None = None) -> tuple[Program, EmittedModule]:
    """Return the program of a function, which is `planned` in tiled form; each run binds its arrays and sizes."""
    checks = covered(planned.function)
    context = context_of(arch, options.target, {}, ranks)
    emitted = emit(planned, context)
    again = partial(steps_of, function, planned.plan, context)
    workload: Any = TensorWorkload.of(emitted.workload(), emitted.source, planned.plan, checks, again)
    if options.schedule is not None:
        workload = workload.under(options.schedule)
    verified = options.target == "interp" and options.rest.get("verify_passes") is True      # whose kernels have no passes
    rest = {name: value for name, value in options.rest.items() if name != "verify_passes" or not verified}
    priced = arch if arch.gives_costs else arch_of(_WITHOUT_MEMORIES)      # a call runs here, whatever machine its plan is for
    program: Program = workload.compile(options.target or DEFAULT_TARGET, arch=priced, **rest)
    return program, emitted


def covered(function: TensorFunction) -> CheckList:
    """Return the proof of the writes of a function in tiled form; warn of reads of elements that perhaps nothing wrote.

    Raises: W201 for iterations without an order that touch one element.
    """
    apart = check_unordered(function)
    raise_all([finding.error for finding in apart if finding.error is not None])
    findings, unwritten = check_coverage(function)
    for text, span in unwritten_warnings(unwritten):
        warnings.warn_explicit(text, UserWarning, span.file, span.line)
    return CheckList((*findings, *apart))
