"""Read the parameters of a function on whole tensors, and match the arguments of a call or of a trace with them.

    signature = signature_of(function, scope)      # once: annotations and defaults; J101 for parameters that such a function does not have
    bound = signature.bind(args, kwargs)           # structures with a leaf for each array and each Scalar; J101, J109
    bound.sizes()                                  # symbol -> number of these arrays; J201 naming both arguments
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from types import MappingProxyType
from typing import Annotated, Any, ForwardRef, TypeAlias, get_args, get_origin

import numpy as np

from pto_wsp.calls import bind
from pto_wsp.errors import ExtentError, PtoError, TensorSignatureError, TensorTypeMismatchError, raise_all
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.exchange import Array, NotTaken, array_of, is_array, kind_of
from pto_wsp.ir.scalar import Const, SymbolRef
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tensor_type import TensorType
from pto_wsp.source import Span, here, parameter_span
from pto_wsp.trace.kernel.annotations import ScalarAnnotation, SizedTileAnnotation, TensorAnnotation, TileAnnotation
from pto_wsp.trace.tensor.captured import key_of
from pto_wsp.trace.tensor.leaves import is_named_tuple, parts_of, with_parts
from pto_wsp.values import dataclass

RESERVED = ("plan", "out")      # a call has these of its own
_KERNELS = (TileAnnotation, SizedTileAnnotation, TensorAnnotation)

Scope: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ArrayLeaf:
    """An array among the arguments: its path (`cache.keys[0]`), its type with symbols, and the line of its parameter."""

    path: str
    type: TensorType
    span: Span


@dataclass(frozen=True, slots=True)
class ScalarLeaf:
    """A number of each call."""

    path: str
    dtype: DType
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredType:
    """The type that an annotation gives to a value, or the types of the parts of a container. None: no type is given.

    `leaf`: type of a tensor or number; `parts`: types of parts by name; `every`: type of all parts; `container`: class of the container.
    """

    leaf: TensorType | ScalarAnnotation | None = None
    parts: Mapping[str, DeclaredType] = field(default_factory=dict)
    every: DeclaredType | None = None
    container: type | None = None

    def of_part(self, name: str) -> DeclaredType:
        """Return what is said of a part."""
        return self.parts.get(name) or self.every or NOTHING_SAID


NOTHING_SAID = DeclaredType()


@dataclass(frozen=True, slots=True, eq=False)
class TensorParameter:
    """A parameter of a function on tensors: name, annotated type, default value, and line."""

    name: str
    declared: DeclaredType
    default: object
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class BoundArguments:
    """The arguments of a call or of a trace.

    `arguments`: by parameter, with an `ArrayLeaf` or a `ScalarLeaf` in place of each array and each number of a call. `arrays` and
    `given`, the memory and the objects: in the order of `leaves`, None where only a type was given. `key`: equal keys trace to the same
    function, captured values apart.
    """

    arguments: Mapping[str, object]
    leaves: tuple[ArrayLeaf, ...]
    scalars: tuple[ScalarLeaf, ...]
    arrays: tuple[Array | None, ...]
    given: tuple[object, ...]
    numbers: tuple[object, ...]
    key: tuple[object, ...]

    def sizes(self) -> dict[str, int]:
        """Return the number of each symbol.

        Raises: J201 for two numbers of one symbol, naming both arguments.
        """
        return sizes_of(self.leaves, [None if array is None else array.shape for array in self.arrays])


def scalar_problem(path: str, dtype: DType, value: object) -> TensorSignatureError | None:
    """Return why a value is no number for a Scalar of a dtype; None for a valid number. An array of rank 0 is its number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        fits = dtype.is_bool and isinstance(value, bool | np.bool_)
    else:
        fits = not dtype.is_bool and (dtype.is_real or isinstance(value, int | np.integer))
    return None if fits else TensorSignatureError(f"argument `{path}` is no number of {dtype}", here(), expected=f"Scalar[{dtype}]",
                                                  found=f"{kind_of(value)}: {value!r:.60}")


