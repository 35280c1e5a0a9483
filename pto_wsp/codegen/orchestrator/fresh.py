"""Tensors that a body makes for itself in C: asked for where they are made, given back where the body ends."""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.orchestrator.names import STATUS, Names
from pto_wsp.plan.model import Fresh


def fresh(item: Fresh, names: Names) -> Iterator[c.Stmt]:
    """Yield what makes a tensor."""
    ref = names.plan.tensors[item.slot].ref
    yield from names.declare("pto_tensor", names.tensors[ref.id], c.Braces((c.Int(0),), "pto_tensor"))
    dims: c.Expr = c.Braces(tuple(map(c.Int, ref.shape)), "const int64_t[]") if ref.shape else c.Int(0)
    made = c.Call("sink->fresh", (c.Name("sink"), names.tensor(ref), c.Int(ref.dtype.nbytes), c.Int(ref.rank), dims))
    yield c.If(made, (c.Return(STATUS),))


def release(item: Fresh, names: Names) -> Iterator[c.Stmt]:
    """Yield what gives a tensor back: tasks that were made with it may still have to run."""
    given = c.Call("sink->release", (c.Name("sink"), names.tensor(names.plan.tensors[item.slot].ref)))
    yield c.If(given, (c.Return(STATUS),))
