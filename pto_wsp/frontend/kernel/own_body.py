"""`@kernel(c_src=…, c_path=…, cpp_src=…, …)`: bodies that the user wrote in a target's own language, read when a kernel is decorated."""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from pto_wsp.errors import OwnBodyError
from pto_wsp.expr.kernel import BodyForm, OwnBody
from pto_wsp.expr.own_text import find_flaw
from pto_wsp.frontend.kernel.annotations import ConstexprAnnotation, KernelParam, ScalarAnnotation
from pto_wsp.source import Span, here
from pto_wsp.wording import nearest

_TEXTS = {"c_src": BodyForm.C, "cpp_src": BodyForm.CPP}
_PATHS = {"c_path": BodyForm.C, "cpp_body_path": BodyForm.CPP_BODY, "cpp_tu_path": BodyForm.CPP_TU}
_OPTIONS = (*_TEXTS, *_PATHS, "scratch_bytes")
MOST_SCRATCH = 1 << 30


def read_bodies(function: Callable[..., object], options: Mapping[str, object]) -> tuple[OwnBody, ...]:
    """Return the bodies that the options of a decorator give; a path is relative to the folder of the function's file.

    Raises: K107 for options that are unknown or contradict each other, files that cannot be read, texts that are no body.
    """
    for name in options:
        if name not in _OPTIONS:
            near = nearest(name, _OPTIONS)
            raise OwnBodyError(f"@kernel has no option `{name}`", here(), expected=f"one of {', '.join(_OPTIONS)}",
                               help=f"did you mean {near}=...?" if near else None)
    given = [name for name in options if name != "scratch_bytes"]
    for kinds in (("c_src", "c_path"), ("cpp_src", "cpp_body_path", "cpp_tu_path")):
        both = [name for name in given if name in kinds]
        if len(both) > 1:
            raise OwnBodyError(f"@kernel is given {' and '.join(both)}", here(), expected=f"one of {', '.join(kinds)}",
                               help="a kernel has one body a target")
    scratch = _scratch(options)
    bodies = tuple(_body(name, options[name], function, scratch) for name in given)
    if scratch and all(body.form is not BodyForm.C for body in bodies):
        raise OwnBodyError("@kernel is given scratch_bytes without a C body that could use them", here(), expected="c_src or c_path")
    return bodies


def check_names(kernel: str, params: Sequence[KernelParam], bodies: Sequence[OwnBody]) -> None:
    """Raise K107 where two things that a body of the kernel's own is given have the same name."""
    if all(body.form is BodyForm.CPP_TU for body in bodies):
        return
    taken = {"scratch": "the scratch memory", "args": "the arguments"}
    for param in params:
        names = [param.name]
        if not isinstance(param.annotation, ScalarAnnotation | ConstexprAnnotation):
            names += [f"{param.name}_{part}" for part in ("rows", "cols", "row_step", "col_step")]
        for name in names:
            if name in taken:
                raise OwnBodyError(f"kernel `{kernel}`: `{name}` names two things in its own body", param.span,
                                   found=f"{taken[name]}, and what the body is given of parameter `{param.name}`",
                                   help="rename the parameter")
            taken[name] = f"what the body is given of parameter `{param.name}`"


def constants_of(kernel: str, constexprs: Mapping[str, object]) -> tuple[tuple[str, int | float | bool], ...]:
    """Return the values of Constexpr parameters as a body of the kernel's own sees them.

    Raises: K107 for one that is no number.
    """
    out: list[tuple[str, int | float | bool]] = []
    for name, value in constexprs.items():
        if not is_number(value):
            raise OwnBodyError(f"kernel `{kernel}`: Constexpr `{name}` is no number, and the kernel has a body of its own", here(),
                               expected="a number, which the body sees as a constant", found=f"{type(value).__name__}: {value!r:.60}")
        out.append((name, value))
    return tuple(out)


def is_number(value: object) -> TypeGuard[int | float | bool]:
    """Tell whether a value is a float, or a whole number of 64 bits."""
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
    """Return where a text stands in the function's file; a place of its own when it is not there as it is."""
    file = function.__code__.co_filename
    source = [line.rstrip("\n") for line in linecache.getlines(file)]
    lines = text.split("\n")
    for strip in (False, True):   # a text that was dedented stands further to the right in the file
        found = [at for at in range(len(source) - len(lines) + 1) if _stands_at(source, at, lines, strip=strip)]
        near = [at for at in found if at + 1 >= function.__code__.co_firstlineno]
        if near or len(found) == 1:
            at = (near or found)[0]
            return Span(file, at + 1, source[at].index(lines[0].strip() if strip else lines[0]) + 1 if lines[0].strip() else 1)
    return Span(f"<{name} of {function.__name__}>", 1)


def _stands_at(source: Sequence[str], at: int, lines: Sequence[str], *, strip: bool) -> bool:
    """Tell whether the lines stand in the source from line `at` on; the first and the last may share theirs with other text."""
    if len(lines) == 1:
        return lines[0] in source[at]
    inner = zip(lines[1:-1], source[at + 1:at + len(lines) - 1], strict=True)
    if strip:
        return lines[0].strip() in source[at] and lines[-1].strip() in source[at + len(lines) - 1] and all(
            a.strip() == b.strip() for a, b in inner)
    return source[at].endswith(lines[0]) and source[at + len(lines) - 1].startswith(lines[-1]) and all(a == b for a, b in inner)
