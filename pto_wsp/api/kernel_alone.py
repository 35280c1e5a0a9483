"""Run a kernel without a workload, and compute its cost and its use of on-chip memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.kernel_cost import KernelCost, cost_table
from pto_wsp.arch.model import Arch
from pto_wsp.check.capacity import MemoryMap, capacity_errors, memory_map
from pto_wsp.errors import (
    ArgumentDTypeError,
    ArgumentKindError,
    ArgumentShapeError,
    ArityError,
    ArrayBindingError,
    MissingBodyError,
    NumberError,
    TaskFailedError,
    raise_all,
)
from pto_wsp.ir.exchange import NotTaken, array_of
from pto_wsp.ir.kernel import Kernel, Print, ScalarParamDecl, TensorParam, TileParam
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import StackType, TileType, extents_of
from pto_wsp.ops.guards import guards_of
from pto_wsp.passes.price import priced_kernel
from pto_wsp.run.failures import describe
from pto_wsp.run.kernel_interpreter import failure_of
from pto_wsp.run.prints import print_text
from pto_wsp.source import here
from pto_wsp.trace.kernel.accumulate import accumulator
from pto_wsp.trace.kernel.annotations import ConstexprAnnotation, KernelParam, SizedTileAnnotation, TensorAnnotation, TileAnnotation
from pto_wsp.trace.kernel.definition import KernelDef
from pto_wsp.trace.workload.task_call import check_size
from pto_wsp.values import dataclass
from pto_wsp.wording import counted


@dataclass(frozen=True, slots=True, eq=False)
class KernelAlone:
    """Hold a kernel and the function that specialises it, for Constexpr values and dtypes of Tensor parameters by name."""

    definition: KernelDef
    specialise: Callable[[Mapping[str, object], str], Kernel]

    @property
    def _name(self) -> str:
        return self.definition.name

    def cost(self, arch: str | Arch, given: Mapping[str, object]) -> KernelCost:
        """Return the cost of one task on an arch. `given` holds values of parameters by name.

        Raises: C115 for an arch that does not say how fast a unit is, T101 when a Constexpr or a dtype is missing.
        """
        model, ir, scalars, extents = self.priced(arch, given, "cost")
        return cost_table(priced_kernel(ir, model), model, scalars, extents)

    def priced(self, arch: str | Arch, given: Mapping[str, object],
               call: str = "card_on") -> tuple[Arch, Kernel, dict[str, int | float], dict[str, tuple[int, int]]]:
        """Return what a cost is made of: the machine, the IR for these values, numbers of Scalar and shapes of Tensor parameters.

        Raises: C115 if there is no such arch, T101 when a Constexpr or a dtype is missing.
        """
        ir, scalars, extents = self._specialised(given, f'{call}("{_name(arch)}"')
        return arch if isinstance(arch, Arch) else builtin_arch(arch), ir, scalars, extents

    def check(self, arch: str | Arch, given: Mapping[str, object]) -> MemoryMap:
        """Return the live tiles in each on-chip memory of an arch at its peak.

        Raises: K110 if a memory is too small.
        """
        ir, _, _ = self._specialised(given, f'check("{_name(arch)}"')
        model = arch if isinstance(arch, Arch) else builtin_arch(arch)
        raise_all(capacity_errors((ir,), model))
        return memory_map(ir, model)

    def _specialised(self, given: Mapping[str, object], call: str) -> tuple[Kernel, dict[str, int | float], dict[str, tuple[int, int]]]:
        """Return the IR for these values, the numbers of the Scalar parameters, and the shapes of the Tensor parameters."""
        special = {*self.definition.size_names,
                   *(p.name for p in self.definition.params if isinstance(p.annotation, ConstexprAnnotation | TensorAnnotation))}
        ir = self.specialise({name: value for name, value in given.items() if name in special}, call)
        declared = {p.name: p for p in ir.scalar_params}
        scalars: dict[str, int | float] = {}
        extents: dict[str, tuple[int, int]] = {}
        for name, value in given.items():
            array = array_of(value.data if isinstance(value, Tensor) else value)
            if name not in special:
                if name not in declared or isinstance(value, bool) or not isinstance(value, int | float):
                    raise ArityError(f"kernel `{self._name}` does not take `{name}={value!r}` here", here(),
                                     expected="values of Constexpr, Tensor and Scalar parameters: " +
                                     (", ".join((*special, *declared)) or "there are none"), found=name)
                scalars[name] = self._held(declared[name], value)
            elif isinstance(array, np.ndarray) and array.ndim == 2:
                extents[name] = (array.shape[0], array.shape[1])
        return ir, scalars, extents

    def run(self, args: Sequence[object], kwargs: Mapping[str, object]) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], ...] | None:
        """Run the kernel on arrays and return its outputs.

        Raises: T101, T102, T201 for arrays that do not match; R101 for a piece outside its region.
        """
        params = self.definition.params
        names = [p.name for p in params]
        given: dict[str, object] = dict(zip(names, args, strict=False))
        if len(args) > len(names) or given.keys() & kwargs.keys() or kwargs.keys() - set(names):
            raise ArityError(f"kernel `{self._name}` does not take these arguments", here(), expected=", ".join(names),
                             found=f"{len(args)} positional arguments and {', '.join(kwargs) or 'no names'}")
        given |= kwargs
        lacking = [p.name for p in params if p.name not in given and not (
            isinstance(p.annotation, TileAnnotation | SizedTileAnnotation) and not p.annotation.role.reads)]
        if lacking:
            raise ArityError(f"kernel `{self._name}` lacks arguments", here(), expected=f"{self._name}.run({', '.join(names)})",
                             found=f"without {', '.join(lacking)}", help="arrays for tiles and tensors, numbers for scalars; an Out tile "
                             "may be left out")
        special = {p.name: given[p.name] for p in params if isinstance(p.annotation, ConstexprAnnotation | TensorAnnotation)}
        sizes = self._sizes(given)
        ir = self.specialise({**special, **sizes}, "run(")
        if not ir.has_meaning:
            raise MissingBodyError(f"kernel `{self._name}` has no Python body to run", here(),
                                   found=f"bodies of its own: {', '.join(own.form.value for own in ir.bodies)}",
                                   help="write the Python body, which is what the others are held to; or run it in a workload on cpu_sim")
        declared = self.definition.sized(sizes).params
        arrays = {p.name: self._run_argument(node, given.get(p.name)) for p in declared if (node := _whole(p, ir)) is not None}
        totals = self._totals(given, arrays)
        failed = failure_of(ir, _arguments(declared, arrays), self._show)
        if failed is not None:
            guard = guards_of(ir)[failed.guard]
            said = describe(guard, failed.fault)
            raise TaskFailedError(f"kernel `{self._name}` failed: {said.what}", guard.span, expected=said.expected, found=said.found)
        if totals:
            self._combine(ir, arrays, totals)
        outputs = (totals.get(p.name, arrays[p.name]) for p in declared if isinstance(p.annotation, TileAnnotation | TensorAnnotation)
                   and p.annotation.role.writes)
        arrays_out = tuple(a for a in outputs if isinstance(a, np.ndarray))
        return arrays_out[0] if len(arrays_out) == 1 else arrays_out or None

    def _totals(self, given: Mapping[str, object], arrays: dict[str, npt.NDArray[Any] | int | float]) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays given for Acc parameters, by name, and put arrays for the task's own parts in their place in `arrays`."""
        totals: dict[str, npt.NDArray[Any]] = {}
        for param in self.definition.params:
            array = arrays.get(param.name)
            if param.name in self._accumulating and given.get(param.name) is not None and isinstance(array, np.ndarray):
                totals[param.name] = array
                arrays[param.name] = np.zeros_like(array)
        return totals

    @property
    def _accumulating(self) -> dict[str, str]:
        """How each Acc parameter combines, by name."""
        return {p.name: p.annotation.combine for p in self.definition.params
                if isinstance(p.annotation, TileAnnotation | SizedTileAnnotation) and p.annotation.combine}

    def _combine(self, ir: Kernel, arrays: Mapping[str, npt.NDArray[Any] | int | float], totals: Mapping[str, npt.NDArray[Any]]) -> None:
        """Combine the task's own parts with the arrays given for Acc parameters, in place."""
        declared = [replace(param, combine=self._accumulating[param.name]) for param in ir.memory_params
                    if isinstance(param, TileParam) and param.name in totals]
        combining = accumulator(self._name, declared)
        values = {param.name: _rank2(array) for param, array in zip(
            combining.memory_params, (*(arrays[p.name] for p in declared), *(totals[p.name] for p in declared)), strict=True)
            if isinstance(array, np.ndarray)}
        assert failure_of(combining, values, self._show) is None

    def _sizes(self, given: Mapping[str, object]) -> dict[str, int]:
        """Return the number of each name in the tile types, from the arrays.

        Raises: T101 for a size that no array tells, T201 for one that two arrays tell differently.
        """
        sizes: dict[str, int] = {}
        for param in self.definition.params:
            if isinstance(param.annotation, SizedTileAnnotation) and given.get(param.name) is not None:
                tile, value = param.annotation.type, given[param.name]
                array: Any = value.data if isinstance(value, Tensor) else value
                taken = array_of(array)
                shape = np.shape(array) if isinstance(taken, NotTaken) else taken.shape
                if len(shape) != len(tile.extents) and (len(tile.extents) > 2 or len(shape) != 1):
                    raise ArgumentShapeError(f"kernel `{self._name}`: argument `{param.name}` has {counted(len(shape), 'dimension')}",
                                             here(), expected=repr(param.annotation), found=str(list(shape)))
                for name, size in zip(tile.extents, (1, *shape)[-len(tile.extents):], strict=True):
                    if isinstance(name, str):
                        check_size(self.definition, param, name, size, sizes, here())
        for name in self.definition.size_names:
            if name not in sizes:
                raise ArityError(f"kernel `{self._name}`: no array tells the size `{name}`", here(),
                                 expected=", ".join(f"{p.name}: {p.annotation!r}" for p in self.definition.params),
                                 found=", ".join(given) or "no arguments", help="pass an array for the Out tile that has it")
        return sizes

    def _show(self, stmt: Print, value: npt.NDArray[Any]) -> None:
        print(print_text(self._name, stmt, value), end="")

    def _held(self, param: ScalarParamDecl, value: object) -> int | float:
        """Return a number as the value of a Scalar parameter.

        Raises: T102 for one that does not fit its dtype, T209 for what is no number.
        """
        if not isinstance(value, bool | int | float | np.number):
            raise NumberError(f"kernel `{self._name}`: argument `{param.name}` is a number", here(), expected=str(param.dtype),
                              found=repr(value))
        if not param.dtype.is_float and (isinstance(value, float | np.floating) or not param.dtype.holds(int(value))):
            raise ArgumentDTypeError(f"kernel `{self._name}`: argument `{param.name}` does not fit {param.dtype}", here(),
                                     expected=str(param.dtype), found=repr(value))
        return float(value) if param.dtype.is_float else int(value)

    def _run_argument(self, param: TileParam | TensorParam | ScalarParamDecl, value: object) -> npt.NDArray[Any] | int | float:
        """Return the array or number of a parameter; the type of a tile may have more than two axes."""
        if isinstance(param, ScalarParamDecl):
            return self._held(param, value)
        if value is None and isinstance(param, TileParam) and not param.role.reads:
            return np.zeros(extents_of(param.type), param.type.dtype.np)
        array = array_of(value.data if isinstance(value, Tensor) else value)
        if isinstance(array, NotTaken):
            raise ArgumentKindError(f"kernel `{self._name}`: argument `{param.name}` is {array.what}", here(), expected=array.expected,
                                    found=array.found, help=array.help, notes=array.notes)
        dtype = param.dtype
        if array.dtype != dtype.np:
            raise ArgumentDTypeError(f"kernel `{self._name}`: argument `{param.name}` has the wrong dtype", here(),
                                     expected=str(dtype), found=str(array.dtype))
        if isinstance(param, TileParam) and not _fits(array.shape, param.type):
            raise ArgumentShapeError(f"kernel `{self._name}`: argument `{param.name}` has the wrong shape", here(),
                                     expected=repr(param.type), found=str(list(array.shape)))
        if param.role.writes and not array.flags.writeable:
            raise ArrayBindingError(f"kernel `{self._name}`: argument `{param.name}` is written and its array is read-only", here(),
                                    help="give a writable array")
        return array


