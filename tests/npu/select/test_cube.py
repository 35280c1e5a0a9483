"""Selection for cube cores: programs of small kernels in goldens, and what many of them compute, poison around every valid part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, Scalar, Tensor, Tile, kernel, minimum, pto
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import CapacityError, CubeError
from pto_wsp.ir.kernel import TileParam
from pto_wsp.npu.isa.tile_program import Form, ParamAccess, TileProgram
from pto_wsp.npu.isa.tile_program_text import print_program
from pto_wsp.npu.plan.model import NpuKernel
from pto_wsp.npu.select.select import select
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.passes import TILE_PASSES, run_kernel_passes
from tests.conftest import Golden
from tests.npu.select.cube_run import run_cube
from tests.npu.select.kernels import ragged, whole

F32, F16, BF16, I8, I32 = DType.F32, DType.F16, DType.BF16, DType.I8, DType.I32
RESULT = {F32: F32, F16: F32, BF16: F32, I8: I32}


def cube_kernel(made: Kernel, access: dict[str, ParamAccess] | None = None, **given: object) -> NpuKernel:
    """Return a kernel for a cube core. `access`: of the parameters that are not plain tiles, whole and row-major."""
    ir = made.specialise(**given)
    ir = run_kernel_passes(ir, KernelContext(frozenset(p.name for p in ir.memory_params)), TILE_PASSES)
    plain = {p.name: whole(p.type.rows, p.type.cols) if isinstance(p, TileParam) else ParamAccess(0, 1) for p in ir.memory_params}
    return NpuKernel(ir, Unit.CUBE, tuple((access or {}).get(name, found) for name, found in plain.items()))


def program_of(use: NpuKernel, arch: str = "ascend_910b") -> TileProgram:
    """Return the tile program of a kernel for a cube core."""
    return select(use, builtin_arch(arch))


def numbers(shape: tuple[int, int], dtype: DType, seed: int = 0) -> np.ndarray:
    """Return whole numbers of which f16 and bf16 hold every one, and f32 every sum."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype.np)


def matmul(m: int, k: int, n: int, dtype: DType = F32, turn: str = "") -> Kernel:
    """Return out = a @ b; `turn`: which operands are given transposed."""
    a_shape, b_shape = (k, m) if "a" in turn else (m, k), (n, k) if "b" in turn else (k, n)

    @kernel
    def product(a: In[Tile[*a_shape, dtype]], b: In[Tile[*b_shape, dtype]], out: Out[Tile[m, n, RESULT[dtype]]]) -> None:
        pto.store(out, (a.T if "a" in turn else a) @ (b.T if "b" in turn else b))

    return product


def check(use: NpuKernel, args: dict[str, np.ndarray | int], expected: np.ndarray, arch: str = "ascend_910b") -> TileProgram:
    """Run a kernel whose result is `out` and return its program."""
    program = program_of(use, arch)
    run_cube(program, args)
    np.testing.assert_array_equal(args["out"], expected)
    return program


def product_of(a: np.ndarray, b: np.ndarray, dtype: DType) -> np.ndarray:
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(RESULT[dtype].np)


# ---- as text ----

def test_steps_of_the_inner_dimension(golden: Golden) -> None:
    golden(print_program(program_of(cube_kernel(matmul(32, 512, 128)))))


@kernel
def blocked(a: In[Tensor], b: In[Tensor], out: Out[Tile[64, 128, F32]]) -> None:
    total = pto.alloc((64, 128), F32, init=0)
    for k in pto.range(0, a.shape[1], 128):
        depth = minimum(128, a.shape[1] - k)
        rows = pto.load(a, (0, k), shape=(64, 128), valid=(a.shape[0], depth))
        cols = pto.load(b, (k, 0), shape=(128, 128), valid=(depth, b.shape[1]))
        total[:] = pto.matmul(rows, cols, total)
    pto.store(out, total)


def ragged_use(cols: int | None) -> NpuKernel:
    """Return `blocked` for tasks with any rows and columns of `out`, and `cols` columns of `a` in each."""
    access = {"a": ParamAccess(0, 1, cols=cols, row_group=0), "b": ParamAccess(0, 1, col_group=1),
              "out": ParamAccess(0, 1, row_group=0, col_group=1)}
    return cube_kernel(blocked, access, a=F32, b=F32)


def ungrouped(use: NpuKernel) -> NpuKernel:
    """Return a kernel of whose extents none are known to be equal."""
    return replace(use, access=tuple(replace(one, row_group=None, col_group=None) for one in use.access))


