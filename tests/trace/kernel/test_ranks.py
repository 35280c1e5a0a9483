"""Tiles of rank 3 and more: what they are in kernel IR, what a workload binds, and what a run checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import Constexpr, DType, In, InOut, Kernel, Out, P, PtoError, Scalar, Symbol, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.errors import ArgumentRankError, ArgumentShapeError, ArityError, BindingError, OwnBodyError, RaceError

F32, I32 = DType.F32, DType.I32
B, R, C = "B", "R", "C"
TARGETS = ("interp", "cpu_sim")
RNG = np.random.default_rng(1)


def numbers(*shape: int) -> Any:
    return RNG.integers(-4, 5, shape).astype(np.float32)


@kernel
def scaled(x: In[Tile[B, R, C, F32]], by: In[Tile[B, 1, 1, F32]], y: Out[Tile[B, R, C, F32]]) -> None:
    pto.store(y, x * by)


@kernel
def halves(x: In[Tile[4, 2, 3, F32]], y: Out[Tile[4, 2, 3, F32]]) -> None:
    for tile, number in zip(x[::2], range(0, 4, 2), strict=True):
        y[number] = tile + 1


@kernel
def running(x: In[Tile[3, 2, 4, F32]], total: InOut[Tile[3, 2, 4, F32]], n: Scalar[I32]) -> None:
    acc = pto.alloc((3, 2, 4), F32, init=0)
    for _ in pto.range(n):
        acc += x
        acc[0] -= 1
    acc[:] = acc[::-1]
    total += acc


def test_a_parameter_is_a_parameter_for_each_tile_in_the_ir() -> None:
    ir = str(scaled.ir_of(B=2, R=4, C=8))
    assert ir.splitlines()[0].count("Tile[4, 8, f32]") == 4 and "x[0]" in ir and "y[1]" in ir and "Tile[2" not in ir


def test_sizes_are_those_of_the_arrays() -> None:
    x, by = numbers(3, 5, 7), numbers(3, 1, 1)
    assert np.array_equal(scaled.run(x, by), x * by)
    with pytest.raises(ArgumentShapeError, match="size `B`"):
        scaled.run(x, numbers(2, 1, 1))
    with pytest.raises(ArgumentShapeError, match="2 dimensions"):
        scaled.run(x[0], by)


def test_an_array_of_another_leading_extent_is_refused() -> None:
    with pytest.raises(ArgumentShapeError) as caught:
        halves.run(numbers(5, 2, 3))
    assert caught.value.expected == "Tile[4, 2, 3, f32]" and caught.value.found == "[5, 2, 3]"


def test_tiles_that_are_not_stored_stay() -> None:
    x, y = numbers(4, 2, 3), np.full((4, 2, 3), 9, np.float32)
    halves.run(x, y)
    assert np.array_equal(y[::2], x[::2] + 1) and (y[1::2] == 9).all()


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_that_are_not_stored_stay_in_a_program(target: str) -> None:
    x, y = numbers(2, 4, 2, 3), np.full((2, 4, 2, 3), 9, np.float32)
    bind_each(halves, 2, x, y).compile(target=target).run()
    assert np.array_equal(y[:, ::2], x[:, ::2] + 1) and (y[:, 1::2] == 9).all()


def bind_each(made: Kernel, n: int, *arrays: Any) -> Workload:
    tensors = [Tensor(array) for array in arrays]

    @workload
    def each() -> None:
        for b in P(n):
            made[b](*(tensor[b] for tensor in tensors))

    return each()


@pytest.mark.parametrize("target", TARGETS)
def test_buffers_of_rank_3_are_read_before_they_are_written(target: str) -> None:
    x, total = numbers(3, 2, 4), numbers(3, 2, 4)
    sums = 5 * x
    sums[0] -= 5
    expected = total + sums[::-1]
    X, T, n = Tensor(x), Tensor(total), Symbol("n")

    @workload
    def once() -> None:
        running[0](X, T, n)

    once().compile(target=target).run(n=5)
    assert np.array_equal(total, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_and_columns_have_a_valid_part(target: str) -> None:
    x, by, y = numbers(3, 7, 10), numbers(3, 1, 1), np.full((3, 7, 10), 9, np.float32)
    X, S, Y = Tensor(x), Tensor(by), Tensor(y)

    @kernel
    def blocks(x: In[Tile[3, 4, 8, F32]], by: In[Tile[3, 1, 1, F32]], y: Out[Tile[3, 4, 8, F32]]) -> None:
        pto.store(y, x * by + x.sum(axis=(0, 1, 2), keepdims=True))       # nothing is added for what is not there

    @workload
    def all_blocks() -> None:
        for i in P(2):
            for j in P(2):
                blocks[i, j](X[:, i * 4:, j * 8:].clip(3, 4, 8), S, Y[:, i * 4:, j * 8:].clip(3, 4, 8))

    expected = x * by
    for i in (0, 4):
        for j in (0, 8):
            expected[:, i:i + 4, j:j + 8] += x[:, i:i + 4, j:j + 8].sum()
    all_blocks().compile(target=target).run()
    assert np.array_equal(y, expected)


def test_a_leading_extent_of_the_run_is_refused() -> None:
    X, Y, n = Tensor(numbers(4, 2, 3)), Tensor(numbers(4, 2, 3)), Symbol("n")

    @workload
    def some() -> None:
        halves[0](X[:n].clip(4, 2, 3), Y)

    with pytest.raises(ArgumentShapeError, match="a leading extent of argument `x` is known only in a run"):
        some()


def test_another_leading_extent_cannot_be_bound() -> None:
    x, y = numbers(4, 2, 3), numbers(4, 2, 3)
    X, Y = Tensor(x, name="X"), Tensor(y, name="Y")

    @workload
    def whole() -> None:
        halves[0](X, Y)

    program = whole().compile()
    with pytest.raises(BindingError, match="`X`") as caught:
        program.run(X=numbers(6, 2, 3))
    print(caught.value)


def test_rank_and_shape_of_a_view_are_checked() -> None:
    x, y = Tensor(numbers(2, 4, 2, 3)), Tensor(numbers(4, 2, 3))

    @workload
    def rank() -> None:
        halves[0](x, y)

    @workload
    def shape() -> None:
        halves[0](x[0, :3], y)

    with pytest.raises(ArgumentRankError, match="`x` has 4 dimensions") as four:
        rank()
    assert four.value.expected == "Tile[4, 2, 3, f32]: 3 dimensions"
    with pytest.raises(ArgumentShapeError) as three:
        shape()
    assert three.value.expected == "Tile[4, 2, 3, f32]" and "[3, 2, 3] f32" in str(three.value.found)


def test_overlapping_tiles_of_parallel_tasks_are_a_race() -> None:
    x, y = Tensor(numbers(4, 4, 3)), Tensor(numbers(5, 4, 3))

    @workload
    def shifted() -> None:
        for i in P(2):
            halves[i](x[:, i * 2:i * 2 + 2], y[i:i + 4, 0:2])

    with pytest.raises(RaceError):
        shifted().compile()


def test_tasks_on_other_rows_of_every_tile_are_no_race() -> None:
    x, y = numbers(4, 6, 3), np.zeros((4, 6, 3), np.float32)
    X, Y = Tensor(x), Tensor(y)

    @workload
    def bands() -> None:
        for i in P(3):
            halves[i](X[:, i * 2:(i + 1) * 2], Y[:, i * 2:(i + 1) * 2])

    program = bands().compile()
    assert "proved" in str(program.checks) and "not proved" not in str(program.checks)
    program.run()
    assert np.array_equal(y[::2], x[::2] + 1)


def test_the_json_of_a_workload_has_its_tiles() -> None:
    x, y = numbers(2, 4, 2, 3), np.zeros((2, 4, 2, 3), np.float32)
    work = bind_each(halves, 2, x, y)
    again = Workload.from_json(work.to_json())
    assert again.to_json() == work.to_json()


def test_a_body_in_c_has_two_axes() -> None:
    with pytest.raises(OwnBodyError, match="more than two axes"):
        @kernel(c_src="y[0] = x[0];")
        def own(x: In[Tile[2, 4, 8, F32]], y: Out[Tile[2, 4, 8, F32]]) -> None: ...


def test_prints_name_the_tile(capsys: pytest.CaptureFixture[str]) -> None:
    @kernel
    def shown(x: In[Tile[2, 1, 2, F32]], y: Out[Tile[2, 1, 2, F32]]) -> None:
        pto.print("x", x)
        pto.store(y, x)

    shown.run(numbers(2, 1, 2))
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines() if "Tile" in line] == ["shown x[0]", "shown x[1]"]


def test_capacity_counts_every_tile() -> None:
    @kernel
    def many(x: In[Tile[B, 64, 64, F32]], y: Out[Tile[B, 64, 64, F32]]) -> None:
        pto.store(y, pto.softmax(x) + x.max(axis=0, keepdims=True))

    many.check("ascend_910b", B=2)
    with pytest.raises(PtoError) as caught:
        many.check("ascend_910b", B=16)
    assert caught.value.code == "K110"


def test_more_tiles_than_a_task_takes_are_refused() -> None:
    x = Tensor(numbers(16, 3, 2, 2))
    y = Tensor(numbers(17, 3, 2, 2))

    @workload
    def large() -> None:
        scaled[0](x[:, 1], Tensor(numbers(16, 3, 1, 1))[:, 1], y[1:, 1])

    with pytest.raises(ArityError) as caught:
        large().compile()
    assert caught.value.found == "48, with one for each tile of `x`, `by`, `y`"


def test_random_numbers_differ_from_tile_to_tile() -> None:
    @kernel
    def drawn(y: Out[Tile[2, 3, 8, F32]], flat: Out[Tile[6, 8, F32]], seed: Constexpr[int]) -> None:
        pto.store(y, pto.random((2, 3, 8), seed))
        pto.store(flat, pto.random((6, 8), seed))

    y, flat = drawn.run(seed=3)
    assert np.array_equal(y.reshape(6, 8), flat) and not np.array_equal(y[0], y[1])


def test_numbers_of_a_shape_of_rank_3() -> None:
    @kernel
    def made(a: Out[Tile[2, 3, 4, I32]], b: Out[Tile[2, 3, 4, I32]], c: Out[Tile[2, 3, 4, I32]]) -> None:
        pto.store(a, pto.iota(a.shape, I32, 0) * 100 + pto.iota(a.shape, I32, 1) * 10 + pto.iota(a.shape, I32, 2))
        pto.store(b, pto.full((3, 4), 7, I32) + pto.zeros((2, 1, 1), I32) + pto.ones_like(b))
        pto.store(c, pto.expand(pto.iota((1, 4), I32), (2, 3, 4)))

    a, b, c = made.run()
    places = np.indices((2, 3, 4))
    assert np.array_equal(a, places[0] * 100 + places[1] * 10 + places[2]) and (b == 8).all() and np.array_equal(c, places[2])


def test_halves_are_added_in_f32_along_a_leading_axis() -> None:
    @kernel
    def added(x: In[Tile[4, 1, 1, DType.F16]], y: Out[Tile[1, 1, DType.F16]], mean: Out[Tile[1, 1, 1, DType.F16]]) -> None:
        pto.store(y, x.sum(axis=0))
        pto.store(mean, x.mean(axis=0, keepdims=True))

    y, mean = added.run(np.array([2048, 1, 1, 1], np.float16).reshape(4, 1, 1))
    assert y[0, 0] == np.float16(2051) and mean[0, 0, 0] == np.float16(2051 / 4)      # in f16, 2048 + 1 is 2048


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_are_added_in_the_order_of_the_index(target: str) -> None:
    @kernel
    def added(x: In[Tile[2, 3, 1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, x.sum(axis=(0, 1)))

    terms = np.array([1e8, -1e8, 3, 1e8, -1e8, 2], np.float32)         # 3 is lost in 1e8; from the back, 2 would be
    x, y = Tensor(np.repeat(terms, 4).reshape(2, 3, 1, 4)), Tensor(np.zeros((1, 4), np.float32))

    @workload
    def once() -> None:
        added[0](x, y)

    once().compile(target=target).run()
    assert (y.data == 2).all()


def test_means_joins_and_stacks_take_the_axes_of_numpy() -> None:
    @kernel
    def lines(x: In[Tile[2, 3, 4, F32]], mean: Out[Tile[1, 3, 1, F32]], joined: Out[Tile[4, 3, 4, F32]],
              paired: Out[Tile[2, 2, 3, 4, F32]]) -> None:
        pto.store(mean, x.mean(axis=(0, 2), keepdims=True))
        pto.store(joined, np.concatenate([x, x * 2]))
        pto.store(paired, np.stack([x, x * 2], axis=1))

    x = numbers(2, 3, 4)
    mean, joined, paired = lines.run(x)
    assert np.array_equal(mean, x.mean(axis=(0, 2), keepdims=True))
    assert np.array_equal(joined, np.concatenate([x, x * 2])) and np.array_equal(paired, np.stack([x, x * 2], axis=1))


def test_masks_count_and_hold_along_a_leading_axis() -> None:
    @kernel
    def masks(x: In[Tile[3, 2, 2, F32]], n: Out[Tile[2, 2, I32]], some: Out[Tile[1, 2, 2, DType.BOOL]],
              every: Out[Tile[2, 2, DType.BOOL]]) -> None:
        pto.store(n, (x > 0).sum(axis=0))
        pto.store(some, pto.any(x, axis=0, keepdims=True))
        pto.store(every, np.all(x > 0, axis=0))

    x = numbers(3, 2, 2)
    n, some, every = masks.run(x)
    assert np.array_equal(n, (x > 0).sum(axis=0)) and np.array_equal(some[0], x.any(axis=0)) and np.array_equal(every, (x > 0).all(axis=0))


@pytest.mark.parametrize("target", ["ascend_npu", "pto"])
def test_a_package_for_the_npu_has_an_argument_for_each_tile(target: str) -> None:
    x, w, y = (Tensor(numbers(4, 16, 16)) for _ in range(3))

    @kernel
    def products(x: In[Tile[4, 16, 16, F32]], w: In[Tile[4, 16, 16, F32]], y: Out[Tile[4, 16, 16, F32]]) -> None:
        pto.store(y, x @ w)

    @workload
    def once() -> None:
        products[0](x, w, y)

    program = once().compile(target=target)
    assert program.artifact_dir.exists()
