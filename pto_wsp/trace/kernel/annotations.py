"""Define the annotations of kernel parameters: In, Out and InOut of Tile or Tensor, Acc of Tile, Scalar, Constexpr.

>>> In[Tile[16, 128, DType.F32]]
In[Tile[16, 128, f32]]
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeAlias

from pto_wsp.calls import NoValues
from pto_wsp.errors import KernelSignatureError, TensorSignatureError, raise_all
from pto_wsp.ir.body_value import BodyValue
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import COMBINES, Param, Role, ScalarParamDecl, TensorParam, TileParam
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tensor_type import TensorType
from pto_wsp.ir.tile import SizedTile, StackType, Tile, TileType, fixed_tile, part_name
from pto_wsp.source import UNKNOWN, Span, here, parameter_span
from pto_wsp.values import dataclass

_FUNCTIONS = dict(zip(COMBINES, (sum, max, min, math.prod), strict=True))     # Python's functions of the same meaning
_EXPECTED = "In, Out or InOut of Tile[rows, cols, dtype] or Tensor; Acc of Tile; Scalar[dtype]; Constexpr[type]"


@dataclass(frozen=True, slots=True, repr=False)
class TileAnnotation:
    """A tile that the kernel reads, writes, or both. `combine`: of `Acc`, as in `TileParam`; the body writes its own part, so it is Out."""

    role: Role
    type: TileType
    combine: str = ""

    def __repr__(self) -> str:
        return _tile_text(self)


@dataclass(frozen=True, slots=True, repr=False)
class SizedTileAnnotation:
    """A tile of the size of the view that is bound to it: one specialisation per size."""

    role: Role
    type: SizedTile
    combine: str = ""

    def __repr__(self) -> str:
        return _tile_text(self)


@dataclass(frozen=True, slots=True, repr=False)
class TensorAnnotation:
    """A region of global memory, with the dtype of the bound view."""

    role: Role

    def __repr__(self) -> str:
        return f"{self.role.value}[Tensor]"


@dataclass(frozen=True, slots=True, repr=False)
class ScalarAnnotation:
    """A number that each task supplies."""

    dtype: DType

    def __repr__(self) -> str:
        return f"Scalar[{self.dtype}]"


@dataclass(frozen=True, slots=True, repr=False)
class ConstexprAnnotation:
    """A Python value known at trace time: one specialisation per value."""

    kind: type

    def __repr__(self) -> str:
        return f"Constexpr[{self.kind.__name__}]"


Annotation: TypeAlias = TileAnnotation | SizedTileAnnotation | TensorAnnotation | ScalarAnnotation | ConstexprAnnotation


class In(NoValues, BodyValue):
    """`In[Tile[…]]` or `In[Tensor]`: the kernel reads the argument."""

    def __class_getitem__(cls, item: object) -> Annotation:
        return _memory(Role.IN, item)


class Out(NoValues, BodyValue):
    """`Out[Tile[…]]` or `Out[Tensor]`: the kernel writes the argument; elements it does not store keep their values."""

    def __class_getitem__(cls, item: object) -> Annotation:
        return _memory(Role.OUT, item)


class InOut(NoValues, BodyValue):
    """`InOut[Tile[…]]` or `InOut[Tensor]`: the kernel reads and writes the argument; `InOut[Tensor["t", 64, DType.F32]]`: a `jit` does."""

    def __class_getitem__(cls, item: object) -> Annotation | TensorType:
        return item.writable() if isinstance(item, TensorType) else _memory(Role.INOUT, item)


class Acc(NoValues, BodyValue):
    """`Acc[Tile[…]]`: what the kernel stores is added to what the argument holds; `Acc[Tile[…], "max"]` (min, prod) combines it otherwise.

    Tasks that accumulate into the same elements need no order: the parts are combined one after the other, in program order.
    """

    def __class_getitem__(cls, item: object) -> Annotation:
        tile, how = item if isinstance(item, tuple) and len(item) == 2 else (item, COMBINES[0])
        how = next((word for word, function in _FUNCTIONS.items() if how is function), how)
        shown = f"Acc[{', '.join(_shown(each) for each in (item if isinstance(item, tuple) else (item,)))}]"
        message, expected, help = "", "Acc[Tile[rows, cols, dtype]]", None
        if not isinstance(tile, TileType | SizedTile) or not isinstance(how, str) or how not in COMBINES:
            message = "Acc takes a Tile, and how to combine"
            expected += f", or Acc[Tile[…], how] where how is {_quoted(COMBINES)}"
            help = "a region has no size of its own to add: take a Tile and bind it piece by piece" if tile is Tensor else None
        elif tile.dtype.is_bool or tile.dtype.is_storage:
            message, expected = f"Acc takes no {tile.dtype}: nothing is added up in it", "a dtype of numbers"
            help = "count in DType.I32: pto.cast(mask, DType.I32)" if tile.dtype.is_bool else (
                "add up in DType.F32, and cast the result in a kernel of its own")
        elif isinstance(tile, StackType) or (isinstance(tile, SizedTile) and len(tile.extents) > 2):
            message, help = "Acc takes a tile of two dimensions", "bind the tiles of the leading dimensions one by one"
        if message or not isinstance(tile, TileType | SizedTile) or not isinstance(how, str):
            raise KernelSignatureError(message, here(), expected=expected, found=shown, help=help)
        return TileAnnotation(Role.OUT, tile, how) if isinstance(tile, TileType) else SizedTileAnnotation(Role.OUT, tile, how)


class Scalar(NoValues, BodyValue):
    """`Scalar[dtype]`: a number that each task supplies."""

    def __class_getitem__(cls, item: object) -> Annotation:
        return scalar_annotation(item)


class Constexpr(NoValues):
    """`Constexpr[int]`: a Python value known at trace time."""

    def __class_getitem__(cls, item: object) -> Annotation:
        if not isinstance(item, type):
            raise KernelSignatureError("Constexpr takes a Python type", here(), expected="Constexpr[type], e.g. Constexpr[int]",
                                       found=f"Constexpr[{_shown(item)}]")
        return ConstexprAnnotation(item)


@dataclass(frozen=True, slots=True)
class KernelParam:
    """A parameter as declared."""

    name: str
    annotation: Annotation
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    @property
    def is_long(self) -> bool:
        """Whether it is a tile of rank 3 or more."""
        match self.annotation:
            case TileAnnotation(_, tile):
                return isinstance(tile, StackType)
            case SizedTileAnnotation(_, tile):
                return len(tile.extents) > 2
            case _:
                return False

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parameters in kernel IR: one for each tile of a stack, else the name itself."""
        match self.annotation:
            case TileAnnotation(_, StackType() as stack):
                return tuple(part_name(self.name, index) for index in stack.indices)
            case _:
                return (self.name,)


