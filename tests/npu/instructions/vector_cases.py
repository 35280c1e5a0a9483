"""What instructions of the vector core do to small tiles, with what NumPy says of the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tests.npu.emulator import Array
from tests.npu.harness import FAMILIES
from tests.npu.instructions.case import Case, Column

ROWS, COLS = 5, 21
F32, F16, BF16, I32, I16, U32 = np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.int16, np.uint32
ULP = {F32: 3e-7, F16: 1e-3}


def numbers(dtype: npt.DTypeLike, rows: int = ROWS, cols: int = COLS, seed: int = 0) -> Array:
    """Return numbers of both signs, none of them 0: halves of whole numbers, so that f16 and bf16 hold them."""
    drawn = np.random.default_rng(seed).integers(1, 16, (rows, cols)) * np.random.default_rng(seed + 1).choice([-1, 1], (rows, cols))
    made: Array = (drawn / (2 if np.dtype(dtype).kind not in "iu" else 1)).astype(dtype)
    return made


def positive(dtype: npt.DTypeLike, rows: int = ROWS, cols: int = COLS, seed: int = 0) -> Array:
    """Return the same without signs."""
    made: Array = np.abs(numbers(dtype, rows, cols, seed))
    return made


def cases() -> Iterator[Case]:
    """Yield all of them."""
    yield from _unary()
    yield from _binary()
    yield from _scalar()
    yield from _masks()
    yield from _casts()
    yield from _reductions()
    yield from _expansions()
    yield from _movements()
    yield from _orders()


def _name(dtype: npt.DTypeLike) -> str:
    return np.dtype(dtype).name


def _wide(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function in f32, and round once."""
    dtype = arrays[0].dtype
    if dtype.kind in "iu":
        return function(*arrays).astype(dtype)
    return function(*(array.astype(np.float32) for array in arrays)).astype(dtype)


def _unary() -> Iterator[Case]:
    functions: dict[str, tuple[Callable[..., Array], tuple[npt.DTypeLike, ...], bool]] = {
        "TABS": (np.abs, (F32, F16), False), "TNEG": (np.negative, (F32, F16, I32, I16), False),
        "TNOT": (np.invert, (I16, I32, np.uint8), False), "TEXP": (np.exp, (F32, F16), False), "TLOG": (np.log, (F32, F16), True),
        "TSQRT": (np.sqrt, (F32, F16), True), "TRSQRT": (lambda x: 1 / np.sqrt(x), (F32, F16), True),
        "TRECIP": (lambda x: 1 / x, (F32, F16), False), "TRELU": (lambda x: np.maximum(x, 0), (F32, F16, I32), False)}
    for op, (function, dtypes, needs_positive) in functions.items():
        for dtype in dtypes:
            x = positive(dtype) if needs_positive or dtype is np.uint8 else numbers(dtype)
            yield Case(f"{op}_{_name(dtype)}", f"{op}(o, x);", {"x": x},
                       {"o": _wide(function, x)}, rtol=ULP.get(dtype, 0))
    for dtype in (I32, I16):
        yield Case(f"TABS_{_name(dtype)}", "TABS(o, x);", {"x": numbers(dtype)}, {"o": np.abs(numbers(dtype))}, families=("a5",))


