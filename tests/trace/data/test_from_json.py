"""Workload.from_json holds what it reads to the rules of a traced workload, one change of good JSON at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Constexpr,
    Dense,
    DType,
    In,
    InOut,
    Out,
    P,
    PtoError,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    kernel,
    pto,
    slot_set_u64,
    workload,
)

F32, I32, I64 = DType.F32, DType.I32, DType.I64
X, Y = (Tensor(shape=(4, 8), dtype=F32, name=name) for name in "XY")
INDPTR, INDICES = Tensor(np.array([0, 1, 2, 2, 3], np.int32)), Tensor(np.array([0, 3, 1], np.int32))


@kernel
def work(n: Scalar[I64], x: In[Tile[1, 8, F32]], region: In[Tensor], y: Out[Tile[1, 8, F32]]) -> None:
    acc = pto.alloc((1, 8), F32, init=0.0)
    for i in pto.range(n):
        with pto.when(i < 4):
            acc += pto.load(region, (i, 0), shape=(1, 8))
    best, _ = pto.topk(x, 2)
    pto.store(y, pto.concat(best, acc[:, 2:]))


@workload
def example() -> None:
    sparse = Sparse(Dense[4](), INDPTR, INDICES)
    slot_set_u64(1, 3)
    for b in P(4):
        first = work[b](n=b + Symbol("n"), x=X[b], region=X, y=Y[b:b + 1])
        with P.when(b < 2):
            for e in P.sel(sparse[b]):
                work(n=e, x=X[0], region=X[1:3], y=Y[b], after=first)


def parts(data: Any) -> Any:
    """Yield every object of JSON data, the outer before the inner."""
    if isinstance(data, dict):
        yield data
    for inner in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from parts(inner)


def first(data: Any, kind: str, **having: object) -> Any:
    """Return the first node of a kind whose fields have these values."""
    return next(part for part in parts(data) if part.get("kind") == kind and all(part[name] == value for name, value in having.items()))


def every(data: Any, kind: str) -> list[Any]:
    """Return all nodes of a kind."""
    return [part for part in parts(data) if part.get("kind") == kind]


def put(kind: str, field: str, value: object, **having: object) -> Callable[[Any], None]:
    """Return what sets a field of the first node of a kind."""
    return lambda data: first(data, kind, **having).__setitem__(field, value)


CASES: dict[str, tuple[Callable[[Any], None], str]] = {
    "an offset outside a tile": (put("Load", "row", {"kind": "Const", "value": -1}, param="x"), "T301"),
    "an offset outside a tile upwards": (put("Load", "col", {"kind": "Const", "value": 1}, param="x"), "T301"),
    "an offset of a loop variable in a tile": (put("Load", "row", {"kind": "ParamScalar", "name": "n",
                                                                   "dtype": {"kind": "DType", "value": "I64"}}, param="x"), "T207"),
    "a parameter that is none": (put("Load", "param", "z"), "the parameter 'z'"),
    "a store to an In parameter": (put("Store", "param", "x"), "K106"),
    "a result of another type": (lambda d: first(d, "Compute")["result"]["type"].update(cols=3), "a result"),
    "a use of another type": (lambda d: first(d, "Write")["value"]["type"].update(cols=9), "the value"),
    "a value that nothing makes": (lambda d: first(d, "Write")["value"].update(id=77), "the value"),
    "a value made twice": (lambda d: first(d, "Read")["result"].update(id=first(d, "Load")["result"]["id"]), "a result"),
    "a buffer that nothing makes": (lambda d: first(d, "Read")["buffer"].update(id=7), "the buffer"),
    "an unknown op": (put("Compute", "op", "system"), "the op 'system'"),
    "an op without operands": (put("Compute", "operands", []), "T101"),
    "an op with attributes of another": (put("Compute", "attrs", [["axis", 1]], op="add"), "T101"),
    "an op made unsafe by a pass's attribute": (lambda d: first(d, "Compute", op="concat").update(attrs=[["axis", 7]]), "T207"),
    "indices said to lie inside": (lambda d: first(d, "Compute", op="gather")["operands"].__setitem__(
        1, {**first(d, "Load")["result"]}), "said to lie inside"),
    "columns said to lie inside the rows": (lambda d: first(d, "Compute", op="gather").update(attrs=[["axis", 0], ["inside", True]]),
                                            "said to lie inside"),
    "a fill that its dtype does not hold": (put("Load", "fill", 10 ** 18), "fill"),
    "a fill of another kind": (put("Load", "fill", 0), "Load"),
    "a piece that passes copy": (put("Load", "copy", True), "Load"),
    "a guard that passes number": (put("Load", "guard", 0), "Load"),
    "an arena": (put("Kernel", "arena", [{"kind": "Slot", "name": "a", "key": 0, "slot_kind": 0}]), "Slot"),
    "the extent of a parameter that is none": (put("For", "stop", {"kind": "ParamExtent", "name": "z", "dim": 0}), "the extent"),
    "a third extent": (put("For", "stop", {"kind": "ParamExtent", "name": "x", "dim": 2}), "the extent"),
    "a scalar parameter of another dtype": (put("ParamScalar", "dtype", {"kind": "DType", "value": "I8"}), "the scalar"),
    "a loop that steps back": (put("For", "step", {"kind": "Const", "value": -1}), "T209"),
    "a variable of no loop": (put("For", "start", {"kind": "Var", "name": "i", "id": 9}), "W103"),
    "a kernel that stores nothing": (lambda d: [k["body"].pop() for k in every(d, "Kernel")], "K102"),
    "a dtype that is stored alone": (put("ScalarParamDecl", "dtype", {"kind": "DType", "value": "FP8E4M3"}), "K101"),
    "a tile of no rows": (lambda d: first(d, "TileParam")["type"].update(rows=0), "K101"),
    "a tile too large": (lambda d: first(d, "TileParam")["type"].update(rows=1 << 40), "K101"),
    "two parameters of one name": (lambda d: first(d, "TileParam", name="x").update(name="y"), "two parameters"),
    "a kernel's name that ends a comment": (put("Kernel", "name", "*/ f(); /*"), "a kernel called"),
    "a parameter's name with a line": (put("TileParam", "name", "a\nb"), "a parameter called"),
    "a value's name of C": (lambda d: first(d, "Compute")["result"].update(name="a;b"), "a value called"),
    "a workload's name": (lambda d: d.update(name="a*/"), "a workload called"),
    "a tensor's name of two lines": (put("TensorRef", "name", "a\n#error"), "a tensor's name"),
    "text that is no UTF-8": (put("TensorRef", "name", "\ud800"), "UTF-8"),
    "a symbol called as nothing is": (put("SymbolRef", "name", "n = 0;"), "a symbol called"),
    "too few arguments": (put("Task", "args", []), "the arguments"),
    "arguments in another order": (lambda d: first(d, "Task")["args"].reverse(), "the arguments"),
    "a view of another shape": (lambda d: first(d, "ViewArg", param="x")["view"].update(steps=[]), "T201"),
    "a step of no dimension": (put("Pick", "dim", 2), "a view with 2 dimensions"),
    "a negative dimension": (put("Pick", "dim", -1), "a view with 2 dimensions"),
    "an index outside": (lambda d: first(d, "Task", after=[0])["args"][1]["view"]["steps"][0].update(
        index={"kind": "Const", "value": 4}), "T301"),
    "an index from the end": (lambda d: first(d, "Task", after=[0])["args"][1]["view"]["steps"][0].update(
        index={"kind": "Const", "value": -1}), "Pick"),
    "a slice beyond the end": (lambda d: first(d, "Task", after=[0])["args"][2]["view"]["steps"][0].update(
        stop={"kind": "Const", "value": 9}), "T301"),
    "strides of no dimension": (lambda d: [t["layout"].update(strides=[]) for t in every(d, "TensorRef")], "a stride each"),
    "a tensor of a negative extent": (lambda d: [t.update(shape=[-1, 8]) for t in every(d, "TensorRef")], "extents >= 0"),
    "two tensors of one id": (lambda d: first(d, "Task", after=[0])["args"][1]["view"]["tensor"].update(name="Z"), "two tensors"),
    "a task's wait for none": (lambda d: first(d, "Task", after=[0]).update(after=[5]), "a wait for the task 5"),
    "two tasks of one handle": (lambda d: first(d, "Task", after=[0]).update(handle=0), "two tasks"),
    "a slot that there is not": (put("SetSlot", "slot", 64), "slot 64"),
    "a loop's step of nothing": (put("Loop", "step", {"kind": "Const", "value": 0}), "the step 0"),
    "a variable bound twice": (lambda d: [loop["var"].update(id=0) for loop in every(d, "Loop")], "of two loops"),
    "a variable out of scope": (lambda d: first(d, "Task")["index"][0].update(id=55), "the variable"),
    "an element of too few indices": (lambda d: first(d, "Element").update(index=[]), "indices"),
    "a scalar of schedules": (lambda d: first(d, "Task")["index"].__setitem__(0, {"kind": "TaskIndex"}), "the scalar"),
    "a negation of two": (put("Binary", "op", {"kind": "Op", "value": "NEG"}), "of two scalars"),
    "a number of 65 bits": (put("Const", "value", 1 << 65), "66 bits"),
    "a number of 64 bits that is no i64": (put("SetSlot", "value", {"kind": "Const", "value": 1 << 63}), "the number"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES)
def test_what_no_trace_gives_is_refused(case: str) -> None:
    change, found = CASES[case]
    data = json.loads(example().to_json())
    change(data)
    with pytest.raises(PtoError) as caught:
        Workload.from_json(json.dumps(data))
    assert caught.value.code == "W113" and found in str(caught.value)


def test_what_is_changed_is_right_before() -> None:
    assert Workload.from_json(example().to_json()) == example()


def test_a_view_of_unsorted_picks_is_read_back() -> None:
    @kernel
    def copy(x: In[Tile[8, 4, F32]], y: InOut[Tile[8, 4, F32]], times: Constexpr[int]) -> None:
        y[:] = x * times

    @workload
    def turned() -> None:
        copy(x=X.T, y=Y.reshape(8, 4), times=3)
    assert Workload.from_json(turned().to_json()) == turned()


@pytest.mark.parametrize("text", ["[" * 100000, '{"kind":"Block","items":[' * 5000, "9" * 5000, "NaN", '{"kind":"set","value":[]}'])
def test_text_that_is_hard_to_read_is_refused(text: str) -> None:
    with pytest.raises(PtoError) as caught:
        Workload.from_json(text)
    assert caught.value.code == "W113"


def test_an_expression_nested_deep_is_refused() -> None:
    data = json.loads(example().to_json())
    negated = '{"kind":"Unary","op":{"kind":"Op","value":"NEG"},"value":'
    deep = negated * 3000 + '{"kind":"Const","value":1}' + "}" * 3000
    text = json.dumps(data).replace(json.dumps(first(data, "SetSlot")["value"]), deep)
    with pytest.raises(PtoError) as caught:
        Workload.from_json(text)
    assert "nested too deep" in str(caught.value)


# ---- bodies of C and C++ ----

@kernel(c_src="y[0] = x[0];")
def native(x: In[Tile[1, 8, F32]], y: InOut[Tile[1, 8, F32]]) -> None:
    pto.store(y, x)


@workload
def with_body() -> None:
    native(X[0], Y[0])


def test_a_body_in_c_is_refused_unless_it_is_asked_for() -> None:
    text = with_body().to_json()
    with pytest.raises(PtoError) as caught:
        Workload.from_json(text)
    assert caught.value.code == "K107" and "bodies=True" in str(caught.value)
    assert Workload.from_json(text, bodies=True) == with_body()


@pytest.mark.parametrize("field, value, found", [
    ("text", "} int main(void) {", "no body of a function"), ("text", " ", "it is empty"), ("scratch_bytes", -1, "-1 bytes"),
    ("constants", [["y", 1]], "constant `y`"), ("constants", [["a;", 1]], "a constant called"),
])
def test_a_body_keeps_the_rules_of_bodies(field: str, value: object, found: str) -> None:
    data = json.loads(with_body().to_json())
    first(data, "OwnBody")[field] = value
    with pytest.raises(PtoError) as caught:
        Workload.from_json(json.dumps(data), bodies=True)
    assert found in str(caught.value)
