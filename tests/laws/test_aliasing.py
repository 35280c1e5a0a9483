"""Parameters of one task that share memory, in every pair of roles: views of one tensor, two tensors on one array, arrays bound anew.

Two that are written are refused before anything is touched, exactly where they share an element. Else both targets leave what the task
means: what it reads is what was there before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import DType, In, InOut, Kernel, Out, P, PtoError, Symbol, Tensor, Tile, Workload, kernel, pto, workload
from tests.tolerances import Array, assert_identical

I64 = DType.I64
SIDE = 9
SHAPES = ((1, 1), (2, 3), (3, 2), (1, 4), (4, 4))
WAYS = ("one tensor", "two tensors", "bound")


@dataclass(frozen=True)
class Form:
    """A kernel: the roles of its parameters, what it does, and what that means for the values that they had before."""

    roles: str       # a letter each: r an In, w an Out, u an InOut
    made: Callable[[Any], Kernel]
    means: Callable[..., dict[str, Array]]


def _late(tile: Any) -> Kernel:
    @kernel
    def late(a: In[tile], b: InOut[tile], c: Out[tile]) -> None:
        pto.store(b, b * 3 + a)
        pto.store(c, a * 5 - pto.rowmax(a))
    return late


def _early(tile: Any) -> Kernel:
    @kernel
    def early(a: InOut[tile], b: In[tile], c: InOut[tile]) -> None:
        left, right = a + b * 2, pto.rowsum(b) - c
        pto.store(c, left * 7)
        pto.store(a, right)
    return early


def _loaded(tile: Any) -> Kernel:
    rows, cols = tile.shape

    @kernel
    def loaded(a: In[Tensor], b: Out[tile], c: InOut[Tensor]) -> None:
        x = pto.load(a, (0, 0), shape=(rows, cols))
        y = pto.load(c, (0, 0), shape=(rows, cols))
        pto.store(b, x * 2 + y)
        pto.store(c, pto.rowmax(x) - y, (0, 0))
    return loaded


FORMS = {
    "late": Form("ruw", _late, lambda a, b, c: {"b": b * 3 + a, "c": a * 5 - a.max(1, keepdims=True)}),
    "early": Form("uru", _early, lambda a, b, c: {"c": (a + b * 2) * 7, "a": b.sum(1, keepdims=True) - c}),
    "loaded": Form("rwu", _loaded, lambda a, b, c: {"b": a * 2 + c, "c": a.max(1, keepdims=True) - c}),
}


@dataclass(frozen=True)
class Spot:
    """Where a parameter lies in the square: first row and column, steps between rows and columns, turned or not."""

    row: int
    col: int
    steps: tuple[int, int] = (1, 1)
    T: bool = False

    def of(self, square: Any, shape: tuple[int, int], shift: Any = 0) -> Any:
        """Return the view of an array, or of a Tensor."""
        rows, cols = shape[::-1] if self.T else shape
        view = square[self.row + shift:self.row + shift + rows * self.steps[0]:self.steps[0],
                      self.col:self.col + cols * self.steps[1]:self.steps[1]]
        return view.T if self.T else view


@dataclass(frozen=True)
class Case:
    """A kernel on three spots of one square of memory, in tiles of one shape, and how the three are named."""

    form: str
    shape: tuple[int, int]
    spots: tuple[Spot, Spot, Spot]
    way: str


def workload_of(case: Case, names: tuple[Tensor, ...]) -> Workload:
    """Return a workload of one task; `names`: the tensors of its parameters."""
    run = FORMS[case.form].made(Tile[case.shape[0], case.shape[1], I64])
    views = [name if case.way == "bound" else spot.of(name, case.shape) for spot, name in zip(case.spots, names, strict=True)]

    @workload
    def one() -> None:
        run(*views)
    return one()


def clashes(case: Case) -> bool:
    """Tell whether two parameters that are written have an element in common: their numbers in the square say."""
    square = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    held = [set(spot.of(square, case.shape).ravel().tolist()) for spot, role in zip(case.spots, FORMS[case.form].roles, strict=True)
            if role != "r"]
    return any(held[i] & held[j] for i in range(len(held)) for j in range(i))


def check(case: Case) -> None:
    """Raise AssertionError unless the task is refused where its outputs overlap, and else does what it means on both targets."""
    start = np.random.default_rng(5).integers(-50, 50, (SIDE, SIDE))
    expected = start.copy()
    given = [spot.of(expected, case.shape) for spot in case.spots]
    for name, value in FORMS[case.form].means(*(array.copy() for array in given)).items():
        given["abc".index(name)][...] = value
    square = start.copy()
    names: tuple[Tensor, ...] = (Tensor(square, name="S"),) * 3
    bound: dict[str, Array] = {}
    if case.way == "two tensors":
        names = (Tensor(square, name="S"), Tensor(square[:], name="T"), Tensor(square[:], name="U"))
    elif case.way == "bound":      # declared apart, and bound on one square
        apart = [spot.of(start.copy(), case.shape) for spot in case.spots]
        names = tuple(Tensor(array, name=name) for array, name in zip(apart, "STU", strict=True))
        bound = {name: spot.of(square, case.shape) for spot, name in zip(case.spots, "STU", strict=True)}
    made = workload_of(case, names)
    for target in ("interp", "cpu_sim"):
        square[...] = start
        if clashes(case):
            with pytest.raises(PtoError) as caught:
                made.compile(target=target).run(**bound)
            assert caught.value.code == "W205" and caught.value.span is not None, (target, case)
            assert_identical(square, start, (target, case))
        else:
            made.compile(target=target).run(**bound)
            assert_identical(square, expected, (target, case))


@st.composite
def cases(draw: Callable[..., Any]) -> Case:
    """Draw a case; spots lie close to one another, so that many share elements."""
    shape = draw(st.sampled_from(SHAPES))

    def spot() -> Spot:
        turned, steps = draw(st.booleans()), draw(st.sampled_from(((1, 1), (1, 1), (2, 1), (1, 2), (2, 2))))
        rows, cols = shape[::-1] if turned else shape
        row, col = (draw(st.integers(0, min(3, SIDE - extent * step))) for extent, step in zip((rows, cols), steps, strict=True))
        return Spot(row, col, steps, turned)
    form = draw(st.sampled_from(sorted(FORMS)))
    spots = (spot(), spot(), spot())
    if draw(st.booleans()):        # the same spot for two of them
        i, j = draw(st.sampled_from(((0, 1), (0, 2), (1, 2))))
        spots = tuple(spots[i] if k == j else one for k, one in enumerate(spots))  # type: ignore[assignment]
    return Case(form, shape, spots, draw(st.sampled_from(WAYS)))


@pytest.mark.slow
@given(cases())
@settings(max_examples=30)
def test_parameters_that_share_memory_in_many_ways(case: Case) -> None:
    check(case)


OVER, UNDER, APART, ODD, EVEN = Spot(0, 0), Spot(1, 0), Spot(5, 4), Spot(0, 1, (1, 2)), Spot(0, 0, (1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("spots", [(APART, OVER, UNDER), (OVER, OVER, APART), (OVER, APART, UNDER), (APART, ODD, EVEN),
                                   (OVER, APART, OVER)],
                         ids=["outputs overlap", "read and updated", "read and written", "outputs interlock", "read in place"])
def test_pairs_of_parameters(spots: tuple[Spot, Spot, Spot], way: str) -> None:
    check(Case("late", (2, 3), spots, way))


# ---- what depends on the run ----

def test_outputs_that_overlap_for_one_number_are_refused_before_anything_is_touched() -> None:
    data, n = np.zeros((9, 2), np.int64), Symbol("n")
    square = Tensor(data, name="S")
    row = Tile[1, 2, I64]

    @kernel
    def both(y: Out[row], z: Out[row]) -> None:
        pto.store(y, pto.full((1, 2), 1, I64))
        pto.store(z, pto.full((1, 2), 2, I64))

    @workload
    def rows() -> None:
        for i in P.seq(4):
            both[i](y=square[i], z=square[n - i])

    for target in ("interp", "cpu_sim"):
        program = rows().compile(target=target)
        program.run(n=7)                          # 7 - i is never i
        assert data[:, 0].tolist() == [1, 1, 1, 1, 2, 2, 2, 2, 0]
        data[...] = 0
        with pytest.raises(PtoError) as caught:
            program.run(n=6)                      # i = 3
        assert (caught.value.code, "task both[i=3]" in caught.value.message) == ("W205", True)
        assert not data.any()
