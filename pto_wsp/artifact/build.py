"""The one way between Python and C: build and load the runtime library and artifacts, through cffi in ABI mode.

The runtime (csrc/) is compiled once per machine and kept in the store. `pto_abi.h` and `pto_library.h` are read unchanged by cffi, whose
parsed form is kept beside the library, so that a cached start parses nothing. A handshake at load compares the layout of every struct.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pto_wsp.artifact.store import cache_root, locked, publish_dir, writing
from pto_wsp.artifact.toolchain import Toolchain, compile_library, cpu_features, find_toolchain
from pto_wsp.codegen.c.flags import compile_flags
from pto_wsp.errors import AbiMismatchError, CacheCorruptError, CompilerFailedError
from pto_wsp.resources import csrc_dir
from pto_wsp.values import dataclass

ABI_VERSION = 6
_LIBRARY = "libpto_runtime.so"
_ABI_MODULE = "pto_abi_parsed.py"
_SUMS = "SHA256SUMS"


@dataclass(frozen=True, slots=True, eq=False)
class Runtime:
    """The loaded runtime library: `ffi` and `lib` as cffi gives them."""

    ffi: Any
    lib: Any
    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class LoadedArtifact:
    """An artifact's library: its table of kernels and its orchestrator."""

    runtime: Runtime
    library: Any                  # keeps the library open
    table: Any                    # const pto_artifact *


def machine_key(portable: bool) -> str:
    """Return what a compiled library depends on beside its sources: compiler, flags, CPU."""
    toolchain = find_toolchain()
    cpu = "portable" if portable else " ".join(cpu_features())
    return "\n".join((toolchain.fingerprint, " ".join(toolchain.command), " ".join(compile_flags(portable)), cpu))


def tree_digest(folder: Path, *endings: str) -> str:
    """Return the SHA-256 of the files under a folder whose names end so: names and contents."""
    state = hashlib.sha256()
    found = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names if name.endswith(endings)]
    for path in sorted(found):     # plain strings: every process does this, and paths as objects take three times as long
        state.update(path[len(str(folder)):].encode() + b"\0")
        with open(path, "rb", buffering=0) as file:
            state.update(file.read())
    return state.hexdigest()


def load_runtime() -> Runtime:
    """Return the runtime library, built first where this machine has not built it yet.

    Raises: C101, C102, C106 when it cannot be built; C103 when the kept one is damaged; C105 when it is of another interface.
    """
    return _load_runtime(str(cache_root()), machine_key(portable=False))


@lru_cache(maxsize=4)
def _load_runtime(root: str, machine: str) -> Runtime:
    csrc = csrc_dir()
    digest = hashlib.sha256(f"{tree_digest(csrc, '.c', '.h')}\n{machine}".encode()).hexdigest()[:16]
    folder = Path(root) / "runtime" / digest
    if not folder.is_dir():
        with writing(), locked(f"runtime-{digest}"):
            if not folder.is_dir():
                _build_runtime(csrc, folder, find_toolchain())
    _verify_sums(folder)
    ffi = _abi_ffi(folder / _ABI_MODULE)
    lib = _open(ffi, folder / _LIBRARY)
    runtime = Runtime(ffi, lib, folder)
    rows = ffi.new("const pto_layout **")
    _handshake(ffi, lib.pto_abi_version(), rows, lib.pto_abi_layout(rows), folder)
    return runtime