def resolve_params(function: Callable[..., object], caller_locals: Mapping[str, object]) -> tuple[KernelParam, ...]:
    """Return the declared parameters of a kernel in order; annotations given as text are evaluated in the function's scope.

    `caller_locals`: local names of the scope around the `def`.
    Raises: K101 for all wrong parameters together.
    """
    code = function.__code__
    params: list[KernelParam] = []
    errors: list[KernelSignatureError] = []
    for name, parameter in inspect.signature(function).parameters.items():
        span = parameter_span(code, name)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            errors.append(KernelSignatureError(f"kernel `{function.__name__}`: `*{name}` takes any number of arguments", span,
                                               expected="a parameter each, by name"))
        elif parameter.default is not parameter.empty:
            errors.append(KernelSignatureError(f"kernel `{function.__name__}`: parameter `{name}` has a default", span,
                                               help="give the value where the kernel is called"))
        elif parameter.annotation is parameter.empty:
            errors.append(KernelSignatureError(f"kernel `{function.__name__}`: parameter `{name}` has no annotation", span,
                                               expected=_EXPECTED))
        else:
            resolved = _resolve(function, name, parameter.annotation, caller_locals, span)
            if isinstance(resolved, KernelSignatureError):
                errors.append(resolved)
            else:
                params.append(KernelParam(name, resolved, span))
    raise_all(errors)
    raise_all([KernelSignatureError(f"kernel `{function.__name__}`: `{name}` names a parameter and a size of `{param.name}`", param.span,
                                    help="rename one of them")
               for param in params if isinstance(param.annotation, SizedTileAnnotation)
               for name in param.annotation.type.names if any(other.name == name for other in params)])
    return tuple(params)


