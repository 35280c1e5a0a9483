"""Open cycles of products and vector work, so that a kernel can be split into parts.

A cycle (a strongly connected group of `flow.first_circle`) runs over loop iterations or through a buffer. `open_circles` repeats two
rewrites until no cycle is left:

1. `buffer_versions` gives a buffer a new version for each write (static single assignment), because parts pass on values and not buffers. A
  loop that writes an outer buffer has one version inside.

    acc[:] = %1                                  acc.1[:] = %1
    %2 = read acc                                %2 = read acc.1
    if n > 0:                                    %4 = read acc.1; acc.2[:] = %4
        acc[:] = %3                  →           if n > 0:
                                                     acc.3[:] = %3; %5 = read acc.3; acc.2[:] = %5
    %6 = read acc                                %6 = read acc.2

2. `unrolled` writes out a loop with constant bounds whose iterations depend on each other through both cores. Other loops stay loops.

    for t in range(0, 2, 1):                     %1 = read h                     (vector)
        %1 = read h                              %2 = matmul %1, %0              (cube)
        %2 = matmul %1, %0                       %3 = relu %2                    (vector)
        %3 = relu %2                     →       %4 = matmul %3, %0              (cube)
        h[:] = %3                                %5 = relu %4                    (vector)

`own_accumulators` selects the sums of products that the cube core can keep: at every read the set of added products must be known. Other
sums belong to the vector core.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import partial

from pto_wsp.errors import MixedKernelError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel_walk import Body, buffers_written, map_bodies, result_of, walk
from pto_wsp.ir.rewrite import rewrite
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.plan.descriptors import NpuUse
from pto_wsp.npu.plan.facts import TRUE, NonzeroParts
from pto_wsp.npu.plan.flow import Flow, Leaf, Moving, Statements, first_circle
from pto_wsp.npu.plan.products import accumulate_products, is_product
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.kernel.context import fresh_ids
from pto_wsp.passes.kernel.passes import KERNEL, KernelObserver, KernelPass, run_kernel_passes
from pto_wsp.passes.kernel.tiles import drop_dead_code, forward_buffers, merge_common
from pto_wsp.passes.pipeline import Pass
from pto_wsp.source import Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """The buffer that represents an original one now. `fresh`: unused since allocation; `empty`: and allocated without fill."""

    buffer: k.Buffer
    fresh: bool = False
    empty: bool = False


def buffer_versions(kernel: k.Kernel, chosen: Set[int]) -> k.Kernel:
    """Return the kernel with a new version of each chosen buffer per write."""
    return replace(kernel, body=tuple(_Versions(kernel, chosen).body(kernel.body, {})))


@dataclass(slots=True)
class _Versions:
    kernel: k.Kernel
    chosen: Set[int]
    values: Iterator[int] = field(init=False)
    buffers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self.values = fresh_ids(self.kernel)
        made = (stmt.buffer.id for stmt in walk(self.kernel.body) if isinstance(stmt, k.Alloc))
        self.buffers = itertools.count(1 + max(made, default=-1))

    def body(self, body: Body, now: dict[int, Version]) -> Iterator[k.Stmt]:
        """Yield the statements of a body with versions in place of buffers.

        `now`: the current version of each chosen buffer; updated to the versions after the body.
        """
        for stmt in body:
            match stmt:
                case k.Alloc(buffer, init) if buffer.id in self.chosen:
                    now[buffer.id] = Version(self._buffer(buffer), fresh=True, empty=init is None)
                    yield replace(stmt, buffer=now[buffer.id].buffer)
                case k.Write(buffer, span=span) if buffer.id in now:
                    now[buffer.id] = Version(self._buffer(buffer))
                    yield k.Alloc(now[buffer.id].buffer, None, span)
                    yield replace(stmt, buffer=now[buffer.id].buffer)
                case k.Read(_, buffer) if buffer.id in now:
                    now[buffer.id] = Version(now[buffer.id].buffer)
                    yield replace(stmt, buffer=now[buffer.id].buffer)
                case k.For(span=span):
                    for key in sorted(buffers_written(stmt) & set(now)):
                        if not now[key].fresh:
                            yield from self._copied(key, now, span)
                        now[key] = Version(now[key].buffer)
                    yield replace(stmt, body=tuple(self._inside(stmt.body, dict(now))))
                case k.If(span=span):
                    before = dict(now)
                    for key in sorted(buffers_written(stmt) & set(now)):
                        yield from self._copied(key, now, span)
                    yield map_bodies(stmt, partial(self._side, before=before, behind=dict(now), span=span))
                case _:
                    yield stmt

    def _side(self, body: Body, before: dict[int, Version], behind: dict[int, Version], span: Span) -> Body:
        """Return one side of a branch, extended with copies to the versions that are current after the branch."""
        now = dict(before)
        out = list(self.body(body, now))
        for key in before:
            if now[key].buffer != before[key].buffer:
                value = k.Value(next(self.values), now[key].buffer.type)
                out += (k.Read(value, now[key].buffer, span), k.Write(behind[key].buffer, value, span))
        return tuple(out)

    def _inside(self, body: Body, now: dict[int, Version]) -> Iterator[k.Stmt]:
        """Yield a loop body: outer buffers keep one version inside, buffers that the body allocates get several."""
        named = rewrite(body, lambda node: now[node.id].buffer if isinstance(node, k.Buffer) and node.id in now else None)
        yield from self.body(named, {})

    def _copied(self, key: int, now: dict[int, Version], span: Span) -> Iterator[k.Stmt]:
        """Yield the statements that allocate a new version and copy the contents of the last one."""
        old, new = now[key], self._buffer(now[key].buffer)
        now[key] = Version(new)
        yield k.Alloc(new, None, span)
        if not old.empty:
            value = k.Value(next(self.values), new.type)
            yield k.Read(value, old.buffer, span)
            yield k.Write(new, value, span)

    def _buffer(self, buffer: k.Buffer) -> k.Buffer:
        return replace(buffer, id=next(self.buffers))


# -- unrolling -------------------------------------------------------------------------------------


def iterations_of(loop: k.For, access: Mapping[str, ParamAccess]) -> range | None:
    """Return the iterations of a loop; None if its bounds are not the same constants in every task."""
    def known(node: s.Scalar) -> s.Scalar | None:
        if not isinstance(node, s.ParamExtent):
            return None
        extent = (access[node.name].rows, access[node.name].cols)[node.dim]
        return None if extent is None else s.Const(extent)

    bounds = [s.substitute(bound, known) for bound in (loop.start, loop.stop, loop.step)]
    numbers = [int(bound.value) for bound in bounds if isinstance(bound, s.Const)]
    return range(*numbers) if len(numbers) == len(bounds) else None


def unroll_loop(kernel: k.Kernel, loop: k.For, iterations: range) -> k.Kernel:
    """Return the kernel with the loop of that variable written out."""
    names = _FreshIds(kernel)

    def opened(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            if isinstance(stmt, k.For) and stmt.var == loop.var:
                for iteration in iterations:
                    out += _settled(names.again(stmt.body, {stmt.var: s.Const(iteration)}))
            else:
                out.append(map_bodies(stmt, opened))
        return tuple(out)

    return replace(kernel, body=opened(kernel.body))


@dataclass(slots=True)
class _FreshIds:
    """Values, buffers and loop variables with unused ids."""

    kernel: k.Kernel
    values: Iterator[int] = field(init=False)
    buffers: Iterator[int] = field(init=False)
    variables: Iterator[int] = field(init=False)
    items: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self.values = fresh_ids(self.kernel)
        made = list(walk(self.kernel.body))
        self.buffers = itertools.count(1 + max((stmt.buffer.id for stmt in made if isinstance(stmt, k.Alloc)), default=-1))
        self.variables = itertools.count(1 + max((stmt.var.id for stmt in made if isinstance(stmt, k.For)), default=-1))
        self.items = itertools.count(1 + max((stmt.item.id for stmt in made if isinstance(stmt, k.Item)), default=-1))

    def again(self, body: Body, scalars: Mapping[s.Var, s.Scalar]) -> Body:
        """Return a copy of a body with new ids for its definitions and with `scalars` substituted for variables."""
        inside = list(walk(body))
        results = [result for stmt in inside if (result := result_of(stmt)) is not None]
        values = {value.id: replace(value, id=next(self.values)) for value in results}
        buffers = {stmt.buffer.id: replace(stmt.buffer, id=next(self.buffers)) for stmt in inside if isinstance(stmt, k.Alloc)}
        loops = {stmt.var: replace(stmt.var, id=next(self.variables)) for stmt in inside if isinstance(stmt, k.For)}
        items = {stmt.item: replace(stmt.item, id=next(self.items)) for stmt in inside if isinstance(stmt, k.Item)}

        def change(node: object) -> object | None:
            match node:
                case k.Value(id=key):
                    return values.get(key)
                case k.Buffer(id=key):
                    return buffers.get(key)
                case s.ItemRef():
                    return items.get(node)
                case s.Var():
                    return loops.get(node) or scalars.get(node)
                case _:
                    return fold_scalar(node)

        return rewrite(body, change)


def fold_scalar(node: object) -> s.Scalar | None:
    """Return a scalar operation with constants folded after its operands changed; None if the node is no operation."""
    match node:
        case s.Binary(op, lhs, rhs):
            return s.binary(op, lhs, rhs)
        case s.Unary(op, value):
            return s.unary(op, value)
        case s.Select(condition, then, other):
            return s.select(condition, then, other)
        case _:
            return None


def _settled(body: Body) -> Iterator[k.Stmt]:
    for stmt in body:
        if isinstance(stmt, k.If) and isinstance(stmt.condition, s.Const):
            yield from _settled(stmt.then if stmt.condition.value else stmt.other)
        else:
            yield map_bodies(stmt, lambda inner: tuple(_settled(inner)))


# -- accumulators ----------------------------------------------------------------------------------


def own_accumulators(kernel: k.Kernel, use: NpuUse) -> Statements:
    """Return the statements of the kernel, with sums of products in place if the cube core can keep them."""
    access = {param.name: one for param, one in zip(use.kernel.memory_params, use.access, strict=True)}
    excluded: frozenset[int] = frozenset()
    while True:
        of = Statements(accumulate_products(kernel, excluded), access, use.shared)
        unfit = frozenset(buffer for buffer in of.accumulators if not _fits(of, NonzeroParts(of.kernel, access), buffer))
        if not unfit:
            return of
        excluded |= unfit


def _fits(of: Statements, given: NonzeroParts, buffer: int) -> bool:
    start, *touching = (leaf for leaf in of.leaves
                        if isinstance(leaf.stmt, k.Alloc | k.Read | k.Accumulate) and leaf.stmt.buffer.id == buffer)
    adding = [leaf for leaf in touching if isinstance(leaf.stmt, k.Accumulate)]
    depth = len(start.path)
    if any(isinstance(step, k.If) for leaf in adding for step in leaf.path[depth:]):
        return False
    if any(_reads_too_early(leaf, other, depth) for leaf in touching if isinstance(leaf.stmt, k.Read) for other in adding):
        return False
    outer_variables = {loop.var for loop in start.loops}
    parts = {given.product(leaf.stmt) for leaf in adding if isinstance(leaf.stmt, k.Accumulate)}
    looped = [leaf for leaf in adding if len(leaf.path) > depth]
    terms = all(given.terms(leaf.stmt) == TRUE for leaf in looped if isinstance(leaf.stmt, k.Accumulate))
    bounds = [bound for leaf in looped for loop in leaf.loops[len(start.loops):] for bound in (loop.start, loop.stop)]
    fixed = all(leaf in outer_variables for node in (*bounds, *parts.copy().pop()) for leaf in s.leaves(node)
                if isinstance(leaf, s.Var | s.ItemRef))
    return len(parts) == 1 and terms and fixed


def _reads_too_early(read: Leaf, adding: Leaf, depth: int) -> bool:
    """Return whether a read precedes an addition in a loop iteration or branch that both are in."""
    inside = set(map(id, adding.path[depth:]))
    return read.at < adding.at and any(id(step) in inside for step in read.path[depth:])


# -- opening ---------------------------------------------------------------------------------------


MAX_ITERATIONS = 64         # maximum iterations of one unrolled loop
MAX_PRODUCTS = 128     # maximum products of one unrolled loop

_TIDY: tuple[KernelPass, ...] = (
    Pass("forward_buffers", KERNEL, forward_buffers),     # an iteration reads the value that the previous iteration wrote
    Pass("merge_common", KERNEL, merge_common),
    Pass("drop_dead_code", KERNEL, drop_dead_code),
)


def open_circles(kernel: k.Kernel, use: NpuUse, observe: KernelObserver | None = None) -> Flow:
    """Return the flow of a kernel without cycles, after unrolling and versioning. `observe` receives each rewrite.

    Raises: N102 for a cycle in loops of unknown trip count, or of too many iterations.
    """
    versions: frozenset[int] = frozenset()       # buffers that are versions already
    while True:
        of = own_accumulators(kernel, use)
        flow = Flow(of)
        circle = first_circle(flow)
        if circle is None:
            if observe is not None:
                observe("own_accumulators", kernel, of.kernel)
            return flow
        made = _made(kernel)
        buffers = _buffers(circle.members) & made       # without the accumulators that exist only in `of`
        if circle.across_iterations or buffers <= versions:
            loop, iterations = _loop_of(flow, circle.across_iterations or circle.members, of.access)
            name, after = "unroll_circles", unroll_loop(_name_values(kernel, buffers), loop, iterations)
        else:
            name, after = "buffer_versions", buffer_versions(kernel, buffers)
            versions |= _made(after) - made
        after = run_kernel_passes(after, None, _TIDY)
        if observe is not None:
            observe(name, kernel, after)
        kernel = after


def _name_values(kernel: k.Kernel, buffers: Set[int]) -> k.Kernel:
    """Return the kernel with unnamed values that are written to `buffers` named after the buffer: a crossing takes that name."""
    names = {stmt.value.id: stmt.buffer.name for stmt in walk(kernel.body)
             if isinstance(stmt, k.Write) and stmt.buffer.id in buffers and not stmt.value.name}
    return rewrite(kernel, lambda node: replace(node, name=names[node.id]) if isinstance(node, k.Value) and node.id in names else None)


def _common_loops(members: Sequence[Leaf]) -> tuple[k.For, ...]:
    """Return the loops around every member of a cycle, outermost first."""
    return tuple(loop for loop in members[0].loops if all(any(other is loop for other in leaf.loops) for leaf in members))


def _buffers(members: Sequence[Leaf]) -> frozenset[int]:
    return frozenset(leaf.stmt.buffer.id for leaf in members if isinstance(leaf.stmt, k.Alloc | k.Read | k.Write | k.Accumulate))


def _made(kernel: k.Kernel) -> frozenset[int]:
    return frozenset(stmt.buffer.id for stmt in walk(kernel.body) if isinstance(stmt, k.Alloc))


def _loop_of(flow: Flow, members: Sequence[Leaf], access: Mapping[str, ParamAccess]) -> tuple[k.For, range]:
    """Return the innermost loop of constant bounds around a whole cycle, and its iterations.

    Raises: N102 if there is no such loop, or if it has too many iterations.
    """
    for loop in reversed(_common_loops(members)):
        iterations = iterations_of(loop, access)
        if iterations is None:
            continue
        products = sum(is_product(stmt) or isinstance(stmt, k.Accumulate) for stmt in walk(loop.body))
        if len(iterations) > MAX_ITERATIONS or len(iterations) * products > MAX_PRODUCTS:
            raise _circle(flow, members,
                          f"{len(iterations)} iterations with {products * len(iterations)} products in all, of the loop at {loop.span}",
                          f"at most {MAX_ITERATIONS} iterations and {MAX_PRODUCTS} products in a loop that becomes a chain of tasks",
                          "run several kernels in the workload, with P.seq, each with fewer iterations, and keep the state in a tensor")
        return loop, iterations
    loops = [f"the loop at {loop.span} runs as often as a task says" for loop in _common_loops(members)]
    raise _circle(flow, members, loops[-1] if loops else "", "a loop of constant bounds, which becomes a chain of tasks",
                  "give the loop constant bounds, or run one kernel an iteration in the workload, with P.seq, and keep the state in a "
                  "tensor")


def _circle(flow: Flow, members: Sequence[Leaf], found: str, expected: str, help: str) -> MixedKernelError:
    """Return the error for a cycle, at a product that takes part in it."""
    product = next(leaf for leaf in members if is_product(leaf.stmt) or isinstance(leaf.stmt, k.Accumulate))
    shares = [leaf for leaf in members if flow.unit(leaf) is Unit.VECTOR]
    vector = next((leaf for leaf in shares if isinstance(leaf.stmt, k.Compute)), shares[0] if shares else None)
    buffers = dict.fromkeys(leaf.stmt.buffer.name for leaf in members if isinstance(leaf.stmt, k.Read | k.Write | k.Accumulate))
    params = dict.fromkeys(leaf.stmt.param for leaf in members if isinstance(leaf.stmt, Moving))
    round_ = " and ".join(f"`{name}`" for name in (*buffers, *params)) or "a value"
    between = "products and vector work" if shares else "products"
    return MixedKernelError(
        f"{round_} goes round between {between} of kernel `{flow.of.kernel.name}`", product.span, expected=expected,
        found=found or f"{round_} is changed by what this product gives, and this product depends on {round_}",
        help=help,
        notes=() if vector is None else (f"the vector core's share is at {vector.span}",))
