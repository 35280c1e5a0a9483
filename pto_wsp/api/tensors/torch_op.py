"""Register a jit function as an operator of PyTorch, which `torch.compile` and `torch.export` keep as one node.

>>> op = f.as_torch_op("mine::f")           # also torch.ops.mine.f
>>> op(x, w)
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pto_wsp.errors import InternalError, MissingLibraryError, TensorSignatureError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, SymbolRef, print_scalar
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.ir.tensor_type import TensorType
from pto_wsp.source import here
from pto_wsp.trace.kernel.annotations import ScalarAnnotation
from pto_wsp.trace.tensor.signature import TensorParameter, TensorSignature

_CONSTANTS: Mapping[object, str] = {int: "int", float: "float", bool: "bool", str: "str",
                                    "int": "int", "float": "float", "bool": "bool", "str": "str"}


class _Traceable(Protocol):
    """A jit function."""

    def __call__(self, *args: Any) -> Any: ...

    def trace(self, *args: Any) -> TensorFunction:
        """Return the function in the IR."""


def register(called: _Traceable, function: Callable[..., object], signature: TensorSignature, name: object) -> Any:
    """Define and return the operator, in place of an earlier one of this name.

    Raises: C120 without PyTorch, J101 for a name that is none, and for parameters that an operator does not have.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        raise MissingLibraryError("an operator of PyTorch needs PyTorch, which is not loaded", here(), help="import torch first")
    if not isinstance(name, str) or not all(part.isidentifier() for part in name.split("::")) or name.count("::") != 1:
        raise TensorSignatureError("as_torch_op takes the operator's name", here(), expected='"namespace::name"', found=repr(name)[:80])
    plain = inspect.signature(function)
    kinds = [_kind(signature.name, param, plain.parameters[param.name]) for param in signature.params]
    traced = called.trace()
    n_results = len(traced.results)
    returns = "()" if n_results == 0 else "Tensor" if n_results == 1 else f"({', '.join(['Tensor'] * n_results)})"
    params = ", ".join(f"{kind} {param.name}{_default(param.default)}" for param, kind in zip(signature.params, kinds, strict=True))
    if name in _LIBRARIES:
        _LIBRARIES[name]._destroy()      # a cell of a notebook that runs again defines the operator anew
    library = _LIBRARIES[name] = torch.library.Library(name.partition("::")[0], "FRAGMENT")
    library.define(f"{name.partition('::')[2]}({params}) -> {returns}", tags=(torch.Tag.pt2_compliant_tag,))

    def run(*args: Any) -> Any:
        results = called(*args)
        return results if n_results < 2 else tuple(_flat(results))

    def shapes(*args: Any) -> Any:
        found = _sizes(signature, args)
        made = [torch.empty([_extent(n, found) for n in view.shape], dtype=_torch_dtype(torch, view.dtype)) for view in traced.results]
        return None if n_results == 0 else made[0] if n_results == 1 else tuple(made)

    def forward_only(*args: Any) -> Any:
        if torch.is_grad_enabled() and any(getattr(arg, "requires_grad", False) for arg in args):
            raise TensorSignatureError(f"operator `{name}` has no gradient, and an argument requires gradients", here(),
                                       expected="tensors outside of any graph of gradients",
                                       help="x.detach(), or torch.no_grad() around the call")
        with torch._C._AutoDispatchBelowAutograd():
            return op(*args)

    library.impl(name.partition("::")[2], run, "CPU")
    library.impl(name.partition("::")[2], forward_only, "Autograd")      # else torch.compile would train with gradients that are none
    torch.library.register_fake(name, shapes, lib=library)
    op = getattr(getattr(torch.ops, name.partition("::")[0]), name.partition("::")[2])
    return op


_LIBRARIES: dict[str, Any] = {}      # by name: an operator goes with its library


def _flat(results: Any) -> list[Any]:
    if isinstance(results, dict):
        results = list(results.values())
    return [leaf for item in results for leaf in _flat(item)] if isinstance(results, tuple | list) else [results]


def _kind(function: str, param: TensorParameter, parameter: inspect.Parameter) -> str:
    """Return the type of a parameter in the operator's schema."""
    leaf = param.declared.leaf
    if isinstance(leaf, TensorType):
        return f"Tensor({_alias(param.name)}!)" if leaf.written else "Tensor"
    if isinstance(leaf, ScalarAnnotation):
        return "bool" if leaf.dtype.is_bool else "float" if leaf.dtype.is_real else "int"
    constant = _CONSTANTS.get(parameter.annotation) if isinstance(parameter.annotation, type | str) else None
    if constant is None:
        raise TensorSignatureError(f"`{function}`: parameter `{param.name}` is none that an operator of PyTorch has", here(),
                                   expected='Tensor["t", 64, DType.F32], Scalar[...], int, float, bool or str',
                                   found=str(parameter.annotation), help="wrap the function in one that takes the tensors one by one")
    return constant


def _alias(name: str) -> str:
    return f"w_{name}"


def _default(default: object) -> str:
    if default is inspect.Parameter.empty:
        return ""
    value = getattr(default, "default", default)      # the first value of a Tunable
    return f"={value!r}" if isinstance(value, str) else f"={value}"


def _sizes(signature: TensorSignature, args: Sequence[Any]) -> dict[str, Any]:
    """Return the number, or the symbol of PyTorch, for each symbol."""
    found: dict[str, Any] = {}
    for param, value in zip(signature.params, args, strict=False):
        if isinstance(param.declared.leaf, TensorType):
            for extent, number in zip(param.declared.leaf.extents, value.shape, strict=True):
                if isinstance(extent, str):
                    found.setdefault(extent, number)
        elif isinstance(param.declared.leaf, ScalarAnnotation):
            found[param.name] = value
    return found


def _extent(node: Scalar, sizes: Mapping[str, Any]) -> Any:
    match node:
        case Const(value):
            return int(value)
        case SymbolRef(name):
            return sizes[name]
        case Binary(op, lhs, rhs) if op in _OPERATORS:
            return _OPERATORS[op](_extent(lhs, sizes), _extent(rhs, sizes))
        case _:
            raise InternalError("an extent of a result has no form for PyTorch", print_scalar(node))


_OPERATORS: Mapping[Op, Callable[[Any, Any], Any]] = {
    Op.ADD: lambda a, b: a + b, Op.SUB: lambda a, b: a - b, Op.MUL: lambda a, b: a * b, Op.FLOORDIV: lambda a, b: a // b,
    Op.MOD: lambda a, b: a % b, Op.MIN: min, Op.MAX: max,
}


def _torch_dtype(torch: Any, dtype: DType) -> Any:
    named = (getattr(torch, name) for name in sorted(vars(torch)))
    return next(found for found in named if isinstance(found, torch.dtype) and DType.of(found) is dtype)
