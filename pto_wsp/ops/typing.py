"""Check the typing rules that op-table entries share. Errors are raised at the user's line."""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.errors import MixedDTypeError, OperandKindError, OperandShapeError, OptionValueError, TileAxisError, UnsupportedDTypeError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.tile import StackType, TileType
from pto_wsp.ops.entry import Operand, is_tile
from pto_wsp.ops.rounding import print_dtypes
from pto_wsp.source import here


def require_tile(name: str, value: object) -> Operand:
    """Return `value`, checked to be a tile.

    Raises: T213 for anything else.
    """
    if not is_tile(value):
        raise OperandKindError(f"`pto.{name}` takes a tile", here(), expected="a tile of this kernel", found=repr(value))
    return value


def check_dtype(name: str, found: TileType | Operand, supported: tuple[DType, ...], hint: str = "") -> None:
    """Check that an operand's dtype is supported.

    Raises: T204 otherwise.
    """
    if found.dtype not in supported:
        target = next((dtype for dtype in (DType.F32, DType.I32) if dtype in supported), supported[0])
        raise UnsupportedDTypeError(f"`pto.{name}` does not take {found.dtype}", here(), expected=print_dtypes(supported),
                                    found=repr(found).strip("<>"), help=hint or f"convert it first: pto.cast(x, {target!r})")


def check_same_dtype(name: str, types: Sequence[TileType]) -> None:
    """Check that operands have equal dtypes.

    Raises: T203 otherwise.
    """
    if any(t.dtype is not types[0].dtype for t in types):
        raise MixedDTypeError(f"`pto.{name}`: operands of different dtypes", here(), expected="one dtype",
                              found=" and ".join(map(repr, types)),
                              help=f"convert one of them, e.g. pto.cast(x, {types[0].dtype!r})")


def broadcast(name: str, types: Sequence[TileType]) -> tuple[int, int]:
    """Return the shape that the operands broadcast to.

    Raises: T202 if they do not broadcast.
    """
    rows, cols = max(t.rows for t in types), max(t.cols for t in types)
    if any(t.rows not in (1, rows) or t.cols not in (1, cols) for t in types):
        raise OperandShapeError(f"`pto.{name}`: the operands' shapes do not fit", here(),
                                expected="equal shapes; [R, 1], [1, C] and [1, 1] broadcast to [R, C]",
                                found=" and ".join(map(repr, types)))
    return rows, cols


def misfit(message: str, expected: str | None = None, found: str | None = None, help: str | None = None) -> OperandShapeError:
    """Return the error for shapes that do not fit, at the user's line."""
    return OperandShapeError(message, here(), expected=expected, found=found, help=help)


def check_inner(name: str, lhs: TileType, rhs: TileType) -> None:
    """Check that `lhs` has as many columns as `rhs` has rows.

    Raises: T202 otherwise.
    """
    if lhs.cols != rhs.rows:
        turned = "mT" if isinstance(lhs, StackType) or isinstance(rhs, StackType) else "T"
        swap = f"second: b.{turned}" if lhs.cols == rhs.cols else f"first: a.{turned}" if lhs.rows == rhs.rows else None
        raise misfit(f"`pto.{name}`: {lhs.cols} columns meet {rhs.rows} rows", "[M, K] @ [K, N]", f"{lhs!r} @ {rhs!r}",
                     swap and f"transpose the {swap}")


def check_accumulator(name: str, found: TileType, result: TileType) -> None:
    """Check that `found` is the type of the product.

    Raises: T202 for another shape, T203 for another dtype.
    """
    if found.shape != result.shape:
        raise misfit(f"`pto.{name}`: acc has another shape than the product", repr(result), repr(found))
    if found.dtype is not result.dtype:
        raise MixedDTypeError(f"`pto.{name}`: acc has another dtype than the product", here(), expected=repr(result),
                              found=repr(found), help=f"allocate it as {result.dtype!r}")


def check_expands(name: str, found: TileType, shape: tuple[int, int]) -> None:
    """Check that `found` broadcasts to exactly `shape`.

    Raises: T202 otherwise.
    """
    if found.rows not in (1, shape[0]) or found.cols not in (1, shape[1]):
        raise OperandShapeError(f"`pto.{name}`: the tile does not broadcast to {list(shape)}", here(),
                                expected=f"[{shape[0]}, {shape[1]}], or 1 in place of either", found=repr(found))


