"""A body may make scratch tensors of a size of the run, or of the iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import (
    Channel,
    DenseDyn,
    Deps,
    DType,
    In,
    Out,
    P,
    PtoError,
    Scalar,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    Workload,
    ceildiv,
    consume,
    kernel,
    maximum,
    minimum,
    pto,
    send,
    slot_set_u64,
    slot_u64,
    workload,
)
from pto_wsp.ir.plan_text import print_plan
from tests.npu.dynamic.cases import move, run_package, whole_numbers

F32, I64 = DType.F32, DType.I64
TARGETS = ["interp", "cpu_sim"]
LENS = np.array([3, 0, 7, 8])
T = Symbol("t")


@kernel
def twice(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def put(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


def staged(size: Callable[[Any], Any], lens: Tensor, x: Tensor, y: Tensor) -> Workload:
    """Double the first lens[b] rows of each block twice, by way of a scratch tensor of `size(b)` rows."""
    @workload
    def program() -> None:
        for b in P(4):
            half = Tensor.empty((size(b), 8), F32)
            for i in P(ceildiv(lens[b], 4)):
                twice[b, i](x[b, :lens[b]][i * 4:].clip(4, 8), half[i * 4:].clip(4, 8))
            for i in P(ceildiv(lens[b], 4)):
                twice[b, i](half[i * 4:].clip(4, 8), y[b, :lens[b]][i * 4:].clip(4, 8))
    return program()


def arrays(lens: Any = LENS) -> tuple[Tensor, Tensor, Tensor]:
    return (Tensor(np.asarray(lens), name="lens"), Tensor(np.arange(256, dtype=np.float32).reshape(4, 8, 8) + 1, name="x"),
            Tensor(np.full((4, 8, 8), np.nan, np.float32), name="y"))


def check_rows(lens: Tensor, x: Tensor, y: Tensor) -> None:
    assert lens.data is not None and x.data is not None and y.data is not None
    for b, n in enumerate(lens.data):
        np.testing.assert_array_equal(y.data[b, :n], 4 * x.data[b, :n])
        assert np.isnan(y.data[b, n:]).all(), "rows behind the bound were written"


SIZES: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "element": lambda lens: lambda b: lens[b],
    "item": lambda lens: lambda b: lens.item(b) + 1,
    "bounded": lambda lens: lambda b: minimum(lens[b], 8),
    "symbol": lambda lens: lambda b: T,
    "symbol and variable": lambda lens: lambda b: maximum(T - b, 8),
    "rounded up": lambda lens: lambda b: ceildiv(lens[b], 4) * 4,
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.sampled(3)
def test_each_iteration_makes_a_tensor_of_its_size(size: str, target: str) -> None:
    lens, x, y = arrays()
    program = staged(SIZES[size](lens), lens, x, y).compile(target=target)
    symbols = {"t": 9} if size.startswith("symbol") else {}
    program.run(**symbols)
    check_rows(lens, x, y)
    y.data[...] = np.nan  # type: ignore[index]
    short = Tensor(np.array([0, 8, 1, 0]))
    program.run(lens=short, **symbols)
    check_rows(short, x, y)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"threads": 3}, {"sanitize": True}, {"threads": 2, "check_finite": True}], ids=str)
def test_engines_and_windows_agree(options: dict[str, Any]) -> None:
    lens, x, y = arrays()
    made = staged(lambda b: lens[b], lens, x, y)
    for window in (TaskWindow(2, "tasks", WindowMode.STALL), TaskWindow(600, "bytes", WindowMode.STALL)):
        y.data[...] = np.nan  # type: ignore[index]
        made.task_graph(deps=Deps.hybrid(), window=window).compile(**options).run()
        check_rows(lens, x, y)


@pytest.mark.parametrize("target", TARGETS)
def test_an_extent_below_what_is_used_ends_the_run(target: str) -> None:
    lens, x, y = arrays()
    program = staged(lambda b: T, lens, x, y).compile(target=target)
    with pytest.raises(PtoError) as caught:
        program.run(t=3)      # block 1 of the third matrix begins behind row 3
    assert caught.value.code == "R104" and np.isnan(y.data).all()  # type: ignore[arg-type]
    for bad in (-1, 1 << 45, (1 << 63) - 1):
        with pytest.raises(PtoError, match="an extent below 0, or fits no memory") as caught:
            program.run(t=bad)
        assert caught.value.code == "R104"
    program.run(t=8)
    check_rows(lens, x, y)


@pytest.mark.parametrize("target", TARGETS)
def test_two_extents_and_elements_of_the_scratch(target: str) -> None:
    """Bounds are read from a scratch tensor of two sizes: its rows are as far apart as the second one says."""
    n, m = Symbol("n"), Symbol("m")
    y = Tensor(np.full((6, 6), -1), name="y")

    @workload
    def program() -> None:
        for b in P(1):
            counts = Tensor.empty((n, m + b), I64)
            for i in P(n):
                for j in P(m):
                    put[i, j](i + 10 * j, counts[i:i + 1, j:j + 1])
            for i in P(n):
                for j in P(m):
                    put[i, j](counts[i, j], y[i:i + 1, j:j + 1])
    compiled = program().compile(target=target)
    for rows, cols in ((0, 0), (1, 6), (6, 1), (3, 5), (0, 4)):
        y.data[...] = -1  # type: ignore[index]
        compiled.run(n=rows, m=cols)
        expected = np.full((6, 6), -1)
        expected[:rows, :cols] = np.arange(rows)[:, None] + 10 * np.arange(cols)
        np.testing.assert_array_equal(y.data, expected)
    with pytest.raises(PtoError, match="fits no memory"):
        compiled.run(n=1 << 30, m=1 << 30)


@pytest.mark.parametrize("target", TARGETS)
def test_the_last_extent_may_be_of_the_run(target: str) -> None:
    cols = Symbol("cols")
    x, y = Tensor(np.arange(32, dtype=np.float32).reshape(4, 8), name="x"), Tensor(np.full((4, 8), np.nan, np.float32), name="y")

    @workload
    def program() -> None:
        for b in P(1):
            wide = Tensor.empty((4, cols + b), F32)
            twice(x.clip(4, cols), wide.clip(4, 8))
            twice(wide.clip(4, 8), y.clip(4, cols))
    compiled = program().compile(target=target)
    for n in (0, 1, 5, 8):
        y.data[...] = np.nan  # type: ignore[index]
        compiled.run(cols=n)
        np.testing.assert_array_equal(y.data[:, :n], 4 * x.data[:, :n])  # type: ignore[index]
        assert np.isnan(y.data[:, n:]).all()  # type: ignore[index]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", ["branch", "process", "called", "consumer"])
def test_every_body_makes_them(body: str, target: str) -> None:
    x, y = Tensor(np.ones((4, 4, 8), np.float32)), Tensor(np.zeros((4, 4, 8), np.float32))
    rows, ch = DenseDyn(4), Channel("ch")

    def through(b: Any, n: Any) -> None:
        half = Tensor.empty((n, 8), F32)
        twice[b](x[b, :n].clip(4, 8), half.clip(4, 8))
        twice[b](half.clip(4, 8), y[b, :n].clip(4, 8))

    @workload
    def inner(b: int) -> None:
        through(b, rows.size)

    @workload
    def program() -> None:
        if body == "branch":
            for b in P(4):
                with P.when(b > 0):
                    through(b, rows.size)
                with P.otherwise():
                    through(b, b + rows)
        elif body == "process":
            with P.pipe():
                for b in P.seq(4):
                    through(b, rows.size)
        elif body == "called":
            for b in P(4):
                inner(b)
        else:
            with P.pipe():
                for b in P.seq(4):
                    send(ch, b, rows.size)
                with consume(ch) as (b, n):
                    through(b, n)
    compiled = program().compile(target=target)
    for n in (0, 3, 4):
        y.data[...] = 0  # type: ignore[index]
        compiled.run(rows=n)
        assert (y.data[:, :n] == 4).all() and (y.data[:, n:] == 0).all()  # type: ignore[index]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=4, max_size=4), st.integers(0, 9), st.sampled_from(sorted(SIZES)))
def test_drawn_lengths_equal_numpy(lengths: list[int], t: int, size: str) -> None:
    lens, x, y = arrays(lengths)
    program = staged(SIZES[size](lens), lens, x, y).compile(target="interp")
    try:
        program.run(**({"t": t} if size.startswith("symbol") else {}))
    except PtoError:
        assert size == "symbol" and any(t < n // 5 * 4 for n in lengths)     # a block that begins behind the scratch
        return
    reached = [min(n, t) if size == "symbol" else n for n in lengths]
    if reached == lengths:
        check_rows(lens, x, y)


def test_a_workload_shows_and_survives_its_sizes() -> None:
    lens, x, y = arrays()
    made = staged(lambda b: lens[b], lens, x, y)
    assert "half = Tensor.empty((lens[b], 8), DType.F32)" in str(made)
    assert str(Workload.from_json(made.to_json())) == str(made)
    assert "half = Tensor.empty((8, 8), DType.F32)" in str(staged(lambda b: minimum(8, lens[b]), lens, x, y))
    assert "make half [lens[b], 8]" in print_plan(made.compile(target="interp").plan)
    listed = made.tasks()
    assert "half[0:3, 0:8]" in str(listed[0]) and "half[4:7, 0:8]" in str(listed[3])


@pytest.mark.slow
def test_scratch_that_has_an_upper_bound_is_emitted() -> None:
    """The package allocates the bound; without one the size of a package's tensor is not known."""
    x, y = Tensor(whole_numbers(2, 8, 16), name="X"), Tensor(np.full((2, 8, 16), -7, np.float32), name="Y")

    def through(size: Any) -> Workload:
        @workload
        def program() -> None:
            for b in P(2):
                half = Tensor.empty((size, 16), F32)
                move[b](x[b].clip(T, 16).clip(8, 16), half.clip(8, 16))
                move[b](half.clip(8, 16), y[b].clip(T, 16).clip(8, 16))
        return program()
    run_package(through(minimum(8, T)), t=5)
    with pytest.raises(PtoError, match=r"fresh\.sized") as caught:
        through(T).compile(target="ascend_npu")
    assert caught.value.code == "N106" and "minimum(64, n)" in str(caught.value.help)
    assert through(T).compile(target="pto").manifest is not None      # of kernels alone


def test_sizes_that_may_change_before_a_use_are_refused() -> None:
    counts = Tensor(np.zeros((1, 4), np.int64), name="counts")

    @workload
    def computed() -> None:
        put(3, counts[:, 0:1])
        for b in P(4):
            put[b](b, Tensor.empty((counts[0, b], 1), I64)[0:1])

    @workload
    def slotted() -> None:
        for b in P.seq(4):
            slot_set_u64(0, b)
            Tensor.empty((slot_u64(0), 8), F32)
    with pytest.raises(PtoError, match="as large as its tasks or slots say") as caught:
        computed().compile()
    assert caught.value.code == "W102"
    with pytest.raises(PtoError, match="no extent of a tensor") as caught:
        slotted()
    assert caught.value.code == "D101"
