"""Workloads as text, as types, as JSON and as Python: what they show, and that they come back equal."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pto_wsp import (
    Constexpr,
    Dense,
    DenseDyn,
    DType,
    In,
    InOut,
    Out,
    P,
    PtoError,
    Ragged,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    pto,
    workload,
)
from pto_wsp.ir import codec, flow, layout, scalar, tile, view
from pto_wsp.ir import kernel as kernel_ir
from pto_wsp.ir import workload as workload_ir
from pto_wsp.ir.rewrite import canonical, free_vars, nodes, with_fresh_ids
from pto_wsp.ir.scalar import Var

F32 = DType.F32
X, Y = Tensor(np.zeros((4, 6, 4), np.float32), name="X"), Tensor(np.zeros((4, 6, 4), np.float32), name="Y")
batch, heads = Dense[4](), Dense[6]()
LENS = Tensor(np.array([1, 2, 0, 6], np.int32), name="lens")

NAMESPACE: dict[str, object] = {"inf": math.inf, "nan": math.nan, "DType": DType, **{str(member): member for member in DType}}
for _module in (layout, scalar, tile, view, kernel_ir, workload_ir):
    NAMESPACE.update((name, value) for name, value in vars(_module).items() if isinstance(value, type) and name not in ("Tensor",))


@kernel
def attn(Q: In[Tile[1, 4, F32]], K: In[Tile[1, 4, F32]], O: Out[Tile[1, 4, F32]]) -> None:  # noqa: E741
    pto.store(O, Q + K)


@kernel
def tuned(x: InOut[Tile[1, 4, F32]], n: Scalar[F32], blocks: Constexpr[int]) -> None:
    acc = pto.alloc((1, 4), F32, init=-np.inf)
    for _ in pto.range(blocks):
        acc[:] = pto.maximum(acc, x * n)
    pto.store(x, acc)


@workload
def attention() -> None:
    for b in P(batch):
        for h in P(heads):
            attn[b, h](X[b, h], X[b, 0], Y[b, h])


@workload
def everything() -> None:
    n = Symbol("n")
    rows = Ragged(batch, LENS)
    for b in P(batch):
        for i in P.seq(rows[b]):
            done = attn[b, i](X[b, i], X[b, LENS[i]], Y[b, i])
            tuned[b](Y[b, i], (n > 2).where(0.5, n / 4), 3, after=done)
    for k in P(range(1, 4, 2)):
        tuned(X[k, 2:3].clip(1, 4), 1.5, 2)
    tuned(X[0].T[:, 0], 2, 1)
    tuned(X[1].reshape(24)[4:8], 2, 1)


@workload
def part(row: int) -> None:
    attn(X[row, 0], X[row, 1], Y[row, 0])


def both() -> Workload:
    """A workload of two sides."""
    return combine(part(0), part(1))


ALL = {"attention": attention, "everything": everything, "combine": both}


def test_the_type_shows_axes_tasks_and_kind() -> None:
    assert attention().type == "Workload[batch: Dense[4] × heads: Dense[6] → attn(Q: In, K: In, O: Out), Independent]"


def test_types_of_other_workloads() -> None:
    n = Symbol("n")
    dyn = DenseDyn(3)

    @workload
    def ordered() -> None:
        for i in P.seq(n):
            attn(X[i, 0], X[i, 1], Y[i, 0])

    @workload
    def several() -> None:
        for i in P(dyn):
            tuned(X[i, 0], 1, 1)
            attn(X[i, 0], X[i, 1], Y[i, 0])

    @workload
    def empty() -> None:
        pass
    call = "attn(Q: In, K: In, O: Out)"
    assert ordered().type == f"Workload[n: n → {call}, Sequential]"
    assert several().type == f"Workload[dyn: DenseDyn → {{tuned(x: InOut, n: Scalar); {call}}}, Independent]"
    assert both().type == f"Workload[{call} | {call}, Combined]"
    assert (part(0) >> part(1)).type == f"Workload[{call}; {call}, Sequential]"
    assert empty().type == "Workload[nothing, Independent]"


def test_a_workload_prints_as_the_program_that_it_is() -> None:
    assert str(everything()) == """\
workload everything:
    for b in P(batch: 4):
        for i in P.seq(rows: lens[b]):
            task0 = attn[b, i](Q=X[b, i], K=X[b, lens[i]], O=Y[b, i])
            tuned[b](x=Y[b, i], n=where(n > 2, 0.5, n / 4), after=[task0])
    for k in P(range(1, 4, 2)):
        tuned(x=X[k, 2:3].clip(1, 4), n=1.5)
    tuned(x=X[0].T[:, 0], n=2)
    tuned(x=X[1].reshape(24)[4:8], n=2)"""


def test_sides_print_apart() -> None:
    assert str(both()) == """\