def sizes_of(leaves: Sequence[ArrayLeaf], shapes: Sequence[tuple[int, ...] | None]) -> dict[str, int]:
    """Return the number of each symbol for arrays of these shapes, which fit the types but for it.

    Raises: J201 for two numbers of one symbol, naming both arguments.
    """
    found: dict[str, tuple[int, ArrayLeaf, int]] = {}
    errors: list[PtoError] = []
    for leaf, shape in zip(leaves, shapes, strict=True):
        for dim, (extent, number) in enumerate(zip(leaf.type.extents, shape or (), strict=False)):
            if not isinstance(extent, str):
                continue
            known, first, first_dim = found.setdefault(extent, (number, leaf, dim))
            if known != number:
                errors.append(ExtentError(f"`{extent}` is {known} in `{first.path}` and {number} in `{leaf.path}`", here(),
                                          expected=f"{leaf.path}.shape[{dim}] == {first.path}.shape[{first_dim}], which is {known}",
                                          found=str(number), help="a symbol is one number a call: another name says that they may differ"))
    raise_all(errors)
    return {symbol: number for symbol, (number, _, _) in found.items()}


class TensorSignature:
    """The parameters of a function on whole tensors."""

    def __init__(self, name: str, params: Sequence[TensorParameter], plain: inspect.Signature) -> None:
        self.name = name
        self.params = tuple(params)
        self.plain = plain
        self._positions = {param.name: position for position, param in enumerate(self.params)}
        self._positional = sum(param.kind is not param.KEYWORD_ONLY for param in plain.parameters.values())
        self._by_name = frozenset(param.name for param in plain.parameters.values() if param.kind is not param.POSITIONAL_ONLY)

    @property
    def scalars(self) -> tuple[DType | None, ...]:
        """For each parameter its dtype if it is a number of each call, else None."""
        return tuple(param.declared.leaf.dtype if isinstance(param.declared.leaf, ScalarAnnotation) else None for param in self.params)

    @property
    def has_numbers_in_containers(self) -> bool:
        """Whether a number of each call is a part of an argument."""
        return any(_declares_a_number(part) for param in self.params for part in (*param.declared.parts.values(), param.declared.every))

    def numbers(self, values: Sequence[object]) -> list[object]:
        """Return the numbers of a call among the arguments, in the order of `BoundArguments.numbers`."""
        return [number for param, value in zip(self.params, values, strict=True) for number in _numbers_in(value, param.declared)]

    def values(self, args: tuple[object, ...], kwargs: Mapping[str, object], *, abstract: bool = False) -> list[object]:
        """Return the argument of each parameter, defaults included. `abstract`: what is annotated may be left out.

        Raises: T101 for arguments that the function does not take or lacks.
        """
        values: list[object] = [*args, *[param.default for param in self.params[len(args):]]]
        fits = len(args) <= self._positional
        for name, value in kwargs.items():
            place = self._positions.get(name, -1)
            fits = fits and place >= len(args) and name in self._by_name
            if fits:
                values[place] = value
        if abstract:
            values = [_stand_in(param.declared) if value is inspect.Parameter.empty else value
                      for param, value in zip(self.params, values[:len(self.params)], strict=True)]
        if not fits or any(value is inspect.Parameter.empty for value in values):
            bind(self.name, self.plain, args, kwargs)      # raises: it says which
            raise AssertionError("the arguments fit the signature and do not")
        return values

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object], *, abstract: bool = False) -> BoundArguments:
        """Match arguments with the parameters. `abstract`: types may stand for arrays, and what is annotated may be left out.

        Raises: T101 for arguments that do not fit the parameters, J101 for values that are no tensor, J109 for arrays of another type.
        """
        return self.match(self.values(args, kwargs, abstract=abstract), abstract=abstract)

    def match(self, values: Sequence[object], *, abstract: bool = False) -> BoundArguments:
        """Match the argument of each parameter; as `bind`."""
        matching = _Matching(self.name, abstract=abstract)
        arguments = {param.name: matching.match(value, param.declared, param.name, param.span)
                     for param, value in zip(self.params, values, strict=True)}
        raise_all(matching.errors)
        return BoundArguments(MappingProxyType(arguments), tuple(matching.leaves), tuple(matching.scalars), tuple(matching.arrays),
                              tuple(matching.given), tuple(matching.numbers), tuple(matching.key))


