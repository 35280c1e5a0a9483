"""Many kernels in one compilation: each is selected, planned, emitted, run on the emulated core, and compared with its NumPy meaning.

>>> check([Case(double, {"x": array, "out": Bound.empty((4, 8), DType.F32)})], "a2a3")
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp import DType, Kernel
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.codegen.npu.package import DeviceKernel, emit_kernel_file
from pto_wsp.expr.kernel import Kernel as KernelIR
from pto_wsp.expr.kernel import TensorParam, TileParam
from pto_wsp.expr.tile_program import ParamAccess, TileProgram
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.kernel.passes import run_kernel_passes
from pto_wsp.plan.npu.model import Block, NpuKernel, NpuPlan
from pto_wsp.plan.npu.passes import run_tile_program_passes
from pto_wsp.plan.npu.select.select import select
from pto_wsp.plan.npu.split.passes import NPU_PASSES
from pto_wsp.resources import csrc_dir
from tests.npu.harness import DTYPES, INCLUDE, WARNINGS, Target

ARCHES = {"a2a3": "ascend_910b", "a5": "ascend_950"}
Array = npt.NDArray[Any]


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
        if cols:
            return replace(self, access=replace(self.access, cols=None, col_group=group, unit_rows=self.memory.shape[0] == 1))
        return replace(self, access=replace(self.access, rows=None, row_group=group, unit_rows=self.memory.shape[1] == 1))


@dataclass(frozen=True)
class Case:
    """A kernel with arguments by name. `given` specialises it; outputs start as `before`, or poisoned."""

    kernel: Kernel
    arguments: Mapping[str, Bound | float]
    given: Mapping[str, object] = field(default_factory=dict)
    rtol: float = 0.0
    atol: float = 0.0
    expected: Mapping[str, Array] | None = None


def program_of(case: Case, family: str) -> TileProgram:
    """Return the tile program of a case, after all passes."""
    kernel = run_kernel_passes(case.kernel.specialise(**case.given), None, NPU_PASSES)
    access = tuple(found.access for p in kernel.memory_params if isinstance(found := case.arguments[p.name], Bound))
    arch = builtin_arch(ARCHES[family])
    return run_tile_program_passes(select(NpuKernel(kernel, Unit.VECTOR, access), arch), arch)


def check(cases: Sequence[Case], family: str) -> None:
    """Raise AssertionError naming every case whose kernel fails on the emulated core or gives something else than NumPy."""
    programs = [program_of(case, family) for case in cases]
    library = ctypes.CDLL(str(_compiled([_file_of(program) for program in programs], family)))
    faults = []
    for number, (case, program) in enumerate(zip(cases, programs, strict=True)):
        try:
            _check_one(case, program, library, number)
        except AssertionError as wrong:
            faults.append(f"case {number}, {case.kernel!r}: {str(wrong).strip()}")
    assert not faults, "\n\n".join(faults)


def _check_one(case: Case, program: TileProgram, library: ctypes.CDLL, number: int) -> None:
    ir = case.kernel.specialise(**case.given)
    bound = {name: value for name, value in case.arguments.items() if isinstance(value, Bound)}
    arrays = {name: value.view.copy() for name, value in bound.items()}
    scalars = {name: value for name, value in case.arguments.items() if not isinstance(value, Bound)}
    written = [p.name for p in ir.memory_params if p.role.writes]
    found = case.kernel.run(**arrays, **scalars, **{n: v for n, v in case.given.items() if n not in arrays})
    outputs = found if isinstance(found, tuple) else (found,)
    expected = dict(zip(written, outputs, strict=True)) if case.expected is None else case.expected
    tensors = []
    for p in program.params:
        if isinstance(p, TileParam | TensorParam):
            memory = bound[p.name].memory
            if not p.role.reads:
                bound[p.name].view[...] = np.frombuffer(b"\xfe" * memory.itemsize, memory.dtype)[0]
            tensors.append(_Tensor(memory.ctypes.data, list(DTYPES).index(memory.dtype), memory.ndim, (ctypes.c_uint32 * 5)(*memory.shape),
                                   p.role.writes))
    slots = [_slot(scalars[p.name], p.dtype) for p in program.params if not isinstance(p, TileParam | TensorParam)]
    said = ctypes.create_string_buffer(4096)
    failed = library.run_kernel(number, len(tensors), (_Tensor * max(1, len(tensors)))(*tensors), len(slots),
                                (ctypes.c_int64 * max(1, len(slots)))(*slots), said, 4096)
    assert not failed, said.value.decode()
    for name in written:
        got, true = bound[name].view, expected[name]
        exact = case.rtol == case.atol == 0
        np.testing.assert_allclose(got.astype(np.float64), true.astype(np.float64), 0 if exact else case.rtol, case.atol, err_msg=name)


class _Tensor(ctypes.Structure):
    """A tensor for `run_kernel`: data, which of DTYPES, dimensions, whether it is written."""

    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("ndims", ctypes.c_uint32), ("shapes", ctypes.c_uint32 * 5),
                ("writable", ctypes.c_bool)]


def _slot(value: float, dtype: DType) -> int:
    if dtype.is_float:
        bits: int = struct.unpack("<I", struct.pack("<f", float(np.asarray(value, dtype.np))))[0]
        return bits
    return int(value)


def _file_of(program: TileProgram) -> str:
    use = NpuKernel(KernelIR(program.name, program.params, ()), program.core, program.access)
    plan = NpuPlan("batch", (), (), (use,), Block(()))
    return emit_kernel_file(DeviceKernel(0, program.name, "aiv", use.kernel, program), plan)


def _compiled(files: Sequence[str], family: str) -> Path:
    """Return a library with all kernels: one file, in which each has a namespace and an entry of its own."""
    text = ['#define PTO_WSP_KERNEL', '#include "pto_wsp_abi.h"', '#include <exception>', '#include <cstring>', '#include "host_task.h"']
    for number, file in enumerate(files):
        file = file.replace("#define PTO_WSP_KERNEL\n", "").replace('#include "../../include/pto_wsp_abi.h"\n', "")
        text += [f"namespace k{number} {{", file.replace("kernel_entry", f"kernel_entry_{number}"), "}"]
    entries = ", ".join(f"k{number}::kernel_entry_{number}" for number in range(len(files)))
    dtypes = ", ".join(f"DataType::{name}" for name in DTYPES.values())
    text.append(_DRIVER.replace("ENTRIES", entries).replace("DTYPES", dtypes))
    source = "\n".join(text)
    headers = b"".join(path.read_bytes() for path in (*sorted(INCLUDE.rglob("*.h*")), csrc_dir() / "npu" / "pto_wsp_abi.h"))
    digest = hashlib.sha256(source.encode() + headers + family.encode()).hexdigest()[:32]
    folder = Path(tempfile.gettempdir()) / f"pto-wsp-npu-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    path = folder / f"{digest}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as name:
            (Path(name) / "batch.cpp").write_text(source)
            flags = (*WARNINGS, "-O0", "-shared", "-fPIC", *Target(family, "host_build_graph").defines)
            done = subprocess.run(["g++", "-std=c++17", *flags, f"-I{INCLUDE}", f"-I{csrc_dir() / 'npu'}", f"{name}/batch.cpp", "-o",
                                   f"{name}/made"], capture_output=True, text=True)
            assert done.returncode == 0, re.sub(re.escape(name), "", done.stderr)[:6000]
            (Path(name) / "made").replace(path)
    return path


_DRIVER = """
struct GivenTensor {
    void *data;
    int dtype;
    uint32_t ndims;
    uint32_t shapes[5];
    bool writable;
};

