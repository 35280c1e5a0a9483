"""Check a plan for races: return a finding for each tensor that tasks write, and an error for each pair of accesses shown to race.

A pair is decided in two steps. First the solver is asked for every size that a run may bind. If that does not prove the pair apart, the
solver is asked for the declared sizes, which give the witness; a race that needs other sizes stays open. A witness is confirmed on the
plan's own expressions before the user sees an error. Accesses in processes may also be ordered by tokens, credits and events.

The module also reports false order, as a hint: an ordered loop whose iterations touch different elements, and an `after=` between tasks
that touch nothing in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from pto_wsp.check.races.accesses import Contest, SiteAccess, accesses_of, contests_of
from pto_wsp.check.races.decide import Apart, NotProved, Outcome, decide, decide_in_pieces, decide_unordered
from pto_wsp.check.races.filters import alike, is_apart, ordered_by_streams, pairs_of
from pto_wsp.check.races.picture import race_regions
from pto_wsp.check.races.question import Data, Pair, Question, data_of
from pto_wsp.check.races.tokens import order_of, ordered_by_tokens, perhaps_ordered
from pto_wsp.check.races.witness import Concurrent, Witness, unordered_instances
from pto_wsp.check.skeleton import Uncountable
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import RaceError, UnprovedOrderError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Loop, Pipeline, Process, Sides, communicates, slots_set, walk
from pto_wsp.ir.kernel import Role
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.plan import Item, PlanLoop, PlanPipeline, PlanProcess, PlanSides, Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.scalar import Scalar
from pto_wsp.source import Span
from pto_wsp.values import dataclass


def pipeline_error(found: Concurrent, node: PlanLoop | PlanSides | PlanPipeline | PlanProcess, plan: TaskPlan) -> RaceError:
    """Return the error of two instances in processes, with the order of tokens that leaves them free."""
    pair = found.witness.pair
    homes = [level for access in pair.accesses for level in access.levels[pair.depth:pair.depth + 1] if isinstance(level, Process)]
    notes: list[str] = []
    for channel in dict.fromkeys((*found.tokens[0], *found.tokens[1])):
        moved = [_tokens_text(channel, home, tokens.get(channel, 0)) for home, tokens in zip(homes, found.tokens, strict=True)]
        if all(moved):
            notes.append(f"`{plan.channels[channel].name}`, depth {plan.channels[channel].depth}: the first comes after {moved[0]}, "
                         f"the second after {moved[1]}; no chain of tokens leads from one to the other")
    return race_error(found.witness, node, tuple(notes) or (
        "no chain of program order, tokens, credits and events leads from one to the other",))


def _tokens_text(channel: int, home: PlanProcess, n: int) -> str:
    """Say how many tokens of a channel a process has moved; empty where it does not use the channel."""
    if channel in home.produces:
        return f"{n} sent"
    return f"{n} taken" if channel in home.consumes else ""


def race_error(witness: Witness, node: PlanLoop | PlanSides | PlanPipeline | PlanProcess, order: tuple[str, ...] = (),
               inside: Apart | NotProved | None = None) -> RaceError:
    """Return the error of a witness; `node`: what leaves the two without an order; `order`: how tokens leave them so.

    `inside`: why the pieces that the kernels touch of their regions are not proved apart.
    """
    first, second = witness.pair.accesses
    name = first.view.tensor.shown
    both_write = first.role.writes and second.role.writes
    what = f"tasks without an order between them write {'' if both_write else 'and read '}the same elements of `{name}`"
    if first.by_workload or second.by_workload:
        what = f"the workload reads elements of `{name}` without an order to the tasks that write them"
    notes = order
    notes += (f"for example with {', '.join(f'{key} = {value}' for key, value in witness.given.items())}",) if witness.given else ()
    help_text = _help(witness, node, overwritten=bool(order))
    if isinstance(inside, NotProved):
        notes += (f"parts that kernels touch may be the same: {inside.reason}",)
        plain = [table.shown for table in inside.tables if Contract.INJECTIVE not in table.contracts]
        if plain:
            help_text = f"Injective({plain[0]}) promises that no two entries are equal, which each run checks; or P.seq(...)"
    also = () if first.span == second.span else ((f"{second.verb} here", second.span),)
    error = RaceError(what, first.span, also=also, expected=f"{_unordered_text(node)} touch different elements, or only read",
                      found=f"{witness.elements} is {_accesses_text(witness)}", help=help_text, notes=notes)
    error.picture = race_regions(witness, node)
    return error


def _accesses_text(witness: Witness) -> str:
    first, second = witness.pair.accesses
    if not witness.iteration(0) and not witness.iteration(1):
        if first.combine or second.combine:
            return f"{first.verb} by one and {second.verb} by the other"
        return "written by both" if first.verb == second.verb else "written by one and read by the other"
    again = "again" if first.verb == second.verb else second.verb
    return f"{first.verb}{_where(witness, 0)}, and {again}{_where(witness, 1)}"


def _where(witness: Witness, side: int) -> str:
    iteration = witness.iteration(side)
    return f" where {iteration}" if iteration else ""


def _unordered_text(node: PlanLoop | PlanSides | PlanPipeline | PlanProcess) -> str:
    match node:
        case Loop():
            return f"iterations of `{node.known_var.name}`"
        case Sides():
            return "sides without an order"
        case Process():
            return f"replicas of process `{node.name}`"
        case Pipeline():
            return "processes"


def _help(witness: Witness, node: PlanLoop | PlanSides | PlanPipeline | PlanProcess, *, overwritten: bool) -> str:
    name = witness.pair.first.view.tensor.shown
    match node:
        case Loop():
            var = node.known_var.name
            if all(access.role is Role.INOUT and not access.combine for access in witness.pair.accesses):
                return f"P.seq(...) runs the iterations of `{var}` in order; or, if they add to `{name}`, Acc[Tile[...]] in place of InOut"
            return f"P.seq(...) runs the iterations of `{var}` in order; or give `{name}` one more dimension, a place for each `{var}`"
        case Sides():
            return "sequential(...) or >> puts the sides in order"
        case Process():
            return f"give `{name}` a place for each token, or run the process once"
        case Pipeline():
            if any(access.role.reads and not access.role.writes for access in witness.pair.accesses) and overwritten:
                return f"give `{name}` more places (depth + 2 between neighbours), or take a token back before one is written again"
            return "send a token after the first task, and receive it before the second"


# -- false order -------------------------------------------------------------------------------------------------------
_CHECK = "false order"


def false_order(plan: TaskPlan) -> tuple[Finding, ...]:
    """Return a hint for each ordered loop and each `after=` that is proved to order nothing that needs an order."""
    data = data_of(plan, {})
    return (*_loops(plan, data), *_handles(plan, data))


def _loops(plan: TaskPlan, data: Data) -> Iterator[Finding]:
    needed: dict[int, bool] = {}
    for contest in contests_of(plan, ordered=True):
        node = contest.node
        if not needed.get(id(node)):
            needed[id(node)] = any(not _proved_apart(pair, data) for pair in pairs_of(contest, data))
    for item in walk(plan.body):
        if isinstance(item, Loop) and needed.get(id(item)) is False and _runs_again(item) and not _has_other_order(item):
            yield Finding(_CHECK, Verdict.LINT,
                          f"P.seq over {item.known_var.name} at {item.span.short}: its iterations touch different elements, P would do")


def _runs_again(loop: PlanLoop) -> bool:
    """Tell whether a loop may have two iterations."""
    match loop.start, loop.stop, loop.step:
        case s.Const(start), s.Const(stop), s.Const(step):
            return int(stop) - int(start) > int(step)
        case _:
            return True


def _has_other_order(item: Item) -> bool:
    """Tell whether iterations hand something on beside elements: slots, tokens, events."""
    return communicates(item) or bool(slots_set(item))


def _handles(plan: TaskPlan, data: Data) -> Iterator[Finding]:
    waiting = [task for task in submits(plan) if task.after]
    if not waiting:
        return
    made = {task.handle: task for task in submits(plan)}
    accesses = accesses_of(plan)
    for task in waiting:
        for handle in task.after:
            maker = made.get(handle)
            if maker is not None and all(_proved_apart(pair, data) for pair in _between(accesses[maker.site], accesses[task.site])):
                yield Finding(_CHECK, Verdict.LINT, f"after= at {task.span.short}: {_kernel(plan, task)} and {_kernel(plan, maker)} at "
                              f"{maker.span.short} touch nothing in common")


def _between(ours: tuple[SiteAccess, ...], theirs: tuple[SiteAccess, ...]) -> Iterator[Pair]:
    for first in ours:
        for second in theirs:
            if first.slot == second.slot and (first.role.writes or second.role.writes):
                shared = 0
                for level, other_level in zip(first.levels, second.levels, strict=False):
                    if level is not other_level:
                        break
                    shared += 1
                yield Pair(first, second, shared, None)


def _proved_apart(pair: Pair, data: Data) -> bool:
    return is_apart(Question(pair, data, pinned=False))


def _kernel(plan: TaskPlan, task: Submit) -> str:
    return plan.kernels[task.kernel].kernel.name


# -- the whole plan ----------------------------------------------------------------------------------------------------
_ACCUMULATE = "they accumulate into the same elements, and only edges that follow from data run them one after the other"
_MOST_ERRORS = 3        # errors for one tensor; more would repeat the same mistake


Argument: TypeAlias = tuple[int, int]       # (task site, number among the memory parameters)


@dataclass(frozen=True, slots=True, eq=False)
class Unproved:
    """A pair of accesses of a tensor that is not proved apart, and the reason.

    `processes`: the accesses are in two processes or two replicas, whose order in a run is not the program's order.
    """

    tensor: str
    pair: Pair
    reason: str
    processes: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Races:
    """The result of the race check. If `unproved` is empty, no two unordered tasks touch one element, for all bindings."""

    findings: tuple[Finding, ...]
    unproved: tuple[Unproved, ...] = ()


def explicit_errors(races: Races) -> tuple[UnprovedOrderError, ...]:
    """Return an error for each unproved pair that structure leaves unordered: Deps.explicit() needs every pair proved."""
    return tuple(UnprovedOrderError(
        f"Deps.explicit() needs a proof that tasks without an order between them touch different elements of `{race.tensor}`",
        race.pair.first.span, found=race.reason, also=_second_place(race.pair),
        help=_ORDER_THEM if race.processes else "Deps.hybrid() adds an edge wherever data needs one") for race in races.unproved)


_ORDER_THEM = ("let a token say that elements are done, or free again: Deps.hybrid() takes the order in which one interleaving of the "
               "processes comes to them, which need not be what you mean")


def unproved_warnings(races: Races) -> tuple[tuple[str, Span], ...]:
    """Return a message and its line for each unproved pair in different processes; all other pairs run in program order."""
    return tuple((f"{_processes_text(race.pair)}, and nothing proves that they do not race on `{race.tensor}`: "
                  f"{race.reason}; compile(sanitize=True) watches for it in a run", race.pair.first.span)
                 for race in races.unproved if race.processes)


def _processes_text(pair: Pair) -> str:
    """Say which two tasks are in different processes; one line denotes two tasks in different replicas."""
    lines = _lines(pair)
    return f"{lines} are in different processes" if " and " in lines else f"tasks of {lines} are in different copies of their process"


def _second_place(pair: Pair) -> tuple[tuple[str, Span], ...]:
    return () if pair.first.span == pair.second.span else ((f"{pair.second.verb} here", pair.second.span),)


def check_races(plan: TaskPlan, arrays: Mapping[int, np.ndarray] = MappingProxyType({}),
                lanes: Mapping[int, Scalar] = MappingProxyType({})) -> Races:
    """Return a finding for each tensor that tasks write, in the order of the plan's tensors, and the pairs that are not proved.

    `lanes`: for each task site the stream that the schedule assigns; tasks of one stream run in program order. Two processes have no
    program order between them.
    `arrays`: current contents of tensors, by the id of their TensorRef; an example takes the lengths of rows from them.
    """
    data = data_of(plan, arrays)
    contests: dict[int, list[Contest]] = {}
    for contest in contests_of(plan):
        contests.setdefault(contest.slot, []).append(contest)
    findings: list[Finding] = []
    unproved: list[Unproved] = []
    for number, slot in enumerate(plan.tensors):
        if slot.writes:
            findings.extend(_of_tensor(plan, slot.ref.shown, contests.get(number, []), data, lanes, unproved))
    return Races(tuple(findings), tuple(unproved))


def apart_in_pieces(plan: TaskPlan) -> frozenset[tuple[Argument, Argument]]:
    """Return the pairs of arguments whose regions may overlap while their kernels are proved to touch different elements.

    Each pair is there in both orders.
    """
    data = data_of(plan, {})
    apart: set[tuple[Argument, Argument]] = set()
    touching: set[tuple[Argument, Argument]] = set()
    for contest in contests_of(plan):
        for pair in pairs_of(contest, data):
            if any(access.by_workload for access in pair.accesses) or isinstance(decide(pair, data), Apart):
                continue
            ours, theirs = ([_argument(plan, one) for one in alike(contest, access) if not one.by_workload] for access in pair.accesses)
            found = apart if isinstance(decide_in_pieces(plan, contest, pair, data), Apart) else touching
            found.update(way for here, there in product(ours, theirs) for way in ((here, there), (there, here)))
    return frozenset(apart - touching)


def _argument(plan: TaskPlan, access: SiteAccess) -> Argument:
    task = access.statement
    assert isinstance(task, Submit)
    names = [param.name for param in plan.kernels[task.kernel].kernel.memory_params]
    return task.site, names.index(access.param)


def _of_tensor(plan: TaskPlan, name: str, contests: list[Contest], data: Data, lanes: Mapping[int, Scalar],
               unproved: list[Unproved]) -> Iterator[Finding]:
    check = f"races on `{name}`"
    if not contests:
        yield Finding(check, Verdict.PROVED, "all tasks that touch it are ordered")
        return
    errors: dict[frozenset[tuple[int, str]], RaceError] = {}
    opened: dict[str, None] = {}
    contracts: dict[str, None] = {}
    ordered: dict[str, None] = {}
    for contest in contests:
        for pair in pairs_of(contest, data):
            accesses = frozenset((id(access.statement), access.param) for access in pair.accesses)
            if accesses in errors or len(errors) == _MOST_ERRORS:
                continue
            outcome: Outcome | Concurrent = decide(pair, data)
            if not isinstance(outcome, Apart):
                who = "tokens" if ordered_by_tokens(contest, pair, data) else (
                    "streams" if contest.pipeline is None and ordered_by_streams(pair, data, lanes) else "")
                if not who and contest.pipeline is None and pair.accumulates:
                    unproved.append(Unproved(name, pair, _ACCUMULATE))
                    who = "edges between tasks that accumulate"
                if who:
                    ordered[who] = None
                    outcome = Apart()
            inside = None if isinstance(outcome, Apart) else decide_in_pieces(plan, contest, pair, data)
            if isinstance(inside, Apart):
                outcome = inside
            if isinstance(outcome, Witness) and (perhaps_ordered(contest, pair) or _in_process_with_channels(pair)):
                outcome = _by_running(plan, contest, outcome, data)
            match outcome:
                case Apart(relied_on):
                    contracts.update((f"{contract.value} {table.shown}", None) for table in relied_on for contract in table.contracts)
                case Witness() | Concurrent():
                    witness = outcome.witness if isinstance(outcome, Concurrent) else outcome
                    errors[accesses] = (pipeline_error(outcome, contest.node, plan) if isinstance(outcome, Concurrent)
                                        else race_error(outcome, contest.node, inside=inside))
                    yield Finding(check, Verdict.COUNTEREXAMPLE, f"{witness.elements} where {witness.iteration(0)}, and where "
                                  f"{witness.iteration(1)}", errors[accesses])
                case NotProved(reason):
                    text = f"{_lines(pair)}: {reason}"
                    if text not in opened:
                        unproved.append(Unproved(name, pair, reason, contest.pipeline is not None))
                    opened[text] = None
    for text in opened:
        yield Finding(check, Verdict.NOT_PROVED, text)
    if not errors and not opened:
        needed = f", given {', '.join(contracts)}" if contracts else ""
        or_ordered = f", or {' and '.join(ordered)} order them" if ordered else ""
        yield Finding(check, Verdict.PROVED, f"{_meeting(contests)} touch different elements{or_ordered}{needed}")


def _in_process_with_channels(pair: Pair) -> bool:
    """Tell whether both accesses are in one process that communicates: tokens may lead from one to the other through other processes."""
    return any(isinstance(level, Process) and communicates(level.body) for level in pair.first.levels[:pair.depth])


def _by_running(plan: TaskPlan, contest: Contest, apart: Witness, data: Data) -> Concurrent | Witness | NotProved:
    """Return two task instances that share an element without an order, found by running the processes without their tasks.

    Between processes the sizes come from the solver: two iterations that no known route or chain orders.
    """
    unresolved = NotProved(f"{apart.elements}, unless tokens or events order them")
    if contest.around is None or (contest.pipeline is None and perhaps_ordered(contest, apart.pair)):
        return unresolved
    order = order_of(contest, apart.pair, data)
    outcome = decide_unordered(apart.pair, data, order) if order.routes or order.chains else apart
    if not isinstance(outcome, Witness):
        return outcome if isinstance(outcome, NotProved) else unresolved
    try:
        instances = unordered_instances(plan, contest.around, outcome, data, apart=contest.pipeline is not None)
    except Uncountable as why:
        return NotProved(f"{unresolved.reason}, and {why}")
    if instances is None:
        return unresolved
    return instances if contest.pipeline is not None else instances.witness


def _lines(pair: Pair) -> str:
    places = dict.fromkeys(f"{access.who} at {access.statement.span.short}" for access in pair.accesses)
    return " and ".join(places)


def _meeting(contests: list[Contest]) -> str:
    """Name the unordered constructs, e.g. iterations of b and t."""
    inner_first = dict.fromkeys(contest.node.known_var.name for contest in contests if isinstance(contest.node, Loop))
    loops = list(inner_first)[::-1]
    shown = " and ".join((*((", ".join(loops[:-1]),) if loops[1:] else ()), *loops[-1:]))
    parts = [f"iterations of {shown}"] if loops else []
    if any(isinstance(contest.node, Sides) for contest in contests):
        parts.append("sides")
    if any(not isinstance(contest.node, Sides | Loop) for contest in contests):
        parts.append("processes")
    return " and ".join(parts)