def test_sums_over_a_loop_with_ragged_ends(golden: Golden) -> None:
    golden(print_program(program_of(ragged_use(1000))))


def test_blocks_of_a_result_that_l0c_does_not_hold(golden: Golden) -> None:
    golden(print_program(program_of(cube_kernel(matmul(256, 96, 256, F16, "b")))))


def test_operands_that_l1_does_not_hold(golden: Golden) -> None:
    golden(print_program(program_of(cube_kernel(matmul(128, 4000, 128)))))


# ---- in numbers ----

SHAPES = [(16, 16, 16), (1, 64, 128), (16, 100, 5), (7, 3, 1), (33, 65, 129), (128, 512, 128), (64, 1000, 200), (256, 64, 256),
          (300, 70, 500), (17, 5000, 33), (2000, 16, 16), (16, 48, 3000)]


# Of large products one dtype each is a fast test.
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "shape"), [
    pytest.param(dtype, shape, id=f"{dtype}-{shape}", marks=pytest.mark.slow if np.prod(shape) > 1e6 and (at + number) % 4 else ())
    for number, dtype in enumerate(RESULT) for at, shape in enumerate(SHAPES)])
def test_products_of_every_shape(shape: tuple[int, int, int], dtype: DType) -> None:
    m, k, n = shape
    a, b = numbers((m, k), dtype), numbers((k, n), dtype, 1)
    for turn in ("", "a", "b", "ab"):
        for arch in ("ascend_910b", "ascend_950"):
            args = {"a": np.ascontiguousarray(a.T) if "a" in turn else a, "b": np.ascontiguousarray(b.T) if "b" in turn else b,
                    "out": np.zeros((m, n), RESULT[dtype].np)}
            check(cube_kernel(matmul(m, k, n, dtype, turn)), args, product_of(a, b, dtype), arch)


@pytest.mark.parametrize("k", [1, 127, 128, 129, 1000])
@pytest.mark.parametrize(("m", "n"), [(64, 128), (1, 1), (37, 100)])
def test_ragged_blocks(m: int, k: int, n: int) -> None:
    a, b = numbers((m, k), F32), numbers((k, n), F32, 1)
    check(ragged_use(k), {"a": a, "b": b, "out": np.zeros((m, n), np.float32)}, a @ b)


def test_sums_that_may_have_no_terms_are_refused() -> None:
    with pytest.raises(CubeError, match="zeros of `total`") as refused:
        program_of(ragged_use(None))
    assert refused.value.found == "a sum that may have no terms"


def test_rows_that_may_be_left_out_are_refused() -> None:
    with pytest.raises(CubeError, match="zeros of `total`"):
        program_of(ungrouped(ragged_use(1000)))


def test_nothing_is_done_for_an_empty_task() -> None:
    a, b = numbers((0, 128), F32), numbers((128, 128), F32)
    check(ragged_use(128), {"a": a, "b": b, "out": np.zeros((0, 128), np.float32)}, np.zeros((0, 128)))


@kernel
def several(a: In[Tile[40, 64, F16]], b: In[Tile[64, 48, F16]], c: In[Tile[40, 16, F16]], d: In[Tile[16, 48, F16]],
            out: Out[Tile[40, 48, F32]], other: Out[Tile[40, 40, F32]]) -> None:
    pto.store(out, a @ b + c @ d)
    pto.store(other, c @ c.T)


def test_sums_of_products_and_several_results() -> None:
    a, b, c, d = (numbers(shape, F16, seed) for seed, shape in enumerate([(40, 64), (64, 48), (40, 16), (16, 48)]))
    args = {"a": a, "b": b, "c": c, "d": d, "out": np.zeros((40, 48), np.float32), "other": np.zeros((40, 40), np.float32)}
    check(cube_kernel(several), args, product_of(a, b, F16) + product_of(c, d, F16))
    np.testing.assert_array_equal(args["other"], product_of(c, c.T, F16))


@kernel
def many(a: In[Tensor], b: In[Tensor], out: Out[Tensor], n: Scalar[I32]) -> None:
    for j in pto.range(n):
        rows = pto.load(a, (j * 48, 0), shape=(48, 80))
        one = rows @ pto.load(b, (0, 0), shape=(80, 160))
        pto.store(out, one, (j * 48, 0))
        two = rows @ pto.load(b, (0, 160), shape=(80, 40), valid=(80, 33))
        pto.store(out, two, (j * 48, 160), valid=(48, 33))


