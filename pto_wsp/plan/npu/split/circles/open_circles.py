"""Open circles of products and vector work: loops that they run in become chains, where it is known how many turns those have.

    for t in range(0, 2, 1):                     %1 = read h                     (vector)
        %1 = read h                              %2 = matmul %1, %0              (cube)
        %2 = matmul %1, %0                       %3 = relu %2                    (vector)
        %3 = relu %2                     →       %4 = matmul %3, %0              (cube)
        h[:] = %3                                %5 = relu %4                    (vector)

Loops that are no part of a circle stay loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from pto_wsp.errors import MixedKernelError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import walk
from pto_wsp.expr.rewrite import rewrite
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.pipeline import Pass
from pto_wsp.plan.kernel.passes import KERNEL, KernelObserver, KernelPass, run_kernel_passes
from pto_wsp.plan.kernel.tiles.common import merge_common
from pto_wsp.plan.kernel.tiles.dead_code import drop_dead_code
from pto_wsp.plan.kernel.tiles.forward_buffers import forward_buffers
from pto_wsp.plan.npu.split.circles.buffer_versions import buffer_versions
from pto_wsp.plan.npu.split.circles.groups import first_circle
from pto_wsp.plan.npu.split.circles.unrolled import turns_of, unrolled
from pto_wsp.plan.npu.split.cores.flow import Flow
from pto_wsp.plan.npu.split.cores.statements import Leaf, Moving
from pto_wsp.plan.npu.split.products.own_accumulators import own_accumulators
from pto_wsp.plan.npu.split.products.part_products import is_product
from pto_wsp.plan.npu.split.uses import NpuUse

MAX_TURNS = 64         # of one loop
MAX_PRODUCTS = 128     # of one loop, when it is written out

_TIDY: tuple[KernelPass, ...] = (
    Pass("forward_buffers", KERNEL, forward_buffers),     # a turn takes the value that the last one wrote
    Pass("merge_common", KERNEL, merge_common),
    Pass("drop_dead_code", KERNEL, drop_dead_code),
)


def open_circles(kernel: k.Kernel, use: NpuUse, observe: KernelObserver | None = None) -> Flow:
    """Return the statements of a kernel that no circle keeps from being split. `observe` is told each step.

    Raises: N102 for a circle in loops of which nobody knows how often they run, or of too many turns.
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
        buffers = _buffers(circle.members) & made       # and not those that hold sums of products only here
        if circle.turns or buffers <= versions:
            loop, turns = _loop_of(flow, circle.turns or circle.members, of.access)
            name, after = "unroll_circles", unrolled(_named(kernel, buffers), loop, turns)
        else:
            name, after = "buffer_versions", buffer_versions(kernel, buffers)
            versions |= _made(after) - made
        after = run_kernel_passes(after, None, _TIDY)
        if observe is not None:
            observe(name, kernel, after)
        kernel = after


def _named(kernel: k.Kernel, buffers: Set[int]) -> k.Kernel:
    """Return the kernel with values of no name that are written to these buffers named after them: so they are called when they cross."""
    names = {stmt.value.id: stmt.buffer.name for stmt in walk(kernel.body)
             if isinstance(stmt, k.Write) and stmt.buffer.id in buffers and not stmt.value.name}
    return rewrite(kernel, lambda node: replace(node, name=names[node.id]) if isinstance(node, k.Value) and node.id in names else None)


def _common_loops(members: Sequence[Leaf]) -> tuple[k.For, ...]:
    """Return the loops that a whole circle runs in, outermost first."""
    return tuple(loop for loop in members[0].loops if all(any(other is loop for other in leaf.loops) for leaf in members))


def _buffers(members: Sequence[Leaf]) -> frozenset[int]:
    return frozenset(leaf.stmt.buffer.id for leaf in members if isinstance(leaf.stmt, k.Alloc | k.Read | k.Write | k.Accumulate))


def _made(kernel: k.Kernel) -> frozenset[int]:
    return frozenset(stmt.buffer.id for stmt in walk(kernel.body) if isinstance(stmt, k.Alloc))


def _loop_of(flow: Flow, members: Sequence[Leaf], access: Mapping[str, ParamAccess]) -> tuple[k.For, range]:
    """Return the loop to write out for a circle, the innermost one of known bounds that all of it runs in, and its turns.

    Raises: N102 where there is none, or where it has too many turns.
    """
    for loop in reversed(_common_loops(members)):
        turns = turns_of(loop, access)
        if turns is None:
            continue
        products = sum(is_product(stmt) or isinstance(stmt, k.Accumulate) for stmt in walk(loop.body))
        if len(turns) > MAX_TURNS or len(turns) * products > MAX_PRODUCTS:
            raise _circle(flow, members, f"{len(turns)} turns with {products * len(turns)} products in all, of the loop at {loop.span}",
                          f"at most {MAX_TURNS} turns and {MAX_PRODUCTS} products in a loop that becomes a chain of tasks",
                          "run several kernels in the workload, with P.seq, each with fewer turns, and keep the state in a tensor")
        return loop, turns
    loops = [f"the loop at {loop.span} runs as often as a task says" for loop in _common_loops(members)]
    raise _circle(flow, members, loops[-1] if loops else "", "a loop of constant bounds, which becomes a chain of tasks",
                  "give the loop constant bounds, or run one kernel a turn in the workload, with P.seq, and keep the state in a tensor")


def _circle(flow: Flow, members: Sequence[Leaf], found: str, expected: str, help: str) -> MixedKernelError:
    """Say what goes round, at a product that takes part in it."""
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
