"""Check kernel passes with the interpreter: a kernel computes the same numbers before and after each pass.

>>> check_kernel_passes(kernel, context)      # returns, or raises an InternalError that names the pass
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pto_wsp.errors import InternalError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.ir.scalar import Number
from pto_wsp.ops.rounding import Array
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.passes import KernelPass, run_kernel_passes
from pto_wsp.run.kernel_interpreter import run_kernel
from pto_wsp.values import dataclass

_SMALLEST_REGION, _LARGEST_REGION = 32, 1024
_PRODUCT_ULPS = 64      # BLAS sums in another order for operands of another layout


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The inputs of one run.

    `partial`: Tile parameters are bound to less than the tile. `special`: NaN, infinities, -0.0 and negative integers occur.
    """

    seed: int
    partial: bool = False
    special: bool = False
    scalar: int = 3


_RUNS = (_Inputs(1), _Inputs(2, partial=True, special=True), _Inputs(3, special=True, scalar=0), _Inputs(4, partial=True, scalar=1))


def check_kernel_passes(kernel: k.Kernel, context: KernelContext, passes: Sequence[KernelPass]) -> None:
    """Run the kernel before and after each pass on seeded arguments; compare the results, and the guard that ends each run.

    Results must be equal bit for bit, except kernels with float matrix products, compared within 64 ulp of the largest result.
    Raises: InternalError naming the pass and the kernel, with the IR before and after.
    """
    if not kernel.has_meaning:
        return   # a C or C++ body: no pass changes it
    runs = [_arguments(kernel, inputs) for inputs in _RUNS]

    def compare(name: str, before: k.Kernel, after: k.Kernel) -> None:
        if before == after:
            return
        for number, args in enumerate(runs):
            difference = _difference(before, after, args)
            if difference is not None:
                raise InternalError(f"pass `{name}` changed what kernel `{kernel.name}` computes: {difference} (run {number})",
                                    f"before {name}:\n{print_kernel(before)}\nafter {name}:\n{print_kernel(after)}")

    run_kernel_passes(kernel, context, tuple(passes), compare)


def difference_of(before: object, after: object) -> str | None:
    """Say in what a kernel computes other numbers than another; None where it does not, and for what the interpreter does not run."""
    if not isinstance(before, k.Kernel) or not isinstance(after, k.Kernel) or before == after or not before.has_meaning:
        return None
    try:
        runs = [_arguments(before, given) for given in _RUNS]
    except Exception:    # a form of loads that only a device has
        return None
    try:
        return next((found for args in runs if (found := _difference(before, after, args)) is not None), None)
    except Exception as problem:
        return f"it does not run: {type(problem).__name__}: {problem}"[:200]


def _difference(before: k.Kernel, after: k.Kernel, args: Mapping[str, Array | Number]) -> str | None:
    expected, results = _copy_arguments(args), _copy_arguments(args)
    failed, failed_after = run_kernel(before, expected), run_kernel(after, results)
    if failed != failed_after:
        ended = ["runs to its end" if guard is None else f"ends at guard {guard}" for guard in (failed, failed_after)]
        return f"it {ended[0]} before and {ended[1]} after"
    if failed is not None:
        return None   # results of a failed run are undefined
    ulps = _PRODUCT_ULPS if _multiplies(before) else 0
    for name, want in expected.items():
        got = results[name]
        if isinstance(want, np.ndarray) and isinstance(got, np.ndarray):
            wrong = ~_same(got, want, ulps)
            if wrong.any():
                at = tuple(int(i) for i in np.argwhere(wrong)[0])
                return f"`{name}` differs in {int(wrong.sum())} of {wrong.size} elements, first at {at}: {got[at]!r}, was {want[at]!r}"
    return None


def _same(found: Array, expected: Array, ulps: int) -> Array:
    """Return where two arrays have the same bits (NaN equals NaN), or differ by at most `ulps` of the largest element."""
    if not DType.from_numpy(found.dtype).is_real:
        return np.equal(found, expected)
    bits = np.dtype(f"u{found.dtype.itemsize}")
    same: Array = np.ascontiguousarray(found).view(bits) == np.ascontiguousarray(expected).view(bits)
    got, want = found.astype(np.float64), expected.astype(np.float64)
    same |= np.isnan(got) & np.isnan(want)
    if ulps:
        scale = np.abs(want[np.isfinite(want)]).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            same |= np.abs(got - want) <= ulps * float(np.finfo(np.float32).eps) * scale
    return same


def _multiplies(kernel: k.Kernel) -> bool:
    """Tell whether the kernel has a matrix product of floats."""
    for stmt in walk(kernel.body):
        match stmt:
            case k.Compute(result, op) if isinstance(find(op), Matmul) and result.type.dtype.is_float:
                return True
            case k.Accumulate(buffer) if buffer.type.dtype.is_float:
                return True
            case _:
                pass
    return False


def _arguments(kernel: k.Kernel, given: _Inputs) -> dict[str, Array | Number]:
    """Return arguments for one run, with regions large enough for the kernel to succeed, if some size is."""
    size = _SMALLEST_REGION
    while True:
        args = _draw_arguments(kernel, given, size)
        if size >= _LARGEST_REGION or run_kernel(kernel, _copy_arguments(args)) is None:
            return args
        size *= 2


def _draw_arguments(kernel: k.Kernel, given: _Inputs, size: int) -> dict[str, Array | Number]:
    rng = np.random.default_rng(given.seed)
    args: dict[str, Array | Number] = {}
    for param in kernel.params:
        match param:
            case k.TileParam(name, _, tile):
                shape = tile.shape
                if given.partial:
                    shape = (int(rng.integers(1, tile.rows + 1)), int(rng.integers(1, tile.cols + 1)))
                args[name] = _numbers(rng, shape, tile.dtype, given)
            case k.TensorParam(name, _, dtype):
                args[name] = _numbers(rng, (size, size), dtype, given)
            case k.ScalarParamDecl(name, dtype):
                args[name] = float(given.scalar) / 2 if dtype.is_float else given.scalar
    return args


def _numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: DType, given: _Inputs) -> Array:
    if dtype.is_bool:
        return rng.random(shape) < 0.5
    if not dtype.is_real:
        return rng.integers(-4 if given.special and dtype.np.kind == "i" else 0, 5, shape).astype(dtype.np)
    plain = rng.standard_normal(shape)
    if given.special:
        plain = np.where(rng.random(shape) < 0.05, rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], shape), plain)
    return plain.astype(dtype.np)


def _copy_arguments(args: Mapping[str, Array | Number]) -> dict[str, Array | Number]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in args.items()}
