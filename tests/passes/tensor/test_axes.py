# ruff: noqa: F821, UP037      (a string in Tensor[...] is a symbol)
"""The axes of statements by hand: which dimensions are one axis, what operations ask of it, and along which axes tasks may be cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, Tensor, jit, tt
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.passes.tensor.axes import Axes, Crooked, defined_by, statements_of

F32, I32 = DType.F32, DType.I32


def described(body: Callable[..., Any]) -> str:
    """Return the dimensions of each value, by letters of their axes; the roles of axes; and the axes that tasks may be cut along."""
    function = jit(body).trace()
    items = function.body.items
    statements = tuple(statements_of(items))
    try:
        axes = Axes(statements, frozenset(defined_by(items)))
    except Crooked:
        return "crooked"
    letters: dict[int, str] = {}

    def shown(dims: tuple[int | None, ...]) -> str:
        return "".join("1" if dim is None else letters.setdefault(dim, "abcdefghijkl"[len(letters)]) for dim in dims)

    parts = [" ".join([*(f"{view.array.name}:{shown(axes.of_view(view))}" for view in one.views),
                       *(f"{array.name}={shown(axes.of_array(array))}" for array in one.defines)]) for one in statements]
    asked = [f"{letter} {'+'.join(sorted(role.value for role in axes.roles(axis)))}"
             for axis, letter in letters.items() if axes.roles(axis)]
    extents = " ".join(f"{letter}={print_scalar(axes.extent(axis))}" for axis, letter in letters.items())
    return " | ".join([*parts, ", ".join(asked) or "free", extents, "cut " + "".join(letters[axis] for axis in axes.every)]) + (
        " | turned" if axes.turned else "")


def elementwise(x: Tensor["t", 8, F32], g: Tensor[8, F32]) -> Any:
    return np.exp(x) * g


def sums(x: Tensor["t", 4, 8, F32]) -> Any:
    return x.sum(axis=-1), x.sum(axis=-2)


def product(a: Tensor["b", "m", 8, F32], w: Tensor["b", 8, 16, F32]) -> Any:
    return np.exp(a) @ w


def turned_product(a: Tensor["m", 8, F32]) -> Any:
    e = np.exp(a)
    return e.T @ a


def diagonal(a: Tensor["m", F32]) -> Any:
    e = np.exp(a)
    return e[:, None] * e[None, :]


def ordered(x: Tensor["t", 8, F32]) -> Any:
    return np.argsort(np.exp(x))


def halves(x: Tensor["t", 8, F32]) -> Any:
    e = np.exp(x)
    return e[:, :4] + e[:, 4:] + e[:, :1]


def row(x: Tensor["t", 8, F32]) -> Any:
    e = np.exp(x)
    return e[:, 0] * 2


def moved(x: Tensor["t", "n", F32], i: Tensor[2, I32]) -> Any:
    e = np.exp(x)
    return e[i[0]:].sum(axis=0)


def taken(x: Tensor["rows", 8, F32], table: Tensor["t", 2, I32]) -> Any:
    return np.exp(x[table])


def put(x: Tensor["t", 8, F32], table: Injective[Tensor["t", I32]], y: InOut[Tensor["rows", 8, F32]]) -> None:
    y[table] = np.exp(x)


def ones_put(table: Injective[Tensor["t", I32]], y: InOut[Tensor["rows", 8, F32]]) -> None:
    y[table] = 1.0


def filled(x: Tensor["t", 8, F32], y: InOut[Tensor["t", 8, F32]]) -> None:
    y[:] = 1.0
    y[:] = x


def places(x: Tensor["t", 2, I32]) -> Any:
    return tt.rows_of(x, 4).sizes


def scattered(x: Tensor["t", 8, F32], table: Tensor["t", I32], y: InOut[Tensor["rows", 8, F32]]) -> None:
    np.add.at(y, table, np.exp(x))


def bounded(x: Tensor["t", 8, F32], w: Tensor[8, 8, F32]) -> Any:
    tt.assume(x.shape[0] == 8)
    return np.exp(x) + w


def kept(x: Tensor["t", 8, F32]) -> Any:
    state = tt.zeros((x.shape[0], 1))
    state[:] = np.max(x, axis=1, keepdims=True)
    return state, np.max(state, axis=0, keepdims=True)


def split(x: Tensor["t", 8, F32]) -> Any:
    return np.exp(x.reshape(x.shape[0], 2, 4).swapaxes(0, 1))


CASES: list[tuple[Callable[..., Any], str]] = [
    (elementwise, "x:ab out.exp=ab | out.exp:ab g:b out=ab | free | a=t b=8 | cut ab"),
    (sums, "x:abc out[0]=ab1 | x:abc out[1]=a1c | b summed, c summed | a=t b=4 c=8 | cut abc"),
    (product, "a:abc out.exp=abc | out.exp:abc w:acd out=abd | c summed | a=b b=m c=8 d=16 | cut abcd"),
    (turned_product, "a:ab e=ab | e:ba a:ab out=bb | a summed | a=m b=8 | cut ab | turned"),
    (diagonal, "a:a e=a | e:a1 e:1a out=aa | free | a=m | cut a | turned"),
    (ordered, "x:ab out.exp=ab | out.exp:ab out=ac | b whole, c whole | a=t b=8 c=8 | cut abc"),
    (halves, "x:ab e=ab | e:ac e:ac out.add=ac | out.add:ac e:a1 out=ac | b whole, c whole | a=t b=8 c=4 | cut abc"),
    (row, "x:ab e=ab | e:a out=a | b whole | a=t b=8 | cut ab"),
    (moved, "crooked"),
    (taken, "x:ab table:cd out.take=cdb | out.take:cdb out=cdb | a whole | a=rows b=8 c=t d=2 | cut bcd"),
    (put, "x:ab y.exp=ab | y.exp:ab table:a y:cb | c whole | a=t b=8 c=rows | cut ab"),
    (scattered, "x:ab exp=ab | exp:ab table:a y:cb y:cb | c whole | a=t b=8 c=rows | cut ab"),
    (ones_put, "table:a y:bc | b whole | a=t b=rows c=8 | cut ac"),
    (filled, "y:ab | x:ab y:ab | free | a=t b=8 | cut ab"),
    (bounded, "x:ab out.exp=ab | out.exp:ab w:ab out=ab | free | a=8 b=8 | cut ab"),
    (kept, "state=a1 | x:ab state.max=a1 | state.max:a1 state:a1 | state:a1 out[1]=11 | a summed, b summed | a=t b=8 | cut ab"),
    (places, "x:ab out.rows_of=c out.rows_of.starts=d | out.rows_of.starts:e out.rows_of.starts:e out=e | "
     "a whole, b whole, c whole, d whole, e whole | a=t b=2 c=t * 2 d=5 e=4 | cut abcde"),
    (split, "x:abc out=abc | free | a=2 b=t c=4 | cut abc"),
]


@pytest.mark.parametrize(("body", "axes"), CASES, ids=[case[0].__name__ for case in CASES])
def test_statements_have_these_axes(body: Callable[..., Any], axes: str) -> None:
    assert described(body) == axes
