"""Build and load C code through cffi in ABI mode: the runtime library, artifacts, and the parsed interface.

The runtime (csrc/) is compiled once per machine and kept in the store as an artifact. `pto_abi.h` and `pto_library.h` are the interface
between Python and C. cffi's parsed form of the two headers is kept as JSON data, so that a cached start parses nothing and nothing that is
kept is executed; a wheel ships the file, and a checkout writes it beside the runtime library. A handshake at load compares the layout of
every struct.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np

from pto_wsp.artifact.abi import abi_text, parse_abi, read_abi
from pto_wsp.artifact.manifest import RuntimeManifest
from pto_wsp.artifact.store import cache_root, keep_record, lookup, publish, record_of
from pto_wsp.artifact.toolchain import compile_library, cpu_features, find_toolchain, library_fault, no_library
from pto_wsp.c.flags import compile_flags
from pto_wsp.errors import AbiMismatchError, CacheCorruptError, CacheFolderError, CompilerFailedError, PtoError
from pto_wsp.progress import tell
from pto_wsp.resources import (
    PACKAGE_DIR,
    PARSED_ABI,
    SourceDigests,
    carried_digests,
    csrc_dir,
    hash_sources,
    read_digests,
    stamp_sources,
    wheel_data,
)
from pto_wsp.values import dataclass

ABI_VERSION = 7
_SAME_NUMBERS = "-DPTO_SAME_NUMBERS"     # pto_wsp.h detects flags that change results even if CC is a script
_RUNTIME = "pto_runtime"
_LIBRARY = "libpto_runtime.so"
_SETTLED_NS = 3_000_000_000      # more than the coarsest clock of a file system


@dataclass(frozen=True, slots=True, eq=False)
class Runtime:
    """The loaded runtime library: `ffi` and `lib` of cffi."""

    ffi: Any
    lib: Any
    path: Path


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LoadedArtifact:
    """An artifact's library: kernel table and orchestrator. The library stays open as long as this object."""

    runtime: Runtime
    path: Path
    library: Any                  # keeps the library open
    table: Any                    # const pto_artifact *


def machine_key(portable: bool) -> str:
    """Return what a compiled library depends on besides its sources: compiler, flags, CPU."""
    toolchain = find_toolchain()
    cpu = "portable" if portable else " ".join(cpu_features())
    return "\n".join((toolchain.fingerprint, " ".join(toolchain.command), " ".join(compile_flags(portable)), cpu))


def package_key() -> str:
    """Return what generated files depend on besides their inputs: this package's sources, Python, NumPy."""
    return "\n".join((source_digests().package, sys.version, np.__version__))


@lru_cache(maxsize=1)
def source_digests() -> SourceDigests:
    """Return the digests of this package's sources: those that a wheel carries, else those of the files.

    A checkout's digests lie in the store with the stamp of its files, and count as long as the stamp is the same: a change is noticed by
    its size, its inode or one of its times, the time of the last change of the inode among them, which no program can set back. Files that
    have changed just now are hashed each time, because two changes within a tick of the clock have one time. Not noticed are a change by
    somebody who sets the clock of the system back, and writes through shared memory to a file system that does not stamp them.
    """
    carried = carried_digests()
    if carried is not None:
        return carried
    stamp = stamp_sources()
    key = hashlib.sha256(f"sources\0{PACKAGE_DIR}".encode(errors="surrogateescape")).hexdigest()
    with contextlib.suppress(CacheFolderError, CacheCorruptError):      # whoever looks for an artifact there reports them
        stamped, _, text = (record_of(key) or b"").decode("ascii", "replace").partition("\n")
        kept = read_digests(text) if stamped == stamp.digest else None
        if kept is not None:
            return kept
    found = hash_sources()
    if 0 < stamp.latest_ns < time.time_ns() - _SETTLED_NS:
        with contextlib.suppress(CacheFolderError, CacheCorruptError):
            keep_record(key, "\n".join((stamp.digest, *found)).encode())
    return found


def load_runtime() -> Runtime:
    """Return the runtime library, built first if this machine has not built it yet.

    Raises: C101, C102, C106 if it cannot be built; C103 if the stored one is damaged; C105 if its interface differs.
    """
    return runtime_of(str(cache_root()), machine_key(portable=False))


@contextlib.contextmanager
def runtime_begun() -> Iterator[None]:
    """Build the runtime library in a thread beside the body of a `with`, unless the cache of this machine has the library.

    A program needs the library when its own C is compiled. `load_runtime` waits for the thread, and so does the end of the body: no
    compiler is left running. An error of the thread is not raised: `load_runtime` builds again, and raises the same error.
    """
    thread: threading.Thread | None = None
    with contextlib.suppress(PtoError, OSError), _beginning:
        key = _runtime_key(machine_key(portable=False))
        place = str(cache_root()), key
        if place not in _begun:
            _begun[place] = None
            if lookup(key, _RUNTIME, RuntimeManifest) is None:
                thread = _begun[place] = threading.Thread(target=_build_beside, args=(key,), name="pto_wsp runtime library")
                thread.start()
    try:
        yield
    finally:
        if thread is not None:
            thread.join()


def _build_beside(key: str) -> None:
    with contextlib.suppress(PtoError, OSError):
        publish(key, _RUNTIME, RuntimeManifest, _fill_runtime)


_beginning = threading.Lock()
_begun: dict[tuple[str, str], threading.Thread | None] = {}      # by store and key; None where the library was there


def _runtime_key(machine: str) -> str:
    return hashlib.sha256(f"runtime and interface\n{source_digests().csrc}\n{machine}".encode()).hexdigest()