def _declares_a_number(declared: DeclaredType | None) -> bool:
    return declared is not None and (isinstance(declared.leaf, ScalarAnnotation)
                                     or any(map(_declares_a_number, (*declared.parts.values(), declared.every))))


def _numbers_in(value: object, declared: DeclaredType) -> Iterator[object]:
    if isinstance(declared.leaf, ScalarAnnotation):
        yield value
    elif declared.leaf is None:
        for name, part in parts_of(value) or () if _declares_a_number(declared) else ():
            yield from _numbers_in(part, declared.of_part(name))


class _Matching:
    """The arguments of one call, matched one after the other."""

    def __init__(self, function: str, *, abstract: bool) -> None:
        self._function, self._abstract = function, abstract
        self.leaves: list[ArrayLeaf] = []
        self.scalars: list[ScalarLeaf] = []
        self.arrays: list[Array | None] = []
        self.given: list[object] = []
        self.numbers: list[object] = []
        self.key: list[object] = []
        self.errors: list[PtoError] = []

    def match(self, value: object, declared: DeclaredType, path: str, span: Span) -> object:
        """Return an argument with leaves in place of its arrays and numbers of calls."""
        if isinstance(declared.leaf, ScalarAnnotation):
            return self._scalar(value, declared.leaf.dtype, path, span)
        if isinstance(declared.leaf, TensorType):
            return self._array(value, declared.leaf, path, span)
        if isinstance(value, TensorType):
            return self._array(value, None, path, span)
        if isinstance(value, ScalarAnnotation):
            return self._scalar(None, value.dtype, path, span)
        parts = parts_of(value)
        if parts is not None:
            self.key.append((type(value), tuple(name for name, _ in parts)))
            return with_parts(value, [self.match(part, declared.of_part(name), f"{path}.{name}", span) for name, part in parts])
        if isinstance(value, Tensor) or is_array(value):
            return self._array(value, None, path, span)
        self.key.append((path, key_of(value)))
        return value

    def _scalar(self, value: object, dtype: DType, path: str, span: Span) -> object:
        left_out = value is None or isinstance(value, ScalarAnnotation)
        problem = None if self._abstract and left_out else scalar_problem(path, dtype, value)
        if problem is not None:
            self.errors.append(problem)
        leaf = ScalarLeaf(path, dtype, span)
        self.scalars.append(leaf)
        self.numbers.append(value)
        self.key.append((path, dtype))
        return leaf

    def _array(self, value: object, wanted: TensorType | None, path: str, span: Span) -> object:
        if isinstance(value, TensorType):
            array, found = None, value
            if not self._abstract:
                self.errors.append(TensorSignatureError(
                    f"`{self._function}`: argument `{path}` is a type", here(), expected="an array", found=repr(value),
                    help=f"{self._function}.trace({value!r}) takes types"))
        else:
            memory = value.data if isinstance(value, Tensor) else array_of(value)
            if isinstance(value, Tensor) and memory is None and self._abstract:
                return self._array(_type_of(value), wanted, path, span)
            if memory is None or isinstance(memory, NotTaken):
                self.errors.append(self._no_array(path, value, memory, wanted))
                return value
            if not memory.dtype.isnative:
                self.errors.append(TensorTypeMismatchError(
                    f"`{self._function}`: argument `{path}` is an array of the other byte order", here(),
                    expected="the byte order of this machine", found=str(memory.dtype),
                    help="x.astype(x.dtype.newbyteorder('=')) makes a copy in this machine's order"))
                return value
            try:
                array, found = memory, TensorType(memory.shape, DType.from_numpy(memory.dtype))
            except PtoError as problem:
                problem.span = problem.span or here()
                self.errors.append(problem)
                return value
        unfit = None if wanted is None else self._unfit(path, found, wanted)
        if unfit is not None:
            self.errors.append(unfit)
        known = found if wanted is None else wanted if array is not None else _more_exact(found, wanted)
        leaf = ArrayLeaf(path, known, span)
        self.leaves.append(leaf)
        self.arrays.append(array)
        self.given.append(value)
        self.key.append((leaf.path, leaf.type))
        return leaf

    def _no_array(self, path: str, value: object, why: NotTaken | None, wanted: TensorType | None) -> PtoError:
        expected = "an array" if wanted is None else f"an array: {wanted!r}"
        if why is None:
            return TensorSignatureError(f"`{self._function}`: argument `{path}` is a Tensor without data", here(), expected=expected,
                                        found=repr(value), help=f"{self._function}.lower(…) makes a workload on Tensors")
        return TensorSignatureError(f"`{self._function}`: argument `{path}` is {why.what}", here(),
                                    expected=why.expected if is_array(value) else expected, found=why.found, help=why.help, notes=why.notes)

    def _unfit(self, path: str, found: TensorType, wanted: TensorType) -> PtoError | None:
        """Return why a type does not fit that of a parameter; a symbol takes any number."""
        shown = f"`{self._function}`: argument `{path}`"
        if found.dtype is not wanted.dtype:
            name = wanted.dtype.np.name
            return TensorTypeMismatchError(f"{shown} is of another dtype", here(), expected=repr(wanted), found=repr(found),
                                           help=f"x.astype({name!r}) copies an array to that dtype, x.to(torch.{name}) a torch tensor")
        if found.rank != wanted.rank:
            return TensorTypeMismatchError(f"{shown} is of another rank", here(), expected=f"{wanted!r}, of rank {wanted.rank}",
                                           found=f"{found!r}, of rank {found.rank}")
        for dim, (extent, number) in enumerate(zip(wanted.extents, found.extents, strict=True)):
            if isinstance(extent, int) and number != extent:
                return TensorTypeMismatchError(f"{shown} has {number} in dimension {dim}, where its annotation says {extent}", here(),
                                               expected=repr(wanted), found=repr(found))
        return None


