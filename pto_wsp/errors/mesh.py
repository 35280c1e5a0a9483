"""Errors of meshes, of layouts over their ranks, and of what moves data between ranks."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class LayoutError(PtoError):
    code = "M101"
    cause = "Layouts of tensors do not fit together, or a layout does not fit its tensor: nothing moves between ranks unless it is written."
    example = "TensorLayout.sharded(0, 2, \"x\").join(TensorLayout.sharded(0, 2, \"y\"))"
    fix = "Move one of them first: relayout(b, layout); a Partial tensor takes allreduce or reduce_scatter."


class LayoutShapeError(LayoutError):
    code = "M105"
    cause = "A layout is made wrongly, or says of other dimensions than its tensor has; or a tensor has no layout where it needs one."
    example = "Tensor(np.zeros((4, 4), np.float32), layout=TensorLayout.sharded(0, 3, \"x\"))"
    fix = "Say of each dimension whether it is cut: TensorLayout.sharded(dim=0, rank=2, mesh_axis=\"x\"), TensorLayout.replicated(2)."


class MeshError(PtoError):
    code = "M102"
    cause = "A mesh is made wrongly, or a workload uses a mesh, an axis or a rank that there is not."
    example = "Mesh(x=0)"
    fix = "Give every axis of the mesh a size of at least 1, one mesh to a workload, and ranks from 0 to one below its size."


class RankError(PtoError):
    code = "M103"
    cause = "A task does not belong to one rank: it uses parts of two, or a tensor that says nothing of ranks."
    example = "for r in P(mesh): k(A.on(r), B.on((r + 1) % 4))"
    fix = "Copy the part first, copy(B.on(q), C.on(r)); give every tensor of a workload over ranks a layout, and name the part: A.on(r)."


class CollectiveError(PtoError):
    code = "M104"
    cause = "A collective cannot stand there or do this: ranks would disagree about it, or its tensors do not fit."
    example = "for r in P(mesh): total = allreduce(Y)"
    fix = "Write collectives outside of loops over ranks, under conditions that are the same on every rank; the error says what it takes."


class PeerError(PtoError):
    code = "M106"
    cause = "Another rank of a program over MPI failed, ended, or did not answer in time."
    example = "program.run()  # rank 1 sleeps, or has left with sys.exit()"
    fix = "Read what the named rank says; a rank that takes long needs compile(peer_timeout=seconds)."


class RankDifferenceError(MeshError):
    code = "M107"
    cause = "The ranks of a program over MPI are not at the same program, or differ in what all of them must have alike."
    example = "n = 4 + comm.rank  # then program.run(n=n)"
    fix = "Run one script on every rank, with equal sizes, versions and options; ranks differ in the data of their parts alone."


class ShardUseError(LayoutError):
    code = "M108"
    cause = "A function on tensors needs all of a tensor, or the terms of a sum added up, where each rank holds a part."
    example = "f.using(mesh=Mesh(x=2))(Tensor(a, layout=TensorLayout.sharded(0, 2, \"x\")))  # the body: return a.reshape(-1, 3)"
    fix = "Move it first, by the collective that the help names: relayout(a, layout), allgather(a), allreduce(total)."


class FunctionCollectiveError(CollectiveError):
    code = "M109"
    cause = "A collective of a function on tensors takes what only workloads take, or stands where ranks would disagree about it."
    example = "@jit\ndef f(a): return allgather(a, algorithm=\"tree\")"
    fix = "Leave the algorithm to the plan and the mesh to f.using(mesh=mesh); move what a loop over shards makes behind the loop."
