"""Define `RankShare`: which tasks of a plan, and which copies of its tensors, are this process's; and the frame of a run over MPI.

Every process makes the same tasks in the same order and runs its own: a copy between two ranks is a send on one and a receive on the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pto_wsp.errors import MeshError, PeerError, RankDifferenceError, RunBoundsError
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.plan import Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.run.bound import Bindings
from pto_wsp.run.peers import Peers
from pto_wsp.source import Span, here
from pto_wsp.values import dataclass

_ONE_PROCESS = "compile without comm=, in one process"


@dataclass(frozen=True, slots=True)
class TensorRanks:
    """What a tensor is to ranks.

    `free`: axes of the mesh along which each rank has a copy of a user's array; `cut`: ranks have parts; `same`: all ranks have equal
    copies; `copies`: it is the program's memory of a copy a rank, along its first dimension.
    """

    free: tuple[int, ...] = ()
    cut: bool = False
    same: bool = False
    copies: bool = False


class RankShare:
    """This process's share of a plan."""

    def __init__(self, plan: TaskPlan, mesh: Mesh, peers: Peers, tensors: Mapping[int, TensorRanks],
                 collectives: Mapping[Span, str]) -> None:
        """Create the share of a rank. `tensors`: by slot; `collectives`: the name of the collective at a line.

        Raises: M102 for plans whose tasks depend on what this rank does not have.
        """
        self.plan, self.mesh, self.peers, self.tensors, self._collectives = plan, mesh, peers, tensors, collectives
        self.rank: int = peers.rank
        self._at = tuple(int(one) for one in mesh.coordinates(peers.rank) if isinstance(one, int))
        self.sites = {task.site: task for task in submits(plan)}
        self.spread = [number for number, slot in enumerate(plan.tensors) if slot.scalars and slot.writes and self._ranks(number).copies]
        self._refuse()

    def _ranks(self, slot: int) -> TensorRanks:
        return self.tensors.get(slot, TensorRanks())

    def _refuse(self) -> None:
        """Refuse what a process with one rank's data cannot decide.

        Raises: M102.
        """
        plan = self.plan
        if plan.n_streams > 1 or plan.channels:
            raise not_over_mpi("processes and channels do not run over MPI")
        for number, slot in enumerate(plan.tensors):
            ranks = self._ranks(number)
            if slot.scalars and (slot.fresh or ranks.cut or (slot.writes and not ranks.same)):
                shared = (f"relayout({slot.ref.shown}, TensorLayout.replicated({len(slot.ref.shape)})) first, and read a rank's copy "
                          "of the result: counts.on(r)[...]")
                raise not_over_mpi(f"the tasks depend on elements of `{slot.ref.shown}`, which a rank does not have before it makes them",
                                   found="a tensor that is cut" if ranks.cut else "a tensor that tasks write, and that differs by rank",
                                   expected="conditions, bounds and offsets of symbols and replicated tensors",
                                   help=shared if ranks.cut else _ONE_PROCESS)
        for task in self.sites.values():
            if task.on is not None and task.on.crosses and len(plan.kernels[task.kernel].kernel.memory_params) != 2:
                raise not_over_mpi("a task between two ranks is no copy")

    # -- arrays that every rank has a copy of --------------------------------------------------------------------------

    def free_axes(self, task: Submit) -> tuple[int, ...]:
        """Return the axes along which every rank has a copy of what a task writes, if the task gives a user's array one rank's copy."""
        local = task.on is not None and task.on.source is not None and not task.on.crosses
        return self._ranks(task.places[-1].slot).free if local and task.places else ()

    def first_of_copies(self, free: tuple[int, ...]) -> int:
        """Return the lowest rank among those that have equal copies with this rank. `free`: mesh axes along which the copies are equal."""
        rank = 0
        for axis, (one, size) in enumerate(zip(self._at, self.mesh.shape, strict=True)):
            rank = rank * size + (0 if axis in free else one)
        return rank

    def copy_number(self, free: tuple[int, ...]) -> int:
        """Return the number of this rank's copy along the first dimension of memory for copies."""
        copy = 0
        for axis in free:
            copy = copy * self.mesh.shape[axis] + self._at[axis]
        return copy

    # -- runs ----------------------------------------------------------------------------------------------------------

    def shown_task(self, site: int) -> str:
        """Return the name and the line of the tasks of a site."""
        task = self.sites[site]
        return f"kernel `{self.plan.kernels[task.kernel].kernel.name}`, {task.span}"

    def say_where(self, site: int, source: int, target: int) -> None:
        """Set the copy that waits of this rank tell of."""
        span = self.sites[site].span
        self.peers.span = span
        self.peers.where = f"`{self._collectives.get(span, 'copy')}`, {span}: copy from rank {source} to rank {target}"

    @contextmanager
    def together(self, bindings: Bindings) -> Iterator[None]:
        """Run a block on all ranks at once: what decides which tasks there are is alike before, and all come to its end.

        Raises: M106 for a failure of another rank, M107 for ranks that differ; the errors of the block, which the other ranks hear of.
        """
        peers, name = self.peers, self.plan.name
        if peers.closed:
            raise PeerError("the program is closed, as a run over MPI has failed", here(), help="compile it again, on every rank")
        peers.where, peers.span = f"the run of `{name}`", here()
        try:
            peers.agree(f"run of {name}", self._facts(bindings))
            yield
            peers.where, peers.span = f"the end of the run of `{name}`", here()
            peers.end_sends()
            peers.exchange(f"end of {name}", "")
        except (RankDifferenceError, RunBoundsError):      # all ranks have found it: it follows from what is alike on all
            peers.closed = True
            raise
        except BaseException as problem:
            peers.report(problem)
            raise

    def _facts(self, bindings: Bindings) -> dict[str, bytes | str]:
        """Return what all ranks must have alike before a run: shapes, values of symbols, and arrays that decide which tasks there are."""
        facts: dict[str, bytes | str] = {}
        for number, (slot, array) in enumerate(zip(self.plan.tensors, bindings.arrays, strict=True)):
            if not slot.fresh:
                facts[f"the shape of `{slot.ref.shown}`"] = repr(array.shape)
            if slot.scalars and not self._ranks(number).copies:
                facts[f"the elements of `{slot.ref.shown}`, which decide which tasks there are"] = array.tobytes()
        for symbol, value in zip(self.plan.symbols, bindings.symbols, strict=True):
            facts[f"the value of `{symbol.name}`"] = repr(value)
        return facts

    def check_tag(self, tag: int) -> None:
        """Check that MPI has a tag for a copy.

        Raises: M102.
        """
        if tag > self.peers.most_tag:
            most = self.peers.most_tag + 1
            raise not_over_mpi("two ranks exchange more copies than MPI has tags", expected=f"at most {most}")


def not_over_mpi(problem: str, *, expected: str | None = None, found: str | None = None,
                 help: str = _ONE_PROCESS) -> MeshError:
    """Return the error M102 for a feature that needs all ranks in one process."""
    return MeshError(problem, here(), expected=expected, found=found, help=help)
