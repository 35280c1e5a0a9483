"""Cards of kernels: the user's source beside its tile IR, what each line costs on an arch, and the tiles in its memories.

The cycles are estimates of an arch's model, as `kernel.cost` gives them. A kernel without source shows its IR alone; a kernel that is not
specialised, or that has an error, shows its source and what is missing.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from types import CodeType
from typing import Any

from pto_wsp.arch.kernel_cost import KernelCost, LineCosts, cost_table, line_costs
from pto_wsp.arch.model import Arch
from pto_wsp.check.capacity import MemoryMap, Peak, memory_map_after
from pto_wsp.errors import PtoError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_text import lines_with_spans
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.passes.kernel.passes import TILE_PASSES, run_kernel_passes
from pto_wsp.source import UNKNOWN, Span, cell_name
from pto_wsp.values import dataclass
from pto_wsp.view.card import (
    Card,
    CostMark,
    LabelledValue,
    MemoryBar,
    MemoryPart,
    PipeTotal,
    Preformatted,
    SourcePart,
    SourceRow,
    TablePart,
    TileSpan,
    ValuesPart,
)
from pto_wsp.view.colours import legend_of

_MOST_LINES, _MOST_VALUES = 160, 6     # lines of source in a cell, and values of one line
_MOST_COSTED = 250                     # statements up to which lines are priced within the time of a view
_MOST_TAILS, _MOST_TILES = 8, 12
_LONGEST_LINE = 160
_TYPE = re.compile(r" +# (Tile\[[^]]*\]|\w+)$")     # what the text of IR says of a value behind its definition

Known = Mapping[str, int | float]
Extents = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class KernelShown:
    """A kernel as its card needs it. `ir`: of the specialisation, None if there is none yet; `code`: of its function, None without one.

    `wanted`: what a specialisation needs; `problem`: the report of the error that tracing gives. `scalars`, `extents`: numbers given for
    parameters.
    """

    name: str
    params: tuple[str, ...]
    span: Span
    code: CodeType | None
    ir: k.Kernel | None
    wanted: str = ""
    problem: str = ""
    scalars: Known = field(default_factory=dict)
    extents: Extents = field(default_factory=dict)


def kernel_card(shown: KernelShown, arch: Arch) -> Card:
    """Return the card of a kernel with its costs on an arch; an arch that gives no speeds leaves the costs out."""
    (entry,) = legend_of((shown.name,))
    parts: list[Any] = [ValuesPart(values=_signature(shown))]
    ir, sentence = shown.ir, ""
    if ir is None:
        parts += [part for part in (_source_alone(shown),) if part is not None]
        if shown.problem:
            parts.append(Preformatted(title="The error", text=shown.problem))
        state = "it has an error" if shown.problem else f"specialise it: {shown.wanted}"
        sentence = shown.problem.partition("\n")[0]
    else:
        n_statements = sum(1 for _ in walk(ir.body))
        lines: LineCosts | None = None
        state = f"estimated on {arch.name}"
        memories = MemoryMap(ir.name, arch.name)
        if n_statements <= _MOST_COSTED:
            lowered = run_kernel_passes(ir, passes=TILE_PASSES) if ir.has_meaning else ir
            memories = memory_map_after(lowered, arch)
            try:
                priced = ir if arch.neutral else lowered
                cost, lines = cost_table(priced, arch, shown.scalars, shown.extents), line_costs(priced, arch, shown.scalars, shown.extents)
                sentence = _sentence(cost, lines, arch, has_meaning=ir.has_meaning)
            except PtoError as problem:
                state, sentence = "no costs", f"{problem.message}."
        else:
            state = f"{n_statements:,} statements: {shown.name}.cost(…) prices them"
        parts.append(_source(shown, ir, lines))
        parts += [Preformatted(title=own.form.value, text=own.text) for own in ir.bodies]
        parts += [part for part in (_tails(ir),) if part is not None]
        if memories.peaks:
            parts.append(_memories(memories, arch))
            full = next((peak for peak in memories.peaks if not peak.fits), None)
            if full is not None:
                sentence = (f"It needs {_kib(full.size_bytes)} of {full.memory}, more than the {_kib(full.limit or 0)} of {arch.name}. "
                            f"{sentence}")
    return Card(title=shown.name, subtitle=f"Kernel {entry.letter}{_place(shown.span)}", state=state, sentence=sentence,
                parts=tuple(parts), foot=_foot(shown, arch))


# -- words -------------------------------------------------------------------------------------------------------------
def _signature(shown: KernelShown) -> tuple[LabelledValue, ...]:
    values = tuple(LabelledValue(label=name, value=type) for name, _, type in (param.partition(": ") for param in shown.params))
    given = tuple(LabelledValue(label=f"{name} given", value=f"{value:,}") for name, value in shown.scalars.items())
    return values + given


def _place(span: Span) -> str:
    return "" if span == UNKNOWN else f" · {cell_name(span.file) or os.path.basename(span.file)}, line {span.line}"


def _foot(shown: KernelShown, arch: Arch) -> str:
    other = "ascend_910b" if arch.name != "ascend_910b" else "host_cpu"
    if shown.ir is None:
        return f"{shown.name}.run(…) runs it on arrays"
    return f'{shown.name}.card_on("{other}", …) estimates another arch, {shown.name}.run(…) runs it on arrays'


def _sentence(cost: KernelCost, lines: LineCosts, arch: Arch, *, has_meaning: bool) -> str:
    """Return how long a task takes, and which pipe limits it."""
    if not cost.pipes:
        return "A task moves and computes nothing."
    busy = _busy(lines)
    if cost.missing:
        given = ", ".join(f"{name}=…" for name in cost.missing)
        once = "with one iteration of open loops" if None in lines.trips.values() else "with all that may run"
        total = f"The cycles depend on {', '.join(cost.missing)}: card_on(…, {given}) counts them; {once}"
    else:
        total = f"{cost.total:,} cycles a task, estimated on {arch.name}"
    if arch.neutral and not cost.missing:
        return f"{total}, where nothing overlaps."
    if not has_meaning:
        return f"{total}: its own body is counted as one move of each bound tensor."
    if not busy:
        return f"{total}."
    pipe = max(busy, key=lambda name: busy[name])
    share = "" if cost.missing or not cost.total else f" for {busy[pipe] / cost.total:.0%} of them"
    line = max(lines.cycles, key=lambda place: lines.cycles[place].get(pipe, 0))
    if cost.missing:
        return f"{total}, {pipe} is the busiest pipe, most of all with line {line[1]}."
    return f"{total}; {pipe} is busy{share}, most of all with line {line[1]}."


def _busy(lines: LineCosts) -> dict[str, int]:
    busy: dict[str, int] = {}
    for pipes in lines.cycles.values():
        for pipe, cycles in pipes.items():
            busy[pipe] = busy.get(pipe, 0) + cycles
    return busy


# -- source ------------------------------------------------------------------------------------------------------------
def _source_alone(shown: KernelShown) -> SourcePart | None:
    """Return the source of a kernel without IR."""
    rows = [SourceRow(line=number, text=text) for number, text in _function_lines(shown)]
    if not rows:
        return None
    return SourcePart(file=_file(shown.span.file), made="", rows=tuple(rows[:_MOST_LINES]), more=max(0, len(rows) - _MOST_LINES))


def _source(shown: KernelShown, ir: k.Kernel, costs: LineCosts | None) -> SourcePart:
    """Return the lines of the function with their values, then those of other functions that made values."""
    values: dict[tuple[str, int], list[str]] = {}
    for span, text in lines_with_spans(ir):
        values.setdefault((span.file, span.line), []).append(_TYPE.sub("", text))
    by_line = {} if costs is None else costs.cycles
    pipes = () if costs is None else _pipes(costs)
    number_of = {pipe.name: number for number, pipe in enumerate(pipes)}
    largest = max((cycles for at in by_line.values() for cycles in at.values()), default=1)

    def row(file: str, line: int, text: str) -> SourceRow:
        made = values.pop((file, line), [])
        bars = tuple(CostMark(pipe=number_of[pipe], cycles=cycles, width=-(-100 * cycles // max(1, largest)))
                     for pipe, cycles in by_line.get((file, line), {}).items() if cycles)
        note = ""
        if costs is not None and (file, line) in costs.trips:
            trips = costs.trips[file, line]
            note = "iterations open: one is counted" if trips is None else f"{trips:,} iterations"
        indent = min((len(value) - len(value.lstrip()) for value in made), default=0)
        return SourceRow(line=line, text=text, note=note, costs=bars, values=tuple(value[indent:] for value in made[:_MOST_VALUES]),
                         more=max(0, len(made) - _MOST_VALUES))

    own = _function_lines(shown)
    rows = [row(shown.span.file, line, text) for line, text in own]
    others = sorted(values)
    for at, (file, line) in enumerate(others):
        text = "" if (file, line) == (UNKNOWN.file, 0) else linecache.getline(file, line).rstrip()
        if own and text and (at == 0 or others[at - 1][0] != file or line - others[at - 1][1] > 20):
            rows.append(SourceRow(line=0, text=f"{_file(file)}, called by {shown.name}"))
        rows.append(row(file, line, text[:_LONGEST_LINE]))
    file = _file(shown.span.file) if own or any(row.text for row in rows) else ""
    return SourcePart(file=file, made="tile IR", pipes=pipes, rows=tuple(rows[:_MOST_LINES]), more=max(0, len(rows) - _MOST_LINES))


def _function_lines(shown: KernelShown) -> list[tuple[int, str]]:
    """Return the lines of a kernel's function from its `def` on, without blank lines; nothing where the text is not to be had."""
    if shown.code is None or not shown.span.column:
        return []
    last = max(_last_line(shown.code), shown.span.line)
    lines = [(number, linecache.getline(shown.span.file, number).rstrip()) for number in range(shown.span.line, last + 1)]
    indent = min((len(text) - len(text.lstrip()) for _, text in lines if text), default=0)
    return [(number, text[indent:][:_LONGEST_LINE]) for number, text in lines if text]