def _more_exact(found: TensorType, wanted: TensorType) -> TensorType:
    """Return a type that was given for a parameter: its numbers, and what the annotation says beside."""
    extents = tuple(name if isinstance(number, str) else number for number, name in zip(found.extents, wanted.extents, strict=True)
                    ) if found.rank == wanted.rank else wanted.extents
    return TensorType(extents, found.dtype, wanted.contracts, wanted.written)


def _type_of(tensor: Tensor) -> TensorType:
    """Return the type of a declared tensor; the extents that each run says have names of their own."""
    names = [size.name if isinstance(size, SymbolRef) else f"{tensor.ref.shown}_{dim}" for dim, size in enumerate(tensor.sizes)]
    return TensorType(tuple(int(size.value) if isinstance(size, Const) else name for size, name in zip(tensor.sizes, names, strict=True)),
                      tensor.dtype)


# -- reading signatures ------------------------------------------------------------------------------------------------
def signature_of(function: Callable[..., object], scope: Scope = MappingProxyType({})) -> TensorSignature:
    """Return the parameters of a function. `scope`: local names around the `def`, for annotations that are text.

    Raises: J101 for all wrong parameters together.
    """
    plain = inspect.signature(function)
    code: Any = function.__code__
    params: list[TensorParameter] = []
    errors: list[PtoError] = []
    for name, parameter in plain.parameters.items():
        span = parameter_span(code, name)
        problem = _refused(function.__name__, name, parameter, span)
        if problem is not None:
            errors.append(problem)
            continue
        declared = _read(function, name, parameter.annotation, scope, span)
        if isinstance(declared, PtoError):
            errors.append(declared)
        else:
            params.append(TensorParameter(name, declared, parameter.default, span))
    raise_all(errors)
    return TensorSignature(function.__name__, params, plain.replace(return_annotation=inspect.Signature.empty))


def _refused(function: str, name: str, parameter: inspect.Parameter, span: Span) -> PtoError | None:
    where = f"`{function}`"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        return TensorSignatureError(f"{where}: `{stars}{name}` takes any number of arguments", span, expected="a parameter each, by name",
                                    help="one parameter may be a list or a dict of arrays")
    if name == "self":
        return TensorSignatureError(f"{where} is a method", span, expected="a plain function",
                                    help="pass what it needs of `self` as parameters: a NamedTuple or a dataclass of arrays")
    if name in RESERVED:
        return TensorSignatureError(f"{where}: no parameter may be called `{name}`", span, expected="another name",
                                    help=f"a call of the function has {name}= of its own")
    return None


