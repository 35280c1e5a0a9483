"""Make programs: compile a workload, lower it up to a pass, load what `Program.save` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NotRequired, TypedDict, Unpack

from pto_wsp import doors
from pto_wsp.api.bindings import sizes_of
from pto_wsp.api.program import Program
from pto_wsp.calls import user_call
from pto_wsp.errors import LoadError, PtoError, raise_all
from pto_wsp.ir.mesh import OverRanks
from pto_wsp.ir.rewrite import Canonical
from pto_wsp.ir.tensor import Tensor
from pto_wsp.passes.lower import unwritten
from pto_wsp.passes.pipeline import Named, PassRun
from pto_wsp.progress import step
from pto_wsp.run.bound import Array
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.targets import Asked, compile_workload, lower_workload
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import read_options
from pto_wsp.trace.workload.pipelines import live_channel, live_event
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Lowered(doors.Displayed):
    """The IR of a workload after one pass; `str` returns its text, and a notebook shows what each pass changed.

    `until`: the name of the pass. `irs`: one plan, or each kernel, part of a kernel or tile program that the pass ran on. `steps`: each
    pass on each IR, up to there: what it changed, its time, and with verify_passes=True whether kernels compute the same numbers.
    """

    until: str
    irs: tuple[Named, ...]
    text: str
    steps: tuple[PassRun, ...] = ()

    @property
    def card(self) -> Any:
        """All that a notebook shows, as data: the passes with what they changed, and the IR behind the last."""
        return doors.late_module("pto_wsp.view.pass_cards").lowered_card(self.until, self.text, self.steps)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Lowered({self.until}: {', '.join(ir.name for ir in self.irs)})"


class Wishes(TypedDict):
    """The arguments of compile() and lower() other than the workload, unchecked."""

    target: object
    arch: object
    strict: object
    passes: object
    options: Mapping[str, object]
    texts: NotRequired[Mapping[str, str]]      # files that dump=True writes beside those of the target


def compile_program(canonical: Canonical, tensors: Mapping[int, Tensor], schedule: Schedule, ranks: OverRanks | None = None,
                    **asked: Unpack[Wishes]) -> Program:
    """Return the program of a workload and its tensors; `ranks`: over processes, for the rank of this one.

    Raises: the errors of compiling, at the user's line.
    """
    name = canonical.workload.name

    def compile_here() -> Compiled:
        with step(f"compile {name}"):
            return compile_workload(_asked(canonical, tensors, schedule, asked))

    with _at_the_users_line():
        if ranks is None:
            compiled = compile_here()
        else:
            over_mpi = doors.late_module("pto_wsp.api.over_mpi")
            peers = over_mpi.peers_for(ranks, name)
            compiled = over_mpi.compile_together(peers, name, compile_here)
        wrapped = [tensors.get(canonical.tensors[slot.ref.id]) for slot in compiled.plan.tensors]
        raise_all([unwritten(slot.ref, tensor.made_at) for tensor, slot in zip(wrapped, compiled.plan.tensors, strict=True)
                   if tensor is not None and tensor.made_at is not None and slot.only_read])
        if ranks is not None:
            compiled = over_mpi.for_rank(compiled, wrapped, peers, ranks)
    if ranks is not None:
        return Program(compiled, wrapped, sizes=sizes_of(canonical, compiled.plan, tensors))
    events = [(number, event) for number, known in enumerate(canonical.events) if (event := live_event(known)) is not None]
    channels = [channel for known in canonical.channels if (channel := live_channel(known)) is not None]
    return Program(compiled, wrapped, events, channels,
                   lambda arch: compile_workload(_asked(canonical, tensors, schedule, {**asked, "arch": arch})),
                   sizes_of(canonical, compiled.plan, tensors))


def lower_program(canonical: Canonical, tensors: Mapping[int, Tensor], schedule: Schedule, until: object,
                  **asked: Unpack[Wishes]) -> Lowered:
    """Return what a pass gives of a workload.

    Raises: C114 for a name that no pass of the target has; what compiling raises up to there, at the user's line.
    """
    with _at_the_users_line():
        name, reached, steps = lower_workload(_asked(canonical, tensors, schedule, asked), until)
    return Lowered(name, tuple(one.ir for one in reached), "\n\n".join(one.text for one in reached), steps)


def _asked(canonical: Canonical, tensors: Mapping[int, Tensor], schedule: Schedule, asked: Wishes) -> Asked:
    arrays = {number: data for number, known in enumerate(canonical.tensors)
              if known in tensors and (data := tensors[known].data) is not None}
    intermediates = frozenset(number for number, known in enumerate(canonical.tensors)
                              if known in tensors and tensors[known].intermediate)
    unsized = frozenset(number for number, known in enumerate(canonical.tensors) if known in tensors and tensors[known].unsized)
    return Asked(workload=canonical.workload, schedule=schedule, arrays=arrays, intermediates=intermediates, unsized=unsized, **asked)


@contextmanager
def _at_the_users_line() -> Iterator[None]:
    """Give errors of the compiler and of the cache, which know no line of the user's, the line that compiles."""
    try:
        yield
    except PtoError as problem:
        for error in (problem, *problem.others):
            error.span = error.span or here()
        raise


@user_call()
def load(folder: str | Path, *, threads: int | None = None) -> Program:
    """Return the program that `save` wrote to a folder; it runs, and everything about it can be inspected.

    The workload's tensors have no data: `run` receives an array for each by name, except for tensors from `Tensor.empty`, which are
    allocated again. If this machine's CPU or this version's interface differs, the program is compiled again from its sources and reports
    it. `threads` is as for compile(); None: as compiled.

    Raises: C111 for a folder without a valid saved program, C104 for an invalid number of threads.
    """
    if not isinstance(folder, str | Path):
        raise LoadError("load takes the folder of a saved program", here(), expected="a path", found=repr(folder))
    try:
        options = read_options({} if threads is None else {"threads": threads})
        saved = doors.late_module("pto_wsp.targets.load").load_saved(Path(folder).absolute(), options.threads)
    except PtoError as problem:
        problem.span = problem.span or here()
        raise
    return Program(saved.compiled, [None if array is None else _intermediate(array) for array in saved.arrays])


def _intermediate(array: Array) -> Tensor:
    """Return a tensor for results between tasks, like those of `Tensor.empty`."""
    tensor = Tensor(array)
    tensor.intermediate = True
    return tensor
