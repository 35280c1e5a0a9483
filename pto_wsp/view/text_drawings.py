"""Draw as text what a page draws as pictures: code, regions of tensors, memories, comparisons, curves, graphs, machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pto_wsp.view.card import (
    AdvicePart,
    CodePart,
    CodeRun,
    ComparedPart,
    ComparedRow,
    CurvePart,
    DetailsPart,
    DiffPart,
    EditsPart,
    GraphPart,
    GridPanel,
    GridPart,
    InstructionsPart,
    MachinePart,
    MapsPart,
    MemoryPart,
    RegionsPart,
    Segment,
    SourcePart,
    StripPart,
)
from pto_wsp.view.terminal import LONGEST_CELL, Unwrapped, fills_of, fitted, flow, key_style, legend_lines, letters_of, one_line
from pto_wsp.wording import printable, shortened

_MOST_DETAILS, _MOST_LANES = 20, 8      # lines of details, lanes of a pool
_MAP_ROWS, _MAP_COLUMNS = 12, 48        # cells of the map of a tensor
_PLOT_ROWS = 8


def _head(title: str, note: str = "") -> Text:
    return Text.assemble((one_line(title), "bold"), (f"  {one_line(note)}" if note else "", "dim"))


# -- code --------------------------------------------------------------------------------------------------------------
_TONES: Mapping[str, str] = MappingProxyType({
    "key": "blue", "number": "cyan", "string": "green", "comment": "dim", "first": "bold red", "second": "bold yellow",
    "mark": "bold underline"})


def _runs(runs: Sequence[CodeRun]) -> Text:
    return Text.assemble(*((printable(shortened(run.text, LONGEST_CELL)).replace("\n", "\\n").expandtabs(4), _TONES.get(run.tone, ""))
                           for run in runs))


def code(part: CodePart, width: int) -> Iterator[RenderableType]:
    """Yield the lines with their numbers; a badge stands before its line, a note after it."""
    if part.title or part.caption:
        yield _head(part.title, part.caption)
    left = max((len(line.number) for line in part.lines), default=0)
    badges = any(line.badge for line in part.lines)
    whole = Unwrapped()
    for number, line in enumerate(part.lines):
        badge = f"{line.badge or ' '} " if badges else ""
        place = f"{one_line(line.number):>{left}}  " if left else ""
        note = (f"   {one_line(line.note)}" if line.note else "", "dim")
        whole.append_text(Text.assemble("\n" * (number > 0), (badge, "bold"), (place, "dim"), _runs(line.runs), note))
    yield whole
    if part.more:
        yield Text(f"… {part.more:,} more lines", style="dim")


def details(part: DetailsPart, width: int) -> Iterator[RenderableType]:
    """Yield the title and the first lines of the text."""
    yield _head(part.title)
    lines = printable(shortened(part.text.rstrip("\n"), 4000)).split("\n")
    yield Unwrapped("\n".join(lines[:_MOST_DETAILS]))
    if len(lines) > _MOST_DETAILS:
        yield Text(f"… {len(lines) - _MOST_DETAILS:,} more lines", style="dim")


def edits(part: EditsPart, width: int) -> Iterator[RenderableType]:
    """Yield the changes one below the other: what each does, its code, its effect."""
    for number, edit in enumerate(part.edits):
        yield from ([Text()] if number else [])
        yield _head(edit.title, edit.note)
        yield Padding(_runs(edit.runs), (0, 0, 0, 2))
        if edit.effect:
            yield Text(one_line(edit.effect), style="dim")


def source(part: SourcePart, width: int) -> Iterator[RenderableType]:
    """Yield the lines of source with the cycles that each keeps a pipe busy, and below each the values that it made."""
    yield _head(f"source, {part.file}" if part.file else "source: not to be had", part.made)
    columns = [max(len(one_line(pipe.name)), len(f"{pipe.cycles:,}"), *(len(f"{cost.cycles:,}") for row in part.rows for cost in row.costs
                                                                       if cost.pipe == at), 0) for at, pipe in enumerate(part.pipes)]
    left = max((len(str(row.line)) for row in part.rows), default=0)

    def line(number: str, costs: Sequence[str], rest: Text, style: str = "") -> Text:
        cells = Text("  ").join(Text(cost.rjust(size), style="bold red" if pipe.limits and cost else style)
                                for cost, size, pipe in zip(costs, columns, part.pipes, strict=True))
        return Text.assemble((number.rjust(left), "dim"), "  " if columns else "", cells, "  ", rest)

    whole = Unwrapped()
    rows = [line("", [one_line(pipe.name) for pipe in part.pipes], Text(), "dim"),
            line("", [f"{pipe.cycles:,}" for pipe in part.pipes], Text("cycles of one task" if columns else ""), "dim")] if columns else []
    for row in part.rows:
        by_pipe = {cost.pipe: f"{cost.cycles:,}" for cost in row.costs}
        text = Text.assemble(one_line(row.text), (f"  {one_line(row.note)}" if row.note else "", "dim"))
        rows.append(line(str(row.line or ""), [by_pipe.get(at, "") for at in range(len(columns))], text))
        rows += [line("", [""] * len(columns), Text(f"    {one_line(value)}", style="dim")) for value in row.values]
        if row.more:
            rows.append(line("", [""] * len(columns), Text(f"    … {row.more:,} more", style="dim")))
    for number, row_text in enumerate(rows):
        whole.append_text(Text.assemble("\n" * (number > 0), row_text))
    yield whole
    if part.more:
        yield Text(f"… {part.more:,} more lines", style="dim")


_DIFFERENCE: Mapping[str, str] = MappingProxyType({"+": "green", "-": "red", "@": "cyan"})


def difference(part: DiffPart, width: int) -> Iterator[RenderableType]:
    """Yield the lines of a difference, added ones green and removed ones red."""
    if part.title or part.note:
        yield _head(part.title, part.note)
    whole = Unwrapped()
    for number, line in enumerate(part.lines):
        whole.append("\n" * (number > 0) + one_line(line, LONGEST_CELL), style=_DIFFERENCE.get(line[:1], ""))
    yield whole
    if part.more:
        yield Text(f"… {part.more:,} more lines", style="dim")


def instructions(part: InstructionsPart, width: int) -> Iterator[RenderableType]:
    """Yield the steps in order: number, pipe, step; above a step the user's line, the flags it waits for and barriers, below its C++."""
    if part.title:
        yield _head(part.title)
    left = max((len(one_line(row.number)) for row in part.rows), default=0)
    pipes = max((len(one_line(pipe)) for pipe in part.pipes), default=0)
    whole, rows = Unwrapped(), []
    for number, row in enumerate(part.rows):
        if row.source:
            rows.append(Text(one_line(row.source), style="bold"))
        before = [f"wait {one_line(flag.event)} of {_pipe(part, flag.after)}" for flag in part.flags if flag.wait == number]
        before += [f"barrier of {_pipe(part, mark.pipe)}" for mark in part.barriers if mark.row == number]
        rows += [Text(f"{'':{left + pipes + 4}}{text}", style="dim") for text in before]
        pipe = "" if row.pipe is None else _pipe(part, row.pipe)
        rows.append(Text.assemble((one_line(row.number).rjust(left), "dim"), f"  {pipe.ljust(pipes)}  ", one_line(row.ir)))
        if row.code:
            rows.append(Text(f"{'':{left + pipes + 4}}{one_line(row.code)}", style="dim"))
        rows += [Text(f"{'':{left + pipes + 4}}set {one_line(flag.event)} for {_pipe(part, flag.before)}", style="dim")
                 for flag in part.flags if flag.done == number]
    for number, line in enumerate(rows):
        whole.append_text(Text.assemble("\n" * (number > 0), line))
    yield whole
    if part.more:
        yield Text(f"… {part.more:,} more steps", style="dim")
    for at, memory in enumerate(part.memories):
        of = f" of {memory.size_bytes:,}" if memory.size_bytes else ""
        yield Text.assemble((one_line(memory.name), "bold"), f"  {memory.used_bytes:,}{of} bytes")
        for one in part.lifetimes:
            if one.memory == at:
                yield Text(f"  {one.address:>8,}  {one.size_bytes:>8,} bytes  {one_line(one.name)}, steps {one.first} to {one.last}",
                           style="dim")


