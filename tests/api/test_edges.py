"""What a newcomer tries at the edges: it works, or it says what to do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DispatchPolicy,
    DType,
    In,
    Kernel,
    Out,
    P,
    PtoError,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    kernel,
    pto,
    timeline,
    workload,
)

F32 = DType.F32


@kernel
def double(x: In[Tile[1, 8, F32]], o: Out[Tile[1, 8, F32]]):
    pto.store(o, x * 2)


def pair() -> tuple[Tensor, Tensor]:
    return Tensor(np.ones((4, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(PtoError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))], ids=["copy", "deepcopy", "pickle"])
def test_a_copied_tensor_is_a_tensor_of_its_own(again: Callable[[Tensor], Tensor]) -> None:
    X, Z = pair()
    Y = again(X)
    Y.data = np.full((4, 8), 100, np.float32)

    @workload
    def both() -> None:
        double(X[0], Z[0])
        double(Y[0], Z[1])

    both().compile(target="interp").run()
    assert Z.data is not None and Z.data[:2, 0].tolist() == [2, 200]


def test_a_loop_variable_of_another_workload_is_refused() -> None:
    X, Z = pair()
    leaked: list[object] = []

    @workload
    def first() -> None:
        for i in P(3):
            leaked.append(i)
            double(X[i], Z[i])

    @workload
    def second() -> None:
        for j in P(3):
            double(X[leaked[0]], Z[j])

    first()
    assert code_of(second) == "W103"


def test_a_scalar_of_another_kernel_is_refused() -> None:
    leaked: list[object] = []

    @kernel
    def first(n: Scalar[DType.F32], o: Out[Tile[1, 8, F32]]):
        leaked.append(n)
        pto.store(o, n)

    @kernel
    def second(o: Out[Tile[1, 8, F32]]):
        pto.store(o, leaked[0])

    assert first.ir and code_of(lambda: second.ir) == "T206"


def test_kernels_do_not_call_kernels() -> None:
    X, Z = pair()

    @kernel
    def outer(x: In[Tile[1, 8, F32]], o: Out[Tile[1, 8, F32]]):
        double(x, o)
        pto.store(o, x)

    @workload
    def calls() -> None:
        outer(X[0], Z[0])

    assert code_of(calls) == "K105"


@pytest.mark.parametrize("body", ["zip", "next"])
def test_loops_are_looped_over_one_by_one(body: str) -> None:
    X, Z = pair()
    kept = []

    @workload
    def both() -> None:
        if body == "zip":
            for i, j in zip(P(3), P(3), strict=False):
                double(X[i], Z[j])
        else:
            kept.append(P(3))
            i = next(kept[0])
            double(X[i], Z[i])

    assert code_of(both) == {"zip": "W102", "next": "K103"}[body]


def test_workloads_are_plain_functions() -> None:
    def generator() -> object:
        yield

    async def coroutine() -> None: ...

    for function in (generator, coroutine, 3):
        assert code_of(lambda function=function: workload(function)) == "W102"  # type: ignore[misc]


def test_a_workload_that_calls_itself_without_end_is_refused() -> None:
    @workload
    def forever() -> None:
        forever()

    assert code_of(forever) == "W114"


def test_integers_that_do_not_fit_are_refused() -> None:
    @kernel
    def fill(n: Scalar[DType.I8], o: Out[Tile[1, 8, DType.I8]]):
        pto.store(o, n)

    Z = Tensor(np.zeros((1, 8), np.int8))
    n = Symbol("n", DType.I8)

    @workload
    def constant() -> None:
        fill(300, Z)

    @workload
    def symbol() -> None:
        fill(n, Z)

    assert code_of(constant) == "T102" and code_of(lambda: fill.run(300)) == "T102"
    assert code_of(lambda: symbol().compile(target="interp").run(n=200)) == "R102"
    assert code_of(lambda: Dense[2**64]()) == "W106"
    symbol().compile(target="interp").run(n=-128)
    assert Z.data is not None and (Z.data == -128).all()


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_loop_up_to_the_largest_integer_ends(target: str) -> None:
    @kernel
    def count(n: Scalar[DType.I64], o: Out[Tile[1, 1, F32]]):
        steps = pto.alloc((1, 1), F32, init=0)
        for _ in pto.range(n, 2**63 - 1, 3):
            steps += 1
        pto.store(o, steps)

    Z, n = Tensor(np.zeros((1, 1), np.float32)), Symbol("n")

    @workload
    def once() -> None:
        count(n, Z)

    once().compile(target=target).run(n=2**63 - 5)
    assert Z.data is not None and Z.data[0, 0] == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize("width", [1, 3, 16, 33])
def test_a_cast_to_an_integer_and_back_loses_the_sign_of_zero(target: str, width: int) -> None:
    @kernel
    def there_and_back(x: In[Tile[1, width, F32]], o: Out[Tile[1, width, F32]]):
        pto.store(o, 1 / pto.cast(pto.cast(x, DType.I32), F32))

    X, Z = Tensor(np.full((1, width), -0.3, np.float32)), Tensor(np.zeros((1, width), np.float32))

    @workload
    def once() -> None:
        there_and_back(X, Z)

    once().compile(target=target).run()
    assert Z.data is not None and (Z.data == np.inf).all()


def test_annotations_see_the_functions_around_the_factory() -> None:
    def factory() -> Kernel:
        T = Tile[4, 8, F32]   # only named in annotations, which are text here

        def inner() -> Kernel:
            @kernel
            def f(x: In[T], o: Out[T]):
                pto.store(o, x)
            return f
        return inner()

    assert repr(factory()) == "kernel f(x: In[Tile[4, 8, f32]], o: Out[Tile[4, 8, f32]])"


def test_numpy_integers_are_integers() -> None:
    X, _ = pair()
    assert DispatchPolicy.round_robin(np.int64(4)) == DispatchPolicy.round_robin(4)  # type: ignore[arg-type]
    assert X.clip(np.int64(2), 8).view == X.clip(2, 8).view and X.reshape(np.int64(2), 16).view == X.reshape(2, 16).view


def test_what_has_no_meaning_says_so() -> None:
    X, Z = pair()
    calls: list[Callable[[], object]] = [
        lambda: X + Z, lambda: X @ Z, lambda: X.__setitem__(0, 1), lambda: bool(X), lambda: Symbol("a") ** 2,
        lambda: Symbol("a") << 1, lambda: Tile(4, 8, F32), lambda: Tile[2**30, 8, F32],
        lambda: DispatchPolicy.round_robin(10**12), lambda: timeline(3), lambda: np.exp(X), lambda: X.data == X,
    ]
    codes = ["T206", "T206", "T302", "T206", "T206", "T206", "K101", "K101", "S102", "T205", "T206", "T206"]
    assert [code_of(call) for call in calls] == codes


def test_options_that_would_do_nothing_are_refused() -> None:
    X, Z = pair()

    @workload
    def once() -> None:
        double(X[0], Z[0])

    for options in ({"dump": True}, {"threads": 2}, {"portable": True}):
        assert code_of(lambda options=options: once().compile(target="interp", **options)) == "C104"  # type: ignore[misc]
    assert code_of(lambda: once().compile(strict="no")) == "C104"  # type: ignore[arg-type]


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_two_choices_in_a_row_keep_their_masks(target: str) -> None:
    """Tails and a piece that is all fill: found by a generated kernel, where gcc 12 mixed up two masks."""
    @kernel
    def choose(x: In[Tile[5, 2, F32]], y: In[Tile[5, 2, F32]], ones: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[5, 2, F32]],
               piece: Out[Tensor]):
        one = pto.load(ones, (0, 0), shape=(5, 2), valid=(n, 0), fill=1)
        lower = pto.tril(pto.where(x == y, one, x))
        held = pto.alloc((5, 2), F32, init=0)
        for _ in pto.range(1):
            held += lower
        pto.store(out, held)
        pto.store(piece, one, (0, 0), valid=(n, 0))

    first = np.zeros((1, 1), np.float32)
    first[0, 0] = 128
    X, Y, Region, Z, Piece = (Tensor(a) for a in (first, np.ones((1, 1), np.float32), np.zeros((5, 2), np.float32),
                                                  np.full((5, 2), 9, np.float32), np.zeros((5, 2), np.float32)))

    @workload
    def once() -> None:
        choose(X.clip(5, 2), Y.clip(5, 2), Region, 0, Z, Piece)

    once().compile(target=target).run()
    expected = np.tril(np.ones((5, 2)))
    expected[0, 0] = 128
    assert Z.data is not None and Z.data.tolist() == expected.tolist()
