"""Cards: all that is shown of a value, as data. No renderer looks at a program, and no card knows HTML.

A card has a title, one sentence that a person could act on, and parts: facts, tables, bars, lanes of tasks, code, nested boxes.
`Card.model_dump_json()` is what a command prints with --json.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from pto_wsp.doors import late_module


class CardPart(BaseModel):
    """Base of the parts of a card."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LegendEntry(CardPart):
    """A kernel in a picture: its name, its letter, and its slot in the table of colours (8 to 15: hatched)."""

    name: str
    letter: str
    slot: int


class LabelledValue(CardPart):
    """A label and its value; `note` says more in a tooltip."""

    label: str
    value: str
    note: str = ""


class ValuesPart(CardPart):
    """Labelled values, one beside the other."""

    kind: Literal["values"] = "values"
    values: tuple[LabelledValue, ...]


class TablePart(CardPart):
    """A table. `right`: the columns of numbers. `more`: the number of rows left out."""

    kind: Literal["table"] = "table"
    title: str = ""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    more: int = 0


class Segment(CardPart):
    """A part of a bar. `tone`: work is grey, loss is red, rest is light."""

    label: str
    amount: int
    tone: Literal["work", "submission", "bad", "rest"]


class BarPart(CardPart):
    """A total as segments on one line. `bound`: where the lower bound lies, if there is one; amounts and bound in `unit`."""

    kind: Literal["bar"] = "bar"
    title: str = ""
    unit: str
    segments: tuple[Segment, ...]
    bound: int | None = None


class AdviceRow(CardPart):
    """A change of a schedule: as Python, the cycles with it, what it gains, and why."""

    change: str
    cycles: int
    gain: str
    why: str


class AdvicePart(CardPart):
    """Changes with bars on one scale; the first row is the run as it is. `total`, `bound`: full width and lower bound in `unit`."""

    kind: Literal["advice"] = "advice"
    unit: str
    total: int
    bound: int
    rows: tuple[AdviceRow, ...]


class TaskMark(CardPart):
    """A span of a lane in which one kernel ran. `x`, `width`: thousandths of the lane; `full`: busy for more than half of the span."""

    x: int
    width: int
    kernel: int
    full: bool = True
    name: str = ""


class TaskLane(CardPart):
    """An executor, or executors that are folded into one lane: a label, the share of time that it was busy, and its marks."""

    label: str
    group: str
    busy: str
    marks: tuple[TaskMark, ...]


class LanesPart(CardPart):
    """Tasks over time. `total`: the time of the full width in `unit`; `more`: lanes left out; `merged`: marks stand for several tasks."""

    kind: Literal["lanes"] = "lanes"
    unit: str
    total: int
    lanes: tuple[TaskLane, ...]
    legend: tuple[LegendEntry, ...]
    more: int = 0
    merged: bool = False


class Setting(CardPart):
    """The text of one compared run about a subject. `differs`: the text differs from that of the first run."""

    label: str
    value: str
    differs: bool = False


class PoolLanes(CardPart):
    """The lanes of a pool on a common scale: a name, the share of time that its executors were busy, and a lane each."""

    label: str
    busy: str
    lanes: tuple[TaskLane, ...]


class ComparedRow(CardPart):
    """A run in a comparison: its name, cycles and lower bound, the causes of its time, and its lanes.

    `versus`: the change relative to the first run; `above`: the distance to the lower bound; `note`: the dominating cause.
    """

    letter: str
    name: str
    cycles: int
    bound: int
    versus: str = ""
    above: str = ""
    settings: tuple[Setting, ...] = ()
    note: str = ""
    segments: tuple[Segment, ...]
    pools: tuple[PoolLanes, ...] = ()


class ComparedPart(CardPart):
    """Runs side by side on one scale, best first. `total`: the time of the full width in `unit`.

    `ticks`: times for the axis; `bound`: the lower bound that all have, None where they differ; `more`: rows left out.
    """

    kind: Literal["compared"] = "compared"
    unit: str
    total: int
    bound: int | None
    ticks: tuple[int, ...]
    rows: tuple[ComparedRow, ...]
    legend: tuple[LegendEntry, ...] = ()
    more: int = 0


class CurvePoint(CardPart):
    """A point of a curve: its label, and its place `x`, `y` in thousandths of the picture, y from the top."""

    label: str
    x: int
    y: int


class CurvePart(CardPart):
    """A search: each trial as a dot, the best result so far as steps. `bound`: height of the lower bound, in thousandths from the top."""

    kind: Literal["curve"] = "curve"
    title: str
    x_label: str
    first: str
    last: str
    low: str
    high: str
    dots: tuple[CurvePoint, ...]
    steps: tuple[CurvePoint, ...]
    bound: int | None = None


