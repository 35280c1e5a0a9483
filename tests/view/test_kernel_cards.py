"""Cards of kernels: lines with their values and cycles, memories, tails; kernels that lack sizes, source or sense."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pto_wsp import DType, In, Kernel, Out, Scalar, Tensor, Tile, kernel, pto
from pto_wsp.errors import ArityError, CompileOptionError
from pto_wsp.view.card import Card, MemoryPart, Preformatted, SourcePart, SourceRow, TablePart, ValuesPart
from pto_wsp.view.html import html_of
from tests.view.test_cards import text_of

F32, I32 = DType.F32, DType.I32
ROWS = "R"


@kernel
def norm(x: In[Tile[16, 128, F32]], w: In[Tile[1, 128, F32]], out: Out[Tile[16, 128, F32]]) -> None:
    v = pto.load(x)
    # the mean of squares
    ms = pto.rowsum(v * v) / 128.0
    pto.store(out, v * pto.rsqrt(ms + 1e-6) * w)


@kernel
def blocks(keys: In[Tensor], first: Scalar[I32], y: Out[Tile[64, 64, F32]]) -> None:
    acc = pto.alloc((64, 64), F32, init=0)
    for start in pto.range(0, first, 64):
        acc[:] = acc + pto.load(keys, (start, 0), (64, 64))
    with pto.when(first > 64):
        acc[:] = acc * 2.0
    pto.store(y, acc)


@kernel
def sized(x: In[Tile[ROWS, 64, F32]], y: Out[Tile[ROWS, 64, F32]]) -> None:
    pto.store(y, x)


def twice(v: Any) -> Any:
    return v * 2.0


@kernel
def helped(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    pto.store(y, twice(x))


@kernel
def large(x: In[Tile[256, 256, F32]], y: Out[Tile[256, 256, F32]]) -> None:
    pto.store(y, x * 2.0)


@kernel(c_src="y[0] = x[0]; // <b>bold</b>")
def own(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    ...


@kernel
def wrong(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x @ x)


@kernel
def raising(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x * (1 / 0))


def part_of(card: Card, kind: type) -> Any:
    (part,) = [part for part in card.parts if isinstance(part, kind)]
    return part


def row_of(source: SourcePart, start: str) -> SourceRow:
    (row,) = [row for row in source.rows if row.text.strip().startswith(start)]
    return row


def costs_of(source: SourcePart, start: str) -> dict[str, int]:
    return {source.pipes[cost.pipe].name: cost.cycles for cost in row_of(source, start).costs}


def test_a_line_has_the_values_that_it_made() -> None:
    source = part_of(norm.card, SourcePart)
    assert [row.text.strip()[:8] for row in source.rows] == ["def norm", "v = pto.", "# the me", "ms = pto", "pto.stor"]
    first = source.rows[0].line
    assert [row.line for row in source.rows] == [first, first + 1, first + 2, first + 3, first + 4]
    assert row_of(source, "v =").values == ("%0 = load x",)
    assert row_of(source, "# the").values == ()
    assert row_of(source, "ms =").values == ("%1 = mul %0, %0", "%2 = rowsum %1", "%3 = div %2, 128.0")
    assert sum(len(row.values) + row.more for row in source.rows) == len(str(norm.ir).splitlines()) - 1


def test_a_line_costs_what_the_arch_says_of_its_ops() -> None:
    card = norm.card_on("unit")     # one cycle an element, nothing overlaps
    source = part_of(card, SourcePart)
    assert costs_of(source, "v =") == {"MTE2": 16 * 128}
    assert costs_of(source, "ms =") == {"vector": 2 * 16 * 128 + 16}
    assert costs_of(source, "pto.store") == {"MTE2": 128, "vector": 2 * 16 + 2 * 16 * 128, "MTE3": 16 * 128}
    assert [(pipe.name, pipe.cycles, pipe.limits) for pipe in source.pipes] == [
        ("MTE2", 2176, False), ("vector", 8240, True), ("MTE3", 2048, False)]
    assert card.sentence == "12,464 cycles a task, estimated on unit, where nothing overlaps."


@pytest.mark.parametrize("arch", ["unit", "host_cpu", "ascend_910b"])
def test_lines_add_up_to_the_pipes_of_cost(arch: str) -> None:
    for one, given in ((norm, {}), (blocks, {"keys": F32, "first": 300}), (helped, {})):
        whole = {pipe.pipe: pipe.cycles for pipe in one.cost(arch, **given).pipes if pipe.pipe != "scalar"}
        pipes = part_of(one.card_on(arch, **given), SourcePart).pipes
        assert {pipe.name: str(pipe.cycles) for pipe in pipes} == whole
        assert sum(pipe.limits for pipe in pipes) == 1


def test_an_open_loop_is_counted_once_and_says_so() -> None:
    source = part_of(blocks.card_on("unit", keys=F32), SourcePart)
    assert row_of(source, "for start").note == "iterations open: one is counted"
    assert costs_of(source, "acc[:] = acc + pto.load") == {"MTE2": 4096, "vector": 4096}
    closed = blocks.card_on("unit", keys=F32, first=300)
    source = part_of(closed, SourcePart)
    assert row_of(source, "for start").note == "5 iterations"      # at 0, 64, 128, 192, 256
    assert costs_of(source, "acc[:] = acc + pto.load") == {"MTE2": 5 * 4096, "vector": 5 * 4096}
    assert costs_of(source, "acc[:] = acc * 2") == {"vector": 4096}
    assert costs_of(part_of(blocks.card_on("unit", keys=F32, first=64), SourcePart), "acc[:] = acc * 2") == {}
    assert "first given" in [value.label for value in part_of(closed, ValuesPart).values]


def test_the_default_arch_is_this_machine_and_says_estimated() -> None:
    assert norm.card.state == "estimated on host_cpu" and "estimated on host_cpu" in norm.card.sentence
    assert norm.card_on("ascend_910b").state == "estimated on ascend_910b"


def test_memories_show_what_does_not_fit() -> None:
    (bar,) = part_of(norm.card_on("ascend_910b"), MemoryPart).bars
    assert (bar.name, bar.fits, bar.tiles[0].name) == ("UB", True, "x")
    assert bar.used.startswith("16.56 KiB of 184 KiB") and bar.share == "9%"     # x, v * v, w [1, 128] and a sum [16, 1]
    card = large.card_on("ascend_910b")
    (bar,) = part_of(card, MemoryPart).bars
    assert not bar.fits and card.sentence.startswith("It needs 512 KiB of UB, more than the 184 KiB of ascend_910b.")
    assert "1000%" not in html_of(card)


def test_tails_say_what_padding_holds() -> None:
    rows = part_of(norm.card, TablePart).rows
    assert [row[1:] for row in rows] == [("load x", "what is bound", "is 0.0, and is computed on"),
                                         ("load w", "what is bound", "is 0.0, and is computed on"),
                                         ("store out", "what is bound", "is not stored")]


def test_functions_that_a_kernel_calls_stand_below_it() -> None:
    source = part_of(helped.card, SourcePart)
    called = [row.text for row in source.rows].index("test_kernel_cards.py, called by helped")
    row = source.rows[called + 1]
    assert row.text.strip() == "return v * 2.0"
    assert len(row.values) + row.more == 8      # four tiles, each loaded and multiplied
    assert part_of(helped.card, ValuesPart).values[0].value == "In[Tile[4, 16, 64, f32]]"     # as the user wrote it


def test_a_kernel_without_sizes_shows_its_source_and_what_it_needs() -> None:
    card = sized.card
    assert 'sized.card_on("ascend_910b", R=16)' in card.state
    assert [row.values for row in part_of(card, SourcePart).rows] == [(), ()]
    assert "estimated on ascend_910b" in sized.card_on("ascend_910b", R=16).sentence
    with pytest.raises(ArityError):
        sized.card_on("ascend_910b")
    with pytest.raises(CompileOptionError):
        norm.card_on("no such arch")


def test_a_kernel_with_a_mistake_shows_the_report() -> None:
    assert wrong.card.sentence.startswith("error[T202]") and "^" in part_of(wrong.card, Preformatted).text
    assert raising.card.sentence == "ZeroDivisionError: division by zero"
    assert len(part_of(raising.card, SourcePart).rows) == 2


def test_a_kernel_without_source_shows_its_ir() -> None:
    read = Kernel.from_ir(norm.ir)
    made = [value for row in part_of(read.card, SourcePart).rows for value in row.values]
    assert len(made) == 10 and "%2 = rowsum %1" in made
    scope: dict[str, Any] = {}
    exec("from pto_wsp import *\n@kernel\ndef k(x: InOut[Tile[4, 8, DType.F32]]):\n    pto.store(x, x * 2.0)\n", scope)
    source = part_of(scope["k"].card, SourcePart)
    assert source.file == "" and source.rows[0].values[1] == "%1 = mul %0, 2.0"
    assert "not to be had" in text_of(html_of(scope["k"].card))


def test_an_own_body_is_text_and_its_cost_says_what_it_is() -> None:
    card = own.card_on("unit")
    assert part_of(card, Preformatted).text == "y[0] = x[0]; // <b>bold</b>" and "<b>bold" not in html_of(card)
    assert "one move of each bound tensor" in own.card_on("ascend_910b").sentence


def test_an_arch_without_speeds_leaves_costs_out() -> None:
    card = norm.card_on("ascend_950")
    assert card.state == "no costs" and part_of(card, SourcePart).pipes == ()
    assert part_of(card, MemoryPart).bars[0].share == "6%"      # of 256 KiB


def test_cards_of_kernels_are_small_quick_and_read_back() -> None:
    for card in (norm.card, blocks.card_on("ascend_910b", keys=F32), helped.card, sized.card, wrong.card, own.card):
        assert Card.model_validate_json(card.model_dump_json()) == card
        html = html_of(card)
        text_of(html)
        assert len(html) < 20_000
    begin = time.process_time()
    html_of(norm.card)
    assert time.process_time() - begin < 1.0     # 10 ms; a slow machine is no failure
    assert "text/html" in norm.card._repr_mimebundle_() and repr(norm.card).startswith("Card(norm · Kernel")


def test_a_kernel_has_text() -> None:
    text = str(norm.card_on("unit"))
    for line in ("8,240", "4,112", "v = pto.load(x)", "%2 = rowsum %1", "load w     what is bound", "UB"):
        assert line in text
