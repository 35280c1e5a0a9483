"""How programs come about: compiled from a workload, or loaded from where one was saved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pto_wsp.api.programs.program import Program
from pto_wsp.driver import compile_workload
from pto_wsp.driver.options import read_options
from pto_wsp.errors import LoadError, PtoError
from pto_wsp.expr.rewrite import Canonical
from pto_wsp.frontend.workload.csp.ends import live_event
from pto_wsp.runtime.bound.binding import Array
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.types.tensor import Tensor


def compile_program(canonical: Canonical, tensors: Mapping[int, Tensor], schedule: Schedule, *, target: str, arch: object,
                    strict: bool, options: Mapping[str, object]) -> Program:
    """Return the program of a workload, with the tensors that it was written with.

    Raises: what compiling raises, at the user's line.
    """
    try:
        arrays = {number: data for number, known in enumerate(canonical.tensors)
                  if known in tensors and (data := tensors[known].data) is not None}
        intermediates = frozenset(number for number, known in enumerate(canonical.tensors)
                                  if known in tensors and tensors[known].intermediate)
        compiled = compile_workload(canonical.workload, schedule, target=target, arch=arch, strict=strict, options=options,
                                    arrays=arrays, intermediates=intermediates)
    except PtoError as problem:   # of the compiler, of the cache: they know no line of the user's
        for error in (problem, *problem.others):
            error.span = error.span or here()
        raise
    wrapped = [tensors.get(canonical.tensors[slot.ref.id]) for slot in compiled.plan.tensors]
    events = [(number, event) for number, known in enumerate(canonical.events) if (event := live_event(known)) is not None]
    return Program(compiled, wrapped, events)


def load(folder: str | Path, *, threads: int | None = None) -> Program:
    """Return the program that `save` wrote to a folder: it runs, and all that a program tells of itself is there.

    The tensors of the workload have no data here: `run` takes an array for each by its name, but for those made with `Tensor.empty`,
    which are made anew. It is compiled again from its sources where this machine's CPU or this version's interface is another one, and
    says so. threads: as in compile(); None: as it was compiled.
    Raises: C111 for a folder that holds no such program or a damaged one, C104 for threads that are no number of threads.
    """
    if not isinstance(folder, str | Path):
        raise LoadError("load takes the folder of a saved program", here(), expected="a path", found=repr(folder))
    from pto_wsp.driver.load import load_saved  # loads what reads plans and builds them again

    try:
        asked = read_options({} if threads is None else {"threads": threads}, "cpu_sim")
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
