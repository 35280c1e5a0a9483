"""Contracts: what the user promises of an index tensor, so that the checks may rely on it; each array that is bound is held to it.

>>> block_table = Injective(Tensor(pages, name="block_table"))     # no page belongs to two entries
>>> offsets = Monotone(offsets_array)                              # rows lie one behind the other
"""

from __future__ import annotations

import numpy as np

from pto_wsp.errors import ArgumentKindError
from pto_wsp.source import here
from pto_wsp.types.layout import Contract
from pto_wsp.types.tensor import Tensor, TensorView


def Injective(table: Tensor | np.ndarray) -> Tensor:
    """Promise that no two elements of `table` that are not negative are equal, and return it as a Tensor; negative ones are padding.

    Raises: T205 for what is no whole tensor of integers. A run that binds an array with two equal elements ends with R110.
    """
    return _promised("Injective", table, Contract.INJECTIVE)


def Monotone(offsets: Tensor | np.ndarray) -> Tensor:
    """Promise that the elements of `offsets` never fall along the last dimension, and return it as a Tensor.

    Raises: T205 for what is no whole tensor of integers. A run that binds an array which falls ends with R110.
    """
    return _promised("Monotone", offsets, Contract.MONOTONE)


def _promised(name: str, given: object, contract: Contract) -> Tensor:
    tensor = Tensor(given) if isinstance(given, np.ndarray) else given
    if not isinstance(tensor, Tensor) or not tensor.dtype.is_integer or tensor.rank == 0:
        found = f"{tensor!r}" if isinstance(tensor, TensorView) else f"{type(given).__name__}: {given!r:.60}"
        raise ArgumentKindError(f"{name} takes a whole tensor of indices", here(), found=found,
                                expected="a Tensor (or array) of integers with one dimension or more")
    tensor.promise(contract)
    return tensor
