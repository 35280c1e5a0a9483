"""Cards of what is wrong, and of what was proved: errors with their line, races on the map of their tensor, static checks."""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from pto_wsp.check.races.picture import RaceRegions, RacingAccess
from pto_wsp.check.races.witness import common_range
from pto_wsp.check.verdict import CheckList, Verdict
from pto_wsp.errors import PtoError
from pto_wsp.errors.page import errors_by_code, explanation
from pto_wsp.source import Span
from pto_wsp.view.card import (
    Card,
    CodeLine,
    CodePart,
    CodeRun,
    DetailsPart,
    Edit,
    EditsPart,
    IterationCell,
    RegionBox,
    RegionsPart,
    TablePart,
    Tone,
)
from pto_wsp.view.highlight import code_lines

_MOST_ERRORS = 6
_MOST_CHECKS = 60
_LONGEST = 2000         # characters of a line of the user's


# -- checks ------------------------------------------------------------------------------------------------------------
MARKS = {Verdict.COUNTEREXAMPLE: "✗ counterexample", Verdict.NOT_PROVED: "? not proved", Verdict.LINT: "i hint",
          Verdict.PROVED: "✓ proved"}
_LEFT = {Verdict.COUNTEREXAMPLE: "wrong", Verdict.NOT_PROVED: "left to each run", Verdict.LINT: "could be better"}


def checks_card(checks: CheckList) -> Card:
    """Return the card of static checks: what is not proved first, then the proofs."""
    counts = Counter(finding.verdict for finding in checks.findings)
    words = [f"{counts[verdict]} {_LEFT[verdict]}" for verdict in _LEFT if counts[verdict]]
    sentence = f"{counts[Verdict.PROVED]} of {len(checks.findings)} proved for every run" + "".join(f", {word}" for word in words) + "."
    rows = checks_rows(checks)
    table = TablePart(head=("verdict", "check", "why"), rows=rows[:_MOST_CHECKS], more=max(0, len(rows) - _MOST_CHECKS))
    return Card(title="Checks", sentence=sentence if rows else "There was nothing to check.", parts=(table,) if rows else ())


def checks_rows(checks: CheckList) -> tuple[tuple[str, ...], ...]:
    """Return a row for each finding: verdict, check, why; what is not proved first."""
    order = tuple(MARKS)
    found = sorted(checks.findings, key=lambda finding: order.index(finding.verdict))
    return tuple(dict.fromkeys((MARKS[finding.verdict], finding.check, finding.detail) for finding in found))


# -- errors ------------------------------------------------------------------------------------------------------------
def error_card(error: PtoError) -> Card:
    """Return the card of an error: its line, the expected and the found, a picture of the mistake, and the meaning of its code."""
    parts: list[Any] = []
    picture = error.picture if isinstance(error.picture, RaceRegions) else None
    if picture is not None:
        parts += _race_parts(picture)
    else:
        parts += _places(error)
    known = (("expected", error.expected), ("found", error.found), ("help", error.help))
    said = [(label, text) for label, text in known if text is not None]
    said += [("note", note) for note in error.notes]
    if said:
        parts.append(TablePart(head=("", ""), rows=tuple(said)))
    if picture is not None and (edits := _edits(picture)):
        parts.append(EditsPart(edits=edits))
    for other in error.others[:_MOST_ERRORS]:
        parts.append(CodePart(title=f"{other.code} {other.message}", caption=str(other.span or ""), lines=lines_at(other.span)))
    if error.code in errors_by_code():
        parts.append(DetailsPart(title=f"What {error.code} means", text=explanation(error.code)))
    more = f" · {len(error.others)} more errors" if error.others else ""
    return Card(title=f"error {error.code}", subtitle=type(error).__name__, state=f"pto-wsp explain {error.code}{more}",
                sentence=error.message, parts=tuple(parts), tone="bad",
                foot=f"docs/errors.md#{error.code.lower()}-{type(error).__name__.lower()}")


def _places(error: PtoError) -> Iterator[CodePart]:
    if error.span is not None:
        yield CodePart(caption=str(error.span), lines=lines_at(error.span))
    for what, place in error.also[:_MOST_ERRORS]:
        yield CodePart(caption=f"{place}: {what}", lines=lines_at(place))


def lines_at(span: object) -> tuple[CodeLine, ...]:
    """Return the line of a span with its columns marked; nothing where its text is not known."""
    if not isinstance(span, Span) or not span.column:
        return ()
    text = linecache.getline(span.file, span.line).rstrip("\n")[:_LONGEST]
    return (_marked(text, span, "mark"),) if text.strip() else ()


def _marked(text: str, span: Span, tone: Tone, badge: Literal["", "A", "B"] = "", note: str = "", part: str = "") -> CodeLine:
    """Return a line of code of which a span, or where it is found the text `part` within the span, has a tone."""
    begin = min(max(span.column - 1, 0), len(text))
    end = min(span.end_column - 1, len(text)) if span.end_line == span.line and span.end_column > span.column else len(text)
    found = _place_of(part, text, begin, end) if part else None
    begin, end = found or (begin, end)
    (line,) = code_lines(text, "python", first=span.line)
    return CodeLine(number=line.number, badge=badge, runs=tuple(_toned(line.runs, begin, end, tone)), note=note)