def _build_runtime(csrc: Path, folder: Path, toolchain: Toolchain) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    sources = [str(path) for path in sorted((csrc / "src").glob("*/*.c"))]
    flags = (*compile_flags(portable=False), "-pthread", f"-I{csrc / 'include'}", f"-ffile-prefix-map={csrc}=csrc")
    try:
        compile_library(toolchain, flags, sources, _LIBRARY, building, what="the runtime library")
        _write_abi_module(abi_text(csrc), building / _ABI_MODULE)
        sums = "".join(f"{_sha256(building / name)}  {name}\n" for name in (_LIBRARY, _ABI_MODULE))
        (building / _SUMS).write_text(sums, encoding="utf-8")
        publish_dir(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def abi_text(csrc: Path) -> str:
    """Return the text of the interface between Python and C, as cffi reads it."""
    return "".join((csrc / "include" / name).read_text(encoding="utf-8") for name in ("pto_abi.h", "pto_library.h"))


def _verify_sums(folder: Path) -> None:
    try:
        lines = (folder / _SUMS).read_text(encoding="utf-8").splitlines()
        wrong = [name for digest, name in (line.split("  ") for line in lines) if _sha256(folder / name) != digest]
        found = f"{wrong[0]}: its checksum is not the one kept" if wrong else None if len(lines) == 2 else "a short list of checksums"
    except (OSError, ValueError) as problem:
        found = str(problem)
    if found is not None:
        raise CacheCorruptError(f"the runtime library in {folder} is damaged", expected="files as they were built", found=found,
                                help=f"remove {folder}; it is built again")


def _write_abi_module(text: str, path: Path) -> None:
    """Have cffi parse the ABI text once and write it as a module that loads without a parser."""
    import cffi  # brings a C parser, and only building the runtime needs it

    ffi = cffi.FFI()
    ffi.cdef(text)
    ffi.set_source(path.stem, None)
    with contextlib.redirect_stdout(io.StringIO()):   # it tells what it does
        ffi.emit_python_code(str(path))


def _abi_ffi(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise CacheCorruptError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ffi


def build_artifact(root: Path, files: Mapping[str, str], library: str, unit: str, *, portable: bool,
                   ) -> tuple[str, tuple[str, ...]]:
    """Write the generated sources into `root` and compile them; return the compiler's version and the flags it was given."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    include = csrc_dir() / "include"
    toolchain = find_toolchain()
    shown = (*compile_flags(portable), "-fvisibility=hidden", "-Wl,--build-id=none", "-frandom-seed=pto_wsp")
    # paths of this machine stay out of the library and the manifest
    private = (f"-I{include}", f"-ffile-prefix-map={include}=csrc/include", f"-ffile-prefix-map={root}=.")
    compile_library(toolchain, (*shown, *private), [unit, "-lm"], library, root, what="the generated code")
    return toolchain.version(), shown


def load_artifact(root: Path, library: str, plan_digest: str) -> LoadedArtifact:
    """Open an artifact's library and shake hands with it.

    Raises: C102 when it uses what no library has; C105 when it was built against another version of the interface.
    """
    runtime = load_runtime()
    ffi = runtime.ffi
    try:
        handle = _open(ffi, root / library)
    except OSError as problem:
        raise CompilerFailedError(f"the library in {root} cannot be loaded", notes=(str(problem),)) from None
    table = handle.pto_artifact_entry()
    rows = ffi.new("const pto_layout **", table.layout)
    _handshake(ffi, table.abi_version, rows, table.n_layout, root)
    if ffi.string(table.digest).decode() != plan_digest:
        raise AbiMismatchError(f"the library in {root} was made from another plan", help=f"remove {root}; it is built again")
    return LoadedArtifact(runtime, handle, table)


def _open(ffi: Any, path: Path) -> Any:
    """Open a library for good: at exit Python frees records, and helper threads run, after it would have been closed."""
    return ffi.dlopen(str(path.absolute()), ffi.RTLD_NOW | getattr(ffi, "RTLD_NODELETE", 0))


def _handshake(ffi: Any, version: int, rows: Any, count: int, where: Path) -> None:
    """Compare version, sizes and offsets with what cffi has read."""
    wrong: str | None = None
    if version != ABI_VERSION:
        wrong = f"interface version {version}, this pto_wsp has {ABI_VERSION}"
    fields: dict[str, dict[str, Any]] = {}
    for k in range(count if wrong is None else 0):
        row = rows[0][k]
        name = ffi.string(row.name).decode()
        struct, _, part = name.partition(".")
        offset = ffi.offsetof(struct, part) if part else 0
        if part and struct not in fields:
            fields[struct] = dict(ffi.typeof(struct).fields)
        size = ffi.sizeof(fields[struct][part].type) if part else ffi.sizeof(struct)
        if (row.size_bytes, row.offset_bytes) != (size, offset):
            wrong = f"{name}: {row.size_bytes} bytes at {row.offset_bytes}, expected {size} at {offset}"
            break
    if wrong is not None:
        raise AbiMismatchError(f"the library in {where} has another interface", found=wrong,
                               help=f"remove {where}; it is built again")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
