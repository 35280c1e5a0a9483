"""Embed a user's own C body in the artifact: a function with the user's lines, and the kernel that calls it.

>>> emit_own_body(kernel, body, "gemm_0", {"x": True, "y": True}).text
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from pto_wsp.c import syntax as c
from pto_wsp.c.kernel import KernelC
from pto_wsp.c.kernel_env import Env
from pto_wsp.c.printer import print_block, print_expr
from pto_wsp.c.scalars import literal, memory_literal, memory_type
from pto_wsp.errors import CompilerFailedError, PtoError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.own_text import directives
from pto_wsp.ir.tile import TileType
from pto_wsp.source import Span

# Constructs that C tolerates for old programs and that are mistakes in new ones: the compiler reports them, instead of a library that does
# not load.
_REFUSED = ("implicit-function-declaration", "implicit-int", "int-conversion", "incompatible-pointer-types", "return-type")
_MESSAGE = re.compile(r"^(?P<file>.+?):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<what>.*)$", re.MULTILINE)


def emit_own_body(kernel: k.Kernel, own: k.OwnBody, symbol: str, unit_inner: Mapping[str, bool]) -> KernelC:
    """Return C for a kernel with the user's own body. `unit_inner`: whether the columns of a memory parameter are contiguous.

    The text becomes a function under the user's file and line. Macros that it defines end with it, and its unconditional includes precede
    it.
    """
    env = Env(kernel, dict(unit_inner))
    env.reserve(own.scratch_bytes)
    staging = [stmt for param in kernel.memory_params for stmt in _stage_overlaps(env, param)]
    parameters = [_declare_param(param) for param in kernel.params] + ["char *scratch"] * (own.scratch_bytes > 0)
    signature = ",\n        ".join(parameters) or "void"
    inside = directives(own.text)
    hoisted = {found.line: found for found in inside if found.word == "include" and not found.conditional}
    lines = own.text.rstrip("\n").split("\n")
    shown = "\n".join("" if number in hoisted else line for number, line in enumerate(lines, 1))
    name = f"{c.c_ident(symbol)}_body"
    head = print_block([c.Comment(f"{kernel.name}, {kernel.span.short}")] if kernel.span.line else [c.Comment(kernel.name)], 0)
    text = "\n".join([
        *(f"{_line(own.span, number)}\n#include {found.rest}" for number, found in sorted(hoisted.items())),
        *([f'#line 1 "{c.c_ident(symbol)}"'] if hoisted else []),
        head,
        "#pragma GCC diagnostic push",
        '#pragma GCC diagnostic ignored "-Wunused-parameter"',
        *(f'#pragma GCC diagnostic error "-W{warning}"' for warning in _REFUSED),
        f"static int32_t {name}(\n        {signature})",
        "{",
        *([print_block(constants)] if (constants := _constants(own)) else []),
        _line(own.span, 1),
        shown,
        f'#line 1 "{c.c_ident(symbol)}"',
        "    return 0;",
        "}",
        *(f"#undef {macro}" for macro in _macros(own.text)),
        "#pragma GCC diagnostic pop",
        f"int32_t {c.c_ident(symbol)}(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)",
        "{",
        print_block([*(c.Evaluate(c.Cast("void", c.Name(unused))) for unused in ("args", "scalars", "scratch", "context")),
                     *env.pointers, *staging, c.Return(_call(env, kernel, own, name))]),
        "}",
        ""])
    used = set(re.findall(r"\bpto_matmul_(\w+)", own.text))
    return KernelC(c.c_ident(symbol), text, env.scratch_bytes, 0, tuple(dtype for dtype in DType if str(dtype) in used), (),
                   "PTO_MATMUL_FEW_ROWS" in own.text)


def error_in_own_body(kernels: Iterable[k.Kernel], problem: CompilerFailedError) -> PtoError | None:
    """Return the first compiler or loader message about a user's text as an error at the user's line, None if there is none."""
    message = "\n".join(problem.notes)
    owned = [(kernel, own) for kernel in kernels if (own := kernel.c_body) is not None]
    for found in _MESSAGE.finditer(message):
        line, column = int(found["line"]), int(found["column"] or 1)
        for kernel, own in owned:
            inside = 0 <= line - own.span.line <= own.text.count("\n")
            if inside and os.path.basename(found["file"]) == _shown_name(own.span):
                return CompilerFailedError(f"the C compiler refused the own body of kernel `{kernel.name}`: {found['what']}",
                                           Span(own.span.file, line, column), notes=(f"the compiler said:\n{message}",),
                                           help="the body is given each parameter's pointer `x`, x_rows, x_cols, x_row_step, x_col_step, "
                                                "and scalars and constants by name")
    missing = re.search(r"undefined symbol: (\w+)|symbol not found in flat namespace '_?(\w+)'", message)
    name = "" if missing is None else missing[1] or missing[2]
    for kernel, own in owned if name else ():
        found_at = re.search(rf"\b{name}\b", own.text)
        if found_at is not None:
            line = own.span.line + own.text.count("\n", 0, found_at.start())
            return CompilerFailedError(f"the own body of kernel `{kernel.name}` uses `{name}`, which no library has",
                                       Span(own.span.file, line), notes=(message,),
                                       help="the C library and libm are linked; put other functions' text into the body")
    return None


def _declare_param(param: k.Param) -> str:
    name = c.c_ident(param.name)
    match param:
        case k.ScalarParamDecl(dtype=dtype):
            return f"{_scalar_type(dtype)} {name}"
        case k.TileParam() | k.TensorParam():
            kind = memory_type(param.dtype)
            const = "" if param.role.writes else "const "
            extents = (f"int64_t {name}_{part}" for part in ("rows", "cols", "row_step", "col_step"))
            return ", ".join((f"{const}{kind} *{name}", *extents))


def _call(env: Env, kernel: k.Kernel, own: k.OwnBody, function: str) -> c.Expr:
    arguments: list[c.Expr] = []
    position = 0
    for param in kernel.params:
        if isinstance(param, k.ScalarParamDecl):
            slot: c.Expr = c.Index(c.Name("scalars"), c.Int(position))
            position += 1
            slot = c.Call("pto_from_bits_f64", (slot,)) if param.dtype.is_float else slot
            arguments.append(c.Infix("!=", slot, c.Int(0)) if param.dtype.is_bool else c.Cast(_scalar_type(param.dtype), slot))
            continue
        kind = memory_type(param.dtype)
        pointer: c.Expr = c.Cast(f"{kind} *", c.Member(env.argument(param.name), "data"))
        steps = [env.stride(param.name, dim) for dim in (0, 1)]
        tile = _staged_tile(param)
        if tile is not None:
            copied, staged = c.Name(f"{c.c_ident(param.name)}_copied"), c.Name(f"{c.c_ident(param.name)}_tile")
            pointer = c.Ternary(copied, staged, pointer)
            steps = [step if step == whole else c.Ternary(copied, whole, step)
                     for whole, step in zip((c.Int(tile.cols), c.Int(1)), steps, strict=True)]
        arguments += [pointer, *(env.extent(param.name, dim) for dim in (0, 1)), *steps]
    return c.Call(function, (*arguments, *([c.Name("scratch")] if own.scratch_bytes else [])))


def _staged_tile(param: k.MemoryParam) -> TileType | None:
    """Return the type of an In tile, which is copied first if it overlaps an output; None for other parameters, whose size is unknown."""
    return param.type if isinstance(param, k.TileParam) and param.role is k.Role.IN else None


def _stage_overlaps(env: Env, param: k.MemoryParam) -> list[c.Stmt]:
    """Return statements that copy an In tile if it overlaps an output, so that the body reads the old contents."""
    tile = _staged_tile(param)
    if tile is None:
        return []
    place = env.scratch(f"{c.c_ident(param.name)}_tile", tile)
    copied = f"{c.c_ident(param.name)}_copied"
    source = c.Cast(f"const {memory_type(tile.dtype)} *", c.Member(env.argument(param.name), "data"))
    stage = c.Call(f"pto_stage_{tile.dtype}", (
        c.Name(place.pointer), c.Int(tile.rows), c.Int(tile.cols), source, *(env.stride(param.name, dim) for dim in (0, 1)),
        *(env.extent(param.name, dim) for dim in (0, 1)), memory_literal(0, tile.dtype)))
    flagged = c.Infix("!=", c.Infix("&", c.Member(env.argument(param.name), "flags"), c.Name("PTO_STAGE")), c.Int(0))
    return [c.Declare("const int", copied, flagged), c.If(c.Name(copied), (c.Evaluate(stage),))]


def _constants(own: k.OwnBody) -> list[c.Stmt]:
    """Return declarations of the Constexpr parameters; small integers become enumerators, which may be array sizes."""
    out: list[c.Stmt] = []
    for name, value in own.constants:
        if isinstance(value, float):
            out.append(c.Declare("const double", f"{c.c_ident(name)} __attribute__((unused))", literal(value, DType.F64)))
        elif isinstance(value, bool) or -(1 << 31) <= value < 1 << 31:
            out.append(c.Evaluate(c.Name(f"enum {{ {c.c_ident(name)} = {print_expr(c.Int(int(value)))} }}")))
        else:
            out.append(c.Declare("const int64_t", f"{c.c_ident(name)} __attribute__((unused))", literal(value, DType.I64)))
    return out


def _macros(text: str) -> tuple[str, ...]:
    """Return the macros that a text defines, each once."""
    names = (re.match(r"\w+", found.rest) for found in directives(text) if found.word == "define")
    return tuple(dict.fromkeys(found.group() for found in names if found is not None))


def _line(start: Span, number: int) -> str:
    """Return the #line directive for line `number` of the text that starts at `start`."""
    return f'#line {start.line + number - 1} "{_shown_name(start)}"'


def _shown_name(start: Span) -> str:
    """Return the name of a text's file for C without its folder, so that the artifact does not depend on folders."""
    return re.sub(r'["\\\n]', "_", os.path.basename(start.file))


def _scalar_type(dtype: DType) -> str:
    return "_Bool" if dtype.is_bool else "float" if dtype.is_float and dtype.nbytes < 8 else memory_type(dtype)
