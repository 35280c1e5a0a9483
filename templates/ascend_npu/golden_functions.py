"""What a golden.py brings along: the functions that its kernels call, word by word. They need NumPy alone."""

import math

import numpy as np


def _load(region, at, shape, valid=None, fill=0):
    """Return shape elements of a region from `at` on; `fill` outside of what is valid and of what is bound."""
    rows, cols = _extent(region, at, shape, valid)
    piece = np.full(shape, fill, region.dtype)
    piece[:rows, :cols] = region[at[0]:at[0] + rows, at[1]:at[1] + cols]
    return piece


def _store(region, value, at, valid=None):
    """Write the valid part of a value to a region from `at` on."""
    rows, cols = _extent(region, at, value.shape, valid)
    region[at[0]:at[0] + rows, at[1]:at[1] + cols] = value[:rows, :cols]


def _extent(region, at, shape, valid):
    """Return how many rows and columns of a piece there are."""
    given = shape if valid is None else valid
    return tuple(max(0, min(given[k], shape[k], region.shape[k] - at[k])) for k in (0, 1))


def _load_rows(region, index, col, cols, valid=None, fill=0):
    """Return the rows of a region that an index tile names, `fill` behind the valid ones."""
    named = _named(index, valid)
    piece = np.full((len(index), cols), fill, region.dtype)
    piece[:len(named)] = region[named, col:col + cols]
    return piece


def _store_rows(region, index, value, col, valid=None, add=False):
    """Write, or add, rows to those of a region that an index tile names, one after the other."""
    named = _named(index, valid)
    for row, to in zip(value, named, strict=False):
        piece = region[to, col:col + value.shape[1]]
        piece[:] = piece + row if add else row


def _named(index, valid):
    """Return the valid rows of an index tile."""
    rows = len(index) if valid is None else max(0, min(valid, len(index)))
    return index[:rows, 0]


def _sum(x, axis):
    """Return the sum along an axis: floats added up in f64 and rounded once, integers wrapping."""
    return np.sum(x, axis=axis, keepdims=True, dtype=_summed_in(x)).astype(x.dtype)


def _prod(x, axis):
    """Return the product along an axis, as `_sum`."""
    return np.prod(x, axis=axis, keepdims=True, dtype=_summed_in(x)).astype(x.dtype)


def _mean(x, axis):
    """Return the mean along an axis: the sum, in f64, over the count."""
    return (np.sum(x, axis=axis, keepdims=True, dtype=np.float64) / x.shape[axis]).astype(x.dtype)


def _summed_in(x):
    """Return the dtype to add up in."""
    return np.float64 if x.dtype.kind == "f" else x.dtype


def _matmul(a, b, acc=None):
    """Return a @ b, plus acc: floats in f64, rounded once to f32; small integers in int32."""
    if a.dtype.kind in "iu":
        dtype = np.result_type(a.dtype, np.int32)
        product = a.astype(dtype) @ b.astype(dtype)
        return product if acc is None else acc + product
    product = a.astype(np.float64) @ b.astype(np.float64)
    dtype = np.float64 if a.dtype == np.float64 else np.float32
    return (product if acc is None else acc + product).astype(dtype)


def _floordiv(x, y):
    """Return x // y of whole numbers, 0 where y is 0."""
    return x // y if y else 0


def _mod(x, y):
    """Return x % y of whole numbers, 0 where y is 0."""
    return x % y if y else 0


def _shl(x, y):
    """Return x << y, 0 where y is negative or at least the width."""
    inside = (y >= 0) & (y < 8 * y.dtype.itemsize)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), x.dtype.type(0)).astype(x.dtype)


def _shr(x, y):
    """Return x >> y, 0 where y is negative or at least the width."""
    inside = (y >= 0) & (y < 8 * y.dtype.itemsize)
    return np.where(inside, np.right_shift(x, np.where(inside, y, 0)), x.dtype.type(0)).astype(x.dtype)


def _erf(x):
    """Return the error function."""
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype)


def _gelu(x):
    """Return x times the normal distribution function of x."""
    wide = x.astype(np.float64)
    return (0.5 * wide * np.vectorize(math.erfc, otypes=[np.float64])(-wide * math.sqrt(0.5))).astype(x.dtype)


def _gelu_tanh(x):
    """Return gelu by its approximation with tanh: x sigmoid(2 u)."""
    wide = x.astype(np.float64)
    twice_u = wide * (1.5957691216057308 + 0.07135481627260025 * wide * wide)   # 2 sqrt(2 / pi), and that times 0.044715
    return (wide / (1 + np.exp(-twice_u))).astype(x.dtype)


