"""Cards of iteration spaces: tasks as grids by where and when they ran, and the regions of a task on maps of its tensors."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from pto_wsp import Dense, DispatchPolicy, DType, In, InOut, Out, P, Ragged, Sparse, Tensor, Tile, kernel, minimum, pto, workload
from pto_wsp.view.card import Card, GridPart, LegendEntry, MapsPart, TablePart
from pto_wsp.view.html import html_of
from pto_wsp.view.iteration_cards import MOST_CELLS, SpaceTasks, grid_of, run_grids
from pto_wsp.view.maps import map_of
from tests.view.test_cards import text_of

F32 = DType.F32
LENS = np.array([40, 16, 0, 24], np.int64)      # blocks of 16 rows: 3 (the last half full), 1, 0, 2 (the last half full)
Q, OUT = Tensor(np.ones((2, 4, 48, 8), np.float32), name="Q"), Tensor(np.zeros((2, 4, 48, 8), np.float32), name="O")
LENGTHS, BLOCKS = Tensor(LENS, name="lens"), Tensor((LENS + 15) // 16, name="blocks")
COUNT = Tensor(np.zeros((64, 100, 4, 8), np.float32), name="N")


@kernel
def attend(q: In[Tile[16, 8, F32]], o: Out[Tile[16, 8, F32]]) -> None:
    pto.store(o, pto.exp(q))


@kernel
def count(a: InOut[Tile[4, 8, F32]]) -> None:
    pto.store(a, a + 1.0)


@workload
def ragged() -> None:
    rows = Ragged(Dense(4), BLOCKS)
    for h in P(2):
        for b in P(4):
            for i in P(rows[b]):
                n = minimum(16, LENGTHS[b] - i * 16)
                attend[h, b, i](Q[h, b, i * 16:i * 16 + n].clip(16, 8), OUT[h, b, i * 16:i * 16 + n].clip(16, 8))


@workload
def sparse() -> None:
    routes = Sparse(Dense(3), [0, 2, 2, 3], [1, 5, 3])
    for e in P(3):
        for t in P(routes[e]):
            count[e, t](COUNT[e, t])


@workload
def counting(n: int) -> None:
    for i in P.seq(n):
        for j in P(100):
            count[i, j](COUNT[0, j])


def part_of(card: Card, kind: type) -> Any:
    (part,) = [part for part in card.parts if isinstance(part, kind)]
    return part


# -- before a run ------------------------------------------------------------------------------------------------------
def test_ragged_rows_are_short_and_tails_narrow() -> None:
    card = ragged().tasks().card
    grid = part_of(card, GridPart)
    assert (grid.title, grid.across, grid.down, grid.executors, grid.last) == ("attend over h, b, i", "i", "b", (), None)
    assert [panel.title for panel in grid.panels] == ["h=0", "h=1"]
    for panel in grid.panels:
        assert (panel.n_rows, panel.n_columns, panel.row_labels) == (4, 3, ("b=0", "b=1", "b=2", "b=3"))
        assert [(cell.y, cell.x, cell.width) for cell in panel.cells] == [
            (0, 0, 100), (0, 1, 100), (0, 2, 50), (1, 0, 100), (3, 0, 100), (3, 1, 50)]
    assert grid.panels[1].cells[2].name == "attend[h=1, b=0, i=2]"
    assert card.subtitle == "12 tasks of 1 call" and repr(ragged().tasks()) == "TaskList(12 tasks)"
    assert part_of(card, TablePart).rows[0] == ("attend[h=0, b=0, i=0]", "q=Q[0, 0, 0:16, 0:8], o=O[0, 0, 0:16, 0:8]")


def test_the_middle_task_is_shown_on_maps() -> None:
    card = ragged().tasks().card                    # 12 tasks: number 6 is h=1, b=0, i=0
    maps = part_of(card, MapsPart)
    assert maps.title == "attend[h=1, b=0, i=0]" and part_of(card, GridPart).chosen == (1, 0)
    read, written = maps.maps
    assert (read.tensor, read.about, read.region, read.use) == ("Q", "[2, 4, 48, 8] f32", "[1, 0, 0:16, :]", "read")
    # least shares: 1 of 4 in dimension 1, 16 of 48 in dimension 2
    assert (read.down, read.across, read.x, read.y, read.width, read.height) == ("dim 1", "dim 2", 0, 0, 334, 250)
    assert (written.tensor, written.use) == ("O", "written")


def test_sparse_rows_have_holes() -> None:
    (panel,) = part_of(sparse().tasks().card, GridPart).panels
    # from column 1 on: columns 1 and 5 of row 0, none of row 1, column 3 of row 2
    assert [(cell.y, cell.x) for cell in panel.cells] == [(0, 0), (0, 4), (2, 2)]
    assert (panel.n_rows, panel.n_columns) == (3, 5)


def test_no_tasks_say_why() -> None:
    @workload
    def nothing() -> None:
        for _ in P(0):
            count[0](COUNT[0, 0])

    card = nothing().tasks().card
    assert card.parts == () and "no iterations" in card.sentence


def test_maps_of_other_ranks() -> None:
    def sides(shape: tuple[int, ...], *block: tuple[int, int]) -> tuple[int, int, int, int, str]:
        drawn = map_of("T", "f32", shape, block, "read")
        return drawn.x, drawn.y, drawn.width, drawn.height, drawn.region

    assert sides((10,), (2, 5)) == (200, 0, 300, 1000, "[2:5]")
    assert sides((4, 8), (0, 4), (4, 8)) == (500, 0, 500, 1000, "[:, 4:8]")
    assert sides((2, 2, 2), (0, 2), (1, 2), (0, 1)) == (0, 500, 500, 500, "[:, 1, 0]")
    assert sides((4, 8)) == (0, 0, 0, 0, "nothing")
    assert sides(()) == (0, 0, 1000, 1000, "")
    assert sides((10 ** 6,), (10 ** 6 - 1, 10 ** 6))[0:3:2] == (970, 30)      # thick enough to be seen, and inside


# -- after a run -------------------------------------------------------------------------------------------------------
def test_a_run_is_coloured_by_executor_and_by_start() -> None:
    program = ragged().dispatch(DispatchPolicy.round_robin(2)).compile().run()
    assert not any(isinstance(part, GridPart) for part in program.card.parts)      # nothing is simulated to be shown
    trace, card = program.trace, program.card
    grid = part_of(card, GridPart)
    cells = {cell.name.partition(":")[0]: cell for panel in grid.panels for cell in panel.cells}
    assert len(cells) == len(trace) == 12
    for event in trace:
        assert cells[event.name].where == event.executor
        assert cells[event.name].when == min(7, event.start * 8 // trace.total_cycles)
    assert [one.number for one in grid.executors] == [0, 1] and max(one.share for one in grid.executors) == 100
    assert [cell.width for cell in grid.panels[0].cells] == [100, 100, 50, 100, 100, 50]
    panel, at = grid.last
    last = max(trace, key=lambda event: event.end)
    assert trace[last.task].end == max(event.end for event in trace)
    assert grid.panels[panel].cells[at].name.startswith(last.name) or grid.panels[panel].cells[at].where != last.executor
    assert part_of(card, MapsPart).maps[1].region == "[1, 0, 0:16, :]"
    text_of(html_of(card))
    assert len(html_of(card)) < 40_000


def space(index: np.ndarray[Any, Any], where: np.ndarray[Any, Any] | None = None) -> SpaceTasks:
    n = len(index)
    start = np.arange(n)
    axes = ("a", "b", "c", "d")[:index.shape[1]]
    return SpaceTasks(LegendEntry(name="k", letter="K", slot=1), axes, index, "task {}".format, None, where, start, start + 1, "cycles", n)


def test_merged_cells_have_the_commonest_executor() -> None:
    index = np.stack(np.unravel_index(np.arange(400 * 400), (400, 400)), 1)
    where = np.where(index[:, 0] < 200, 3, 5)
    where[::7] = 0
    grid = grid_of(space(index, where), 0)
    (panel,) = grid.panels
    assert grid.merged and panel.n_rows * panel.n_columns <= MOST_CELLS
    upper = [cell.where for cell in panel.cells if 2 * cell.y < panel.n_rows - 2]
    lower = [cell.where for cell in panel.cells if 2 * cell.y > panel.n_rows + 2]
    assert set(upper) == {3} and set(lower) == {5}
    assert "160,000 tasks" in grid.note


def test_one_loop_is_written_line_by_line() -> None:
    (panel,) = grid_of(space(np.arange(0, 600, 4)[:, None]), 0).panels
    assert (panel.n_rows, panel.n_columns, panel.row_labels) == (3, 64, ("0", "256", "512"))
    assert len(panel.cells) == 150 and (panel.cells[70].y, panel.cells[70].x) == (1, 6)


def test_outer_loops_are_panels_and_constants_are_none() -> None:
    index = np.array([[7, a, b, c] for a in range(12) for b in range(2) for c in range(3)])
    grid = grid_of(space(index), 0)
    assert [panel.title for panel in grid.panels] == [f"b={a}" for a in range(8)] and grid.more == 4
    assert grid.title == "k over b, c, d, at a=7"
    same = grid_of(space(np.zeros((5, 2), np.int64)), 0)
    assert same.across == "task" and len(same.panels[0].cells) == 5


def test_tasks_with_the_same_indices_share_a_cell() -> None:
    (panel,) = grid_of(space(np.array([[0, 0], [0, 1], [0, 1], [1, 0]])), 1).panels
    assert [(cell.y, cell.x) for cell in panel.cells] == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "said"), [(50, "5,000 tasks"), (10_000, "of the run's 1,000,000")])
def test_long_runs_stay_small(n: int, said: str) -> None:
    @workload
    def long() -> None:
        for r in P.seq(max(1, n // 64)):
            for i in P(min(n, 64)):
                for j in P(100):
                    count[r, i, j](COUNT[i, j])

    trace = (long() if n > 64 else counting(n)).dispatch(DispatchPolicy.round_robin(8)).compile().run().trace
    run_grids(trace)
    begin = time.process_time()
    (grid,) = run_grids(trace)
    took = time.process_time() - begin
    assert said in grid.note or "of the first" in grid.note
    assert sum(len(panel.cells) for panel in grid.panels) <= MOST_CELLS
    assert len(html_of(trace.card)) < 100_000
    assert took < 1.0      # 60 ms


def test_names_in_grids_are_text() -> None:
    hostile = SpaceTasks(LegendEntry(name='"><img src=x onerror=alert(1)>', letter="X", slot=0), ('<b>"',), np.arange(4)[:, None],
                         "<script>{}".format)
    text = text_of(html_of(Card(title="t", parts=(grid_of(hostile, 0), MapsPart(title="<i>", maps=(
        map_of("<u>", "f32", (4,), ((0, 1),), "both"),))))))
    assert "<script>0" in text and "<u>" in text


def test_grids_and_maps_have_text() -> None:
    text = str(ragged().tasks().card)
    for line in ("b=0 AAa", "b=1 A", "b=2 ·", "b=3 Aa", "Q[1, 0, 0:16, :]  of [2, 4, 48, 8] f32, read", "a small letter is a tail"):
        assert line in text