def test_products_inside_a_loop_store_in_every_turn() -> None:
    a, b = numbers((144, 80), BF16), numbers((80, 193), BF16, 1)
    check(cube_kernel(many, a=BF16, b=BF16, out=F32), {"a": a, "b": b, "out": np.zeros((144, 193), np.float32), "n": 3},
          product_of(a, b, BF16))


@kernel
def running(a: In[Tensor], b: In[Tensor], out: Out[Tensor]) -> None:
    """Stores the sum so far in every iteration, two results at a time."""
    one, two = pto.alloc((160, 160), F32, init=0), pto.alloc((160, 160), F32, init=0)
    for j in pto.range(4):
        rows, cols = pto.load(a, (0, j * 96), shape=(160, 96)), pto.load(b, (j * 96, 0), shape=(96, 160))
        one += rows @ cols
        two += cols.T @ rows.T
        pto.store(out, one, (j * 160, 0))
        pto.store(out, two, (j * 160, 160))


def test_results_that_do_not_fit_together_are_computed_one_after_the_other() -> None:
    a, b = numbers((160, 384), F32), numbers((384, 160), F32, 1)
    sums = [a[:, :(j + 1) * 96] @ b[:(j + 1) * 96] for j in range(4)]
    expected = np.concatenate([np.concatenate([total, total.T], axis=1) for total in sums])
    program = check(cube_kernel(running, a=F32, b=F32, out=F32), {"a": a, "b": b, "out": np.zeros((640, 320), np.float32)}, expected)
    assert sum(buffer.space.value == "L0C" for buffer in program.buffers) == 2


@kernel
def branched(a: In[Tensor], b: In[Tile[32, 16, F32]], out: Out[Tile[16, 16, F32]], n: Scalar[I32]) -> None:
    acc = pto.alloc((16, 16), F32, init=0)
    with pto.when(n > 2):
        acc += pto.load(a, (0, 0), shape=(16, 32)) @ b
    with pto.otherwise():
        acc += pto.load(a, (16, 0), shape=(16, 32)) @ b
        acc += pto.load(a, (32, 0), shape=(16, 32)) @ b
    for j in pto.range(n):
        acc += pto.load(a, (j * 16, 0), shape=(16, 32)) @ b
    pto.store(out, acc)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_both_sides_of_a_branch_may_start_a_sum(n: int) -> None:
    a, b = numbers((48, 32), F32), numbers((32, 16), F32, 1)
    parts = [a[at:at + 16] for at in (0, 16, 32)]
    total = sum([*parts[:n], *(parts[:1] if n > 2 else parts[1:])])
    check(cube_kernel(branched, a=F32), {"a": a, "b": b, "out": np.zeros((16, 16), np.float32), "n": n}, total @ b)


@kernel
def restarted(a: In[Tensor], b: In[Tile[32, 16, F32]], out: Out[Tile[16, 16, F32]]) -> None:
    acc = pto.alloc((16, 16), F32)
    for j in pto.range(3):
        acc[:] = pto.load(a, (j * 16, 0), shape=(16, 32)) @ b
    acc += pto.load(a, (48, 0), shape=(16, 32)) @ b
    pto.store(out, acc)


def test_a_product_that_is_written_to_a_buffer_starts_it_again() -> None:
    a, b = numbers((64, 32), F32), numbers((32, 16), F32, 1)
    check(cube_kernel(restarted, a=F32), {"a": a, "b": b, "out": np.zeros((16, 16), np.float32)}, (a[32:48] + a[48:]) @ b)


def test_a_parameter_that_is_bound_transposed_lies_turned_in_l1() -> None:
    turned = ParamAccess(1, 0, rows=64, cols=48, unit_cols=False, unit_rows=True)
    a, b = numbers((32, 64), F16), numbers((64, 48), F16, 1)
    program = check(cube_kernel(matmul(32, 64, 48, F16), {"b": turned}), {"a": a, "b": b, "out": np.zeros((32, 48), np.float32)},
                    product_of(a, b, F16))
    assert [tile.form for tile in program.tiles if tile.form in (Form.NZ, Form.ZN)] == [Form.NZ, Form.ZN]
    turned = replace(turned, rows=48, cols=64)
    both_ways = program_of(cube_kernel(matmul(32, 64, 48, F16, "b"), {"b": turned}))
    assert [tile.form for tile in both_ways.tiles if tile.form in (Form.NZ, Form.ZN)] == [Form.NZ, Form.NZ]


# ---- refused ----

@kernel
def from_one(a: In[Tile[16, 16, F32]], out: Out[Tile[16, 16, F32]]) -> None:
    acc = pto.alloc((16, 16), F32, init=1)
    acc += a @ a
    pto.store(out, acc)


