"""A printed function on tensors: a Python module of kernels, a workload and `run`, which is executed when it is first used."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from pto_wsp.errors import LayoutError
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import Const, Number, SymbolRef
from pto_wsp.ir.tensor import Injective, Monotone, Tensor
from pto_wsp.ir.tensor_function import Array
from pto_wsp.ir.tensor_layout import made_at
from pto_wsp.source import Span, here, map_lines
from pto_wsp.values import dataclass

_CONTRACTS = {Contract.INJECTIVE: Injective, Contract.MONOTONE: Monotone}


@dataclass(frozen=True, slots=True)
class ModuleTensor:
    """A tensor of the module that a run binds, by its name: an array that comes in, or a result.

    `path`: how the caller names it. `variable`: the parameter of the workload's function that the tensor is. `layout`: its layout as text.
    """

    name: str
    path: str
    array: Array
    variable: str
    is_result: bool = False
    layout: str = ""


@dataclass(slots=True, eq=False)
class EmittedModule:
    """A function as a module of kernels and a workload. The module is executed when it is first needed.

    `groups`: by the name of each kernel, in the order in which they are printed, the name of its group, or of what it makes.
    """

    name: str
    source: str
    bound: tuple[ModuleTensor, ...]
    symbols: tuple[SymbolRef, ...]
    scalars: tuple[SymbolRef, ...]
    groups: Mapping[str, str]
    file: str
    spans: Mapping[int, Span]
    _names: dict[str, str]
    mesh: Mesh | None = None
    _namespace: dict[str, Any] = field(default_factory=dict)

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the tensors that hold the results, in their order."""
        return tuple(one.name for one in self.bound if one.is_result)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the tensors that the caller's arrays are bound to, in the order of the function's parameters."""
        return tuple(one.name for one in self.bound if not one.is_result)

    @property
    def spelled(self) -> Mapping[str, str]:
        """The module's names of the function's symbols and scalars."""
        return self._names

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The names of the module, which has been executed."""
        if not self._namespace:
            linecache.cache[self.file] = (len(self.source), None, self.source.splitlines(keepends=True), self.file)
            map_lines(self.file, self.spans)
            self._namespace["__name__"] = self.file
            exec(compile(self.source, self.file, "exec"), self._namespace)
        return self._namespace

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels, in the order in which they are printed."""
        return tuple(self.namespace[name] for name in self.groups)

    def run(self, *arrays: object) -> object:
        """Compile and run the function on arrays; returns the results, one or a tuple."""
        return self.namespace["run"](*arrays)

    def workload(self, tensors: Mapping[str, Tensor] | None = None, numbers: Mapping[str, Number] | None = None) -> Any:
        """Return the workload on tensors by the paths of parameters and the names of results; one that is not given is declared.

        `numbers`: of scalars, by name. A symbol is a number where the tensors that are given say it, and else a `Symbol` that a run binds
        by its name. A result that is not given has an array where its size is known so.
        """
        given = dict(tensors or {})
        found = {one.name: given[key] for one in self.bound for key in (one.path, one.name) if key in given}
        sizes: dict[int, Number] = {scalar.id: numbers[scalar.name] for scalar in self.scalars if numbers and scalar.name in numbers}
        for one in self.bound:
            if one.name in found:
                for extent, declared in zip(one.array.shape, found[one.name].sizes, strict=True):
                    if isinstance(extent, SymbolRef) and isinstance(declared, Const):
                        sizes.setdefault(extent.id, int(declared.value))
        declared_symbols = self.namespace["symbols"]()
        values = {symbol.id: sizes.get(symbol.id, declared_symbols[self._names[symbol.name]]) for symbol in (*self.symbols, *self.scalars)}
        declared_tensors = self.namespace["tensors"](*values.values())
        for one in self.bound:
            declared = declared_tensors[one.name]
            if one.name in found:
                declared_tensors[one.name] = _with_contracts(_with_layout(found[one.name], declared, self.mesh), one.array)
            elif found and one.is_result and all(isinstance(size, Const) for size in declared.sizes):
                declared_tensors[one.name] = Tensor(np.zeros([int(n) for n in declared.shape], one.array.dtype.np), name=one.name,
                                                    layout=declared.layout)
        arguments = [declared_tensors[one.name] for one in self.bound]
        return self.namespace[self.name](*arguments, *values.values())


def _with_layout(tensor: Tensor, declared: Tensor, mesh: Mesh | None) -> Tensor:
    """Return the tensor to bind for a declared tensor of a function over ranks: a given tensor without a layout gets the declared layout.

    Raises: M101 for another layout.
    """
    if declared.layout is None or mesh is None:
        return tensor
    if tensor.layout is None:
        return Tensor(tensor.data, tensor.shape, tensor.dtype, tensor.name or None, declared.layout)
    found = tensor.layout.named_on(mesh)
    if (found.dist, found.partial) != (declared.layout.dist, declared.layout.partial):
        raise LayoutError(f"`{declared.name}` is given with another layout", here(), expected=repr(declared.layout), found=repr(found),
                          also=made_at(tensor.layout, "it was made here"), help="relayout the result in the function, or give a Tensor of "
                          "that layout")
    return tensor


def _with_contracts(tensor: Tensor, array: Array) -> Tensor:
    for contract in array.contracts:
        if contract not in tensor.ref.contracts:
            tensor = _CONTRACTS[contract](tensor)
    return tensor