class GraphNode(CardPart):
    """A call or a task in a drawn graph: its kernel, a name, how many tasks it stands for, and its place in units of the picture."""

    kernel: LegendEntry | None
    label: str
    count: str = ""
    x: int
    y: int
    width: int


class GraphLink(CardPart):
    """Edges between two nodes (by number) or from a node to itself: reason, count, and the line's points as x, y pairs."""

    source: int
    target: int
    reasons: str
    count: str = ""
    points: tuple[tuple[int, int], ...]
    is_back: bool = False
    data: bool = True


class GraphPart(CardPart):
    """A graph, drawn from top to bottom. `width`, `height`: of the picture, in pixels at full size; `node_height`: of each node."""

    kind: Literal["graph"] = "graph"
    width: int
    height: int
    node_height: int
    nodes: tuple[GraphNode, ...]
    links: tuple[GraphLink, ...]
    legend: tuple[LegendEntry, ...] = ()
    more: int = 0


class RegionMap(CardPart):
    """A block of a tensor on a small map of two of its dimensions: the two of which the block is the smallest share.

    `down`, `across`: what the map's sides stand for; `x`, `y`, `width`, `height`: thousandths of the sides. `region`: the block as text.
    """

    tensor: str
    about: str
    region: str
    use: Literal["read", "written", "both", "view"]
    down: str
    across: str
    x: int
    y: int
    width: int
    height: int


class MapsPart(CardPart):
    """The regions of tensors that one task uses, on small maps."""

    kind: Literal["maps"] = "maps"
    title: str
    note: str = ""
    maps: tuple[RegionMap, ...]


class SiteArgument(CardPart):
    """An argument of a call: the parameter with its role, what is bound, and the region of a middle iteration, if it is known."""

    label: str
    value: str
    region: RegionMap | None = None


class Site(CardPart):
    """A call of a kernel: the task's name, how many tasks it makes, and its arguments with how they are used."""

    kernel: LegendEntry
    index: str
    tasks: str = ""
    arguments: tuple[SiteArgument, ...]


class Lengths(CardPart):
    """The iterations of a loop for each iteration of those around it, in order. `more`: those left out."""

    counts: tuple[int, ...]
    more: int = 0


class Dots(CardPart):
    """The columns of sparse rows. `rows`: positions in 0 .. columns - 1; `scale`: how many columns a position stands for."""

    rows: tuple[tuple[int, ...], ...]
    columns: int
    scale: int = 1
    more: int = 0


class Box(CardPart):
    """A loop, a branch or a process: its head, the size at the right, and what is inside, in order.

    `order`: `any` for iterations without an order, `down` for iterations in order, `none` for other statements. `size`: a number, a symbol
    or words; `lengths`, `dots`: of ragged and sparse rows.
    """

    head: str
    size: str = ""
    order: Literal["any", "down", "none"] = "none"
    lengths: Lengths | None = None
    dots: Dots | None = None
    inside: tuple[Box | Site | str, ...] = ()


class BoxesPart(CardPart):
    """The tree of a workload."""

    kind: Literal["boxes"] = "boxes"
    boxes: tuple[Box | Site | str, ...]
    more: int = 0


class GridCell(CardPart):
    """A task, or tasks that are merged, in a grid. `x`, `y`: column and row; `width`: percent of a cell, less for a tail.

    `where`: the executor, or the kernel where none has run; `when`: the time of its start in eighths of the run.
    """

    x: int
    y: int
    width: int = 100
    where: int = 0
    when: int = 0
    name: str = ""


class GridPanel(CardPart):
    """The tasks of one iteration of the outer loops. `row_labels`: of each row, "" where there is no room."""

    title: str
    n_rows: int
    n_columns: int
    row_labels: tuple[str, ...]
    cells: tuple[GridCell, ...]


class GridExecutor(CardPart):
    """An executor in the legend of a grid, and its share of the cycles of these tasks in percent of the busiest one."""

    number: int
    share: int


class GridPart(CardPart):
    """The iteration space of a call: a panel for each iteration of the outer loops, a cell a task.

    `across`, `down`: the loops of columns and rows. `place`: what tasks ran on. `executors`: empty for tasks that have not run. `last`,
    `chosen`: panel and cell of the task that ends last, and of the one that the maps show. `merged`: a cell stands for several tasks.
    """

    kind: Literal["grid"] = "grid"
    title: str
    note: str = ""
    kernel: LegendEntry
    across: str
    down: str
    place: str = ""
    panels: tuple[GridPanel, ...]
    executors: tuple[GridExecutor, ...] = ()
    unit: str = ""
    total: int = 0
    last: tuple[int, int] | None = None
    chosen: tuple[int, int] | None = None
    merged: bool = False
    more: int = 0
    more_executors: int = 0


