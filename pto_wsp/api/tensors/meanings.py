"""Run a jit function without compiling it: its traced form by the op table's meaning, or its body as the NumPy program that it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pto_wsp.api.tensors.calls import check_contract, numbers_of
from pto_wsp.api.tensors.results import Maker, maker_of, refuse_overlaps, unwritable
from pto_wsp.errors import raise_all
from pto_wsp.ir.tensor_type import TensorType
from pto_wsp.run.tensor_evaluate import evaluate
from pto_wsp.trace.tensor.leaves import parts_of, with_parts
from pto_wsp.trace.tensor.signature import BoundArguments, TensorSignature
from pto_wsp.trace.tensor.traced import Traced, run_on_arrays


def run_reference(traced: Traced, bound: BoundArguments) -> object:
    """Evaluate a traced function on the arrays of a call; what is InOut is written. Results are of the kind of the first array.

    Raises: J201, R110 and R113 for arrays that do not fit, and what the evaluation raises.
    """
    arrays = check_arrays(bound)
    results = evaluate(traced.function, arrays, {**bound.sizes(), **numbers_of(traced.function, bound)})
    make = maker_of(bound.given[0] if bound.given else None)
    return traced.rebuild([make(np.array(result)) for result in results])


def run_python(function: Callable[..., object], signature: TensorSignature, values: Sequence[object]) -> object:
    """Run the body of a function as a NumPy program; InOut arrays are written. Results are of the kind of the first array.

    Raises: J101, J109, J201, R110 and R113 for arrays that do not fit, and what the body raises.
    """
    bound = signature.match(values)
    check_arrays(bound)
    make = maker_of(bound.given[0] if bound.given else None)
    return _made(run_on_arrays(function, bound), make)


def _made(value: object, make: Maker) -> object:
    if isinstance(value, np.ndarray):
        return make(value)
    parts = parts_of(value)
    return value if parts is None else with_parts(value, [_made(part, make) for _, part in parts])


def check_arrays(bound: BoundArguments) -> list[np.ndarray]:
    """Return the arrays of a call, after the checks that a compiled call makes: symbols, contracts, writability, overlaps.

    Raises: J201 for two numbers of one symbol; R110 for a broken contract; R113 for what is written and cannot be, or overlaps another.
    """
    bound.sizes()
    arrays = [array for array in bound.arrays if array is not None]
    named = [(leaf.type, f"argument `{leaf.path}`", array) for leaf, array in zip(bound.leaves, arrays, strict=True)]
    raise_all([error for kind, name, array in named if kind.written and (error := unwritable(name, array)) is not None])
    _refuse_overlaps(named)
    for (kind, _, array), leaf in zip(named, bound.leaves, strict=True):
        for contract in kind.contracts:
            check_contract(contract, leaf.path, array)
    return arrays


def _refuse_overlaps(named: list[tuple[TensorType, str, np.ndarray]]) -> None:
    refuse_overlaps([(name, array) for kind, name, array in named if kind.written],
                    [(name, array) for kind, name, array in named if not kind.written])
