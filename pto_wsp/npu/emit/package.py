"""Emit the files of a package other than orchestration, golden.py and manifest: kernels, driver tables, headers and a README.

A user's own C++ body is emitted as it is, if it is a translation unit, or with its arguments around it. A body sees the names that a C body
sees on the CPU: for a parameter `x` its pointer, x_rows, x_cols, x_row_step and x_col_step in elements; scalars and constants by name.
`args` and the contents of the ABI header are visible too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, get_args

from pto_wsp.c import syntax as c
from pto_wsp.c.printer import print_expr, print_stmts
from pto_wsp.c.render import CComment, CIdent, TemplateUnit, render
from pto_wsp.c.scalars import literal
from pto_wsp.c.syntax import c_ident
from pto_wsp.errors import InternalError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import BodyForm, Kernel, Role
from pto_wsp.ir.kernel_text import print_param
from pto_wsp.ir.names import Names
from pto_wsp.npu.emit.kernel_cpp import (
    ARGS,
    BF16_TYPE,
    Side,
    abi_defines,
    device_type,
    emit_kernel_cpp,
    extent_of,
    float_value,
    pointer,
    step_of,
)
from pto_wsp.npu.emit.launch import LaunchNumbers
from pto_wsp.npu.emit.orchestration import orchestration_headers
from pto_wsp.npu.isa.tile_program import ParamAccess, TileProgram
from pto_wsp.npu.plan.arguments import tensor_directions
from pto_wsp.npu.plan.model import NpuPlan
from pto_wsp.ops.entry import Unit as Core
from pto_wsp.records import After
from pto_wsp.resources import csrc_dir
from pto_wsp.values import dataclass


class _OwnUnit(TemplateUnit):
    """The values of own_body.cpp.j2."""

    title: CComment
    constants: tuple[str, ...]
    arguments: tuple[str, ...]
    text: str
    defines: tuple[CIdent, ...]


def emit_own_cpp(kernel: Kernel, access: Sequence[ParamAccess]) -> str:
    """Return the C++ file of a kernel with the user's own body."""
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
    for slot, (param, param_access) in enumerate(zip(kernel.memory_params, access, strict=True)):
        element = device_type(param.dtype)
        name = c.c_ident(param.name)
        yield c.Declare(f"[[maybe_unused]] __gm__ {element} *const", name, pointer(element, slot))
        for side in get_args(Side):
            yield c.Declare("[[maybe_unused]] const int64_t", f"{name}_{side}s", extent_of(param_access, slot, side))
            yield c.Declare("[[maybe_unused]] const int64_t", f"{name}_{side}_step", step_of(param_access, slot, side))
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


# -- files -----------------------------------------------------------------------------------------


CoreType = Literal["aiv", "aic"]
RuntimeName = Literal["tensormap_and_ringbuffer", "host_build_graph"]

_BF16_COMPILERS = (
    "",
    "Kernels of this package compute on bf16. The headers know `bfloat16_t` as a type of its own only where the compiler defines",
    "`__STDCPP_BFLOAT16_T__` (`-D__STDCPP_BFLOAT16_T__=1`); without it, it is another name of `half`. These kernels do not compile then.",
)


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """A kernel of a package: number, file, and program (None for a body of the user or the runtime)."""

    func_id: int
    name: str
    core_type: CoreType
    kernel: Kernel
    program: TileProgram | None

    @property
    def path(self) -> str:
        """Return the kernel's path in the package."""
        return f"kernels/{self.core_type}/{self.name}.cpp"

    @property
    def signature(self) -> tuple[str, ...]:
        """Return the directions of the kernel's tensors."""
        return tuple(direction(param.role) for param in self.kernel.memory_params)


def direction(role: Role) -> str:
    """Return the name of a role for the runtime's drivers: IN, OUT or INOUT."""
    return role.value.upper()


def _one_line(text: str) -> str:
    if "\n" in text or not text.isprintable() or '"' in text or "\\" in text or "|" in text:
        raise ValueError(f"{text!r} cannot stand in a line of text")
    return text


Line = Annotated[str, After(_one_line)]


def _cell(name: str) -> str:
    """Return a user's name for a README table, with characters that would end the cell or line as %XX."""
    return "".join(char if char.isprintable() and char not in '"\\|`%' else f"%{ord(char):02X}" for char in name)


class _KernelFile(TemplateUnit):
    """The values of kernel.cpp.j2."""

    title: CComment
    arguments: CComment
    plan: tuple[str, ...]
    body: tuple[str, ...]
    defines: tuple[CIdent, ...]


class _KernelRow(TemplateUnit):
    """A kernel in the tables."""

    func_id: int
    name: CIdent
    core_type: CoreType
    core: Literal["vector", "cube"]
    signature: Line


class _InterfaceRow(TemplateUnit):
    """An interface for which the package was written."""

    name: CIdent
    version: Line


class _LaunchRow(TemplateUnit):
    """A number of the launch that no driver reads."""

    name: CIdent
    number: int
    meaning: Line


class _TensorRow(TemplateUnit):
    """A tensor in the README."""

    slot: int
    name: Line
    shape: Line
    dtype: Line
    direction: Line


