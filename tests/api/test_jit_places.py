"""Tables whose rows only a run measures, counts of places, and state that a table writes, as in NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, Monotone, Scalar, Tensor, jit, tt
from pto_wsp.api.plan_search import simulated
from pto_wsp.errors import PtoError

F32, I32 = DType.F32, DType.I32
TARGETS = ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)]


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(np.float32)


def check(found: Any, *wanted: np.ndarray) -> None:
    for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@jit
def rows_of_any_length(x: Tensor["b", "n", 3, F32], table: Tensor["m", 2, I32]):
    return x[table[:, 0]] * 2, x[table], np.sum(x[table[:, 1]], axis=0)


@pytest.mark.parametrize("target", TARGETS)
def test_a_table_takes_rows_of_any_length(target: str) -> None:
    for b, n, m in ((5, 7, 3), (1, 1, 1), (4, 0, 2), (3, 5, 0)):
        x, table = draw(b, n, 3), np.random.default_rng(m).integers(0, b, (m, 2)).astype(np.int32)
        check(rows_of_any_length.using(target=target)(x, table), x[table[:, 0]] * 2, x[table], x[table[:, 1]].sum(0))


def test_an_entry_outside_ends_the_run() -> None:
    with pytest.raises(PtoError, match="table"):
        rows_of_any_length.using(target="interp")(draw(2, 7, 3), np.array([[0, 2]], np.int32))


@jit
def reordered(cache: InOut[Tensor["b", "n", 4, F32]], beams: Injective[Tensor["b", I32]], x: Tensor["b", "n", F32],
              again: Tensor["b", I32]):
    cache[:] = cache[beams]
    placed, added = tt.zeros((x.shape[0], x.shape[1], 2)), tt.zeros(x.shape)
    placed[beams] = 3.0
    placed[beams, :, 0] = x
    np.add.at(added, again, x)
    return placed, added


@pytest.mark.parametrize("target", TARGETS)
def test_a_table_writes_rows_of_any_length(target: str) -> None:
    for b, n in ((4, 3), (0, 2), (1, 0), (5, 9)):
        cache, x, rng = draw(b, n, 4), draw(b, n), np.random.default_rng(b)
        beams, again = rng.permutation(b).astype(np.int32), rng.integers(0, max(b, 1), b).astype(np.int32)
        placed, added, moved = np.full((b, n, 2), 3.0), np.zeros((b, n)), cache[beams]
        placed[beams, :, 0] = x
        np.add.at(added, again, x)
        check((*reordered.using(target=target)(cache, beams, x, again), cache), placed, added, moved)


@jit
def counted(expert: Tensor["t", "k", I32]):
    sizes = tt.rows_of(expert, 6).sizes
    return sizes, np.cumsum(sizes) - sizes


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_are_counted_without_the_places(target: str) -> None:
    for t, k in ((7, 2), (0, 2), (1, 1)):
        expert = np.random.default_rng(t).integers(0, 6, (t, k)).astype(np.int32)
        sizes = np.bincount(expert.ravel(), minlength=6)
        check(counted.using(target=target)(expert), sizes, sizes.cumsum() - sizes)


def sorting(rows: int | str, most: int = 0) -> Any:
    """Return a function that writes rows through the places of 4 numbers: of a table of 2 numbers a row, of `rows` rows, at most `most`."""
    @jit
    def placed(x: Tensor[rows, 8, F32], expert: Tensor[rows, 2, I32]):
        if most:
            tt.assume(x.shape[0] <= most)
        pairs, out = tt.rows_of(expert, 4), tt.zeros((x.shape[0] * 2, 8))
        for e in tt.each(4):
            out[pairs[e]] = x[pairs[e] // 2] * (e + 1)
        return out
    return placed


@pytest.mark.parametrize("target", TARGETS)
def test_a_table_below_a_promised_bound_is_sorted_on_chip(target: str) -> None:
    function = sorting("t", 100)
    assert "pto.load(expert, (0, 0), shape=(100, 2), valid=(" in function.lower(function.plan()).source()
    for t in (0, 1, 7, 100):
        x, expert = draw(t, 8), np.random.default_rng(t).integers(0, 4, (t, 2)).astype(np.int32)
        check(function.using(target=target)(x, expert), np.repeat(x, 2, axis=0) * (expert.reshape(-1, 1) + 1))
    with pytest.raises(PtoError, match="4, at row 0 and column 0"):
        function.using(target=target)(draw(7, 8), np.full((7, 2), 4, np.int32))


@pytest.mark.parametrize(("function", "sizes"), [(sorting(64), {}), (sorting("t", 64), {}), (sorting("t"), {"t": 64}),
                                                 (counted, {"t": 64, "k": 2})])
def test_a_plan_says_what_a_sort_of_places_costs(function: Any, sizes: dict[str, int]) -> None:
    """On chip a constant and a bounded table, in memory those without a bound; of the last, sizes alone."""
    expert = np.zeros((64, 2), np.int32)
    given = (expert,) if function is counted else (draw(64, 8), expert)
    plan = function.plan(arch="ascend_910b", sizes=sizes)
    (cost,) = [cost for cost in plan.costs if "rows_of" in cost.ops]
    (cycles,) = [one.cycles for one in simulated(function, given, plan, runs=False).kernels if one.kernel == cost.name.replace(".", "_")]
    assert 0.85 * cycles < cost.cycles < 1.15 * cycles


def test_a_table_too_long_for_the_chip_has_a_plan() -> None:
    assert [cost for cost in sorting(1 << 16).plan(arch="ascend_910b").costs if "rows_of" in cost.ops]


@jit
def state_of_a_known_size(x: Tensor["t", 8, F32], places: Injective[Tensor["t", I32]]):
    tt.assume(x.shape[0] <= 64)
    out, added = tt.zeros(x.shape), tt.zeros(x.shape)
    out[places] = x * 2
    np.add.at(added, places // 2, x)
    return out, added - 1


@pytest.mark.parametrize("target", TARGETS)
def test_a_table_writes_state_that_would_fit_a_kernel(target: str) -> None:
    for t in (5, 0, 64):
        x, places = draw(t, 8), np.random.default_rng(t).permutation(t).astype(np.int32)
        out, added = np.zeros((t, 8)), np.zeros((t, 8))
        out[places] = x * 2
        np.add.at(added, places // 2, x)
        check(state_of_a_known_size.using(target=target)(x, places), out, added - 1)


@jit
def appended(k: Tensor["b", "c", 4, F32], cache: InOut[Tensor["b", "s", 4, F32]], past: Scalar[I32]):
    c = k.shape[1]
    tt.assume(past >= 0)
    tt.assume(past + c <= cache.shape[1])
    cache[:, past:past + c] = k
    return np.sum(cache[:, :past + c], axis=1)


@pytest.mark.parametrize("target", TARGETS)
def test_a_cache_is_written_from_where_a_scalar_says(target: str) -> None:
    for b, c, s, past in ((3, 2, 9, 4), (1, 1, 2, 1), (2, 0, 3, 3), (2, 5, 40, 35)):
        k, cache = draw(b, c, 4), draw(b, s, 4) * 2
        wanted = cache.copy()
        wanted[:, past:past + c] = k
        check((appended.using(target=target)(k, cache, past), cache), wanted[:, :past + c].sum(1), wanted)
    with pytest.raises(PtoError, match="assumes"):
        appended.using(target=target)(draw(1, 2, 4), draw(1, 3, 4), 2)


@jit
def peaks(x: Tensor["t", 8, F32], starts: Monotone[Tensor["b", I32]]):
    out = tt.zeros((starts.shape[0] - 1, 8))
    for b in tt.each(starts.shape[0] - 1):
        out[b] = np.max(x[starts[b]:starts[b + 1]], axis=0)
    return out


@jit
def peaks_of_groups(x: Tensor["t", 8, F32], group: Tensor["t", I32]):
    out, rows = tt.zeros((3, 8)), tt.rows_of(group, 3)
    for e in tt.each(3):
        out[e] = np.argmax(x[rows[e]][:4], axis=0).astype(F32)
    return out


@jit
def attended(x: Tensor["t", 8, F32], starts: Monotone[Tensor["b", I32]]):
    out = tt.zeros(x.shape)
    for b in tt.each(starts.shape[0] - 1):
        rows = x[starts[b]:starts[b + 1]]
        out[starts[b]:starts[b + 1]] = rows - np.max(rows @ rows.T, axis=1, keepdims=True)
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_a_task_needs_an_element_of_an_extreme_whose_extent_a_table_says(target: str) -> None:
    x = draw(5, 8)
    for starts in ([0, 2, 5], [0, 5, 5], [0, 0, 5]):
        table = np.array(starts, np.int32)
        if 0 in np.diff(table):
            with pytest.raises(PtoError, match=r"np\.max[^·]*for an extreme, at least one element"):
                peaks.using(target=target)(x, table)
        else:
            check(peaks.using(target=target)(x, table), np.array([x[:2].max(0), x[2:].max(0)]))
    check(peaks_of_groups.using(target=target)(x, np.array([2, 0, 1, 0, 0], np.int32)),
          np.array([x[[1, 3, 4]].argmax(0), x[[2]].argmax(0), x[[0]].argmax(0)]))
    with pytest.raises(PtoError, match="for an extreme"):
        peaks_of_groups.using(target=target)(x, np.array([0, 0, 1, 0, 0], np.int32))


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_nothing_need_no_extreme(target: str) -> None:
    x = draw(5, 8)
    wanted = np.concatenate([x[:2] - (x[:2] @ x[:2].T).max(1, keepdims=True), x[2:] - (x[2:] @ x[2:].T).max(1, keepdims=True)])
    check(attended.using(target=target)(x, np.array([0, 2, 2, 5], np.int32)), wanted)


@jit
def peaks_of_blocks(x: Tensor["b", 16, 8, F32], lengths: Tensor["b", I32], turns: Scalar[I32]):
    inside, outside = tt.full((x.shape[0], 8), -9.0), tt.full((x.shape[0], 8), -9.0)
    for b in tt.each(x.shape[0]):
        n = np.minimum(lengths[b], 16)
        for j in tt.loop(0, n, 4):
            inside[b] = np.maximum(inside[b], np.max(x[b, j:np.minimum(j + 4, n)], axis=0))
        for k in tt.loop(turns):
            outside[b] = np.maximum(outside[b], np.max(x[b, k * 4:np.minimum(k * 4 + 4, n)], axis=0))
    return inside, outside


def test_a_block_needs_an_element_where_a_loop_goes_beyond() -> None:
    x, lengths, call = draw(3, 16, 8), np.array([5, 8, 7], np.int32), peaks_of_blocks.using(target="interp")
    wanted = np.array([one[:n].max(0) for one, n in zip(x, lengths, strict=True)])
    check(call(x, lengths, 2), wanted, wanted)
    check(call(x, lengths, 1), wanted, x[:, :4].max(1))
    with pytest.raises(PtoError, match="for an extreme"):
        call(x, lengths, 3)


@jit
def peaks_of_pages(pages: Tensor["b", 4, 4, 8, F32], lengths: Tensor["b", I32], turns: Scalar[I32], steps: Scalar[I32]):
    by_page, by_row = tt.full((pages.shape[0], 8), -9.0), tt.full((pages.shape[0], 8), -9.0)
    for b in tt.each(pages.shape[0]):
        for k in tt.loop(turns):
            by_page[b] = np.maximum(by_page[b], np.max(pages[b, k, :np.minimum(4, lengths[b] - k * 4)], axis=0))
        for j in tt.loop(steps):
            by_row[b] = np.maximum(by_row[b], np.max(pages[b, 0, :np.minimum(4, lengths[b] - j)], axis=0))
    return by_page, by_row


def test_a_page_needs_an_element_where_a_loop_goes_beyond() -> None:
    pages, lengths, call = draw(3, 4, 4, 8), np.array([5, 8, 7], np.int32), peaks_of_pages.using(target="interp")
    wanted = np.array([one.reshape(16, 8)[:n].max(0) for one, n in zip(pages, lengths, strict=True)])
    check(call(pages, lengths, 2, 5), wanted, pages[:, 0].max(1))
    for turns, steps in ((3, 5), (2, 6)):
        with pytest.raises(PtoError, match="for an extreme"):
            call(pages, lengths, turns, steps)


@jit
def promised_too_little(k: Tensor["c", F32], cache: InOut[Tensor[64, F32]], at: Scalar[I32]):
    tt.assume(at >= -1)
    tt.assume(at + k.shape[0] <= 64)
    cache[at:at + k.shape[0]] = k


def test_a_slice_that_may_start_before_the_cache_is_refused() -> None:
    with pytest.raises(PtoError, match=r"tt\.assume\(at >= 0\)"):
        promised_too_little.trace()


@jit
def pooled(x: Tensor["t", 6, F32]):
    n = x.shape[0] // 2
    return np.max(x[:n * 2].reshape(n, 2, 6), axis=1), x[:n * 3] * 1


def test_pairs_of_rows_are_pooled() -> None:
    x = draw(9, 6)
    check(pooled.using(target="interp")(x), x[:8].reshape(4, 2, 6).max(1), x)


@pytest.mark.parametrize("target", TARGETS)
def test_topk_needs_k_elements_at_the_call_and_in_a_task(target: str) -> None:
    @jit(target=target)
    def best(x: Tensor[2, "n", F32]):
        tt.assume(x.shape[1] <= 64)
        return tt.topk(x, 3)[0]

    @jit(target=target)
    def best_of_blocks(x: Tensor[2, "n", F32]):
        total = tt.zeros((2, 3))
        for j in tt.loop(0, x.shape[1], 8):
            total += tt.topk(x[:, j:j + 8], 3)[0]
        return total

    @jit(target=target)
    def best_of_rows(x: Tensor["t", F32], starts: Monotone[Tensor["b1", I32]]):
        out, places = tt.empty((starts.shape[0] - 1, 3)), tt.empty((starts.shape[0] - 1, 3), I32)
        for b in tt.each(starts.shape[0] - 1):
            out[b], places[b] = tt.topk(x[starts[b]:starts[b + 1]][:16], 3)
        return out, places

    def top(rows: np.ndarray) -> np.ndarray:
        return np.sort(rows)[..., ::-1][..., :3]

    x = draw(2, 19)
    check(best(x[:, :3]), top(x[:, :3]))
    check(best_of_blocks(x), top(x[:, :8]) + top(x[:, 8:16]) + top(x[:, 16:]))
    check(best_of_rows(x[0], np.array([0, 3, 16], np.int32)), np.array([top(x[0, :3]), top(x[0, 3:16])]),
          np.array([np.argsort(-x[0, :3], kind="stable")[:3], np.argsort(-x[0, 3:16], kind="stable")[:3]]))
    with pytest.raises(PtoError, match=r"assumes n >= 3"):
        best(x[:, :2])
    with pytest.raises(PtoError, match="for a topk, k"):
        best_of_blocks(x[:, :18])
    with pytest.raises(PtoError, match="for a topk, k"):
        best_of_rows(x[0], np.array([0, 2, 16], np.int32))


def test_a_result_whose_extent_only_data_knows_is_refused() -> None:
    @jit
    def rows(x: Tensor["t", 4, F32], starts: Monotone[Tensor["b", I32]]):
        return x[starts[0]:starts[1]] * 2

    with pytest.raises(PtoError, match=r"J104.*extents only data knows"):
        rows.trace()


@jit
def best_of_stretches(x: Tensor["t", F32], starts: Monotone[Tensor["b1", I32]]):
    tt.assume(x.shape[0] <= 64)           # bounds every stretch as well
    best, places = tt.zeros((starts.shape[0] - 1, 3)), tt.zeros((starts.shape[0] - 1, 3), I32)
    for b in tt.each(starts.shape[0] - 1):
        best[b], places[b] = tt.topk(x[starts[b]:starts[b + 1]], 3)
    return best, places


@jit
def places_alone(x: Tensor["t", F32], starts: Monotone[Tensor["b1", I32]]):
    tt.assume(x.shape[0] <= 64)
    places = tt.zeros((starts.shape[0] - 1, 3), I32)
    for b in tt.each(starts.shape[0] - 1):
        places[b] = tt.topk(x[starts[b]:starts[b + 1]], 3)[1]
    return places


@pytest.mark.parametrize("target", TARGETS)
def test_the_best_of_a_stretch_are_k_or_the_task_says_so(target: str) -> None:
    x = np.random.default_rng(1).permutation(20).astype(np.float32)
    ends = [0, 3, 9, 20]
    wanted = np.array([np.argsort(-x[a:b])[:3] for a, b in pairwise(ends)])
    best, places = best_of_stretches.using(target=target)(x, np.array(ends, np.int32))
    assert np.array_equal(places, wanted) and np.array_equal(best, [x[a:][row] for a, row in zip(ends, wanted, strict=False)])
    for function in (best_of_stretches, places_alone):
        for short in ([0, 2, 9, 20], [0, 9, 9, 20], [0, 4, 18, 20]):
            with pytest.raises(PtoError, match=r"tt\.topk"):
                function.using(target=target)(x, np.array(short, np.int32))


@jit
def beams(scores: Tensor["b", 50, F32], cache: Tensor["b", 6, F32]):
    tt.assume(scores.shape[0] <= 8)
    tt.assume(scores.shape[0] >= 1)
    best, where = tt.topk(scores.reshape(-1), 4)            # b * 50 has the bound of b
    return best, where % 50, cache[where // 50]


@pytest.mark.parametrize("target", TARGETS)
def test_a_bound_of_a_symbol_bounds_its_multiples(target: str) -> None:
    scores, cache = np.random.default_rng(2).permutation(200).reshape(4, 50).astype(np.float32), draw(4, 6)
    where = np.argsort(-scores.ravel())[:4]
    check(beams.using(target=target)(scores, cache), scores.ravel()[where], where % 50, cache[where // 50])


@jit
def one_more(x, by: Scalar[F32]):
    return x + by


@pytest.mark.parametrize("shape", [(0,), (0, 5), (2, 0, 3), (3,)])
def test_arrays_of_no_elements_bring_their_shape(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    check(one_more.using(target="interp")(x, np.array(2.5)), x + np.float32(2.5))
