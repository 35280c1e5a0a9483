"""Bindings: which arrays fit a plan, and which of them share memory."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp import DenseDyn, DType, In, Out, P, Program, PtoError, Scalar, Symbol, Tensor, Tile, kernel, pto, workload
from pto_wsp.run.bound import alias_groups

Array: TypeAlias = "np.ndarray[Any, Any]"
F32 = DType.F32


@st.composite
def views(draw: st.DrawFn, base: Array) -> Array:
    """A part of a buffer, with steps either way."""
    start, stop = sorted((draw(st.integers(0, base.size)), draw(st.integers(0, base.size))))
    step = draw(st.sampled_from([1, 1, 2, 3, -1]))
    return base[start:stop][::step]


@given(st.data())
def test_arrays_whose_bytes_interleave_are_one_group(data: st.DataObject) -> None:
    bases = [np.zeros(24, np.float32) for _ in range(2)]
    arrays = [data.draw(views(bases[data.draw(st.integers(0, 1))])) for _ in range(data.draw(st.integers(0, 6)))]
    groups = alias_groups(arrays)
    assert len(groups) == len(arrays)
    reach = {(a, b): np.may_share_memory(arrays[a], arrays[b]) for a, b in itertools.combinations(range(len(arrays)), 2)}
    joined = {k: {k} for k in range(len(arrays))}
    for (a, b), touching in reach.items():
        if touching and joined[a] is not joined[b]:
            joined[a] |= joined[b]
            for member in joined[a]:
                joined[member] = joined[a]
    for a, b in itertools.combinations(range(len(arrays)), 2):
        assert (groups[a] == groups[b]) == (b in joined[a])


def test_neighbours_in_memory_are_apart() -> None:
    base = np.zeros((2, 8), np.float32)
    assert len(set(alias_groups([base[0], base[1]]))) == 2


def test_columns_that_share_no_byte_may_still_be_one_group() -> None:
    base = np.zeros((4, 8), np.float32)
    assert len(set(alias_groups([base[:, :4], base[:, 4:]]))) == 1


def test_a_transposed_array_reaches_as_far_as_its_original() -> None:
    base = np.zeros((4, 8), np.float32)
    assert len(set(alias_groups([base.T, base[3:], base[::-1, ::-1]]))) == 1


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


@kernel
def fill(n: Scalar[DType.I32], f: Scalar[F32], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, pto.full((1, 4), f, F32) + pto.cast(pto.full((1, 4), n, DType.I32), F32))


def program() -> Program:
    """Rows of X into Y, as many as the table says."""
    X, Y = Tensor(np.ones((3, 4), np.float32), name="X"), Tensor(np.zeros((3, 4), np.float32), name="Y")
    table, rows = Tensor(np.array([2, 1, 0], np.int64), name="table"), DenseDyn(3)

    @workload
    def picked() -> None:
        for r in P(rows):
            copy[r](x=X[table[r]], y=Y[r])
    return picked().compile(target="interp")


READ_ONLY = np.zeros((3, 4), np.float32)
READ_ONLY.flags.writeable = False
SHARED = np.zeros(64, np.float32)


@pytest.mark.parametrize("bindings, code, text", [
    ({"X": np.ones((3, 4))}, "R113", "another dtype"),
    ({"X": np.ones(12, np.float32)}, "R113", "another rank"),
    ({"X": [[1.0]]}, "R113", "no array"),
    ({"X": None}, "R113", "no data"),
    ({"X": np.ones((3, 8), np.float32)[:, ::2]}, "R113", "last dimension is strided"),
    ({"X": np.ones((4, 3), np.float32).T}, "R113", "last dimension is strided"),
    ({"Y": READ_ONLY}, "R113", "read-only"),
    ({"rows": -1}, "R102", "negative"),
    ({"rows": 1.5}, "R102", "another kind"),
    ({"rows": True}, "R102", "another kind"),
    ({"rows": "3"}, "R102", "another kind"),
    ({"rows": 1 << 63}, "R102", "64 bits"),
    ({"rows": 4}, "R104", "outside its tensor"),
    ({"X": np.ones((2, 4), np.float32)}, "R104", "outside its tensor"),
    ({"X": np.ones((3, 5), np.float32)}, "R104", "does not fit its tile"),
    ({"table": np.array([0, 3, 0])}, "R104", "outside its tensor"),
    ({"table": np.array([0, -1, 0])}, "R104", "outside its tensor"),
    ({"table": np.array([0])}, "R104", "outside its tensor"),
    ({"table": SHARED.view(np.int64)[:3], "Y": SHARED[:12].reshape(3, 4)}, "W104", "shares memory"),
], ids=str)
def test_what_does_not_fit_is_refused(bindings: dict[str, object], code: str, text: str) -> None:
    with pytest.raises(PtoError) as caught:
        program().run(**bindings)
    assert caught.value.code == code and text in caught.value.message


@pytest.mark.parametrize("bindings", [
    {"X": READ_ONLY}, {"X": np.ones((6, 9), np.float32)[::2, 2:6]}, {"X": np.ones((3, 4), np.float32)[::-1]},
    {"table": np.array([0, 0, 0, 7])}, {"rows": np.int32(2)}, {"X": np.broadcast_to(np.ones(4, np.float32), (3, 4))},
], ids=str)
def test_what_fits_is_bound(bindings: dict[str, object]) -> None:
    program().run(**bindings)


def test_backwards_rows_are_read_backwards() -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)
    program().run(X=x[::-1], Y=y, table=np.arange(3))
    np.testing.assert_array_equal(y, x[::-1])


def test_all_that_does_not_fit_is_reported_together() -> None:
    with pytest.raises(PtoError) as caught:
        program().run(X=np.ones(3), Y=READ_ONLY, rows=-1)
    assert (str(caught.value).count("error[R113]"), str(caught.value).count("error[R102]")) == (2, 1)


@pytest.mark.parametrize("n, f, code", [(2, 1.5, None), (np.int16(2), np.float32(1.5), None), (2, 1, None), (2.0, 1.5, "R102"),
                                        (2, "x", "R102"), (None, 1.0, "W101")])
def test_symbols_take_values_of_their_kind(n: object, f: object, code: str | None) -> None:
    y = np.zeros((1, 4), np.float32)
    Y, count, factor = Tensor(y), Symbol("count"), Symbol("factor")

    @workload
    def filled() -> None:
        fill(count, factor, Y)
    made = filled().compile(target="interp")
    if code is None:
        made.run(count=n, factor=f)
        assert (y == float(n) + float(f)).all()  # type: ignore[arg-type]
        return
    with pytest.raises(PtoError) as caught:
        made.run(factor=f, **({} if n is None else {"count": n}))
    assert caught.value.code == code