def _binary() -> Iterator[Case]:
    plain: dict[str, tuple[Callable[..., Array], tuple[npt.DTypeLike, ...]]] = {
        "TADD": (np.add, (F32, F16, I32, I16)), "TSUB": (np.subtract, (F32, F16, I32, I16)), "TMUL": (np.multiply, (F32, F16, I32, I16)),
        "TDIV": (np.divide, (F32, F16)), "TMAX": (np.maximum, (F32, F16, I32, I16)), "TMIN": (np.minimum, (F32, F16, I32, I16)),
        "TAND": (np.bitwise_and, (I16,)), "TOR": (np.bitwise_or, (I16,)), "TFMOD": (np.fmod, (F32,)),
        "TSUBRELU": (lambda a, b: np.maximum(a - b, 0), (F32,))}
    for op, (function, dtypes) in plain.items():
        for dtype in dtypes:
            x, y = numbers(dtype), numbers(dtype, seed=7)
            yield Case(f"{op}_{_name(dtype)}", f"{op}(o, x, y);", {"x": x, "y": y}, {"o": _wide(function, x, y)})
    x, y, a = numbers(F32), numbers(F32, seed=7), numbers(F32, seed=9)
    yield Case("in_place", "TADD(x, x, y); TMUL(x, x, x);", {"x": x, "y": y}, {"x": (x + y) ** 2})
    yield Case("TREM", "TREM(o, x, y, t);", {"x": x, "y": y}, {"o": np.mod(x, y)}, {"t": (F32, ROWS, COLS)})
    yield Case("TPRELU", "TPRELU(o, x, y, t);", {"x": x, "y": y}, {"o": np.where(x > 0, x, x * y)}, {"t": (F32, ROWS, COLS)})
    yield Case("TMULADDDST", "TMULADDDST(a, x, y);", {"x": x, "y": y, "a": a}, {"a": x * y + a})
    yield Case("TFUSEDMULADD", "TFUSEDMULADD(a, x, y);", {"x": x, "y": y, "a": a}, {"a": a * x + y})
    i, j = numbers(I16), positive(I16, seed=7) % 5
    yield Case("TXOR", "TXOR(o, x, y, t);", {"x": i, "y": numbers(I16, seed=7)}, {"o": i ^ numbers(I16, seed=7)}, {"t": (I16, ROWS, COLS)})
    yield Case("TSHL", "TSHL(o, x, y);", {"x": i, "y": j}, {"o": i << j})
    yield Case("TSHR", "TSHR(o, x, y);", {"x": i, "y": j}, {"o": i >> j})
    few = numbers(F32, 3, 10, seed=5)
    for op, function in (("TPARTADD", np.add), ("TPARTMAX", np.maximum), ("TPARTMIN", np.minimum), ("TPARTMUL", np.multiply)):
        part = x.copy()
        part[:3, :10] = function(x[:3, :10], few)
        yield Case(op, f"{op}(o, x, y);", {"x": x, "y": few}, {"o": part})
    yield Case("TADD_bfloat16", "TADD(o, x, y);", {"x": numbers(BF16), "y": numbers(BF16, seed=7)},
               {"o": _wide(np.add, numbers(BF16), numbers(BF16, seed=7))}, families=("a5",))


def _scalar() -> Iterator[Case]:
    functions: dict[str, tuple[Callable[..., Array], tuple[npt.DTypeLike, ...]]] = {
        "TADDS": (np.add, (F32, F16, I32)), "TSUBS": (np.subtract, (F32, F16, I32)), "TMULS": (np.multiply, (F32, F16, I32)),
        "TDIVS": (np.divide, (F32,)), "TMAXS": (np.maximum, (F32, F16, I32)), "TMINS": (np.minimum, (F32, F16, I32)),
        "TANDS": (np.bitwise_and, (I16,)), "TORS": (np.bitwise_or, (I16,)), "TSHLS": (np.left_shift, (I32,)),
        "TSHRS": (np.right_shift, (I32,)), "TFMODS": (np.fmod, (F32,)), "TLRELU": (lambda x, s: np.where(x > 0, x, x * s), (F32,))}
    for op, (function, dtypes) in functions.items():
        for dtype in dtypes:
            x = numbers(dtype)
            yield Case(f"{op}_{_name(dtype)}", f"{op}(o, x, 3);", {"x": x}, {"o": _wide(function, x, np.full_like(x, 3))})
    x, y = numbers(F32), numbers(F32, seed=7)
    yield Case("TDIVS_turned", "TDIVS(o, 3.0f, x);", {"x": x}, {"o": np.float32(3) / x})
    yield Case("TAXPY", "TAXPY(y, x, 0.25f);", {"x": x, "y": y}, {"y": y + x * np.float32(0.25)})
    yield Case("TADDSC", "TADDSC(o, x, 2.0f, y);", {"x": x, "y": y}, {"o": x + 2 + y})
    yield Case("TSUBSC", "TSUBSC(o, x, 2.0f, y);", {"x": x, "y": y}, {"o": x - 2 + y})
    yield Case("TREMS", "TREMS(o, x, 3.0f, t);", {"x": x}, {"o": np.mod(x, np.float32(3))}, {"t": (F32, ROWS, COLS)})
    yield Case("TXORS", "TXORS(o, x, 5, t);", {"x": numbers(I16)}, {"o": numbers(I16) ^ 5}, {"t": (I16, ROWS, COLS)})
    for dtype, word in ((F32, "-1.5f"), (F16, "static_cast<half>(-1.5f)"), (BF16, "-1.5f"), (I32, "-3"), (np.uint8, "7")):
        value = float(word.strip("f")) if "half" not in word else -1.5
        yield Case(f"TEXPANDS_{_name(dtype)}", f"TEXPANDS(o, {word});", {}, {"o": np.full((ROWS, COLS), value, dtype)})


