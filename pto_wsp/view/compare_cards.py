"""Cards of comparisons, of what a search tried, and of advice: bars on one scale with the lower bound in them, lanes, what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from pto_wsp.schedule.changes import code_of
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.timing.comparison import Compared, Comparison, percent, said, sentence_of, versus
from pto_wsp.timing.retime import Simulation
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.trace import Trace
from pto_wsp.view.card import (
    AdvicePart,
    AdviceRow,
    Card,
    ComparedPart,
    ComparedRow,
    CurvePart,
    CurvePoint,
    LabelledValue,
    PoolLanes,
    Segment,
    Setting,
    TablePart,
    ValuesPart,
)
from pto_wsp.view.colours import legend_of
from pto_wsp.view.run_cards import causes_bar, lanes_of, stats_parts, verdict
from pto_wsp.wording import counted, less

_MOST_ROWS, _MOST_DRAWN = 12, 6
_DRAWN_TASKS = 200_000        # tasks of all the compared up to which their lanes are drawn within the time of a view
_MOST_SETTINGS = 8
_MOST_MARKS = 4000
_ALWAYS = ("dispatch", "ready", "window", "pools")      # what is said of each, different or not
_MUCH_OF_KERNEL = 0.005       # a change of a kernel's cycles from which on it is told


# -- comparisons -------------------------------------------------------------------------------------------------------
def comparison_card(comparison: Comparison) -> Card:
    """Return the card of a comparison."""
    first = comparison.first
    parts: list[Any] = [compared_part(comparison)]
    kernels = _kernels_table(comparison)
    parts += [kernels] if kernels is not None else []
    letters = ", ".join(one.letter for one in sorted(comparison, key=lambda one: (len(one.letter), one.letter))[:8])
    where = [first.settings.get("program", ""), f"on {first.arch.name}" if first.arch is not None else ""]
    about = " ".join(part for part in where if part)
    return Card(title=f"compare({letters}{', …' if len(comparison) > 8 else ''})",
                subtitle=f"{about + ', ' if about else ''}{len(comparison)} side by side, best first, one scale",
                sentence=sentence_of(comparison), parts=tuple(parts),
                foot=f"boxed: differs from {first.letter} · comparison.columns() gives the rows as arrays, .report(path) writes a page")


def compared_part(comparison: Comparison) -> ComparedPart:
    """Return the compared runs on one scale; the first run is always shown."""
    shown = list(comparison.rows[:_MOST_ROWS])
    if comparison.first not in shown:
        shown[-1] = comparison.first
    total = max(1, *(max(one.cycles, one.stats.lower_bound) for one in shown))
    with_traces = shown[:_MOST_DRAWN - (comparison.first not in shown[:_MOST_DRAWN])]
    with_traces += [comparison.first] * (comparison.first not in with_traces)
    draws = len(shown) <= _MOST_DRAWN or len(with_traces) > 1
    if sum(one.stats.task_count for one in with_traces) > _DRAWN_TASKS:
        draws = False
    traces = {one.letter: trace for one in with_traces if draws and (trace := one.lanes) is not None and len(trace)}
    kernels = tuple(dict.fromkeys(name for trace in traces.values() for name in trace.kernels))
    rows = tuple(_row(one, comparison, total, traces.get(one.letter), kernels, _MOST_MARKS // max(1, len(traces))) for one in shown)
    bounds = {one.stats.lower_bound for one in shown}
    return ComparedPart(unit="cycles", total=total, bound=bounds.pop() if len(bounds) == 1 else None, ticks=ticks_of(total), rows=rows,
                        legend=legend_of(kernels), more=len(comparison) - len(shown))


def _row(one: Compared, comparison: Comparison, total: int, trace: Trace | None, kernels: Sequence[str], marks: int) -> ComparedRow:
    stats, first = one.stats, comparison.first
    bar = causes_bar(one.causes, stats.lower_bound) if one.causes else None
    segments = bar.segments if bar is not None else (
        Segment(label="lower bound", amount=min(stats.lower_bound, one.cycles), tone="work"),
        Segment(label="above it", amount=max(0, one.cycles - stats.lower_bound), tone="bad"))
    pools: tuple[PoolLanes, ...] = ()
    if trace is not None:
        part = lanes_of(trace, total, marks)
        place = [kernels.index(name) for name in trace.kernels]
        lanes = part.lanes if place == list(range(len(place))) else tuple(
            lane.model_copy(update={"marks": tuple(mark.model_copy(update={"kernel": place[mark.kernel]}) for mark in lane.marks)})
            for lane in part.lanes)
        shares = _busy_by_pool(one)
        pools = tuple(PoolLanes(label=group, busy=shares.get(group, ""), lanes=tuple(members))
                      for group, members in groupby(lanes, key=lambda lane: lane.group))
    note = one.stats.dominated_by if one.causes else ""
    return ComparedRow(letter=one.letter, name=one.name, cycles=one.cycles, bound=stats.lower_bound, versus=versus(one, first),
                       above=f"{stats.gap:.0%} above bound" if stats.gap >= 0.005 else "at the bound", settings=_settings(one, comparison),
                       note=note, segments=tuple(segment for segment in segments if segment.amount), pools=pools)


def _settings(one: Compared, comparison: Comparison) -> tuple[Setting, ...]:
    """Return what a schedule says on the subjects that any of the compared changes, and on a few others."""
    if not one.settings:
        return ()
    subjects = dict.fromkeys(subject for other in comparison for subject in other.changes)
    subjects |= dict.fromkeys(subject for subject in _ALWAYS if any(other.settings.get(subject) for other in comparison))
    order = sorted(subjects, key=lambda subject: (subject not in _ALWAYS, _ALWAYS.index(subject) if subject in _ALWAYS else 0))
    found = [Setting(label=subject, value=one.settings.get(subject, "default"), differs=subject in one.changes) for subject in order]
    return tuple(sorted(found, key=lambda setting: not setting.differs)[:_MOST_SETTINGS] if len(found) > _MOST_SETTINGS else found)


def _busy_by_pool(one: Compared) -> Mapping[str, str]:
    """Return the mean share of time that the executors of each pool were busy, by the name of its lanes."""
    executors, total = one.stats.executors, max(1, one.cycles)
    ranks = [executor for executor in executors if executor.name and "link" not in executor.name]      # of a mesh; links are pools, too
    pools = sorted({executor.pool for executor in ranks or executors})
    found = {}
    for pool in pools:
        mine = [executor for executor in ranks or executors if executor.pool == pool]
        used = [executor for executor in mine if executor.tasks]
        busy = sum(executor.busy for executor in mine) / (total * len(mine))
        found[f"pool {pool}" if len(pools) > 1 else ""] = f"{busy:.0%} of {len(mine)}" if len(used) == len(mine) else \
            f"{sum(executor.busy for executor in used) / (total * max(1, len(used))):.0%}, {len(used)} of {len(mine)}"
    return found


def _kernels_table(comparison: Comparison) -> TablePart | None:
    """Return the cycles by kernel where any of the compared spends others on one than the first does."""
    shown = comparison.rows[:_MOST_DRAWN]
    if sum(one.stats.task_count for one in shown) > _DRAWN_TASKS:
        return None
    by_row = [one.kernel_cycles for one in shown]
    names = list(dict.fromkeys(name for cycles in by_row for name in cycles))
    least, most = ({name: pick(cycles.get(name, 0) for cycles in by_row) for name in names} for pick in (min, max))
    differing = [name for name in names if most[name] - least[name] > _MUCH_OF_KERNEL * max(1, most[name])]
    if not differing:
        return None
    rows = tuple((name, *(f"{cycles.get(name, 0):,}" for cycles in by_row)) for name in differing[:_MOST_ROWS])
    head = ("kernel", *(f"{one.letter} {one.name}" for one in shown))
    return TablePart(title="Cycles by kernel, where they differ", head=head, rows=rows,
                     right=tuple(range(1, len(shown) + 1)), more=len(differing) - len(rows))


def ticks_of(total: int) -> tuple[int, ...]:
    """Return round times from 0 on, about six up to `total`."""
    step = 1
    while total / step > 6:
        step = {"1": 2, "2": 5, "5": 10}[str(step)[0]] * 10 ** (len(str(step)) - 1)
    return tuple(range(0, total + 1, step))


def comparison_page(comparison: Comparison) -> tuple[Card, ...]:
    """Return the cards of a page about a comparison: the comparison, then figures and trace of each, best first."""
    cards = [comparison_card(comparison)]
    for one in comparison.rows[:_MOST_ROWS]:
        trace = one.lanes
        parts = (*((lanes_of(trace),) if trace is not None and len(trace) else ()), *stats_parts(one.stats))
        cards.append(Card(title=one.name, subtitle=f"{one.letter} · {said(one.changes) or 'what the others are held against'}",
                          sentence=verdict(one.stats), parts=parts,
                          foot=f"w{code_of(one.schedule)}" if one.schedule is not None and one.schedule != Schedule() else ""))
    return tuple(cards)


# -- one simulation ----------------------------------------------------------------------------------------------------
def simulation_card(simulation: Simulation) -> Card:
    """Return the card of a simulated schedule: its lanes and figures, and the schedule as code."""
    stats = simulation.stats
    is_drawn = simulation.timed.sim.tasks is not None and 0 < stats.task_count <= _DRAWN_TASKS
    overheads = "with the costs of control processors" if simulation.overheads else "without the costs of control processors"
    return Card(title=simulation.timed.plan.name, subtitle=f"Simulation · {simulation.arch.name}, {overheads}", sentence=verdict(stats),
                parts=(*((lanes_of(simulation.timed.lanes),) if is_drawn else ()), *stats_parts(stats)),
                foot=f"w{code_of(simulation.schedule)} · compare(program, simulation) sets it beside others")


# -- searches ----------------------------------------------------------------------------------------------------------
_RANKED = 8
_MOST_DOTS = 400

Row = tuple[Mapping[str, str], int | None, int, str]      # what differs from the start, cycles, lower bound, why it was refused


def search_card(name: str, tried: Sequence[Row], seed: int, comparison: Comparison | None, code: str, *, was_stopped: bool) -> Card:
    """Return the card of a search. `tried`: in order, the starting point first; `comparison`: the start and the best, if they are kept."""
    timed = [(at, row) for at, row in enumerate(tried) if row[1] is not None]
    ranked = sorted(timed, key=lambda item: (item[1][1] or 0, len(item[1][0]), item[0]))
    if not ranked:
        return Card(title=f"auto_schedule({name})", sentence="Nothing could be simulated.")
    best, start = ranked[0][1], tried[0]
    refused = len(tried) - len(timed)
    facts = (("tried", f"{len(tried):,}" + ", then stopped" * was_stopped), ("refused", f"{refused:,}"), ("best found at try",
             f"{ranked[0][0] + 1:,}"), ("seed", f"{seed}"))
    parts: list[Any] = [_ranking(ranked, start, comparison),
                        ValuesPart(values=tuple(LabelledValue(label=label, value=value) for label, value in facts))]
    parts += [progress_curve(tried)] if len(timed) > 1 else []
    if refused:
        reasons = Counter(row[3] for row in tried if row[1] is None)
        parts.append(TablePart(title="Refused", head=("why", "schedules"), right=(1,), more=max(0, len(reasons) - _RANKED),
                               rows=tuple((why, f"{count:,}") for why, count in reasons.most_common(_RANKED))))
    return Card(title=f"auto_schedule({name})", subtitle=f"{len(tried):,} schedules in simulated time, best first",
                sentence=_search_sentence(best, start), parts=tuple(parts), foot=f"w{code}")


def _search_sentence(best: Row, start: Row) -> str:
    cycles, first = best[1] or 0, start[1] or 0
    if not first:
        return "No task ran."
    above = cycles / best[2] - 1 if best[2] else 0.0
    bound = f"{above:.0%} above the lower bound" if above >= 0.005 else "at the lower bound, so no schedule on as many executors is faster"
    if cycles >= first:
        return f"{cycles:,} cycles, as given: nothing that was tried is faster; {bound}."
    return f"{cycles:,} cycles, {percent(cycles, first)} against the schedule as given; {bound}."


def _ranking(ranked: Sequence[tuple[int, Row]], start: Row, comparison: Comparison | None) -> ComparedPart:
    same = Counter(row[1] for _, row in ranked)
    shown = [next(items) for _, items in groupby(ranked, key=lambda item: item[1][1])][:_RANKED]
    left_out = len(ranked) - sum(same[row[1]] for _, row in shown)
    if all(at for at, _ in shown):
        shown += [item for item in ranked if item[0] == 0]
    total = max(1, *(max(row[1] or 0, row[2]) for _, row in shown))
    kept = {} if comparison is None else {0: comparison["as given"], shown[0][0]: comparison.rows[0]}
    traces = {at: trace for at, one in kept.items() if (trace := one.lanes) is not None and len(trace)}
    kernels = tuple(dict.fromkeys(name for trace in traces.values() for name in trace.kernels))
    rows = []
    for at, (changes, cycles, bound, _) in shown:
        taken = cycles or 0
        segments: tuple[Segment, ...] = (Segment(label="lower bound", amount=min(bound, taken), tone="work"),
                                         Segment(label="above it", amount=max(0, taken - bound), tone="bad"))
        pools: tuple[PoolLanes, ...] = ()
        if comparison is not None and at in traces:
            drawn = _row(kept[at], comparison, total, traces[at], kernels, _MOST_MARKS // 2)
            pools, segments = drawn.pools, drawn.segments if kept[at].causes else segments
        others = same[cycles] - 1 if at else 0
        rows.append(ComparedRow(
            letter=f"{at + 1}", name=said(changes) or "as given", cycles=taken, bound=bound, pools=pools,
            versus=percent(taken, start[1] or 0) if at else "",
            note=f"{counted(others, 'other')} {'takes' if others == 1 else 'take'} as long" if others else "",
            above=f"{taken / bound - 1:.0%} above bound" if bound and taken / bound >= 1.005 else "at the bound",
            segments=tuple(segment for segment in segments if segment.amount)))
    bounds = {row.bound for row in rows}
    return ComparedPart(unit="cycles", total=total, bound=bounds.pop() if len(bounds) == 1 else None, ticks=ticks_of(total),
                        rows=tuple(rows), legend=legend_of(kernels), more=left_out)


def progress_curve(tried: Sequence[Row]) -> CurvePart:
    """Return the cycles of each try as a dot and the best so far as steps; dots far above the start lie at the top."""
    cycles = [row[1] for row in tried]
    bound = min(row[2] for row in tried if row[1] is not None)
    known = [count for count in cycles if count is not None]
    low, high = min(bound, *known), max(1, min(max(known), 2 * (cycles[0] or max(known))))

    def place(at: int, count: int) -> tuple[int, int]:
        return round(1000 * at / max(1, len(cycles) - 1)), max(0, round(1000 * (high - count) / max(1, high - low)))

    def point(at: int, count: int) -> CurvePoint:
        x, y = place(at, count)
        return CurvePoint(label=f"try {at + 1}: {count:,}", x=x, y=y)

    stride = max(1, -(-len(cycles) // _MOST_DOTS))
    dots = tuple(point(at, count) for at, count in enumerate(cycles) if count is not None and at % stride == 0)
    steps, least = [], None
    for at, count in enumerate(cycles):
        if count is not None and (least is None or count < least):
            least = count
            steps.append(point(at, count))
    return CurvePart(title="How the search came to it", x_label="tries", first="1", last=f"{len(cycles):,}", low=f"{low:,}",
                     high=f"{high:,}", dots=dots, steps=tuple(steps), bound=place(0, bound)[1])


def advice_card(stats: Stats, sentence: str, rows: Sequence[tuple[str, int, float, str]], tried: str) -> Card:
    """Return the card of advice. `stats`: of the run as it is; `rows`: change, cycles, gain as a fraction, why; best first."""
    first = AdviceRow(change="as it is", cycles=stats.total_cycles, gain="", why=stats.dominated_by)
    shown = tuple(AdviceRow(change=change, cycles=cycles, gain=less(gain), why=why) for change, cycles, gain, why in rows)
    part = AdvicePart(unit="cycles", total=stats.total_cycles, bound=stats.lower_bound, rows=(first, *shown))
    return Card(title="Advice", subtitle="changes of the schedule, each simulated on the tasks of the last run",
                sentence=" ".join(filter(None, (verdict(stats), sentence))), parts=(part,) if stats.total_cycles else (),
                foot=f"{tried}. A change goes behind the workload under its schedule" if rows else tried)
