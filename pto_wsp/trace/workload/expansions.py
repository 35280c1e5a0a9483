"""Expand each collective to copies and sums along one axis of a mesh: loops over the ranks, and what each rank sends.

A function here takes the ranks in groups along the axis, the tensor, the dimension that the result is cut in where there is one, and `out`.

    ring      each rank sends a chunk to the next one, p - 1 times
    tree      pairs of ranks, then pairs of pairs
    direct    every rank sends to every other one at once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pto_wsp.errors import CollectiveError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.mesh import RowLimit
from pto_wsp.ir.symbolic import Symbolic, as_scalar, maximum, minimum
from pto_wsp.ir.tensor import Tensor, TensorView
from pto_wsp.ir.tensor_layout import Replicate, Shard, TensorLayout, shard_size
from pto_wsp.ir.traffic import Sent
from pto_wsp.source import here
from pto_wsp.trace.workload.loops import P
from pto_wsp.trace.workload.moves import bound_of
from pto_wsp.trace.workload.rank_groups import (
    Coordinate,
    Count,
    Part,
    RankGroup,
    check_number,
    is_at,
    is_below,
    layout_on,
    modulo,
    tree_levels,
)

_ROWS_OF_A_CHUNK = 8     # of the first dimension, for which another one is not looked at


def _chunk_dim(tensor: Tensor, group: RankGroup) -> tuple[int, int]:
    """Return the dimension that is cut into chunks, and the most rows of a rank's part in it.

    Chunks of many rows of the first dimension stand one behind the other; of what has few rows, the longest dimension is cut.
    """
    layout = layout_on(tensor, group.mesh)
    most = [extent if not isinstance(cut, Shard) else -(-extent // group.mesh.shape[group.mesh.axis(cut.axis)])
            for extent, cut in zip(tensor.ref.shape, layout.dist, strict=True)]
    dim = 0 if most[0] >= _ROWS_OF_A_CHUNK * group.p else max(range(len(most)), key=lambda number: (most[number], -number))
    return dim, most[dim]


def _reduce(group: RankGroup, tensor: Tensor, dim: int, most: int, op: str, owner: Part) -> None:
    """Write, to the part `owner` of each rank, the total of its chunk: by a ring, or directly."""
    p, mesh, layout = group.p, group.mesh, layout_on(tensor, group.mesh)

    def terms(at: Sequence[Coordinate]) -> TensorView:
        return tensor.part(mesh, at)

    def own(at: Sequence[Coordinate]) -> Coordinate:
        return at[group.axis]

    if p == 1:
        for at in group.all():
            group.local(owner, group.chunk(terms, dim, most, own), at)
        return
    if group.algorithm == "direct":
        rows = -(-most // p)
        shape = list(tensor.ref.shape)
        shape[dim] = p * rows
        inbox = group.scratch(tensor, layout.with_dim(dim, Replicate()), shape)

        def slot(of: Coordinate) -> Part:
            def view(at: Sequence[Coordinate]) -> TensorView:
                start = of * rows
                box: TensorView = inbox.part(mesh, at)[(slice(None),) * dim + (slice(start, start + rows),)]
                like = owner(at)
                if all(isinstance(n, int) for n in like.shape) and like.shape[dim] == rows:
                    return box
                cut: TensorView = box[tuple(slice(0, extent) for extent in like.shape)]
                return cut.clip(*(bound_of(extent) for extent in like.shape))
            return view

        for at in group.all():
            for of in P(p, names="source"):
                group.send(slot(of), group.chunk(terms, dim, most, _always(at[group.axis])), at, group.moved(at, of))
        for at in group.all():
            group.local(owner, slot(0), at)
            for of in P.seq(range(1, p), names="source"):
                group.add(owner, slot(of), at, op)
        return
    total = group.scratch(tensor, layout)

    def sums(at: Sequence[Coordinate]) -> TensorView:
        return total.part(mesh, at)

    def ring(step: int | Symbolic, source: Part, target: Callable[[Callable[[Sequence[Coordinate]], Coordinate]], Part]) -> None:
        """Receive a chunk's sum so far from the rank before, and add the own term."""
        for at in group.all():
            q = modulo(at[group.axis] + (2 * p - 2) - step, p)
            fixed = _always(q)
            group.send(target(fixed), group.chunk(source, dim, most, fixed), at, group.moved(at, group.next(at, p - 1)))
            group.add(target(fixed), group.chunk(terms, dim, most, fixed), at, op)

    def into(q: Callable[[Sequence[Coordinate]], Coordinate]) -> Part:
        return group.chunk(sums, dim, most, q)

    ring(0, terms, into if p > 2 else lambda q: owner)
    if p > 2:
        if p > 3:
            for step in P.seq(range(1, p - 2), names="step"):
                ring(step, sums, into)
        for at in group.all():    # the last step ends on the owner
            q = at[group.axis]
            group.send(owner, group.chunk(sums, dim, most, _always(q)), at, group.moved(at, group.next(at, p - 1)))
            group.add(owner, group.chunk(terms, dim, most, _always(q)), at, op)