class _PackageUnit(TemplateUnit):
    """The values of kernel_config.py.j2 and README.md.j2."""

    name: CIdent
    arch: Line
    runtime: RuntimeName
    threads: int
    threads_from: Line
    launch_title: tuple[Line, ...]
    launch: tuple[_LaunchRow, ...]
    launch_end: tuple[Line, ...]
    orchestration: CIdent
    signature: Line
    kernels: tuple[_KernelRow, ...]
    interfaces: tuple[_InterfaceRow, ...]
    tensors: tuple[_TensorRow, ...]
    symbols: Line
    reads: tuple[Line, ...]
    compilers: tuple[Line, ...]


_LAUNCH = ("", "# Recorded, not enforced: what the schedule and the options say of a launch, which drivers do not read.", "LAUNCH = {")


def device_kernels(plan: NpuPlan, programs: Sequence[TileProgram | None]) -> tuple[DeviceKernel, ...]:
    """Return the kernels of a plan with unique names, in order of their func_ids."""
    names = Names()
    return tuple(DeviceKernel(number, names.take(c_ident(use.kernel.name)), "aic" if use.core is Core.CUBE else "aiv", use.kernel, program)
                 for number, (use, program) in enumerate(zip(plan.kernels, programs, strict=True)))


def emit_kernel_file(kernel: DeviceKernel, plan: NpuPlan) -> str:
    """Return the C++ file of a kernel."""
    if kernel.program is None:
        return emit_own_cpp(kernel.kernel, plan.kernels[kernel.func_id].access)
    emitted = emit_kernel_cpp(kernel.program)
    spelled = [f"{slot} {param}" for slot, param in enumerate(_parameters(kernel.kernel))]
    where = f", {kernel.kernel.span.short}" if kernel.kernel.span.line else ""
    unit = _KernelFile(title=f"{kernel.name}{where}, for the {'cube' if kernel.core_type == 'aic' else 'vector'} core",
                       arguments=", ".join(spelled) or "none", plan=_in_namespace(emitted.plan), body=emitted.body,
                       defines=abi_defines(emitted.body))
    return render("ascend_npu/kernel.cpp.j2", unit)


def _in_namespace(plan: Sequence[str]) -> tuple[str, ...]:
    """Return the memory plan as lines of the file, none if nothing is on chip."""
    return ("", "namespace {", "// where each buffer lies in its memory, in bytes", *plan, "}  // namespace") if plan else ()


def _parameters(kernel: Kernel) -> tuple[str, ...]:
    """Return the parameters in the order of a task's arguments: tensors first, then scalars."""
    return tuple(print_param(param) for param in (*kernel.memory_params, *kernel.scalar_params))


def emit_package_files(plan: NpuPlan, kernels: Sequence[DeviceKernel], *, arch: str, runtime: RuntimeName, launch: LaunchNumbers,
                       interfaces: Mapping[str, str]) -> Mapping[str, str]:
    """Return the package files other than orchestration, golden.py and manifest, by path."""
    directions = tensor_directions(plan)
    files = {kernel.path: emit_kernel_file(kernel, plan) for kernel in kernels}
    given = [f"`{_cell(slot.ref.shown)}`" for slot in plan.arguments if slot.scalars and runtime == "host_build_graph"]
    unit = _PackageUnit(
        name=c_ident(plan.name), arch=arch, runtime=runtime, threads=launch.aicpu_threads,
        threads_from="as many as the schedule dispatches from" if launch.aicpu_threads else "as many as the arch has by default",
        launch_title=_LAUNCH if launch.recorded else (), launch_end=("}",) if launch.recorded else (),
        launch=tuple(_LaunchRow(name=name, number=number, meaning=meaning) for name, number, meaning in launch.recorded),
        orchestration=c_ident(plan.name),
        signature=_directions(direction(role) for role in directions),
        kernels=tuple(_KernelRow(func_id=kernel.func_id, name=kernel.name, core_type=kernel.core_type,
                                 core="cube" if kernel.core_type == "aic" else "vector", signature=_directions(kernel.signature))
                      for kernel in kernels),
        interfaces=tuple(_InterfaceRow(name=name, version=version) for name, version in interfaces.items()),
        tensors=tuple(_TensorRow(slot=number, name=_cell(slot.ref.shown), shape=str(list(slot.ref.shape)), dtype=str(slot.ref.dtype),
                                 direction=direction(role).lower())
                      for number, (slot, role) in enumerate(zip(plan.arguments, directions, strict=True))),
        symbols=", ".join(f"`{symbol.name}`" for symbol in plan.symbols) or "none",
        reads=("", f"The orchestration reads elements of {', '.join(given)} before any task runs: "
                   "the driver gives them as arrays of the host.") if given else (),
        compilers=_BF16_COMPILERS if any(BF16_TYPE in text for text in files.values()) else ())
    return {
        **files,
        "kernel_config.py": render("ascend_npu/kernel_config.py.j2", unit),
        "README.md": render("ascend_npu/README.md.j2", unit),
        **{f"include/{name}": (csrc_dir() / "npu" / name).read_text(encoding="utf-8") for name in orchestration_headers(plan)},
    }


def _directions(found: Iterable[str]) -> str:
    return ", ".join(f"_D.{one}" for one in found)
