"""The files of a package around its orchestration and golden: kernels, what the runtime's drivers read, and a README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pto_wsp.codegen.c.syntax import c_ident
from pto_wsp.codegen.npu.kernel_cpp import emit_kernel_cpp
from pto_wsp.codegen.npu.names import Names
from pto_wsp.codegen.npu.orchestration.emit import orchestration_headers
from pto_wsp.codegen.npu.own_body import emit_own_cpp
from pto_wsp.codegen.npu.tile_types import BF16_TYPE, abi_defines
from pto_wsp.codegen.render import CComment, CIdent, Unit, render
from pto_wsp.expr.kernel import Kernel, Role
from pto_wsp.expr.kernel_text import print_param
from pto_wsp.expr.tile_program import TileProgram
from pto_wsp.ops.entry import Unit as Core
from pto_wsp.plan.npu.directions import tensor_directions
from pto_wsp.plan.npu.model import NpuPlan
from pto_wsp.records import After
from pto_wsp.resources import csrc_dir
from pto_wsp.values import dataclass

CoreType = Literal["aiv", "aic"]
RuntimeName = Literal["tensormap_and_ringbuffer", "host_build_graph"]

_BF16_COMPILERS = (
    "",
    "Kernels of this package compute on bf16. The headers know `bfloat16_t` as a type of its own only where the compiler defines",
    "`__STDCPP_BFLOAT16_T__` (`-D__STDCPP_BFLOAT16_T__=1`); without it, it is another name of `half`. These kernels do not compile then.",
)


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """A kernel of a package: its number, its file, and its program (None for a body of the user's own or the runtime's)."""

    func_id: int
    name: str
    core_type: CoreType
    kernel: Kernel
    program: TileProgram | None

    @property
    def path(self) -> str:
        """Its file in the package."""
        return f"kernels/{self.core_type}/{self.name}.cpp"

    @property
    def signature(self) -> tuple[str, ...]:
        """The directions of its tensors."""
        return tuple(direction(param.role) for param in self.kernel.memory_params)


def direction(role: Role) -> str:
    """Return a role as the runtime's drivers call it: IN, OUT or INOUT."""
    return role.value.upper()


def _one_line(text: str) -> str:
    if "\n" in text or not text.isprintable() or '"' in text or "\\" in text or "|" in text:
        raise ValueError(f"{text!r} cannot stand in a line of text")
    return text


Line = Annotated[str, After(_one_line)]


def _cell(name: str) -> str:
    """Return a user's name as a table of the README can hold it: what would end its cell or line as %XX."""
    return "".join(char if char.isprintable() and char not in '"\\|`%' else f"%{ord(char):02X}" for char in name)


class _KernelUnit(Unit):
    """What kernel.cpp.j2 prints."""

    title: CComment
    arguments: CComment
    plan: tuple[str, ...]
    body: tuple[str, ...]
    defines: tuple[CIdent, ...]


class _KernelRow(Unit):
    """A kernel in the tables."""

    func_id: int
    name: CIdent
    core_type: CoreType
    core: Literal["vector", "cube"]
    signature: Line


class _InterfaceRow(Unit):
    """An interface that the package was written for."""

    name: CIdent
    version: Line


class _TensorRow(Unit):
    """A tensor in the README."""

    slot: int
    name: Line
    shape: Line
    dtype: Line
    direction: Line


class _PackageUnit(Unit):
    """What kernel_config.py.j2 and README.md.j2 print."""

    name: CIdent
    arch: Line
    runtime: RuntimeName
    orchestration: CIdent
    signature: Line
    kernels: tuple[_KernelRow, ...]
    interfaces: tuple[_InterfaceRow, ...]
    tensors: tuple[_TensorRow, ...]
    symbols: Line
    reads: tuple[Line, ...]
    compilers: tuple[Line, ...]


def device_kernels(plan: NpuPlan, programs: Sequence[TileProgram | None]) -> tuple[DeviceKernel, ...]:
    """Return the kernels of a plan under names that are theirs alone, in the order of their func_ids."""
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
    unit = _KernelUnit(title=f"{kernel.name}{where}, for the {'cube' if kernel.core_type == 'aic' else 'vector'} core",
                       arguments=", ".join(spelled) or "none", plan=_in_namespace(emitted.plan), body=emitted.body,
                       defines=abi_defines(emitted.body))
    return render("ascend_npu/kernel.cpp.j2", unit)


def _in_namespace(plan: Sequence[str]) -> tuple[str, ...]:
    """The memory plan as lines of the file, none where there is nothing on chip."""
    return ("", "namespace {", "// where each buffer lies in its memory, in bytes", *plan, "}  // namespace") if plan else ()


def _parameters(kernel: Kernel) -> tuple[str, ...]:
    """The parameters as a task is given them: tensors first, then scalars."""
    return tuple(print_param(param) for param in (*kernel.memory_params, *kernel.scalar_params))


def emit_package_files(plan: NpuPlan, kernels: Sequence[DeviceKernel], *, arch: str, runtime: RuntimeName,
                       interfaces: Mapping[str, str]) -> Mapping[str, str]:
    """Return everything but orchestration, golden and manifest, by path."""
    directions = tensor_directions(plan)
    files = {kernel.path: emit_kernel_file(kernel, plan) for kernel in kernels}
    given = [f"`{_cell(slot.ref.shown)}`" for slot in plan.arguments if slot.scalars and runtime == "host_build_graph"]
    unit = _PackageUnit(
        name=c_ident(plan.name), arch=arch, runtime=runtime, orchestration=c_ident(plan.name),
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