def _always(q: Coordinate) -> Callable[[Sequence[Coordinate]], Coordinate]:
    return lambda _: q


def _reduce_to_first(group: RankGroup, tensor: Tensor, op: str) -> Part:
    """Add pairs of ranks, and pairs of pairs; return the parts whose position 0 has the total."""
    mesh, layout = group.mesh, layout_on(tensor, group.mesh)
    total, inbox = group.scratch(tensor, layout), group.scratch(tensor, layout)

    def sums(at: Sequence[Coordinate]) -> TensorView:
        return total.part(mesh, at)

    def box(at: Sequence[Coordinate]) -> TensorView:
        return inbox.part(mesh, at)

    for at in group.all():
        group.local(sums, lambda at: tensor.part(mesh, at), at)
    for first, apart, n in tree_levels(group.p):
        for at in group.all(n=n):
            to = group.moved(at, at[group.axis] * first)
            group.send(box, sums, to, group.moved(at, at[group.axis] * first + apart))
            group.add(sums, box, to, op)
    return sums


def _sent_to_first(group: RankGroup, whole: Sent) -> Sent:
    """Return the bytes that each rank sends up a tree: its part, and nothing from the first rank."""
    return lambda at: whole(at) * (1 - is_at(at[group.axis], 0) if group.p > 1 else 0)


def _sent_chunks(group: RankGroup, tensor: Tensor, dim: int, left_out: int) -> Sent:
    """Return the bytes of a rank's part without the chunk `left_out` ranks on: what it sends in one round of a ring."""
    whole, row = group.local_bytes(tensor), group.local_bytes(tensor, dim)
    return lambda at: whole(at) - row(at) * group.chunk_rows(tensor, dim, group.next(at, left_out), at)


def _plus(*sent: Sent) -> Sent:
    def of(at: Sequence[Coordinate]) -> Count:
        total: Count = 0
        for one in sent:
            total = total + one(at)
        return total
    return of


def expand_allreduce(group: RankGroup, tensor: Tensor, _: int | None, out: Tensor | None) -> Tensor:
    """Give every rank the total of a tensor that is partial along the axis."""
    layout = layout_on(tensor, group.mesh)
    op = layout.reduction_of(group.name)
    assert op is not None
    made, part, finish = group.result("allreduce", tensor, layout.with_axis(group.name), out)
    whole = group.local_bytes(tensor)
    if group.algorithm == "tree":
        sums = _reduce_to_first(group, tensor, op)
        for at in group.all(n=1):
            group.local(part, sums, at)
        group.broadcast(part, 0)
        sent = _plus(_sent_to_first(group, whole), group.sent_broadcast(whole, 0))
    else:
        dim, most = _chunk_dim(tensor, group)
        _reduce(group, tensor, dim, most, op, group.chunk(part, dim, most, lambda at: at[group.axis]))
        _gather(group, part, dim, most)
        row = group.local_bytes(tensor, dim)
        sent = _plus(_sent_chunks(group, tensor, dim, 0),
                     _sent_chunks(group, tensor, dim, 1) if group.algorithm == "ring" else
                     lambda at: row(at) * group.chunk_rows(tensor, dim, at[group.axis], at) * (group.p - 1))
    finish()
    group.record("allreduce", tensor, sent)
    return made


