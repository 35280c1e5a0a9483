"""Hold a kernel as its author declared it, and trace it for one specialisation.

>>> KernelDef.from_function(double, {}).trace({}, {})
Kernel(name='double', …)

`read_bodies` reads the C and C++ bodies of `@kernel(c_src=…, c_path=…, cpp_src=…, …)` when the kernel is decorated.
"""

from __future__ import annotations

import inspect
import linecache
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TypeGuard, TypeVar, assert_never

from pto_wsp.errors import (
    ArgumentDTypeError,
    ArgumentKindError,
    ArityError,
    DepthError,
    InternalError,
    KernelSignatureError,
    OutNeverStoredError,
    OwnBodyError,
    no_error_lost,
    raise_all,
)
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import BodyForm, OwnBody
from pto_wsp.ir.own_text import find_flaw
from pto_wsp.ir.scalar import ParamScalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tile import StackType, whole_name
from pto_wsp.ops.entry import activate
from pto_wsp.source import Span, definition_span, here, repeated
from pto_wsp.trace.kernel.accumulate import check_accumulating, own_parts
from pto_wsp.trace.kernel.annotations import (
    ConstexprAnnotation,
    KernelParam,
    ScalarAnnotation,
    SizedTileAnnotation,
    TensorAnnotation,
    TileAnnotation,
    resolve_params,
)
from pto_wsp.trace.kernel.printing import python_print_traced
from pto_wsp.trace.kernel.stack import TileStack
from pto_wsp.trace.kernel.tile_value import TensorParamRef, TileParamRef
from pto_wsp.trace.kernel.trace import KernelTrace
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest

_TEXTS = {"c_src": BodyForm.C, "cpp_src": BodyForm.CPP}
_PATHS = {"c_path": BodyForm.C, "cpp_body_path": BodyForm.CPP_BODY, "cpp_tu_path": BodyForm.CPP_TU}
_OPTIONS = (*_TEXTS, *_PATHS, "scratch_bytes")
MOST_SCRATCH = 1 << 30


# -- bodies in C and C++ -----------------------------------------------------------------------------------------------
def read_bodies(function: Callable[..., object], options: Mapping[str, object]) -> tuple[OwnBody, ...]:
    """Return the bodies given as options of a decorator; paths are relative to the folder of the function's file.

    Raises: K107 for unknown or contradictory options, unreadable files, and texts that are no function body.
    """
    for name in options:
        if name not in _OPTIONS:
            near = nearest(name, _OPTIONS)
            raise OwnBodyError(f"@kernel has no option `{name}`", here(), expected=f"one of {', '.join(_OPTIONS)}",
                               help=f"did you mean {near}=...?" if near else None)
    body_options = [name for name in options if name != "scratch_bytes"]
    for kinds in (("c_src", "c_path"), ("cpp_src", "cpp_body_path", "cpp_tu_path")):
        both = [name for name in body_options if name in kinds]
        if len(both) > 1:
            raise OwnBodyError(f"@kernel is given {' and '.join(both)}", here(), expected=f"one of {', '.join(kinds)}",
                               help="a kernel has one body a target")
    scratch = _scratch(options)
    bodies = tuple(_body(name, options[name], function, scratch) for name in body_options)
    if scratch and all(body.form is not BodyForm.C for body in bodies):
        raise OwnBodyError("@kernel is given scratch_bytes without a C body that could use them", here(), expected="c_src or c_path")
    return bodies


def check_names(kernel: str, params: Sequence[KernelParam], bodies: Sequence[OwnBody]) -> None:
    """Check that the names visible in a C or C++ body are distinct.

    Raises: K107 otherwise.
    """
    if all(body.form is BodyForm.CPP_TU for body in bodies):
        return
    meanings = {"scratch": "the scratch memory", "args": "the arguments"}
    for param in params:
        names = [param.name]
        if not isinstance(param.annotation, ScalarAnnotation | ConstexprAnnotation):
            names += [f"{param.name}_{part}" for part in ("rows", "cols", "row_step", "col_step")]
        for name in names:
            if name in meanings:
                raise OwnBodyError(f"kernel `{kernel}`: `{name}` names two things in its own body", param.span,
                                   found=f"{meanings[name]}, and what the body is given of parameter `{param.name}`",
                                   help="rename the parameter")
            meanings[name] = f"what the body is given of parameter `{param.name}`"