// Run kernel `which` as one task. Returns 1 and what went wrong where the emulated core refuses something.
extern "C" int run_kernel(int which, int n_tensors, const GivenTensor *given, int n_scalars, const int64_t *scalars, char *said, int size) {
    using Entry = void (*)(int64_t *);
    static const Entry entries[] = {ENTRIES};
    static const DataType dtypes[] = {DTYPES};
    ChipTensor tensors[kMaxTaskTensors];
    const ChipTensor *pointers[kMaxTaskTensors];
    bool writable[kMaxTaskTensors];
    int64_t args[kTaskSlots] = {};
    for (int t = 0; t < n_tensors; ++t) {
        ChipTensor &one = tensors[t];
        one.dtype = dtypes[given[t].dtype];
        one.ndims = given[t].ndims;
        one.start_offset = 0;
        uint64_t count = 1;
        for (uint32_t dim = one.ndims; dim-- > 0;) {
            one.shapes[dim] = given[t].shapes[dim];
            one.strides[dim] = static_cast<uint32_t>(count);
            count *= one.shapes[dim];
        }
        one.buffer = {reinterpret_cast<uint64_t>(given[t].data), count * bytes_of(one.dtype)};
        pointers[t] = &one;
        writable[t] = given[t].writable;
        args[t] = reinterpret_cast<int64_t>(&one);
    }
    for (int k = 0; k < n_scalars; ++k) args[n_tensors + k] = scalars[k];
    args[kBlockNumSlot] = 1;
    const HostTask task{false, n_tensors, pointers, writable};
    try {
        pto_emulator_begin(&task);
        entries[which](args);
        pto_emulator_end();
    } catch (const std::exception &fault) {
        std::strncpy(said, fault.what(), static_cast<size_t>(size) - 1);
        return 1;
    }
    return 0;
}
"""
