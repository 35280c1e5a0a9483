"""Cards of waits: why a task ran when it did, the chain of causes of a run, edges and paths of its graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pto_wsp.timing.explain import Chain, Explanation
from pto_wsp.timing.graph import CriticalPath, EdgeList
from pto_wsp.view.card import BarPart, Card, CodePart, Segment, StripPart, StripSpan, TablePart
from pto_wsp.view.check_cards import lines_at
from pto_wsp.view.run_cards import tone_of

_MOST_ROWS = 40
_MOST_TEXT = 300


def explanation_card(found: Explanation) -> Card:
    """Return the card of one task's wait: a strip from its submission to its end, the cause of each part, the line, what it waited for."""
    by_edge = found.cause.held.name == "EDGE"
    latest = max(found.waits, key=lambda wait: wait.ended, default=None)
    waited = "" if latest is None else f"{latest.edge.source} {latest.name}, until {latest.ended:,}: {latest.reason}"
    slower = found.ended - found.started - found.cost
    moments = [("submitted", found.submitted), ("ready", found.ready), ("started", found.started), ("ended", found.ended)]
    spans = [StripSpan(label="waits for other tasks", amount=found.ready - found.submitted, tone="rest",
                       cause=found.cause.text if by_edge else waited),
             StripSpan(label="is dispatched" if by_edge else "waits, ready", amount=found.started - found.ready,
                       tone="submission" if by_edge else "bad", cause="its AICPU hands it out" if by_edge else found.cause.text),
             StripSpan(label="runs", amount=found.ended - found.started, tone="work",
                       cause=f"{slower:,} cycles of it for others in memory" if slower > 0 else "")]
    if found.completed > found.ended:
        moments.append(("retired", found.completed))
        spans.append(StripSpan(label="is retired", amount=found.completed - found.ended, tone="submission", cause="its AICPU retires it"))
    shown = [(span, moment) for span, moment in zip(spans, moments[1:], strict=True) if span.amount > 0]
    strip = StripPart(unit="cycles", moments=(_first(moments, found), *(moment for _, moment in shown)),
                      spans=tuple(span for span, _ in shown))
    parts: list[Any] = [strip]
    lines = lines_at(found.span)
    parts += [CodePart(caption=str(found.span), lines=lines)] if lines else []
    waits = sorted(found.waits, key=lambda wait: -wait.ended)
    if waits:
        rows = tuple((f"{wait.ended:,}", f"{wait.edge.source} {wait.name}"[:_MOST_TEXT], wait.reason[:_MOST_TEXT]) for wait in waits)
        parts.append(TablePart(title="Waits for", head=("ended", "task", "why"), rows=rows[:_MOST_ROWS], right=(0,),
                               more=max(0, len(rows) - _MOST_ROWS)))
    return Card(title=found.name, subtitle=f"Task {found.task} · executor {found.executor} · {found.line}",
                state=f"submitted at {found.submitted:,}", sentence=f"Delayed by {found.cause.text}."[:_MOST_TEXT], parts=tuple(parts),
                foot="chain() goes back from here to the start of the run")


def _first(moments: Sequence[tuple[str, int]], found: Explanation) -> tuple[str, int]:
    """Return the first moment; those at the same time are named together."""
    return ", ".join(label for label, at in moments[:3] if at == found.submitted), found.submitted


def chain_card(chain: Chain) -> Card:
    """Return the card of a chain of causes: cycles by kind of cause, and its steps in order."""
    steps = chain.steps
    end = steps[-1].end if steps else 0
    segments = tuple(_segment(kind, cycles) for kind, cycles in sorted(chain.cycles.items(), key=lambda item: -item[1]) if cycles)
    parts: list[Any] = [BarPart(title="Cycles by cause", unit="cycles", segments=segments)] if segments else []
    rows = [(f"{step.begin:,}", f"{step.end:,}", f"{step.end - step.begin:,}", "runs" if step.kind == "task" else "waits",
             (step.text if step.kind == "task" else f"held by {step.text}")[:_MOST_TEXT]) for step in _ends(steps)]
    if rows:
        parts.append(TablePart(title="Steps", head=("from", "to", "cycles", "", "what"), rows=tuple(rows), right=(0, 1, 2),
                               more=max(0, len(steps) - len(rows))))
    held = sum(cycles for kind, cycles in chain.cycles.items() if kind != "task")
    sentence = f"{end:,} cycles: {end - held:,} in {len(chain.tasks)} tasks, {held:,} waiting." if steps else "No task ran."
    return Card(title="Chain of causes", subtitle=f"{len(steps)} steps", sentence=sentence, parts=tuple(parts))


def _segment(kind: str, cycles: int) -> Segment:
    if kind == "task":
        return Segment(label="tasks of the chain", amount=cycles, tone="work")
    if kind == "retire":
        return Segment(label="retirement", amount=cycles, tone="submission")
    label, tone = tone_of(kind)
    return Segment(label=label, amount=cycles, tone=tone)     # type: ignore[arg-type]


def _ends(steps: Sequence[Any]) -> Iterable[Any]:
    half = _MOST_ROWS // 2
    return steps if len(steps) <= _MOST_ROWS else (*steps[:half], *steps[-half:])


def edges_card(edges: EdgeList) -> Card:
    """Return the card of some edges: from, to, why, and the lines."""
    rows = tuple(tuple(cell[:_MOST_TEXT] for cell in row) for row in edges[:_MOST_ROWS].rows)    # type: ignore[union-attr]
    table = TablePart(head=("from", "to", "why", "lines"), rows=rows, more=max(0, len(edges) - len(rows)))
    return Card(title="Edges", subtitle=f"{len(edges):,}", sentence="" if rows else "Nothing orders them.", parts=(table,) if rows else ())


def path_card(path: CriticalPath) -> Card:
    """Return the card of a critical path: its tasks in order, with why each waits for the one before."""
    half = _MOST_ROWS // 2
    numbers = range(len(path)) if len(path) <= _MOST_ROWS else (*range(half), *range(len(path) - half, len(path)))
    steps = [path[k] for k in numbers]
    rows = tuple((f"{step.cycles:,}", f"{step.task} {step.name}"[:_MOST_TEXT], step.reason[:_MOST_TEXT]) for step in steps)   # type: ignore[union-attr]
    table = TablePart(head=("cycles", "task", "waits for the one before: why"), rows=rows, right=(0,), more=len(path) - len(rows))
    return Card(title="Critical path", subtitle=f"{len(path):,} tasks", parts=(table,) if rows else (),
                sentence=f"{path.cycles:,} cycles: no schedule ends sooner." if rows else "No task ran.")
