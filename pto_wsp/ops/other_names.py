"""Advise what to write in a kernel for a name that `pto`, a tile or NumPy in a kernel does not have.

Words for an op stand in the op's entry (`synonyms`). What is no op, and is written with several, stands here.

>>> instead_of("hstack"), instead_of("expm1")
('did you mean pto.concat? tiles joined along columns (axis=1) or rows (axis=0): concat(a, b, c, axis=1)', 'pto.exp(x) - 1')
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pto_wsp.ops.spec import Elementwise
from pto_wsp.ops.table import ENTRIES, FORMULAS, FUNCTIONS, TABLE
from pto_wsp.wording import nearest

_RUNNING = "kernels have running sums: pto.cumsum(x, axis=1); products and extremes are a pto.range over pieces"
_NORM = "write it: x * pto.rsqrt(pto.rowmean(x * x) + eps), for a layer norm of x - pto.rowmean(x)"
INSTEAD: Mapping[str, str] = MappingProxyType({
    "softplus": "write it: pto.maximum(x, 0) + pto.log(1 + pto.exp(-pto.abs(x)))",
    "mish": "write it: x * pto.tanh(softplus), with softplus = pto.maximum(x, 0) + pto.log(1 + pto.exp(-pto.abs(x)))",
    "elu": "write it: pto.where(x > 0, x, pto.exp(x) - 1)", "leaky_relu": "write it: pto.where(x > 0, x, slope * x)",
    "relu6": "pto.clamp(x, 0, 6)", "hardtanh": "pto.clamp(x, -1, 1)",
    **dict.fromkeys(("cumprod", "cummax", "cummin", "logcumsumexp"), _RUNNING),
    **dict.fromkeys(("norm", "rms_norm", "rmsnorm", "layer_norm", "layernorm"), _NORM),
    "median": "pto.sort(x)[:, C // 2 : C // 2 + 1], of C columns", "expm1": "pto.exp(x) - 1", "log1p": "pto.log(x + 1)",
    "log10": "pto.log(x) * (1 / math.log(10))", "tan": "pto.sin(x) / pto.cos(x)", "sinh": "(pto.exp(x) - pto.exp(-x)) / 2",
    "cosh": "(pto.exp(x) + pto.exp(-x)) / 2", "trunc": "pto.where(x < 0, pto.ceil(x), pto.floor(x))",
    "lerp": "a + t * (b - a)", "addcmul": "a + value * b * c",
    **dict.fromkeys(("empty", "empty_like"), "pto.alloc(shape, dtype) is state that the kernel writes"),
    **dict.fromkeys(("flip", "flipud", "fliplr"), "a slice: x[:, ::-1] or x[::-1]"),
    **dict.fromkeys(("roll",), "slices joined: pto.concat(x[:, -n:], x[:, :-n])"),
    **dict.fromkeys(("chunk",), "pto.split(x, sections, axis)"),
    **dict.fromkeys(("size", "ndim", "nbytes", "numel", "dim"), "x.shape is (rows, cols)"),
    **dict.fromkeys(("t", "mH", "H"), "x.T"), "masked_fill": "pto.where(mask, value, x)",
    "nan_to_num": "pto.where(pto.isnan(x), 0, x)",
    "diff": "x[:, 1:] - x[:, :-1]", "outer": "a column times a row: x * y, of [R, 1] and [1, C]",
    **dict.fromkeys(("float", "int", "long", "half", "bfloat16", "double", "bool"), "x.astype(DType.F32) and the like"),
    **dict.fromkeys(("nonzero", "argwhere", "masked_select", "compress"),
                    "a tile has one shape: pto.where(mask, x, 0) keeps it, pto.rowsum(mask) counts"),
    **dict.fromkeys(("tolist", "numpy", "cpu", "copy", "clone", "data"),
                    "a tile is known only at run time: pto.print(x) shows it, pto.store(out, x) keeps it"),
    **dict.fromkeys(("randn", "normal"), "write it, of two uniform tiles: pto.sqrt(-2 * pto.log(1 - u)) * pto.cos(2 * math.pi * v), "
                    "with u and v of pto.random(shape, seed, counter)"),
    "dropout": "pto.where(pto.random(x.shape, seed, counter) < keep, x / keep, 0)",
    **dict.fromkeys(("fori_loop", "for_range", "static_range"), "pto.range(n) in a `for`"),
    **dict.fromkeys(("cpu_sim_add_cycles", "add_cycles"), "a kernel says nothing of its cycles, and C text has none that the other "
                    "targets could read: `.task_graph(trace=TracePolicy.cycles(lambda t: ...))` of the schedule gives them"),
    **dict.fromkeys(("cond", "if_"), "with pto.when(c): ... with pto.otherwise(): ..."),
})
_DOCS: Mapping[str, str] = MappingProxyType({
    **{function.__name__: function.__doc__ or "" for function in FUNCTIONS}, **{op.name: op.doc for op in ENTRIES}})
SYNONYMS: Mapping[str, str] = MappingProxyType({
    **{word: op.name for op in ENTRIES for word in op.synonyms},
    **{word: formula.name for formula in FORMULAS for word in formula.synonyms}})
_ALIASES: Mapping[str, str] = MappingProxyType({
    **{alias: op.name for op in ENTRIES for alias in op.aliases},
    **{alias: formula.name for formula in FORMULAS for alias in formula.aliases}})


def instead_of(name: str) -> str | None:
    """Return what to write for a name of another library, None where nothing is known that it may mean."""
    if name in INSTEAD:
        return INSTEAD[name]
    if name in SYNONYMS:
        return _meant(SYNONYMS[name])
    op = TABLE.get(name)
    if isinstance(op, Elementwise) and op.mask_first:
        return f"pto.{name}(mask, x, y)"
    return f"pto.{name}(x)" if name in TABLE or name in _DOCS or name in _ALIASES else None


def similar_to(name: str, known: Mapping[str, object]) -> str | None:
    """Return the advice for a name with nearly the spelling of a name in `known`, or of its synonym; None if no name is near."""
    near = nearest(name, (*known, *SYNONYMS))
    return None if near is None else f"did you mean pto.{near}?" if near in known else _meant(SYNONYMS[near])


def _meant(op: str) -> str:
    line = _DOCS[op].strip().split("\n", 1)[0].removeprefix("Return ").rstrip(".")
    return f"did you mean pto.{op}? {line}"
