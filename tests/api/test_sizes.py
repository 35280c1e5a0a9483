"""Sizes are data: extents of axes in arithmetic follow what each run binds."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DenseDyn,
    DType,
    In,
    InOut,
    Out,
    P,
    PtoError,
    Ragged,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    ceildiv,
    kernel,
    load,
    maximum,
    minimum,
    pto,
    workload,
)

F32, I64 = DType.F32, DType.I64
TARGETS = ["interp", "cpu_sim"]
COUNTS = [0, 1, 7, 31, 32, 33, 40]


@kernel
def twice(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def put(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


def arrays() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.arange(320, dtype=np.float32).reshape(40, 8) + 1, np.full((40, 8), -1, np.float32)


def block(i: Any, X: Tensor, Y: Tensor, rows: Any) -> None:
    twice[i](X[i * 4:rows].clip(4, 8), Y[i * 4:rows].clip(4, 8))


def holds(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], n: int, factor: int = 2) -> bool:
    """Tell whether the first `n` rows are computed and the others untouched."""
    return bool((y[:n] == factor * x[:n]).all() and (y[n:] == -1).all())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("of", [lambda rows: ceildiv(rows, 4), lambda rows: ceildiv(rows.size, 4), lambda rows: (rows + 3) // 4,
                                lambda rows: (3 + rows.size) // 4, lambda rows: maximum(0, ceildiv(minimum(rows, 40), 4))],
                         ids=["ceildiv", "size", "operators", "reversed", "minimum"])
def test_the_extent_of_an_axis_is_a_number_of_the_run(of: Callable[[Any], object], target: str) -> None:
    x, y = arrays()
    X, Y, rows = Tensor(x), Tensor(y), DenseDyn(40)

    @workload
    def w() -> None:
        for i in P(of(rows)):
            block(i, X, Y, rows)
    program = w().compile(target=target)
    program.run()
    assert holds(x, y, 40)
    for n in COUNTS:
        y[...] = -1
        program.run(rows=n)
        assert holds(x, y, n)


@pytest.mark.parametrize("target", ["ascend_npu", "pto"])
def test_packages_take_the_extent_of_an_axis(target: str) -> None:
    x, y = arrays()
    X, Y, rows = Tensor(x), Tensor(y), DenseDyn(40)

    @workload
    def w() -> None:
        for i in P(ceildiv(rows, 4)):
            block(i, X, Y, rows)
    program = w().compile(target=target)
    assert [symbol.name for symbol in program.plan.symbols] == ["rows"]


def test_fixed_axes_count_with_numbers() -> None:
    rows = Dense[21]()
    assert (rows.size, ceildiv(rows, 4), rows // 4, 3 * rows, rows % 4, rows / 2, rows > 4) == (21, 6, 5, 63, 1, 10.5, True)
    assert (rows + rows, 4 - rows, rows - Dense[1]()) == (42, -17, 20)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_axes_have_a_size(target: str) -> None:
    two, n = Dense[2](), Symbol("n")
    tokens = Ragged(two, np.array([5, 2]))
    routing = Sparse(two, np.array([0, 3, 4]), np.array([1, 2, 3, 0]))
    Y = Tensor(np.zeros((6, 1), np.int64))
    named = DenseDyn(n)

    @workload
    def w() -> None:
        for b in P(two):
            put[b](tokens[b].size * 10, Y[b:b + 1])
            put[b](routing[b].size + tokens[b] // 2, Y[b + 2:b + 3])
        put(named * 2, Y[4:5])
        put(named, Y[5:6])
    w().compile(target=target).run(n=9)
    assert Y.data is not None and Y.data[:, 0].tolist() == [50, 20, 3 + 2, 1 + 1, 18, 9]


def test_the_name_of_an_axis_is_known_where_no_loop_runs_over_it() -> None:
    x, y = arrays()
    X, Y, rows = Tensor(x), Tensor(y), DenseDyn(40)

    @workload
    def w() -> None:
        for i in P(rows.size // 4):
            block(i, X, Y, 40)
    made = w()
    assert "rows // 4" in str(made) and Workload.from_json(made.to_json()) == made
    with pytest.raises(PtoError) as caught:
        made.compile(target="interp").run(row=4)
    assert "rows" in str(caught.value.help)


def test_an_axis_is_no_index() -> None:
    X, rows = Tensor(np.zeros((4, 8), np.float32)), DenseDyn(4)
    for axis in (rows, Dense[2]()):
        with pytest.raises(PtoError, match="an axis is no index") as caught:
            X[axis]
        assert caught.value.code == "T302"




# -- symbols in shapes -------------------------------------------------------------------------------------------------
def doubled(x: Tensor, y: Tensor, n: Any) -> Callable[[], Workload]:
    @workload
    def w() -> None:
        for i in P(ceildiv(n, 4)):
            twice[i](x[i * 4:].clip(4, 8), y[i * 4:].clip(4, 8))
    return w


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wraps", [False, True])
def test_a_tensor_is_as_long_as_its_symbol_says(target: str, wraps: bool) -> None:
    x, y = arrays()
    t = Symbol("t")
    X, Y = (Tensor(array if wraps else None, shape=(t, 8), dtype=F32, name=name) for name, array in (("X", x), ("Y", y)))
    program = doubled(X, Y, t)().compile(target=target)
    given = {} if wraps else {"X": x, "Y": y}
    for n in COUNTS:
        y[...] = -1
        program.run(t=n, **given)
        assert holds(x, y, n)
    with pytest.raises(PtoError) as caught:
        program.run(t=41, **given)
    assert caught.value.code == "R104"
    with pytest.raises(PtoError) as caught:
        program.run(**given)
    assert caught.value.code == "W101"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["symbol", "size", "sum"])
def test_a_run_makes_scratch_as_large_as_its_symbols_say(target: str, kind: str) -> None:
    x, y = arrays()
    X, Y, rows, t = Tensor(x), Tensor(y), DenseDyn(8), Symbol("t")
    n = rows if kind == "size" else t
    middle = Tensor.empty((ceildiv(n, 4) * 4 if kind == "sum" else n, 8), F32)

    @workload
    def w() -> None:
        for i in P(ceildiv(n, 4)):
            block(i, X, middle, n)
        for i in P(ceildiv(n, 4)):
            block(i, middle, Y, n)
    program = w().compile(target=target)
    for count in (32, *COUNTS, 1):
        y[...] = -1
        program.run(**{"rows" if kind == "size" else "t": count})
        assert holds(x, y, count, 4)
    if kind == "size":
        y[...] = -1
        program.run()
        assert holds(x, y, 8, 4)
    else:
        for unbound, code in ({}, "W101"), ({"t": -5}, "R102"):
            with pytest.raises(PtoError) as caught:
                program.run(**unbound)
            assert caught.value.code == code


@pytest.mark.parametrize("target", TARGETS)
def test_two_extents_and_the_last_one_may_be_symbols(target: str) -> None:
    n, m = Symbol("n"), Symbol("m")
    X, Y = Tensor(shape=(n, m), dtype=F32, name="X"), Tensor(shape=(n, m), dtype=F32, name="Y")
    middle = Tensor.empty((n, m), F32)

    @workload
    def w() -> None:
        for i, j in P(ceildiv(n, 4), ceildiv(m, 8)):
            twice[i, j](X[i * 4:, j * 8:].clip(4, 8), middle[i * 4:, j * 8:].clip(4, 8))
            twice[i, j](middle[i * 4:, j * 8:].clip(4, 8), Y[i * 4:, j * 8:].clip(4, 8))
    program = w().compile(target=target)
    for rows, columns in (0, 5), (5, 0), (1, 1), (7, 19), (8, 16):
        x, y = np.arange(800, dtype=np.float32).reshape(20, 40), np.full((20, 40), -1, np.float32)
        program.run(n=rows, m=columns, X=x, Y=y)
        assert (y[:rows, :columns] == 4 * x[:rows, :columns]).all()
        assert (y[rows:] == -1).all() and (y[:, columns:] == -1).all()


@pytest.mark.parametrize("target", TARGETS)
def test_tables_and_lengths_may_have_symbols_for_sizes(target: str) -> None:
    b = Symbol("b")
    lens, table = Tensor(shape=(b,), dtype=I64, name="lens"), Tensor(shape=(b, 2), dtype=I64, name="table")
    Y = Tensor(shape=(b, 1), dtype=I64, name="Y")
    tokens = Ragged(DenseDyn(b), lens)

    @workload
    def w() -> None:
        for i in P(DenseDyn(b)):
            put[i](lens[i] * 100 + table[i, 1], Y[i:i + 1])
            for j in P.seq(tokens[i]):
                put[i, j](lens[i] * 100 + table[i, 0] + j, Y[i:i + 1])
    program = w().compile(target=target)
    for n in 3, 1, 0:
        y = np.zeros((4, 1), np.int64)
        program.run(b=n, lens=np.array([2, 0, 1]), table=np.arange(6).reshape(3, 2), Y=y)
        assert y[:, 0].tolist() == [*[201, 3, 104][:n], *[0] * (4 - n)]


def test_a_symbolic_shape_shows_and_survives() -> None:
    t = Symbol("t")
    X, Y = Tensor(shape=(t, 8), dtype=F32, name="X"), Tensor.empty((t, 8), F32, name="Y")
    assert (repr(X) == "Tensor(X[:t], shape=(t, 8), f32)" and repr(X.shape[0]) == "Symbol(t)") or repr(X.shape[0]) == "Symbolic(t)"
    X.rename("other")
    assert (X.name, X.rank, X.T.rank) == ("X", 2, 2)
    for again in copy.copy(X), copy.deepcopy(X), pickle.loads(pickle.dumps(X)):
        assert repr(again) == repr(X)
    made = doubled(X, Y, t)()
    assert Workload.from_json(made.to_json()) == made
    tasks = made.tasks(t=9, X=np.zeros((9, 8), np.float32))
    assert len(tasks) == 3


def test_a_saved_program_keeps_its_symbols(tmp_path: Path) -> None:
    x, y = arrays()
    t = Symbol("t")
    X, Y = Tensor(shape=(t, 8), dtype=F32, name="X"), Tensor(shape=(t, 8), dtype=F32, name="Y")
    doubled(X, Y, t)().compile().save(tmp_path / "saved")
    load(tmp_path / "saved").run(X=x, Y=y, t=33)
    assert holds(x, y, 33)


@pytest.mark.parametrize("target", ["ascend_npu", "pto"])
def test_packages_state_the_sizes_of_their_tensors(target: str) -> None:
    t = Symbol("t")
    X, Y = Tensor(shape=(t, 8), dtype=F32, name="X"), Tensor(shape=(40, 8), dtype=F32, name="Y")
    with pytest.raises(PtoError, match="only a run knows the size of `X`") as caught:
        doubled(X, Y, t)().compile(target=target)
    assert caught.value.code == "C109" and "X[:n]" in str(caught.value.help)
    rows = DenseDyn(40)
    sized = Tensor(shape=(rows, 8), dtype=F32, name="X")
    assert doubled(sized, Y, rows)().compile(target=target).manifest is not None


@pytest.mark.parametrize("shape, code", [((Symbol("f", F32), 8), "D101"), ((1.5, 8), "D101"), (("t", 8), "D101"), (Symbol("t"), "D101"),
                                         (DenseDyn(3), "D101"), ((Symbol("t"), -8), "D101")])
def test_other_extents_are_refused(shape: object, code: str) -> None:
    with pytest.raises(PtoError) as caught:
        Tensor(shape=shape, dtype=F32)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_an_extent_in_front_of_all_bodies_is_no_element_and_no_loop_variable() -> None:
    lens = Tensor(np.array([3]))

    @workload
    def w() -> None:
        for i in P(4):
            Tensor(shape=(i, 8), dtype=F32)
    with pytest.raises(PtoError, match="no extent of a tensor") as caught:
        w()
    assert caught.value.code == "D101"
    with pytest.raises(PtoError, match="no extent of a tensor"):
        Tensor.empty((lens[0], 8), F32)


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_what_only_a_guard_asks_for_is_part_of_the_program(target: str) -> None:
    """A step behind a slice may leave its end to the guard alone: a table or a Symbol that nothing else names."""
    @kernel
    def add_to(x: In[Tile[1, 4, I64]], y: InOut[Tile[1, 4, I64]]) -> None:
        pto.store(y, y + x)

    x, y = Tensor(np.arange(48).reshape(12, 4)), Tensor(np.zeros((3, 4), np.int64))
    ends, n = Tensor(np.array([1, 3, 2]), name="ends"), Symbol("n")

    @workload
    def first_rows() -> None:
        for b in P(3):
            add_to[b](x[:ends[b]][0:1], y[b:b + 1])
            add_to[b](x[:n][2:3], y[b:b + 1])

    program = first_rows().compile(target)
    program.run(n=3)
    assert y.data is not None and y.data[:, 0].tolist() == [8, 8, 8]
    with pytest.raises(PtoError, match="R104"):
        program.run(n=2)
    with pytest.raises(PtoError, match="R104"):
        program.run(n=3, ends=np.array([1, 0, 2]))
