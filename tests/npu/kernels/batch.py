"""Many kernels in one compilation: each is selected, planned, emitted, run on the emulated core, and compared with its NumPy meaning.

>>> check([Case(double, {"x": array, "out": Bound.empty((4, 8), DType.F32)})], "a2a3")
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp import DType, Kernel
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import raise_all
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.kernel import Compute, ScalarParamDecl, TensorParam, TileParam
from pto_wsp.ir.kernel import Kernel as KernelIR
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.npu.check.checks import check_tile_program
from pto_wsp.npu.emit.package import DeviceKernel, emit_kernel_file
from pto_wsp.npu.isa.tile_program import ParamAccess, TileProgram
from pto_wsp.npu.plan.descriptors import NpuUse
from pto_wsp.npu.plan.model import NpuKernel, NpuPlan
from pto_wsp.npu.plan.passes import NPU_PASSES
from pto_wsp.npu.plan.split_kernel import split_kernel
from pto_wsp.npu.select.select import select
from pto_wsp.npu.tiles.passes import TILE_PROGRAM_PASSES
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.table import find
from pto_wsp.passes.kernel.passes import run_kernel_passes
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.resources import csrc_dir
from tests.npu.compiled import INCLUDE, KERNEL, SHARED, WARNINGS, compiled, text_of
from tests.npu.emulator import Given, LoadedKernel, core, f32_bits

ARCHES = {"a2a3": "ascend_910b", "a5": "ascend_950"}
Array = npt.NDArray[Any]
Change = Callable[[TileProgram], TileProgram]


@dataclass(frozen=True)
class Bound:
    """An argument: `memory` is the tensor on the device, of which `view` selects rows and columns; `access` says how they are found."""

    memory: Array
    view: Array
    access: ParamAccess

    @staticmethod
    def plain(array: Array) -> Bound:
        """Return a row-major array, whole."""
        rows, cols = array.shape
        return Bound(array, array, ParamAccess(0, 1, rows=rows, cols=cols, unit_cols=True, unit_rows=cols == 1 or rows == 1))

    @staticmethod
    def turned(array: Array) -> Bound:
        """Return an array that lies transposed in memory."""
        memory = np.ascontiguousarray(array.T)
        rows, cols = array.shape
        return Bound(memory, memory.T, ParamAccess(1, 0, rows=rows, cols=cols, unit_cols=cols == 1 or rows == 1, unit_rows=True))

    @staticmethod
    def spread(array: Array, down: int, across: int) -> Bound:
        """Return an array of which neighbours lie some rows and columns apart."""
        rows, cols = array.shape
        memory = np.full((rows * down, cols * across), 77, array.dtype)
        view = memory[::down, ::across]
        view[...] = array
        return Bound(memory, view, ParamAccess(0, 1, down, across, rows, cols, unit_cols=across == 1 or cols == 1, unit_rows=rows == 1))

    def ragged(self, *, group: int | None = None, cols: bool = False) -> Bound:
        """Return the argument with rows, or columns, that the kernel reads from the descriptor."""
        unit_rows = self.access.row_dim == 1 or (self.memory.shape[1] == 1 and self.access.row_step == 1)
        if cols:
            return replace(self, access=replace(self.access, cols=None, col_group=group, unit_rows=unit_rows))
        return replace(self, access=replace(self.access, rows=None, row_group=group, unit_rows=unit_rows))


@dataclass(frozen=True)
class Case:
    """A kernel with arguments by name. `given` specialises it; outputs start as `before`, or poisoned."""

    kernel: Kernel
    arguments: Mapping[str, Bound | float]
    given: Mapping[str, object] = field(default_factory=dict)
    rtol: float = 0.0
    atol: float = 0.0
    expected: Mapping[str, Array] | None = None


def program_of(case: Case, family: str, change: Change = lambda program: program) -> TileProgram:
    """Return the tile program of a case, after all passes and held to the emitter's own checks; `change` is made to it before them."""
    arch = builtin_arch(ARCHES[family])
    program = run_passes(change(selected_of(case, family)), arch, TILE_PROGRAM_PASSES)
    raise_all([finding.error for finding in check_tile_program(program, arch) if finding.error is not None])
    return program


