"""How programs come about: compiled from a workload, or loaded from where one was saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict, Unpack

from pto_wsp.api.programs.lowered import Lowered
from pto_wsp.api.programs.program import Program
from pto_wsp.errors import LoadError, PtoError
from pto_wsp.expr.rewrite import Canonical
from pto_wsp.frontend.workload.csp.ends import live_event
from pto_wsp.runtime.bound.binding import Array
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.targets import Asked, compile_workload, lower_workload
from pto_wsp.targets.options import read_options
from pto_wsp.types.tensor import Tensor


class Wishes(TypedDict):
    """What compile() and lower() take beside the workload, not checked yet."""

    target: object
    arch: object
    strict: object
    passes: object
    options: Mapping[str, object]


def compile_program(canonical: Canonical, tensors: Mapping[int, Tensor], schedule: Schedule, **asked: Unpack[Wishes]) -> Program:
    """Return the program of a workload, with the tensors that it was written with.

    Raises: what compiling raises, at the user's line.
    """
    with _at_the_users_line():
        compiled = compile_workload(_asked(canonical, tensors, schedule, asked))
    wrapped = [tensors.get(canonical.tensors[slot.ref.id]) for slot in compiled.plan.tensors]
    events = [(number, event) for number, known in enumerate(canonical.events) if (event := live_event(known)) is not None]
    return Program(compiled, wrapped, events)


def lower_program(canonical: Canonical, tensors: Mapping[int, Tensor], schedule: Schedule, until: object,
                  **asked: Unpack[Wishes]) -> Lowered:
    """Return what a pass gives of a workload.

    Raises: C114 for a name that no pass of the target has; what compiling raises up to there, at the user's line.
    """
    with _at_the_users_line():
        name, reached = lower_workload(_asked(canonical, tensors, schedule, asked), until)
    return Lowered(name, tuple(one.ir for one in reached), "\n\n".join(one.text for one in reached))


def _asked(canonical: Canonical, tensors: Mapping[int, Tensor], schedule: Schedule, asked: Wishes) -> Asked:
    arrays = {number: data for number, known in enumerate(canonical.tensors)
              if known in tensors and (data := tensors[known].data) is not None}
    intermediates = frozenset(number for number, known in enumerate(canonical.tensors)
                              if known in tensors and tensors[known].intermediate)
    return Asked(workload=canonical.workload, schedule=schedule, arrays=arrays, intermediates=intermediates, **asked)


@contextmanager
def _at_the_users_line() -> Iterator[None]:
    """Give errors of the compiler and of the cache, which know no line of the user's, the line that compiles."""
    try:
        yield
    except PtoError as problem:
        for error in (problem, *problem.others):
            error.span = error.span or here()
        raise


def load(folder: str | Path, *, threads: int | None = None) -> Program:
    """Return the program that `save` wrote to a folder: it runs, and all that a program tells of itself is there.

    The tensors of the workload have no data here: `run` takes an array for each by its name, but for those made with `Tensor.empty`,
    which are made anew. It is compiled again from its sources where this machine's CPU or this version's interface is another one, and
    says so. threads: as in compile(); None: as it was compiled.
    Raises: C111 for a folder that holds no such program or a damaged one, C104 for threads that are no number of threads.
    """
    if not isinstance(folder, str | Path):
        raise LoadError("load takes the folder of a saved program", here(), expected="a path", found=repr(folder))
    from pto_wsp.targets.load import load_saved  # loads what reads plans and builds them again

    try:
        asked = read_options({} if threads is None else {"threads": threads})
        saved = load_saved(Path(folder).absolute(), asked.threads)
    except PtoError as problem:
        problem.span = problem.span or here()
        raise
    return Program(saved.compiled, [None if array is None else _intermediate(array) for array in saved.arrays])


def _intermediate(array: Array) -> Tensor:
    """Return a tensor for results between tasks, as `Tensor.empty` makes one."""
    tensor = Tensor(array)
    tensor.intermediate = True
    return tensor