def scalar_annotation(item: object) -> ScalarAnnotation:
    """Return the annotation `Scalar[item]`.

    Raises: K101 for a value that is not a dtype, and for a storage-only dtype.
    """
    dtype = DType.of(item)
    if dtype is not None and not dtype.is_storage:
        return ScalarAnnotation(dtype)
    message, usual = ("Scalar takes a dtype", DType.I32) if dtype is None else (
        f"Scalar takes no {dtype}: it is stored and cast, never computed on", DType.F32)
    raise KernelSignatureError(message, here(), expected=f"Scalar[dtype], e.g. Scalar[DType.{usual.name}]",
                               found=f"Scalar[{_shown(item) if dtype is None else dtype}]")


def annotation_of(param: Param) -> Annotation:
    """Return the annotation of a parameter of a kernel's IR.

    Raises: K101 for a tile and a dtype that no kernel takes.
    """
    match param:
        case TileParam(_, role, tile, combine=combine):
            return TileAnnotation(role, fixed_tile(tile.shape, tile.dtype), combine)
        case TensorParam(_, role):
            return TensorAnnotation(role)
        case ScalarParamDecl(_, dtype):
            return scalar_annotation(dtype)


def _resolve(function: Callable[..., object], name: str, annotation: object, caller_locals: Mapping[str, object],
             span: Span) -> Annotation | KernelSignatureError:
    where = f"kernel `{function.__name__}`: parameter `{name}`"
    if isinstance(annotation, str):
        text = annotation
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        scope = {**caller_locals, **{free: cell.cell_contents for free, cell in cells if _is_filled(cell)}}
        try:
            annotation = eval(text, function.__globals__, scope)
        except KernelSignatureError as mistake:
            return KernelSignatureError(f"{where}: {mistake.message}", span, expected=mistake.expected, found=mistake.found,
                                        help=mistake.help)
        except Exception as mistake:   # user code may raise anything; the exception is the finding
            return KernelSignatureError(f"{where} has an annotation that cannot be evaluated", span, expected=_EXPECTED,
                                        found=f"{text}: {type(mistake).__name__}: {mistake}")
    if isinstance(annotation, Annotation):
        return annotation
    role = "In[...], Out[...] or InOut[...]"
    wrap = isinstance(annotation, TileType | SizedTile) or annotation in (Tile, Tensor)
    return KernelSignatureError(f"{where} has an annotation that kernels do not know", span, expected=_EXPECTED,
                                found=_shown(annotation),
                                help=f"say what the kernel does with it: {role} around {_shown(annotation)}" if wrap else None)


def _is_filled(cell: object) -> bool:
    try:
        cell.cell_contents  # type: ignore[attr-defined]  # noqa: B018
    except ValueError:
        return False
    return True


def _memory(role: Role, item: object) -> Annotation:
    if isinstance(item, TileType):
        return TileAnnotation(role, item)
    if isinstance(item, SizedTile):
        return SizedTileAnnotation(role, item)
    if item is Tensor:
        return TensorAnnotation(role)
    if isinstance(item, TensorType):
        raise TensorSignatureError(f"{role.value} takes no type of a whole tensor", here(), found=f"{role.value}[{item!r}]",
                                   expected=f"{item!r} alone, which is read" if role is Role.IN else f"InOut[{item!r}]",
                                   help=None if role is Role.IN else "return what the function makes; InOut[...] is written in place")
    raise KernelSignatureError(f"{role.value} takes a Tile or Tensor", here(),
                               expected=f"{role.value}[Tile[rows, cols, dtype]] or {role.value}[Tensor]",
                               found=f"{role.value}[{_shown(item)}]")


def _tile_text(annotation: TileAnnotation | SizedTileAnnotation) -> str:
    if not annotation.combine:
        return f"{annotation.role.value}[{annotation.type!r}]"
    return f"Acc[{annotation.type!r}{'' if annotation.combine == COMBINES[0] else f', {_quoted((annotation.combine,))}'}]"


def _quoted(words: tuple[str, ...]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _shown(item: object) -> str:
    return item.__name__ if isinstance(item, type) else repr(item)
