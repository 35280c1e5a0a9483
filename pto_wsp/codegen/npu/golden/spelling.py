"""How each op of the table is written in a golden.py: one line of NumPy.

{0}, {1}, {2} stand for the operands, {all} for all of them, {shape} for that of the result, {dtype} for its dtype, and the op's
attributes stand under their names. What begins with an underscore is a function of templates/ascend_npu/golden_functions.py.

>>> NUMPY["rowsum"]
'_sum({0}, 1)'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.expr.kernel import Attr
from pto_wsp.ops.dtypes import HALVES, STORAGE
from pto_wsp.ops.entries.movement import picked
from pto_wsp.ops.rounding import FORMATS, default_mode, is_real
from pto_wsp.ops.spec import ColReduce, Elementwise, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.ops.tracing import Attrs
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType

NUMPY: Mapping[str, str] = {
    # elements
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "floordiv": "{0} // {1}", "mod": "{0} % {1}",
    "maximum": "np.maximum({0}, {1})", "minimum": "np.minimum({0}, {1})",
    "and_": "{0} & {1}", "or_": "{0} | {1}", "xor": "{0} ^ {1}", "not_": "~{0}", "shl": "_shl({0}, {1})", "shr": "_shr({0}, {1})",
    "neg": "-{0}", "abs": "np.abs({0})", "sign": "np.sign({0})", "relu": "np.maximum({0}, 0)",
    "floor": "np.floor({0})", "ceil": "np.ceil({0})", "round": "np.rint({0})",
    # functions
    "pow": "{0} ** {1}", "exp": "np.exp({0})", "log": "np.log({0})", "sqrt": "np.sqrt({0})", "rsqrt": "1 / np.sqrt({0})",
    "recip": "1 / {0}", "sin": "np.sin({0})", "cos": "np.cos({0})", "tanh": "np.tanh({0})", "sigmoid": "1 / (1 + np.exp(-{0}))",
    "silu": "{0} / (1 + np.exp(-{0}))", "erf": "_erf({0})", "gelu": "_gelu({0})", "gelu:tanh": "_gelu_tanh({0})",
    # comparisons
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "where": "np.where({0}, {1}, {2})",
    # reductions and products
    "rowsum": "_sum({0}, 1)", "rowmean": "_mean({0}, 1)", "rowprod": "_prod({0}, 1)",
    "rowmax": "{0}.max(axis=1, keepdims=True)", "rowmin": "{0}.min(axis=1, keepdims=True)",
    "colsum": "_sum({0}, 0)", "colmean": "_mean({0}, 0)",
    "colmax": "{0}.max(axis=0, keepdims=True)", "colmin": "{0}.min(axis=0, keepdims=True)",
    "matmul": "_matmul({all})",
    # places
    "transpose": "{0}.T", "reshape": "{0}.reshape({shape})", "slice": "{0}[{picked}]", "slice_even": "{0}[:, 0::2]",
    "slice_odd": "{0}[:, 1::2]", "concat": "np.concatenate(({all},), axis={axis})",
    "interleave": "np.stack(({0}, {1}), axis=2).reshape({shape})", "pad": "_pad({0}, {1}, {at}, {shape})",
    "expand": "np.broadcast_to({0}, {shape}).astype({dtype})", "iota": "_iota({shape}, {axis}, {dtype})",
    # order and indices
    "argsort": "_order({0}, {descending})", "topk": "_order({0}, {descending})[:, :{k}]",
    "rowargmax": "_first(np.argmax, {0})", "rowargmin": "_first(np.argmin, {0})",
    "gather": "_take({0}, {1}, {axis})", "scatter": "_put({0}, {1}, {2}, {axis})", "scatter_add": "_put({0}, {1}, {2}, {axis}, add=True)",
    # conversion
    "cast": "{0}.astype({dtype})", "cast:mask": "{0} != 0", "cast:integer": "_to_integer({0}, {dtype}, {mode}, {saturate})",
    "cast:between": "_between({0}, {dtype})", "cast:float": "_to_float({0}, {dtype}, {format}, {mode}, {saturate})",
}


def spell_op(op: str, operands: Sequence[str], types: Sequence[TileType], result: TileType, attrs: Attrs) -> str:
    """Return the NumPy expression of an op on operands that are spelled as names or calls."""
    entry = find(op)
    widens = isinstance(entry, Elementwise | RowReduce | ColReduce)
    if widens:
        operands = [f"{text}.astype(np.float32)" if kind.dtype in HALVES else text for text, kind in zip(operands, types, strict=True)]
    names: dict[str, str] = {name: _spell_attr(value) for name, value in attrs}
    names |= {"shape": str(result.shape), "dtype": spell_dtype(result.dtype), "all": ", ".join(operands)}
    if op == "slice":
        names["picked"] = ", ".join(_spell_slice(*axis) for axis in picked(attrs))
    if op == "cast":
        names |= {"mode": repr(_attr(attrs, "mode") or default_mode(result.dtype)), "format": _spell_format(result.dtype)}
        names["saturate"] = str(_attr(attrs, "saturate") is not False if result.dtype.is_integer else bool(_attr(attrs, "saturate")))
    if op in ("argsort", "topk"):
        names["descending"] = str(bool(_attr(attrs, "descending")))
    text = NUMPY[_form(op, types, result, attrs)].format(*operands, **names)
    return f"({text}).astype({spell_dtype(result.dtype)})" if widens and result.dtype in HALVES else text


def spell_dtype(dtype: DType) -> str:
    """Return a dtype as golden.py names it."""
    name = dtype.np.name
    if dtype is DType.BF16 or dtype in STORAGE:
        return f"ml_dtypes.{name}"
    return f"np.{name}" if dtype is not DType.BOOL else "np.bool_"


def _form(op: str, types: Sequence[TileType], result: TileType, attrs: Attrs) -> str:
    """Return the key in the table: the op's name, and which form of it."""
    if op == "gelu" and ("approximate", "tanh") in attrs:
        return "gelu:tanh"
    if op != "cast":
        return op
    source, target = types[0].dtype, result.dtype
    mode, saturate = _attr(attrs, "mode"), bool(_attr(attrs, "saturate"))
    if target is DType.BOOL:
        return "cast:mask"
    if target.is_integer:
        return "cast:integer" if is_real(source) else "cast:between" if saturate and source is not DType.BOOL else "cast"
    plain = not saturate and mode in (None, "rint")
    exact = is_real(source) and target.is_float and _digits(target) >= _digits(source)
    nearest = plain and (source is DType.F32 or target in (DType.F32, DType.F64) or source is DType.BOOL)
    widens = exact and not saturate and target.nbytes > source.nbytes
    return "cast" if widens or nearest else "cast:float"


def _digits(dtype: DType) -> int:
    return FORMATS[dtype].digits


def _spell_format(dtype: DType) -> str:
    if dtype not in FORMATS:
        return ""
    kind = FORMATS[dtype]
    return f"{kind.digits}, {kind.low}, {kind.largest!r}, {kind.infinite}"


def _spell_slice(first: int, count: int, step: int) -> str:
    stop = first + count * step
    text = f"{first}:{stop if stop >= 0 else ''}"
    return text if step == 1 else f"{text}:{step}"


def _spell_attr(value: Attr) -> str:
    return spell_dtype(value) if isinstance(value, DType) else repr(value)


def _attr(attrs: Attrs, wanted: str) -> Attr:
    return next((value for name, value in attrs if name == wanted), None)
