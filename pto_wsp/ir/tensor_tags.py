"""The tags of functions on whole tensors: see `ir/tags.py`. In JSON they begin with `tensor.`, because workloads have loops, too.

>>> loads(dumps(function)) == function
True
"""

from __future__ import annotations

import json

from pto_wsp.errors import DataFormatError
from pto_wsp.ir import flow, layout
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.codec import NodeCodec, check_types, too_deep
from pto_wsp.ir.tags import KERNEL_TAGS, Tags
from pto_wsp.source import here

TENSOR_TAGS = Tags({
    t.Array: "Array: id name shape dtype *contracts",
    t.Insert: "Insert: dim",
    t.Flip: "Flip: dim",
    t.Refold: "Refold: shape",
    t.TileCut: "TileCut: dim start size",
    t.ArrayView: "ArrayView: array *steps",
    t.Apply: "Apply: op operands results *attrs ?group ~span",
    t.Make: "Make: array fill ~span",
    t.Put: "Put: target value table add ?group ~span",
    t.Show: "Show: label value ?group ~span",
    t.ArrayParam: "ArrayParam: array written ?path ~span",
    t.ArrayConstant: "ArrayConstant: array data",
    t.Assumption: "Assumption: condition ~span",
    t.TensorFunction: "TensorFunction: name params body results *symbols *scalars *constants *assumptions ~span",
    flow.Loop: "Loop: var start stop step ordered body ?group=note.group ~span",
    flow.Branch: "Branch: condition body ?group=note.group ~span",
    flow.Choice: "Choice: branches otherwise",
    flow.Sequence: "Sequence: items",
}, {}, below=KERNEL_TAGS, prefix="tensor.", wrappers={flow.Do: (t.Apply, t.Make, t.Put, t.Show)}, note=t.BodyNote, level={
    flow.Leaf: t.Statement, flow.Note: t.BodyNote, flow.Channel: layout.TensorRef, flow.Event: layout.TensorRef,
    flow.Tensor: layout.TensorRef})

_CODEC = NodeCodec(TENSOR_TAGS)


def dumps(function: t.TensorFunction) -> str:
    """Return a function as one line of JSON, without spans; identical for equal functions."""
    return json.dumps(_CODEC.to_data(function), separators=(",", ":"), sort_keys=True, allow_nan=False)


def loads(text: str) -> t.TensorFunction:
    """Return the function that `dumps` wrote.

    Raises: W113 for text that is none of ours.
    """
    try:
        function = _CODEC.from_data(json.loads(text))
        check_types(function, TENSOR_TAGS)
    except RecursionError:
        raise too_deep() from None
    except (ValueError, TypeError) as problem:
        raise DataFormatError("this is not JSON", here(), found=f"{problem!s:.200}") from None
    if not isinstance(function, t.TensorFunction):
        raise DataFormatError("this JSON is no function on tensors", here(), found=type(function).__name__)
    return function