def check_ranks(kernel: str, params: Sequence[KernelParam], bodies: Sequence[OwnBody]) -> None:
    """Check that no parameter of a C or C++ body has more than two axes.

    Raises: K107 otherwise.
    """
    if bodies:
        raise_all([OwnBodyError(f"kernel `{kernel}`: `{param.name}` has more than two axes, in a kernel with a body of its own",
                                param.span, expected="Tile[rows, cols, dtype] or Tensor", found=repr(param.annotation),
                                help="loop over the leading axes in the workload") for param in params if param.is_long])


def constants_of(kernel: str, constexprs: Mapping[str, object]) -> tuple[tuple[str, int | float | bool], ...]:
    """Return the values of Constexpr parameters as constants of a C or C++ body.

    Raises: K107 for a value that is not a number.
    """
    out: list[tuple[str, int | float | bool]] = []
    for name, value in constexprs.items():
        if not is_number(value):
            raise OwnBodyError(f"kernel `{kernel}`: Constexpr `{name}` is no number, and the kernel has a body of its own", here(),
                               expected="a number, which the body sees as a constant", found=f"{type(value).__name__}: {value!r:.60}")
        out.append((name, value))
    return tuple(out)


def is_number(value: object) -> TypeGuard[int | float | bool]:
    """Tell whether a value is a float or a 64-bit integer."""
    return isinstance(value, float) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63)