def _masks() -> Iterator[Case]:
    cols, width = 24, 3      # whole bytes of bits
    functions = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    scratch = {"m": (np.uint8, ROWS, width), "t": (np.uint8, ROWS, 32)}
    for mode, function in functions.items():
        for dtype in (F32, I32):
            x, y = numbers(dtype, cols=cols), numbers(dtype, cols=cols, seed=7)
            packed = np.packbits(function(x, y), axis=1, bitorder="little")
            yield Case(f"TCMP_{mode}_{_name(dtype)}", f"TCMP(o, x, y, CmpMode::{mode});", {"x": x, "y": y}, {"o": packed})
        x, y = numbers(F32, cols=cols), numbers(F32, cols=cols, seed=7)
        yield Case(f"TSEL_{mode}", f"TCMPS(m, x, 2.0f, CmpMode::{mode}); TSEL(o, m, x, y, t);", {"x": x, "y": y},
                   {"o": np.where(function(x, 2), x, y)}, scratch)
    x = numbers(F32, cols=cols)
    yield Case("TSELS", "TCMPS(m, x, 2.0f, CmpMode::GT); TSELS(o, m, x, t, 9.0f);", {"x": x},
               {"o": np.where(x > 2, x, 9).astype(F32)}, scratch)


def _casts() -> Iterator[Case]:
    quarters = (np.arange(ROWS * COLS).reshape(ROWS, COLS) - 50).astype(F32) / 4
    modes: dict[str, Callable[..., Array]] = {
        "RINT": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc,
        "ROUND": lambda x: np.trunc(x + np.copysign(0.5, x))}
    for mode, function in modes.items():
        for dtype in (I32, I16):
            yield Case(f"TCVT_{mode}_{_name(dtype)}", f"TCVT(o, x, RoundMode::CAST_{mode});", {"x": quarters},
                       {"o": function(quarters).astype(dtype)})
        yield Case(f"TCVT_{mode}_in_f32", f"TCVT(o, x, RoundMode::CAST_{mode});", {"x": quarters}, {"o": function(quarters)})
    wide = (np.random.default_rng(3).standard_normal((ROWS, COLS)) * np.logspace(-8, 4, COLS)).astype(F32)
    for dtype in (F16, BF16):
        yield Case(f"TCVT_to_{_name(dtype)}", "TCVT(o, x, RoundMode::CAST_RINT);", {"x": wide}, {"o": wide.astype(dtype)})
        narrow = wide.astype(dtype)
        yield Case(f"TCVT_from_{_name(dtype)}", "TCVT(o, x, RoundMode::CAST_NONE);", {"x": narrow}, {"o": narrow.astype(F32)})
    known = ((I32, F32), (I16, F32), (I16, F16), (np.int8, F16), (np.uint8, F16), (I32, I16))
    for source, target, families in (*((*pair, FAMILIES) for pair in known), (np.int8, I32, ("a5",)), (np.uint8, np.uint16, ("a5",)),
                                     (I32, F16, ("a2a3",))):
        x = numbers(source) if source is not np.uint8 else positive(source)
        yield Case(f"TCVT_{_name(source)}_{_name(target)}", "TCVT(o, x, RoundMode::CAST_RINT);", {"x": x}, {"o": x.astype(target)},
                   families=families)
    large = np.linspace(-400, 400, ROWS * COLS).reshape(ROWS, COLS).astype(F16)
    yield Case("TCVT_saturating", "TCVT(o, x, RoundMode::CAST_RINT, SaturationMode::ON);", {"x": large},
               {"o": np.clip(np.rint(large.astype(F32)), -128, 127).astype(np.int8)})


