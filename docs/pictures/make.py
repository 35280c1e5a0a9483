"""Draw the pictures of the README and of the pages: `python docs/pictures/make.py [NAME …]` writes NAME.svg beside this file.

A picture is an SVG that is complete in itself: no script, no font, no request; its colours are those of the cards, for light and dark.
Machines are drawn from their entries, lanes from the cards of real runs, so a picture says what the package does.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

import numpy as np

from pto_wsp import (
    Arch,
    Dense,
    DenseDyn,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Program,
    ReadyPolicy,
    Scalar,
    Tensor,
    Tile,
    builtin_arch,
    ceildiv,
    kernel,
    pto,
    workload,
)
from pto_wsp.arch.control import core_share
from pto_wsp.arch.model import Cores, ExecUnit, Memory
from pto_wsp.view.card import TaskLane, TaskMark
from pto_wsp.view.html import style_of
from pto_wsp.view.run_cards import lanes_of

FOLDER = Path(__file__).resolve().parent
F32, I32 = DType.F32, DType.I32
WIDTH = 960
DARK_TEXT = frozenset({1, 2, 4, 5, 7})     # colours on which letters are dark, in light and dark
_RULES = """
text{font:12px system-ui,sans-serif;fill:var(--ink);font-variant-numeric:tabular-nums}
.small{font-size:10.5px;fill:var(--ink3)}.strong{font-weight:600}.title{font-size:16px;font-weight:600}.mono{font-family:ui-monospace,monospace}
.mid{text-anchor:middle}.end{text-anchor:end}.on{fill:#fff;font-weight:600;font-size:10.5px}.ondark{fill:#16191d;font-weight:600;font-size:10.5px}
.box{fill:var(--panel);stroke:var(--line)}.open{fill:none;stroke:var(--ink3);stroke-dasharray:3 3}.ground{fill:var(--bg)}
.lane{fill:var(--hair)}.wire{fill:none;stroke:var(--ink3)}.bound{stroke:var(--bad);stroke-width:1.5}.bad{fill:var(--bad)}
"""


# -- drawing -----------------------------------------------------------------------------------------------------------
def tokens() -> tuple[str, str]:
    """Return the colours of the cards that pictures use, for light and for dark, as declarations of CSS."""
    light, dark = (dict(re.findall(r"--(\w+):(#\w+)", found)) for found in re.findall(r"\.pto-card\{(--bg[^}]*)\}", str(style_of(())))[:2])
    used = [name for name in light if f"var(--{name})" in _RULES or re.fullmatch(r"k\d", name)]
    return ";".join(f"--{name}:{light[name]}" for name in used), ";".join(f"--{name}:{dark[name]}" for name in used)


def svg(height: int, parts: Sequence[str], label: str) -> str:
    """Return a picture, `WIDTH` wide; `label`: what a screen reader says."""
    light, dark = tokens()
    colours = "".join(f".c{slot}{{fill:var(--k{slot})}}" for slot in range(8))
    style = f"svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}{_RULES.strip()}{colours}".replace("\n", "")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">'
    ground = f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>'
    return "\n".join((head, f"<title>{escape(label)}</title>", f"<style>{style}</style>", ground, *parts, "</svg>", ""))


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Return words whose base line begins at x, y; `kind`: classes."""
    return f'<text x="{x:g}" y="{y:g}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str, more: str = "") -> str:
    """Return a box; `kind`: classes."""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{more}/>'


def arrow(x: float, y: float, x2: float, y2: float) -> str:
    """Return a straight arrow to the right or down."""
    tip = f"M{x2 - 4:g} {y2 - 3:g}l4 3l-4 3" if y == y2 else f"M{x2 - 3:g} {y2 - 4:g}l3 4l3 -4"
    return f'<path class="wire" d="M{x:g} {y:g}L{x2:g} {y2:g}{tip}"/>'


# -- machines ----------------------------------------------------------------------------------------------------------
CUBE_PATH = ("MTE2", "L1", "MTE1", "L0A", "L0B", "cube", "L0C", "fixpipe")
VECTOR_PATH = ("MTE2", "UB", "vector", "MTE3")


def example_cpu() -> Arch:
    """Return what `host_cpu` says of a machine with four CPUs: the real entry is read from the machine that asks."""
    caches = tuple(Memory(name=f"cache {level}") for level in (3, 2, 1))
    units = tuple(ExecUnit(name=name, source="estimate: by the flags of the CPU") for name in ("cube", "vector", "MTE2", "MTE3", "scalar"))
    return Arch(name="host_cpu", cores=Cores(cube=4, vector=4, shared=True), memories=(Memory(name="GM"), *caches), units=units)


def machine(arch: Arch) -> str:
    """Return the picture of a machine: its AICPUs, the cores that each dispatches to, and the inside of a core."""
    parts = [text(20, 30, arch.name, "title mono"), text(20, 48, _summary(arch), "small")]
    parts += _grid(arch)
    inside, height = _caches(arch) if arch.memories[1].name.startswith("cache") else _pipes(arch)
    return svg(height, [*parts, *inside], f"the machine {arch.name}: {_summary(arch)}")


def _summary(arch: Arch) -> str:
    cores = arch.cores
    kinds = (f"{cores.cube} cores that run tasks of both kinds" if cores.shared else f"{cores.cube} cube cores, {cores.vector} vector cores"
             if cores.cube is not None else "neutral: as many executors as the schedule names" if arch.neutral else
             "number of cores not given: arch.with_cores(cube=…, vector=…)")
    aicpus = f"{arch.aicpu.count} AICPUs" if arch.aicpu.count else f"AICPUs as the schedule names, else {arch.aicpu.default_count}"
    return f"{kinds} · {aicpus} · ~ marks an estimate"


def _grid(arch: Arch) -> Iterator[str]:
    """Yield the table of executors: a column an AICPU, a row a pool."""
    n = arch.aicpu.count or arch.aicpu.default_count
    cube, vector = core_share(arch, n, ())
    known, fixed = bool(cube), arch.aicpu.count is not None
    pools = [("cores", cube, 2)] if arch.cores.shared else [("pool cube", cube, 0), ("pool vector", vector, 1)]
    left, top, step = 118, 66, (WIDTH - 138) / n
    yield text(20, top + 19, "AICPUs", "strong")
    yield text(20, top + 34, "homes of tasks", "small")
    for k in range(n):
        x = left + k * step
        yield rect(x + 4, top, step - 8, 38, "box" if fixed else "open", ' rx="4"')
        yield text(x + step / 2, top + 24, f"AICPU {k}", "mid strong")
    for row, (name, share, colour) in enumerate(pools):
        y = top + 56 + 44 * row
        yield text(20, y + 15, name, "strong")
        yield text(20, y + 30, f"{share} executor{'s' * (share > 1)} each" if known else "not given", "small")
        for k in range(n):
            x, count = left + k * step, max(1, share)
            wide = min(22.0, (step - 16) / count - 2)
            begin = x + (step - count * (wide + 2)) / 2
            if row == 0:
                yield arrow(x + step / 2, top + 38, x + step / 2, y - 3)
            for one in range(count):
                kind = f"c{colour}" if known and (fixed or arch.cores.shared) else "open"
                yield rect(begin + one * (wide + 2), y, wide, 28, kind, ' rx="2"')
    cycles = arch.aicpu
    given = (f"a task costs its AICPU {'~' * cycles.source.startswith('estimate')}{cycles.submit_cycles:,} cycles to submit, "
             f"{cycles.dispatch_cycles:,} to dispatch, {cycles.retire_cycles:,} to retire (with overheads=True)"
             if cycles.submit_cycles is not None else "cycles to submit, dispatch and retire a task: not given")
    yield text(left + 4, top + 56 + 44 * len(pools) + 8, given, "small")


def _pipes(arch: Arch) -> tuple[list[str], int]:
    """Return the inside of both kinds of core as paths from GM to GM, and the height of the picture."""
    top, parts = 248, []
    parts.append(text(20, top, "Inside a core: pipes move tiles between memories, and run beside each other", "strong"))
    for row, (name, path) in enumerate((("cube core", CUBE_PATH), ("vector core", VECTOR_PATH))):
        y, x = top + 18 + 72 * row, 118.0
        parts += [text(20, y + 20, name, "strong"), text(20, y + 35, "GM → … → GM", "small")]
        for at, step in enumerate(path):
            if step == "L0B":
                continue
            wide = 124 if step == "cube" else 98 if step == "vector" else 84
            is_unit = any(unit.name == step for unit in arch.units)
            label, note = "L0A, L0B" if step == "L0A" else step, _rate(arch.unit(step)) if is_unit else _size(arch, step)
            if at:
                parts.append(arrow(x - 14, y + 24, x - 2, y + 24))
            kind = f"c{row}" if step in ("cube", "vector") else "box"
            parts.append(rect(x, y, wide, 48, kind, ' rx="14"' if is_unit else ""))
            ink = "on" if step == "cube" else "ondark" if step == "vector" else "strong"
            lines = note.split("\n")
            parts.append(text(x + wide / 2, y + 20 - 6 * (len(lines) - 1), label, f"mid {ink}"))
            parts += [text(x + wide / 2, y + 36 - 6 * (len(lines) - 1) + 13 * k, line, "mid small" if ink == "strong" else f"mid {ink}")
                      for k, line in enumerate(lines)]
            x += wide + 16
    gm = arch.memory("GM")
    bound = (f"{'~' * gm.source.startswith('estimate')}{gm.bandwidth_bytes_per_cycle:,.0f} bytes a cycle, shared by all cores"
             if gm.bandwidth_bytes_per_cycle else "its bandwidth is no bound" if arch.neutral else
             "its bandwidth is not given, so it is no bound")
    y = top + 168
    parts += [rect(118, y, WIDTH - 138, 26, "lane", ' rx="3"'), text(20, y + 17, "GM", "strong"),
              text(118 + (WIDTH - 138) / 2, y + 17, f"global memory: {bound}", "mid small")]
    return parts, y + 44


def _caches(arch: Arch) -> tuple[list[str], int]:
    """Return the caches of a machine with cores of both kinds, and the height of the picture."""
    top, parts, x = 204, [], 118.0
    parts.append(text(20, top, "A core reaches memory through its caches; a program does not fill them, so they limit no tile", "strong"))
    for at, memory in enumerate(arch.memories):
        if at:
            parts.append(arrow(x - 14, top + 42, x - 2, top + 42))
        parts += [rect(x, top + 18, 110, 48, "lane" if memory.name == "GM" else "box"), text(x + 55, top + 46, memory.name, "mid strong")]
        x += 126
    parts += [arrow(x - 14, top + 42, x - 2, top + 42), rect(x, top + 18, 150, 48, "c2", ' rx="14"'),
              text(x + 75, top + 40, "core", "mid ondark"), text(x + 75, top + 55, "~ by its vector flags", "mid ondark")]
    return parts, top + 86


def _size(arch: Arch, name: str) -> str:
    memory = arch.memory(name)
    if memory.capacity_bytes is None:
        return "no bound" if arch.neutral else "not given"
    less = f"\nless {memory.reserved_bytes // 1024} kept" if memory.reserved_bytes else ""
    return f"{memory.capacity_bytes // 1024} KiB{' each' if name == 'L0A' else ''}{less}"


def _rate(unit: ExecUnit) -> str:
    about = "~" * unit.source.startswith("estimate")
    if unit.rates:
        return "\n".join(f"{about}{rate.per_cycle:,.0f} {rate.dtype}/cycle" for rate in unit.rates if rate.dtype in ("f16", "f32"))
    if unit.bytes_per_cycle:
        return f"{about}{unit.bytes_per_cycle:,.0f} B/cycle"
    return f"{unit.elements_per_cycle:g} el./cycle" if unit.elements_per_cycle else "not given"


# -- runs --------------------------------------------------------------------------------------------------------------
LENGTHS = (1400, 210, 3100, 95, 640, 2300, 480, 1750)
BLOCK = 128


def ragged_batch() -> tuple[Program, Callable[..., object]]:
    """Return attention over eight requests of different lengths after a run, and the function that makes its workload."""
    lens, offsets = np.array(LENGTHS), np.concatenate(([0], np.cumsum(LENGTHS)))
    Q, Y = (Tensor(np.zeros((4, offsets[-1], 64), np.float32)) for _ in range(2))
    lens_t, starts = Tensor(lens), Tensor(offsets[:-1])
    requests, heads = DenseDyn(len(lens)), Dense[4]()

    @kernel
    def attend(q: In[Tile[BLOCK, 64, F32]], first: Scalar[I32], y: Out[Tile[BLOCK, 64, F32]]):
        total = pto.alloc((BLOCK, 64), F32, init=0)
        for _ in pto.range(0, first + 1, BLOCK):
            total += pto.exp(q - pto.rowmax(q))
        pto.store(y, total)

    @workload
    def ragged_attention():
        for b, h in P(requests, heads):
            mine = slice(starts[b], starts[b] + lens_t[b])
            for i in P(ceildiv(lens_t[b], BLOCK)):
                attend[b, h, i](Q[h, mine][i * BLOCK:].clip(BLOCK, 64), i * BLOCK, Y[h, mine][i * BLOCK:].clip(BLOCK, 64))

    return ragged_attention().compile(target="interp").run(), ragged_attention


def lanes(x: float, y: float, width: float, rows: Sequence[TaskLane], colour: Callable[[TaskMark], int],
          names: Sequence[str]) -> list[str]:
    """Return the lanes of a card as SVG, 18 high each; `colour`: the slot of a mark, `names`: what slots stand for."""
    parts: list[str] = []
    words: list[tuple[int, int, int, float]] = []
    for at, row in enumerate(rows):
        top = y + 18 * at
        parts += [text(x - 8, top + 11, row.label, "end small"), rect(x, top, width, 14, "lane"),
                  text(x + width + 8, top + 11, f"{row.busy} busy", "small")]
        for slot, marks in groupby(row.marks, key=colour):
            begin, end = 0, -3
            for mark in marks:      # a name stands on marks of its colour, not in a gap between two
                if mark.x > end + 2:
                    begin = mark.x
                    words.append((begin, end, slot, top))
                end = mark.x + mark.width
                words[-1] = (begin, end, slot, top)
        paths: dict[str, list[str]] = {}
        for mark in row.marks:
            kind = f'class="c{colour(mark)}"' + ("" if mark.full else ' opacity=".45"')
            paths.setdefault(kind, []).append(f"M{mark.x} 0h{max(1, mark.width)}v1h-{max(1, mark.width)}z")
        parts += [f'<path transform="translate({x:g} {top:g}) scale({width / 1000:g} 14)" {kind} d="{"".join(path)}"/>'
                  for kind, path in paths.items()]
    return parts + [text(x + (begin + end) / 2 * width / 1000, top + 11, names[slot], f"mid {'ondark' if slot in DARK_TEXT else 'on'}")
                    for begin, end, slot, top in words if (end - begin) * width / 1000 > 8 * len(names[slot]) + 4]


def request_of(mark: TaskMark) -> int:
    """Return the colour of a request: its number."""
    found = re.search(r"b=(\d+)", mark.name)
    return int(found[1]) % 8 if found else 0


def schedules() -> str:
    """Return the lanes of one batch under three schedules on one scale, with the lower bound."""
    program, made = ragged_batch()
    whole = made()
    tried = {"round_robin(4): tasks in turn": whole.dispatch(DispatchPolicy.round_robin(4)),
             "affinity(b, 4): a request on one executor": whole.dispatch(DispatchPolicy.affinity("b", 4)),
             "affinity(b, 4), idle executors steal": whole.dispatch(DispatchPolicy.affinity("b", 4)).task_graph(
                 ready=ReadyPolicy.work_steal())}
    runs = {name: program.simulate(scheduled) for name, scheduled in tried.items()}
    end = max(run.total_cycles for run in runs.values())
    bound = min(run.stats.lower_bound for run in runs.values())
    left, width = 110, WIDTH - 210
    said = f"attention over 8 requests of 95 to 3,100 tokens, {program.stats.task_count} tasks; simulated cycles on one scale"
    parts = [text(20, 30, "One batch, three schedules, the same results", "title"), text(20, 48, said, "small")]
    y = 104
    for b, length in enumerate(LENGTHS):
        parts += [rect(left + 94 * b, 64, 12, 12, f"c{b}"), text(left + 94 * b + 18, 74, f"{length:,} tokens", "small")]
    for name, run in runs.items():
        above = f"{run.stats.gap:.0%} above the bound" if run.stats.gap >= 0.005 else "at the bound"
        parts += [text(left, y, name, "strong mono"), text(left + width, y, f"{run.total_cycles:,} cycles, {above}", "end")]
        parts += lanes(left, y + 10, width, lanes_of(run.trace, end).lanes, request_of, [f"{length:,}" for length in LENGTHS])
        y += 108
    at = left + width * bound / end
    parts += [f'<path class="bound" d="M{at:g} 92V{y - 22:g}"/>',
              text(at + 5, y - 10, "the lower bound: all executors always busy", "bad small")]
    return svg(y + 6, parts, "lanes of tasks under three schedules")


def iteration_space() -> str:
    """Return the tasks of a ragged batch as a grid: a row a request, a cell a block of one head, by executor under two schedules."""
    _, made = ragged_batch()
    whole = made()
    parts = [text(20, 30, "Where the tasks of a ragged batch run", "title"),
             text(20, 48, "a row is a request, a cell a block of 128 queries of head 0: short requests have short rows. "
                  "Colour and digit: the executor", "small")]
    panels = {"round_robin(4)": whole.dispatch(DispatchPolicy.round_robin(4)),
              "affinity(b, 4)": whole.dispatch(DispatchPolicy.affinity("b", 4))}
    for at, (name, scheduled) in enumerate(panels.items()):
        trace = scheduled.compile(target="interp").run().trace
        left = 96 + 440 * at
        parts.append(text(left, 78, name, "strong mono"))
        placed = dict(zip(trace.names, trace.executor.tolist(), strict=True))
        for b, length in enumerate(LENGTHS):
            y = 90 + 20 * b
            if at == 0:
                parts.append(text(left - 10, y + 12, f"{length:,} tokens", "end small"))
            for i in range(-(-length // BLOCK)):
                executor = placed[f"attend[b={b}, h=0, i={i}]"]
                ink = "ondark" if executor in DARK_TEXT else "on"
                parts += [rect(left + 16 * i, y, 15, 17, f"c{executor}"), text(left + 16 * i + 7.5, y + 12.5, str(executor), f"mid {ink}")]
    return svg(90 + 20 * len(LENGTHS) + 14, parts, "tasks of a ragged batch by executor")


def over_ranks() -> str:
    """Return the lanes of the examples over a mesh, on two ranks: what they compute, and what goes over the links beside it."""
    left, width, y = 150, WIDTH - 250, 74.0
    parts = [text(20, 30, "Five programs over a mesh of two ranks", "title"),
             text(20, 48, "kernels on ranks, copies on links; letters are kernels in the order of their first task", "small")]
    for script in sorted((FOLDER.parents[1] / "examples").glob("mesh_*/*.py")):
        found = runpy.run_path(str(script))
        example = found["EXAMPLE"]
        given = example.draw(np.random.default_rng(0), 1)
        program, _ = sys.modules["over_ranks"].run(example, 2, given, example.reference(given))
        names = program.trace.kernels
        said = ", ".join(f"{chr(65 + k)} {name}" for k, name in enumerate(names)) + f"; {program.stats.total_cycles:,} cycles"
        parts += [text(left, y, script.stem, "strong mono"), text(left + width, y, said, "end small")]
        rows = lanes_of(program.trace).lanes
        parts += lanes(left, y + 10, width, rows, lambda mark: mark.kernel % 8, [chr(65 + k) for k in range(8)])
        y += 18 * len(rows) + 34
    return svg(int(y), parts, "lanes of the ranks of a mesh, and of their links, in five programs")


PICTURES: Mapping[str, Callable[[], str]] = {
    "machine_unit": lambda: machine(builtin_arch("unit")),
    "machine_ascend_910b": lambda: machine(builtin_arch("ascend_910b")),
    "machine_ascend_950": lambda: machine(builtin_arch("ascend_950")),
    "machine_host_cpu": lambda: machine(example_cpu()),
    "schedules": schedules,
    "iteration_space": iteration_space,
    "over_ranks": over_ranks,
}


def main(names: Sequence[str]) -> int:
    """Write the pictures of these names, or all."""
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        print(f"no picture {', '.join(unknown)}; there are: {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    for name in names or PICTURES:
        (FOLDER / f"{name}.svg").write_text(PICTURES[name](), encoding="utf-8")
        print(f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