def _place_of(part: str, text: str, begin: int, end: int) -> tuple[int, int] | None:
    """Return where the last piece of text[begin:end] stands that is `part`, whatever its spaces."""
    pattern = r"\s*".join(re.escape(char) for char in part if not char.isspace())
    found = list(re.compile(pattern).finditer(text, begin, end))
    return found[-1].span() if found else None


def _toned(runs: Sequence[CodeRun], begin: int, end: int, tone: Tone) -> Iterator[CodeRun]:
    """Yield the runs of a line with the characters from `begin` to `end` as one run of a tone."""
    at = 0
    for run in runs:
        stop = at + len(run.text)
        if at < begin:
            yield CodeRun(text=run.text[:begin - at], tone=run.tone)
        if at <= begin < stop and begin < end:
            yield CodeRun(text="".join(each.text for each in runs)[begin:end], tone=tone)
        if stop > end:
            yield CodeRun(text=run.text[max(0, end - at):], tone=run.tone)
        at = stop


# -- races -------------------------------------------------------------------------------------------------------------
def _race_parts(race: RaceRegions) -> Iterator[Any]:
    lines: list[CodeLine] = []
    head = race.loop_span
    if head is not None and (text := linecache.getline(head.file, head.line).rstrip("\n")).strip():
        lines += code_lines(text[:_LONGEST], "python", first=head.line)
    marks: tuple[tuple[Literal["A", "B"], Tone], ...] = (("A", "first"), ("B", "second"))
    for side, (badge, tone) in zip(race.sides, marks, strict=True):
        text = linecache.getline(side.span.file, side.span.line).rstrip("\n")[:_LONGEST] if side.span.column else ""
        lines.append(_marked(text or f"{side.who}: {side.view}", side.span, tone, badge, _side_note(race, side), side.view))
    yield CodePart(caption=str(race.sides[0].span), lines=_dedented(lines))
    yield _map(race)


def _dedented(lines: Sequence[CodeLine]) -> tuple[CodeLine, ...]:
    """Return lines without the spaces that all begin with."""
    texts = ["".join(run.text for run in line.runs) for line in lines]
    least = min((len(text) - len(text.lstrip(" ")) for text in texts if text.strip()), default=0)
    return tuple(line.model_copy(update={"runs": tuple(_from(line.runs, least))}) for line in lines)


def _from(runs: Sequence[CodeRun], begin: int) -> Iterator[CodeRun]:
    for run in runs:
        if len(run.text) > begin:
            yield run.model_copy(update={"text": run.text[begin:]})
        begin = max(0, begin - len(run.text))


def _side_note(race: RaceRegions, side: RacingAccess) -> str:
    region = f"{side.verb} {race.tensor}[{', '.join(_range_text(part) for part in side.box)}]"
    return f"{side.iteration} → {region}" if side.iteration else region


def _range_text(part: range) -> str:
    if len(part) == 1:
        return str(part.start)
    return f"{part.start}:{part[-1] + 1 if part else part.stop}" + (f":{part.step}" if part.step != 1 else "")


def _map(race: RaceRegions) -> RegionsPart:
    rows, cols = _drawn_dims(race)
    first, second = race.sides

    def box(ranges: tuple[range, ...], tone: Literal["first", "second", "shared", "other"], label: str) -> RegionBox:
        edges = [(0, 1) if dim is None else (ranges[dim].start, ranges[dim][-1] + 1 if ranges[dim] else ranges[dim].start)
                 for dim in (rows, cols)]
        return RegionBox(rows=edges[0], cols=edges[1], tone=tone, label=label)

    mine = (first.box, second.box)
    boxes = [box(ours, "other", f"{race.loop} = {value}") for value, ours, theirs in race.others
             if ours == theirs and ours not in mine and _same_elsewhere(race, ours, rows, cols)]
    boxes += [box(first.box, "first", f"A {first.iteration}".rstrip()), box(second.box, "second", f"B {second.iteration}".rstrip()),
              box(race.shared, "shared", race.elements)]
    shown = [":" if dim in (rows, cols) else _range_text(race.shared[dim]) for dim in range(len(race.shape))]
    while shown and shown[-1] == ":":
        shown.pop()
    n = 1
    for part in race.shared:
        n *= len(part)
    verbs = "write" if first.verb == second.verb == "written" else "touch"
    notes = [f"{n:,} element{'s' * (n != 1)}" + _share(race, n)]
    pairs = [(value, later) for at, (value, ours, _) in enumerate(race.others) for later, _, theirs in race.others[at + 1:]
             if all(common_range(a, b) for a, b in zip(ours, theirs, strict=True))]
    if len(pairs) > 1:
        some = [f"{race.loop} = {a}, {b}" for a, b in pairs[1:4]]
        notes.append(f"so do {' and '.join(some)}" + (f", and {len(pairs) - 4} more pairs" if len(pairs) > 4 else ""))
    return RegionsPart(title=race.tensor + (f"[{', '.join(shown)}]" if shown else ""),
                       subtitle=f"of {race.tensor}{list(race.shape)}; rows ↓ columns →",
                       rows=1 if rows is None else max(1, race.shape[rows]), cols=1 if cols is None else max(1, race.shape[cols]),
                       boxes=tuple(boxes), sentence=f"both {verbs} {race.elements}", notes=tuple(notes), loop=race.loop,
                       iterations=_iterations(race, set(pairs)))