class PipeTotal(CardPart):
    """A column of costs: a pipe, its cycles of one task, its share of the busiest one in percent. `limits`: the busiest one."""

    name: str
    cycles: int
    share: int
    limits: bool = False
    note: str = ""


class CostMark(CardPart):
    """The cycles that a line keeps a pipe busy; `width`: percent of the largest amount of the table."""

    pipe: int
    cycles: int
    width: int


class SourceRow(CardPart):
    """A line of the user's source, what it costs, and the values that it made. `line` 0: a heading or lines left out."""

    line: int
    text: str
    note: str = ""
    costs: tuple[CostMark, ...] = ()
    values: tuple[str, ...] = ()
    more: int = 0


class SourcePart(CardPart):
    """Source beside the tile IR that it made, with a column of cycles for each pipe of an arch. `more`: lines left out."""

    kind: Literal["source"] = "source"
    file: str
    made: str
    pipes: tuple[PipeTotal, ...] = ()
    rows: tuple[SourceRow, ...]
    more: int = 0


class TileSpan(CardPart):
    """A tile in a memory. `width`: thousandths of the bar."""

    name: str
    width: int
    note: str = ""


class MemoryBar(CardPart):
    """A memory at its fullest moment: the tiles there, largest first."""

    name: str
    used: str
    share: str
    fits: bool
    tiles: tuple[TileSpan, ...]


class MemoryPart(CardPart):
    """On-chip memories at their fullest moments."""

    kind: Literal["memory"] = "memory"
    title: str
    note: str = ""
    bars: tuple[MemoryBar, ...]


class Preformatted(CardPart):
    """Text in a fixed pitch, as it is."""

    kind: Literal["text"] = "text"
    title: str = ""
    text: str


Tone: TypeAlias = Literal["", "key", "name", "number", "string", "comment", "first", "second", "mark"]


class CodeRun(CardPart):
    """Consecutive characters of a line of code with one tone: a class of the language's tokens, or a marked side of a conflict."""

    text: str
    tone: Tone = ""


class CodeLine(CardPart):
    """A line of code. `number`: the line number, "" for none; `badge`: letter of the access on the line; `note`: text at the right."""

    number: str = ""
    badge: Literal["", "A", "B"] = ""
    runs: tuple[CodeRun, ...] = ()
    note: str = ""


class CodePart(CardPart):
    """Code with the tones of its language. `caption`: where it is from; `more`: lines left out."""

    kind: Literal["code"] = "code"
    title: str = ""
    caption: str = ""
    lines: tuple[CodeLine, ...]
    more: int = 0


class RegionBox(CardPart):
    """A rectangle of elements of a tensor: half-open ranges of rows and columns."""

    rows: tuple[int, int]
    cols: tuple[int, int]
    tone: Literal["first", "second", "shared", "other"]
    label: str = ""


class IterationCell(CardPart):
    """An iteration of a loop. `joined`: it touches elements of the next cell's."""

    label: str
    letter: Literal["", "A", "B"] = ""
    joined: bool = False


class RegionsPart(CardPart):
    """Regions on the map of a tensor, or of two of its dimensions, of `rows` × `cols` elements. `sentence`, `notes`: beside the map.

    `iterations`: of the loop `loop`, whose iterations have no order.
    """

    kind: Literal["regions"] = "regions"
    title: str
    subtitle: str = ""
    rows: int
    cols: int
    boxes: tuple[RegionBox, ...]
    sentence: str = ""
    notes: tuple[str, ...] = ()
    loop: str = ""
    iterations: tuple[IterationCell, ...] = ()


class Edit(CardPart):
    """A change of the user's code. `runs`: the new code, with the tone `mark` where it differs; `effect`: what the change gives."""

    title: str
    note: str = ""
    runs: tuple[CodeRun, ...]
    effect: str = ""


class EditsPart(CardPart):
    """Alternative changes of the user's code, side by side."""

    kind: Literal["edits"] = "edits"
    edits: tuple[Edit, ...]


class CoreGroup(CardPart):
    """Cores of one kind that an AICPU dispatches tasks to."""

    kind: Literal["cube", "vector", "core"]
    count: int


