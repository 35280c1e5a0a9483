"""Compile a workload over a mesh for one rank of an MPI communicator: `w.compile(mesh=mesh, comm=MPI.COMM_WORLD)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pto_wsp.artifact.build import machine_key, package_key
from pto_wsp.errors import MeshError, PtoError
from pto_wsp.ir.digest import plan_digest
from pto_wsp.ir.mesh import Mesh, OverRanks
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tensor_layout import Shard
from pto_wsp.run.native import Engine
from pto_wsp.run.peers import Peers, peers_of
from pto_wsp.run.rank_engine import RankEngine
from pto_wsp.run.rank_runner import RankRunner
from pto_wsp.run.rank_share import RankShare, TensorRanks
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled


def peers_for(ranks: OverRanks, name: str) -> Peers:
    """Return the ranks of a communicator that fits a mesh.

    Raises: M102 for a communicator without a mesh, or of another size, and for a time that is none; M106 where a rank does not come.
    """
    mesh, timeout_s = ranks.mesh, ranks.timeout_s
    if mesh is None:
        raise MeshError(f"workload `{name}` is not over a mesh, so ranks have nothing to share", here(), expected="for r in P(mesh)")
    return peers_of(ranks.comm, mesh.size, float(timeout_s))


def compile_together(peers: Peers, name: str, compile_here: Callable[[], Compiled]) -> Compiled:
    """Compile on every rank: on each machine its lowest rank first, from whose cache the others read.

    Raises: the errors of compiling, on every rank; M107 for ranks that compile different things.
    """
    peers.where, peers.span = f"compile of `{name}`", here()
    def compiles() -> Compiled:
        with peers.beating(lambda: (0, "")):
            return compile_here()

    try:
        compiled = compiles() if peers.builds_first else None
        peers.exchange(f"compile {name}", "")
        if compiled is None:
            compiled = compiles()
    except BaseException as problem:
        peers.report(problem)
        raise
    options, arch, schedule = compiled.options, compiled.arch, compiled.schedule
    try:
        slots = [slot for slot in compiled.plan.tensors if not slot.fresh]
        peers.agree(f"compiled {name}", {
            **{f"the shape of `{slot.ref.shown}`": repr(slot.ref.shape) for slot in slots},
            **{f"the dtype of `{slot.ref.shown}`": str(slot.ref.dtype) for slot in slots},
            "the plan": plan_digest(compiled.plan), "the package's version": package_key(), "the arch": arch.model_dump_json(),
            "the schedule": schedule.model_dump_json(), "the target": compiled.target, "the options": repr(options),
            "the machine's code": "" if compiled.target == "interp" else machine_key(options.portable)})
    except PtoError:
        peers.closed = True
        raise
    return compiled


def for_rank(compiled: Compiled, wrapped: Sequence[Tensor | None], peers: Peers, ranks: OverRanks) -> Compiled:
    """Return what runs this rank's part of a compiled workload.

    Raises: M102 for options, and for workloads, that do not run over MPI.
    """
    options, mesh = compiled.options, ranks.mesh
    assert mesh is not None
    if options.sanitize:
        raise MeshError("sanitize is for one process", here(), found="sanitize=True and comm", help="compile without comm= to use it")
    tensors = {slot: _ranks_of(tensor, mesh) for slot, tensor in enumerate(wrapped) if tensor is not None}
    part = RankShare(compiled.plan, mesh, peers, tensors, ranks.collectives)
    runner = (RankEngine(compiled.runner, part, options.threads) if isinstance(compiled.runner, Engine)
              else RankRunner(part, check_finite=options.check_finite))
    return replace(compiled, runner=runner, sent=runner.sent)


def _ranks_of(tensor: Tensor, mesh: Mesh) -> TensorRanks:
    """Return what a tensor is to the ranks of a mesh."""
    layout = tensor.layout or tensor.copied
    if layout is None:
        return TensorRanks()
    layout = layout.named_on(mesh)
    cut = {one.axis for one in layout.dist if isinstance(one, Shard)}
    free = tuple(axis for axis, (name, size) in enumerate(mesh.axes) if size > 1 and name not in cut)
    return TensorRanks(() if tensor.intermediate else free, bool(cut), not cut and not layout.partial, tensor.copied is not None)
