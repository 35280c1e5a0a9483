"""What an entry of the op table says: one frozen value of a few kinds. The entry is also the function that traces the op.

Tracing, the NumPy meaning, C, the NPU and costs all derive from these fields.

>>> str(Elementwise(name="exp", doc="e to the x.", params=("x",), ref=np.exp, c=Function("pto_exp_{t}")).signature)
'(x)'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import TypeAlias

import numpy as np

from pto_wsp.ops import rules
from pto_wsp.ops.dtypes import INTEGERS, MATMUL_RESULT, Array
from pto_wsp.ops.entry import Finish, Function, Identity, OpEntry, Spelling, dtype_attr, positional, shape_attr
from pto_wsp.ops.rounding import MODES
from pto_wsp.ops.tracing import Attr, Attrs
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of an op, chosen by the value of its option."""

    value: str
    ref: Callable[..., Array]
    c: Spelling
    numpy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise(OpEntry):
    """One element of the result from one of each operand, which broadcast. `mask_first`: operand 0 is BOOL, the others agree.

    `ref`: NumPy arrays that broadcast -> array. C: `c` of the operands' elements, {t} the dtype of the last operand.
    `option` names a parameter that chooses one of `variants`, the first unless given. `ulp`: how far f32 in C may be from exact.
    """

    params: tuple[str, ...]
    ref: Callable[..., Array]
    c: Spelling
    to_mask: bool = False
    mask_first: bool = False
    rounds: bool = True      # the result for halves may be none, so it is rounded
    ulp: float | None = None
    option: str = ""
    variants: tuple[Variant, ...] = ()

    @property
    def signature(self) -> Signature:
        """One parameter an operand, and the option."""
        plain = positional(self.params)
        if not self.option:
            return plain
        chosen = Parameter(self.option, Parameter.POSITIONAL_OR_KEYWORD, default=self.variants[0].value)
        return plain.replace(parameters=[*plain.parameters.values(), chosen])

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tile operands, and the option as an attribute."""
        operands = tuple(value for name, value in bound.items() if name != self.option)
        if not self.option:
            return operands, ()
        values = tuple(variant.value for variant in self.variants)
        return operands, ((self.option, rules.as_choice(self.name, self.option, bound[self.option], values)),)

    def form(self, attrs: Attrs) -> Variant:
        """Return what the attributes choose."""
        wanted = next((value for name, value in attrs if name == self.option), None)
        return next((variant for variant in self.variants if variant.value == wanted), Variant("", self.ref, self.c, self.numpy))

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return BOOL for a leading mask, else the dtype of the first tile that shares it."""
        if self.mask_first:
            return DType.BOOL if position == 0 else next((t.dtype for t in types[1:] if t is not None), None)
        return next((t.dtype for t in types if t is not None), None)

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result: the operands' shape broadcast."""
        if self.mask_first:
            rules.check_dtype(self.name, types[0], (DType.BOOL,), "give a comparison, e.g. x > 0")
        shared = types[1:] if self.mask_first else types
        rules.check_same_dtype(self.name, shared)
        rules.check_dtype(self.name, shared[0], self.dtypes, self.hint)
        rows, cols = rules.broadcast(self.name, types)
        return TileType(rows, cols, DType.BOOL if self.to_mask else shared[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return what NumPy makes of the operands, halves widened to f32; `evaluate` rounds the result to the half."""
        return self.form(attrs).ref(*map(widened, operands))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReduce(OpEntry):
    """[R, C] -> [R, 1] in the tile's dtype: `combine` folds a row's elements from `identity`, then `finish`. Integers wrap."""

    ref: Callable[[Array, int], Array]
    identity: Identity
    combine: Spelling
    finish: Finish = Finish.NONE

    @property
    def signature(self) -> Signature:
        """The tile."""
        return positional(("x",))

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [R, 1]."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return TileType(types[0].rows, 1, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return what NumPy makes of the rows; halves add up in f32."""
        return self.ref(widened(operands[0]), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColReduce(OpEntry):
    """[R, C] -> [1, C] in the tile's dtype: `combine` folds a column's elements from `identity`, then `finish`."""

    ref: Callable[[Array, int], Array]
    identity: Identity
    combine: Spelling
    finish: Finish = Finish.NONE

    @property
    def signature(self) -> Signature:
        """The tile."""
        return positional(("x",))

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [1, C]."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return TileType(1, types[0].cols, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return what NumPy makes of the columns; halves add up in f32."""
        return self.ref(widened(operands[0]), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul(OpEntry):
    """[M, K] @ [K, N] -> [M, N], plus an optional third operand [M, N], in the dtype of MATMUL_RESULT.

    Attributes that a pass sets: `transpose_a` and `transpose_b`, where True, say that an operand is given as [K, M] or [N, K];
    `form` says how the product runs, which changes no result.
    """

    ref: Callable[..., Array]

    @property
    def signature(self) -> Signature:
        """a, b, acc=None."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter("a", kind), Parameter("b", kind), Parameter("acc", kind, default=None)])

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return two operands, or three with acc."""
        return tuple(value for name, value in bound.items() if name != "acc" or value is not None), ()

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return None: a number is no matrix."""
        return None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [M, N] in the dtype of the accumulator."""
        lhs, rhs = (TileType(t.cols, t.rows, t.dtype) if _transposed(attrs, at) else t for at, t in enumerate(types[:2]))
        rules.check_same_dtype(self.name, (lhs, rhs))
        rules.check_dtype(self.name, lhs, self.dtypes, self.hint)
        rules.check_inner(self.name, lhs, rhs)
        result = TileType(lhs.rows, rhs.cols, MATMUL_RESULT[lhs.dtype])
        if len(types) == 3:
            rules.check_accumulator(self.name, types[2], result)
        return result

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return acc + a @ b as NumPy computes it."""
        return self.ref(*(x.T if at < 2 and _transposed(attrs, at) else x for at, x in enumerate(operands)))


def _transposed(attrs: Attrs, operand: int) -> bool:
    return (("transpose_a", "transpose_b")[operand], True) in attrs


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(OpEntry):
    """Every element in the dtype of the attribute `dtype`, by the attributes `mode` and `saturate`. C: `c` with {from} and {t}.

    `numpy` is of what NumPy's own conversion does; the others are of a cast to a mask, of floats to integers, of integers to others with
    saturation, and of what NumPy would round in another way.
    """

    ref: Callable[[Array, DType, str | None, bool | None], Array]
    c: Function
    numpy_to_mask: str
    numpy_to_integer: str
    numpy_between: str
    numpy_to_float: str

    @property
    def signature(self) -> Signature:
        """x, dtype, mode=None, saturate=None."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter("x", kind), Parameter("dtype", kind), Parameter("mode", kind, default=None),
                          Parameter("saturate", kind, default=None)])

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tile; dtype, and mode and saturate where given, are attributes."""
        attrs: list[tuple[str, Attr]] = [("dtype", rules.as_dtype(self.name, bound["dtype"], self.dtypes))]
        if bound["mode"] is not None:
            attrs.append(("mode", rules.as_choice(self.name, "mode", bound["mode"], tuple(MODES))))
        if bound["saturate"] is not None:
            attrs.append(("saturate", rules.as_choice(self.name, "saturate", bound["saturate"], (True, False))))
        return (bound["x"],), tuple(attrs)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return None: a number has no dtype to convert from."""
        return None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the shape in the new dtype."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        rules.check_conversion(self.name, types[0], dtype_attr(attrs), *self.rules_of(attrs))
        return types[0].with_dtype(dtype_attr(attrs))

    def rules_of(self, attrs: Attrs) -> tuple[str | None, bool | None]:
        """Return the attributes mode and saturate, None where not given."""
        mode = next((str(value) for name, value in attrs if name == "mode"), None)
        return mode, next((bool(value) for name, value in attrs if name == "saturate"), None)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the converted array."""
        return self.ref(operands[0], result.dtype, *self.rules_of(attrs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand(OpEntry):
    """One operand of shape [R, C], [R, 1], [1, C] or [1, 1] (or a number) to the shape of the attribute `shape`."""

    keeps_range: tuple[DType, ...] = INTEGERS

    @property
    def signature(self) -> Signature:
        """x, shape."""
        return positional(("x", "shape"))

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tile, and the shape as an attribute."""
        return (bound["x"],), (("shape", rules.as_shape(self.name, bound["shape"])),)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return the attribute `dtype`, which `full` gives."""
        return next((value for name, value in attrs if name == "dtype" and isinstance(value, DType)), None)

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the shape asked for."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        rows, cols = shape_attr(attrs)
        rules.check_expands(self.name, types[0], (rows, cols))
        return TileType(rows, cols, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the operand broadcast."""
        return np.broadcast_to(operands[0], result.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Iota(OpEntry):
    """No operand: each element is its row (attribute `axis` 0) or its column (1)."""

    @property
    def signature(self) -> Signature:
        """shape, dtype=I32, axis=1."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter("shape", kind), Parameter("dtype", kind, default=DType.I32),
                          Parameter("axis", kind, default=1)])

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return no operand; shape, dtype and axis are attributes."""
        return (), (("shape", rules.as_shape(self.name, bound["shape"])),
                    ("dtype", rules.as_dtype(self.name, bound["dtype"], self.dtypes)),
                    ("axis", rules.as_axis(self.name, bound["axis"])))

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the shape and dtype asked for."""
        rows, cols = shape_attr(attrs)
        return TileType(rows, cols, dtype_attr(attrs))

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the row or column numbers; integers wrap."""
        axis = next(value for name, value in attrs if name == "axis")
        numbers: Array = np.indices(result.shape)[1 if axis == 1 else 0]
        return numbers.astype(result.dtype.np)


Op: TypeAlias = Elementwise | RowReduce | ColReduce | Matmul | Movement | Cast | Expand | Iota | TileFunction


def evaluate(op: Op, operands: Sequence[Array], result: TileType, attrs: Attrs = ()) -> Array:
    """Return what `op` means for NumPy operands, in the type of the result; no NumPy warning leaves it."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(op.evaluate(operands, result, attrs), dtype=result.dtype.np)


def widened(x: Array) -> Array:
    """Return halves as f32, anything else as it is."""
    is_half = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"     # bf16 is no kind that NumPy has a letter for
    return x.astype(np.float32) if is_half else x
