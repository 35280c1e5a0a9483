"""Whatever the workload: its package gives what `interp` gives, in every order that its edges allow, and so does its golden.py."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, Tensor, Tile, Workload, kernel, pto, workload
from tests.npu.generated_packages import Drawn, arrays_of, drawn_workload
from tests.npu.harness import ORDERS, Target, build, check_graph, run
from tests.npu.package import Array, load_package

pytestmark = pytest.mark.usefixtures("races_allowed")     # sides that are drawn may write the same elements: a run takes program order

ARCHES = {"a2a3": "ascend_910b", "a5": "ascend_950"}
F32 = DType.F32


def check(drawn: Drawn, family: str) -> None:
    """Raise AssertionError unless the package of a workload, its golden.py and the interpreter leave the same numbers."""
    program = drawn.workload.compile(target="ascend_npu", arch=ARCHES[family])
    assert program.artifact_dir is not None
    package, arrays = load_package(program.artifact_dir), arrays_of(drawn.workload)
    given, scalars = package.inputs(drawn.params)
    tensors = {name: arrays[name].copy() for name in given}
    golden = package.expected(tensors, scalars, drawn.params)
    drawn.workload.compile(target="interp").run(**drawn.params)
    for name, found in golden.items():
        compare(found, arrays[name], drawn.exact, f"golden.py, {name}")
    outcomes = run(package, build(package, Target(family, package.runtime)), tensors, scalars)
    for order, outcome in zip(ORDERS, outcomes, strict=True):
        for name, found in outcome.tensors.items():
            compare(found, arrays[name], drawn.exact, f"order {order}, {name}")
    check_graph(package, outcomes[0].graph)


def compare(found: Array, expected: Array, exact: bool, where: str) -> None:
    """Raise AssertionError for other numbers."""
    size = max(1.0, float(np.abs(expected.astype(np.float64)).max(initial=0)))
    rtol, atol = (0.0, 0.0) if exact else (1e-3, 1e-4 * size)
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol, atol, err_msg=where)


# Rows of every other row of a tensor; kernels of two cores; parameters that lie on one another; what moves pieces.
@pytest.mark.slow
@pytest.mark.parametrize(("seed", "family"), [(42, "a2a3"), (129, "a5")])
def test_some_workloads(seed: int, family: str) -> None:
    check(drawn_workload(seed), family)


@pytest.mark.slow
@pytest.mark.parametrize("family", ARCHES)
def test_more_workloads(family: str) -> None:
    for seed in range(1000 + (family == "a5"), 1012, 2):
        check(drawn_workload(seed), family)


@pytest.mark.slow
@pytest.mark.parametrize("family", ARCHES)
def test_what_one_parameter_stores_another_loads(family: str) -> None:
    """Both lie on the same rows: each block of them is loaded, behind the store of the one before."""
    @kernel
    def spread(x: In[Tensor], y: InOut[Tensor], z: Out[Tile[8, 8, F32]]) -> None:
        for j in pto.range(3):
            pto.store(y, pto.load(x, (j * 8, 0), shape=(8, 8)) * 2, (j * 8 + 8, 0))
        pto.store(z, pto.load(x, (24, 0), shape=(8, 8)))

    X, Z = Tensor(np.arange(256, dtype=np.float32).reshape(32, 8), name="X"), Tensor(np.ones((8, 8), np.float32), name="Z")

    @workload
    def once() -> None:
        spread[0](x=X, y=X, z=Z)

    made: Workload = once()
    check(Drawn(made, {}, exact=True), family)
    assert np.array_equal(Z.data, 8 * np.arange(64, dtype=np.float32).reshape(8, 8))
