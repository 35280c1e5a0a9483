"""Cards as text: the same parts in the same order as on a page, letters in place of colours, and nothing of a user's steers a terminal."""

from __future__ import annotations

import io
import re
import sys
import unicodedata
from collections.abc import Iterator
from typing import get_args

import pytest
from rich.cells import cell_len

from pto_wsp.resources import templates_dir
from pto_wsp.view.card import (
    AdvicePart,
    AdviceRow,
    Aicpus,
    BarPart,
    BarrierMark,
    Box,
    BoxesPart,
    Card,
    CardPart,
    CodeLine,
    CodePart,
    CodeRun,
    ComparedPart,
    ComparedRow,
    CoreGroup,
    CostMark,
    CurvePart,
    CurvePoint,
    DetailsPart,
    DiffPart,
    Edit,
    EditsPart,
    FlagCurve,
    GraphLink,
    GraphNode,
    GraphPart,
    GridCell,
    GridPanel,
    GridPart,
    InstructionRow,
    InstructionsPart,
    IterationCell,
    LabelledValue,
    LanesPart,
    LegendEntry,
    Lifetime,
    MachinePart,
    MapsPart,
    MemoryBar,
    MemoryPart,
    MemorySize,
    Part,
    PipeTotal,
    PoolLanes,
    Preformatted,
    RegionBox,
    RegionMap,
    RegionsPart,
    Segment,
    Setting,
    Site,
    SiteArgument,
    SourcePart,
    SourceRow,
    StripPart,
    StripSpan,
    TablePart,
    TaskLane,
    TaskMark,
    TileSpan,
    UsedMemory,
    ValuesPart,
)
from pto_wsp.view.colours import KERNEL_HUES
from pto_wsp.view.html import html_of
from pto_wsp.view.text import DRAWN, text_of

A, B = LegendEntry(name="project", letter="P", slot=0), LegendEntry(name="softmax", letter="S", slot=9)
LANES = LanesPart(unit="cycles", total=1000, legend=(A, B), lanes=(
    TaskLane(label="executor 0", group="", busy="70%", marks=(TaskMark(x=0, width=500, kernel=0), TaskMark(x=500, width=15, kernel=1))),
    TaskLane(label="executor 1", group="", busy="25%", marks=(TaskMark(x=500, width=500, kernel=1, full=False),))))


def shown(*parts: CardPart, width: int = 80) -> list[str]:
    """Return the lines of a card of these parts, without its title."""
    return text_of(Card(title="t", parts=parts), width, encoding="utf-8").split("\n")[2:]      # type: ignore[arg-type]


def test_every_kind_of_part_has_text() -> None:
    kinds = {kind.model_fields["kind"].default for kind in get_args(get_args(Part)[0])}
    assert set(DRAWN) == kinds


def test_the_hues_are_those_of_dark_pages() -> None:
    dark = (templates_dir() / "view" / "tokens.j2").read_text().partition("{% set dark %}")[2].partition("{% endset %}")[0]
    assert re.findall(r"--k\d:(#\w+)", dark) == list(KERNEL_HUES)


def test_lanes_are_letters() -> None:
    """Of 80 columns the first half is P; the 15 thousandths of S after it fill a column, and less than half of the next."""
    first, second, axis, keys, note = shown(LANES, width=95)
    label, letters, busy = first.rsplit(" ", 2)
    assert (label, busy) == ("executor 0", "70%") and letters == "P" * 40 + "Ss" + "·" * 38
    assert second.split()[2] == "·" * 40 + "s" * 40 and axis.split() == ["0", "1,000", "cycles"] and keys == "P project   S softmax"
    assert len(first) == len(second) == 95 and "less than half" in note


def test_a_column_is_the_kernel_that_covers_most_of_it() -> None:
    marks = (TaskMark(x=0, width=400, kernel=0), TaskMark(x=400, width=600, kernel=1))
    lane = LanesPart(unit="ns", total=9, legend=(A, B), lanes=(TaskLane(label="", group="", busy="", marks=marks),))
    letters = shown(lane, width=20)[0].strip()
    assert re.fullmatch("P{7}S{11}", letters), letters      # 18 columns: 7.2 of P


