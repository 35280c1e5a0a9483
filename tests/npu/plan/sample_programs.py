"""Tile programs of kernels that people write: what passes and checks of tile programs are tried on."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, kernel, pto
from pto_wsp.ir import scalar as s
from pto_wsp.npu.isa.tile_program import ParamAccess, TileProgram
from tests.npu.select.kernels import ragged, selected, whole
from tests.npu.select.test_cube import cube_kernel, matmul, program_of

F32, F16 = DType.F32, DType.F16


@kernel
def rmsnorm(x: In[Tile[16, 128, F32]], gamma: In[Tile[1, 128, F32]], out: Out[Tile[16, 128, F32]], eps: Scalar[F32]) -> None:
    """One tile, row statistics, a broadcast."""
    mean = pto.rowmean(x * x)
    pto.store(out, x / pto.sqrt(mean + eps) * gamma)


@kernel
def scale(x: In[Tile[16, 128, F32]], y: Out[Tile[16, 128, F32]], by: Scalar[F32]) -> None:
    """Elementwise, on as many rows as the task has."""
    pto.store(y, pto.relu(x) * by)


@kernel
def stream(x: In[Tensor], y: Out[Tensor], n: Scalar[DType.I32]) -> None:
    """A loop that loads, computes and stores: every buffer between pipes has two copies."""
    for j in pto.range(n):
        tile = pto.load(x, (j * 16, 0), shape=(16, 64))
        pto.store(y, tile * 2.0, (j * 16, 0))


@kernel
def total(x: In[Tensor], y: Out[Tile[16, 64, F32]], n: Scalar[DType.I32]) -> None:
    """A loop that adds up in a buffer."""
    acc = pto.alloc((16, 64), F32, init=0)
    for j in pto.range(n):
        acc += pto.load(x, (j * 16, 0), shape=(16, 64))
    pto.store(y, acc)


@kernel
def nested(x: In[Tensor], w: In[Tensor], y: Out[Tensor], n: Scalar[DType.I32], m: Scalar[DType.I32]) -> None:
    """A loop in a loop, with something loaded in each."""
    for i in pto.range(n):
        row = pto.load(x, (i * 16, 0), shape=(16, 64))
        acc = pto.alloc((16, 64), F32, init=0)
        for j in pto.range(m):
            acc += row * pto.load(w, (j * 16, 0), shape=(16, 64))
        pto.store(y, acc, (i * 16, 0))


@kernel
def in_place(x: InOut[Tensor], n: Scalar[DType.I32]) -> None:
    """Global memory that is written and read again."""
    for j in pto.range(n):
        pto.store(x, pto.load(x, (j * 16, 0), shape=(16, 64)) + pto.load(x, (0, 0), shape=(16, 64)), (j * 16 + 16, 0))


@kernel
def halves(x: In[Tensor], y: Out[Tensor], n: Scalar[DType.I32]) -> None:
    """Branches in a loop."""
    for j in pto.range(n):
        tile = pto.load(x, (j * 16, 0), shape=(16, 64))
        with pto.when(j < 2):
            pto.store(y, tile * 0.5, (j * 16, 0))
        with pto.otherwise():
            pto.store(y, pto.exp(tile), (j * 16, 0))


def _access(*names: str) -> dict[str, ParamAccess]:
    return {name: ParamAccess(0, 1, cols=64) for name in names}


def sample_programs() -> Mapping[str, TileProgram]:
    """Return programs by name, as selection makes them."""
    rows: dict[str, ParamAccess] = {name: ragged(whole(16, 128)) for name in ("x", "y")}
    tensors: Mapping[str, tuple[Kernel, dict[str, ParamAccess]]] = {
        "stream": (stream, _access("x", "y")), "total": (total, _access("x")), "nested": (nested, _access("x", "w", "y")),
        "in_place": (in_place, _access("x")), "halves": (halves, _access("x", "y"))}
    found = {"rmsnorm": selected(rmsnorm), "scale": selected(scale, rows)}
    for name, (made, access) in tensors.items():
        found[name] = selected(made, access, **dict.fromkeys(access, F32))
    found["matmul"] = program_of(cube_kernel(matmul(32, 512, 128)))
    found["blocks"] = program_of(cube_kernel(matmul(256, 256, 256, F16)))
    return found


def leaf_of(turns: int) -> Mapping[s.Scalar, s.Number]:
    """Return values for what sample programs are told at run time."""
    return _Told(turns)


class _Told(dict[s.Scalar, s.Number]):
    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns = turns

    def __missing__(self, leaf: s.Scalar) -> s.Number:
        match leaf:
            case s.ParamScalar(_, dtype):
                return 1.5 if dtype.is_float else self.turns
            case s.ParamExtent():
                return 12
            case _:
                raise KeyError(leaf)

