"""Keep what was traced and compiled of one function, and find what any function of the same content has compiled in this process.

A function that is defined again, as a notebook's cell that runs twice, has the same IR: its programs are found by content.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from types import FunctionType

from pto_wsp import doors
from pto_wsp.api.program import Program
from pto_wsp.api.tensors import disk
from pto_wsp.api.tensors.calls import ReadyFunction, numbers_of
from pto_wsp.api.tensors.disk import KnownProgram
from pto_wsp.api.tensors.options import DEFAULT_TARGET, JitOptions, arch_of, machine_of
from pto_wsp.api.tensors.over_ranks import RankCall, RankResult, names_used
from pto_wsp.api.tensors.plan_files import find_plan
from pto_wsp.api.tensors.runs import ProgramRuns
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import JitOptionError, PtoError
from pto_wsp.ir.digest import tensor_digest
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.source import here
from pto_wsp.trace.tensor.captured import CapturedNames
from pto_wsp.trace.tensor.compiling import refuse_compiling
from pto_wsp.trace.tensor.signature import BoundArguments
from pto_wsp.trace.tensor.source_digest import source_digest
from pto_wsp.trace.tensor.traced import Traced, check_same, trace_function
from pto_wsp.values import dataclass

_MOST_TRACED, _MOST_PROGRAMS = 64, 256
_PLAIN_OPTIONS = frozenset({"threads", "portable", "check_finite", "strict"})


@dataclass(frozen=True, slots=True, eq=False)
class CompiledCall:
    """What was compiled for one class of arguments. `types`: path and type of each array; `plan`: None where it came from the disk."""

    types: tuple[str, ...]
    target: str
    arch: str
    plan: TilePlan | None
    program: Program

    def __repr__(self) -> str:
        return f"CompiledCall({', '.join(self.types)} for {self.target} on {self.arch})"


class ProgramCache:
    """The programs of this process, by content; the ones used last stay."""

    def __init__(self) -> None:
        self._programs: OrderedDict[str, KnownProgram] = OrderedDict()
        self._changing = threading.Lock()
        self._making: dict[str, threading.Lock] = {}

    def known(self, key: str) -> KnownProgram | None:
        """Return the program of a key, if it is there."""
        with self._changing:
            return self._programs.get(key)

    def find(self, key: str, make: Callable[[], KnownProgram]) -> KnownProgram:
        """Return the program of a key; one thread makes it, others wait for it."""
        with self._changing:
            known = self._programs.get(key)
            if known is not None:
                self._programs.move_to_end(key)
                return known
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._changing:
                known = self._programs.get(key)
            if known is None:
                known = make()
                with self._changing:
                    self._programs[key] = known
                    while len(self._programs) > _MOST_PROGRAMS:
                        self._programs.popitem(last=False)
            with self._changing:
                self._making.pop(key, None)
        return known


PROGRAMS = ProgramCache()
_MORE_TRACES = 3        # of a body that may draw: each tells a coin that was thrown with a chance of a half


class KnownFunctions:
    """What was traced and compiled of one function with its options."""

    def __init__(self, function: FunctionType, options: JitOptions, captured: CapturedNames) -> None:
        self._function, self._options, self._captured = function, options, captured
        self._traced: OrderedDict[object, Traced] = OrderedDict()
        self._found: dict[object, ReadyFunction] = {}
        self._compiled: dict[str, CompiledCall] = {}
        self._changing = threading.Lock()

    @property
    def compiled(self) -> tuple[CompiledCall, ...]:
        """What has been compiled, in the order of first calls."""
        return tuple(self._compiled.values())

    def arch_of(self, plan: TilePlan | None, target: str | None = None) -> Arch:
        """Return the machine of the options, else the machine of the plan, else the machine that the target takes (`machine_of`)."""
        if self._options.arch is not None:
            return self._options.arch
        return machine_of(target or self._options.target) if plan is None else arch_of(plan.arch)

    def traced(self, bound: BoundArguments, captured: tuple[object, ...]) -> Traced:
        """Return the trace for arguments of these types, with captured values as they are now."""
        key = (bound.key, captured)
        with self._changing:
            known = self._traced.get(key)
        if known is None:
            known = trace_function(self._function, bound)
            for _ in range(_MORE_TRACES if self._captured.may_change else 0):
                check_same(known, trace_function(self._function, bound))
            with self._changing:
                self._traced[key] = known
                while len(self._traced) > _MOST_TRACED:
                    self._traced.popitem(last=False)
        return known

    def function_of(self, bound: BoundArguments, captured: tuple[object, ...], plan: TilePlan | None) -> ReadyFunction:
        """Return the compiled function for arguments of these types.

        Raises: C118 where that would have to be compiled, in a block that forbids it; what tracing, planning and compiling raise.
        """
        key = (bound.key, captured, None if plan is None else plan.digest)
        ready = self._found.get(key)
        if ready is None:
            source = self._source_key(bound, plan)
            ready = None if source is None else self._found_on_disk(source, bound, plan)
            if ready is None:
                ready = self._made(bound, self.traced(bound, captured), plan, source)
            self._found[key] = ready
        return ready

    def over_ranks(self, bound: BoundArguments, captured: tuple[object, ...], plan: TilePlan | None) -> RankCall:
        """Return what runs calls over the ranks of a mesh, for arrays of these shapes and layouts.

        Raises: M102 without a mesh, J121 for options that one rank alone has; what placing, planning and compiling raise.
        """
        traced, arch = self.traced(bound, captured), self.arch_of(plan)
        lowering = doors.late_module("pto_wsp.api.tensors.lowering")
        function, ranks = lowering.placed(traced.function, bound, self._options.mesh)
        for option in ("plans", "verify_passes"):
            if option in self._options.rest or (option == "plans" and self._options.plans is not None):
                raise JitOptionError(f"`{function.name}` over ranks does not take {option}=", here(), expected="a function without it")
        types = tuple(f"{leaf.path}: {leaf.type!r}" for leaf in bound.leaves)
        refuse_compiling(function.name, ", ".join(types))
        planned = lowering.plan_of(function, plan, arch, self._options.target, {}, None, ranks)
        linked = arch if arch.links is not None or self._options.arch is not None else builtin_arch("unit")     # a host says no links
        program, emitted = lowering.program_of(function, planned, self._options, linked, ranks)
        self._compiled[f"over ranks {len(self._compiled)}"] = CompiledCall(types, self._options.target, arch.name, planned.plan, program)
        results = tuple(RankResult(name, ranks.whole[view.array.id].shape, view.dtype, ranks.whole[view.array.id].layout)
                        for name, view in zip(emitted.results, function.results, strict=True))
        return RankCall(name=function.name, mesh=ranks.mesh, program=program, rebuild=traced.rebuild, bound=bound,
                        inputs=names_used(program, emitted.parameters), results=results, running=threading.Lock(),
                        scalars=names_used(program, [emitted.spelled[symbol.name] for symbol in function.scalars]))

    def _source_key(self, bound: BoundArguments, plan: TilePlan | None) -> str | None:
        """Return the key of a trace on the disk; None where the trace may differ in another process, or its program has no record."""
        if self._options.plans is not None or not _has_record(self._options):
            return None
        source = source_digest(self._captured, bound.key)
        arch = self.arch_of(plan).model_dump_json()
        return None if source is None else disk.record_key(
            _digest("trace", source, "" if plan is None else plan.digest, arch, *self._options.key()), portable=_is_portable(self._options))

    def _found_on_disk(self, source: str, bound: BoundArguments, plan: TilePlan | None) -> ReadyFunction | None:
        """Return the function whose trace and program another process has left; None if one of them is not there."""
        trace = disk.find_trace(source)
        if trace is None:
            return None
        record = disk.record_key(trace.program, portable=_is_portable(self._options))
        known = PROGRAMS.known(trace.program) or disk.find_program(record)
        if known is None:
            return None
        found = known
        return self._ready(bound, Traced(trace.function, trace.structure), self.arch_of(plan), trace.program,
                           PROGRAMS.find(trace.program, lambda: found))

    def _ready(self, bound: BoundArguments, traced: Traced, arch: Arch, key: str, known: KnownProgram) -> ReadyFunction:
        types = tuple(f"{leaf.path}: {leaf.type!r}" for leaf in bound.leaves)
        self._compiled[key] = CompiledCall(types, self._options.target, arch.name, known.plan, known.runs.program)
        return ReadyFunction(traced.function, traced.rebuild, known.runs, known.inputs, known.outputs, dict(known.symbols))

    def _made(self, bound: BoundArguments, traced: Traced, plan: TilePlan | None, source: str | None) -> ReadyFunction:
        function = traced.function
        arch, file = self.arch_of(plan), None
        if plan is None and self._options.plans is not None:
            plan, file = find_plan(self._options.plans, function, arch, self._options.target) or (None, None)
        types = tuple(f"{leaf.path}: {leaf.type!r}" for leaf in bound.leaves)
        key = _digest(tensor_digest(function), "" if plan is None else plan.digest, arch.model_dump_json(), *self._options.key())

        def make() -> KnownProgram:
            record = _record_key(key, self._options)
            kept = None if record is None else disk.find_program(record)
            if kept is not None:
                return kept
            refuse_compiling(function.name, ", ".join(types))
            if self._options.rest.get("verify_passes") is True:
                _check_passes(function, plan, self._options, arch, bound)
            library = self._options.target == DEFAULT_TARGET
            with doors.late_module("pto_wsp.artifact.build").runtime_begun() if library else nullcontext():
                made = _compiled(function, plan, self._options, arch)
            if record is not None:
                disk.keep_program(record, made)
            return made

        try:
            known = PROGRAMS.find(key, make)
        except PtoError as problem:
            if file is not None and problem.code.startswith("J3"):
                problem.notes = (*problem.notes, f"the plan is {file}")
            raise
        if source is not None:
            disk.keep_trace(source, key, traced)
        return self._ready(bound, traced, arch, key, known)


def _has_record(options: JitOptions) -> bool:
    """Tell whether programs are kept on the disk: they have a library, and the options do no more than compile."""
    return options.target == DEFAULT_TARGET and options.rest.keys() <= _PLAIN_OPTIONS


def _is_portable(options: JitOptions) -> bool:
    return bool(options.rest.get("portable"))


def _record_key(key: str, options: JitOptions) -> str | None:
    """Return the key of the record on the disk; None where none is kept."""
    return disk.record_key(key, portable=_is_portable(options)) if _has_record(options) else None


def _check_passes(function: TensorFunction, plan: TilePlan | None, options: JitOptions, arch: Arch, bound: BoundArguments) -> None:
    arrays = [array for array in bound.arrays if array is not None]
    numbers = numbers_of(function, bound)
    lowering = doors.late_module("pto_wsp.api.tensors.lowering")
    function, _ = lowering.placed(function, bound, None)
    lowering.check_passes(function, plan, arch, options.target, arrays, {**bound.sizes(), **numbers})


def _compiled(function: TensorFunction, plan: TilePlan | None, options: JitOptions, arch: Arch) -> KnownProgram:
    lowering = doors.late_module("pto_wsp.api.tensors.lowering")
    function = lowering.without_moves(function)
    tunables = () if plan is None else tuple(entry.name for entry in plan.entries if entry.key == "tunables")
    traces = lowering.Traces(tunables, lambda _: function)       # it was traced with the plan's values
    planned = lowering.plan_of(function, plan, arch, options.target, {} if plan is None else dict(plan.sizes), traces)
    program, emitted = lowering.program_of(function, planned, options, arch)
    names = (symbol.name for symbol in (*emitted.symbols, *emitted.scalars))
    return KnownProgram(ProgramRuns(program), planned.plan, emitted.parameters, emitted.results,
                        tuple(zip(names, emitted.namespace["symbols"](), strict=True)))


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
