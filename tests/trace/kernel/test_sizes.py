"""Tiles whose sizes have names: one kernel, specialised by the views that are bound."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import Constexpr, DType, In, InOut, Out, P, PtoError, Symbol, Tensor, Tile, Workload, ceildiv, kernel, pto, workload

F32 = DType.F32
R, C, M, K = "R", "C", "M", "K"


@kernel
def scale(x: In[Tile[R, C, F32]], weights: In[Tile[1, C, F32]], y: Out[Tile[R, C, F32]]) -> None:
    pto.store(y, x * weights / x.shape[1])


@kernel
def gram(x: In[Tile[M, K, F32]], total: InOut[Tile[M, M, F32]]) -> None:
    total += pto.matmul(x, x.T)
    pto.store(total, total)


@kernel
def ones(y: Out[Tile[R, C, F32]]) -> None:
    pto.store(y, pto.full(y.shape, 1.0, F32))


RNG = np.random.default_rng(3)
X = RNG.standard_normal((70, 48)).astype(np.float32)
W = RNG.standard_normal((1, 48)).astype(np.float32)


def tiled(rows: int) -> tuple[Workload, Tensor]:
    x, weights, y = Tensor(X), Tensor(W), Tensor(np.zeros_like(X))

    @workload
    def scaled() -> None:
        for i in P(ceildiv(70, rows)):
            scale[i](x[i * rows:].clip(rows, 48), weights, y[i * rows:].clip(rows, 48))

    return scaled(), y


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [1, 16, 33, 70])
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_one_kernel_serves_every_tile_size(rows: int, target: str) -> None:
    work, y = tiled(rows)
    work.compile(target=target).run()
    assert np.array_equal(y.data, X * W / np.float32(48))


def test_a_package_for_the_npu_has_the_size_of_the_views() -> None:
    work, _ = tiled(16)
    sources = [file.read_text() for file in (work.compile(target="ascend_npu").artifact_dir / "kernels").rglob("*.cpp")]
    assert len(sources) == 1 and "16, 48" in sources[0]


def test_shapes_of_one_workload_are_specialised_once_each() -> None:
    y = Tensor(np.zeros((8, 8), np.float32))

    @workload
    def pieces() -> None:
        for i in P(2):
            ones[i](y[i * 2:i * 2 + 2])
        for i in P(2):
            ones[i](y[4 + i:5 + i])
        ones(y[6])                       # a view of one dimension is one row
        ones(y[7:8, :3])

    program = pieces().compile().run()
    assert y.data.sum() == 4 * 8 + 2 * 8 + 8 + 3
    kernels = json.loads((program.artifact_dir / "manifest.json").read_text())["kernels"]
    assert [kernel["name"] for kernel in kernels] == ["ones"] * 3      # of 2x8, 1x8 (in the loop and outside) and 1x3


def test_run_takes_the_sizes_of_the_arrays() -> None:
    assert np.array_equal(scale.run(X[:5], W), X[:5] * W / np.float32(48))
    assert np.array_equal(scale.run(X[0], W[0]), X[:1] * W / np.float32(48))
    total = np.zeros((3, 3), np.float32)
    gram.run(np.ones((3, 7), np.float32), total)
    assert (total == 7).all()


class Other:
    """An array of another library, which speaks DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_run_takes_the_sizes_of_arrays_of_other_libraries() -> None:
    assert np.array_equal(scale.run(Other(X[:5].copy()), Other(W)), X[:5] * W / np.float32(48))


def test_ir_and_cost_take_the_sizes_by_name() -> None:
    assert "In[Tile[3, 8, f32]]" in str(scale.ir_of(R=3, C=8))
    assert ones.cost(R=16, C=8).total == 2 * ones.cost(R=8, C=8).total
    assert repr(ones) == "kernel ones(y: Out[Tile['R', 'C', f32]])"


def in_workload(body: Callable[[], object]) -> Callable[[], object]:
    return lambda: workload(body)()


V = Tensor(X, name="V")
HELD, LENS = Tensor(X), Tensor(np.array([3, 20]))       # named by their variables


@pytest.mark.parametrize(("mistake", "code", "found"), [
    (lambda: scale.ir, "T101", "nothing"),
    (lambda: scale.ir_of(R=2), "T101", "R"),
    (lambda: scale.ir_of(R=0, C=2), "T205", "int: 0"),
    (lambda: scale.ir_of(R=2, C=True), "T205", "bool: True"),
    (lambda: scale.ir_of(R=1 << 20, C=1 << 20), "K101", "Tile[1048576, 1048576, f32], 4398046511104 bytes"),
    (lambda: scale.run(X, W[:, :4]), "T201", "C = 4"),
    (lambda: scale.run(X[0, 0], W), "T201", "[]"),
    (lambda: scale.run([[1.0, 2.0]], W[:, :2]), "T205", None),
    (lambda: ones.run(), "T101", "no arguments"),
    (lambda: ones.run(np.zeros((0, 3), np.float32)), "T201", "R = 0"),
    (lambda: Tile["R x", 2, F32], "K101", "Tile['R x', 2, DType.F32]"),
    (lambda: Tile["R", 0, F32], "K101", "Tile['R', 0, DType.F32]"),
    (in_workload(lambda: scale(V, V[:1, :4], V)), "T201", "C = 4"),
    (in_workload(lambda: gram(V, V)), "T201", "M = 48"),
    (in_workload(lambda: ones(V[:Symbol("n")])), "T201", "n, a view of `V` [70, 48]"),
    (in_workload(lambda: ones(HELD[:LENS[1]])), "T201", "LENS[1], a view of `HELD` [70, 48]"),
    (in_workload(lambda: ones(Tensor(np.zeros((2, 2, 2), np.float32)))), "T103", None),
    (in_workload(lambda: ones(Tensor(np.zeros((2, 2), np.float64)))), "T102", None),
    (in_workload(lambda: ones(3)), "T205", "int: 3"),
])
def test_sizes_that_do_not_fit(mistake: Callable[[], object], code: str, found: str | None) -> None:
    with pytest.raises(PtoError) as caught:
        mistake()
    assert caught.value.code == code
    assert found is None or caught.value.found == found


def test_a_size_has_no_name_of_a_parameter() -> None:
    with pytest.raises(PtoError, match="`R` names a parameter and a size of `x`"):
        @kernel
        def twice(x: In[Tile[R, 4, F32]], R: Constexpr[int], y: Out[Tile[2, 4, F32]]) -> None:
            pto.store(y, x * R)