workload part_part:
    combine:
      side:
        attn(Q=X[0, 0], K=X[0, 1], O=Y[0, 0])
      side:
        attn(Q=X[1, 0], K=X[1, 1], O=Y[1, 0])"""


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_repr_evaluates_to_an_equal_workload(make: object) -> None:
    w = make()  # type: ignore[operator]
    assert eval(repr(w.node), dict(NAMESPACE)) == w.node


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_json_comes_back_equal(make: object) -> None:
    w = make()  # type: ignore[operator]
    back = Workload.from_json(w.to_json())
    assert back == w and back.to_json() == w.to_json() and str(back) == str(w).replace("everything:", f"{w.name}:")


def test_json_is_one_line_of_plain_data() -> None:
    text = attention().to_json()
    assert "\n" not in text and "span" not in text and '"kind":"Workload"' in text


def test_a_workload_from_json_asks_for_its_arrays_and_runs() -> None:
    x, y = np.ones((4, 6, 4), np.float32), np.zeros((4, 6, 4), np.float32)
    Workload.from_json(attention().to_json()).compile(target="interp").run(X=x, Y=y)
    assert (y == 2).all()


@pytest.mark.parametrize("text", [
    "", "{", "3", "[]", '{"kind":"Workload"}', '{"kind":"Nonsense"}', '{"kind":"Workload","name":"x","body":{"kind":"Block"},"more":1}',
    '{"kind":"DType","value":"F99"}', '{"kind":"float"}', '{"kind":"float","value":"x"}', '{"name":"x"}', '{"kind":["Block"]}',
])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(PtoError) as caught:
        Workload.from_json(text)
    assert caught.value.code == "W113"


@pytest.mark.parametrize("value", [math.inf, -math.inf, 0.5, -0.0, 1 << 62, True, "ü", None, ()])
def test_plain_values_go_through_json(value: object) -> None:
    assert codec.loads(codec.dumps(value)) == value


def test_nan_goes_through_json() -> None:
    assert math.isnan(codec.loads(codec.dumps(math.nan)))  # type: ignore[arg-type]


# ---- equality ----

def test_equality_does_not_see_which_tensor_it_was() -> None:
    def made() -> Workload:
        A, B = Tensor(np.zeros((2, 4), np.float32), name="A"), Tensor(np.zeros((2, 4), np.float32), name="B")

        @workload
        def w() -> None:
            for i in P(2):
                attn(A[i], A[i], B[i])
        return w()
    Tensor(np.zeros(3))
    assert made() == made() and hash(made()) == hash(made())


def test_equality_does_not_see_the_order_in_which_tensors_were_made() -> None:
    def made(*, b_first: bool) -> Workload:
        one, two = Tensor(np.zeros((2, 4), np.float32), name="t"), Tensor(np.zeros((2, 4), np.float32), name="t")
        A, B = (two, one) if b_first else (one, two)

        @workload
        def w() -> None:
            attn(A[0], A[1], B[0])
        return w()
    assert made(b_first=True) == made(b_first=False)


def test_equality_sees_which_tensor_is_used_twice() -> None:
    A, B = Tensor(np.zeros((2, 4), np.float32), name="t"), Tensor(np.zeros((2, 4), np.float32), name="t")

    @workload
    def w(first: Tensor, second: Tensor) -> None:
        attn(first[0], second[0], first[1])
    assert w(A, B) != w(A, A) and w(A, B) == w(B, A)


def test_equality_sees_order_names_and_views() -> None:
    assert part(0) != part(1)
    assert (part(0) >> part(1)) != (part(0) | part(1))


def test_tracing_twice_gives_equal_workloads() -> None:
    assert attention() == attention() and everything() != attention()


def test_canonical_says_which_tensors_they_were() -> None:
    found = attention()
    assert found.tensors[0] is X and found.tensors[1] is Y and len(found.tensors) == 2
    assert {node.id for node in nodes(found.node) if isinstance(node, layout.TensorRef)} == {0, 1}


def test_canonical_of_a_canonical_workload_is_itself() -> None:
    once = everything().node
    assert canonical(once).workload == once


# ---- ids ----

def test_fresh_ids_are_no_variable_s_of_before() -> None:
    before = everything().node.body
    body = with_fresh_ids(before)
    old, new = ([node.var.id for node in flow.walk(b) if isinstance(node, flow.Loop)] for b in (before, body))
    known, handles = ({task.handle for task in workload_ir.tasks(b)} for b in (before, body))
    assert len(new) == len(set(new)) == 3 and min(new) > max(old)
    assert len(handles) == 5 and min(handles) > max(known)
    assert canonical(workload_ir.Workload("everything", body)).workload == everything().node


def test_fresh_ids_leave_variables_of_loops_around() -> None:
    (loop,) = attention().node.body.items
    assert isinstance(loop, flow.Loop)
    body = with_fresh_ids(loop.body)
    assert free_vars(body) == free_vars(loop.body) == (loop.var,)
    fresh = {node.id for node in nodes(body) if isinstance(node, Var)} - {loop.var.id}
    assert len(fresh) == 1 and not fresh & {node.id for node in nodes(loop.body) if isinstance(node, Var)}


# ---- kernels ----

def test_a_kernel_shows_what_a_call_takes() -> None:
    assert repr(attn) == "kernel attn(Q: In[Tile[1, 4, f32]], K: In[Tile[1, 4, f32]], O: Out[Tile[1, 4, f32]])"
    assert tuned.type == "Kernel[x: InOut[Tile[1, 4, f32]], n: Scalar[f32], blocks: Constexpr[int]]"


def test_a_kernel_of_many_parameters_has_a_line_each() -> None:
    @kernel
    def wide(first: In[Tile[1, 4, F32]], second: In[Tile[1, 4, F32]], third: In[Tensor], fourth: Out[Tile[1, 4, F32]]) -> None:
        pto.store(fourth, first + second)
    assert repr(wide) == """\
kernel wide(
    first: In[Tile[1, 4, f32]],
    second: In[Tile[1, 4, f32]],
    third: In[Tensor],
    fourth: Out[Tile[1, 4, f32]])"""
    assert wide.type == repr(wide).replace("kernel wide(", "Kernel[")[:-1] + "]"


def test_a_notebook_shows_kernels_workloads_and_types_as_they_print() -> None:
    class Printer:
        shown = ""

        def text(self, text: str) -> None:
            self.shown += text

    for value, text in ((attn, repr(attn)), (attention(), str(attention()))):
        printer = Printer()
        value._repr_pretty_(printer, False)
        assert printer.shown == text
