"""Memory of intermediates: figures by hand, and the error where an arch has less."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Symbol, TaskWindow, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Memory
from pto_wsp.errors import IntermediatesError

F32 = DType.F32
ROW_BYTES = 4 * 4


@kernel
def put(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x * 2)


X, Y = (Tensor(np.zeros((16, 4), np.float32), name=name) for name in "XY")
H = Tensor.empty((16, 4), F32, name="H")
n = Symbol("n")


def through(extent: object, *, outside: bool = False) -> Workload:
    """Return a workload that makes a row in a body, and with `outside` works through H too."""
    @workload
    def made() -> None:
        for i in P(extent):
            T = Tensor.empty((1, 4), F32)
            put[i](X[i], T)
            put[i](T, H[i] if outside else Y[i])
            if outside:
                put[i](H[i], Y[i])
    return made()


def figure(made: Workload) -> str:
    """Return the finding."""
    (line,) = [line for line in made.compile("interp").checks if "memory of intermediates" in line]
    return line.removesuffix(")").replace(" (", ": ", 1).replace("memory of intermediates: ", "")


@pytest.mark.parametrize("made, expected", [
    (lambda: through(8), f"proved: at most {8 * ROW_BYTES} bytes: 8 × T of 16; window 8192"),
    (lambda: through(8).task_graph(window=TaskWindow(3)), f"proved: at most {3 * ROW_BYTES} bytes: 3 × T of 16; window 3"),
    (lambda: through(8, outside=True).task_graph(window=TaskWindow(3)),
     f"proved: at most {19 * ROW_BYTES} bytes: H of 256, 3 × T of 16; window 3"),
    (lambda: through(n).task_graph(window=TaskWindow(5)), f"proved: at most {5 * ROW_BYTES} bytes: 5 × T of 16; window 5"),
    (lambda: through(n), f"proved: at most {8192 * ROW_BYTES} bytes: 8192 × T of 16; window 8192"),
], ids=["all", "window", "outside", "symbol", "default window"])
def test_the_figure_is_an_upper_bound(made: Callable[[], Workload], expected: str) -> None:
    assert figure(made()) == expected


def test_what_can_never_fit_is_an_error() -> None:
    small = builtin_arch("unit").model_copy(update={"name": "small", "memories": (Memory(name="GM", capacity_bytes=128),)})
    with pytest.raises(IntermediatesError, match="take 272 bytes, more than small has"):
        through(1, outside=True).compile("interp", arch=small)
    through(16).compile("interp", arch=small)       # not all of them need be alive at once