def _order(x, descending):
    """Return the columns of each row in order, of equal elements the lower column first; NaN is the largest."""
    x = _comparable(x)
    if not descending:
        return np.argsort(x, axis=1, kind="stable").astype(np.int32)
    turned = np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
    return (x.shape[1] - 1 - turned).astype(np.int32)


def _first(which, x):
    """Return the column of each row's first largest or smallest element: which is np.argmax or np.argmin."""
    return which(_comparable(x), axis=1, keepdims=True).astype(np.int32)


def _comparable(x):
    """Return small floats in f32, which NumPy knows how to compare."""
    return x.astype(np.float32) if x.dtype.kind not in "iub" and x.dtype.itemsize < 4 else x


def _take(x, index, axis):
    """Return x[r, index[r, c]] (axis 1) or x[index[r, c], c] (axis 0); extents of 1 broadcast."""
    other = 1 - axis
    shape = [max(x.shape[k], index.shape[k]) if k == other else x.shape[k] for k in (0, 1)]
    places = [max(x.shape[k], index.shape[k]) if k == other else index.shape[k] for k in (0, 1)]
    return np.take_along_axis(np.broadcast_to(x, shape), np.broadcast_to(index, places).astype(np.int64), axis)


def _put(x, index, value, axis, add=False):
    """Return x with the elements that an index names replaced by values, or with values added, one by one, row by row."""
    shape = (x.shape[0], index.shape[1]) if axis == 1 else (index.shape[0], x.shape[1])
    index, value, out = np.broadcast_to(index, shape), np.broadcast_to(value, shape), x.copy()
    for row, col in np.ndindex(*shape):
        to = (row, index[row, col]) if axis == 1 else (index[row, col], col)
        out[to] = out[to] + value[row, col] if add else value[row, col]
    return out


def _pad(x, value, at, shape):
    """Return x at a place of a larger tile of one value."""
    out = np.full(shape, value, x.dtype)
    out[at[0]:at[0] + x.shape[0], at[1]:at[1] + x.shape[1]] = x
    return out


def _iota(shape, axis, dtype):
    """Return a tile of row numbers (axis 0) or column numbers (axis 1)."""
    return np.indices(shape)[axis].astype(dtype)


def _to_integer(x, dtype, mode, saturate):
    """Return floats as integers: rounded by a mode; beyond the range the last that fits, or wrapped; NaN is 0."""
    limits, whole = np.iinfo(dtype), _whole(x.astype(np.float64), mode)
    if saturate:
        inside = np.where((whole >= limits.min) & (whole < float(limits.max) + 1), whole, 0).astype(dtype)
        return np.where(whole < limits.min, limits.min, np.where(whole >= float(limits.max) + 1, limits.max, inside)).astype(dtype)
    rest = np.fmod(np.where(np.isfinite(whole), whole, 0), 2.0 ** 64)
    bits = np.abs(rest).astype(np.uint64)
    return np.where(rest < 0, np.uint64(0) - bits, bits).astype(dtype)


def _between(x, dtype):
    """Return integers as other integers, beyond the range the last that fits."""
    limits, own = np.iinfo(dtype), np.iinfo(x.dtype)
    return np.clip(x, max(limits.min, own.min), min(limits.max, own.max)).astype(dtype)


def _to_float(x, dtype, digits, low, largest, infinite, mode, saturate):
    """Return numbers as floats of fewer digits, rounded once by a mode.

    `low`: the exponent of the smallest normal number. `largest`: the largest finite number; beyond it lies infinity, or NaN where
    there is none, or with `saturate` that number.
    """
    x = x.astype(np.float64)
    if saturate:
        x = np.clip(x, -largest, largest)
    unit = np.maximum(np.frexp(x)[1] - 1, low) - digits + 1
    y = np.ldexp(_whole(np.ldexp(x, -unit), mode), unit)
    outward = (mode in ("rint", "round")) | ((mode == "floor") & (x < 0)) | ((mode == "ceil") & (x > 0))
    past = np.where(np.isfinite(x) & ~outward, largest, np.inf if infinite else np.nan)
    return np.where(np.abs(y) > largest, np.copysign(past, x), y).astype(dtype)


def _whole(x, mode):
    """Return floats rounded to whole numbers."""
    down = np.trunc(x)
    if mode == "round":
        return np.where(np.abs(x - down) >= 0.5, down + np.copysign(1, x), down)
    if mode == "odd":
        return np.where((down != x) & (np.fmod(down, 2) == 0), down + np.copysign(1, x), down)
    return {"rint": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}[mode](x)


