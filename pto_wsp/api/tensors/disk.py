"""Keep compiled functions between processes: a new process that calls one traces it, and finds its plan, its program and its library.

A record lies in the folder of the artifact cache, beside the artifact whose digest it names, under a hash of everything that it was made
of. It is a pickle of values of this package: whoever can write into that folder, which is the user's alone, can change the library, too.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from pto_wsp.api.program import Program
from pto_wsp.api.tensors.runs import ProgramRuns
from pto_wsp.artifact.build import machine_key, package_key
from pto_wsp.artifact.manifest import Manifest
from pto_wsp.artifact.store import artifact_with, keep_record, record_of
from pto_wsp.errors import CacheCorruptError, CacheFolderError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.run.prints import has_prints
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.cpu_sim import engine_of
from pto_wsp.trace.tensor.traced import Traced
from pto_wsp.values import dataclass

# What a run does without: read when it is asked for.
_PLAN_LATER = ("kernels", "body")
_PROGRAM_LATER = ("workload", "unscheduled", "findings", "manifest")


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
             "sizes": dict(sizes), "prints": has_prints(compiled.plan),
             "plan": {each.name: getattr(compiled.plan, each.name) for each in fields(TaskPlan) if each.name not in _PLAN_LATER},
             "arch": compiled.arch, "schedule": compiled.schedule, "options": compiled.options}
    later = {name: getattr(compiled, name) for name in _PROGRAM_LATER} | {name: getattr(compiled.plan, name) for name in _PLAN_LATER}
    try:
        keep_record(key, pickle.dumps({**parts, "later": pickle.dumps(later, protocol=5)}, protocol=5))
    except (CacheFolderError, pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return


def find_program(key: str) -> KnownProgram | None:
    """Return the program of a record; None where there is no record, or its artifact is not there any more.

    Raises: C103, C106 for a damaged artifact, and for a folder that others could have written.
    """
    data = record_of(key)
    if data is None:
        return None
    try:
        parts: Mapping[str, Any] = _Unpickler(io.BytesIO(data)).load()
    except Exception:      # a pickle may raise anything; what cannot be read is made again
        return None
    return _program(parts)


class _Unpickler(pickle.Unpickler):
    """Reads values of this package, NumPy and the standard library's containers alone."""

    def find_class(self, module: str, name: str) -> object:
        if module.partition(".")[0] not in ("pto_wsp", "numpy", "builtins", "collections", "types", "pathlib", "_codecs", "ml_dtypes"):
            raise pickle.UnpicklingError(f"{module}.{name} in a record of this package")
        return super().find_class(module, name)


@dataclass(frozen=True, slots=True, eq=False)
class KnownTrace:
    """What a call needs of a trace: the function without its body, and the structure of the results; the key of its program."""

    program: str
    function: TensorFunction
    structure: object


def keep_trace(key: str, program: str, traced: Traced) -> None:
    """Write what a call needs of a trace, under a key of what the trace depends on; a folder that cannot be written keeps nothing."""
    slim = replace(traced.function, params=(), constants=(), body=replace(traced.function.body, items=()))
    try:
        keep_record(key, pickle.dumps((program, slim, traced.structure), protocol=5))
    except (CacheFolderError, pickle.PicklingError, TypeError, AttributeError):
        return


def find_trace(key: str) -> KnownTrace | None:
    """Return what a call needs of a trace; None where there is no record of it.

    Raises: C106 for a folder that others could have written.
    """
    data = record_of(key)
    if data is None:
        return None
    try:
        return KnownTrace(*_Unpickler(io.BytesIO(data)).load())
    except Exception:      # as in `find_program`: a class of the user's own in the structure, too
        return None


def _program(parts: Mapping[str, Any]) -> KnownProgram | None:
    try:
        found = artifact_with(parts["digest"], parts["plan"]["name"])
    except CacheCorruptError:
        return None
    if found is None:
        return None
    root, manifest = found      # the manifest's fields as JSON's data

    @cache
    def later() -> Mapping[str, Any]:
        return _Unpickler(io.BytesIO(parts["later"])).load()  # type: ignore[no-any-return]

    plan = TaskPlan.read_later(lambda: {name: later()[name] for name in _PLAN_LATER}, _PLAN_LATER, **parts["plan"])
    engine = engine_of(root, manifest["library"], manifest["plan_digest"], plan, parts["options"], {}, prints=parts["prints"])
    compiled = Compiled.read_later(
        lambda: {name: later()[name] for name in _PROGRAM_LATER}, _PROGRAM_LATER, plan=plan, target="cpu_sim", arch=parts["arch"],
        schedule=parts["schedule"], options=parts["options"], runner=engine, artifact_dir=root, compile_time_ms=0.0, from_cache=True)
    return KnownProgram(ProgramRuns(Program(compiled, parts["wrapped"], sizes=parts["sizes"])), *parts["known"])