def _read(function: Callable[..., object], name: str, annotation: object, scope: Scope, span: Span) -> DeclaredType | PtoError:
    if annotation is inspect.Parameter.empty:
        return NOTHING_SAID
    where = f"`{function.__name__}`: parameter `{name}`"
    try:
        evaluated = _evaluated(annotation, function, scope)
    except PtoError as problem:
        return TensorSignatureError(f"{where}: {problem.message}", span, expected=problem.expected, found=problem.found, help=problem.help)
    except Exception as mistake:      # user code may raise anything; the exception is the finding
        return TensorSignatureError(f"{where} has an annotation that cannot be evaluated", span,
                                    found=f"{annotation}: {type(mistake).__name__}: {mistake}")
    evaluated = _said_in(evaluated)
    if isinstance(evaluated, _KERNELS):
        return TensorSignatureError(f"{where} has an annotation of kernels", span, expected='Tensor["t", 64, DType.F32]',
                                    found=repr(evaluated))
    return _declared(evaluated, 0, scope)


def _evaluated(annotation: object, function: Callable[..., object], scope: Scope) -> object:
    if not isinstance(annotation, str):
        return annotation
    code: Any = function.__code__
    cells = zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False)
    inner: dict[str, object] = dict(scope)
    for free, cell in cells:
        try:
            inner[free] = cell.cell_contents
        except ValueError:      # not bound yet
            continue
    return eval(annotation, getattr(function, "__globals__", {}), inner)


def _said_in(annotation: object) -> object:
    """Return the declaration behind the type in `Annotated[np.ndarray, Tensor["t", 64, DType.F32]]`; any other annotation as it is."""
    if get_origin(annotation) is not Annotated:
        return annotation
    behind = [one for one in get_args(annotation)[1:] if isinstance(one, (TensorType, ScalarAnnotation, *_KERNELS))]
    return behind[0] if behind else get_args(annotation)[0]


_DEEPEST = 8      # levels of classes in classes


def _declared(annotation: Any, depth: int, scope: Scope) -> DeclaredType:
    """Return the declaration in an annotation; classes with annotated fields and containers of one type declare their parts."""
    annotation = _said_in(annotation)
    if isinstance(annotation, TensorType | ScalarAnnotation):
        return DeclaredType(annotation)
    if depth >= _DEEPEST:
        return NOTHING_SAID
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (list, Sequence) or (origin is tuple and len(args) == 2 and args[1] is Ellipsis):
        return DeclaredType(every=_declared(args[0], depth + 1, scope)) if args else NOTHING_SAID
    if origin is tuple:
        return DeclaredType(parts={str(k): _declared(each, depth + 1, scope) for k, each in enumerate(args)}, container=tuple)
    if origin in (dict, Mapping) and len(args) == 2:
        return DeclaredType(every=_declared(args[1], depth + 1, scope))
    if isinstance(annotation, type) and (is_named_tuple(annotation) or is_dataclass(annotation)):
        return DeclaredType(parts=_fields(annotation, depth, scope), container=annotation)
    return NOTHING_SAID


def _fields(kind: Any, depth: int, scope: Scope) -> Mapping[str, DeclaredType]:
    """Return what the annotations of a class say of its fields; nothing of one with a name that only type checkers import."""
    names: Sequence[str] = [each.name for each in fields(kind)] if is_dataclass(kind) else kind._fields
    module = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
    found: dict[str, DeclaredType] = {}
    for name, annotation in inspect.get_annotations(kind).items():
        text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
        try:
            said = eval(text, module, dict(scope)) if isinstance(text, str) else text
        except Exception:      # user code may raise anything
            continue
        if name in names:
            found[name] = _declared(said, depth + 1, scope)
    return found


def _stand_in(declared: DeclaredType) -> object:
    """Return the stand-in of an argument that was left out: its type, if the type is annotated in full."""
    if declared.leaf is not None:
        return declared.leaf
    if declared.container is None:
        return inspect.Parameter.empty
    parts = [_stand_in(part) for part in declared.parts.values()]
    if not parts or any(part is inspect.Parameter.empty for part in parts):
        return inspect.Parameter.empty
    made: Any = declared.container
    if made is tuple:
        return tuple(parts)
    return made(*parts) if is_named_tuple(made) else made(**dict(zip(declared.parts, parts, strict=True)))
