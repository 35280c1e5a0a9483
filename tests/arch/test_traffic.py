"""How many bytes kernels move, counted by hand."""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.api.kernel import kernel
from pto_wsp.api.pto import pto
from pto_wsp.arch.kernel_cost import kernel_traffic
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar
from pto_wsp.trace.kernel.definition import KernelDef

F32, F16, I32 = DType.F32, DType.F16, DType.I32


def traffic(function: Callable[..., object], **leaves: int) -> int:
    """Return the bytes that one task moves; `leaves`: Scalar parameters by name, extents as name_dim."""
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
    return int(s.evaluate(kernel_traffic(kernel), leaf))


def test_what_is_bound_moves_in_its_own_dtype() -> None:
    def body(x: In[Tile[4, 8, F16]], y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(y, pto.cast(x * 2.0, F32) + 1.0)
    assert traffic(body, x_0=3, x_1=8, y_0=4, y_1=5) == 3 * 8 * 2 + 4 * 5 * 4


def test_what_the_cube_makes_moves_once_and_its_way_on_the_core_does_not_count() -> None:
    def body(a: In[Tile[4, 8, F32]], b: In[Tile[8, 2, F32]], y: Out[Tile[4, 2, F32]]) -> None:
        pto.store(y, pto.exp(a @ b))
    assert traffic(body, a_0=4, a_1=8, b_0=8, b_1=2, y_0=4, y_1=2) == (32 + 16 + 8) * 4


def test_a_loop_moves_what_each_turn_moves() -> None:
    def body(x: In[Tensor], n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
        acc = pto.alloc((4, 8), F32, init=0)
        for j in pto.range(n):
            acc += pto.load(x, (0, 0), shape=(4, 8), valid=(j, None))
        pto.store(y, acc)
    for n in (0, 1, 7):
        assert traffic(body, n=n, y_0=4, y_1=8) == 4 * (sum(min(j, 4) * 8 for j in range(n)) + 32)


def test_a_branch_moves_what_the_side_that_runs_moves() -> None:
    def body(x: In[Tile[4, 8, F32]], n: Scalar[I32], y: Out[Tile[4, 8, F32]], z: Out[Tile[4, 8, F32]]) -> None:
        with pto.when(n > 2):
            pto.store(y, x)
            pto.store(z, x)
        with pto.otherwise():
            pto.store(y, 0)
    sizes = {f"{name}_{dim}": size for name in "xyz" for dim, size in enumerate((4, 8))}
    assert traffic(body, n=3, **sizes) - traffic(body, n=2, **sizes) == 128


def test_picked_rows_move_as_many_as_are_valid() -> None:
    def body(x: In[Tile[4, 100, F32]], table: InOut[Tensor], n: Scalar[I32]) -> None:
        _, best = pto.topk(x, 1)
        pto.scatter_add(table, best, pto.gather(table, best, cols=(2, 10), valid=n))
    assert traffic(body, x_0=4, x_1=100, table_0=9, table_1=12, n=3) == 4 * (400 + 3 * 10 + 4 * 10)


def test_a_kernel_whose_work_is_not_known_moves_once_what_it_is_bound_to() -> None:
    @kernel(c_src="y[0] = 0;")
    def own(x: In[Tile[4, 8, F16]], state: InOut[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None: ...

    moved = kernel_traffic(own.specialise())
    extents = {"x": (3, 8), "state": (4, 4), "y": (1, 2)}

    def leaf(node: s.Scalar) -> int:
        assert isinstance(node, s.ParamExtent)
        return extents[node.name][node.dim]
    assert s.evaluate(moved, leaf) == 3 * 8 * 2 + 2 * (4 * 4 * 4) + 1 * 2 * 4
