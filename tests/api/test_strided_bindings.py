"""A tensor declared contiguous takes arrays with gaps, and with rows in falling order, in every form of view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import Channel, DType, In, Out, P, PtoError, Symbol, Tensor, Tile, consume, kernel, pto, receive, send, workload

F32 = DType.F32
TARGETS = ["interp", "cpu_sim"]


@kernel
def wide(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def tall(x: In[Tile[8, 4, F32]], y: Out[Tile[8, 4, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def region(x: In[Tensor], y: Out[Tensor]) -> None:
    for row in pto.range(x.shape[0]):
        pto.store(y, pto.load(x, (row, 0), shape=(1, 8)) * 2, (row, 0))


FORMS: dict[str, tuple[Any, Callable[[Tensor, Any], Any]]] = {
    "slice": (wide, lambda a, b: a[b * 4:b * 4 + 4]), "clip": (wide, lambda a, b: a[b * 4:].clip(4, 8)),
    "transposed": (tall, lambda a, b: a.T[:, b * 4:b * 4 + 4]), "reshaped": (wide, lambda a, b: a.reshape(2, 4, 8)[b]),
    "every other row": (wide, lambda a, b: a[b::2]), "clipped, transposed": (tall, lambda a, b: a[b * 4:].clip(4, 8).T),
    "region": (region, lambda a, b: a[b * 4:b * 4 + 4]),
}
STRIDED: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "gaps behind rows": lambda base: base[:8, 8:16], "rows apart": lambda base: base[:16:2, :8],
    "falling": lambda base: base[7::-1, :8], "falling, apart": lambda base: base[15::-2, 5:13],
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_view_takes_strided_rows(form: str, target: str) -> None:
    kernel_of, view = FORMS[form]
    x, y = Tensor(np.zeros((8, 8), np.float32), name="x"), Tensor(np.zeros((8, 8), np.float32), name="y")

    @workload
    def program() -> None:
        for b in P(2):
            kernel_of[b](view(x, b), view(y, b))
    compiled = program().compile(target=target)
    for part in STRIDED.values():
        bases = [np.full((16, 24), np.nan, np.float32) for _ in "xy"]
        given_x, given_y = map(part, bases)
        given_x[...] = np.arange(64).reshape(8, 8)
        compiled.run(x=given_x, y=given_y)
        np.testing.assert_array_equal(given_y, 2 * given_x)
        given_y[...] = np.nan
        assert np.isnan(bases[1]).all(), "elements between the rows were written"


@pytest.mark.parametrize("target", TARGETS)
def test_rings_and_tables_take_strided_rows(target: str) -> None:
    n, full, free = Symbol("n"), Channel("full", 4), Channel("free", 2)
    x, y, ring = (Tensor(np.zeros((rows, 8), np.float32), name=name) for name, rows in (("x", 24), ("y", 24), ("ring", 8)))
    order = Tensor(np.zeros((6, 2), np.int64), name="order")

    @workload
    def program() -> None:
        with P.pipe():
            for i in P.seq(n):
                send(free, i)
                send(full, wide[i](x[order[i, 1] * 4:order[i, 1] * 4 + 4], ring[i % 2 * 4:i % 2 * 4 + 4]))
            with consume(full) as i:
                wide[i](ring[i % 2 * 4:i % 2 * 4 + 4], y[i * 4:i * 4 + 4])
                receive(free)
    compiled = program().compile(target=target)
    places = np.random.default_rng(3).permutation(6)
    table = np.full((12, 5), -1)
    table[::2, 3] = places
    room = np.full((8, 20), np.nan, np.float32)
    data = np.arange(24 * 16, dtype=np.float32).reshape(24, 16)
    made = np.zeros((48, 8), np.float32)
    compiled.run(n=6, x=data[:, 8:], ring=room[:, 4:12], order=table[::2, 2:4], y=made[::2])
    np.testing.assert_array_equal(made[::2].reshape(6, 4, 8), 4 * data[:, 8:].reshape(6, 4, 8)[places])
    assert not made[1::2].any() and np.isnan(room[:, :4]).all() and np.isnan(room[:, 12:]).all()


@pytest.mark.parametrize("array", [np.zeros((8, 16), np.float32)[:, ::2], np.zeros((8, 8), np.float32, order="F"),
                                   np.zeros((8, 8), np.float32)[:, ::-1]], ids=["apart", "Fortran", "falling"])
def test_elements_of_a_row_lie_side_by_side(array: np.ndarray[Any, Any]) -> None:
    x, y = Tensor(np.zeros((8, 8), np.float32), name="x"), Tensor(np.zeros((8, 8), np.float32), name="y")

    @workload
    def program() -> None:
        for b in P(2):
            wide[b](x[b * 4:b * 4 + 4], y[b * 4:b * 4 + 4])
    with pytest.raises(PtoError, match="last dimension is strided") as caught:
        program().compile(target="interp").run(x=array)
    assert caught.value.code == "R113"