def _reductions() -> Iterator[Case]:
    functions: dict[str, Callable[..., Array]] = {"SUM": np.sum, "MAX": np.max, "MIN": np.min}
    for word, function in functions.items():
        for dtype in (F32, F16, I32):
            x, scratch = numbers(dtype, 16), {"t": (dtype, 16, COLS)}
            yield Case(f"TROW{word}_{_name(dtype)}", f"TROW{word}(o, x, t);", {"x": x},
                       {"o": Column(function(x, axis=1).astype(dtype))}, scratch)
        for dtype in (F32, F16):
            x = numbers(dtype)
            yield Case(f"TCOL{word}_{_name(dtype)}", f"TCOL{word}(o, x);", {"x": x},
                       {"o": function(x, axis=0, keepdims=True).astype(dtype)})
    few = numbers(F32, 8, 6)
    yield Case("TROWPROD", "TROWPROD(o, x, t);", {"x": few}, {"o": Column(np.prod(few, axis=1))}, {"t": (F32, 8, 6)})
    yield Case("TCOLPROD", "TCOLPROD(o, x);", {"x": few}, {"o": np.prod(few, axis=0, keepdims=True)})
    yield Case("TCOLSUM_pairwise", "TCOLSUM(o, x, t, true);", {"x": few}, {"o": np.sum(few, axis=0, keepdims=True)}, {"t": (F32, 8, 6)})
    x = numbers(F32, 8)
    for word, place in (("MAX", np.argmax), ("MIN", np.argmin)):
        yield Case(f"TROWARG{word}", f"TROWARG{word}(o, x, t);", {"x": x}, {"o": Column(place(x, axis=1).astype(U32))},
                   {"t": (F32, 8, COLS)})
    yield Case("TCOLARGMAX", "TCOLARGMAX(o, x, t);", {"x": numbers(I32, 8)}, {"o": np.argmax(numbers(I32, 8), axis=0)[None].astype(U32)},
               {"t": (I32, 8, COLS)})


def _expansions() -> Iterator[Case]:
    functions: dict[str, Callable[..., Array]] = {
        "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide, "MAX": np.maximum, "MIN": np.minimum,
        "EXPDIF": lambda x, y: np.exp(x - y)}
    for dtype in (F32, F16):
        x, down, across = (array / dtype(8) for array in (numbers(dtype, 16), numbers(dtype, 1, 16, seed=7)[0], numbers(dtype, 1, seed=7)))
        for word, function in functions.items():
            rtol = ULP[dtype] * 4 if word == "EXPDIF" else 0
            right = _wide(function, x, np.broadcast_to(down[:, None], x.shape))
            yield Case(f"TROWEXPAND{word}_{_name(dtype)}", f"TROWEXPAND{word}(o, x, s);", {"x": x, "s": Column(down)},
                       {"o": right}, rtol=rtol)
            right = _wide(function, x, np.broadcast_to(across, x.shape))
            yield Case(f"TCOLEXPAND{word}_{_name(dtype)}", f"TCOLEXPAND{word}(o, x, s);", {"x": x, "s": across}, {"o": right}, rtol=rtol)
        yield Case(f"TROWEXPAND_{_name(dtype)}", "TROWEXPAND(o, s);", {"s": Column(down)}, {"o": np.repeat(down[:, None], COLS, 1)})
        yield Case(f"TCOLEXPAND_{_name(dtype)}", "TCOLEXPAND(o, s);", {"s": across}, {"o": np.repeat(across, ROWS, 0)})
    yield Case("TROWEXPANDADD_scratch", "TROWEXPANDADD(o, x, s, t);", {"x": x, "s": Column(down)},
               {"o": _wide(np.add, x, np.repeat(down[:, None], COLS, 1))},
               {"t": (F16, 16, COLS)})


