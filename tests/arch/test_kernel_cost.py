"""What kernels cost on `unit`, counted by hand; what the arch models say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from pto_wsp.api.kernel import kernel
from pto_wsp.api.pto import pto
from pto_wsp.arch.instances import ARCH_NAMES, builtin_arch
from pto_wsp.arch.kernel_cost import kernel_cost
from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchError, ArgumentDTypeError, ArgumentKindError, CompileOptionError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar
from pto_wsp.trace.kernel.definition import KernelDef

ARCHS = tuple(builtin_arch(name) for name in ARCH_NAMES)
unit, ascend_910b, ascend_950, host_cpu = ARCHS

F32, I32 = DType.F32, DType.I32


def cycles(function: Callable[..., object], **leaves: int) -> int:
    """Return the cost of a kernel; `leaves`: Scalar parameters by name, extents as name_dim."""
    definition = KernelDef.from_function(function, {})
    kernel = definition.trace({}, {p.name: F32 for p in definition.params})

    def leaf(node: s.Scalar) -> int:
        match node:
            case s.ParamScalar(name):
                return leaves[name]
            case s.ParamExtent(name, dim):
                return leaves[f"{name}_{dim}"]
            case _:
                raise AssertionError(node)
    return int(s.evaluate(kernel_cost(kernel, unit), leaf))


def test_rmsnorm() -> None:
    def body(x: In[Tile[16, 128, F32]], y: Out[Tile[16, 128, F32]]) -> None:
        pto.store(y, x * pto.rsqrt(pto.rowmean(x * x)))
    tile = 16 * 128
    assert cycles(body, x_0=16, x_1=128, y_0=16, y_1=128) == tile + tile + tile + 16 + tile + tile


def test_a_short_tile_moves_what_is_bound() -> None:
    def body(x: In[Tile[16, 128, F32]], y: Out[Tile[16, 128, F32]]) -> None:
        pto.store(y, x)
    assert cycles(body, x_0=3, x_1=128, y_0=5, y_1=2) == 3 * 128 + 5 * 2


def test_an_order_costs_a_logarithm_more_and_picked_rows_what_they_move() -> None:
    def body(x: In[Tile[4, 100, F32]], table: InOut[Tensor], n: Scalar[I32]) -> None:
        _, best = pto.topk(x, 1)                                  # 4 * 100 * 7, and its elements: the tile that is picked from
        pto.scatter_add(table, best, pto.gather(table, best, cols=(2, 10), valid=n))
    assert cycles(body, x_0=4, x_1=100, table_0=9, table_1=12, n=3) == 400 + 4 * 100 * 7 + 400 + 3 * 10 + 4 * 10


def branch(x: In[Tile[4, 8, F32]], n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
    """One side costs three tile ops and a store, the other a store and what it is made of."""
    with pto.when(n > 2):
        pto.store(y, x * 2 + 1 - x)
    with pto.otherwise():
        pto.store(y, 0)


@pytest.mark.parametrize("n, ops", [(3, 3), (2, 1)])
def test_a_branch_costs_the_side_that_runs(n: int, ops: int) -> None:
    assert cycles(branch, n=n, x_0=4, x_1=8, y_0=4, y_1=8) == 32 + ops * 32 + 32


def test_a_branch_in_a_loop_costs_each_turn_its_side() -> None:
    def body(x: In[Tile[4, 8, F32]], n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
        acc = pto.alloc((4, 8), F32, init=0)
        for j in pto.range(n):
            with pto.when(j % 3 == 0):
                acc += x
        pto.store(y, acc)
    assert cycles(body, n=7, x_0=4, x_1=8, y_0=4, y_1=8) == 32 + 3 * 32 + 32


def test_a_matmul_costs_mkn() -> None:
    def body(a: In[Tile[4, 8, F32]], b: In[Tile[8, 2, F32]], c: In[Tile[4, 2, F32]], y: Out[Tile[4, 2, F32]]) -> None:
        pto.store(y, pto.matmul(a, b, acc=c))
    assert cycles(body, a_0=4, a_1=8, b_0=8, b_1=2, c_0=4, c_1=2, y_0=4, y_1=2) == 32 + 16 + 8 + 4 * 8 * 2 + 8


def test_buffers_are_free_and_a_loop_multiplies() -> None:
    def body(n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
        acc = pto.alloc((4, 8), F32, init=0)
        for _ in pto.range(1, n, 2):
            acc += 1
        pto.store(y, acc)
    for n, trips in ((0, 0), (1, 0), (2, 1), (6, 3)):
        assert cycles(body, n=n, y_0=4, y_1=8) == trips * 32 + 32


def test_a_loop_whose_body_depends_on_its_variable_is_a_sum() -> None:
    def body(n: Scalar[I32], x: In[Tensor], y: Out[Tile[4, 8, F32]]) -> None:
        acc = pto.alloc((4, 8), F32, init=0)
        for j in pto.range(n):
            acc += pto.load(x, (0, 0), shape=(4, 8), valid=(j, None))
        pto.store(y, acc)
    assert cycles(body, n=6, y_0=4, y_1=8) == sum(min(j, 4) * 8 + 32 for j in range(6)) + 32


def test_a_loop_inside_a_loop() -> None:
    def body(n: Scalar[I32], y: Out[Tensor]) -> None:
        for i in pto.range(n):
            for j in pto.range(i):
                pto.store(y, 1, (i, j))
    assert cycles(body, n=5) == sum(2 * i for i in range(5))


def test_an_arch_that_does_not_say_how_fast_it_is_gives_no_cost() -> None:
    def body(y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(y, 0)
    kernel = KernelDef.from_function(body, {}).trace({}, {})
    with pytest.raises(CompileOptionError, match="ascend_950") as refused:
        kernel_cost(kernel, ascend_950)
    assert "units[vector].bytes_per_cycle" in str(refused.value) and 'arch.with_unit(\'vector\'' in str(refused.value)


def test_the_numbers_of_the_models() -> None:
    assert [arch.name for arch in ARCHS] == ["unit", "ascend_910b", "ascend_950", "host_cpu"]
    assert (ascend_910b.cores.cube, ascend_910b.cores.vector) == (24, 48)
    assert ascend_910b.memory("UB").usable_bytes == 184 * 1024
    assert {name: ascend_910b.memory(name).capacity_bytes for name in ("L1", "L0A", "L0B", "L0C")} == {
        "L1": 512 << 10, "L0A": 64 << 10, "L0B": 64 << 10, "L0C": 128 << 10}
    assert ascend_950.memory("UB").capacity_bytes == ascend_950.memory("L0C").capacity_bytes == 256 << 10
    assert unit.memory("UB").usable_bytes is None and unit.clock_ghz == 1.0 and unit.aicpu.default_count == 4
    with pytest.raises(CompileOptionError, match="no memory"):
        unit.memory("UBX")


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_a_model_comes_back_from_json(arch: Arch) -> None:
    assert Arch.model_validate_json(arch.model_dump_json()) == arch


def test_a_model_is_frozen_and_knows_its_fields() -> None:
    with pytest.raises(ValidationError):
        unit.name = "other"
    with pytest.raises(ArchError, match="speed"):
        Arch(name="x", speed=3)  # type: ignore[call-arg]


def test_every_number_says_where_it_comes_from() -> None:
    for model in (type(unit.memory("GM")), type(unit.units[0]), type(unit.aicpu), type(unit.cores)):
        for name, field in model.model_fields.items():
            assert name == "name" or "Source:" in (field.description or ""), f"{model.__name__}.{name}"


def summed(n: Scalar[DType.I32], x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    total = pto.alloc((1, 8), DType.F32, init=0)
    for i in pto.range(n):
        with pto.when(i % 3 == 0):
            total += x
    pto.store(y, total)


@pytest.mark.slow
def test_a_loop_is_added_up_turn_by_turn_only_while_that_is_quick() -> None:
    assert kernel(summed).cost(n=300).total == kernel(summed).cost(n=0).total + 100 * 8
    with pytest.raises(ArgumentKindError, match="too many iterations"):
        _ = kernel(summed).cost(n=1 << 30)


@pytest.mark.parametrize("bound", [1.5, 1 << 40])
def test_a_bound_that_does_not_fit_its_dtype_is_refused(bound: float) -> None:
    with pytest.raises(ArgumentDTypeError, match="`n` does not fit i32"):
        _ = kernel(summed).cost(n=bound)
