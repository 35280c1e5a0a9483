"""Every function of examples/tensors as a package, on the emulated core: it gives the numbers of its reference in float64.

tests/examples holds cpu_sim and interp to the same reference.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from pto_wsp import Tensor
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
    meant = example.function.reference(**copy.deepcopy(given))
    several = isinstance(meant, tuple)
    outs = tuple(Tensor(np.zeros_like(one), name=f"result_{k}") for k, one in enumerate(meant if several else (meant,)))
    plan = example.function.plan(**given, arch="ascend_910b", target="ascend_npu")
    lowered = example.function.lower(plan, **given, out=outs if several else outs[0])
    program = lowered.compile(target="ascend_npu", arch="ascend_910b")
    assert program.artifact_dir is not None
    package = load_package(program.artifact_dir)
    declared, scalars = package.inputs(None)
    arrays = flat(given)
    known = {key: key.removesuffix("_tensor") for key in declared}       # a tensor that is called like a kernel
    tensors = {key: np.ascontiguousarray(arrays.get(known[key], value)) for key, value in declared.items()}
    outcomes = run(package, build(package, Target("a2a3", package.runtime)), tensors, scalars, ORDERS[::2])
    check_graph(package, outcomes[0].graph)
    for outcome, order in zip(outcomes, ORDERS[::2], strict=True):
        results = tuple(outcome.tensors[one.name].reshape(one.ref.shape) for one in outs)
        found = {known[key]: value for key, value in outcome.tensors.items()}
        data = {key: found[key].reshape(value.shape) if key in found else value for key, value in given.items()}
        example.check(data, given, results if several else results[0], f"{name}, order {order}")
