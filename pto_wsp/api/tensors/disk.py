"""Keep compiled functions between processes: a new process that calls one traces it, and finds its plan, its program and its library.

A record lies in the folder of the artifact cache, beside the artifact whose digest it names, under a hash of everything that it was made
of. It is a pickle of values of this package: whoever can write into that folder, which is the user's alone, can change the library, too.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping

from pto_wsp.api.program import Program
from pto_wsp.api.tensors.runs import ProgramRuns
from pto_wsp.artifact.build import machine_key, package_key
from pto_wsp.artifact.manifest import Manifest
from pto_wsp.artifact.store import artifact_with, keep_record, record_of
from pto_wsp.errors import CacheCorruptError, CacheFolderError
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.cpu_sim import engine_of
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class KnownProgram:
    """A program with what binds it: the names of its tensors by parameter and by result, and of its symbols by those of the function."""

    runs: ProgramRuns
    plan: TilePlan | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    symbols: tuple[tuple[str, str], ...]


def record_key(key: str, *, portable: bool) -> str:
    """Return the key of a record: of what a program is made of, of this package and of this machine."""
    return hashlib.sha256(f"jit\0{key}\0{package_key()}\0{machine_key(portable)}".encode()).hexdigest()


def keep_program(key: str, known: KnownProgram) -> None:
    """Write the record of a program that has a library; a folder that cannot be written keeps nothing."""
    compiled = known.runs.program.compiled
    if not isinstance(compiled.manifest, Manifest):
        return
    wrapped, sizes = known.runs.program.wrapped_tensors
    parts = {"digest": compiled.manifest.digest, "known": (known.plan, known.inputs, known.outputs, known.symbols), "wrapped": wrapped,
             "sizes": dict(sizes), "plan": compiled.plan, "unscheduled": compiled.unscheduled, "workload": compiled.workload,
             "arch": compiled.arch, "schedule": compiled.schedule, "options": compiled.options, "findings": compiled.findings}
    try:
        keep_record(key, pickle.dumps(parts, protocol=5))
    except (CacheFolderError, pickle.PicklingError, TypeError, AttributeError):
        return


def find_program(key: str) -> KnownProgram | None:
    """Return the program of a record; None where there is no record, or its artifact is not there any more.

    Raises: C103, C106 for a damaged artifact, and for a folder that others could have written.
    """
    data = record_of(key)
    if data is None:
        return None
    try:
        parts: Mapping[str, object] = _Unpickler(io.BytesIO(data)).load()
    except Exception:      # a pickle may raise anything; what cannot be read is made again
        return None
    return _program(parts)


class _Unpickler(pickle.Unpickler):
    """Reads values of this package, NumPy and the standard library's containers alone."""

    def find_class(self, module: str, name: str) -> object:
        if module.partition(".")[0] not in ("pto_wsp", "numpy", "builtins", "collections", "types", "pathlib", "_codecs", "ml_dtypes"):
            raise pickle.UnpicklingError(f"{module}.{name} in a record of this package")
        return super().find_class(module, name)


def _program(parts: Mapping[str, object]) -> KnownProgram | None:
    values: dict[str, object] = dict(parts)
    plan = values["plan"]
    try:
        found = artifact_with(str(values["digest"]), plan.name, Manifest)  # type: ignore[attr-defined]
    except CacheCorruptError:
        return None
    if found is None:
        return None
    root, manifest = found
    options = values["options"]
    engine = engine_of(root, manifest, plan, options, {})  # type: ignore[arg-type]
    compiled = Compiled(workload=values["workload"], plan=plan, unscheduled=values["unscheduled"], target="cpu_sim",  # type: ignore[arg-type]
                        arch=values["arch"], schedule=values["schedule"], options=options, findings=values["findings"],  # type: ignore[arg-type]
                        runner=engine, artifact_dir=root, manifest=manifest, compile_time_ms=0.0, from_cache=True)
    program = Program(compiled, values["wrapped"], sizes=values["sizes"])  # type: ignore[arg-type]
    return KnownProgram(ProgramRuns(program), *values["known"])  # type: ignore[misc]