def test_a_bar_has_a_glyph_for_each_segment_and_marks_the_bound() -> None:
    segments = (Segment(label="a task runs", amount=60, tone="work"), Segment(label="window full", amount=20, tone="bad"),
                Segment(label="no free executor", amount=20, tone="bad"))
    line, bound, *keys = shown(BarPart(unit="cycles", segments=segments, bound=60), width=50)
    assert line == "█" * 30 + "▒" * 10 + "▚" * 10
    assert bound.index("▲") == 29 and "lower bound 60 cycles" in bound
    assert "█ a task runs 60 60%   ▒ window full 20 20%" in keys and "▚ no free executor 20 20%   cycles" in keys


def test_a_bar_of_nothing_is_drawn() -> None:
    assert shown(BarPart(unit="cycles", segments=(), bound=0)) == ["", "   cycles"]
    assert shown(BarPart(unit="ns", segments=(Segment(label="x", amount=0, tone="rest"),)))[-1] == "░ x 0 0%   ns"


TABLE = TablePart(title="Waits", head=("task", "cycles"), rows=(("softmax[b=0]", "55,119"), ("mm", "7")), right=(1,), more=3)


def test_a_table_aligns_numbers_and_breaks_into_rows_where_it_is_too_wide() -> None:
    assert shown(TABLE) == ["Waits", "task          cycles", "softmax[b=0]  55,119", "mm                 7", "… 3 more"]
    many = TablePart(head=tuple("abcdefgh"), rows=(("1234567",) * 8,), right=tuple(range(8)))
    assert shown(many, width=40) == [f"{name} 1234567" for name in "abcdefgh"]


def test_boxes_are_indented_and_say_their_order() -> None:
    site = Site(kernel=A, index="[b]", arguments=(SiteArgument(label="x in", value="X[b]"),))
    tree = BoxesPart(boxes=(Box(head="for b in P(3):", order="any", inside=(Box(head="for t in P.seq(n):", size="n", order="down",
                                                                                inside=(site, "a note")),)),), more=2)
    assert shown(tree) == ["‖ for b in P(3):", "  ↓ for t in P.seq(n):  n", "    P project[b]   x in X[b]", "    a note", "… 2 more lines",
                           "‖ iterations without an order   ↓ in order"]


def test_code_has_numbers_badges_and_notes() -> None:
    part = CodePart(title="Your code", caption="a.py", more=1, lines=(
        CodeLine(number="9", runs=(CodeRun(text="for", tone="key"), CodeRun(text=" b"))),
        CodeLine(number="10", badge="A", runs=(CodeRun(text="[b]\tx"),), note="writes")))
    assert shown(part) == ["Your code  a.py", "   9  for b", "A 10  [b] x   writes", "… 1 more lines"]


def test_source_has_its_cycles_and_its_values() -> None:
    rows = (SourceRow(line=3, text="    x * 2", costs=(CostMark(pipe=1, cycles=1200, width=9),), values=("%1 = mul", "store"), more=2),)
    part = SourcePart(file="a.py", made="tile IR", rows=rows, pipes=(PipeTotal(name="MTE2", cycles=7, share=3),
                                                                     PipeTotal(name="V", cycles=1200, share=100, limits=True)))
    assert shown(part) == ["source, a.py  tile IR", "   MTE2      V", "      7  1,200  cycles of one task", "3        1,200      x * 2",
                           f"{'':16}    %1 = mul", f"{'':16}    store", f"{'':16}    … 2 more"]


def test_regions_are_letters_on_the_tensors_map() -> None:
    """4 x 8 elements: A rows 0 and 1 of columns 0 to 3, B rows 1 and 2, both row 1; iterations 0 and 1 touch the same."""
    boxes = (RegionBox(rows=(0, 2), cols=(0, 4), tone="first", label="one"), RegionBox(rows=(1, 3), cols=(0, 4), tone="second"),
             RegionBox(rows=(1, 2), cols=(0, 4), tone="shared"), RegionBox(rows=(3, 4), cols=(7, 8), tone="other"))
    cells = (IterationCell(label="b=0", letter="A", joined=True), IterationCell(label="b=1", letter="B"))
    lines = shown(RegionsPart(title="Y", rows=4, cols=8, boxes=boxes, sentence="both write", loop="b", iterations=cells))
    assert [line[10:] for line in lines[1:5]] == ["AAAA····", "####····", "BBBB····", "·······o"]
    assert "both write" in lines and "A one" in lines and "iterations b: [A]=[B]" in lines