def _movements() -> Iterator[Case]:
    x, y = numbers(F32), numbers(F32, seed=7)
    yield Case("TMOV", "TMOV(o, x);", {"x": x}, {"o": x})
    tile = f"Tile<TileType::Vec, float, {COLS}, 16, BLayout::RowMajor, {COLS}, {ROWS}> r; TASSIGN(r, 0x4000); "
    yield Case("TTRANS", f"{tile}TTRANS(r, x, t); TADDS(o, r, 0);", {"x": x}, {"o": x.T.copy()}, {"t": (F32, COLS, 16)})
    yield Case("TCONCAT", "TCONCAT(o, x, y);", {"x": x, "y": y}, {"o": np.concatenate([x, y], 1)})
    cols = COLS + 1
    a, b = numbers(F32, cols=cols), numbers(F32, cols=cols, seed=7)
    pairs = np.stack([a, b], 2).reshape(ROWS, -1)
    first, second = pairs[:, :cols].copy(), pairs[:, cols:].copy()
    yield Case("TINTERLEAVE", "TINTERLEAVE(a, b, x, y);", {"x": a, "y": b}, {"a": first, "b": second})
    yield Case("TDEINTERLEAVE", "TDEINTERLEAVE(a, b, x, y);", {"x": first, "y": second}, {"a": a, "b": b})
    yield Case("TDEINTERLEAVE_one", "TDEINTERLEAVE(a, b, x);", {"x": pairs}, {"a": a, "b": b})
    sums = f"Tile<TileType::Vec, float, {ROWS}, 48, BLayout::RowMajor, {ROWS}, {2 * cols}> p; TASSIGN(p, 0x4000); "
    front = f"Tile<TileType::Vec, float, {ROWS}, 48, BLayout::RowMajor, {ROWS}, {cols}> q; TASSIGN(q, 0x4000); "
    yield Case("TPAIRREDUCESUM", f"{sums}{front}TPAIRREDUCESUM(p, x); TADDS(o, q, 0);", {"x": pairs}, {"o": a + b})
    yield Case("TEXTRACT", "TEXTRACT(o, x, 2, 8);", {"x": x}, {"o": x[2:, 8:].copy()})
    put = x.copy()
    put[1:4, 8:] = y[1:4, 8:]
    yield Case("TINSERT", "TINSERT(x, y, 1, 8);", {"x": x, "y": y[1:4, 8:].copy()}, {"x": put}, families=("a5",))
    even = numbers(F32, 4, 16)
    yield Case("TRESHAPE", "Tile<TileType::Vec, float, 8, 8> r; TRESHAPE(r, x); TADDS(r, r, 1.0f);", {"x": even}, {"x": even + 1})
    lower = even.copy()
    lower[2:] *= 3
    yield Case("TSUBVIEW", "Tile<TileType::Vec, float, 2, 16> r; TSUBVIEW(r, x, 2, 0); TMULS(r, r, 3.0f);", {"x": even}, {"x": lower})
    tile = "Tile<TileType::Vec, float, 5, 24, BLayout::RowMajor, 5, 24, SLayout::NoneBox, 512, PadValue::Zero> p"
    yield Case("TFILLPAD", f"{tile}; TASSIGN(p, 0x4000); TFILLPAD(p, x); TADDS(o, p, 0);", {"x": x}, {"o": np.pad(x, ((0, 0), (0, 3)))})
    for word, dtype, pad in (("Zero", F32, 0), ("Max", F32, np.inf), ("Min", F32, -np.inf), ("Max", I32, 2**31 - 1), ("Min", I32, -2**31)):
        small, c_type = numbers(dtype), "float" if dtype is F32 else "int32_t"
        large = np.full((8, 24), pad, dtype)
        large[:ROWS, :COLS] = small
        tile = f"Tile<TileType::Vec, {c_type}, 8, 24, BLayout::RowMajor, 8, 24, SLayout::NoneBox, 512, PadValue::{word}> p"
        yield Case(f"TFILLPAD_EXPAND_{word}_{_name(dtype)}", f"{tile}; TASSIGN(p, 0x4000); TFILLPAD_EXPAND(p, x); TADDS(o, p, 0);",
                   {"x": small}, {"o": large})
    yield Case("GetValue", "set_flag(PIPE_V, PIPE_S, EVENT_ID1); wait_flag(PIPE_V, PIPE_S, EVENT_ID1); float v = x.GetValue(25); "
               "x.SetValue(0, v + static_cast<float>(x.data()[1])); TMULS(x, x, 1.0f);", {"x": x}, {"x": _with_first(x, x[1, 1] + x[0, 1])})


