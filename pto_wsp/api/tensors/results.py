"""Hand out results: as arrays of the library that the first argument is of, or in the arrays that `out=` gives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.errors import JitOptionError, PtoError, WrittenArrayError, raise_all
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.exchange import Array, NotTaken, array_of, torch_of
from pto_wsp.ir.tensor import Tensor
from pto_wsp.run.bound import byte_bounds, overlaps_itself
from pto_wsp.source import here

Maker: TypeAlias = Callable[[Array], object]

_MOST_WORK = 100_000      # steps of the search for a common element of two arrays; beyond, they count as overlapping


def maker_of(first: object) -> Maker:
    """Return the function that makes a result of the kind of a call's first tensor argument; None for a call without one."""
    if isinstance(first, Tensor):
        return Tensor
    libraries = {kind.__module__.partition(".")[0] for kind in type(first).__mro__}
    if "torch" in libraries:
        return torch_of
    if libraries & {"jax", "jaxlib"}:
        return _jax_of
    return _as_it_is


def _as_it_is(array: Array) -> object:
    return array


def _jax_of(array: Array) -> object:
    jax: Any = sys.modules["jax"]
    return jax.numpy.asarray(array)


def given_results(function: str, out: object, wanted: Sequence[tuple[tuple[int, ...], DType]]) -> tuple[list[Array], list[object]]:
    """Return the arrays of `out=`, and the objects that were given: one, or a tuple of as many as there are results.

    Raises: J121 for another number, J122 for what cannot be written or has another shape or dtype.
    """
    objects = list(out) if isinstance(out, tuple | list) else [out]
    if len(objects) != len(wanted):
        raise JitOptionError(f"`{function}` has {len(wanted)} results, and out= gives {len(objects)}", here(),
                         expected="one array" if len(wanted) == 1 else f"a tuple of {len(wanted)} arrays")
    arrays: list[Array] = []
    errors: list[PtoError] = []
    for number, (given, (shape, dtype)) in enumerate(zip(objects, wanted, strict=True)):
        name = "out=" if len(wanted) == 1 else f"out[{number}]"
        array = given.data if isinstance(given, Tensor) else array_of(given)
        problem = _unfit(name, given, array, shape, dtype)
        if problem is not None:
            errors.append(problem)
        elif isinstance(array, np.ndarray):
            arrays.append(array)
    raise_all(errors)
    return arrays, objects


def _unfit(name: str, given: object, array: Array | NotTaken | None, shape: tuple[int, ...], dtype: DType) -> WrittenArrayError | None:
    if isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype.np:
        return unwritable(name, array)
    expected = f"{list(shape)} of {dtype}"
    if array is None:
        return WrittenArrayError(f"{name} is a Tensor without data", here(), expected=expected, found=repr(given))
    if isinstance(array, NotTaken):
        return WrittenArrayError(f"{name} is {array.what}", here(), expected=expected, found=array.found, help=array.help,
                                 notes=array.notes)
    return WrittenArrayError(f"{name} does not fit the result", here(), expected=expected, found=f"{list(array.shape)} of {array.dtype}")


def unwritable(name: str, array: Array) -> WrittenArrayError | None:
    """Return why a call cannot write into an array; None if it can."""
    if not array.flags.writeable:
        return WrittenArrayError(f"{name} is written, and its array is read-only", here(), expected="an array that may be written",
                                 help="arrays of JAX are never written; of NumPy, np.array(x) makes a copy that may be")
    if overlaps_itself(array):
        return WrittenArrayError(f"{name} is written, and has elements that share memory", here(), found=f"strides {array.strides}",
                                 expected="strides of which each steps over what lies inside it",
                                 help="array.copy() is an array of its own")
    return None


def are_apart(arrays: Sequence[Array], starts: Sequence[int]) -> bool:
    """Tell whether arrays share no memory; False also where only `refuse_overlaps` can tell. `starts`: their addresses."""
    spans = sorted([(start, start + array.nbytes) for array, start in zip(arrays, starts, strict=True) if array.flags.c_contiguous])
    return len(spans) == len(arrays) and all([end <= start for (_, end), (start, _) in pairwise(spans)])


def refuse_overlaps(written: Sequence[tuple[str, Array]], read: Sequence[tuple[str, Array]]) -> None:
    """Check that no array that a call writes shares memory with another array of the call.

    Raises: J122 for all that do together.
    """
    errors: list[PtoError] = []
    there = [(name, array, *byte_bounds(array)) for name, array in (*written, *read) if array.size]
    for number, (name, array, first, last) in enumerate(there[:sum(array.size > 0 for _, array in written)]):
        errors += [WrittenArrayError(f"{name} is written, and shares memory with {other}", here(), expected="arrays apart from each other",
                                     help=f"give a copy of one: x.copy() for {other}")
                   for other, memory, begin, end in there[number + 1:] if begin < last and first < end and _overlap(array, memory)]
    raise_all(errors)


def _overlap(one: Array, other: Array) -> bool:
    try:
        return bool(np.shares_memory(one, other, max_work=_MOST_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