@kernel
def chained(a: In[Tile[16, 16, F32]], out: Out[Tile[16, 16, F32]]) -> None:
    pto.store(out, (a @ a) @ a)


@kernel
def from_memory(a: In[Tile[16, 16, F32]], out: Out[Tile[16, 16, F32]]) -> None:
    pto.store(out, pto.matmul(a, a, a))


@kernel
def copied(a: In[Tile[16, 16, F32]], out: Out[Tile[16, 16, F32]]) -> None:
    pto.store(out, a)


@kernel
def filled(a: In[Tile[16, 16, F32]], out: Out[Tile[16, 16, F32]]) -> None:
    pto.store(out, a @ pto.load(a, (0, 0), shape=(16, 16), valid=(3, 16), fill=1))


@kernel
def sometimes(a: In[Tensor], out: Out[Tile[16, 16, F32]], n: Scalar[I32]) -> None:
    acc = pto.alloc((16, 16), F32, init=0)
    for j in pto.range(8):
        with pto.when(j > n):
            rows = pto.load(a, (j * 16, 0), shape=(16, 16))
            acc += rows @ rows
    pto.store(out, acc)


@kernel
def before(a: In[Tensor], b: In[Tile[16, 16, F32]], out: Out[Tile[16, 16, F32]], other: Out[Tile[16, 16, F32]]) -> None:
    acc = pto.alloc((16, 16), F32, init=0)
    for j in pto.range(3):
        acc += pto.load(a, (j * 32, 0), shape=(16, 16)) @ b
        pto.store(out, acc)
        acc += pto.load(a, (j * 32 + 16, 0), shape=(16, 16)) @ b
    pto.store(other, acc)


@pytest.mark.parametrize(("made", "message"), [
    (from_one, "`acc` starts from 1"), (chained, "multiplies what another product gave"), (from_memory, "starts from a tile in memory"),
    (copied, "a tile is copied"), (filled, "outside its valid part"), (sometimes, "an iteration of a loop that is known only at run time"),
], ids=lambda value: getattr(value, "name", ""))
def test_what_the_cube_core_cannot_do_is_refused_at_its_line(made: Kernel, message: str) -> None:
    with pytest.raises(CubeError, match=message) as refused:
        program_of(cube_kernel(made, **({"a": F32} if made is sometimes else {})))
    assert "test_cube.py" in str(refused.value.span)


@pytest.mark.parametrize("dtype", [DType.F64, DType.I32, DType.I64], ids=str)
def test_other_dtypes_are_refused(dtype: DType) -> None:
    @kernel
    def product(a: In[Tile[16, 16, dtype]], out: Out[Tile[16, 16, dtype]]) -> None:
        pto.store(out, a @ a)

    with pytest.raises(CubeError, match=f"does not multiply {dtype}"):
        program_of(cube_kernel(product))


def test_gaps_in_both_directions_are_refused() -> None:
    gaps = ParamAccess(0, 1, 1, 2, rows=16, cols=16, unit_cols=False)
    with pytest.raises(CubeError, match="gaps between neighbours"):
        program_of(cube_kernel(matmul(16, 16, 16), {"b": gaps}))


def test_stores_to_what_is_loaded_do_not_move_over_each_other() -> None:
    from pto_wsp import InOut

    @kernel
    def again(a: InOut[Tile[256, 256, F32]]) -> None:
        pto.store(a, a @ a)

    with pytest.raises(CapacityError, match="do not fit L0C"):
        program_of(cube_kernel(again))


def test_a_running_sum_is_stored_where_it_stands() -> None:
    a, b = numbers((96, 16), F32), numbers((16, 16), F32, 1)
    args = {"a": a, "b": b, "out": np.zeros((16, 16), np.float32), "other": np.zeros((16, 16), np.float32)}
    parts = a.reshape(6, 16, 16)
    check(cube_kernel(before, a=F32), args, parts[:5].sum(axis=0) @ b)
    np.testing.assert_array_equal(args["other"], parts.sum(axis=0) @ b)


def test_ragged_parameters_are_read_from_the_descriptor() -> None:
    rows = {name: replace(ragged(access), row_group=0) for name, access in (("a", whole(32, 64)), ("out", whole(32, 48)))}
    use = cube_kernel(matmul(32, 64, 48), rows)
    a, b = numbers((9, 64), F32), numbers((64, 48), F32, 1)
    check(use, {"a": a, "b": b, "out": np.zeros((9, 48), np.float32)}, a @ b)
