"""A user's own C++ as the file of a kernel: a whole translation unit as it is, or a body with its arguments by name around it.

A body sees what a C body sees on the CPU: for a parameter `x` its pointer, x_rows, x_cols, x_row_step and x_col_step in elements; scalars
and constants by name. `args` is there as well, and everything that the ABI header includes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.dtypes import literal
from pto_wsp.codegen.c.printer import print_expr, print_stmts
from pto_wsp.codegen.npu.arguments import ARGS, Side, extent_of, float_value, pointer, step_of
from pto_wsp.codegen.npu.tile_types import abi_defines, device_type
from pto_wsp.codegen.render import CComment, CIdent, Unit, render
from pto_wsp.errors import InternalError
from pto_wsp.expr.kernel import BodyForm, Kernel, TileParam
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.types.dtype import DType


class _OwnUnit(Unit):
    """What own_body.cpp.j2 prints."""

    title: CComment
    constants: tuple[str, ...]
    arguments: tuple[str, ...]
    text: str
    defines: tuple[CIdent, ...]


def emit_own_cpp(kernel: Kernel, access: Sequence[ParamAccess]) -> str:
    """Return the C++ file of a kernel whose body the user wrote."""
    own = kernel.cpp_body
    if own is None:
        raise InternalError(f"kernel `{kernel.name}` has no C++ body", "it has no tile program either")
    if own.form is BodyForm.CPP_TU:
        return own.text if own.text.endswith("\n") else own.text + "\n"
    where = f", {kernel.span.short}" if kernel.span.line else ""
    constants = tuple(f"constexpr {_constant_type(value)} {c.c_ident(name)} = {_constant(value)};" for name, value in own.constants)
    arguments = tuple(print_stmts(tuple(_arguments(kernel, access)), 1, comment="//"))
    return render("ascend_npu/own_body.cpp.j2", _OwnUnit(
        title=f"{kernel.name}{where}: a body of its own", constants=constants, arguments=arguments, text=own.text.strip("\n"),
        defines=abi_defines((*arguments, own.text))))


def _arguments(kernel: Kernel, access: Sequence[ParamAccess]) -> Iterator[c.Stmt]:
    for slot, (param, found) in enumerate(zip(kernel.memory_params, access, strict=True)):
        element = device_type(param.type.dtype if isinstance(param, TileParam) else param.dtype)
        name = c.c_ident(param.name)
        yield c.Declare(f"[[maybe_unused]] __gm__ {element} *const", name, pointer(element, slot))
        for side in get_args(Side):
            yield c.Declare("[[maybe_unused]] const int64_t", f"{name}_{side}s", extent_of(found, slot, side))
            yield c.Declare("[[maybe_unused]] const int64_t", f"{name}_{side}_step", step_of(found, slot, side))
    for slot, scalar in enumerate(kernel.scalar_params, len(kernel.memory_params)):
        if scalar.dtype.is_float:
            yield c.Declare("[[maybe_unused]] const float", c.c_ident(scalar.name), float_value(slot))
        else:
            kind = device_type(scalar.dtype) if not scalar.dtype.is_bool else "bool"
            value = c.Call(f"static_cast<{kind}>", (c.Index(ARGS, c.Int(slot)),))
            yield c.Declare(f"[[maybe_unused]] const {kind}", c.c_ident(scalar.name), value)


def _constant_type(value: float | int | bool) -> str:
    return "bool" if isinstance(value, bool) else "int64_t" if isinstance(value, int) else "float"


def _constant(value: float | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return print_expr(literal(value, DType.I64 if isinstance(value, int) else DType.F32))