def _share(race: RaceRegions, n: int) -> str:
    whole = 1
    for part in race.sides[0].box:
        whole *= max(1, len(part))
    return f": {n / whole:.0%} of what A touches" if whole else ""


def _drawn_dims(race: RaceRegions) -> tuple[int | None, int | None]:
    """Return which dimensions are the map's rows and columns: the last two in which the regions are not one and the same index."""
    first, second = (side.box for side in race.sides)
    wide = [dim for dim in range(len(race.shape)) if len(first[dim]) > 1 or len(second[dim]) > 1 or first[dim] != second[dim]]
    apart = [dim for dim in wide if first[dim] != second[dim]]
    chosen = sorted(({*apart[-2:]} | {*wide[len(wide) - (2 - len(apart[-2:])):]}) if len(apart) < 2 else {*apart[-2:]})[-2:]
    if len(chosen) < 2:
        return (None, chosen[0]) if chosen else (None, None)
    return chosen[0], chosen[1]


def _same_elsewhere(race: RaceRegions, box: tuple[range, ...], rows: int | None, cols: int | None) -> bool:
    return all(dim in (rows, cols) or common_range(part, race.shared[dim]) for dim, part in enumerate(box))


def _iterations(race: RaceRegions, pairs: Collection[tuple[int, int | None]]) -> tuple[IterationCell, ...]:
    values = [value for value, _, _ in race.others]
    first, second = (side.iteration.split(", ") for side in race.sides)

    def letter(value: int) -> Literal["", "A", "B"]:
        return "A" if f"{race.loop} = {value}" in first else "B" if f"{race.loop} = {value}" in second else ""

    return tuple(IterationCell(label=f"{race.loop} = {value}", letter=letter(value), joined=(value, later) in pairs)
                 for value, later in zip(values, [*values, None][1:], strict=True))


def _edits(race: RaceRegions) -> tuple[Edit, ...]:
    """Return changes of the user's code that would end the race."""
    if not race.loop:
        return ()
    edits = []
    first = race.sides[0]
    apart = _blocks_apart(race)
    if apart is not None:
        edits.append(apart)
    text = "" if race.loop_span is None else linecache.getline(race.loop_span.file, race.loop_span.line).strip()
    if "P(" in text:
        before, _, after = text.partition("P(")
        edits.append(Edit(title="In order", runs=(CodeRun(text=before), CodeRun(text="P.seq", tone="mark"), CodeRun(text="(" + after)),
                          effect=f"iterations of {race.loop} run one after the other"))
    n = len(race.others)
    inner = first.view[len(race.tensor):]
    if first.view.startswith(race.tensor + "[") and first.view == race.sides[1].view:
        shape = f"of {[n, *race.shape]}" if n else ""
        edits.append(Edit(title=f"A place for each {race.loop}", effect="no order needed" + f"; `{race.tensor}` {shape}" * bool(shape),
                          runs=(CodeRun(text=f"{race.tensor}["), CodeRun(text=race.loop, tone="mark"), CodeRun(text=f", {inner[1:]}"))))
    return tuple(edits)


def _blocks_apart(race: RaceRegions) -> Edit | None:
    """Return the edit that moves each iteration by the size of its region, where the code moves it by less."""
    if len(race.others) < 2 or race.sides[0].view != race.sides[1].view:
        return None
    (low, here, _), (high, there, _) = race.others[:2]
    for before, after in zip(here, there, strict=True):
        step = (after.start - before.start) // (high - low)
        extent = before[-1] + 1 - before.start if before else 0
        pattern = rf"(?<![\w.]){step} \* {re.escape(race.loop)}(?!\w)"
        if 0 < step < extent and before.step == 1 and re.search(pattern, race.sides[0].view):
            runs: list[CodeRun] = []
            at = 0
            for found in re.finditer(pattern, race.sides[0].view):
                runs += [CodeRun(text=race.sides[0].view[at:found.start()]), CodeRun(text=str(extent), tone="mark"),
                         CodeRun(text=f" * {race.loop}")]
                at = found.end()
            return Edit(title="Blocks apart", note="likely meant", runs=(*runs, CodeRun(text=race.sides[0].view[at:])),
                        effect=f"{race.loop} moves by {extent}, the size of what it touches, not by {step}")
    return None
