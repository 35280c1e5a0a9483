"""Types of workloads: every node and every kind, written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pto_wsp.ir import flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Kernel, Role, TileParam
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import Binary, Const, Element, Op, SlotValue, SymbolRef, Var
from pto_wsp.ir.text import print_workload
from pto_wsp.ir.tile import TileType
from pto_wsp.ir.view import Pick, View
from pto_wsp.ir.workload_type import kind_of, type_of

T = TensorRef(0, (4, 4), DType.F32, "X")
INDPTR, INDICES = TensorRef(1, (5,), DType.I32, "indptr"), TensorRef(2, (9,), DType.I32, "columns")
N = SymbolRef("n", 0)
B, P_, E = Var("b", 0), Var("p", 1), Var("e", 2)
NOTE = wl.WorkloadNote()
TILES, DONE = wl.ChannelRef(0, "tiles", 2), wl.EventRef(0, "done")
META = wl.ChannelRef(1, "meta", 0)


def kernel(name: str, *roles: Role) -> Kernel:
    """A kernel whose parameters are called x, y, z."""
    return Kernel(name, tuple(TileParam(letter, role, TileType(1, 4, DType.F32)) for letter, role in zip("xyz", roles, strict=False)), ())


def task(name: str = "k", *roles: Role, handle: int = 0, after: tuple[int, ...] = ()) -> wl.Task:
    """A task on X[b]."""
    roles = roles or (Role.IN, Role.OUT)
    args = tuple(wl.ViewArg(letter, View(T, (Pick(0, B),))) for letter, _ in zip("xyz", roles, strict=False))
    return wl.Task(kernel(name, *roles), (B,), args, handle, after)


def block(*items: wl.Item | wl.Task) -> wl.Body:
    """Items in order."""
    return flow.Sequence(tuple(flow.Do(item) if isinstance(item, wl.Task) else item for item in items))


def loop(*items: wl.Item | wl.Task, ordered: bool = False, name: str = "batch") -> wl.WorkloadLoop:
    """A loop over four positions."""
    return flow.Loop(B, Const(0), Const(4), Const(1), ordered, block(*items), wl.WorkloadNote(wl.Axis(name, "Dense[4]")))


def chosen(*items: wl.Item | wl.Task, ordered: bool = False) -> wl.WorkloadLoop:
    """A walk along row b of a sparse axis."""
    return flow.Loop(P_, Element(INDPTR, (B,)), Element(INDPTR, (Binary(Op.ADD, B, Const(1)),)), Const(1), ordered, block(*items),
                     wl.WorkloadNote(wl.Axis("routing", "Sparse")), flow.Through(E, Element(INDICES, (P_,)), NOTE))


POSITIVE = Binary(Op.GT, N, Const(0))
TWO = flow.Choice((flow.Branch(POSITIVE, block(task("big")), NOTE), flow.Branch(Binary(Op.EQ, N, Const(0)), block(task("none")), NOTE)),
                block(task("small")))
ONE = flow.Choice((flow.Branch(POSITIVE, block(task()), NOTE),), block())
PIPE = flow.Pipeline((
    flow.Process("load", block(loop(task("fetch", handle=7), flow.Send(TILES, (B,), NOTE, (7,)))), produces=(TILES,)),
    flow.Process("compute", block(flow.Consume(TILES, (E,), block(task("gemm"), task("norm", Role.INOUT)))), consumes=(TILES,), replicas=2),
))
K = "k(x: In, y: Out)"

TYPES: dict[str, tuple[wl.Body, str, str]] = {
    "nothing": (block(), "nothing", "Independent"),
    "task": (block(task()), K, "Independent"),
    "two tasks": (block(task(), task()), f"{K}; {K}", "Sequential"),
    "loop": (block(loop(task())), f"batch: Dense[4] → {K}", "Independent"),
    "loop without a name": (block(loop(task(), name="")), f"Dense[4] → {K}", "Independent"),
    "nest": (block(loop(loop(task(), name="heads"))), f"batch: Dense[4] × heads: Dense[4] → {K}", "Independent"),
    "loop around several": (block(loop(task(), task())), f"batch: Dense[4] → {{{K}; {K}}}", "Independent"),
    "ordered loop": (block(loop(task(), ordered=True)), f"batch: Dense[4] → {K}", "Sequential"),
    "free loop around an ordered one": (block(loop(loop(task(), ordered=True))), f"batch: Dense[4] × batch: Dense[4] → {K}", "Sequential"),
    "ordered loop around a free one": (block(loop(loop(task()), ordered=True)), f"batch: Dense[4] × batch: Dense[4] → {K}", "Sequential"),
    "loop around an empty body": (block(loop()), "batch: Dense[4] → nothing", "Independent"),
    "sparse": (block(loop(chosen(task()))), f"batch: Dense[4] × routing: Sparse → {K}", "Selected"),
    "ordered sparse": (block(loop(chosen(task(), ordered=True))), f"batch: Dense[4] × routing: Sparse → {K}", "Sequential"),
    "choice": (block(TWO), "{when n > 0 → big(x: In, y: Out), elif_ n == 0 → none(x: In, y: Out), otherwise → small(x: In, y: Out)}",
               "Conditional"),
    "choice without otherwise": (block(ONE), f"{{when n > 0 → {K}}}", "Conditional"),
    "choice in a loop": (block(loop(ONE)), f"batch: Dense[4] → {{when n > 0 → {K}}}", "Conditional"),
    "choice and a task in a loop": (block(loop(ONE, task())), f"batch: Dense[4] → {{{{when n > 0 → {K}}}; {K}}}", "Independent"),
    "sides": (block(flow.Sides((block(task()), block(task("other"))))), f"{K} | other(x: In, y: Out)", "Combined"),
    "sides in a loop": (block(loop(flow.Sides((block(task()), block(task()))))), f"batch: Dense[4] → {{{K} | {K}}}", "Combined"),
    "sides of several": (block(flow.Sides((block(task(), task()), block(task())))), f"{{{K}; {K}}} | {K}", "Combined"),
    "sides among others": (block(task(), flow.Sides((block(task()), block(task())))), f"{K}; {{{K} | {K}}}", "Sequential"),
    "sides in sides": (block(flow.Sides((block(task()), block(flow.Sides((block(task()), block(task()))))))), f"{K} | {{{K} | {K}}}",
                       "Combined"),
    "a block in a block": (block(block(block(task()))), K, "Independent"),
    "blocks one behind the other": (block(block(task()), block(block(), task())), f"{K}; {K}", "Sequential"),
    "fresh tensor": (block(loop(flow.Fresh(T, wl.WorkloadNote()), task())), f"batch: Dense[4] → {K}", "Independent"),
    "slot": (block(flow.SetSlot(0, N, NOTE), task()), K, "Independent"),
    "only a slot": (block(flow.SetSlot(0, N, NOTE)), "nothing", "Independent"),
    "event": (block(flow.Pipeline((flow.Process("a", block(task(), flow.RecordEvent(DONE))),
                                  flow.Process("b", block(flow.AwaitEvent(DONE), task()))))),
              f"a: {{{K}; record done}} ∥ b: {{synchronize done; {K}}}", "Pipeline"),
    "rendezvous": (block(flow.Pipeline((flow.Process("a", block(flow.Send(META, (N,), NOTE)), produces=(META,)),
                                      flow.Process("b", block(flow.Receive(META, (E,)), task()), consumes=(META,))))),
                   f"a: send meta[0] ∥ b: {{receive meta[0]; {K}}}", "Pipeline"),
    "pipeline and a task": (block(flow.Pipeline((flow.Process("a", block(task())),)), task()), f"{{a: {K}}}; {K}", "Sequential"),
    "process without a body": (block(flow.Pipeline((flow.Process("a", block()),))), "a: nothing", "Pipeline"),
}


@pytest.mark.parametrize(("body", "text", "kind"), TYPES.values(), ids=TYPES)
def test_a_type_shows_the_body_and_its_kind(body: wl.Body, text: str, kind: str) -> None:
    workload = wl.Workload("w", body)
    assert type_of(workload, width=500) == f"Workload[{text}, {kind}]"
    assert kind_of(workload) == kind


def test_a_long_type_has_a_line_a_statement() -> None:
    body = block(loop(task("prepare"), ordered=True), PIPE)
    assert type_of(wl.Workload("w", body)) == """\