@lru_cache(maxsize=4)
def runtime_of(root: str, machine: str) -> Runtime:
    """Return the runtime library of a store for a machine; a process opens it once. Raises as `load_runtime` does."""
    key = _runtime_key(machine)
    begun = _begun.get((root, key))
    if begun is not None:
        begun.join()
    folder, manifest = lookup(key, _RUNTIME, RuntimeManifest) or publish(key, _RUNTIME, RuntimeManifest, _fill_runtime)
    shipped = wheel_data(PARSED_ABI)
    ffi = read_abi((folder / PARSED_ABI if shipped is None else shipped).read_bytes())
    lib = _open_for_good(ffi, folder / manifest.library)
    runtime = Runtime(ffi, lib, folder)
    rows = ffi.new("const pto_layout **")
    _handshake(ffi, lib.pto_abi_version(), rows, lib.pto_abi_layout(rows), folder)
    return runtime


def _fill_runtime(root: Path) -> RuntimeManifest:
    """Build the runtime library in an empty folder, with the parsed interface beside it: a wheel and a checkout share what is stored."""
    csrc = csrc_dir()
    sources = [str(path) for path in sorted((csrc / "src").glob("*/*.c"))]
    flags = (*compile_flags(portable=False), _SAME_NUMBERS, "-pthread", f"-I{csrc / 'include'}", f"-ffile-prefix-map={csrc}=csrc")
    compile_library(find_toolchain(), flags, sources, _LIBRARY, root, what="the runtime library")
    shipped = wheel_data(PARSED_ABI)
    parsed = parse_abi(abi_text(csrc)) if shipped is None else shipped.read_text(encoding="ascii")
    (root / PARSED_ABI).write_text(parsed, encoding="ascii")
    _try_to_open(read_abi(parsed), root / _LIBRARY, "pto_abi_layout", "the runtime library")
    return RuntimeManifest(abi_version=ABI_VERSION, library=_LIBRARY)


def build_artifact(root: Path, files: Mapping[str, str], library: str, unit: str, *, portable: bool,
                   ) -> tuple[str, tuple[str, ...]]:
    """Write the generated sources into `root` and compile them; return the compiler's version and flags.

    Raises: C101, C102, C104, C112 from the compiler; C102 also for a library with undefined symbols.
    """
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    include = csrc_dir() / "include"
    toolchain = find_toolchain()
    shown = (*compile_flags(portable), "-fvisibility=hidden", "-Wl,--build-id=none", "-frandom-seed=pto_wsp")
    # keep this machine's paths out of the library and the manifest
    private = (_SAME_NUMBERS, f"-I{include}", f"-ffile-prefix-map={include}=csrc/include", f"-ffile-prefix-map={root}=.")
    tell(note="the C compiler")
    compile_library(toolchain, (*shown, *private), [unit, "-lm"], library, root, what="the generated code")
    _try_to_open(load_runtime().ffi, root / library, "pto_artifact_entry", "the generated code")
    return toolchain.version(), shown


def load_artifact(root: Path, library: str, plan_digest: str) -> LoadedArtifact:
    """Open an artifact's library and compare its interface.

    Raises: C102 for undefined symbols; C105 if it was built for another version of the interface.
    """
    runtime = load_runtime()
    ffi, path = runtime.ffi, root.absolute() / library
    fault = library_fault(path)
    if fault is not None:
        raise CompilerFailedError(f"the library in {root} cannot be loaded", notes=(f"{library}: {fault}",))
    try:
        handle = ffi.dlopen(str(path), ffi.RTLD_NOW)
    except OSError as problem:
        raise CompilerFailedError(f"the library in {root} cannot be loaded", notes=(str(problem),)) from None
    try:
        table = handle.pto_artifact_entry()
    except (AttributeError, ffi.error):
        raise CompilerFailedError(f"the library in {root} cannot be loaded", notes=(f"{library}: it has no pto_artifact_entry",)) from None
    rows = ffi.new("const pto_layout **", table.layout)
    _handshake(ffi, table.abi_version, rows, table.n_layout, root)
    if ffi.string(table.digest).decode() != plan_digest:
        raise AbiMismatchError(f"the library in {root} was made from another plan", help=f"remove {root}; it is built again")
    artifact = LoadedArtifact(runtime, path, handle, table)
    _open_artifacts.add(artifact)
    return artifact


def _try_to_open(ffi: Any, path: Path, function: str, what: str) -> None:
    """Open a newly built library once and close it, so that a failure is reported before anything relies on it.

    Raises: C102.
    """
    try:
        library = ffi.dlopen(str(path), ffi.RTLD_NOW)
    except OSError as problem:
        raise no_library(what, f"{path.name}: it cannot be opened", (str(problem).replace(f"{path.parent}/", ""),)) from None
    try:
        getattr(library, function)
    except (AttributeError, ffi.error):
        raise no_library(what, f"{path.name}: it has no {function}") from None
    finally:
        ffi.dlclose(library)


_open_artifacts: WeakSet[LoadedArtifact] = WeakSet()


@atexit.register
def _keep_open() -> None:
    """Keep all artifacts open at exit: Python frees libraries, records and programs in any order."""
    for artifact in tuple(_open_artifacts):
        with contextlib.suppress(OSError):
            _open_for_good(artifact.runtime.ffi, artifact.path)


def _open_for_good(ffi: Any, path: Path) -> Any:
    """Open a library permanently: at exit, records are freed and helper threads run after it would have been closed."""
    return ffi.dlopen(str(path.absolute()), ffi.RTLD_NOW | getattr(ffi, "RTLD_NODELETE", 0))


def _handshake(ffi: Any, version: int, rows: Any, count: int, where: Path) -> None:
    """Compare version, sizes and offsets of a library with cffi's.

    Raises: C105 for a difference.
    """
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