def _scratch(options: Mapping[str, object]) -> int:
    value = options.get("scratch_bytes", 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_SCRATCH:
        raise OwnBodyError("@kernel: scratch_bytes is not a number of bytes", here(), expected=f"0 .. {MOST_SCRATCH}",
                           found=repr(value))
    return value


def _body(name: str, value: object, function: Callable[..., object], scratch: int) -> OwnBody:
    form = _TEXTS.get(name) or _PATHS[name]
    if name in _TEXTS:
        if not isinstance(value, str):
            raise OwnBodyError(f"@kernel: {name} is not a text", here(), expected="the body of a function, as a string",
                               found=f"{type(value).__name__}: {value!r:.60}")
        text, start = value, _place_of(value, function, name)
    else:
        text, start = _read(name, value, function)
    text = text.replace("\r\n", "\n")
    if not text.strip():
        raise OwnBodyError(f"@kernel: {name} is empty", here(), expected="the body of a function")
    if form is BodyForm.C:
        flaw = find_flaw(text)
        if flaw is not None:
            raise OwnBodyError(f"kernel `{function.__name__}`: its own body cannot stand in a function: {flaw.what}",
                               line_of(start, flaw.line, flaw.column), help=flaw.help or None)
        return OwnBody(form, text, scratch, span=start)
    return OwnBody(form, text, span=start)


def line_of(start: Span, line: int, column: int) -> Span:
    """Return the place of a line of a text that starts at `start`."""
    first = start.column - 1 if line == 1 else 0
    return Span(start.file, start.line + line - 1, first + column)


def _read(name: str, value: object, function: Callable[..., object]) -> tuple[str, Span]:
    if not isinstance(value, str | os.PathLike) or isinstance(value, bytes):
        raise OwnBodyError(f"@kernel: {name} is not a path", here(), expected="the path of a file", found=repr(value))
    folder = os.path.dirname(function.__code__.co_filename)
    path = os.path.join(folder, os.fspath(value))
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read(), Span(path, 1)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise OwnBodyError(f"@kernel: the file of {name} cannot be read", here(), expected="a text file", found=f"{value}: {reason}",
                           help="a path is relative to the folder of the Python file") from None


def _place_of(text: str, function: Callable[..., object], name: str) -> Span:
    """Return the place of a text in the function's file; a place of its own if the text is not in the file."""
    file = function.__code__.co_filename
    source = [line.rstrip("\n") for line in linecache.getlines(file)]
    lines = text.split("\n")
    for strip in (False, True):   # a dedented text is indented in the file
        positions = [at for at in range(len(source) - len(lines) + 1) if _stands_at(source, at, lines, strip=strip)]
        near = [at for at in positions if at + 1 >= function.__code__.co_firstlineno]
        if near or len(positions) == 1:
            at = (near or positions)[0]
            return Span(file, at + 1, source[at].index(lines[0].strip() if strip else lines[0]) + 1 if lines[0].strip() else 1)
    return Span(f"<{name} of {function.__name__}>", 1)


def _stands_at(source: Sequence[str], at: int, lines: Sequence[str], *, strip: bool) -> bool:
    """Tell whether the source has the lines from line `at` on; the first and the last line may have other text around."""
    if len(lines) == 1:
        return lines[0] in source[at]
    inner = zip(lines[1:-1], source[at + 1:at + len(lines) - 1], strict=True)
    if strip:
        return lines[0].strip() in source[at] and lines[-1].strip() in source[at + len(lines) - 1] and all(
            a.strip() == b.strip() for a, b in inner)
    return source[at].endswith(lines[0]) and source[at + len(lines) - 1].startswith(lines[-1]) and all(a == b for a, b in inner)


# -- the declaration ---------------------------------------------------------------------------------------------------
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class KernelDef:
    """A kernel's function, name, parameters in order (including Constexpr ones) and the place of its `def`."""

    function: Callable[..., object] = field(repr=False)
    name: str
    params: tuple[KernelParam, ...]
    span: Span = field(repr=False)
    bodies: tuple[k.OwnBody, ...] = ()
    instructions: bool = False
    ir: k.Kernel | None = None      # of a kernel that no function is behind: it was read from text, or built
    _sized: dict[tuple[int, ...], KernelDef] = field(default_factory=dict, repr=False)

    @property
    def size_names(self) -> tuple[str, ...]:
        """The names in the tile types of the parameters, in order."""
        return tuple(dict.fromkeys(name for param in self.params if isinstance(param.annotation, SizedTileAnnotation)
                                   for name in param.annotation.type.names))

    def sized(self, sizes: Mapping[str, int]) -> KernelDef:
        """Return the declaration with a number for each name in its tile types: the same object for the same numbers.

        Raises: K101 if a tile is too large.
        """
        key = tuple(sizes[name] for name in self.size_names)
        if not key:
            return self
        if key not in self._sized:
            params = tuple(replace(param, annotation=TileAnnotation(param.annotation.role, param.annotation.type.of(sizes),
                                                                           param.annotation.combine))
                           if isinstance(param.annotation, SizedTileAnnotation) else param for param in self.params)
            self._sized[key] = replace(self, params=params, _sized={})
        return self._sized[key]

    @staticmethod
    def from_function(function: Callable[..., object], caller_locals: Mapping[str, object],
                      options: Mapping[str, object] = MappingProxyType({}), *, instructions: bool = False) -> KernelDef:
        """Return the declaration of a kernel.

        `caller_locals`: local names around the `def`, for annotations given as text. `options`: the decorator's options.
        `instructions`: the body has PTO ISA instructions only.
        Raises: K101 for all wrong parameters together; K107 for bodies that cannot be used.
        """
        if not inspect.isfunction(function) or inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise KernelSignatureError("a kernel is a plain function", here(),
                                       expected="def name(x: In[...], y: Out[...]): ...",
                                       found=repr(function))
        params = resolve_params(function, caller_locals)
        bodies = read_bodies(function, options)
        check_names(function.__name__, params, bodies)
        check_ranks(function.__name__, params, bodies)
        check_accumulating(function.__name__, params, bodies, instructions=instructions)
        return KernelDef(function, function.__name__, params, definition_span(function.__code__), bodies, instructions)

    def trace(self, constexprs: Mapping[str, object], tensor_dtypes: Mapping[str, DType]) -> k.Kernel:
        """Run the body once and return it as kernel IR.

        `constexprs`: the value of each Constexpr parameter; `tensor_dtypes`: the dtype of the view bound to each Tensor parameter.
        Raises: K102 to K106, T1xx to T3xx at the lines of the body; exceptions of the body itself pass unchanged.
        """
        if self.ir is not None:
            return self._checked_ir(self.ir, tensor_dtypes)
        trace = KernelTrace(self.name, self._names, instructions=self.instructions)
        declared, arguments = self.arguments(trace, constexprs, tensor_dtypes)
        with no_error_lost(f"kernel `{self.name}`"), activate(trace), python_print_traced():
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
            return self.finished(trace, declared, constexprs)

    def finished(self, trace: KernelTrace, declared: Sequence[k.Param], constexprs: Mapping[str, object]) -> k.Kernel:
        """Return the kernel of a trace whose body has run. `declared`: of `arguments`.

        Raises: K102 and K103 for a body that does not end as a kernel's does.
        """
        body = trace.body()
        bodies = tuple(own if own.form is k.BodyForm.CPP_TU else replace(own, constants=constants_of(self.name, constexprs))
                       for own in self.bodies)
        kernel = k.Kernel(self.name, tuple(declared), body, self.span, bodies)
        check_stored(kernel, trace.stored)
        return own_parts(kernel)

    def arguments(self, trace: KernelTrace, constexprs: Mapping[str, object],
                  tensor_dtypes: Mapping[str, DType]) -> tuple[list[k.Param], list[object]]:
        """Return the parameters of the IR, and the arguments of the body in the order of the declaration.

        Raises: T101, T205 for a Constexpr or dtype that is missing or of another type.
        """
        declared: list[k.Param] = []
        arguments: list[object] = []
        for param in self.params:
            nodes, argument = self._argument(trace, param, constexprs, tensor_dtypes)
            declared += nodes
            arguments.append(argument)
        return declared, arguments

    def _checked_ir(self, ir: k.Kernel, tensor_dtypes: Mapping[str, DType]) -> k.Kernel:
        """Return `ir`, which is of one dtype for each Tensor parameter.

        Raises: T102 for another one.
        """
        for param in ir.params:
            dtype = tensor_dtypes.get(param.name)
            if isinstance(param, k.TensorParam) and dtype not in (None, param.dtype):
                raise ArgumentDTypeError(f"kernel `{self.name}`: argument `{param.name}` has the wrong dtype", here(),
                                         expected=f"{param.dtype}, for which the kernel was made", found=str(dtype),
                                         help="a kernel that was read or built is of one dtype a Tensor parameter")
        return ir

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the parameters in kernel IR, Constexpr ones too."""
        return tuple(name for param in self.params for name in param.parts)

    def _argument(self, trace: KernelTrace, param: KernelParam, constexprs: Mapping[str, object],
                  tensor_dtypes: Mapping[str, DType]) -> tuple[tuple[k.Param, ...], object]:
        """Return the IR parameters (none for a Constexpr, one for each tile of a stack) and the body's argument."""
        match param.annotation:
            case TileAnnotation(role, StackType() as stack):
                parts = tuple(k.TileParam(name, role, stack.each, param.span) for name in param.parts)
                return parts, TileStack(stack.leading, [TileParamRef(trace, part) for part in parts], f"parameter `{param.name}`")
            case TileAnnotation(role, tile_type, combine):
                tile = k.TileParam(param.name, role, tile_type, param.span, combine)
                return (tile,), TileParamRef(trace, tile)
            case TensorAnnotation(role):
                tensor = k.TensorParam(param.name, role, self._given(param, tensor_dtypes), param.span)
                return (tensor,), TensorParamRef(tensor)
            case ScalarAnnotation(dtype):
                return (k.ScalarParamDecl(param.name, dtype, param.span),), Symbolic(ParamScalar(param.name, dtype))
            case ConstexprAnnotation(kind):
                value = self._given(param, constexprs)
                if not isinstance(value, kind) and not (kind is float and type(value) is int):
                    raise ArgumentKindError(f"kernel `{self.name}`: Constexpr `{param.name}` has the wrong type", here(),
                                            expected=kind.__name__, found=f"{value.__class__.__name__}: {value!r}")
                return (), value
            case SizedTileAnnotation():
                raise InternalError("a tile without a size is traced", f"{self.name}.{param.name}")
            case _:
                assert_never(param.annotation)

    def _given(self, param: KernelParam, values: Mapping[str, T]) -> T:
        if param.name not in values:
            raise ArityError(f"kernel `{self.name}`: parameter `{param.name}` is missing", here(),
                             expected=repr(param.annotation))
        return values[param.name]


def check_stored(kernel: k.Kernel, stored: Collection[str]) -> None:
    """Check that every Out parameter of a kernel with a Python body is stored; of a tile of rank 3 and more, one of its tiles.

    Raises: K102 for those that are not.
    """
    if kernel.has_meaning:
        known = set(map(whole_name, stored))
        missing = {name: p for p in kernel.memory_params if p.role is k.Role.OUT and (name := whole_name(p.name)) not in known}
        raise_all([OutNeverStoredError(f"kernel `{kernel.name}`: {_kind(p)} parameter `{name}` is never stored", p.span,
                                       help=f"pto.store({name}, value), or drop the parameter")
                   for name, p in missing.items()])


def _kind(param: k.MemoryParam) -> str:
    return "Acc" if isinstance(param, k.TileParam) and param.combine else "Out"