def as_dtype(name: str, value: object, supported: tuple[DType, ...]) -> DType:
    """Return `value`, checked to be one of the supported dtypes.

    A name ("float32"), a NumPy and a torch dtype are dtypes too.
    Raises: T207 when it is none, T204 when it is not supported.
    """
    dtype = DType.of(value)
    if dtype is None:
        raise OptionValueError(f"`pto.{name}` takes a dtype here", here(),
                               expected='a member of DType, e.g. DType.F32, its name ("float32"), or a NumPy or torch dtype',
                               found=repr(value), help=_width_of(value))
    if dtype not in supported:
        raise UnsupportedDTypeError(f"`pto.{name}` does not give {dtype}", here(), expected=print_dtypes(supported),
                                    found=str(dtype))
    return dtype


def _width_of(value: object) -> str | None:
    """Return the help for Python's own types, which have no width."""
    return "say the width: DType.F32, DType.I32" if value in (int, float) else None


def as_axes(name: str, axis: object, dim: object = None) -> int | None:
    """Return 0 (down the rows) or 1 (along the columns) for NumPy's `axis` or torch's `dim`, negative ones too; None for both.

    Raises: T214 for anything else.
    """
    if axis is not None and dim is not None:
        raise TileAxisError(f"`{name}`: axis and dim are the same option", here(), expected="one of them",
                               found=f"axis={axis!r}, dim={dim!r}")
    given = dim if axis is None else axis
    if given is None:
        return None
    items = tuple(given) if isinstance(given, tuple | list) else (given,)
    axes = [whole_number(item) for item in items]
    known = [at % 2 for at in axes if at is not None and -2 <= at < 2]
    if not items or len(known) < len(items) or len(set(known)) < len(items):
        raise TileAxisError(f"`{name}`: not an axis of a tile", here(), expected="1 or -1: along each row; 0 or -2: down each column",
                               found=repr(given))
    return None if len(known) == 2 else known[0]


def as_choice(name: str, what: str, value: object, choices: tuple[str | bool, ...]) -> str | bool:
    """Return `value`, checked to be one of `choices`.

    Raises: T207 for anything else.
    """
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    raise OptionValueError(f"`pto.{name}`: no such {what}", here(), expected=f"{what}=" + ", ".join(map(repr, choices)),
                           found=repr(value))


def check_conversion(name: str, found: TileType, target: DType, mode: str | None, saturate: bool | None) -> None:
    """Raise T207 for a rounding mode where nothing is rounded by one, and for saturation of a mask."""
    if mode is not None and (target.is_bool or not found.dtype.is_real):
        raise OptionValueError(f"`pto.{name}`: {found.dtype} becomes {target} without a rounding mode", here(),
                               expected="a mode only where a float becomes an integer or another float", found=f"mode={mode!r}",
                               help="leave mode out")
    if saturate is not None and (target.is_bool or found.dtype.is_bool):
        raise OptionValueError(f"`pto.{name}`: a mask does not saturate", here(), expected="no saturate to or from bool",
                               found=f"saturate={saturate!r}", help="leave saturate out")


def as_shape(name: str, value: object) -> tuple[int, int]:
    """Return `value`, checked to be the shape of a tile.

    Raises: T207 unless it is two whole numbers >= 1.
    """
    if isinstance(value, tuple | list) and len(value) == 2:
        rows, cols = whole_number(value[0]), whole_number(value[1])
        if rows is not None and cols is not None and rows >= 1 and cols >= 1:
            return rows, cols
    raise OptionValueError(f"`pto.{name}`: not the shape of a tile", here(),
                           expected="(rows, cols): two whole numbers >= 1, known when the kernel is traced", found=repr(value),
                           help="take a shape that a caller chooses from a Constexpr[int] parameter")


def as_axis(name: str, value: object) -> int:
    """Return `value`, checked to be 0 (rows) or 1 (columns).

    Raises: T207 for anything else.
    """
    if value in (0, 1) and isinstance(value, int):
        return int(value)
    raise OptionValueError(f"`pto.{name}`: not an axis of a tile", here(), expected="0 (rows) or 1 (columns)",
                           found=repr(value))