def test_memories_say_what_fills_them_and_what_does_not_fit() -> None:
    tiles = (TileSpan(name="x", width=500), TileSpan(name="y", width=250))
    bar, names = shown(MemoryPart(title="", bars=(MemoryBar(name="UB", used="144 KiB", share="75 %", fits=True, tiles=tiles),)))[1:]
    assert bar == f"UB {'a' * 20}{'b' * 10}{'·' * 10}  144 KiB 75 %" and names == "   a x   b y"
    over = MemoryPart(title="", bars=(MemoryBar(name="UB", used="1 MiB", share="600 %", fits=False, tiles=()),))
    assert shown(over)[1].endswith("does not fit")


def test_compared_runs_are_on_one_scale() -> None:
    def row(letter: str, cycles: int, differs: bool) -> ComparedRow:
        return ComparedRow(letter=letter, name="n", cycles=cycles, bound=50, versus="", above="", settings=(
            Setting(label="window", value=letter, differs=differs),), segments=(Segment(label="w", amount=50, tone="work"),
                                                                               Segment(label="l", amount=cycles - 50, tone="bad")))
    lines = shown(ComparedPart(unit="cycles", total=100, bound=50, ticks=(), rows=(row("a", 75, False), row("b", 100, True))), width=112)
    bars = [line for line in lines if line.startswith("█") and "w" not in line]
    assert bars == ["█" * 50 + "▒" * 25, "█" * 50 + "▒" * 50] and "window a" in lines and "window b*" in lines
    assert [line.index("▲") for line in lines if "▲" in line] == [49, 49]


def test_a_curve_shows_the_best_so_far() -> None:
    points = (CurvePoint(label="", x=0, y=0), CurvePoint(label="", x=500, y=500))
    part = CurvePart(title="Search", x_label="tries", first="1", last="9", low="10", high="90", bound=1000, dots=points[:1], steps=points)
    lines = shown(part, width=39)[1:]
    assert lines[0] == "90 " + "#" * 17 and lines[3] == " " * 20 + "#" * 19
    assert lines[7] == "10 " + "-" * 36 and lines[8].split() == ["1", "tries", "9"]


def test_waits_differences_and_steps_are_lines() -> None:
    strip = StripPart(unit="cycles", moments=(("submitted", 0), ("started", 30), ("ended", 40)), spans=(
        StripSpan(label="waits", amount=30, tone="bad", cause="no free core"), StripSpan(label="runs", amount=10, tone="work")))
    assert shown(strip, width=40) == ["▒" * 30 + "█" * 10, "submitted at 0 cycles", "  ▒ waits 30  no free core", "started at 30 cycles",
                                      "  █ runs 10", "ended at 40 cycles"]
    assert shown(DiffPart(lines=("@@ 1", "-a", "+b"), more=2)) == ["@@ 1", "-a", "+b", "… 2 more lines"]
    rows = (InstructionRow(number="0", source="y = x", ir="load x", pipe=0), InstructionRow(number="1", ir="add", code="TADD(y)", pipe=1))
    part = InstructionsPart(rows=rows, pipes=("MTE2", "V"), flags=(FlagCurve(done=0, after=0, wait=1, before=1, event="E0"),),
                            barriers=(BarrierMark(row=1, pipe=1),), memories=(UsedMemory(name="UB", used_bytes=64),),
                            lifetimes=(Lifetime(name="x", memory=0, address=0, size_bytes=64, first=0, last=1),))
    assert shown(part) == ["y = x", "0  MTE2  load x", f"{'':9}set E0 for V", f"{'':9}wait E0 of MTE2", f"{'':9}barrier of V",
                           "1  V     add",
                           f"{'':9}TADD(y)", "UB  64 bytes", "         0        64 bytes  x, steps 0 to 1"]


