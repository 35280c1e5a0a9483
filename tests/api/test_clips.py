"""A tile may be bounded by a scalar of the run: what lies behind the bound is neither read nor written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import (
    DenseDyn,
    DType,
    In,
    Out,
    P,
    PtoError,
    Symbol,
    Tensor,
    Tile,
    Workload,
    ceildiv,
    kernel,
    maximum,
    minimum,
    pto,
    workload,
)

F32 = DType.F32
TARGETS = ["interp", "cpu_sim"]
T = Symbol("t")
Spelling = Callable[[Tensor, Any, Any], Any]     # a tensor, the block and the bound → a view


@kernel
def twice(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def transposed(x: In[Tile[8, 4, F32]], y: Out[Tile[8, 4, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def in_pieces(x: In[Tensor], y: Out[Tensor]) -> None:
    for row in pto.range(x.shape[0]):
        pto.store(y, pto.load(x, (row, 0), shape=(1, 8)) * 2, (row, 0))


SPELLINGS: dict[str, Spelling] = {
    "minimum": lambda x, i, t: x[i * 4:].clip(minimum(4, t - i * 4), 8),
    "number last": lambda x, i, t: x[i * 4:].clip(minimum(t - i * 4, 4), 8),
    "clamped by hand": lambda x, i, t: x[i * 4:].clip(maximum(minimum(t - i * 4, 4), 0), 8),
    "np.minimum": lambda x, i, t: x[i * 4:].clip(np.minimum(4, t - i * 4), 8),
    "columns as they are": lambda x, i, t: x[i * 4:].clip(minimum(4, t - i * 4), None),
    "bounded, then cut": lambda x, i, t: x.clip(t, 8)[i * 4:].clip(4, 8),
    "cut, then bounded": lambda x, i, t: x[:t][i * 4:].clip(4, 8),
    "one slice": lambda x, i, t: x[i * 4:minimum(i * 4 + 4, t)],
    "a slice to the bound": lambda x, i, t: x[i * 4:t].clip(4, 8),
    "clip of clip": lambda x, i, t: x[i * 4:].clip(4, 8).clip(t - i * 4, 8),
}
REACH_BEHIND = {"minimum", "number last", "clamped by hand", "np.minimum", "columns as they are", "clip of clip"}


def doubled(view: Spelling, x: Tensor, y: Tensor, blocks: Any, bound: Any = T, of: Any = twice) -> Workload:
    @workload
    def program() -> None:
        for i in P(blocks):
            of[i](view(x, i, bound), view(y, i, bound))
    return program()


def arrays(rows: int = 10, cols: int = 8) -> tuple[Tensor, Tensor]:
    return (Tensor(np.arange(rows * cols, dtype=np.float32).reshape(rows, cols) + 1),
            Tensor(np.full((rows, cols), np.nan, np.float32)))


def check_rows(program: Any, x: Tensor, y: Tensor, n: int, **bindings: int) -> None:
    """Run a program; check that `n` rows are computed and the others untouched, whatever lies behind them in x."""
    assert x.data is not None and y.data is not None
    y.data[...] = np.nan
    kept = x.data.copy()
    x.data[n:] = np.nan
    program.run(**bindings)
    x.data[...] = kept
    np.testing.assert_array_equal(y.data[:n], 2 * x.data[:n])
    assert np.isnan(y.data[n:]).all(), "rows behind the bound were written"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.sampled(6)
def test_rows_behind_a_symbol_are_untouched(spelling: str, target: str) -> None:
    x, y = arrays()
    program = doubled(SPELLINGS[spelling], x, y, ceildiv(T, 4)).compile(target=target)
    for t in (0, 1, 3, 4, 5, 9, 10):
        check_rows(program, x, y, t, t=t)


@pytest.mark.parametrize("target", TARGETS)
def test_blocks_behind_the_bound_are_empty(target: str) -> None:
    x, y = arrays()
    for spelling in sorted(REACH_BEHIND):
        program = doubled(SPELLINGS[spelling], x, y, 3).compile(target=target)
        for t in (-3, 0, 1, 4, 5, 12, 100):
            check_rows(program, x, y, min(max(t, 0), 10), t=t)


@pytest.mark.parametrize("target", TARGETS)
def test_every_block_may_be_short_by_an_element_of_a_tensor(target: str) -> None:
    x, y = arrays(12)
    assert x.data is not None and y.data is not None
    lens = Tensor(np.array([3, 0, 9], np.uint64))

    @workload
    def program() -> None:
        for b in P(3):
            twice[b](x[b * 4:].clip(minimum(lens[b], 4), 8), y[b * 4:].clip(minimum(lens[b], 4), 8))
    program().compile(target=target).run()
    kept = np.isin(np.arange(12), [0, 1, 2, 8, 9, 10, 11])
    np.testing.assert_array_equal(y.data[kept], 2 * x.data[kept])
    assert np.isnan(y.data[~kept]).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["axis", "columns", "transposed", "region", "arrays of a run"])
def test_axes_columns_and_regions_are_bounded_too(kind: str, target: str) -> None:
    x, y = arrays(8, 8)
    assert x.data is not None and y.data is not None
    rows = DenseDyn(8)
    if kind == "axis":
        program = doubled(lambda a, i, n: a[i * 4:].clip(minimum(4, rows - i * 4), 8), x, y, 2).compile(target=target)
        for n in (0, 3, 8):
            check_rows(program, x, y, n, rows=n)
    elif kind == "region":
        program = doubled(lambda a, i, n: a[i * 4:].clip(minimum(4, n - i * 4), 8), x, y, 2, of=in_pieces).compile(target=target)
        for n in (0, 3, 5, 8):
            check_rows(program, x, y, n, t=n)
    elif kind == "arrays of a run":
        program = doubled(SPELLINGS["columns as they are"], x, y, ceildiv(T, 4)).compile(target=target)
        small, large = np.full((5, 8), np.nan, np.float32), np.full((12, 8), np.nan, np.float32)
        program.run(t=7, x=x.data[:5], y=small)
        np.testing.assert_array_equal(small, 2 * x.data[:5])
        program.run(t=11, x=np.ones((12, 8), np.float32), y=large)
        assert (large[:11] == 2).all() and np.isnan(large[11:]).all()
    elif kind == "columns":
        program = doubled(lambda a, i, n: a[i * 4:, 4:].clip(4, minimum(8, n)), x, y, 2).compile(target=target)
        for n in (0, 1, 4, 9):
            y.data[...] = np.nan
            program.run(t=n)
            np.testing.assert_array_equal(y.data[:, 4:4 + n], 2 * x.data[:, 4:4 + n])
            assert np.isnan(y.data[:, 4 + n:]).all() and np.isnan(y.data[:, :4]).all()
    else:
        program = doubled(lambda a, i, n: a[i * 4:].clip(minimum(4, n - i * 4), 8).T, x, y, 2, of=transposed).compile(target=target)
        for n in (0, 1, 4, 7, 8):
            check_rows(program, x, y, n, t=n)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_clips_are_numpys_slices(data: st.DataObject) -> None:
    """Draw chains of slices and clips by numbers and scalars; rows that NumPy keeps are computed, and no other element is touched."""
    rows, cols = data.draw(st.integers(0, 9)), data.draw(st.integers(1, 9))
    x, y = arrays(rows, cols)
    assert x.data is not None and y.data is not None
    bounds = {name: data.draw(st.integers(-2, 10)) for name in ("m", "n")}
    symbols = {name: Symbol(name) for name in bounds}
    base, cuts = np.arange(rows * cols).reshape(rows, cols), list[Callable[[Any], Any]]()
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            start = data.draw(st.integers(0, base.shape[0]))
            base = base[start:]
            cuts.append(lambda view, start=start: view[start:])
        limits, sizes = [], []
        for extent in base.shape:
            name, most = data.draw(st.sampled_from(sorted(bounds))), data.draw(st.integers(1, 9))
            kind = data.draw(st.sampled_from(["number", "none", "scalar", "both"]))
            limits.append({"number": most, "none": None, "scalar": symbols[name], "both": minimum(symbols[name] - 1, most)}[kind])
            size = {"number": most, "none": extent, "scalar": bounds[name], "both": min(bounds[name] - 1, most)}[kind]
            sizes.append(max(size, 0))
        base = base[:sizes[0], :sizes[1]]
        cuts.append(lambda view, limits=tuple(limits): view.clip(*limits))
    cuts.append(lambda view: view.clip(4, 8))
    base = base[:4, :8]

    def view(tensor: Tensor) -> Any:
        made: Any = tensor
        for cut in cuts:
            made = cut(made)
        return made

    @workload
    def program() -> None:
        twice(view(x), view(y))
    compiled = program().compile(target="interp")
    compiled.run(**{name: value for name, value in bounds.items() if name in {symbol.name for symbol in compiled.plan.symbols}})
    expected = np.full(rows * cols, np.nan, np.float32)
    expected[base.ravel()] = 2 * x.data.ravel()[base.ravel()]
    np.testing.assert_array_equal(y.data.ravel(), expected)


@pytest.mark.parametrize("limits", [(), (T,), (T, 8, 1), (0, 8), (minimum(T, 0), 8), (T, 1.5), (Symbol("f", F32), 8), ("t", 8), (True, 8)],
                         ids=str)
def test_other_limits_are_refused(limits: tuple[Any, ...]) -> None:
    with pytest.raises(PtoError) as caught:
        arrays()[0].clip(*limits)
    assert caught.value.code == "T302"


@pytest.mark.parametrize("target", TARGETS)
def test_a_bound_that_no_tile_holds_ends_the_run(target: str) -> None:
    x, y = arrays()
    program = doubled(lambda a, i, t: a.clip(t, 8), x, y, 1).compile(target=target)
    check_rows(program, x, y, 4, t=4)
    with pytest.raises(PtoError, match="does not fit its tile") as caught:
        program.run(t=5)
    assert caught.value.code == "R104"


def test_races_of_bounded_tiles_are_proved() -> None:
    x, y = arrays()
    for spelling in sorted(REACH_BEHIND):
        checks = doubled(SPELLINGS[spelling], x, y, 3).compile(target="interp").checks
        assert [str(line) for line in checks if "races on `y`" in str(line) and str(line).startswith("proved")], spelling
    with pytest.raises(PtoError) as caught:
        doubled(lambda a, i, t: a[i * 3:].clip(minimum(4, t), 8), x, y, 3).compile(target="interp")
    assert caught.value.code == "W201"


def test_a_bounded_view_prints_and_survives() -> None:
    x, y = arrays()
    made = doubled(SPELLINGS["columns as they are"], x, y, 3)
    assert "x[i * 4:][:max(min(t - i * 4, x.shape[0] - i * 4), 0)].clip(4, None)" in str(made)
    assert str(Workload.from_json(made.to_json())) == str(made)
