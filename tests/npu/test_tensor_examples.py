"""Every function of examples/tensors as a package, on the emulated core: it gives the numbers of its reference in float64.

tests/examples holds cpu_sim and interp to the same reference.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from pto_wsp import Tensor, jit, tt
from tests.examples.tensors import EXAMPLES
from tests.npu.harness import ORDERS, Target, build, check_graph, run
from tests.npu.package import Array, load_package

FAST = "softmax"


def flat(data: dict[str, Any]) -> dict[str, Array]:
    """The arrays of the arguments, by the names that the module has for them."""
    found: dict[str, Array] = {}
    for name, value in data.items():
        found.update(flat({f"{name}_{key}": one for key, one in value._asdict().items()}) if hasattr(value, "_asdict") else {name: value})
    return found


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == FAST else pytest.mark.slow) for name in EXAMPLES])
def test_a_function_on_tensors_gives_its_numbers_as_a_package(name: str) -> None:
    example = EXAMPLES[name]
    given = example.module.draw()
    for order, data, results in runs_of(example.function, given):
        example.check(data, given, results if len(results) > 1 else results[0], f"{name}, order {order}")


def runs_of(function: Any, given: dict[str, Any], orders: Sequence[tuple[str, int]] = ORDERS[::2],
            ) -> Iterator[tuple[tuple[str, int], dict[str, Any], tuple[Array, ...]]]:
    """Yield each order of tasks, the arguments after the run of the package, and the results."""
    meant = function.reference(**copy.deepcopy(given))
    several = isinstance(meant, tuple)
    outs = tuple(Tensor(np.zeros_like(one), name=f"result_{k}") for k, one in enumerate(meant if several else (meant,)))
    plan = function.plan(**given, arch="ascend_910b", target="ascend_npu")
    lowered = function.lower(plan, **given, out=outs if several else outs[0])
    program = lowered.compile(target="ascend_npu", arch="ascend_910b")
    assert program.artifact_dir is not None
    package = load_package(program.artifact_dir)
    declared, scalars = package.inputs(None)
    arrays = flat(given)
    known = {key: key.removesuffix("_tensor") for key in declared}       # a tensor that is called like a kernel
    tensors = {key: np.ascontiguousarray(arrays.get(known[key], value)) for key, value in declared.items()}
    outcomes = run(package, build(package, Target("a2a3", package.runtime)), tensors, scalars, orders)
    check_graph(package, outcomes[0].graph)
    for outcome, order in zip(outcomes, orders, strict=True):
        found = {known[key]: value for key, value in outcome.tensors.items()}
        data = {key: found[key].reshape(value.shape) if key in found else value for key, value in given.items()}
        yield order, data, tuple(outcome.tensors[one.name].reshape(one.ref.shape) for one in outs)


@pytest.mark.slow
@pytest.mark.parametrize("n", [8192, 4001])
def test_long_rows_that_must_be_whole_fit_a_core(n: int) -> None:
    """A row in order, its best and its running sums take the memory of a few rows, not 32 bytes for each element."""
    @jit
    def rows(x):
        best, places = tt.topk(x, 40)
        return np.sort(x, axis=-1), best, places, np.cumsum(x, axis=-1)

    rng = np.random.default_rng(n)
    x = np.stack([rng.permutation(n) for _ in range(3)]).astype(np.float32) - n // 2
    for _, _, (ordered, best, places, sums) in runs_of(rows, {"x": x}, ORDERS[:1]):
        np.testing.assert_array_equal(ordered, np.sort(x))
        np.testing.assert_array_equal(best, -np.sort(-x)[:, :40])
        np.testing.assert_array_equal(places, np.argsort(-x)[:, :40])
        np.testing.assert_allclose(sums, np.cumsum(x.astype(np.float64), axis=1), rtol=1e-6, atol=4)