def _pipe(part: InstructionsPart, number: int) -> str:
    return one_line(part.pipes[number]) if number < len(part.pipes) else str(number)


# -- tensors and memories ----------------------------------------------------------------------------------------------
_REGIONS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "other": ("o", "dim"), "first": ("A", "bold blue"), "second": ("B", "bold yellow"), "shared": ("#", "bold red")})


def regions(part: RegionsPart, width: int) -> Iterator[RenderableType]:
    """Yield the map of the tensor as cells, A and B for the two accesses, # for both; then the notes."""
    yield _head(part.title, part.subtitle)
    height, across = min(_MAP_ROWS, max(1, part.rows)), min(_MAP_COLUMNS, max(1, part.cols), max(8, width - 12))
    cells = [["·"] * across for _ in range(height)]
    for tone, (letter, _) in _REGIONS.items():      # what both touch is drawn last
        for box in part.boxes:
            if box.tone == tone:
                columns = _cells(box.cols, part.cols, across)
                for row in _cells(box.rows, part.rows, height):
                    cells[row][columns.start:columns.stop] = letter * len(columns)
    styles = {letter: style for letter, style in _REGIONS.values()}
    for number, row_cells in enumerate(cells):
        label = "0" if number == 0 else f"{part.rows:,}" if number == height - 1 else ""
        yield Text.assemble((label.rjust(9), "dim"), " ", *((letter, styles.get(letter, "dim")) for letter in row_cells))
    yield Text(f"{'':10}0{f'{part.cols:,}'.rjust(across - 1)}", style="dim")
    for box in part.boxes:
        if box.label:
            yield Text.assemble(_REGIONS[box.tone], " ", one_line(box.label))
    if part.sentence:
        yield Text(one_line(part.sentence, LONGEST_CELL), style="bold red")
    yield from (Text(one_line(note, LONGEST_CELL)) for note in part.notes)
    if part.iterations:
        line = Text.assemble(("iterations ", "bold"), (f"{one_line(part.loop)}: ", "dim"))
        for cell in part.iterations:
            line.append(f"[{cell.letter or one_line(cell.label)}]", style="bold" if cell.letter else "")
            line.append("=" if cell.joined else " ", style="red")
        yield line
        yield Text("no order between them; = joins two that touch the same elements", style="dim")