def _last_line(code: CodeType) -> int:
    lines = [end or 0 for _, end, _, _ in code.co_positions()]
    return max([0, *lines, *(_last_line(inner) for inner in code.co_consts if isinstance(inner, CodeType))])


def _file(file: str) -> str:
    return cell_name(file) or os.path.basename(file)


def _pipes(costs: LineCosts) -> tuple[PipeTotal, ...]:
    busy = _busy(costs)
    most = max(busy.values(), default=0)
    order = [pipe for pipe in ("MTE2", "MTE1", "cube", "fixpipe", "vector", "MTE3") if busy.get(pipe)]
    limiting = next((pipe for pipe in order if busy[pipe] == most), "")
    return tuple(PipeTotal(name=pipe, cycles=busy[pipe], share=-(-100 * busy[pipe] // max(1, most)), limits=pipe == limiting)
                 for pipe in order)


# -- memory ------------------------------------------------------------------------------------------------------------
def _memories(memories: MemoryMap, arch: Arch) -> MemoryPart:
    limited = any(peak.limit is not None for peak in memories.peaks)
    note = f"at the fullest moment, of what {arch.name} has" if limited else f"at the fullest moment; {arch.name} bounds none"
    largest = max(peak.size_bytes for peak in memories.peaks)
    return MemoryPart(title="On-chip memory", note=note, bars=tuple(_memory(peak, largest) for peak in memories.peaks))


def _memory(peak: Peak, largest: int) -> MemoryBar:
    whole = max(1, peak.size_bytes if not peak.fits else largest if peak.limit is None else peak.limit)
    shown = peak.tenants[:_MOST_TILES]
    tiles = [TileSpan(name=tile.name, width=1000 * tile.size_bytes // whole,
                      note=f"{tile.type!r}, {tile.size_bytes:,} bytes, line {tile.first_line} to {tile.last_line}") for tile in shown]
    if rest := peak.tenants[_MOST_TILES:]:
        size = sum(tile.size_bytes for tile in rest)
        tiles.append(TileSpan(name=f"{len(rest)} more", width=1000 * size // whole, note=f"{size:,} bytes"))
    used = _kib(peak.size_bytes) if peak.limit is None else f"{_kib(peak.size_bytes)} of {_kib(peak.limit)}"
    share = "" if not peak.limit else f"{peak.size_bytes / peak.limit:.0%}"
    return MemoryBar(name=peak.memory, used=f"{used} at line {peak.line}", share=share, fits=peak.fits, tiles=tuple(tiles))


def _kib(size: int) -> str:
    return f"{size / 1024:,.4g} KiB" if size >= 1024 else f"{size:,} bytes"


# -- tails -------------------------------------------------------------------------------------------------------------
def _tails(ir: k.Kernel) -> TablePart | None:
    """Return where tiles may be only partly valid, and what the rest holds: one row a load or store of another kind."""
    rows = tuple(dict.fromkeys(_tail_rows(ir)))
    if not rows:
        return None
    return TablePart(title="Tails", head=("line", "", "valid", "the rest of the tile"), rows=rows[:_MOST_TAILS], right=(0,),
                     more=max(0, len(rows) - _MOST_TAILS))


def _tail_rows(ir: k.Kernel) -> Iterator[tuple[str, ...]]:
    tiles = {param.name for param in ir.params if isinstance(param, k.TileParam)}
    for stmt in walk(ir.body):
        match stmt:
            case k.Load(_, param):
                if valid := _valid(stmt, param in tiles):
                    yield str(stmt.span.line), f"load {param}", valid, f"is {stmt.fill!r}, and is computed on"
            case k.Store(param):
                if valid := _valid(stmt, param in tiles):
                    yield str(stmt.span.line), f"store {param}", valid, "is not stored"
            case k.Gather(_, param, valid=rows) if rows is not None:
                yield str(stmt.span.line), f"gather {param}", f"{print_scalar(rows)} rows", f"is {stmt.fill!r}, and is computed on"
            case k.Scatter(param, valid=rows) if rows is not None:
                yield str(stmt.span.line), f"scatter {param}", f"{print_scalar(rows)} rows", "is not stored"
            case _:
                pass


def _valid(stmt: k.Load | k.Store, is_tile: bool) -> str:
    said = [f"{print_scalar(extent)} {name}" for extent, name in ((stmt.valid_rows, "rows"), (stmt.valid_cols, "columns"))
            if extent is not None]
    return ", ".join([*(("what is bound",) if is_tile else ()), *said])
