"""Calls of jit functions: arguments of every structure and kind, what is refused, results, state of threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, PtoError, Scalar, Tensor, Tunable, jit, tt
from pto_wsp.api.tensors.results import are_apart

F32, BF16, I32 = DType.F32, DType.BF16, DType.I32


class Pair(NamedTuple):
    """Two factors."""

    up: Tensor[4, F32]
    down: Tensor[4, F32]


@dataclass
class Layer:
    """A factor and a list."""

    scale: Any
    shifts: list[Any]


@jit(target="interp")
def scaled(x: Tensor["t", 8, F32], g: Tensor[8, F32], factor: float = 2.0):
    return x * g * factor


@jit(target="interp")
def weighted(x: Tensor["t", 4, F32], w: Pair, layers, table: dict):
    for layer in layers:
        x = x * layer.scale + layer.shifts[0]
    return {"y": x * w.up, "z": (x * w.down, table["b"] + 1.0)}


@jit(target="interp")
def shifted(x: Tensor["t", 4, F32], by: Scalar[F32]):
    return x + by


@jit(target="interp")
def doubled(state: InOut[Tensor["t", 4, F32]], x: Tensor["t", 4, F32]):
    state[:] = state * 2.0 + x


@jit
def native(x: Tensor["t", 8, F32]):
    return x * 2.0, x + 1.0


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape, np.float32)


def refused(call: Any, *args: Any, **kwargs: Any) -> PtoError:
    with pytest.raises(PtoError) as caught:
        call(*args, **kwargs)
    return caught.value


# -- arguments ---------------------------------------------------------------------------------------------------------
def test_a_second_extent_compiles_nothing() -> None:
    g = array(8)
    for t in (1, 5, 0, 300):
        x = array(t, 8)
        np.testing.assert_array_equal(scaled(x, g), x * g * np.float32(2))
    assert len(scaled.compiled) == 1


def test_a_constant_is_a_part_of_the_key() -> None:
    x, g = array(3, 8), array(8)
    np.testing.assert_array_equal(scaled(x, g, 3.0), x * g * np.float32(3))
    np.testing.assert_array_equal(scaled(x, g=g, factor=4), x * g * np.float32(4))
    np.testing.assert_array_equal(scaled(x, g), x * g * np.float32(2))


def test_a_scalar_comes_with_each_call_and_compiles_nothing() -> None:
    x = array(3, 4)
    for by in (1.5, 2, np.float32(-3)):
        np.testing.assert_array_equal(shifted(x, by), x + np.float32(by))
    assert len(shifted.compiled) == 1


def test_structures_are_flattened_and_results_keep_theirs() -> None:
    x, up, down, one, b = array(3, 4), array(4), array(4) + 1, array(4) + 2, array(2)
    result = weighted(x, Pair(up, down), [Layer(one, [up]), Layer(down, [one])], {"b": b})
    moved = (x * one + up) * down + one
    np.testing.assert_array_equal(result["y"], moved * up)
    np.testing.assert_array_equal(result["z"][0], moved * down)
    np.testing.assert_array_equal(result["z"][1], b + np.float32(1))
    assert isinstance(result["z"], tuple)


def test_an_unannotated_array_brings_its_shape_as_numbers() -> None:
    @jit(target="interp")
    def plain(x, y):
        return x + y

    for n in (3, 5):
        np.testing.assert_array_equal(plain(array(n), array(n)), array(n) * 2)
    assert len(plain.compiled) == 2


def test_a_captured_number_is_read_at_each_call() -> None:
    scope: dict[str, Any] = {"jit": jit, "Tensor": Tensor, "F32": F32, "EPS": 1.0}
    exec("def f(x: Tensor['t', F32]):\n    return x + EPS", scope)
    f, x = jit(target="interp")(scope["f"]), array(3)
    np.testing.assert_array_equal(f(x), x + np.float32(1))
    scope["EPS"] = 2.0
    np.testing.assert_array_equal(f(x), x + np.float32(2))
    assert len(f.compiled) == 2


def test_a_tunable_is_its_first_value() -> None:
    @jit(target="interp")
    def f(x: Tensor["t", F32], k: float = Tunable(2.0, 3.0)):
        return x * k

    x = array(4)
    np.testing.assert_array_equal(f(x), x * np.float32(2))
    np.testing.assert_array_equal(f(x, Tunable(3.0, 2.0)), x * np.float32(3))


def test_strided_arrays_are_read_and_written() -> None:
    x, g = array(8, 6).T[::2], array(16)[::2]
    np.testing.assert_array_equal(scaled(x, g), x * g * np.float32(2))
    backing = array(8, 5)
    state, before = backing.T[:, ::2], backing.T[:, ::2].copy()
    doubled(state, array(5, 4))
    np.testing.assert_array_equal(state, before * 2 + array(5, 4))


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_two_numbers_of_a_symbol_name_both_arguments() -> None:
    error = refused(doubled, array(3, 4), array(5, 4))
    assert error.code == "J201" and error.message == "`t` is 3 in `state` and 5 in `x`"
    assert error.expected == "x.shape[0] == state.shape[0], which is 3"


@pytest.mark.parametrize(("args", "code", "text"), [
    ((array(3, 8).astype(np.float64), array(8)), "J109", "`x` is of another dtype"),
    ((array(3), array(8)), "J109", "`x` is of another rank"),
    ((array(3, 9), array(8)), "J109", "has 9 in dimension 1"),
    (([1.0], array(8)), "J101", "something that is no array"),
    ((Tensor[3, 8, F32], array(8)), "J101", "`x` is a type"),
    ((array(3, 8).astype(">f4"), array(8)), "J109", "other byte order"),
    ((np.ma.masked_array(array(3, 8)), array(8)), "J101", "masked"),
    ((array(3, 8),), "T101", "missing"),
    ((array(3, 8), array(8), 1.0, 2.0), "T101", "too many"),
])
def test_arguments_that_do_not_fit_are_refused(args: tuple[Any, ...], code: str, text: str) -> None:
    error = refused(scaled, *args)
    assert error.code == code and text in str(error) and "test_jit_calls.py" in str(error)


def test_a_number_that_is_none_is_refused() -> None:
    assert refused(shifted, array(3, 4), "2").code == "J101"
    assert refused(shifted, array(3, 4), array(1)).code == "J101"


def test_what_is_written_is_writable_and_lies_apart() -> None:
    state = array(3, 4)
    assert "shares memory with argument `x`" in str(refused(doubled, state, state))
    assert "shares memory with argument `x`" in str(refused(doubled, state[1:], state[:2]))
    before = state.copy()
    state.flags.writeable = False
    assert "read-only" in str(refused(doubled, state, array(3, 4)))
    np.testing.assert_array_equal(state, before)
    assert "elements that share memory" in str(refused(doubled, np.lib.stride_tricks.as_strided(before, (2, 4), (0, 4)), array(2, 4)))


def test_arrays_side_by_side_are_apart_and_a_shared_byte_is_seen() -> None:
    memory = np.zeros(9, np.uint8)
    start = memory.__array_interface__["data"][0]
    for parts, apart in ((((0, 4), (4, 9)), True), (((4, 9), (0, 5)), False), (((0, 9), (2, 3)), False), (((2, 2), (0, 9)), False)):
        assert are_apart([memory[begin:end] for begin, end in parts], [start + begin for begin, _ in parts]) is apart
    assert not are_apart([memory[::2], memory[1::2]], [start, start + 1])      # which a closer look tells


def test_interleaved_columns_do_not_overlap() -> None:
    both = array(3, 8)
    state, x, before = both[:, ::2], both[:, 1::2], both.copy()
    doubled(state, x)
    np.testing.assert_array_equal(both[:, ::2], before[:, ::2] * 2 + before[:, 1::2])
    np.testing.assert_array_equal(both[:, 1::2], before[:, 1::2])


def test_a_contract_is_checked_at_each_call() -> None:
    @jit(target="interp")
    def after(places: Injective[Tensor["t", I32]]):
        return places + 1

    np.testing.assert_array_equal(after(np.array([3, 1], np.int32)), [4, 2])
    error = refused(after, np.array([2, 2], np.int32))
    assert error.code == "R110" and "`places` is declared Injective" in error.message


@pytest.mark.parametrize("text", ["def f(*x): ...", "def f(x, **k): ...", "def f(self, x): ...", "def f(plan): ...", "def f(out): ...",
                                  "def f(x):\n    yield x", "class f: ..."])
def test_functions_that_jit_does_not_take_are_refused(text: str) -> None:
    scope: dict[str, Any] = {}
    exec(text, scope)
    assert refused(jit, scope["f"]).code == "J101"


# -- results -----------------------------------------------------------------------------------------------------------
def test_results_go_into_given_arrays() -> None:
    x, g, out = array(3, 8), array(8), np.zeros((3, 8), np.float32)
    assert scaled(x, g, out=out) is out
    np.testing.assert_array_equal(out, x * g * np.float32(2))
    wide = np.zeros((3, 16), np.float32)
    assert scaled(x, g, out=wide[:, ::2]).base is wide
    np.testing.assert_array_equal(wide[:, ::2], out)
    assert not wide[:, 1::2].any()


def test_results_go_between_the_rows_of_an_argument() -> None:
    both, g = array(6, 8), array(8)
    before = both.copy()
    scaled(both[::2], g, out=both[1::2])
    np.testing.assert_array_equal(both[::2], before[::2])
    np.testing.assert_array_equal(both[1::2], before[::2] * g * np.float32(2))
    assert "shares memory with argument `x`" in str(refused(scaled, both[:3], g, out=both[2:5]))
    assert "shares memory with argument `x`" in str(refused(scaled, both[::2], g, out=both[2:5]))


def test_given_arrays_that_do_not_fit_are_refused() -> None:
    x, g = array(3, 8), array(8)
    assert refused(scaled, x, g, out=np.zeros((2, 8), np.float32)).code == "J122"
    assert refused(scaled, x, g, out=np.zeros((3, 8))).code == "J122"
    assert refused(scaled, x, g, out=(np.zeros((3, 8), np.float32),) * 2).code == "J121"
    assert "shares memory with argument `x`" in str(refused(scaled, x, g, out=x))
    assert refused(scaled, x, g, out=[1.0]).code == "J122"


def test_results_are_of_the_kind_of_the_first_array() -> None:
    x, g = array(3, 8), array(8)
    result = scaled(Tensor(x), g)
    assert isinstance(result, Tensor)
    np.testing.assert_array_equal(np.asarray(result), x * g * np.float32(2))
    assert type(scaled(x, Tensor(g))) is np.ndarray


def test_results_share_memory_with_nothing() -> None:
    @jit(target="interp")
    def twice(x: Tensor["t", 8, F32]):
        y = x * 1.0
        return y, y

    x = array(3, 8)
    one, other = twice(x)
    np.testing.assert_array_equal(one, x)
    np.testing.assert_array_equal(other, x)
    assert not np.shares_memory(one, x) and not np.shares_memory(one, other)


def test_halves_go_in_and_out() -> None:
    @jit(target="interp")
    def f(x: Tensor["t", 8, BF16]):
        return x + x

    x = array(3, 8).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(f(x), x + x)


# -- compiling and running ---------------------------------------------------------------------------------------------
def test_a_block_that_forbids_compiling_runs_what_is_there() -> None:
    @jit(target="interp")
    def f(x: Tensor["t", 8, F32]):
        return x * 5.0

    with tt.no_compile():
        error = refused(f, array(3, 8))
    assert error.code == "C118" and 'x: Tensor["t", 8, f32]' in str(error)
    f(array(3, 8))
    with tt.no_compile():
        np.testing.assert_array_equal(f(array(4, 8)), array(4, 8) * np.float32(5))


def test_a_function_defined_again_finds_its_program() -> None:
    def define() -> Any:
        @jit(target="interp")
        def f(x: Tensor["t", 8, F32]):
            return x * 7.0
        return f

    first, second = define(), define()
    first(array(3, 8))
    with tt.no_compile():
        np.testing.assert_array_equal(second(array(3, 8)), array(3, 8) * np.float32(7))


def test_eight_threads_compile_once_and_are_right() -> None:
    failures: list[str] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for turn in range(20):
            x = np.full((1 + (number * 7 + turn) % 40, 8), number * 100 + turn, np.float32)
            twice, more = native(x)
            if not (np.array_equal(twice, x * 2) and np.array_equal(more, x + 1)):
                failures.append(f"thread {number}, turn {turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(native.compiled) == 1


def test_the_reference_agrees_with_a_run() -> None:
    x, g = array(3, 8), array(8)
    np.testing.assert_array_equal(scaled.reference(x, g), scaled(x, g))
    assert refused(doubled.reference, x, x).code == "J109"


def test_a_workload_of_the_function_runs_under_a_schedule() -> None:
    x, out = array(30, 8), np.zeros((30, 8), np.float32)
    w = scaled.lower(scaled.plan(), x=Tensor(x, name="X"), g=Tensor(array(8), name="G"), out=Tensor(out, name="Y"))
    assert "@kernel" in w.source() and w.named("mine").source() == w.source()
    w.compile("interp").run()
    np.testing.assert_array_equal(out, x * array(8) * np.float32(2))


def test_a_plan_is_followed_by_a_call() -> None:
    plan = scaled.plan().but(tiles={"out": {"t": 2}})
    x, g = array(5, 8), array(8)
    np.testing.assert_array_equal(scaled(x, g, plan=plan), x * g * np.float32(2))
    kept = [call for call in scaled.compiled if call.plan is not None and call.plan == plan]
    assert len(kept) == 1
    assert refused(scaled, x, g, plan="plan").code == "J121"
    assert refused(shifted, array(3, 4), 1.0, plan=plan).code == "J306"


def test_what_is_annotated_may_be_left_out_of_a_trace() -> None:
    text = str(shifted.trace())
    assert text.splitlines()[0] == "function shifted(x: [t, 4] f32, by: scalar f32):"
    assert str(shifted.trace(Tensor[6, 4, F32])).startswith("function shifted(x: [6, 4] f32")
    assert str(shifted.plan(until="partition")).startswith(text.splitlines()[0])


class Scaled(NamedTuple):
    """A factor of each element and a factor of a call."""

    each: Tensor[4, F32]
    by: Scalar[F32]


def test_numbers_in_containers_come_with_each_call() -> None:
    @jit(target="interp")
    def scaled(x: Tensor["t", 4, F32], layers: list[Scaled], n: Scalar[I32]):
        for layer in layers:
            x = x * layer.each * layer.by
        return x + n

    x, one, two = np.ones((3, 4), np.float32), np.full(4, 1, np.float32), np.full(4, 2, np.float32)
    for first, second, n in ((3.0, 5.0, 1), (0.5, 4.0, 7)):
        assert (scaled(x, [Scaled(one, first), Scaled(two, second)], n) == 2 * first * second + n).all()
    assert len(scaled.compiled) == 1
    assert refused(scaled, x, [Scaled(one, "a")], 1).message == "argument `layers.0.by` is no number of f32"


def test_passes_and_sizes_that_are_none_are_refused() -> None:
    assert refused(shifted.plan, until="parition").help == "did you mean partition?"
    assert refused(shifted.plan, sizes={"q": 3}).code == "J121"
    assert refused(shifted.lower, passes={"partition": lambda planned, context: 3}).code == "C113"
    assert refused(shifted.using, plans=3).code == "J121"
    assert refused(shifted.using, arch="ascend").code == "C115"
    assert refused(lambda: shifted.foo).code == "T211"


@pytest.mark.slow
def test_tasks_that_write_through_a_table_follow_one_another() -> None:
    @jit
    def append(x: Tensor["t", 8, F32], slots: Injective[Tensor["t", DType.I32]], cache: InOut[Tensor["rows", 8, F32]]):
        cache[slots] = x * 2.0

    @jit
    def added(x: Tensor["t", 8, F32], slots: Tensor["t", DType.I32], cache: InOut[Tensor["rows", 8, F32]]):
        np.add.at(cache, slots, x)

    x, cache = np.ones((5, 8), np.float32), np.zeros((9, 8), np.float32)
    append(x, np.array([3, 0, 8, 1, 7], np.int32), cache)
    assert cache[:, 0].tolist() == [2, 2, 0, 2, 0, 0, 0, 2, 2]
    assert "P.seq" in append.lower().source() and "P.seq" in added.lower().source()
    added(x, np.array([3, 3, 8, 3, 7], np.int32), cache)
    assert cache[:, 0].tolist() == [2, 2, 0, 5, 0, 0, 0, 3, 3]
