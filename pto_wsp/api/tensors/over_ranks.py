"""Run a function on tensors over the ranks of a mesh: one program for arrays of these shapes and layouts, which each call binds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from pto_wsp.api.program import Program
from pto_wsp.api.tensors.arguments import ArgumentReader
from pto_wsp.api.tensors.calls import number_of
from pto_wsp.api.tensors.results import given_results, maker_of, refuse_overlaps
from pto_wsp.errors import LayoutError, raise_all
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.exchange import Array
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tensor_layout import TensorLayout, made_at
from pto_wsp.source import here
from pto_wsp.trace.tensor.signature import BoundArguments
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class RankResult:
    """A result of a function over ranks: its name in the program, shape and dtype over all ranks, and its layout."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    layout: TensorLayout


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RankCall:
    """The prepared state of calls with equal shapes and layouts. `inputs`, `scalars`: names in the program, None for an unread argument."""

    name: str
    mesh: Mesh
    program: Program
    rebuild: Callable[[Sequence[object]], object]
    bound: BoundArguments
    inputs: tuple[str | None, ...]
    scalars: tuple[str | None, ...]
    results: tuple[RankResult, ...]
    running: threading.Lock

    def run(self, reader: ArgumentReader, numbers: Sequence[object], out: object) -> object:
        """Run the function on the arrays of a call, and return its results: of Tensors, Tensors with their layouts.

        Raises: M101 for an out= of another layout, J122 for arrays that overlap what is written, and the errors of a run.
        """
        found: list[Array] = reader.arrays  # type: ignore[assignment]     # a call with anything else has a key of its own
        written = [(f"argument `{leaf.path}`", array) for leaf, array in zip(self.bound.leaves, found, strict=True) if leaf.type.written]
        if out is None:
            arrays, objects = [np.zeros(one.shape, one.dtype.np) for one in self.results], None
        else:
            arrays, objects = given_results(self.name, out, [(one.shape, one.dtype) for one in self.results])
            self._check_layouts(objects)
            written += [(f"out[{k}]", array) for k, array in enumerate(arrays)]
        read = [(f"argument `{leaf.path}`", array) for leaf, array in zip(self.bound.leaves, found, strict=True) if not leaf.type.written]
        refuse_overlaps(written, read)
        bindings: dict[str, object] = {name: array if leaf.type.written else np.ascontiguousarray(array)
                                       for name, leaf, array in zip(self.inputs, self.bound.leaves, found, strict=True) if name is not None}
        bindings |= {one.name: array for one, array in zip(self.results, arrays, strict=True)}
        bindings |= {name: number_of(leaf.path, leaf.dtype, value)
                     for name, leaf, value in zip(self.scalars, self.bound.scalars, numbers, strict=True) if name is not None}
        with self.running:       # a program takes one run at a time
            self.program.run(**bindings)
        return self.rebuild([self._made(one, array, reader) for one, array in zip(self.results, arrays, strict=True)]
                            if objects is None else objects)

    def _made(self, result: RankResult, array: Array, reader: ArgumentReader) -> object:
        if any(isinstance(given, Tensor) for given in reader.given):
            return Tensor(array, layout=result.layout)
        return maker_of(reader.given[0] if reader.given else None)(array)

    def _check_layouts(self, objects: Sequence[object]) -> None:
        raise_all([LayoutError(f"`{self.name}`: out= has another layout than the result", here(), expected=repr(one.layout),
                               found=repr(given.layout), also=made_at(given.layout, "it was made here"),
                               help="relayout the result in the function, or give a Tensor of that layout")
                   for one, given in zip(self.results, objects, strict=True)
                   if isinstance(given, Tensor) and given.layout is not None and given.layout.named_on(self.mesh) != one.layout])


def names_used(program: Program, names: Sequence[str]) -> tuple[str | None, ...]:
    """Return the names that tensors or symbols of a program have, None in place of the others."""
    known = {slot.ref.name for slot in program.plan.tensors if not slot.fresh} | {symbol.name for symbol in program.plan.symbols}
    return tuple(name if name in known else None for name in names)

