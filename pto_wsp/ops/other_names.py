"""Advise what to write in a kernel for names of NumPy, PyTorch and JAX that a user tries on `pto`, on a tile or in NumPy.

>>> instead_of("sum")
'pto.rowsum(x) gives [R, 1], pto.colsum(x) gives [1, C]'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pto_wsp.ops.table import FUNCTIONS, TABLE


def _reduced(name: str) -> str:
    return f"pto.row{name}(x) gives [R, 1], pto.col{name}(x) gives [1, C]"


_RUNNING = "kernels have no running sums or products; a sum along the columns is x @ pto.triu(pto.ones((C, C), dtype)), with C columns"
INSTEAD: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(("sum", "nansum"), _reduced("sum")), **dict.fromkeys(("mean", "average"), _reduced("mean")),
    **dict.fromkeys(("amax",), _reduced("max")), **dict.fromkeys(("amin",), _reduced("min")),
    **dict.fromkeys(("prod", "product"), "pto.rowprod(x) gives the product of each row, [R, 1]"),
    "argmax": "pto.rowargmax(x) gives the column of each row's largest element, [R, 1]",
    "argmin": "pto.rowargmin(x) gives the column of each row's smallest element, [R, 1]",
    **dict.fromkeys(("any",), "pto.rowmax(pto.cast(mask, DType.I32)) is 1 where any element of a row holds"),
    "all": "pto.rowmin(pto.cast(mask, DType.I32)) is 1 where all elements of a row hold",
    "softmax": "write it: e = pto.exp(x - pto.rowmax(x)); e / pto.rowsum(e)",
    "log_softmax": "write it: d = x - pto.rowmax(x); d - pto.log(pto.rowsum(pto.exp(d)))",
    "logsumexp": "write it: m = pto.rowmax(x); m + pto.log(pto.rowsum(pto.exp(x - m)))",
    **dict.fromkeys(("cumsum", "cumprod", "cumulative_sum", "cummax", "scan"), _RUNNING),
    **dict.fromkeys(("var", "std"), "write it: d = x - pto.rowmean(x); pto.rowmean(d * d), and pto.sqrt of it"),
    **dict.fromkeys(("norm", "rms_norm", "rmsnorm", "layer_norm", "layernorm"),
                    "write it: x * pto.rsqrt(pto.rowmean(x * x) + eps), for a layer norm of x - pto.rowmean(x)"),
    **dict.fromkeys(("clip", "clamp"), "pto.minimum(pto.maximum(x, low), high)"),
    **dict.fromkeys(("square",), "x * x"),
    **dict.fromkeys(("exp2", "power"), "pto.pow(x, y)"), "expm1": "pto.exp(x) - 1", "log1p": "pto.log(x + 1)",
    **dict.fromkeys(("log2", "log10"), "pto.log(x) * (1 / math.log(2)), or of 10"),
    **dict.fromkeys(("reciprocal", "inv"), "pto.recip(x)"),
    **dict.fromkeys(("negative",), "-x"), **dict.fromkeys(("divide", "true_divide"), "pto.div(x, y)"),
    **dict.fromkeys(("subtract",), "pto.sub(x, y)"), **dict.fromkeys(("multiply",), "pto.mul(x, y)"),
    **dict.fromkeys(("remainder", "fmod"), "pto.mod(x, y)"),
    **dict.fromkeys(("logical_and", "logical_or", "logical_not", "logical_xor"), "join masks with &, |, ~ and ^"),
    **dict.fromkeys(("isnan", "isfinite", "isinf"), "x != x is the mask of NaN; pto.abs(x) > limit finds large numbers"),
    **dict.fromkeys(("concatenate", "cat", "hstack", "vstack", "stack", "row_stack", "column_stack"), "pto.concat"),
    **dict.fromkeys(("dot", "mm", "bmm", "einsum", "inner", "tensordot", "vdot", "matvec"), "pto.matmul(a, b), or a @ b"),
    **dict.fromkeys(("astype", "to", "type", "float", "half", "double", "long", "bfloat16", "asarray", "array"),
                    "pto.cast(x, DType.F32) converts"),
    **dict.fromkeys(("zeros_like", "ones_like", "full_like", "empty_like"), "pto.zeros(x.shape, x.dtype), pto.ones and pto.full"),
    **dict.fromkeys(("empty",), "pto.alloc(shape, dtype) is state that the kernel writes"),
    **dict.fromkeys(("arange", "linspace", "indices"), "pto.iota(shape, dtype, axis) numbers rows or columns"),
    **dict.fromkeys(("broadcast_to", "tile", "repeat", "broadcast"), "pto.expand(x, shape)"),
    **dict.fromkeys(("t", "swapaxes", "permute", "moveaxis"), "x.T, or pto.transpose(x)"),
    **dict.fromkeys(("view", "flatten", "ravel", "squeeze", "unsqueeze", "expand_dims"),
                    "pto.reshape(x, (rows, cols)): a tile has two dimensions"),
    **dict.fromkeys(("flip", "roll"), "kernels have no such movement; pto.gather picks rows by number"),
    **dict.fromkeys(("take", "take_along_axis", "index_select"), "pto.gather picks rows by number"),
    **dict.fromkeys(("size", "ndim", "nbytes"), "x.shape is (rows, cols)"),
    **dict.fromkeys(("item", "tolist", "numpy", "cpu", "copy", "clone", "data"),
                    "a tile is known only at run time: pto.print(x) shows it, pto.store(out, x) keeps it"),
    **dict.fromkeys(("random", "rand", "randn"), "kernels have no random numbers: bind a Tensor of them"),
    **dict.fromkeys(("fori_loop", "for_range", "static_range"), "pto.range(n) in a `for`"),
    **dict.fromkeys(("cpu_sim_add_cycles", "add_cycles"), "a kernel says nothing of its cycles, and C text has none that the other "
                    "targets could read: `.task_graph(trace=TracePolicy.cycles(lambda t: ...))` of the schedule gives them"),
    **dict.fromkeys(("cond", "if_"), "with pto.when(c): ... with pto.otherwise(): ..."),
})


def instead_of(name: str) -> str | None:
    """Return what to write for a name of another library, None where nothing is known that it may mean."""
    found = INSTEAD.get(name)
    if found is not None:
        return found
    names = {*TABLE, *(alias for op in TABLE.values() for alias in op.aliases), *(function.__name__ for function in FUNCTIONS)}
    return f"pto.{name}(x)" if name in names else None


def instead_of_method(name: str) -> str | None:
    """Return what to write for an array method or a NumPy function, of which max and min reduce; None if it is unknown."""
    return instead_of({"max": "amax", "min": "amin"}.get(name, name))
