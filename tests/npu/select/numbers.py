"""What ops compute on vector cores: a kernel of one op, selected, run as a tile program, against its NumPy meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp import DType, In, Out, Tile, kernel, pto
from pto_wsp.api.kernel import Kernel
from pto_wsp.arch.instances import builtin_arch
from tests.npu.plan.tile_machine import run
from tests.npu.select.kernels import selected

Array = npt.NDArray[Any]
ON_CHIP = (DType.F32, DType.F16, DType.BF16, DType.I32, DType.I16, DType.I8, DType.U8, DType.U16, DType.U32)
INTEGERS = ON_CHIP[3:]
SHAPE = (8, 40)


def kernel_of(op: Callable[..., Any], inputs: tuple[Array, ...], out: tuple[int, int, DType]) -> Kernel:
    """Return a kernel that stores what `op` makes of tiles like the inputs."""
    names = [f"x{i}" for i in range(len(inputs))]
    scope: dict[str, Any] = {"pto": pto, "op": op}
    exec(f"def body({', '.join((*names, 'out'))}):\n    pto.store(out, op({', '.join(names)}))", scope)
    body = scope["body"]
    tiles = [In[Tile[(*x.shape, DType.from_numpy(x.dtype))]] for x in inputs]
    body.__annotations__ = {**dict(zip(names, tiles, strict=True)), "out": Out[Tile[out]]}
    return kernel(body)


def check(op: Callable[..., Any], *inputs: Array, out: tuple[int, int, DType], rtol: float = 0.0, atol: float = 0.0,
          arch: str = "ascend_910b") -> None:
    """Hold an op on vector cores to NumPy: bit for bit unless there is a tolerance; which zero, and which NaN, is left open."""
    made = kernel_of(op, inputs, out)
    found, wanted = np.zeros(out[:2], out[2].np), np.zeros(out[:2], out[2].np)
    family = builtin_arch(arch).family
    run(selected(made, arch=arch), {**{f"x{i}": x for i, x in enumerate(inputs)}, "out": found}, family=family)
    made.run(*inputs, wanted)
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True)


def numbers(dtype: DType, shape: tuple[int, int] = SHAPE, seed: int = 0) -> Array:
    """Return numbers of all magnitudes: small ones in rows of their own, large ones, the edges of the dtype."""
    rng = np.random.default_rng(seed)
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_float:
        x = rng.standard_normal(shape).astype(np.float32)
        for row, size in ((1, 1e-3), (2, 1e-6), (3, 1e-20), (4, 10), (5, 100)):
            x[row % shape[0]] *= size
        x[0, :8] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5]
        x[-1, :8] = [1e30, -1e30, 8388608, 8388609, -4194304.5, 2.5, -2.5, 1.5]
        with np.errstate(over="ignore"):
            return x.astype(dtype.np)
    limits = np.iinfo(dtype.np)
    whole = rng.integers(limits.min, limits.max, shape, dtype=dtype.np, endpoint=True)
    whole[0, :5] = [0, 1, limits.max, limits.min, 2]
    whole[1] = rng.integers(0, 9, shape[1]).astype(dtype.np)
    return whole
