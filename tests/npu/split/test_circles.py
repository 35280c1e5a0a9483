"""Kernels whose products and vector work need each other in turn: chains of parts, which share kernels and give what the loop gives."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, kernel, pto
from pto_wsp.errors import MixedKernelError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.flow import leaves
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.ops.rounding import Array
from tests.npu.split.test_mixed_kernels import both, cores, names, random

F32, I32 = DType.F32, DType.I32
S = 16
TILE = Tile[S, S, F32]


def small(*shape: int, seed: int = 0) -> Array:
    return 0.3 * random(*shape, seed=seed)


def empty(*shape: int) -> Array:
    return np.zeros(shape or (S, S), np.float32)


@kernel
def recur(x: In[TILE], w: In[TILE], y: Out[TILE]) -> None:
    h = pto.alloc((S, S), F32)
    h[:] = x
    for _ in pto.range(4):
        h[:] = pto.relu(h @ w)
    pto.store(y, h)


def test_a_loop_is_a_chain_whose_turns_share_kernels() -> None:
    plan = both(recur, x=small(S, S), w=small(S, S, seed=1), y=empty())
    assert cores(plan) == ["c", "v"] * 4
    assert names(plan) == ["recur_product", "recur_h", *["recur_product_2", "recur_h"] * 2, "recur_product_2", "recur_y"]
    assert len(plan.kernels) == 4


def test_a_chain_that_the_user_wrote_out_shares_kernels_too() -> None:
    @kernel
    def written(x: In[TILE], w: In[TILE], y: Out[TILE]) -> None:
        h = x
        for _ in range(4):
            h = pto.relu(h @ w)
        pto.store(y, h)

    plan = both(written, x=small(S, S), w=small(S, S, seed=1), y=empty())
    assert cores(plan) == ["c", "v"] * 4
    assert len(plan.kernels) == 4


def test_newton_schulz_iterations_take_products_of_products() -> None:
    @kernel
    def orthogonal(x: In[TILE], y: Out[TILE]) -> None:
        t = pto.alloc((S, S), F32)
        t[:] = x * pto.rsqrt(pto.colsum(pto.rowsum(x * x)))
        for _ in pto.range(5):
            a = t @ t.T
            t[:] = t * 3.4445 + (a * -4.7750 + a @ a * 2.0315) @ t
        pto.store(y, t)

    plan = both(orthogonal, x=random(S, S), y=empty())
    assert cores(plan) == ["v", *["c", "c", "v", "c", "v"] * 5]
    assert len(plan.kernels) <= 7


def test_a_product_of_its_own_result_needs_no_vector_work() -> None:
    @kernel
    def power(w: In[TILE], y: Out[TILE]) -> None:
        total = pto.alloc((S, S), F32, init=1)
        for _ in pto.range(3):
            total += total @ w
        pto.store(y, total)

    assert cores(both(power, w=small(S, S), y=empty())) == ["v", *["c", "v"] * 3]


@pytest.mark.parametrize("n", [0, 2, 9])
def test_a_cell_takes_its_own_step_of_the_input_and_may_skip_work(n: int) -> None:
    @kernel
    def cell(x: In[Tensor], u: In[TILE], w: In[TILE], n: Scalar[I32], y: Out[Tensor]) -> None:
        h = pto.alloc((S, S), F32, init=0)
        for t in pto.range(4):
            h[:] = pto.tanh(pto.load(x, (t * S, 0), shape=(S, S)) @ u + h @ w)
            with pto.when(n > t):
                h[:] = pto.relu(h @ w)
                with pto.when(n > 5):
                    h[:] = h + 1
            with pto.otherwise():
                h[:] = h * 0.5
            pto.store(y, h, (t * S, 0))

    both(cell, x=random(4 * S, S), u=small(S, S, seed=3), w=small(S, S), n=n, y=empty(4 * S, S))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_circles_of_nested_loops_are_opened_and_other_loops_stay(n: int) -> None:
    @kernel
    def nested(x: In[Tensor], w: In[TILE], n: Scalar[I32], y: Out[TILE]) -> None:
        h = pto.alloc((S, S), F32, init=1)
        for i in pto.range(3):
            for j in pto.range(i + 1):             # bounds that are known once the outer loop is written out
                acc = pto.alloc((S, S), F32, init=0)
                for at in pto.range(n):
                    acc += h @ pto.load(x, ((at + j) * S, 0), shape=(S, S))
                h[:] = pto.relu(acc)
            with pto.when(i > 0):                  # settled in each iteration
                h[:] = h @ w + 1
        pto.store(y, h)

    plan = both(nested, x=small(6 * S, S), w=small(S, S), n=n, y=empty())
    assert cores(plan) == ["v", *["c", "v"] * 8]
    assert not [stmt for made in plan.kernels for stmt in walk(made.kernel.body) if isinstance(stmt, k.If)]
    assert max(sum(isinstance(stmt, k.For) for stmt in walk(made.kernel.body)) for made in plan.kernels) == 1


@pytest.mark.parametrize("n", [0, 1])
def test_a_branch_needs_no_loop_to_change_what_it_multiplies(n: int) -> None:
    """The buffer, not a turn, is what ties the parts: it becomes several."""
    @kernel
    def once(x: In[TILE], w: In[TILE], n: Scalar[I32], y: Out[TILE]) -> None:
        h = pto.alloc((S, S), F32, init=2)
        with pto.when(n > 0):
            h[:] = pto.relu(x @ w)
            h[:] = h @ w - 1
        pto.store(y, h @ w + h)

    both(once, x=small(S, S), w=small(S, S, seed=1), n=n, y=empty())


@pytest.mark.parametrize("n", [0, 3])
def test_a_buffer_that_each_turn_makes_is_no_circle_of_the_loop(n: int) -> None:
    @kernel
    def rows(x: In[Tensor], w: In[TILE], n: Scalar[I32], y: InOut[Tensor]) -> None:
        for i in pto.range(n):
            h = pto.alloc((S, S), F32, init=1)
            with pto.when(i > 0):
                h[:] = pto.relu(pto.load(x, (i * S, 0), shape=(S, S)) @ w)
            pto.store(y, pto.exp(h @ w * 0.1), (i * S, 0))

    both(rows, x=small(4 * S, S), w=small(S, S, seed=1), n=n, y=random(4 * S, S))


def test_state_in_memory_goes_round_as_well() -> None:
    @kernel
    def remembered(w: In[TILE], state: InOut[TILE]) -> None:
        for _ in pto.range(3):
            pto.store(state, pto.tanh(pto.load(state) @ w))

    plan = both(remembered, w=random(S, S), state=random(S, S, seed=1))
    assert cores(plan).count("c") == 3


def counted(turns: int, products: int = 1) -> Kernel:
    @kernel
    def long(x: In[TILE], w: In[TILE], y: Out[TILE]) -> None:
        h = pto.alloc((S, S), F32)
        h[:] = x
        for _ in pto.range(turns):
            for _ in range(products):
                h[:] = pto.relu(h @ w)
        pto.store(y, h)

    return long


@pytest.mark.slow
@pytest.mark.parametrize(("turns", "products"), [(64, 1), (64, 2)])
def test_as_many_turns_as_are_allowed(turns: int, products: int) -> None:
    plan = both(counted(turns, products), x=small(S, S), w=small(S, S, seed=1), y=empty())
    assert len(tuple(leaves(plan.body))) == 2 * turns * products
    assert len(plan.kernels) <= 6


@pytest.mark.parametrize(("turns", "products"), [(65, 1), (43, 3)])
def test_more_turns_are_refused(turns: int, products: int) -> None:
    with pytest.raises(MixedKernelError, match=f"{turns} iterations with {turns * products} products"):
        both(counted(turns, products), x=small(S, S), w=small(S, S), y=empty())


def test_bounds_that_all_tasks_share_are_constant() -> None:
    @kernel
    def wide(w: In[TILE], x: In[Tensor], y: Out[TILE]) -> None:
        h = pto.alloc((S, S), F32, init=1)
        for at in pto.range(0, x.shape[1], S):
            h[:] = pto.relu(h @ w + pto.load(x, (0, at), shape=(S, S)))
        pto.store(y, h)

    assert cores(both(wide, w=small(S, S), x=random(S, 3 * S), y=empty())).count("c") == 3
