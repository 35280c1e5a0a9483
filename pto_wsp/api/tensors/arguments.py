"""Read the arrays of a call without looking at what they are for: their memory, and a key of everything but addresses and elements.

Two calls with equal keys have the same structure of arguments, the same constants, and arrays of the same layouts: whatever was found out
about the first holds for the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.ir.exchange import Array, NotTaken, array_of, is_array
from pto_wsp.ir.tensor import Tensor
from pto_wsp.trace.tensor.captured import key_of
from pto_wsp.trace.tensor.leaves import leaves_of, parts_of


class ArgumentReader:
    """Reads the arguments of one call: `arrays` in the order of their leaves, or why there is none, and the objects that were given."""

    __slots__ = ("arrays", "given")

    def __init__(self) -> None:
        self.arrays: list[Array | NotTaken] = []
        self.given: list[object] = []

    def key(self, value: object) -> object:
        """Take the arrays of an argument, and return its key."""
        if type(value) is np.ndarray:
            return self._array(np.ndarray, value, value)
        if parts_of(value) is not None:
            return type(value), tuple([(path, self.key(leaf)) for path, leaf in leaves_of(value, "")])
        if isinstance(value, Tensor):
            if value.data is None:
                return self._nothing(value, NotTaken("a tensor without data", repr(value), "a Tensor of an array"))
            key = self._array(Tensor, value, value.data)
            return key if value.layout is None else (key, value.layout)
        if is_array(value):
            array = array_of(value)
            return self._nothing(value, array) if isinstance(array, NotTaken) else self._array(type(value), value, array)
        return key_of(value)

    def _array(self, kind: type, given: object, array: Array) -> object:
        self.arrays.append(array)
        self.given.append(given)
        flags = array.flags
        return kind, array.dtype, array.shape, array.strides, flags.writeable, flags.aligned

    def _nothing(self, given: object, why: NotTaken) -> object:
        self.arrays.append(why)
        self.given.append(given)
        return object()      # equal to no other key


def memory_of(value: object) -> Any:
    """Return the array of a value that offers one, the value itself of any other: what a trace and a check of shapes look at."""
    reader = ArgumentReader()
    reader.key(value)
    return reader.arrays[0] if reader.arrays and parts_of(value) is None else value
