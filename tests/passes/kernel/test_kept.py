"""The rows and columns of each value that stores, prints and branches depend on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pto_wsp import DType, In, InOut, Out, Scalar, Tensor, Tile, minimum, pto
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.passes.kernel.check_finite import CHECKED_PASSES, checks_of
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.trace.kernel.annotations import TensorAnnotation
from pto_wsp.trace.kernel.definition import KernelDef

F32, I32 = DType.F32, DType.I32


def aligned(x: In[Tile[8, 4, F32]], row: In[Tile[1, 4, F32]], y: Out[Tile[8, 4, F32]], m: Out[Tile[8, 4, I32]]) -> None:
    pto.store(y, pto.exp(x) + pto.log(row))
    pto.store(y, pto.expand(pto.cos(row), (8, 4)))
    pto.store(m, pto.cast(pto.sqrt(x), I32))


def reduced(x: In[Tile[8, 4, F32]], rows: Out[Tile[8, 1, F32]], cols: Out[Tile[1, 4, F32]]) -> None:
    pto.store(rows, pto.rowsum(pto.exp(x)))
    pto.store(cols, pto.colsum(pto.log(x)))


def products(x: In[Tile[8, 4, F32]], w: In[Tile[4, 16, F32]], y: Out[Tile[8, 16, F32]], z: Out[Tile[4, 4, F32]],
             t: Out[Tile[8, 8, F32]]) -> None:
    pto.store(y, pto.exp(x) @ pto.log(w))
    pto.store(z, pto.transpose(pto.sin(x)) @ pto.cos(x))
    pto.store(t, pto.abs(x) @ pto.transpose(pto.sqrt(x)))


def accumulated(x: In[Tile[8, 4, F32]], w: In[Tile[4, 16, F32]], y: Out[Tile[8, 16, F32]]) -> None:
    acc = pto.alloc((8, 16), F32, init=0)
    for _ in pto.range(3):
        acc[:] = pto.matmul(pto.exp(x), pto.log(w), acc=acc)
    pto.store(y, acc)


def moved(x: In[Tile[8, 4, F32]], t: Out[Tile[4, 8, F32]], wide: Out[Tile[8, 8, F32]], part: Out[Tile[8, 2, F32]],
          turned: Out[Tile[8, 4, F32]], order: Out[Tile[8, 4, I32]]) -> None:
    pto.store(t, pto.transpose(pto.exp(x)))
    pto.store(wide, pto.concat(pto.log(x), pto.sqrt(x), axis=1))
    pto.store(part, pto.sin(x)[:, 1:3])
    pto.store(turned, pto.cos(x)[::-1])
    pto.store(order, pto.argsort(pto.abs(x)))


def passed_on(x: In[Tile[8, 4, F32]], y: InOut[Tile[8, 4, F32]]) -> None:
    near, far = pto.alloc((8, 4), F32, init=0), pto.alloc((8, 4), F32, init=0)
    for _ in pto.range(3):
        pto.store(y, far + y)
        far[:] = near
        near[:] = pto.exp(x)


def added(x: In[Tile[8, 4, F32]], w: In[Tile[4, 16, F32]], c: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]) -> None:
    pto.store(y, pto.matmul(pto.exp(x), pto.log(w), acc=pto.sin(c)))


def stored(x: In[Tile[8, 4, F32]], n: Scalar[I32], y: Out[Tensor], z: Out[Tile[8, 4, F32]]) -> None:
    pto.store(y, pto.exp(x), (1, 0), valid=(n, 3))
    pto.store(y, pto.log(x), (0, 0))
    both = pto.sqrt(x)
    pto.store(z, both)
    pto.store(y, both, (0, 0), valid=(n, 2))
    pto.store(z, pto.tanh(x)[2:, 1:], (2, 1))


def seen(x: In[Tile[8, 4, F32]], y: Out[Tile[8, 4, F32]]) -> None:
    shown = pto.sin(x)
    pto.print("here", shown)
    pto.store(y, shown)
    held = pto.alloc((8, 4), F32, init=0)
    held[2:4, :] = pto.exp(x)[:2]
    with pto.when(pto.item(pto.cos(x), 0, 0) > 0):
        pto.store(y, held + pto.log(x))


def looped(x: In[Tile[8, 4, F32]], y: InOut[Tensor]) -> None:
    before = pto.sqrt(x)
    for j in pto.range(3):
        n = minimum(8, y.shape[0] - j * 8)
        pto.store(y, pto.exp(pto.load(y, (0, j * 4), shape=(8, 4))), (j * 8, 0), valid=(n, None))
        pto.store(y, before, (j * 8, 0), valid=(n, 4))


def checked(body: Callable[..., None]) -> dict[str, str]:
    """Return the rows and columns that checks look at, by the operation; of several of one name, those of the last."""
    found = KernelDef.from_function(body, {})
    ir = found.trace({}, {p.name: F32 for p in found.params if isinstance(p.annotation, TensorAnnotation)})
    context = KernelContext(*[frozenset(p.name for p in ir.memory_params if p.role.writes or not only) for only in (False, True, True)])
    for step in CHECKED_PASSES:
        ir = step.run(ir, context)
        if step.name == "check_finite":
            break
    return {check.what: ", ".join("all" if one is None else print_scalar(one) for one in (check.valid_rows, check.valid_cols))
            for check in checks_of(ir).values() if not check.what.startswith("load")}


CASES: list[tuple[Callable[..., None], dict[str, str]]] = [
    (aligned, {"exp": "y.shape[0], y.shape[1]", "log": "all, y.shape[1]", "add": "y.shape[0], y.shape[1]",
               "cos": "all, y.shape[1]", "expand": "y.shape[0], y.shape[1]", "sqrt": "m.shape[0], m.shape[1]"}),
    (reduced, {"exp": "rows.shape[0], all", "rowsum": "rows.shape[0], rows.shape[1]", "log": "all, cols.shape[1]",
               "colsum": "cols.shape[0], cols.shape[1]"}),
    (products, {"exp": "y.shape[0], all", "log": "all, y.shape[1]", "sin": "all, z.shape[0]", "cos": "all, z.shape[1]",
                "abs": "t.shape[0], all", "sqrt": "t.shape[1], all", "matmul": "t.shape[0], t.shape[1]"}),
    (accumulated, {"exp": "y.shape[0], all", "log": "all, y.shape[1]", "matmul": "y.shape[0], y.shape[1]"}),
    (added, {"exp": "y.shape[0], all", "log": "all, y.shape[1]", "sin": "y.shape[0], y.shape[1]", "matmul": "y.shape[0], y.shape[1]"}),
    (moved, {"exp": "t.shape[1], t.shape[0]", "transpose": "t.shape[0], t.shape[1]", "log": "wide.shape[0], all",
             "sqrt": "wide.shape[0], all", "concat": "wide.shape[0], wide.shape[1]", "sin": "part.shape[0], all", "cos": "all, all",
             "slice": "turned.shape[0], turned.shape[1]", "abs": "all, all"}),
    (passed_on, {"exp": "y.shape[0], y.shape[1]", "add": "y.shape[0], y.shape[1]"}),      # three rounds of the loop back
    (stored, {"exp": "n, 3", "log": "all, all", "sqrt": "max(n, z.shape[0]), max(2, z.shape[1])", "tanh": "all, all",
              "slice": "z.shape[0] - 2, z.shape[1] - 1"}),
    (seen, {"sin": "all, all", "exp": "all, all", "slice": "all, all", "cos": "all, all", "log": "y.shape[0], y.shape[1]",
            "add": "y.shape[0], y.shape[1]"}),
    (looped, {"sqrt": "all, 4", "exp": "min(8, y.shape[0] - j * 8), all"}),      # j is not known in front of the loop
]


@pytest.mark.parametrize(("body", "kept"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_check_looks_at_what_is_kept(body: Callable[..., None], kept: dict[str, str]) -> None:
    assert checked(body) == kept