class Aicpus(CardPart):
    """A control processor with the cores of which it is the home."""

    label: str
    cores: tuple[CoreGroup, ...]


class MemorySize(CardPart):
    """A memory of a machine. `share`: thousandths of the largest one of a core; `where`: whose it is; `note`: what programs cannot use."""

    name: str
    where: str
    size: str
    share: int = 0
    note: str = ""


class MachinePart(CardPart):
    """A machine: control processors with their cores, and the memories. `note`: what is not fixed."""

    kind: Literal["machine"] = "machine"
    aicpus: tuple[Aicpus, ...]
    memories: tuple[MemorySize, ...]
    note: str = ""


class InstructionRow(CardPart):
    """A step of a kernel for a core: a row of the drawing.

    `source`: the user's line, at the first step that it made; `ir`: the step as listed; `code`: its C++, `folded` the declarations before
    it; `pipe`: the number of the pipe that does it, None for what does no work.
    """

    number: str = ""
    source: str = ""
    ir: str
    code: str = ""
    folded: int = 0
    pipe: int | None = None


class FlagCurve(CardPart):
    """A flag: pipe `before` waits in front of the step `wait` for what pipe `after` did up to the step `done`; both are row numbers."""

    done: int
    after: int
    wait: int
    before: int
    event: str


class BarrierMark(CardPart):
    """A barrier on a pipe, in front of a row."""

    row: int
    pipe: int


class Lifetime(CardPart):
    """A buffer in a memory: its bytes, and the first and last rows that use it."""

    name: str
    memory: int
    address: int
    size_bytes: int
    first: int
    last: int


class UsedMemory(CardPart):
    """A memory of a core: its name, the bytes up to which it is used, and its size, 0 where that is not known."""

    name: str
    used_bytes: int
    size_bytes: int = 0


class InstructionsPart(CardPart):
    """A kernel for a core on one vertical axis: source, listing, C++, pipes with flags and barriers, and memories by address.

    `more`: the steps left out.
    """

    kind: Literal["instructions"] = "instructions"
    title: str = ""
    rows: tuple[InstructionRow, ...]
    pipes: tuple[str, ...]
    flags: tuple[FlagCurve, ...] = ()
    barriers: tuple[BarrierMark, ...] = ()
    memories: tuple[UsedMemory, ...] = ()
    lifetimes: tuple[Lifetime, ...] = ()
    more: int = 0


class DiffPart(CardPart):
    """A difference of texts, unified: lines begin with +, - or a space, heads with @. `more`: the lines left out."""

    kind: Literal["diff"] = "diff"
    title: str = ""
    note: str = ""
    lines: tuple[str, ...]
    more: int = 0


class StripSpan(CardPart):
    """A time between two moments: what happens, how long, and the one cause of its length."""

    label: str
    amount: int
    tone: Literal["work", "submission", "bad", "rest"]
    cause: str = ""


class StripPart(CardPart):
    """A wait as a strip. `moments`: label and time of each boundary, one more than spans."""

    kind: Literal["strip"] = "strip"
    unit: str
    moments: tuple[tuple[str, int], ...]
    spans: tuple[StripSpan, ...]


class DetailsPart(CardPart):
    """Text that is folded under its title until a reader opens it."""

    kind: Literal["details"] = "details"
    title: str
    text: str


Part = Annotated[ValuesPart | TablePart | BarPart | LanesPart | BoxesPart | SourcePart | MemoryPart | Preformatted | CodePart | RegionsPart
                 | EditsPart | DetailsPart | ComparedPart | CurvePart | GraphPart | MachinePart | MapsPart | GridPart | AdvicePart
                 | InstructionsPart | DiffPart | StripPart,
                 Field(discriminator="kind")]


class Card(CardPart):
    """The card of a value. `subtitle`: the kind of the value and its origin; `state`: what has not run yet; `sentence`: the verdict.

    `tone`: bad for an error.
    """

    title: str
    subtitle: str = ""
    state: str = ""
    sentence: str = ""
    parts: tuple[Part, ...] = ()
    foot: str = ""
    tone: Literal["", "bad"] = ""

    def __str__(self) -> str:
        """Return the card as text, as wide as the terminal."""
        text: str = late_module("pto_wsp.view.text").text_of(self)
        return text

    def __repr__(self) -> str:
        return f"Card({' · '.join(filter(None, (self.title, self.subtitle, self.sentence or self.state)))})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the card as one line of text and as HTML."""
        bundle: dict[str, str] = late_module("pto_wsp.view.notebook").mimebundle(lambda: repr(self), lambda: self)
        return bundle
