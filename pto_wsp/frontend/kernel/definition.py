"""A kernel as its author declared it, and its tracing for one specialisation.

>>> KernelDef.from_function(double, {}).trace({}, {})
Kernel(name='double', …)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import TypeVar, assert_never

from pto_wsp.errors import ArgumentKindError, ArityError, DepthError, KernelSignatureError, OutNeverStoredError, raise_all
from pto_wsp.expr import kernel as k
from pto_wsp.frontend.kernel.annotations import (
    ConstexprAnnotation,
    KernelParam,
    ScalarAnnotation,
    TensorAnnotation,
    TileAnnotation,
    resolve_params,
)
from pto_wsp.frontend.kernel.own_body import check_names, constants_of, read_bodies
from pto_wsp.frontend.kernel.tile_value import TensorParamRef, TileParamRef
from pto_wsp.frontend.kernel.trace import KernelTrace
from pto_wsp.ops.tracing import activate
from pto_wsp.source import Span, definition_span, here, repeated
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import ParamScalar
from pto_wsp.types.symbolic import Symbolic
from pto_wsp.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class KernelDef:
    """A kernel's function, name, parameters in order (Constexpr ones included) and the place of its `def`."""

    function: Callable[..., object] = field(repr=False)
    name: str
    params: tuple[KernelParam, ...]
    span: Span = field(repr=False)
    bodies: tuple[k.OwnBody, ...] = ()
    instructions: bool = False

    @staticmethod
    def from_function(function: Callable[..., object], caller_locals: Mapping[str, object],
                      options: Mapping[str, object] = MappingProxyType({}), *, instructions: bool = False) -> KernelDef:
        """Return the declaration of a kernel. `caller_locals`: local names around the `def`, for annotations that are text;
        `options`: what the decorator was given; `instructions`: its body holds instructions alone.

        Raises: K101, for all parameters that are wrong together; K107 for bodies of its own that cannot be used.
        """
        if not inspect.isfunction(function) or inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise KernelSignatureError("a kernel is a plain function", here(),
                                       expected="def name(x: In[...], y: Out[...]): ...",
                                       found=repr(function))
        params = resolve_params(function, caller_locals)
        bodies = read_bodies(function, options)
        check_names(function.__name__, params, bodies)
        return KernelDef(function, function.__name__, params, definition_span(function.__code__), bodies, instructions)

    def trace(self, constexprs: Mapping[str, object], tensor_dtypes: Mapping[str, DType]) -> k.Kernel:
        """Run the body once and return it as kernel IR.

        `constexprs`: the value of each Constexpr parameter; `tensor_dtypes`: the dtype of the view bound to each Tensor
        parameter. Raises: K102 to K106, T1xx to T3xx at the lines of the body; what the body itself raises goes through
        unchanged.
        """
        trace = KernelTrace(self.name, [param.name for param in self.params], instructions=self.instructions)
        declared: list[k.Param] = []
        arguments: list[object] = []
        for param in self.params:
            node, argument = self._argument(trace, param, constexprs, tensor_dtypes)
            if node is not None:
                declared.append(node)
            arguments.append(argument)
        with activate(trace):
            try:
                result = self.function(*arguments)
            except RecursionError as problem:
                again = repeated(problem)
                raise DepthError(f"kernel `{self.name}` goes deeper than Python's recursion limit",
                                 self.span if again is None else again[1],
                                 found=None if again is None else f"`{again[0]}` calls itself",
                                 help="a kernel's body is traced once: recursion needs a Python number that ends it") from None
            if result is not None:
                raise KernelSignatureError(f"kernel `{self.name}` returns a value", self.span, expected="no return value",
                                           found=repr(result), help="add an Out parameter and pto.store the value to it")
            body = trace.body()
        bodies = tuple(own if own.form is k.BodyForm.CPP_TU else replace(own, constants=constants_of(self.name, constexprs))
                       for own in self.bodies)
        kernel = k.Kernel(self.name, tuple(declared), body, self.span, bodies)
        check_stored(kernel, trace.stored)
        return kernel

    def _argument(self, trace: KernelTrace, param: KernelParam, constexprs: Mapping[str, object],
                  tensor_dtypes: Mapping[str, DType]) -> tuple[k.Param | None, object]:
        """Return the IR parameter (None for a Constexpr) and what the body gets for it."""
        match param.annotation:
            case TileAnnotation(role, tile_type):
                tile = k.TileParam(param.name, role, tile_type, param.span)
                return tile, TileParamRef(trace, tile)
            case TensorAnnotation(role):
                tensor = k.TensorParam(param.name, role, self._given(param, tensor_dtypes), param.span)
                return tensor, TensorParamRef(tensor)
            case ScalarAnnotation(dtype):
                return k.ScalarParamDecl(param.name, dtype, param.span), Symbolic(ParamScalar(param.name, dtype))
            case ConstexprAnnotation(kind):
                value = self._given(param, constexprs)
                if not isinstance(value, kind) and not (kind is float and type(value) is int):
                    raise ArgumentKindError(f"kernel `{self.name}`: Constexpr `{param.name}` has the wrong type", here(),
                                            expected=kind.__name__, found=f"{value.__class__.__name__}: {value!r}")
                return None, value
            case _:
                assert_never(param.annotation)

    def _given(self, param: KernelParam, values: Mapping[str, T]) -> T:
        if param.name not in values:
            raise ArityError(f"kernel `{self.name}`: parameter `{param.name}` is missing", here(),
                             expected=repr(param.annotation))
        return values[param.name]


def check_stored(kernel: k.Kernel, stored: Collection[str]) -> None:
    """Raise K102 for Out parameters of a kernel with a meaning that are not among those stored."""
    if kernel.has_meaning:
        raise_all([OutNeverStoredError(f"kernel `{kernel.name}`: Out parameter `{p.name}` is never stored", p.span,
                                       help=f"pto.store({p.name}, value), or drop the parameter")
                   for p in kernel.memory_params if p.role is k.Role.OUT and p.name not in stored])
