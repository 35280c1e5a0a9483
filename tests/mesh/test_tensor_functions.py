"""Functions on tensors over the ranks of a mesh: what ranks compute, what they send, what is printed, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    DType,
    Mesh,
    PtoError,
    Replicate,
    Shard,
    Tensor,
    TensorLayout,
    allgather,
    allreduce,
    broadcast,
    halo,
    jit,
    reduce_scatter,
    relayout,
    tt,
)
from pto_wsp.tt.library import silu, softmax

F32 = DType.F32
sharded, replicated = TensorLayout.sharded, TensorLayout.replicated


@jit
def layer(x: Tensor["t", 16, F32], up: Tensor[16, 24, F32], down: Tensor[24, 16, F32]):  # noqa: F821, UP037
    return allreduce(silu(x @ up) @ down, "y")


@jit
def attention(q, k, v):
    out = tt.empty(q.shape)
    for h in tt.each(q.shape[0]):
        out[h] = softmax(q[h] @ k[h].T / math.sqrt(8)) @ v[h]
    return out


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(np.float32)


def of_layer(rows: int) -> tuple[Tensor, Tensor, Tensor]:
    return (Tensor(drawn(rows, 16) / 4, layout=sharded(0, 2, "x")), Tensor(drawn(16, 24) / 4, layout=sharded(1, 2, "y")),
            Tensor(drawn(24, 16) / 4, layout=sharded(0, 2, "y")))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [8, 5, 1])
def test_a_layer_cut_along_both_axes(rows: int) -> None:
    arguments = of_layer(rows)
    found = layer.using(mesh=Mesh(x=2, y=2), target="interp")(*arguments)
    np.testing.assert_allclose(np.asarray(found), layer.python(*map(np.asarray, arguments)), rtol=1e-5, atol=1e-5)
    assert found.layout == sharded(0, 2, "x")


@pytest.mark.slow
def test_cpu_sim_gives_the_bits_of_interp_on_any_threads() -> None:
    @jit
    def exact(x, up, down):
        return allreduce(np.maximum(x @ up, 0) @ down, "y")

    arguments = of_layer(5)
    over = exact.using(mesh=Mesh(x=2, y=2))
    bits = [np.asarray(over.using(**options)(*arguments)).tobytes() for options in ({"threads": 1}, {"threads": 3}, {"target": "interp"})]
    assert len(set(bits)) == 1


def test_on_plain_arrays_collectives_are_nothing() -> None:
    arrays = [np.asarray(one) for one in of_layer(4)]
    assert np.array_equal(layer.python(*arrays), layer.using(target="interp")(*arrays)) or np.allclose(
        layer.python(*arrays), layer.using(target="interp")(*arrays), atol=1e-6)
    assert np.allclose(layer.reference(*arrays), layer.python(*arrays), atol=1e-6)


@pytest.mark.parametrize(("p", "whole"), [(2, False), (3, False), (2, True)])
def test_a_loop_over_a_cut_dimension_runs_on_each_rank_over_its_own_positions(p: int, whole: bool) -> None:
    """Of what is whole, k and v, an iteration picks the place that it is over all ranks."""
    arrays = np.random.default_rng(p).standard_normal((3, 4, 8, 8)).astype(np.float32)
    arguments = [Tensor(one, layout=replicated(3) if whole and k else sharded(0, 3, "x")) for k, one in enumerate(arrays)]
    found = attention.using(mesh=Mesh(x=p), target="interp")(*arguments)
    np.testing.assert_allclose(np.asarray(found), attention.python(*map(np.asarray, arguments)), rtol=1e-5, atol=1e-6)
    assert found.layout == sharded(0, 3, "x")


def test_a_collective_in_a_loop_whose_count_is_a_number() -> None:
    @jit
    def steps(x, up, down):
        state = tt.zeros(x.shape)
        state[:] = x
        for _ in tt.loop(3):
            state[:] = state + allreduce((state @ up) @ down)
        return state

    arguments = (Tensor(drawn(3, 4), layout=replicated(2)), Tensor(drawn(4, 6), layout=sharded(1, 2, "x")),
                 Tensor(drawn(6, 4), layout=sharded(0, 2, "x")))
    found = steps.using(mesh=Mesh(x=2), target="interp")(*arguments)
    np.testing.assert_array_equal(np.asarray(found), steps.python(*map(np.asarray, arguments)))


@pytest.mark.parametrize(("function", "layout", "sent"), [
    (lambda x, w: allreduce(x @ w), replicated(2), 2 * 1024 * 3 // 4),
    (lambda x, w: reduce_scatter(x @ w, 1), sharded(1, 2, "x"), 1024 * 3 // 4),
    (lambda x, w: allgather(x) @ relayout(w, TensorLayout.replicated(2)), replicated(2), (512 + 512) * 3 // 4)])
def test_ranks_send_the_bytes_of_the_table(function: Any, layout: TensorLayout, sent: int) -> None:
    def body(x, w):
        return function(x, w)

    X, W = Tensor(drawn(16, 8), layout=sharded(1, 2, "x")), Tensor(drawn(8, 16), layout=sharded(0, 2, "x"))
    lowered = jit(body).using(mesh=Mesh(x=4)).lower(x=X, w=W, out=(out := Tensor(np.zeros((16, 16), np.float32), layout=layout)))
    program = lowered.compile("interp")
    program.run()
    moved = program.bytes_sent.copy()
    np.fill_diagonal(moved, 0)
    assert moved.sum(axis=1).tolist() == [sent] * 4
    np.testing.assert_array_equal(np.asarray(out), drawn(16, 8) @ drawn(8, 16))


def test_the_plan_says_how_a_collective_moves() -> None:
    arguments, over = of_layer(4), layer.using(mesh=Mesh(x=1, y=4), target="interp")
    plan = over.plan(*arguments)
    assert "collectives  out: ring" in str(plan)
    tree = plan.but(collectives={"out": "tree"})
    assert "algorithm='tree'" in over.lower(tree, **dict(zip(("x", "up", "down"), arguments, strict=True))).source()
    np.testing.assert_allclose(np.asarray(over(*arguments, plan=tree)), np.asarray(over(*arguments)), atol=1e-6)
    for said, code in (({"out": "star"}, "J301"), ({"nothing": "tree"}, "J302")):
        with pytest.raises(PtoError) as caught:
            plan.but(collectives=said)
        assert caught.value.code == code


def module_of(text: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "printed"}
    exec(compile(text, "printed", "exec"), scope)
    return scope


def printed() -> tuple[str, list[np.ndarray], np.ndarray]:
    """Return the module of a function over 2 x 3 ranks with uneven parts, its arrays, and what NumPy gives."""
    @jit
    def f(x, w, b):
        return allreduce(x @ w, "y") + b

    arrays = [drawn(5, 7), drawn(7, 4), np.arange(20, dtype=np.float32).reshape(5, 4)]
    layouts = [TensorLayout.sharded(1, 2, "y"), sharded(0, 2, "y"), sharded(0, 2, "x")]
    given = dict(zip("xwb", (Tensor(one, layout=layout) for one, layout in zip(arrays, layouts, strict=True)), strict=True))
    return f.using(mesh=Mesh(x=2, y=3)).lower(**given).source(), arrays, f.python(*arrays)


def run_printed(text: str, arrays: list[np.ndarray]) -> np.ndarray:
    """Return what a printed module gives on interp."""
    return module_of(text.replace(".compile()", '.compile("interp")'))["run"](*arrays)


def test_the_printed_module_runs_without_the_tensor_level() -> None:
    text, arrays, expected = printed()
    assert "mesh = Mesh(x=2, y=3)" in text and "jit" not in text
    np.testing.assert_array_equal(run_printed(text, arrays), expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("said", "mutant"), [
    ("x.on(rank)", "x.on((rank + 1) % 6)"),                                    # a swapped rank
    ("x_at = rank // 3", "x_at = rank % 3"),                                   # a wrong place along an axis
    ("minimum(5, x_at * 3)", "minimum(5, x_at * 2)"),                          # a wrong offset
    ("Partial('y', 'sum')", "Partial('y', 'max')"),                            # a wrong reduction
    ("'b': Tensor(shape=(5, 4), dtype=F32, name='b', layout=TensorLayout((Shard('x')",
     "'b': Tensor(shape=(5, 4), dtype=F32, name='b', layout=TensorLayout((Shard('y')"),      # a wrong owner
    ("    allreduce(", "    (lambda *a, **k: None)(")])                        # a lost collective
def test_a_mutant_of_the_module_is_seen(said: str, mutant: str) -> None:
    text, arrays, expected = printed()
    assert said in text, text
    try:
        found = run_printed(text.replace(said, mutant), arrays)
    except PtoError:
        return
    assert not np.array_equal(found, expected)


def test_results_are_written_where_out_says() -> None:
    arguments, over = of_layer(4), layer.using(mesh=Mesh(x=2, y=2), target="interp")
    out = Tensor(np.zeros((4, 16), np.float32), layout=sharded(0, 2, "x"))
    assert over(*arguments, out=out) is out
    np.testing.assert_allclose(np.asarray(out), layer.python(*map(np.asarray, arguments)), atol=1e-5)
    with pytest.raises(PtoError) as caught:
        over(*arguments, out=Tensor(np.zeros((4, 16), np.float32), layout=replicated(2)))
    assert caught.value.code == "M101"


@pytest.mark.parametrize(("change", "code"), [
    (lambda: layer(*of_layer(4)), "M102"), (lambda: layer.using(mesh=4), "J121"),
    (lambda: layer.using(mesh=Mesh(x=2), target="interp")(*of_layer(4)), "M102"),
    (lambda: layer.using(mesh=Mesh(x=2, y=2)).lower(), "J109"),
    (lambda: layer.using(mesh=Mesh(x=2, y=2), verify_passes=True)(*of_layer(4)), "J121")])
def test_what_does_not_fit_is_refused(change: Any, code: str) -> None:
    with pytest.raises(PtoError) as caught:
        change()
    assert caught.value.code == code, caught.value



def test_a_mean_along_a_cut_dimension_divides_by_the_whole_extent() -> None:
    @jit
    def norm(x, g):
        rows = allreduce(np.mean(x * x, axis=-1, keepdims=True))
        return x / np.sqrt(rows + 1e-6) * g, allreduce(np.mean(x, axis=1)), allreduce(np.sum(x))

    arguments = (Tensor(drawn(4, 10), layout=sharded(1, 2, "x")), Tensor(drawn(10), layout=replicated(1)))
    found = norm.using(mesh=Mesh(x=3), target="interp")(*arguments)
    for one, other in zip(found, norm.python(*map(np.asarray, arguments)), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5, atol=1e-6)
    assert [one.layout for one in found] == [sharded(1, 2, "x"), replicated(1), replicated(0)]


def test_iterations_with_a_collective_run_one_after_the_other() -> None:
    """They share the memory that the collective moves, so a loop of any order is one in order."""
    @jit
    def rows(x, w):
        out = tt.empty((x.shape[0], w.shape[1]))
        for i in tt.each(x.shape[0]):
            out[i] = allreduce(x[i] @ w)
        return out

    arguments = (Tensor(drawn(3, 8), layout=sharded(1, 2, "x")), Tensor(drawn(8, 4), layout=sharded(0, 2, "x")))
    over = rows.using(mesh=Mesh(x=2), target="interp")
    assert "P.seq(3)" in over.lower(x=arguments[0], w=arguments[1]).source()
    np.testing.assert_array_equal(np.asarray(over(*arguments)), rows.python(*map(np.asarray, arguments)))


def test_state_lives_on_both_sides_of_a_collective() -> None:
    cut = (Tensor(drawn(3, 8), layout=sharded(1, 2, "x")), Tensor(drawn(8, 4), layout=sharded(0, 2, "x")))

    @jit
    def kept(x, w, b):
        state = tt.zeros((x.shape[0], 4))
        state[:, :2] = b * 2
        total = allreduce(x @ w)
        return total + state

    bias = Tensor(drawn(3, 2), layout=replicated(2))
    found = kept.using(mesh=Mesh(x=2), target="interp")(*cut, bias)
    np.testing.assert_array_equal(np.asarray(found), kept.python(*map(np.asarray, (*cut, bias))))


def check_on_mesh(function: Any, mesh: Mesh, *arguments: Tensor) -> None:
    """Hold a function of exact numbers against NumPy: over the mesh, on one rank, and by its reference."""
    arrays = [np.asarray(one) for one in arguments]
    expected = function.python(*arrays)
    np.testing.assert_array_equal(np.asarray(function.using(mesh=mesh, target="interp")(*arguments)), expected)
    np.testing.assert_array_equal(function.using(target="interp")(*arrays), expected)
    np.testing.assert_array_equal(function.reference(*arrays), expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("rows", "p"), [(8, 4), (7, 3), (5, 4), (6, 1)])      # 5 rows over 4 ranks: 2, 2, 1, 0
def test_a_stencil_reads_rows_of_the_neighbours_and_zeros_beyond_the_ends(rows: int, p: int) -> None:
    @jit
    def smoothed(x):
        beside = halo(x, 1)
        return beside[:-2] + 2 * beside[1:-1] - beside[2:]

    x = drawn(rows, 4)
    check_on_mesh(smoothed, Mesh(x=p), Tensor(x, layout=sharded(0, 2, "x")))
    padded = np.pad(x, ((1, 1), (0, 0)))
    np.testing.assert_array_equal(smoothed.python(x), padded[:-2] + 2 * x - padded[2:])


@pytest.mark.slow
def test_a_stencil_along_two_cut_dimensions_reads_corners() -> None:
    @jit
    def steps(x):
        state = tt.empty(x.shape)
        state[:] = x
        for _ in tt.loop(2):
            beside = halo(halo(state, 1, 0), 2, 1)
            state[:] = beside[:-2, 4:] - beside[2:, :-4] + beside[1:-1, 1:-3]
        return state

    check_on_mesh(steps, Mesh(x=2, y=3), Tensor(drawn(7, 11), layout=TensorLayout((Shard("x"), Shard("y")))))


def test_a_halo_sends_k_rows_to_each_neighbour() -> None:
    x, out = (Tensor(array, layout=sharded(0, 2, "x")) for array in (drawn(7, 3), np.zeros((7, 3), np.float32)))
    lowered = jit(lambda x: halo(x, 2)[4:]).using(mesh=Mesh(x=3)).lower(x=x, out=out)
    program = lowered.compile("interp")
    program.run()
    moved = program.bytes_sent.copy()
    np.fill_diagonal(moved, 0)
    row = 3 * 4           # bytes; shards of 3, 3 and 1 rows
    assert moved.tolist() == [[0, 2 * row, 0], [2 * row, 0, 2 * row], [0, row, 0]]
    np.testing.assert_array_equal(np.asarray(out), np.pad(drawn(7, 3), ((0, 2), (0, 0)))[2:])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("x", "w", "p"), [(sharded(2, 3, "x"), sharded(1, 3, "x"), 3), (sharded(0, 3, "x"), replicated(3), 3),
                                           (sharded(0, 3, "x"), sharded(0, 3, "x"), 2)])
def test_state_that_a_loop_adds_to_is_a_term_on_each_rank(x: TensorLayout, w: TensorLayout, p: int) -> None:
    """Where the inner dimension is cut, where the loop itself is; one allreduce stands behind the loop."""
    @jit
    def experts(x, w, b):
        total, top = tt.zeros((4, 6)), tt.full((4, 1), -np.inf)
        for e in tt.loop(x.shape[0]):
            total += x[e] @ w[e]
            total -= x[e] @ w[e] * 3
            top[:] = np.maximum(top, np.max(x[e], axis=-1, keepdims=True))
        return allreduce(total) * allreduce(top) + b

    check_on_mesh(experts, Mesh(x=p), Tensor(drawn(4, 4, 8), layout=x), Tensor(drawn(4, 8, 6), layout=w),
                  Tensor(drawn(4, 6), layout=replicated(2)))


def test_terms_of_iterations_meet_along_two_axes_and_in_rows_of_a_table() -> None:
    @jit
    def summed(x, rows):
        total, placed = tt.zeros(x.shape[2:]), tt.zeros((5, x.shape[3]))
        for i in tt.loop(x.shape[0]):
            for j in tt.loop(x.shape[1]):
                total += x[i, j]
                np.add.at(placed, rows, x[i, j])
        return allreduce(allreduce(total * 2, "x"), "y") + reduce_scatter(allreduce(placed, "x"), 1, "y")[rows]

    leading = TensorLayout((Shard("x"), Shard("y"), Replicate(), Replicate()))
    check_on_mesh(summed, Mesh(x=2, y=3), Tensor(drawn(3, 5, 2, 6), layout=leading),
                  Tensor(np.array([4, 1], np.int32), layout=replicated(1)))


def test_a_partial_result_is_reduced_in_the_function_that_calls() -> None:
    @jit
    def terms(x, w):
        return x @ w

    @jit
    def caller(x, w):
        return allreduce(terms(x, w) - terms(2 * x, w))

    check_on_mesh(caller, Mesh(x=3), Tensor(drawn(4, 8), layout=sharded(1, 2, "x")), Tensor(drawn(8, 6), layout=sharded(0, 2, "x")))


def test_a_broadcast_sends_the_copy_of_the_root() -> None:
    @jit
    def doubled(w):
        return broadcast(w * 2, 2, "y") + 1

    w = Tensor(drawn(3, 4), layout=replicated(2))
    check_on_mesh(doubled, Mesh(x=2, y=3), w)
    lowered = doubled.using(mesh=Mesh(x=2, y=3)).lower(w=w)
    assert [lowered.collectives[0].bytes_sent(rank) for rank in range(3)] == [0, 0, 2 * 48]


def doubled_first(acc, x, e, before):
    acc[:] = acc + acc
    acc += x[e]


def made_before_the_loop(acc, x, e, before):
    acc[:] = before
    acc += x[e]


def taken_away_from(acc, x, e, before):
    acc[:] = x[e] - acc


def set_to_a_number(acc, x, e, before):
    acc[:] = 1.0
    acc += x[e]


@pytest.mark.parametrize("update", [doubled_first, made_before_the_loop, taken_away_from, set_to_a_number])
def test_iterations_that_do_more_than_add_are_no_terms(update: Any) -> None:
    """On several ranks they would give other numbers than in order."""
    @jit
    def summed(x):
        acc = tt.zeros(x.shape[1:])
        before = acc + 1
        for e in tt.loop(x.shape[0]):
            update(acc, x, e, before)
        return allreduce(acc)

    with pytest.raises(PtoError) as caught:
        summed.using(mesh=Mesh(x=2), target="interp")(Tensor(drawn(4, 3), layout=sharded(0, 2, "x")))
    assert caught.value.code == "M108" and "loop" in caught.value.message


def test_a_sum_of_terms_starts_at_0() -> None:
    @jit
    def summed(x):
        acc = tt.full(x.shape[1:], 1.0)
        for e in tt.loop(x.shape[0]):
            acc += x[e]
        return allreduce(acc)

    with pytest.raises(PtoError) as caught:
        summed.using(mesh=Mesh(x=2), target="interp")(Tensor(drawn(4, 3), layout=sharded(0, 2, "x")))
    assert (caught.value.code, caught.value.expected, caught.value.found) == ("M108", "0", "1.0")
