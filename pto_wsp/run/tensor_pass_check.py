"""Check the passes of the tensor level with the evaluator: a function gives the same results before and after each pass.

>>> check_tensor_passes(planned, context, arrays, scalars)      # returns what the passes give, or raises an InternalError that names one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pto_wsp.errors import InternalError, PtoError
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Number, Scalar, SymbolRef
from pto_wsp.ir.scalar import evaluate as evaluate_scalar
from pto_wsp.ops.entry import Identity
from pto_wsp.ops.rounding import Array
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Iota, Matmul, RowReduce
from pto_wsp.ops.tensors import entry_of, formula_of
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.passes.tensor.passes import TENSOR_PASSES, TensorPass, print_planned, run_tensor_passes
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.run.tensor_evaluate import evaluate

_ULPS = 64       # of the largest element: sums are added up in another order, and what follows them carries that on


def check_tensor_passes(planned: PlannedFunction, context: TensorContext, arrays: Sequence[Array],
                        scalars: Mapping[str, Number] | None = None, passes: tuple[TensorPass, ...] = TENSOR_PASSES) -> PlannedFunction:
    """Return what the passes give, with the function evaluated on copies of the arguments before and after each.

    Results are equal bit for bit, where no floats are added up or multiplied together; else within 64 ulp of the largest element.
    Raises: InternalError naming the pass and the function, with the text before and after; what the passes raise.
    """
    def compare(name: str, before: PlannedFunction, after: PlannedFunction) -> None:
        found = difference_of_functions(before.function, after.function, arrays, scalars)
        if found is not None:
            raise InternalError(f"pass `{name}` changed what `{planned.name}` computes: {found}",
                                f"before {name}:\n{print_planned(before)}\nafter {name}:\n{print_planned(after)}")

    return run_tensor_passes(planned, context, passes, compare)


def difference_of_functions(before: t.TensorFunction, after: t.TensorFunction, arrays: Sequence[Array],
                            scalars: Mapping[str, Number] | None = None, order: int | None = None) -> str | None:
    """Describe the first difference between the results of two functions on the same arguments; None for equal results.

    A function that ends with a user's error means nothing more; then the other may do anything. `order`: of the other's free iterations.
    """
    if before == after and order is None:
        return None
    expected, found = [array.copy() for array in arrays], [array.copy() for array in arrays]
    try:
        wanted = evaluate(before, expected, scalars)
    except PtoError:
        return None
    try:
        results = evaluate(after, found, scalars, order=order)
    except PtoError as problem:
        return f"it ends with {problem.code}: {problem.message}"
    ulps = 0 if is_exact(before) else _ULPS
    named = [*(f"result {number}" for number in range(len(wanted))), *(f"`{param.array.name}`" for param in before.params)]
    for name, one, other in zip(named, [*wanted, *expected], [*results, *found], strict=True):
        wrong = difference_of_arrays(other, one, ulps)
        if wrong is not None:
            return f"{name} {wrong}"
    return None


def difference_of_arrays(found: Array, expected: Array, ulps: int) -> str | None:
    """Say where two arrays differ: in bits, or by more than so many units in the last place of the largest element."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"is {list(found.shape)} {found.dtype}, was {list(expected.shape)} {expected.dtype}"
    same = np.asarray(found == expected)
    if DType.from_numpy(found.dtype).is_real:
        got, want = found.astype(np.float64), expected.astype(np.float64)
        same = (got == want) & (np.signbit(got) == np.signbit(want)) if not ulps else got == want
        same = same | (np.isnan(got) & np.isnan(want))
        if ulps:
            unit = 2.0 ** (1 - DType.from_numpy(found.dtype).format.digits)
            scale = np.abs(want[np.isfinite(want)]).max(initial=0.0)
            with np.errstate(invalid="ignore"):
                same = same | (np.abs(got - want) <= ulps * unit * scale)
    if same.all():
        return None
    at = tuple(int(place) for place in np.argwhere(~same)[0])
    return f"differs in {int((~same).sum())} of {same.size} elements, first at {list(at)}: {found[at]!r}, was {expected[at]!r}"


def is_exact(function: t.TensorFunction) -> bool:
    """Tell whether the order of no operation matters: no floats are added up, and no product or formula is made of floats."""
    return all(_is_exact(leaf) for leaf in flow.leaves(function.body))


def _is_exact(statement: t.Statement) -> bool:
    match statement:
        case t.Put(target, add=True):
            return not target.dtype.is_real
        case t.Apply(op, _, results):
            exact = not any(result.dtype.is_real for result in results)
            match entry_of(op):
                case RowReduce(identity=identity) | ColReduce(identity=identity):
                    return exact or identity in (Identity.LOWEST, Identity.HIGHEST)
                case Matmul():
                    return exact
                case TileFunction() | Movement() | Elementwise() | Convert() | Expand() | Iota():
                    return True
                case None:
                    return exact or formula_of(op) is None
    return True


# -- arguments -----------------------------------------------------------------------------------------------------
def drawn_arguments(function: t.TensorFunction, sizes: Mapping[str, int], seed: int, largest_place: int = 2) -> list[Array]:
    """Return arrays for the parameters, with numbers for the symbols by name.

    Contracts hold; other integers are 0 … `largest_place`, so that they are places, too. Floats are small whole numbers and halves: sums
    and products of a few of them are exact.
    """
    rng = np.random.default_rng(seed)

    def extent(node: Scalar) -> int:
        return int(evaluate_scalar(node, lambda leaf: sizes[leaf.name] if isinstance(leaf, SymbolRef) else 0))

    return [_drawn(rng, tuple(map(extent, param.array.shape)), param.array, largest_place) for param in function.params]


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], array: t.Array, largest_place: int) -> Array:
    count = int(np.prod(shape))
    if array.dtype.is_bool:
        return rng.random(shape) < 0.5
    if array.dtype.is_real:
        return (rng.integers(-8, 9, shape) / 2).astype(array.dtype.np)
    if Contract.INJECTIVE in array.contracts:
        return rng.permutation(count).reshape(shape).astype(array.dtype.np)
    drawn = rng.integers(0, largest_place + 1, shape)
    return (np.sort(drawn, axis=-1) if Contract.MONOTONE in array.contracts else drawn).astype(array.dtype.np)