def selected_of(case: Case, family: str) -> TileProgram:
    """Return the tile program of a case as it is selected, without addresses and flags."""
    kernel = run_kernel_passes(case.kernel.specialise(**case.given), None, NPU_PASSES)
    access = tuple(found.access for p in kernel.memory_params if isinstance(found := case.arguments[p.name], Bound))
    arch = builtin_arch(ARCHES[family])
    units = {find(stmt.op).unit for stmt in walk(kernel.body) if isinstance(stmt, Compute)}
    use = NpuKernel(kernel, Unit.VECTOR, access)
    if Unit.CUBE in units:
        (part,) = split_kernel(kernel, NpuUse(kernel, access, frozenset())).parts
        use = NpuKernel(part.kernel, part.core, part.access)
    return select(use, arch)


def check(cases: Sequence[Case], family: str, change: Change = lambda program: program) -> None:
    """Raise AssertionError naming every case whose kernel fails on the emulated core or gives something else than NumPy."""
    programs = [program_of(case, family, change) for case in cases]
    kernels = load_programs(programs, family)
    faults = []
    for number, (case, program, loaded) in enumerate(zip(cases, programs, kernels, strict=True)):
        try:
            run_case(case, program, loaded)
        except AssertionError as wrong:
            faults.append(f"case {number}, {case.kernel!r}: {str(wrong).strip()}")
    assert not faults, f"{len(faults)} of {len(cases)} cases\n" + "\n\n".join(faults)


def run_case(case: Case, program: TileProgram, loaded: LoadedKernel) -> None:
    """Run a case. Raises: AssertionError with what the core found wrong, or where the result is not NumPy's."""
    ir = case.kernel.specialise(**case.given)
    bound = {name: value for name, value in case.arguments.items() if isinstance(value, Bound)}
    arrays = {name: value.view.copy() for name, value in bound.items()}
    scalars = {name: value for name, value in case.arguments.items() if not isinstance(value, Bound)}
    written = [p.name for p in ir.memory_params if p.role.writes]
    if case.expected is None:
        found = case.kernel.run(**arrays, **scalars, **{n: v for n, v in case.given.items() if n not in arrays})
        expected = dict(zip(written, found if isinstance(found, tuple) else (found,), strict=True))
    else:
        expected = dict(case.expected)
    tensors = []
    for p in program.params:
        if isinstance(p, TileParam | TensorParam):
            if not p.role.reads:
                poison = np.frombuffer(b"\xfe" * 8, bound[p.name].view.dtype)[0]
                bound[p.name].view[...] = poison
            tensors.append(Given(bound[p.name].memory, p.role.writes))
    loaded.run(tensors, [_slot(scalars[p.name], p.dtype) for p in program.params if isinstance(p, ScalarParamDecl)])
    for name in written:
        got, true = bound[name].view, expected[name]
        np.testing.assert_allclose(got.astype(np.float64), true.astype(np.float64), case.rtol, case.atol, err_msg=name)


def _slot(value: float, dtype: DType) -> int:
    return f32_bits(float(np.asarray(value, dtype.np))) if dtype.is_float else int(value)


def _file_of(program: TileProgram) -> str:
    use = NpuKernel(KernelIR(program.name, program.params, ()), program.core, program.access)
    plan = NpuPlan("batch", (), (), (use,), PlanSequence(()))
    return emit_kernel_file(DeviceKernel(0, program.name, "aic" if program.core is Unit.CUBE else "aiv", use.kernel, program), plan)


def load_programs(programs: Sequence[TileProgram], family: str) -> list[LoadedKernel]:
    """Return all kernels, from one file in which each has a namespace and an entry of its own."""
    text = ["#define PTO_WSP_KERNEL", '#include "pto_wsp_abi.h"']
    for number, program in enumerate(programs):
        file = _file_of(program).replace("#define PTO_WSP_KERNEL\n", "").replace('#include "../../include/pto_wsp_abi.h"\n', "")
        text += [f"namespace k{number} {{", file.replace("kernel_entry", f"kernel_entry_{number}"), "}"]
    abi = csrc_dir() / "npu" / "pto_wsp_abi.h"
    flags = (*WARNINGS, *SHARED, "-O0", f"-DPTO_HOST_FAMILY_A5={int(family == 'a5')}", f"-I{INCLUDE}", f"-I{abi.parent}")
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "batch.cpp"
        source.write_text("\n".join(text))
        path = compiled((source, core()), flags, text_of(abi, *sorted(INCLUDE.rglob("*.h*"))), KERNEL)
    library = ctypes.CDLL(str(path))
    entries = [ctypes.cast(getattr(library, f"kernel_entry_{number}"), ctypes.c_void_p).value for number in range(len(programs))]
    return [LoadedKernel(entry or 0, cube=program.core is Unit.CUBE) for entry, program in zip(entries, programs, strict=True)]
