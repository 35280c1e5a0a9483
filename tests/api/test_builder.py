"""`KernelBuilder`: what it builds is what `@kernel` traces, and mistakes are errors at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import Constexpr, DType, In, InOut, KernelBuilder, Out, PtoError, Scalar, Tensor, Tile, kernel, parse, pto, workload

F32, I32 = DType.F32, DType.I32
TILE = Tile[4, 8, F32]


def built() -> KernelBuilder:
    build = KernelBuilder("steps", {"t": In[Tensor], "n": Scalar[I32], "y": Out[TILE]}, {"t": F32})
    with build as (t, n, y):
        acc: Any = build.buffer("acc", (4, 8), F32, init=0)
        for _ in range(2):
            with build.loop(n, name="j") as j:
                with build.when(j > 1):
                    acc += pto.load(t, (j * 4, 0), shape=(4, 8))
                with build.otherwise():
                    acc += 1
        pto.store(y, acc)
    return build


@kernel
def steps(t: In[Tensor], n: Scalar[I32], y: Out[TILE]) -> None:
    acc = pto.alloc((4, 8), F32, init=0)
    for j in pto.range(n):
        with pto.when(j > 1):
            acc += pto.load(t, (j * 4, 0), shape=(4, 8))
        with pto.otherwise():
            acc += 1
    for j in pto.range(n):
        with pto.when(j > 1):
            acc += pto.load(t, (j * 4, 0), shape=(4, 8))
        with pto.otherwise():
            acc += 1
    pto.store(y, acc)


def test_a_built_kernel_is_the_one_that_a_function_traces() -> None:
    assert built().kernel.ir == steps.ir_of(t=F32)
    assert parse(str(built().kernel.ir)) == built().kernel


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_built_kernel_runs_alone_and_in_a_workload(target: str) -> None:
    data = np.arange(128, dtype=np.float32).reshape(16, 8)
    made, expected = built().kernel, 2 * (2 + data[8:12] + data[12:16])
    assert np.array_equal(made.run(data, 4), expected)
    T, Y = Tensor(data), Tensor(np.zeros((4, 8), np.float32))

    @workload
    def once() -> None:
        made(t=T, n=4, y=Y)

    once().compile(target).run()
    assert np.array_equal(Y.data, expected)


def _outside(what: Callable[[KernelBuilder], Any]) -> None:
    with what(KernelBuilder("k", {"y": Out[TILE]})):
        pass


def _again() -> None:
    build = built()
    with build:
        pass


def _otherwise() -> None:
    build = KernelBuilder("k", {"y": Out[TILE]})
    with build as (y,):
        pto.store(y, 1)
        with build.otherwise():
            pass


def _stores_nothing() -> None:
    with KernelBuilder("k", {"y": Out[TILE]}):
        pass


def _escapes() -> None:
    build = KernelBuilder("k", {"y": InOut[TILE]})
    with build as (y,):
        with build.loop(4):
            value = pto.load(y) + 1
        pto.store(y, value)


@pytest.mark.parametrize(("mistake", "code"), [
    (lambda: KernelBuilder("two words", {}), "K101"), (lambda: KernelBuilder("for", {}), "K101"),
    (lambda: KernelBuilder("k", {"a b": In[TILE]}), "K101"), (lambda: KernelBuilder("k", {"x": TILE}), "K101"),
    (lambda: KernelBuilder("k", {"x": Constexpr[int]}), "K101"), (lambda: KernelBuilder("k", {"x": In[Tile["R", 8, F32]]}), "K101"),
    (lambda: KernelBuilder("k", [In[TILE]]), "K101"), (lambda: KernelBuilder("k"), "T101"),
    (lambda: KernelBuilder("k", {"x": In[Tensor]}), "K101"), (lambda: KernelBuilder("k", {"x": In[TILE]}, {"x": F32}), "K101"),
    (lambda: KernelBuilder("k", {"x": In[Tensor]}, {"x": "nonsense"}), "K101"), (lambda: KernelBuilder("k", {}).kernel, "K105"),
    (lambda: _outside(lambda build: build.loop(4)), "K105"), (lambda: _outside(lambda build: build.when(True)), "K105"),
    (lambda: KernelBuilder("k", {}).buffer("b", (1, 1), F32), "K105"), (_again, "K105"), (_otherwise, "K103"),
    (_stores_nothing, "K102"), (_escapes, "K104"),
])
def test_mistakes_are_errors(mistake: Callable[[], object], code: str) -> None:
    with pytest.raises(PtoError) as caught:
        mistake()
    assert caught.value.code == code and "test_builder.py" in str(caught.value)


def test_an_error_in_the_block_leaves_no_kernel_and_no_trace_behind() -> None:
    build = KernelBuilder("k", {"y": Out[TILE]})
    with pytest.raises(ZeroDivisionError), build:
        1 / 0  # noqa: B018
    with pytest.raises(PtoError, match="not built yet"):
        build.kernel  # noqa: B018
    assert built().kernel.ir == steps.ir_of(t=F32)
