"""Run a compiled function on the arrays of a call.

A `ReadyFunction` is compiled for one class of arguments: dtypes, static extents, constants, a plan, a target. A `ReadyCall` holds what
calls with equal layouts have alike: the numbers of the symbols, the shapes of the results, the slot of each array. A warm call finds its
`ReadyCall` by key, takes memory for the results, and runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pto_wsp.api.tensors.arguments import ArgumentReader
from pto_wsp.api.tensors.results import Maker, are_apart, given_results, maker_of, refuse_overlaps, unwritable
from pto_wsp.api.tensors.runs import ArrayLayout, ProgramRuns, RunShape
from pto_wsp.errors import ArrayBindingError, BindingError, ExtentError, InternalError, PtoError, raise_all
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.exchange import Array, empty_array
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Scalar, SymbolRef, evaluate, print_scalar
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.run.bound import Number, contract_breach, layout_of
from pto_wsp.source import here
from pto_wsp.trace.kernel.annotations import ScalarAnnotation
from pto_wsp.trace.tensor.signature import BoundArguments, scalar_problem
from pto_wsp.values import dataclass

Rebuild: TypeAlias = Callable[[Sequence[object]], object]


@dataclass(frozen=True, slots=True, eq=False)
class ReadyFunction:
    """A function that is compiled. `inputs`, `outputs`: names of the program's tensors, by parameter and by result; `symbols`: the
    program's names of the function's symbols and scalars."""

    function: TensorFunction
    rebuild: Rebuild
    runs: ProgramRuns
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    symbols: Mapping[str, str]

    def call_of(self, bound: BoundArguments) -> ReadyCall:
        """Return the prepared state that all calls share whose arrays have the same layouts as the arrays of this call.

        Raises: J201 for a broken assumption or an extent below 0; R113 for arrays that cannot be used.
        """
        arrays = [array for array in bound.arrays if array is not None]
        raise_all([error for leaf, array in zip(bound.leaves, arrays, strict=True)
                   if (error := _unusable(f"argument `{leaf.path}`", array, written=leaf.type.written)) is not None])
        sizes = bound.sizes()
        numbers = {**sizes, **numbers_of(self.function, bound)}
        for assumption in self.function.assumptions:
            if not _value(assumption.condition, numbers):
                raise ExtentError(f"`{self.function.name}` assumes {print_scalar(assumption.condition)}", here(),
                                  found=", ".join(f"{name} = {number}" for name, number in sizes.items()),
                                  also=((("it is assumed here"), assumption.span),))
        shapes = tuple(self._shape(number, numbers) for number in range(len(self.outputs)))
        slots = self.runs.slots
        scalars = tuple((self.runs.symbols.get(self.symbols[symbol.name], -1), leaf.path, leaf.dtype)
                        for symbol, leaf in zip(self.function.scalars, bound.scalars, strict=True))
        return ReadyCall(
            ready=self, make=maker_of(bound.given[0] if bound.given else None), scalars=scalars,
            shape=self.runs.shape_of({self.symbols[name]: number for name, number in numbers.items()}),
            places=tuple((number, slots.get(name, -1)) for number, name in enumerate(self.inputs)),
            results=tuple((slots.get(name, -1), shape, view.dtype)
                          for name, shape, view in zip(self.outputs, shapes, self.function.results, strict=True)),
            written=tuple((number, f"argument `{leaf.path}`") for number, leaf in enumerate(bound.leaves) if leaf.type.written),
            names=tuple(f"argument `{leaf.path}`" for leaf in bound.leaves),
            contracts=tuple(ContractMemory(number, leaf.path, contract) for number, leaf in enumerate(bound.leaves)
                            for contract in leaf.type.contracts),
            packed=tuple(number for number, array in enumerate(arrays) if not _has_unit_inner(array)))

    def _shape(self, number: int, numbers: Mapping[str, Number]) -> tuple[int, ...]:
        shape = tuple(int(_value(extent, numbers)) for extent in self.function.results[number].shape)
        if any(extent < 0 for extent in shape):
            raise ExtentError(f"a result of `{self.function.name}` has an extent below 0", here(), expected="extents >= 0",
                              found=str(list(shape)))
        return shape


@dataclass(slots=True, eq=False)
class ContractMemory:
    """A contract of one argument, and the last elements that satisfied it: equal elements are not checked again."""

    number: int
    path: str
    contract: Contract
    kept: bytes = b""

    def check(self, array: Array) -> None:
        """Check the elements of an array.

        Raises: R110.
        """
        content = array.tobytes()
        if content == self.kept:
            return
        check_contract(self.contract, self.path, array)
        self.kept = content


def check_contract(contract: Contract, path: str, array: Array) -> None:
    """Check the elements of an argument.

    Raises: R110.
    """
    error = contract_breach(contract, path, array)
    if error is not None:
        error.span = error.span or here()
        raise error


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReadyCall:
    """The prepared state of calls whose arrays have equal layouts.

    `places`: each argument with its slot, -1 for one that the program does not read; `packed`: arguments whose last dimension is strided;
    `scalars`: slot (or -1), name and dtype of each number of a call.
    """

    ready: ReadyFunction
    make: Maker
    shape: RunShape
    places: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, tuple[int, ...], DType], ...]
    written: tuple[tuple[int, str], ...]
    names: tuple[str, ...]
    contracts: tuple[ContractMemory, ...]
    packed: tuple[int, ...]
    scalars: tuple[tuple[int, str, DType], ...]

    def run(self, reader: ArgumentReader, numbers: Sequence[object], out: object) -> object:
        """Run the function on the arrays of a call, and return its results.

        Raises: R110 for a broken contract, J122 for arrays that overlap what is written, and the errors of a run.
        """
        found: list[Array] = reader.arrays  # type: ignore[assignment]     # a call with anything else has a key of its own
        for memory in self.contracts:
            memory.check(found[memory.number])
        made, objects = self._results(out)
        layouts, made_layouts = list(map(layout_of, found)), list(map(layout_of, made))
        starts = [start for (start, _), *_ in (*layouts, *made_layouts)]
        if (self.written or objects is not None) and not are_apart((*found, *made), starts):
            self._refuse_overlaps(found, made if objects is not None else [])
        used, targets = found, made
        if self.packed:
            used = self._packed(found)
            layouts = list(map(layout_of, used))
        if not all(map(_has_unit_inner, made)):
            targets = [array if _has_unit_inner(array) else np.empty(array.shape, array.dtype) for array in made]
            made_layouts = list(map(layout_of, targets))
        given: list[tuple[int, Array, ArrayLayout]] = [(slot, used[number], layouts[number]) for number, slot in self.places if slot >= 0]
        slots = [slot for slot, _, _ in self.results]
        given += [one for one in zip(slots, targets, made_layouts, strict=True) if one[0] >= 0]
        symbols = self.shape.symbols if not self.scalars else self._symbols(numbers)
        try:
            self.ready.runs.run(self.shape, symbols, given)
        finally:      # what was written stays, after an error, too
            if used is not found:
                for number, _ in self.written:
                    if used[number] is not found[number]:
                        np.copyto(found[number], used[number])
        for array, target in zip(made, targets, strict=True):
            if target is not array:
                np.copyto(array, target)
        return self.ready.rebuild(objects if objects is not None else [self.make(array) for array in made])

    def _results(self, out: object) -> tuple[list[Array], list[object] | None]:
        """Return the memory of the results, and the objects of `out=` if there are some."""
        if out is None:
            made = [empty_array(shape, dtype.np) for _, shape, dtype in self.results]
            for array in made if self.ready.runs.is_watched else ():
                array.reshape(-1).view(np.uint8).fill(0xFF)      # as all memory without contents
            return made, None
        return given_results(self.ready.function.name, out, [(shape, dtype) for _, shape, dtype in self.results])

    def _refuse_overlaps(self, found: Sequence[Array], out: Sequence[Array]) -> None:
        names = ["out="] if len(out) == 1 else [f"out[{k}]" for k in range(len(out))]
        numbers = {number for number, _ in self.written}
        refuse_overlaps([*((name, found[number]) for number, name in self.written), *zip(names, out, strict=True)],
                        [(name, found[number]) for number, name in enumerate(self.names) if number not in numbers])

    def _packed(self, found: Sequence[Array]) -> list[Array]:
        """Return the arrays with copies for those whose last dimension is strided."""
        return [np.ascontiguousarray(array) if number in self.packed else array for number, array in enumerate(found)]

    def _symbols(self, numbers: Sequence[object]) -> tuple[Number, ...]:
        symbols = list(self.shape.symbols)
        for (slot, name, dtype), value in zip(self.scalars, numbers, strict=True):
            if slot >= 0:
                symbols[slot] = number_of(name, dtype, value)
        return tuple(symbols)


def numbers_of(function: TensorFunction, bound: BoundArguments, params: Collection[str] | None = None) -> dict[str, Number]:
    """Return the number of each Scalar of a function that is given, by name. `params`: only numbers in arguments of these parameters.

    Raises: J101 for what is no number, R102 for one that its dtype does not hold.
    """
    return {symbol.name: number_of(leaf.path, leaf.dtype, value)
            for symbol, leaf, value in zip(function.scalars, bound.scalars, bound.numbers, strict=True)
            if value is not None and not isinstance(value, ScalarAnnotation) and (params is None or leaf.path.partition(".")[0] in params)}


def number_of(name: str, dtype: DType, value: object) -> Number:
    """Return the number that a Scalar is in a call.

    Raises: J101 for what is no number, R102 for one that its dtype does not hold.
    """
    problem = scalar_problem(name, dtype, value)
    if problem is not None:
        raise problem
    if dtype.is_real:
        return float(value)  # type: ignore[arg-type]
    whole = int(value)  # type: ignore[call-overload]
    if not dtype.is_bool and not dtype.holds(whole):
        raise BindingError(f"argument `{name}` does not fit {dtype}", here(), found=str(whole))
    return int(whole)


def _value(node: Scalar, numbers: Mapping[str, Number]) -> Number:
    def leaf(inner: Scalar) -> Number:
        if isinstance(inner, SymbolRef):
            return numbers[inner.name]
        raise InternalError("an extent of a result depends on more than symbols and scalars", print_scalar(inner))

    return evaluate(node, leaf)


def _has_unit_inner(array: Array) -> bool:
    return array.ndim == 0 or array.size == 0 or array.shape[-1] == 1 or array.strides[-1] == array.itemsize


def _unusable(name: str, array: Array, *, written: bool) -> PtoError | None:
    if any(stride % array.itemsize for stride in array.strides):
        return ArrayBindingError(f"{name} has strides that are not whole elements", here(), found=str(array.strides),
                                 help="np.ascontiguousarray(x) makes a copy that fits")
    if not array.flags.aligned:
        return ArrayBindingError(f"{name} has elements that do not lie at multiples of their size", here(), help="x.copy() fits")
    return unwritable(name, array) if written else None
