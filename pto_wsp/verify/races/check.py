"""The race check: a finding for each tensor that tasks write, and an error for each pair of accesses that is shown to race."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from pto_wsp.errors import RaceError, UnprovedOrderError
from pto_wsp.plan.model import Loop, Process, Sides, TaskPlan
from pto_wsp.plan.waits.communication import communicates
from pto_wsp.source import Span
from pto_wsp.types.scalar import Scalar
from pto_wsp.values import dataclass
from pto_wsp.verify.deadlock.skeleton import NotKnown
from pto_wsp.verify.races.contests import Contest, contests_of
from pto_wsp.verify.races.decide import Apart, Open, Outcome, decide, decide_unordered
from pto_wsp.verify.races.filters import pairs_of
from pto_wsp.verify.races.question import Data, Pair, data_of
from pto_wsp.verify.races.report import pipeline_error, race_error
from pto_wsp.verify.races.running import Unordered, unordered_instances
from pto_wsp.verify.races.streams import ordered_by_streams
from pto_wsp.verify.races.tokens import order_of, ordered_by_tokens, perhaps_ordered
from pto_wsp.verify.races.witness import Witness
from pto_wsp.verify.verdict import Finding, Verdict

_MOST_ERRORS = 3        # of one tensor: more of them say the same


@dataclass(frozen=True, slots=True, eq=False)
class Unproved:
    """A pair of accesses of a tensor that is not proved apart, and why. `processes`: they are in two processes of a pipeline, or in two
    replicas, where no run has an order that is the program's."""

    tensor: str
    pair: Pair
    reason: str
    processes: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Races:
    """What was found out about the races of a plan. Without `unproved` no two unordered tasks touch one element, whatever is bound."""

    findings: tuple[Finding, ...]
    unproved: tuple[Unproved, ...] = ()


def explicit_errors(races: Races) -> tuple[UnprovedOrderError, ...]:
    """Return an error for each pair that structure leaves without an order and nobody has proved apart: Deps.explicit() needs all."""
    return tuple(UnprovedOrderError(
        f"Deps.explicit() needs a proof that tasks without an order between them touch different elements of `{one.tensor}`",
        one.pair.first.span, found=one.reason, also=_second_place(one.pair),
        help=_ORDER_THEM if one.processes else "Deps.hybrid() adds an edge wherever data needs one") for one in races.unproved)


_ORDER_THEM = ("let a token say that elements are done, or free again: Deps.hybrid() takes the order in which one interleaving of the "
               "processes comes to them, which need not be what you mean")


def unproved_warnings(races: Races) -> tuple[tuple[str, Span], ...]:
    """Return what to say, and of which line, of each pair of accesses in different processes that may race: all else runs in program
    order."""
    return tuple((f"{_parted(one.pair)}, and nothing proves that they do not race on `{one.tensor}`: "
                  f"{one.reason}; compile(sanitize=True) watches for it in a run", one.pair.first.span)
                 for one in races.unproved if one.processes)


def _parted(pair: Pair) -> str:
    """Say which two tasks are in different processes; one line stands for two where the process has copies."""
    lines = _lines(pair)
    return f"{lines} are in different processes" if " and " in lines else f"tasks of {lines} are in different copies of their process"


def _second_place(pair: Pair) -> tuple[tuple[str, Span], ...]:
    return () if pair.first.span == pair.second.span else ((f"{pair.second.verb} here", pair.second.span),)


def check_races(plan: TaskPlan, arrays: Mapping[int, np.ndarray] = MappingProxyType({}),
                lanes: Mapping[int, Scalar] = MappingProxyType({})) -> Races:
    """Return a finding for each tensor that tasks write, in the order of the plan's tensors, and what is not proved on lines of its own.

    `lanes`: of each task site the stream of the schedule, whose tasks run one after another. That orders what has a program order; which
    of two processes is the first is nobody's word.
    `arrays`: what tensors hold now, by the id of their TensorRef: lengths of rows are read from there for an example.
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
            outcome: Outcome | Unordered = decide(pair, data)
            if not isinstance(outcome, Apart):
                who = "tokens" if ordered_by_tokens(contest, pair, data) else (
                    "streams" if contest.pipeline is None and ordered_by_streams(pair, data, lanes) else "")
                if who:
                    ordered[who] = None
                    outcome = Apart()
            if isinstance(outcome, Witness) and (perhaps_ordered(contest, pair) or _in_a_process_that_talks(pair)):
                outcome = _by_running(plan, contest, outcome, data)
            match outcome:
                case Apart(relied_on):
                    contracts.update((f"{contract.value} {table.shown}", None) for table in relied_on for contract in table.contracts)
                case Witness() | Unordered():
                    witness = outcome.witness if isinstance(outcome, Unordered) else outcome
                    errors[accesses] = (pipeline_error(outcome, contest.node, plan) if isinstance(outcome, Unordered)
                                        else race_error(outcome, contest.node))
                    yield Finding(check, Verdict.COUNTEREXAMPLE, f"{witness.elements} where {witness.iteration(0)}, and where "
                                  f"{witness.iteration(1)}", errors[accesses])
                case Open(reason):
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


def _in_a_process_that_talks(pair: Pair) -> bool:
    """Tell whether two accesses are of one process, whose tokens may lead from one to the other through other processes."""
    return any(isinstance(level, Process) and communicates(level.body) for level in pair.first.levels[:pair.depth])


def _by_running(plan: TaskPlan, contest: Contest, apart: Witness, data: Data) -> Unordered | Witness | Open:
    """Return two instances of processes that share an element without an order, where running the processes without their tasks shows
    some. Between processes the solver gives the sizes, by two iterations that nothing it was told of orders."""
    left = Open(f"{apart.elements}, unless tokens or events order them")
    if contest.around is None or (contest.pipeline is None and perhaps_ordered(contest, apart.pair)):
        return left
    order = order_of(contest, apart.pair, data)
    outcome = decide_unordered(apart.pair, data, order) if order.routes or order.chains else apart
    if not isinstance(outcome, Witness):
        return outcome if isinstance(outcome, Open) else left
    try:
        found = unordered_instances(plan, contest.around, outcome, data, apart=contest.pipeline is not None)
    except NotKnown as why:
        return Open(f"{left.reason}, and {why}")
    if found is None:
        return left
    return found if contest.pipeline is not None else found.witness


def _lines(pair: Pair) -> str:
    places = dict.fromkeys(f"{access.who} at {access.statement.span.short}" for access in pair.accesses)
    return " and ".join(places)


def _meeting(contests: list[Contest]) -> str:
    """Say what is unordered, e.g. iterations of b and t."""
    inner_first = dict.fromkeys(contest.node.known_var.name for contest in contests if isinstance(contest.node, Loop))
    loops = list(inner_first)[::-1]
    shown = " and ".join((*((", ".join(loops[:-1]),) if loops[1:] else ()), *loops[-1:]))
    parts = [f"iterations of {shown}"] if loops else []
    if any(isinstance(contest.node, Sides) for contest in contests):
        parts.append("sides")
    if any(not isinstance(contest.node, Sides | Loop) for contest in contests):
        parts.append("processes")
    return " and ".join(parts)