def test_a_graph_lists_where_edges_lead_and_a_machine_its_cores() -> None:
    nodes = tuple(GraphNode(kernel=A, label=name, count="8", x=0, y=0, width=1) for name in ("p", "q"))
    links = (GraphLink(source=0, target=1, reasons="reads", count="7", points=()),
             GraphLink(source=1, target=1, reasons="order", points=()))
    part = GraphPart(width=1, height=1, node_height=1, nodes=nodes, links=links)
    assert shown(part) == ["P p  8", "  → q  reads  7", "P q  8", "  → itself  order"]
    lines = shown(MachinePart(aicpus=(Aicpus(label="AICPU 0", cores=(CoreGroup(kind="cube", count=3),)),), memories=(
        MemorySize(name="UB", where="a vector core", size="192 KiB", share=500),)))
    assert lines[0] == "AICPU 0   3 cube ■■■" and lines[1].startswith("UB  192 KiB  ████████") and "a vector core" in lines[1]


def test_the_parts_stand_in_the_order_of_the_page() -> None:
    card = Card(title="First", subtitle="Second", state="Third", sentence="Fourth", foot="Ninth", parts=(
        ValuesPart(values=(LabelledValue(label="tasks", value="Fifth"),)), TablePart(head=("h",), rows=(("Sixth",),)), LANES,
        Preformatted(title="Seventh", text="Eighth")))
    words = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth", "executor 1", "Seventh", "Eighth", "Ninth"]
    page = html_of(card)
    for face in (text_of(card, 80, encoding="utf-8"), page[page.index("</style>"):]):
        places = [face.index(word) for word in words]
        assert places == sorted(places)


HOSTILE = ("[bold]b[/bold]", "[/red]", "[link=x]y[/]", ":warning:", "\x1b[2J", "\x07", "a\rb", "\u202egnp.exe", "\u2066x", "שלום",
           "x" * 2_000, "\u200b", "界" * 50, "e\u0301", "\ud800", "a\nb\tc", "\x9b31m")