def _cells(extent: tuple[int, int], whole: int, cells: int) -> range:
    """Return the cells of a map that a half-open range of elements lies in: at least one."""
    first = min(cells - 1, max(0, extent[0] * cells // max(1, whole)))
    return range(first, max(first + 1, min(cells, -(-extent[1] * cells // max(1, whole)))))


def maps(part: MapsPart, width: int) -> Iterator[RenderableType]:
    """Yield a line for each region."""
    yield Text.assemble((one_line(part.title), "bold"), f"  {one_line(part.note)}")
    for drawn in part.maps:
        use = "read and written" if drawn.use == "both" else drawn.use
        yield Text.assemble(f"{one_line(drawn.tensor)}{one_line(drawn.region)}", (f"  of {one_line(drawn.about)}, {use}", "dim"))


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def grid(part: GridPart, width: int) -> Iterator[RenderableType]:
    """Yield the panels: a character a task, beside it when the task started; a dot is a hole."""
    yield Text.assemble((part.kernel.letter, key_style(part.kernel)), " ", (one_line(part.title), "bold"), f"  {one_line(part.note)}")
    for panel in part.panels:
        if panel.title:
            yield Text(one_line(panel.title), style="dim")
        left = max((cell_len(one_line(label)) for label in panel.row_labels), default=0)
        where = _grid_cells(panel, part, by_time=False)
        when = _grid_cells(panel, part, by_time=True) if part.executors and left + 2 * panel.n_columns + 4 <= width else [""] * len(where)
        for label, one, other in zip(panel.row_labels, where, when, strict=True):
            beside = f"{' ' * (panel.n_columns - len(one))}   {other}" if other else ""
            yield Text.assemble((f"{one_line(label):>{left}} ", "dim"), one, (beside, "dim"))
    if part.more:
        yield Text(f"… {part.more:,} more iterations of the outer loops", style="dim")
    said = f"a digit is the {one_line(part.place)}; beside it when the task started, in eighths of {part.total:,} {one_line(part.unit)}"
    has_tails = not part.merged and any(cell.width < 100 for panel in part.panels for cell in panel.cells)
    if part.executors or has_tails:
        yield Text(said if part.executors else "a small letter is a tail", style="dim")


def _grid_cells(panel: GridPanel, part: GridPart, *, by_time: bool) -> list[str]:
    rows = [["·"] * panel.n_columns for _ in range(panel.n_rows)]
    for cell in panel.cells:
        letter = part.kernel.letter if cell.width == 100 else part.kernel.letter.lower()
        shown = str(cell.when) if by_time else _DIGITS[cell.where % len(_DIGITS)] if part.executors else letter
        rows[cell.y][cell.x] = shown
    return ["".join(row).rstrip("·") or "·" for row in rows]




_BAR = 40


def memory(part: MemoryPart, width: int) -> Iterator[RenderableType]:
    """Yield a bar for each memory, a letter for each tile in it, and the names of the tiles."""
    yield _head(part.title, part.note)
    left = max((len(one_line(bar.name)) for bar in part.bars), default=0)
    span = max(8, min(_BAR, width - left - 20))
    for bar in part.bars:
        letters = [chr(ord("a") + at % 26) for at in range(len(bar.tiles))]
        filled = "".join(letter * round(tile.width * span / 1000) for letter, tile in zip(letters, bar.tiles, strict=True))[:span]
        share = (f"  {one_line(bar.used)} {one_line(bar.share)}", "" if bar.fits else "bold red")
        lack = ("" if bar.fits else " does not fit", "bold red")
        yield Text.assemble(one_line(bar.name).rjust(left), " ", filled.ljust(span, "·"), share, lack)
        line = Text()
        for letter, tile in zip(letters, bar.tiles, strict=True):
            pair = Text.assemble((letter, "bold"), f" {fitted(one_line(tile.name), 24)}",
                                 (f" {one_line(tile.note)}" if tile.note else "", "dim"))
            yield from (Padding(full, (0, 0, 0, left + 1)) for full in flow(line, pair, width - left - 1))
        if line:
            yield Padding(line, (0, 0, 0, left + 1))


def machine(part: MachinePart, width: int) -> Iterator[RenderableType]:
    """Yield a line for each control processor with its cores, and one for each memory."""
    for aicpu in part.aicpus:
        yield Text.assemble((one_line(aicpu.label), "dim"), *(
            f"   {group.count} {group.kind} {'■' * min(group.count, 24)}{'…' if group.count > 24 else ''}" for group in aicpu.cores))
    if part.note:
        yield Text(one_line(part.note), style="dim")
    names = max((len(one_line(one.name)) for one in part.memories), default=0)
    sizes = max((len(one_line(one.size)) for one in part.memories), default=0)
    for one in part.memories:
        gauge = "█" * max(1, round(one.share * 16 / 1000)) if one.share else ""
        yield Text.assemble(one_line(one.name).ljust(names), "  ", one_line(one.size).rjust(sizes), "  ", gauge.ljust(16),
                            (f"  {one_line(one.where)} {one_line(one.note)}", "dim"))


# -- runs --------------------------------------------------------------------------------------------------------------
def compared(part: ComparedPart, width: int) -> Iterator[RenderableType]:
    """Yield the runs one below the other on one scale: figures, a bar with the work and the loss, what is said, the lanes."""
    span = max(8, min(100, width - 12))
    for number, row in enumerate(part.rows):
        yield from ([Text()] if number else [])
        figures = "  ".join(filter(None, (f"{row.cycles:,} {one_line(part.unit)}", one_line(row.versus), one_line(row.above))))
        yield Text.assemble((f"{one_line(row.letter)} ", "bold"), (one_line(row.name), "bold"), "  ", figures)
        yield from _bar_of(row, part, span)
        line = Text()
        for setting in row.settings:
            pair = Text.assemble((one_line(setting.label), "dim"), " ", (one_line(setting.value), "bold" if setting.differs else ""),
                                 "*" if setting.differs else "")
            yield from flow(line, pair, width)
        yield from ([line] if line else [])
        if row.note:
            yield Text(one_line(row.note), style="dim")
        for pool in row.pools:
            yield Text(f"{one_line(pool.label)} {one_line(pool.busy)}".strip(), style="dim")
            yield from (letters_of(lane, part.legend, span) for lane in pool.lanes[:_MOST_LANES])
            if len(pool.lanes) > _MOST_LANES:
                yield Text(f"… {len(pool.lanes) - _MOST_LANES:,} more lanes", style="dim")
    if part.more:
        yield Text(f"… {part.more:,} more", style="dim")
    yield from legend_lines(part.legend, width)
    if any(setting.differs for row in part.rows for setting in row.settings):
        yield Text("* differs from the first", style="dim")


def _bar_of(row: ComparedRow, part: ComparedPart, span: int) -> Iterator[Text]:
    """Yield the bar of a run, of work and loss, with a mark below at the lower bound."""
    whole, total = sum(segment.amount for segment in row.segments), max(1, part.total)
    length = round(span * row.cycles / total)
    line, keys, before = Text(), Text(), 0
    for segment, fill in zip(row.segments, fills_of(row.segments), strict=True):
        begin, before = before, before + segment.amount
        cells = round(length * before / max(1, whole)) - round(length * begin / max(1, whole))
        line.append(fill * cells, style="red" if segment.tone == "bad" else "")
        keys.append(f"{fill} {one_line(segment.label)} {segment.amount / max(1, whole):.0%}   ")
    yield line if row.segments else Text("█" * length)
    yield bound_mark(min(span - 1, max(0, round(span * row.bound / total) - 1)), f"bound {row.bound:,}")
    yield from ([keys] if row.segments else [])


def bound_mark(at: int, label: str) -> Text:
    """Return the mark of a lower bound at a column, with its label on the side that has room."""
    return Text(f"{label} ▲".rjust(at + 1) if at > len(label) else f"{' ' * at}▲ {label}", style="dim")


def advice(part: AdvicePart, width: int) -> Iterator[RenderableType]:
    """Yield a bar, the cycles and the gain of each change, and below the change and why it helps."""
    span = max(8, min(width - 24, 60))
    for row in part.rows:
        bar = "█" * max(1, round(span * row.cycles / max(1, part.total)))
        yield Text.assemble(bar, f" {row.cycles:,} ", (one_line(row.gain), "bold"))
        yield Padding(Text(one_line(row.change, LONGEST_CELL), style="bold"), (0, 0, 0, 2))
        yield Padding(Text(one_line(row.why, LONGEST_CELL), style="dim"), (0, 0, 0, 2))
    yield Text(f"{one_line(part.unit)}; the lower bound of the run as it is: {part.bound:,}", style="dim")


def strip(part: StripPart, width: int) -> Iterator[RenderableType]:
    """Yield the wait as a bar, and below a line for each boundary and for each time between two."""
    segments = tuple(Segment(label=span.label, amount=span.amount, tone=span.tone) for span in part.spans)
    whole, cells = sum(span.amount for span in part.spans), max(8, min(100, width))
    fills = fills_of(segments)
    yield Text("".join(fill * round(cells * span.amount / max(1, whole)) for fill, span in zip(fills, part.spans, strict=True))[:cells])
    for at, (label, time) in enumerate(part.moments):
        yield Text.assemble((one_line(label), "bold"), f" at {time:,} {one_line(part.unit)}")
        if at < len(part.spans):
            span = part.spans[at]
            cause = (f"  {one_line(span.cause)}" if span.cause else "", "dim")
            yield Text.assemble(f"  {fills[at]} {one_line(span.label)} {span.amount:,}", cause)


def curve(part: CurvePart, width: int) -> Iterator[RenderableType]:
    """Yield a plot: a dot for each try, # for the best so far, - for the lower bound."""
    yield _head(part.title)
    left = max(len(one_line(part.high)), len(one_line(part.low)), 1)
    span = max(8, min(72, width - left - 1))
    cells = [[" "] * span for _ in range(_PLOT_ROWS)]

    def place(x: int, y: int) -> tuple[int, int]:
        return min(_PLOT_ROWS - 1, max(0, y * _PLOT_ROWS // 1001)), min(span - 1, max(0, x * span // 1001))

    if part.bound is not None:
        cells[place(0, part.bound)[0]] = ["-"] * span
    for dot in part.dots:
        row, column = place(dot.x, dot.y)
        cells[row][column] = "·"
    for at, step in enumerate(part.steps):
        row, column = place(step.x, step.y)
        last = place(part.steps[at + 1].x, 0)[1] if at + 1 < len(part.steps) else span
        cells[row][column:max(column + 1, last)] = "#" * max(1, last - column)
    for number, line in enumerate(cells):
        label = one_line(part.high) if number == 0 else one_line(part.low) if number == _PLOT_ROWS - 1 else ""
        yield Text.assemble((label.rjust(left), "dim"), " ", "".join(line))
    ends = f"{one_line(part.first)} {one_line(part.x_label)}"
    yield Text(f"{'':{left}} {ends}{one_line(part.last).rjust(max(1, span - len(ends)))}", style="dim")
    yield Text("# best so far   · each try" + ("   - lower bound" if part.bound is not None else ""), style="dim")


def graph(part: GraphPart, width: int) -> Iterator[RenderableType]:
    """Yield a line for each node, and below it one for each edge that leaves it: where to, why, how many."""
    for number, node in enumerate(part.nodes):
        key = (f"{node.kernel.letter} ", key_style(node.kernel)) if node.kernel is not None else ("", "")
        yield Text.assemble(key, (one_line(node.label), "bold"), (f"  {one_line(node.count)}" if node.count else "", "dim"))
        for link in part.links:
            if link.source == number and link.target < len(part.nodes):
                way = "itself" if link.target == number else one_line(part.nodes[link.target].label)
                yield Text.assemble(f"  → {way}", (f"  {one_line(link.reasons)}", "dim"), f"  {one_line(link.count)}" if link.count else "")
    if part.more:
        yield Text(f"… {part.more:,} more", style="dim")
    yield from legend_lines(part.legend, width)


# -- kernels of a package, passes, waits -------------------------------------------------------------------------------
DRAWINGS: Mapping[str, Callable[[Any, int], Iterator[RenderableType]]] = MappingProxyType({
    "code": code, "details": details, "edits": edits, "source": source, "regions": regions, "memory": memory, "machine": machine,
    "compared": compared, "curve": curve, "graph": graph, "maps": maps, "grid": grid,
    "advice": advice, "strip": strip, "diff": difference, "instructions": instructions,
})