Workload[
    batch: Dense[4] → prepare(x: In, y: Out);
    {
        load: batch: Dense[4] → {fetch(x: In, y: Out); send tiles[2]} ∥
        compute × 2: consume tiles[2] → {gemm(x: In, y: Out); norm(x: InOut)}},
    Sequential]"""


def test_a_pipeline_shows_its_processes_and_the_depth_of_channels() -> None:
    assert type_of(wl.Workload("w", block(PIPE))) == """\
Workload[
    load: batch: Dense[4] → {fetch(x: In, y: Out); send tiles[2]} ∥
    compute × 2: consume tiles[2] → {gemm(x: In, y: Out); norm(x: InOut)},
    Pipeline]"""


def test_no_line_of_a_type_is_wider_than_asked_for() -> None:
    wide = replace(task(), kernel=kernel("a_kernel_with_a_long_name", Role.IN, Role.INOUT, Role.OUT))
    choice = flow.Choice((flow.Branch(POSITIVE, block(wide), NOTE),), block(wide))
    text = type_of(wl.Workload("w", block(loop(flow.Sides((block(wide, wide), block(choice)))))), width=60)
    assert max(map(len, text.split("\n"))) <= 60
    assert text.count("a_kernel_with_a_long_name(") == 4


# ---- print(w) ----

PROGRAMS: dict[str, tuple[wl.Body, str]] = {
    "choice": (block(TWO), """\
    with P.when(n > 0):
        big[b](x=X[b], y=X[b])
    with P.elif_(n == 0):
        none[b](x=X[b], y=X[b])
    with P.otherwise():
        small[b](x=X[b], y=X[b])"""),
    "choice without otherwise": (block(ONE), """\
    with P.when(n > 0):
        k[b](x=X[b], y=X[b])"""),
    "branch without statements": (block(flow.Choice((flow.Branch(POSITIVE, block(), NOTE),), block(task()))), """\
    with P.when(n > 0):
        pass
    with P.otherwise():
        k[b](x=X[b], y=X[b])"""),
    "sparse": (block(loop(chosen(task()))), """\
    for b in P(batch: 4):
        for e in P.sel(routing: columns[indptr[b]:indptr[b + 1]]):
            k[b](x=X[b], y=X[b])"""),
    "sparse through a sum": (block(replace(chosen(task()), through=flow.Through(E, Binary(Op.ADD, Element(INDICES, (P_,)), N), NOTE))), """\
    for e in P.sel(routing: columns[p] + n for p in range(indptr[b], indptr[b + 1], 1)):
        k[b](x=X[b], y=X[b])"""),
    "slots": (block(flow.SetSlot(3, SlotValue(2), NOTE)), "    slot_set_u64(3, slot_u64(2))"),
    "fresh": (block(loop(flow.Fresh(T, wl.WorkloadNote()), flow.Fresh(INDPTR, wl.WorkloadNote()), task())), """\
    for b in P(batch: 4):
        X = Tensor.empty((4, 4), DType.F32)
        indptr = Tensor.empty((5,), DType.I32)
        k[b](x=X[b], y=X[b])"""),
    "pipeline": (block(PIPE), """\
    with P.pipe():
        tiles = Channel('tiles', 2)
        process('load').produces(tiles):
            for b in P(batch: 4):
                task7 = fetch[b](x=X[b], y=X[b])
                send(tiles, task7, b)
        replicate(process('compute').consumes(tiles), 2):
            with consume(tiles) as e:
                gemm[b](x=X[b], y=X[b])
                norm[b](x=X[b])"""),
    "tokens": (block(flow.Pipeline((flow.Process("a", block(flow.Send(META, (B, N), NOTE), flow.RecordEvent(DONE))),
                                  flow.Process("b", block(flow.Receive(META, (B, E)), flow.AwaitEvent(DONE), flow.Receive(TILES, ()),
                                                        flow.Consume(META, (B, E), block()),
                                                            flow.Consume(TILES, (), block(task()))))))), """\
    with P.pipe():
        process('a'):
            send(meta, b, n)
            record(done)
        process('b'):
            b, e = receive(meta)
            synchronize(done)
            _ = receive(tiles)
            with consume(meta) as (b, e):
                pass
            with consume(tiles) as _:
                k[b](x=X[b], y=X[b])"""),
    "a handle that a task elsewhere waits for": (block(loop(task(handle=4)), task(handle=5, after=(4,))), """\
    for b in P(batch: 4):
        task4 = k[b](x=X[b], y=X[b])
    k[b](x=X[b], y=X[b], after=[task4])"""),
}


@pytest.mark.parametrize(("body", "text"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_workload_prints_as_a_program(body: wl.Body, text: str) -> None:
    assert print_workload(wl.Workload("w", body)) == f"workload w:\n{text}"


def test_a_long_call_prints_in_lines() -> None:
    table = Element(TensorRef(5, (8, 8), DType.I32, "a_table_with_a_long_name"), (B, B))
    args = tuple(wl.ViewArg(f"parameter{k}", View(T, (Pick(0, table),))) for k in range(2))
    call = wl.Task(kernel("k"), (B,), args, 0)
    assert print_workload(wl.Workload("w", block(loop(call)))) == """\
workload w:
    for b in P(batch: 4):
        k[b](
            parameter0=X[a_table_with_a_long_name[b, b]],
            parameter1=X[a_table_with_a_long_name[b, b]])"""