def cards_of(name: str) -> Iterator[Card]:
    """Yield a card with a name in every place that a user's text can take."""
    entry = LegendEntry(name=name, letter="X", slot=3)
    pair = LabelledValue(label=name, value=name, note=name)
    parts = (ValuesPart(values=(pair, pair)), TablePart(title=name, head=(name, name), rows=((name, name), (name, "1")), right=(1,)),
             BarPart(title=name, unit=name, segments=(Segment(label=name, amount=3, tone="work"),), bound=1),
             LanesPart(unit=name, total=3, legend=(entry,), lanes=(TaskLane(label=name, group=name, busy=name[:9], marks=()),)),
             BoxesPart(boxes=(name, Box(head=name, size=name, inside=(Site(kernel=entry, index=name, arguments=(
                 SiteArgument(label=name, value=name),)),)))))
    yield Card(title=name, subtitle=name, state=name, sentence=name, foot=name, parts=parts)
    yield Card(title=name, parts=(Preformatted(title=name, text=name), CodePart(title=name, caption=name, lines=(
        CodeLine(number=name, badge="A", runs=(CodeRun(text=name, tone="key"),), note=name),)), SourcePart(
        file=name, made=name, pipes=(PipeTotal(name=name, cycles=1, share=1),),
        rows=(SourceRow(line=3, text=name, note=name, values=(name,)),)),
        DetailsPart(title=name, text=name),
        DiffPart(title=name, note=name, lines=(name,)),
        InstructionsPart(title=name, pipes=(name[:9],), rows=(InstructionRow(number="1", source=name, ir=name, code=name, pipe=0),),
                         flags=(FlagCurve(done=0, after=0, wait=0, before=0, event=name),), barriers=(BarrierMark(row=0, pipe=0),),
                         memories=(UsedMemory(name=name, used_bytes=3),),
                         lifetimes=(Lifetime(name=name, memory=0, address=0, size_bytes=3, first=0, last=0),))))
    lane = TaskLane(label=name, group=name, busy=name[:9], marks=(TaskMark(x=0, width=9, kernel=0),))
    yield Card(title=name, parts=(
        EditsPart(edits=(Edit(title=name, note=name, runs=(CodeRun(text=name),), effect=name),)),
        RegionsPart(title=name, subtitle=name, rows=3, cols=3, boxes=(RegionBox(rows=(0, 1), cols=(0, 1), tone="first", label=name),),
                    sentence=name, notes=(name,), loop=name, iterations=(IterationCell(label=name),)),
        MemoryPart(title=name, note=name, bars=(MemoryBar(name=name[:9], used=name[:9], share="1 %", fits=False, tiles=(
            TileSpan(name=name, width=400, note=name),)),)),
        MachinePart(aicpus=(Aicpus(label=name, cores=()),), memories=(MemorySize(name=name, where=name, size=name),), note=name),
        ComparedPart(unit=name, total=9, bound=3, ticks=(), legend=(entry,), rows=(ComparedRow(
            letter="a", name=name, cycles=9, bound=3, versus=name, above=name, settings=(Setting(label=name, value=name),), note=name,
            segments=(Segment(label=name, amount=3, tone="bad"),), pools=(PoolLanes(label=name, busy=name, lanes=(lane,)),)),)),
        CurvePart(title=name, x_label=name[:3], first=name[:3], last=name[:3], low=name[:3], high=name[:3], dots=(), steps=()),
        AdvicePart(unit=name, total=9, bound=3, rows=(AdviceRow(change=name, cycles=9, gain=name, why=name),)),
        StripPart(unit=name, moments=((name, 0), (name, 9)), spans=(StripSpan(label=name, amount=9, tone="bad", cause=name),)),
        MapsPart(title=name, note=name, maps=(RegionMap(tensor=name, about=name, region=name, use="read", down=name, across=name, x=0, y=0,
                                                        width=1, height=1),)),
        GridPart(title=name, note=name, kernel=entry, across=name, down=name, place=name, unit=name, panels=(
            GridPanel(title=name, n_rows=1, n_columns=2, row_labels=(name,), cells=(GridCell(x=0, y=0),)),)),
        GraphPart(width=200, height=80, node_height=34, nodes=(GraphNode(kernel=entry, label=name, count=name, x=60, y=40, width=90),),
                  links=(GraphLink(source=0, target=0, reasons=name, count=name, points=((60, 40), (60, 40))),))))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_shown_and_steer_nothing(name: str) -> None:
    for card in cards_of(name):
        for width in (20, 40, 100):
            text = text_of(card, width, encoding="utf-8")
            assert all(c == "\n" or c == "\u200e" or c.isprintable() for c in text)
            if card.parts[0].kind in ("values", "edits") and width > 20:      # text in a fixed pitch and code are not wrapped
                assert max(cell_len(line) for line in text.split("\n")) <= width
            assert name.isprintable() is False or len(name) > 40 or name in text.replace("\u200e", "").replace("\n", "")
            text.encode()
        coloured = text_of(card, 80, "truecolor", encoding="utf-8")
        rest = re.sub(r"\x1b\[[0-9;]*m", "", coloured)       # colours alone, all of them ours
        assert all(c == "\n" or c == "\u200e" or c.isprintable() for c in rest)
        assert rest.replace("\u200e", "") == text_of(card, 80, encoding="utf-8").replace("\u200e", "")


def test_text_from_right_to_left_keeps_to_its_place() -> None:
    (line,) = shown(ValuesPart(values=(LabelledValue(label="שלום", value="12"),)))
    assert line == "\u200eשלום\u200e 12" and unicodedata.bidirectional("\u200e") == "L"


def test_a_terminal_that_is_not_unicode_gets_ascii() -> None:
    text = text_of(Card(title="naïve…", parts=(LANES, BarPart(unit="ns", segments=(Segment(label="é", amount=1, tone="work"),)))), 60,
                   encoding="ascii")
    assert text.isascii() and text.startswith("na\\xefve...") and "####" in text and "PPPP" in text
    assert text_of(Card(title="é"), 60, encoding="latin-1") == "é" and text_of(Card(title="é"), 60, encoding="no such") == "\\xe9"


def test_print_shows_a_card(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print(Card(title="t", sentence="s " * 40, parts=(LANES,)))
    out = capsys.readouterr().out
    assert "PPPP" in out and max(map(len, out.splitlines())) == 60 and "\x1b" not in out


def test_print_to_a_stream_that_is_not_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii"))
    print(Card(title="é", parts=(LANES,)), flush=True)
    assert buffer.getvalue().startswith(b"\\xe9\n")
