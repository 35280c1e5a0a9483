"""Functions on tensors as JSON, and their digests: equal wherever and however often the function is built, without spans."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import pytest

from pto_wsp.errors import DataFormatError
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.digest import tensor_digest
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Binary, Const, Element, Op, SymbolRef, Var, sub
from pto_wsp.ir.tensor_tags import TENSOR_TAGS, dumps, loads
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.source import Span


def made(first_id: int = 0, name: str = "x", line: int = 1) -> t.TensorFunction:
    """A function with every kind of statement and step."""
    n, limit, i = SymbolRef("n", first_id + 7), SymbolRef("limit", first_id + 9, DType.F32), Var("i", first_id + 3)
    x = t.Array(first_id, name, (n, Const(4)), DType.F32)
    starts = t.Array(first_id + 1, "starts", (Const(3),), DType.I32, (Contract.MONOTONE,))
    table = t.Array(first_id + 2, "table", (Const(2),), DType.I64)
    out, y = t.Array(first_id + 5, "out", (n, Const(4)), DType.F32), t.Array(first_id + 6, "y", (Const(4), Const(1)), DType.F32)
    row = t.ArrayView(x, (Pick(0, Element(starts.ref, (i,))), t.Insert(0), Permute((1, 0)), t.Flip(0), t.Refold((Const(2), Const(2)))))
    span = Span("f.py", line, 0)
    inside = flow.Sequence((
        flow.Do(t.Apply("rowsum", (t.ArrayView(x, (t.TileCut(0, i, 16),)),), (y,), (("axis", 1), ("to", DType.F16)), "g", span)),
        flow.Do(t.Put(t.ArrayView(out, (Cut(0, Const(0), Const(2)),)), row, t.ArrayView(table), True, "g", span)),
        flow.Choice((flow.Branch(Binary(Op.GT, limit, Const(0.5)), flow.Sequence((flow.Do(t.Show("y", t.ArrayView(y), "g", span)),)),
                                 t.BodyNote("g"), span),), flow.Sequence())))
    body = flow.Sequence((flow.Do(t.Make(out, None, span)), flow.Loop(i, Const(0), sub(n, Const(1)), Const(1), False, inside,
                                                                     t.BodyNote("g"), None, span)))
    return t.TensorFunction("f", (t.ArrayParam(x, path="w.x", span=span), t.ArrayParam(starts)), body, (t.ArrayView(out),), (n,), (limit,),
                            (t.ArrayConstant(table, b"\x00\xff" * 8),), (t.Assumption(Binary(Op.LE, n, Const(64)), span),), span)


def test_json_gives_an_equal_function_back() -> None:
    function = made()
    assert loads(dumps(function)) == function
    assert '"f.py"' not in dumps(function)


def test_the_digest_knows_neither_spans_nor_numbers_of_symbols_arrays_and_loops() -> None:
    assert tensor_digest(made()) == tensor_digest(made(40, line=9))
    assert tensor_digest(made()) != tensor_digest(made(name="z"))


def test_the_digest_knows_constants_and_attributes() -> None:
    function = made()
    other = replace(function, constants=(replace(function.constants[0], data=b"\x01" * 16),))
    assert tensor_digest(other) != tensor_digest(function)
    assert tensor_digest(replace(function, assumptions=())) != tensor_digest(function)


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "tensor.Array"}', '{"kind": "bytes", "value": "zz"}',
                                  '{"kind": "tensor.TensorFunction", "name": 3, "params": [], "body": [], "results": []}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(DataFormatError):
        loads(text)


def test_the_table_has_each_class_with_every_field() -> None:
    own = [kind for kind in vars(t).values() if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == t.__name__]
    assert [kind for kind in own if kind not in TENSOR_TAGS.nodes] == [t.BodyNote]
    for kind in own:
        if kind is not t.BodyNote:
            spelled = {(field.attribute, field.counts) for field in TENSOR_TAGS.nodes[kind].fields}
            assert spelled == {(f.name, f.compare) for f in fields(kind)}, kind
