"""Define the kinds of op-table entries. An entry is a frozen value, and also the function that traces the op.

Tracing, the NumPy meaning, C, the NPU and costs are derived from its fields.

>>> str(Elementwise(name="exp", doc="e to the x.", params=("x",), ref=np.exp, c=CFunction("pto_exp_{t}")).signature)
'(x)'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import TypeAlias

import numpy as np

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import TileType
from pto_wsp.ops import typing
from pto_wsp.ops.entry import (
    Attr,
    Attrs,
    CFunction,
    Emitter,
    Finish,
    Identity,
    OpEntry,
    Spelling,
    dtype_attr,
    is_tile,
    positional,
    shape_attr,
)
from pto_wsp.ops.rounding import INTEGERS, MATMUL_RESULT, MODES, Array
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """A form of an op, selected by the value of the op's option."""

    value: str
    ref: Callable[..., Array]
    c: Spelling
    numpy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise(OpEntry):
    """An op that computes each element of the result from one element of each operand; operands broadcast.

    With `mask_first`, operand 0 is BOOL and the others share a dtype. `ref` maps NumPy arrays that broadcast to an array. `c` is the C
    for one element, where {t} is the dtype of the last operand. `option` names a parameter that selects one of `variants`, by default the
    first. `ulp` is the maximum error of f32 in C.
    """

    params: tuple[str, ...]
    ref: Callable[..., Array]
    c: Spelling
    to_mask: bool = False
    mask_first: bool = False
    rounds: bool = True      # the result may not be exact in a half, so it is rounded
    ulp: float | None = None
    option: str = ""
    variants: tuple[Variant, ...] = ()

    @property
    def signature(self) -> Signature:
        """A parameter per operand, and the option."""
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
        return operands, ((self.option, typing.as_choice(self.name, self.option, bound[self.option], values)),)

    def form(self, attrs: Attrs) -> Variant:
        """Return the variant that the attributes select."""
        chosen = next((value for name, value in attrs if name == self.option), None)
        return next((variant for variant in self.variants if variant.value == chosen), Variant("", self.ref, self.c, self.numpy))

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return BOOL for a leading mask, otherwise the dtype of the first tile that shares it."""
        if self.mask_first:
            return DType.BOOL if position == 0 else next((t.dtype for t in types[1:] if t is not None), None)
        return next((t.dtype for t in types if t is not None), None)

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result, with the broadcast shape of the operands."""
        if self.mask_first:
            typing.check_dtype(self.name, types[0], (DType.BOOL,), "give a comparison, e.g. x > 0")
        shared = types[1:] if self.mask_first else types
        typing.check_same_dtype(self.name, shared)
        typing.check_dtype(self.name, shared[0], self.dtypes, self.hint)
        rows, cols = typing.broadcast(self.name, types)
        return TileType(rows, cols, DType.BOOL if self.to_mask else shared[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the NumPy result, with halves widened to f32; the function `evaluate` rounds it to the half."""
        return self.form(attrs).ref(*map(widened, operands))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(OpEntry):
    """Reduce along an axis in the tile's dtype: fold the elements with `combine` from `identity`, then apply `finish`."""

    ref: Callable[[Array, int], Array]
    identity: Identity
    combine: Spelling
    finish: Finish = Finish.NONE
    counts_masks: bool = False      # a mask is cast to I32

    @property
    def signature(self) -> Signature:
        """The tile operand."""
        return positional(("x",))

    def prepared(self, emitter: Emitter, operands: tuple[object, ...]) -> tuple[object, ...]:
        """Return the tile, a mask as the numbers that are counted."""
        return _numbers(emitter, operands) if self.counts_masks else operands


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReduce(Reduce):
    """Reduce [R, C] to [R, 1] in the tile's dtype: fold the elements of a row with `combine` from `identity`, then apply `finish`.

    Integers wrap.
    """

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [R, 1]."""
        typing.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return TileType(types[0].rows, 1, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the NumPy reduction of the rows; halves accumulate in f32."""
        return self.ref(widened(operands[0]), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColReduce(Reduce):
    """Reduce [R, C] to [1, C] in the tile's dtype: fold the elements of a column with `combine` from `identity`, then apply `finish`."""

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [1, C]."""
        typing.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return TileType(1, types[0].cols, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the NumPy reduction of the columns; halves accumulate in f32."""
        return self.ref(widened(operands[0]), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul(OpEntry):
    """Compute [M, K] @ [K, N] -> [M, N], plus an optional third operand [M, N], in the dtype of MATMUL_RESULT.

    Passes set attributes: True for `transpose_a` or `transpose_b` means that the operand is [K, M] or [N, K]; `form` selects how the
    product runs and does not change the result.
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
        """Return None: a matrix operand cannot be a number."""
        return None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [M, N] in the accumulator's dtype."""
        lhs, rhs = (TileType(t.cols, t.rows, t.dtype) if _transposed(attrs, index) else t for index, t in enumerate(types[:2]))
        typing.check_same_dtype(self.name, (lhs, rhs))
        typing.check_dtype(self.name, lhs, self.dtypes, self.hint)
        typing.check_inner(self.name, lhs, rhs)
        result = TileType(lhs.rows, rhs.cols, MATMUL_RESULT[lhs.dtype])
        if len(types) == 3:
            typing.check_accumulator(self.name, types[2], result)
        return result

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return acc + a @ b, computed by NumPy."""
        return self.ref(*(x.T if index < 2 and _transposed(attrs, index) else x for index, x in enumerate(operands)))


def _numbers(emitter: Emitter, operands: tuple[object, ...]) -> tuple[object, ...]:
    """Return masks as 0 and 1 of I32, other operands unchanged."""
    return tuple(emitter.emit("cast", (x,), (("dtype", DType.I32),)) if is_tile(x) and x.dtype.is_bool else x for x in operands)


def _transposed(attrs: Attrs, operand: int) -> bool:
    return (("transpose_a", "transpose_b")[operand], True) in attrs


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert(OpEntry):
    """Convert every element to the dtype of the attribute `dtype`, with the attributes `mode` and `saturate`; `c` uses {from} and {t}.

    `numpy` is the line for the conversions that NumPy does the same way. The other fields are for casts to a mask, of floats to integers,
    of integers to others with saturation, and for roundings in which NumPy differs.
    """

    ref: Callable[[Array, DType, str | None, bool | None], Array]
    c: CFunction
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
        """Return the tile; the attributes are dtype, and mode and saturate if given."""
        attrs: list[tuple[str, Attr]] = [("dtype", typing.as_dtype(self.name, bound["dtype"], self.dtypes))]
        if bound["mode"] is not None:
            attrs.append(("mode", typing.as_choice(self.name, "mode", bound["mode"], tuple(MODES))))
        if bound["saturate"] is not None:
            attrs.append(("saturate", typing.as_choice(self.name, "saturate", bound["saturate"], (True, False))))
        return (bound["x"],), tuple(attrs)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return None: a number has no dtype to convert from."""
        return None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the operand's shape in the new dtype."""
        typing.check_dtype(self.name, types[0], self.dtypes, self.hint)
        typing.check_conversion(self.name, types[0], dtype_attr(attrs), *self.rules_of(attrs))
        return types[0].with_dtype(dtype_attr(attrs))

    def rules_of(self, attrs: Attrs) -> tuple[str | None, bool | None]:
        """Return the attributes mode and saturate; None for those not given."""
        mode = next((str(value) for name, value in attrs if name == "mode"), None)
        return mode, next((bool(value) for name, value in attrs if name == "saturate"), None)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the converted array."""
        return self.ref(operands[0], result.dtype, *self.rules_of(attrs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand(OpEntry):
    """Broadcast one operand of shape [R, C], [R, 1], [1, C] or [1, 1] (or a number) to the shape of the attribute `shape`."""

    keeps_range: tuple[DType, ...] = INTEGERS

    @property
    def signature(self) -> Signature:
        """x, shape."""
        return positional(("x", "shape"))

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tile, and the shape as an attribute."""
        return (bound["x"],), (("shape", typing.as_shape(self.name, bound["shape"])),)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return the attribute `dtype`, which `full` sets."""
        return next((value for name, value in attrs if name == "dtype" and isinstance(value, DType)), None)

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the requested shape in the operand's dtype."""
        typing.check_dtype(self.name, types[0], self.dtypes, self.hint)
        rows, cols = shape_attr(attrs)
        typing.check_expands(self.name, types[0], (rows, cols))
        return TileType(rows, cols, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the operand, broadcast."""
        return np.broadcast_to(operands[0], result.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Iota(OpEntry):
    """Produce a tile, without operands, whose elements are their row (attribute `axis` 0) or column (1)."""

    @property
    def signature(self) -> Signature:
        """shape, dtype=I32, axis=1."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter("shape", kind), Parameter("dtype", kind, default=DType.I32),
                          Parameter("axis", kind, default=1)])

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return no operand; shape, dtype and axis are attributes."""
        return (), (("shape", typing.as_shape(self.name, bound["shape"])),
                    ("dtype", typing.as_dtype(self.name, bound["dtype"], self.dtypes)),
                    ("axis", typing.as_axis(self.name, bound["axis"])))

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the requested shape and dtype."""
        rows, cols = shape_attr(attrs)
        return TileType(rows, cols, dtype_attr(attrs))

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the row or column numbers; integers wrap."""
        axis = next(value for name, value in attrs if name == "axis")
        numbers: Array = np.indices(result.shape)[1 if axis == 1 else 0]
        return numbers.astype(result.dtype.np)


Op: TypeAlias = Elementwise | RowReduce | ColReduce | Matmul | Movement | Convert | Expand | Iota | TileFunction


def evaluate(op: Op, operands: Sequence[Array], result: TileType, attrs: Attrs = ()) -> Array:
    """Return the meaning of `op` on NumPy operands, in the type of the result; NumPy warnings are suppressed."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(op.evaluate(operands, result, attrs), dtype=result.dtype.np)


def widened(x: Array) -> Array:
    """Return halves as f32, and other arrays unchanged."""
    is_half = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"     # NumPy has no kind letter for bf16
    return x.astype(np.float32) if is_half else x
