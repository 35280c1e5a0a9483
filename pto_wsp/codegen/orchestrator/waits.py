"""What stands before a statement in C: the checks of its scalars, and the waits for elements that tasks write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.orchestrator.names import STATUS, Names
from pto_wsp.plan.model import Branch, Check, Loop, Read, Send, SetSlot, Submit, Through

WAITED = "waited"    # the variable of the last wait's node: what a stream submits afterwards was made of what it read


def ready(node: Submit | Loop | Through | Branch | SetSlot | Send, names: Names, after: str | None,
          behind: Sequence[c.Expr] = ()) -> Iterator[c.Stmt]:
    """Yield what makes a node's scalars fit to be evaluated. `after`, `behind`: nodes that the statement waits for anyway."""
    order = (*(() if after is None else (names.ref(after),)), *behind)
    for step in names.reads.preparation(node.waits, node.checks):
        if isinstance(step, Check):
            yield from names.checks((step,))
        else:
            yield c.Block(tuple(_wait(step, names, order)))


def _wait(reads: tuple[Read, ...], names: Names, order: tuple[c.Expr, ...]) -> Iterator[c.Stmt]:
    yield c.Declare("pto_arg", "reads", array=(len(reads),))
    one = c.Int(1)
    for k, read in enumerate(reads):
        ref = names.plan.tensors[read.slot].ref
        place = c.Prefix("&", c.Index(c.Name("reads"), c.Int(k)))
        yield c.Evaluate(c.Call("pto_bind", (place, names.tensor(ref), names.scalar(read.offset), one, one, one, one, c.Name("PTO_READ"),
                                             c.Int(ref.dtype.nbytes))))
    nodes: c.Expr = c.Braces(order, "const int64_t[]") if order else c.Int(0)
    node = names.ref(WAITED)
    yield c.Assign(node, c.Call("pto_wait", (c.Name("sink"), names.stream, c.Name("reads"), c.Int(len(reads)), nodes, c.Int(len(order)))))
    yield c.If(c.Infix("<", node, c.Int(0)), (c.Return(STATUS),))