def _gather(group: RankGroup, part: Part, dim: int, most: int) -> None:
    """Bring every chunk of the parts, which its own rank has, to all ranks."""
    p = group.p
    if p == 1:
        return
    if group.algorithm == "direct":
        for at in group.all():
            for away in P(p - 1, names="source"):
                q = modulo(at[group.axis] + 1 + away, p)
                chunk = group.chunk(part, dim, most, _always(q))
                group.send(chunk, chunk, at, group.moved(at, q))
        return
    for step in P.seq(p - 1, names="step"):
        for at in group.all():
            chunk = group.chunk(part, dim, most, _always(modulo(at[group.axis] + (2 * p - 1) - step, p)))
            group.send(chunk, chunk, at, group.moved(at, group.next(at, p - 1)))


def expand_reduce_scatter(group: RankGroup, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    """Give every rank its shard, of dimension `dim`, of the total of a tensor that is partial along the axis."""
    layout = layout_on(tensor, group.mesh)
    op = layout.reduction_of(group.name)
    assert op is not None and dim is not None
    wanted = layout.with_axis(group.name, dim=dim)
    made, part, finish = group.result("reduce_scatter", tensor, wanted, out)
    most = tensor.ref.shape[dim]
    if group.algorithm == "tree":
        sums = _reduce_to_first(group, tensor, op)
        for at in group.all():
            group.send(part, group.chunk(sums, dim, most, _always(at[group.axis])), at, group.moved(at, 0))
        whole, row = group.local_bytes(tensor), group.local_bytes(tensor, dim)
        sent = _plus(_sent_to_first(group, whole), lambda at: is_at(at[group.axis], 0) * (
            whole(at) - row(at) * group.chunk_rows(tensor, dim, 0, at)))
    else:
        _reduce(group, tensor, dim, most, op, part)
        sent = _sent_chunks(group, tensor, dim, 0)
    finish()
    group.record("reduce_scatter", tensor, sent)
    return made


def expand_allgather(group: RankGroup, tensor: Tensor, _: int | None, out: Tensor | None) -> Tensor:
    """Give every rank the whole of a tensor that the axis cuts."""
    layout = layout_on(tensor, group.mesh)
    dim = layout.dim_of(group.name)
    assert dim is not None
    made, part, finish = group.result("allgather", tensor, layout.with_axis(group.name), out)
    most = tensor.ref.shape[dim]

    def shard(at: Sequence[Coordinate]) -> TensorView:
        return tensor.part(group.mesh, at)

    own = group.local_bytes(tensor)
    if group.algorithm == "tree":
        for at in group.all():
            group.send(group.chunk(part, dim, most, _always(at[group.axis])), shard, group.moved(at, 0), at)
        group.broadcast(part, 0)
        sent = _plus(_sent_to_first(group, own), group.sent_broadcast(group.local_bytes(made), 0))
    else:
        for at in group.all():
            group.local(group.chunk(part, dim, most, lambda at: at[group.axis]), shard, at)
        _gather(group, part, dim, most)
        sent = _sent_chunks(group, made, dim, 1) if group.algorithm == "ring" else lambda at: own(at) * (group.p - 1)
    finish()
    group.record("allgather", tensor, sent)
    return made


def expand_all_to_all(group: RankGroup, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    """Cut a tensor along dimension `dim` in place of the dimension that the axis cuts."""
    layout = layout_on(tensor, group.mesh)
    before = layout.dim_of(group.name)
    assert before is not None and dim is not None
    if group.algorithm == "tree":
        raise CollectiveError("all_to_all has no tree", here(), expected="ring or direct",
                              found="tree")
    if dim == before:
        raise CollectiveError("all_to_all: the dimension is cut along this axis already", here(), expected="another one", found=f"{dim}")
    made, part, finish = group.result("all_to_all", tensor, layout.with_axis(group.name, dim=dim), out)
    p, shape = group.p, tensor.ref.shape

    def exchange(at: Sequence[Coordinate], of: Coordinate) -> None:
        there = group.moved(at, of)
        target = group.chunk(part, before, shape[before], _always(of))
        source = group.chunk(lambda there: tensor.part(group.mesh, there), dim, shape[dim], _always(at[group.axis]))
        group.send(target, source, at, there)

    if group.algorithm == "direct":
        for at in group.all():
            for of in P(p, names="source"):
                exchange(at, of)
    else:
        for step in P.seq(p, names="step"):
            for at in group.all():
                exchange(at, modulo(at[group.axis] + step, p))
    finish()
    row = group.local_bytes(tensor, dim)
    group.record("all_to_all", tensor, lambda at: row(at) * (
        shape[dim] - group.chunk_rows(tensor, dim, at[group.axis], at)))
    return made


def expand_broadcast(group: RankGroup, tensor: Tensor, root: int, out: Tensor | None) -> Tensor:
    """Give every rank the copy of the rank at position `root`, in the tensor itself or in `out`."""
    if out is None:
        group.broadcast(lambda at: tensor.part(group.mesh, at), root)
    else:
        _, part, finish = group.result("broadcast", tensor, layout_on(tensor, group.mesh), out)
        for at in group.all(n=1):
            group.local(part, lambda at: tensor.part(group.mesh, at), group.moved(at, root))
        group.broadcast(part, root)
        finish()
    group.record("broadcast", tensor, group.sent_broadcast(group.local_bytes(tensor), root))
    return tensor if out is None else out


def expand_ragged(group: RankGroup, rows: Tensor, counts: Tensor, given: object, out: Tensor | None) -> Tensor:
    """Send ragged blocks of rows, as many as `counts` says."""
    p, layout = group.p, layout_on(rows, group.mesh)
    if layout.dim_of(group.name) != 0 or group.mesh.size != p or out is not None:
        raise CollectiveError("all_to_all of ragged blocks does not take these rows", here(), found=repr(layout),
                              expected="rows cut in dimension 0, on a mesh of one axis, without out=")
    cut = None if counts.layout is None else layout_on(counts, group.mesh)
    of_rank = TensorLayout((Shard(group.name), Replicate()))
    if counts.ref.shape != (p, p) or not counts.dtype.is_integer or cut not in (of_rank, TensorLayout.replicated(2)):
        raise CollectiveError("all_to_all: the counts do not fit", here(), found=f"{list(counts.ref.shape)} {counts.dtype}, {cut!r}",
                              expected=f"integers [{p}, {p}], replicated or cut in dimension 0")
    capacity = check_number("all_to_all of ragged blocks has no capacity", given, 1, 1 << 40)
    known = counts if cut != of_rank else expand_allgather(RankGroup(group.mover, group.ranks, group.axis, "direct"), counts, None, None)
    made = group.scratch(rows, layout, (p * capacity, *rows.ref.shape[1:]))
    most = min(capacity, -(-rows.ref.shape[0] // p))

    def block(part: TensorView, start: Count, count: Count) -> TensorView:
        view: TensorView = part[start:start + count]
        return view.clip(most, *(None,) * (view.rank - 1))

    def total(counts: TensorView, blocks: Sequence[tuple[int, int]]) -> Symbolic:
        return sum((counts[block] for block in blocks), start=Symbolic(s.Const(0)))

    first_counts, name = known.part(group.mesh, (0,)), f" of `{rows.ref.name}`" if rows.ref.name else ""
    limits = [RowLimit(as_scalar(total(first_counts, [(of, to) for to in range(p)])), shard_size(rows.ref.shape[0], p, of),
                       f"all_to_all: rank {of} sends more rows{name} than it has") for of in range(p)]
    limits += [RowLimit(as_scalar(total(first_counts, [(of, to) for of in range(p)])), capacity,
                        f"all_to_all: more rows{name} arrive on rank {to} than its capacity") for to in range(p)]
    for to in range(p):
        table = known.part(group.mesh, (to,))
        for of in range(p):
            first, begin = total(table, [(of, q) for q in range(to)]), total(table, [(source, to) for source in range(of)])
            target = block(made.part(group.mesh, (to,)), begin, table[of, to])
            group.mover.copy(target, block(rows.part(group.mesh, (of,)), first, table[of, to]), to, of, limits)
            limits = []        # checked before the first row moves
    return made


def cut_own_part(group: RankGroup, tensor: Tensor, dim: int | None, out: Tensor | None) -> Tensor:
    """Cut a replicated tensor: every rank copies its own part, and nothing is sent."""
    layout = layout_on(tensor, group.mesh)
    assert dim is not None
    made, part, finish = group.result("relayout", tensor, layout.with_axis(group.name, dim=dim), out)
    most = tensor.ref.shape[dim]
    for at in group.all():
        group.local(part, group.chunk(lambda at: tensor.part(group.mesh, at), dim, most, lambda at: at[group.axis]), at)
    finish()
    group.record("relayout", tensor, lambda at: 0)
    return made


def expand_halo(group: RankGroup, tensor: Tensor, dim: int, given: object, out: Tensor | None) -> Tensor:
    """Put each shard of dimension `dim` between the nearest `k` rows of its neighbours, zeros beyond the ends of the tensor."""
    p: int = group.p
    n: int = tensor.ref.shape[dim]
    rows = -(-n // p)
    k = check_number("halo: a neighbour does not have so many rows", given, 1, rows)
    layout, shape = layout_on(tensor, group.mesh), tensor.ref.shape
    made, target, finish = group.result("halo", tensor, layout, out, (*shape[:dim], p * (rows + 2 * k), *shape[dim + 1:]))
    beyond = Tensor(np.zeros((*shape[:dim], k, *shape[dim + 1:]), tensor.dtype.np), layout=layout.with_dim(dim, Replicate()))

    def rows_of(part: TensorView, start: Count, count: Count, most: int) -> TensorView:
        view: TensorView = part[(slice(None),) * dim + (slice(start, start + count),)]
        return view if isinstance(count, int) and isinstance(view.shape[dim], int) else view.clip(
            *(most if number == dim else None for number in range(view.rank)))

    def size(at: Coordinate) -> Count:
        return rows if n % p == 0 else maximum(0, minimum(rows, n - at * rows))

    def source(at: Sequence[Coordinate]) -> TensorView:
        return tensor.part(group.mesh, at)

    def zeros(position: int, start: int, count: int) -> None:
        for at in group.all(n=1):
            group.local(lambda there: rows_of(target(there), start, count, count),
                        lambda there: rows_of(beyond.part(group.mesh, there), 0, count, count), group.moved(at, position))

    def pair(at: Sequence[Coordinate], of: Sequence[Coordinate], start: Count, first: Count, count: Count, most: int) -> None:
        group.send(lambda there: rows_of(target(there), start, count, most),
                   lambda there: rows_of(source(there), first, count, most), at, of)

    for at in group.all():
        pair(at, at, k, 0, size(at[group.axis]), rows)
    zeros(0, 0, k)
    last, rest = (n - 1) // rows, shard_size(n, p, (n - 1) // rows)
    zeros(last, k + rest, k)
    if rest < k and last > 0:
        zeros(last - 1, k + rows + rest, k - rest)
    if p > 1:
        for at in group.all(n=p - 1):          # from the rank before, which is full unless this one is empty
            c = at[group.axis]
            own, before = size(c + 1), size(c)
            count = k if n % p == 0 else minimum(k, before) * minimum(1, own)
            pair(group.moved(at, c + 1), at, k - count, before - count, count, k)
        for at in group.all(n=p - 1):          # from the rank behind
            c = at[group.axis]
            count = k if n % p == 0 else minimum(k, size(c + 1))
            pair(at, group.moved(at, c + 1), k + size(c), 0, count, k)
    row = group.local_bytes(tensor, dim)

    def sent(at: Sequence[Coordinate]) -> Count:
        c = at[group.axis]
        behind = minimum(k, size(c)) * minimum(1, size(c + 1)) * is_below(c + 1, p)
        return row(at) * (behind + minimum(k, size(c)) * (1 - is_at(c, 0)))

    finish()
    group.record("halo", tensor, sent)
    return made