def _floats(rng, shape, dtype, positive=False):
    """Return normal numbers; of every four rows one is a thousand times smaller, and one a million times (f16: 10 and 100 times)."""
    x = rng.standard_normal(shape)
    if positive:
        x = np.abs(x) + 0.25
    small, smallest = (1e-1, 1e-2) if np.dtype(dtype).itemsize < 4 and np.dtype(dtype).name != "bfloat16" else (1e-3, 1e-6)
    rows = x.reshape(-1, shape[-1]) if shape else x.reshape(1, 1)
    rows[1::4] *= small
    rows[3::4] *= smallest
    return x.astype(dtype)


def _largest(generate, compute, outputs):
    """Return how large results get, of several outputs that which stays smallest, to two digits; 1 where that is not above 16.

    Large results are sums of terms that may cancel: their errors are those of the terms, whatever is left. Where nothing is known
    before a run (a symbol without a value, a kernel without a meaning here), it is 1.
    """
    try:
        given = dict(generate())
        compute(given)
    except Exception:  # whatever it is, who runs these functions is told
        return 1.0
    floats = [np.asarray(given[name]).astype(np.float64) for name in outputs if np.asarray(given[name]).dtype.kind not in "iub"]
    least = min((float(np.abs(value[np.isfinite(value)]).max(initial=0.0)) for value in floats), default=0.0)
    return float(f"{least:.1e}") if least > 16 else 1.0


def _whole_numbers(rng, shape, dtype):
    """Return small whole numbers."""
    return rng.integers(-8 if np.dtype(dtype).kind == "i" else 0, 9, shape).astype(dtype)


def _number(tensors, params, name, default=None):
    """Return a symbol's value: among the arguments, else in params, else as it was when the package was made."""
    value = tensors.get(name, (params or {}).get(name, default))
    if value is None:
        raise KeyError(f"`{name}` had no value when the package was made: give params={{'{name}': ...}}")
    return getattr(value, "value", value)


def _channel(depth, producers, consumers, initial=0):
    """A channel: its tokens, how many were sent, taken, and asked for without depth, and the streams that give and take with whose turn
    it is. As many tokens as it begins with may be left."""
    return {"depth": depth, "initial": initial, "tokens": [], "sent": 0, "taken": 0, "asked": 0,
            "gives": [list(producers), 0], "takes": [list(consumers), 0]}


def _event():
    """An event: how often it was recorded, and how often each stream has waited for it."""
    return {"records": 0, "waits": {}}


def _turn(ends):
    """Return the stream whose turn it is, None when all have ended."""
    streams, at = ends
    for k in range(at, at + len(streams)):
        if streams[k % len(streams)] is not None:
            ends[1] = k % len(streams)
            return streams[ends[1]]
    return None


def _send_token(channel, stream, token):
    """Give a token to a channel, when it has room for it."""
    def full():
        return channel["sent"] - channel["taken"] >= channel["depth"] if channel["depth"] else channel["asked"] <= channel["sent"]

    def lost():
        return _turn(channel["takes"]) is None and channel["sent"] - channel["taken"] >= channel["initial"]

    while _turn(channel["gives"]) != stream or lost() or full():
        yield
    channel["tokens"].append(token)
    channel["sent"] += 1
    channel["gives"][1] += 1


def _take_token(channel, stream):
    """Return the next token of a channel, None when it is closed and empty."""
    while channel["sent"] == channel["taken"] or _turn(channel["takes"]) != stream:
        if channel["sent"] == channel["taken"] and _turn(channel["gives"]) is None:
            return None
        if _turn(channel["takes"]) == stream and channel["asked"] == channel["sent"] == channel["taken"]:
            channel["asked"] += 1
        yield
    channel["taken"] += 1
    channel["takes"][1] += 1
    return channel["tokens"].pop(0)


def _await_event(event, stream):
    """Wait for the next record of an event that a stream has not waited for yet."""
    while event["records"] <= event["waits"].get(stream, 0):
        yield
    event["waits"][stream] = event["waits"].get(stream, 0) + 1


def _take_turns(processes, channels, events):
    """Let processes, by stream, take turns until all have ended."""
    while processes:
        before = (len(processes), repr(channels), repr(events))
        for stream, process in list(processes.items()):
            try:
                next(process)
            except StopIteration:
                del processes[stream]
                for channel in channels:
                    for ends in (channel["gives"], channel["takes"]):
                        ends[0] = [None if one == stream else one for one in ends[0]]
        if before == (len(processes), repr(channels), repr(events)):
            raise RuntimeError("no process can go on")