def _with_first(x: Array, value: object) -> Array:
    made = x.copy()
    made[0, 0] = value
    return made


def _orders() -> Iterator[Case]:
    count = 256
    values = np.random.default_rng(5).permutation(count).astype(F32)[None]
    index = np.arange(count, dtype=U32)[None]
    order = np.argsort(-values.reshape(-1, 32), axis=1) + 32 * np.arange(count // 32)[:, None]
    blocks = np.stack([values[0][order.ravel()], index[0][order.ravel()].view(F32)], 1).reshape(1, -1)
    yield Case("TSORT32", "TSORT32(o, x, i);", {"x": values, "i": index}, {"o": blocks})
    whole = np.concatenate([np.argsort(-half) + 128 * n for n, half in enumerate(values.reshape(2, -1))])
    merged = np.stack([values[0][whole], index[0][whole].view(F32)], 1).reshape(1, -1)
    yield Case("TMRGSORT", "TSORT32(p, x, i); TMRGSORT(o, p, 64);", {"x": values, "i": index}, {"o": merged}, {"p": (F32, 1, 2 * count)})
    yield Case("TGATHER_P0101", "TGATHER<MaskPattern::P0101>(o, x);", {"x": values}, {"o": values[:, 0::2].copy()})
    yield Case("TGATHER_P1010", "TGATHER<decltype(o), decltype(x), MaskPattern::P1010>(o, x);", {"x": values},
               {"o": values[:, 1::2].copy()})
    yield Case("TGATHER_P0100", "TGATHER<MaskPattern::P0100>(o, x);", {"x": values}, {"o": values[:, 2::4].copy()})
    x, rng = numbers(F32, 4, 16), np.random.default_rng(6)
    at = rng.integers(0, 64, (3, 10)).astype(I32)
    yield Case("TGATHER_index", "TGATHER(o, x, i, t);", {"x": x, "i": at}, {"o": x.ravel()[at]}, {"t": (I32, 3, 10)})
    offsets = np.array([[0, 3], [7, 1]], U32) * 32
    yield Case("TGATHERB", "TGATHERB(o, x, i);", {"x": x, "i": offsets}, {"o": x.reshape(8, 8)[offsets // 32].reshape(2, 16)})
    put, places = numbers(F32, 2, 8, seed=9), rng.permutation(64)[:16].reshape(2, 8).astype(I32)
    right = x.ravel().copy()
    right[places] = put
    yield Case("TSCATTER", "TSCATTER(x, y, i);", {"x": x, "y": put, "i": places}, {"x": right.reshape(4, 16)})
    yield Case("TCI_up", "TCI<decltype(o), int32_t, 0>(o, 5);", {}, {"o": np.arange(5, 5 + COLS, dtype=I32)[None]})
    yield Case("TCI_down", "TCI<decltype(o), int32_t, 1>(o, 5);", {}, {"o": np.arange(5, 5 - COLS, -1, dtype=I32)[None]})
    yield Case("TTRI_lower", "TTRI(o, 2);", {}, {"o": np.tril(np.ones((ROWS, COLS), F32), 2)})
    yield Case("TTRI_upper", "TTRI<decltype(o), 1>(o, -1);", {}, {"o": np.triu(np.ones((ROWS, COLS), F32), -1)})
