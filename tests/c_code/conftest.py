"""Compiling C in tests: plain cc and cffi, without the artifact store."""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import subprocess
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import numpy.typing as npt
import pytest

from pto_wsp.artifact.abi import abi_text
from pto_wsp.c.flags import compile_flags
from pto_wsp.c.kernel import KernelC, emit_kernel, prelude
from pto_wsp.ir import kernel as k
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.passes import KERNEL_PASSES, KernelPass, run_kernel_passes

INCLUDE = Path(__file__).resolve().parents[2] / "csrc" / "include"
PTO_STAGE = 4
Array = npt.NDArray[Any]
Compile = Callable[..., "Library"]
BuildAll = Callable[..., "dict[Hashable, Built]"]


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
    interface = cffi.FFI()
    interface.cdef(abi_text(INCLUDE.parent))

    @functools.cache
    def compile_once(text: str, declarations: str, flags: tuple[str, ...], compiler: tuple[str, ...]) -> Library:
        name = hashlib.sha256(repr((compiler, text, flags)).encode()).hexdigest()[:16]
        source, target = folder / f"{name}.c", folder / f"{name}.so"
        source.write_text(text)
        command = [*compiler, *flags, f"-I{INCLUDE}", "-o", str(target), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{text}"
        ffi = cffi.FFI()
        ffi.include(interface)
        ffi.cdef(declarations)
        return Library(ffi, ffi.dlopen(str(target)))

    def compile_text(text: str, declarations: str, portable: bool = False, quiet: bool = False) -> Library:
        flags = (*compile_flags(portable), *(("-w",) if quiet else ("-Wall", "-Wextra", "-Werror")))
        return compile_once(text, declarations, flags, tuple(shlex.split(os.environ.get("CC", "cc"))))

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
        cancel = ffi.new("int32_t *")
        context = ffi.new("pto_context *", {"cancel": cancel})
        start = -memory.__array_interface__["data"][0] % 64
        scratch = memory[start:]
        found: int = getattr(self.library.lib, self.code.symbol)(
            views, ffi.new("int64_t[]", slots or [0]), self.library.pointer("char *", scratch), context)
        assert (scratch[self.code.scratch_bytes:] == 0xFF).all(), "wrote behind its scratch"
        return found


def float_bits(value: Any) -> int:
    """Return the bits of a double."""
    return int(np.float64(value).view(np.int64))


@dataclass(frozen=True)
class Job:
    """A kernel to be compiled. `unit_inner`: the memory parameters whose columns are neighbours, None for all of them."""

    kernel: k.Kernel
    unit_inner: Mapping[str, bool] | None = None
    passes: tuple[KernelPass, ...] = KERNEL_PASSES
    streamed: Sequence[str] = ()
    ragged: Sequence[str] = ()

    def emit(self, symbol: str) -> KernelC:
        """Return the kernel in C."""
        unit = {p.name: True for p in self.kernel.memory_params} if self.unit_inner is None else self.unit_inner
        neighbours = frozenset(name for name, unit_columns in unit.items() if unit_columns)
        context = KernelContext(neighbours, frozenset(self.streamed), frozenset(self.ragged))
        return emit_kernel(run_kernel_passes(self.kernel, context, self.passes), symbol, unit)


@pytest.fixture(scope="session")
def build_all(compile_c: Compile) -> BuildAll:
    """Return a function that emits kernels, compiles them in one library and loads it: (jobs, portable, quiet) -> kernels by key."""

    def build_jobs(jobs: Mapping[Hashable, Job], portable: bool = False, quiet: bool = False) -> dict[Hashable, Built]:
        codes = [job.emit(f"kernel_{number}") for number, job in enumerate(jobs.values())]
        declared = "".join(f"int32_t {code.symbol}(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context);\n"
                           for code in codes)
        library = compile_c(prelude(codes) + "".join(code.text for code in codes), declared, portable, quiet)
        return {key: Built(job.kernel, code, library) for (key, job), code in zip(jobs.items(), codes, strict=True)}

    return build_jobs


@pytest.fixture(scope="session")
def build(build_all: BuildAll) -> Callable[..., Built]:
    """Return a function that compiles one kernel: (kernel, portable, quiet, and what else a `Job` says)."""

    def build_kernel(kernel: k.Kernel, unit_inner: Mapping[str, bool] | None = None, portable: bool = False, quiet: bool = False,
                     **options: Any) -> Built:
        return build_all({0: Job(kernel, unit_inner, **options)}, portable, quiet)[0]

    return build_kernel
