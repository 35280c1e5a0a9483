"""Compiling C in tests: plain cc and cffi, without the artifact store."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import numpy.typing as npt
import pytest

from pto_wsp.artifact.build import abi_text
from pto_wsp.codegen.c.flags import compile_flags
from pto_wsp.codegen.kernel.emit import KernelC, emit_kernel, prelude
from pto_wsp.expr import kernel as k
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.passes import KERNEL_PASSES, KernelPass, run_kernel_passes

INCLUDE = Path(__file__).resolve().parents[2] / "csrc" / "include"
PTO_STAGE = 4
Array = npt.NDArray[Any]
Compile = Callable[..., "Library"]


@dataclass(frozen=True)
class Library:
    """A shared library and the ffi that knows its declarations."""

    ffi: Any
    lib: Any

    def pointer(self, kind: str, array: Array) -> Any:
        """Return a C pointer to an array's first element."""
        return self.ffi.cast(kind, array.__array_interface__["data"][0])


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles C text and loads it; `quiet`: for random text that a compiler rightly frowns at."""
    folder = tmp_path_factory.mktemp("c")

    def compile_text(text: str, declarations: str, portable: bool = False, quiet: bool = False) -> Library:
        flags = (*compile_flags(portable), *(("-w",) if quiet else ("-Wall", "-Wextra", "-Werror")))
        compiler = shlex.split(os.environ.get("CC", "cc"))
        name = hashlib.sha256(repr((compiler, text, flags)).encode()).hexdigest()[:16]
        source, target = folder / f"{name}.c", folder / f"{name}.so"
        source.write_text(text)
        command = [*compiler, *flags, f"-I{INCLUDE}", "-o", str(target), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{text}"
        ffi = cffi.FFI()
        ffi.cdef(abi_text(INCLUDE.parent))
        ffi.cdef(declarations)
        return Library(ffi, ffi.dlopen(str(target)))

    return compile_text


@dataclass(frozen=True)
class Built:
    """A compiled kernel; call it with arrays and numbers by parameter name."""

    kernel: k.Kernel
    code: KernelC
    library: Library

    def __call__(self, args: Mapping[str, Array | int | float], stage: Sequence[str] = ()) -> int:
        """Run once on scratch full of garbage and return the kernel's result."""
        ffi = self.library.ffi
        params = self.kernel.memory_params
        views = ffi.new("pto_arg[]", max(len(params), 1))
        for view, param in zip(views, params, strict=False):
            array = args[param.name]
            assert isinstance(array, np.ndarray)
            view.data = self.library.pointer("char *", array)
            for dim in (0, 1):
                view.extent[dim], view.stride[dim] = array.shape[dim], array.strides[dim] // array.itemsize
            view.flags = PTO_STAGE if param.name in stage else 0
        slots = [float_bits(args[p.name]) if p.dtype.is_float else int(args[p.name])  # type: ignore[arg-type]
                 for p in self.kernel.scalar_params]
        memory = np.full(self.code.scratch_bytes + 128, 0xFF, np.uint8)
        start = -memory.__array_interface__["data"][0] % 64
        scratch = memory[start:]
        found: int = getattr(self.library.lib, self.code.symbol)(
            views, ffi.new("int64_t[]", slots or [0]), self.library.pointer("char *", scratch), ffi.new("pto_context *"))
        assert (scratch[self.code.scratch_bytes:] == 0xFF).all(), "wrote behind its scratch"
        return found


def float_bits(value: Any) -> int:
    """Return the bits of a double."""
    return int(np.float64(value).view(np.int64))


@pytest.fixture(scope="session")
def build(compile_c: Compile) -> Callable[..., Built]:
    """Return a function that emits, compiles and loads one kernel: (kernel, unit_inner=all of them, passes=all of them)."""

    def build_kernel(kernel: k.Kernel, unit_inner: Mapping[str, bool] | None = None, portable: bool = False,
                     quiet: bool = False, passes: tuple[KernelPass, ...] = KERNEL_PASSES, streamed: Sequence[str] = (),
                     ragged: Sequence[str] = ()) -> Built:
        unit = {p.name: True for p in kernel.memory_params} if unit_inner is None else unit_inner
        neighbours = frozenset(name for name, unit_columns in unit.items() if unit_columns)
        lowered = run_kernel_passes(kernel, KernelContext(neighbours, frozenset(streamed), frozenset(ragged)), passes)
        code = emit_kernel(lowered, "kernel_under_test", unit)
        declared = f"int32_t {code.symbol}(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context);"
        text = prelude([code]) + code.text
        return Built(kernel, code, compile_c(text, declared, portable, quiet))

    return build_kernel