def _name(arch: object) -> str:
    return arch.name if isinstance(arch, Arch) else str(arch)


def _whole(param: KernelParam, ir: Kernel) -> TileParam | TensorParam | ScalarParamDecl | None:
    """Return a declared parameter as in kernel IR, but a tile of any rank as one parameter; None for a Constexpr."""
    match param.annotation:
        case TileAnnotation(role, tile):
            return TileParam(param.name, role, tile, param.span)
        case _:
            return next((node for node in ir.params if node.name == param.name), None)


def _arguments(params: Sequence[KernelParam], arrays: Mapping[str, npt.NDArray[Any] | int | float]
               ) -> dict[str, npt.NDArray[Any] | int | float]:
    """Return the arguments of kernel IR: of a tile of rank 3 and more, a view of its array for each tile."""
    found: dict[str, npt.NDArray[Any] | int | float] = {}
    for param in params:
        value = arrays.get(param.name)
        if isinstance(param.annotation, TileAnnotation) and isinstance(param.annotation.type, StackType) and isinstance(value, np.ndarray):
            found |= {name: value[index] for name, index in zip(param.parts, param.annotation.type.indices, strict=True)}
        elif value is not None:
            found[param.name] = _rank2(value) if isinstance(value, np.ndarray) else value
    return found


def _rank2(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array[None, :] if array.ndim == 1 else array


def _fits(shape: tuple[int, ...], tile: TileType) -> bool:
    """Tell whether an array of this shape can be the tile or the valid part of it."""
    rows_cols = (1, *shape) if len(shape) == 1 else shape
    *leading, rows, cols = extents_of(tile)
    return [*rows_cols[:-2]] == leading and len(rows_cols) >= 2 and rows_cols[-2] <= rows and rows_cols[-1] <= cols
