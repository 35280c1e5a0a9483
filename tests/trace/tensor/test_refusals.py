# ruff: noqa: F821
"""What a body on tensors may not do: each mistake has its code, at the user's line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto_wsp
from pto_wsp import DType, In, Injective, InOut, Monotone, Out, PtoError, Scalar, Symbol, Tensor, jit, pto, slot_u64, tt

F32, F16, I32, I64, BOOL = DType.F32, DType.F16, DType.I32, DType.I64, DType.BOOL


def state_in_loop(x: Any) -> Any:
    for _ in tt.loop(3):
        made = x * 2
    return made


def carried(x: Any) -> Any:
    acc = x * 0
    for _ in tt.loop(3):
        acc = acc + x
    return acc


def broken_off(x: Any) -> Any:
    for _ in tt.loop(3):
        break
    return x * 2


def used_loop_variable(x: Any) -> Any:
    for i in tt.loop(3):
        tt.print(x[i])
    return x[i]


def stale_reshape(x: Any) -> Any:
    acc = x * 1
    flat = acc.reshape(-1)
    acc[0] = 1.0
    return flat * 2


def stale_in_loop(x: Any) -> Any:
    acc = x * 1
    flat = acc.reshape(-1)
    for i in tt.loop(3):
        acc[i] = np.sum(flat)
    return acc


def stale_element(x: Any) -> Any:
    counts = tt.zeros((4,), I32)
    n = counts[0]
    counts[0] = 7
    return x[n]


def written_reshape(x: Any) -> Any:
    acc = x * 1
    acc.reshape(-1)[0] = 1.0
    return acc


def otherwise_alone(x: Any) -> Any:
    with tt.otherwise():
        x = x * 2
    return x


def kernel_in_body(x: Any) -> Any:
    @pto_wsp.kernel
    def k(a: In[pto_wsp.Tile[4, 4, F32]], b: Out[pto_wsp.Tile[4, 4, F32]]) -> None:
        pto_wsp.pto.store(b, a)
    k(x)
    return x * 1


def endless(x: Any) -> Any:
    return endless(x + 1)


def left_in_branch(x: Any) -> Any:
    with tt.when(x.shape[0] > 2):
        made = x * 2
    return made


WORDS_OF_KERNELS: dict[str, Callable[[Any], Any]] = {
    "when": lambda x: pto.when(x.shape[0] > 2), "otherwise": lambda x: pto.otherwise(), "range": lambda x: pto.range(3),
    "alloc": lambda x: pto.alloc((4, 4), F32), "load": lambda x: pto.load(x, (0, 0), shape=(2, 2)), "store": lambda x: pto.store(x, x),
    "item": lambda x: pto.item(x, 0, 0), "print": lambda x: pto.print("x", x),
}
CELL = Tensor(np.ones((2, 2), np.int32), name="cells")[0, 0]
SQUARE: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("K103", "if", lambda x: x if x[0, 0] > 0 else -x), ("K103", "int", lambda x: int(x[0, 0])), ("K103", "len", lambda x: x * len(x)),
    ("K103", "float of an extent", lambda x: x * float(x.shape[0])), ("K103", "if of an extent", lambda x: x if x.shape[0] > 2 else -x),
    ("K103", "range", lambda x: [x for _ in range(x.shape[0])]), ("K103", "iter", lambda x: sum(x)), ("K103", "hash", lambda x: {x: 1}),
    ("K103", "break", broken_off), ("K104", "behind a loop", state_in_loop), ("K104", "loop variable", used_loop_variable),
    ("K104", "behind a branch", left_in_branch), ("K109", "carried", carried), ("K112", "endless", endless),
    ("J102", "In", lambda x: x.__setitem__(0, 1.0)), ("J102", "view of In", lambda x: x[1:].fill(2.0)), ("J102", "In +=",
                                                                                                         lambda x: x.__iadd__(1)),
    ("J102", "reshape", written_reshape), ("J104", "number", lambda x: 3.0), ("J104", "extent", lambda x: (x * 2, x.shape[0])),
    ("J105", "Tensor.empty", lambda x: Tensor.empty((4, 4), F32)), ("K105", "kernel", kernel_in_body),
    *(("K105", f"pto.{word}", use) for word, use in WORDS_OF_KERNELS.items()),
    *(("J209", repr(number), lambda x, number=number: x + number) for number in (Symbol("s"), Symbol("s") + 1, slot_u64(0), CELL + 1)),
    ("J105", "large constant", lambda x: x + np.zeros((70, 70), np.float32)), ("J106", "reshape", stale_reshape),
    ("J106", "reshape in a loop", stale_in_loop), ("J106", "element", stale_element), ("J108", "inv", lambda x: np.linalg.inv(x)),
    ("J108", "nonzero", lambda x: np.nonzero(x)), ("J108", "where alone", lambda x: np.where(x > 0)), ("J108", "out", lambda x: np.exp(x,
                                                                                                                                       out=x)),
    ("J108", "ufunc", lambda x: np.frexp(x)), ("J108", "order", lambda x: x.reshape(-1, order="F")), ("T101", "argument",
                                                                                                      lambda x: np.sum(x, where=x > 0)),
    ("T211", "method", lambda x: x.softmin()), ("T211", "tt", lambda x: tt.softmin(x)),
    ("J110", "step", lambda x: next(iter(tt.loop(0, 4, 0)))),
    ("J110", "otherwise", otherwise_alone), ("J110", "each", lambda x: tt.each()), ("J110", "len of a loop", lambda x: len(tt.loop(3))),
    ("T210", "when of a tensor", lambda x: tt.when(x > 0)), ("T210", "when of a number", lambda x: tt.when(3)), ("T210", "assume",
                                                                                                                 lambda x: tt.assume(3)),
    ("J201", "symbols", lambda x: x + x.T), ("J201", "numbers", lambda x: x[:, :2] + x[:, :3]), ("J201", "product", lambda x: x @ x),
    ("J201", "assume", lambda x: tt.assume(False)), ("J201", "larger", lambda x: tt.zeros((4,)).__setitem__(slice(None),
                                                                                                            x[0:1] + tt.zeros((3, 4)))),
    ("J201", "concatenate", lambda x: np.concatenate([x, x.T], axis=1)), ("J201", "topk", lambda x: tt.topk(x, 5)),
    ("J201", "max of nothing", lambda x: np.max(x[:, 4:], axis=1)), ("J202", "two tables", lambda x: x[[0, 1], [0, 1]]),
    ("J202", "mask", lambda x: x[x > 0]), ("J202", "float", lambda x: x[1.5]), ("J202", "many", lambda x: x[0, 0, 0]),
    ("J202", "step", lambda x: x[::0]), ("J202", "step of a symbol", lambda x: x[3:0:-1]), ("T301", "outside", lambda x: x[:, 4]),
    ("T301", "end", lambda x: x[x.shape[0]]), ("J203", "axis", lambda x: np.sum(x, axis=2)), ("J203", "twice", lambda x: np.sum(x, axis=(0,
                                                                                                                                         0))),
    ("J203", "max of torch", lambda x: x.max(dim=1)), ("J203", "split of torch", lambda x: x.split(2, dim=1)), ("J203", "std",
                                                                                                                lambda x: x.std(dim=1)),
    ("J203", "transpose", lambda x: x.transpose(0, 0)), ("J204", "reshape", lambda x: x.reshape(5, -1)), ("J204", "two",
                                                                                                          lambda x: x.reshape(-1, -1)),
    ("J204", "elements", lambda x: x.reshape(7)), ("J204", "split", lambda x: np.split(x, 3, axis=1)), ("J205", "topk",
                                                                                                        lambda x: tt.topk(x.T, 2)),
    ("J205", "sort", lambda x: np.sort(x, axis=0)), ("J206", "rank", lambda x: x[(None,) * 7] * 2), ("J206", "colsum",
                                                                                                     lambda x: tt.colsum(x[0])),
    ("J207", "diagonal", lambda x: np.einsum("ii->i", x)), ("J207", "dots", lambda x: np.einsum("...i->...", x)),
    ("J207", "rank", lambda x: np.einsum("ijk->i", x)), ("J208", "repeat", lambda x: np.repeat(x, 2.5)), ("J208", "pad",
                                                                                                          lambda x: np.pad(x, "x")),
    ("J209", "concatenate", lambda x: tt.concatenate(x)), ("J209", "number", lambda x: tt.exp(3.0)), ("J209", "text", lambda x: x + "a"),
    ("J209", "float bound", lambda x: tt.zeros((2.5,))), ("T203", "mixed", lambda x: x + x.astype(I32)), ("T203", "float to int",
                                                                                                          lambda x: x.astype(I32) + 0.5),
    ("T203", "assigned", lambda x: tt.zeros((4,)).__setitem__(0, x[0].astype(I32))), ("T204", "/", lambda x: x.astype(I32) / 2),
    ("T204", "mean", lambda x: np.mean(x.astype(I32))), ("T204", "exp", lambda x: np.exp(x.astype(I32))),
    ("T209", "fit", lambda x: x.astype(DType.I8) + 300),
    ("J101", "Tensor[...]", lambda x: Tensor["a b", F32]),
]


@pytest.mark.parametrize("code, function", [pytest.param(code, f, id=f"{code} {name}") for code, name, f in SQUARE])
def test_a_mistake_has_its_code(code: str, function: Callable[[Any], Any]) -> None:
    def body(x):
        return function(x)

    with pytest.raises(PtoError) as caught:
        jit(body).trace(Tensor["t", 4, F32])
    assert caught.value.code == code, str(caught.value)
    assert caught.value.span is not None


def out_parameter() -> object:
    def f(x: Out[Tensor[4, F32]]): ...
    return jit(f)


def in_parameter() -> object:
    def f(x: In[Tensor[4, F32]]): ...
    return jit(f)


def any_number() -> object:
    def f(*x): ...
    return jit(f)


def an_option() -> object:
    def f(x, out): ...
    return jit(f)


def never_written() -> object:
    def f(x: InOut[Tensor[4, F32]]):
        x = x + 1
    return jit(f).trace()


def inout_returned() -> object:
    def f(x: InOut[Tensor[4, F32]]):
        x += 1.0
        return x
    return jit(f).trace()


def unknown_table() -> object:
    def f(x: Tensor[4, F32], t: Tensor[4, I32]):
        out = tt.zeros((8,))
        out[t] = x
        return out
    return jit(f).trace()


def scaled_table() -> object:
    def f(x: Tensor[4, F32], t: Injective[Tensor[4, I32]]):
        out = tt.zeros((8,))
        out[t // 2] = x
        return out
    return jit(f).trace()


def other_symbol() -> object:
    def f(x: Tensor["m", F32], y: Tensor["n", F32]):
        return x + y
    return jit(f).trace()


def inner_mismatch() -> object:
    @jit
    def g(x: Tensor["m", F32], y: Tensor["m", F32]):
        return x + y

    def f(x: Tensor["m", F32], y: Tensor["n", F32]):
        return g(x, y)
    return jit(f).trace()


def inner_write() -> object:
    @jit
    def g(x: InOut[Tensor["m", F32]]):
        x += 1.0

    def f(x: Tensor["m", F32]):
        g(x)
        return x * 1
    return jit(f).trace()


def wrong_rank() -> object:
    def f(x: Tensor["m", F32]):
        return x * 1
    return jit(f).trace(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("code, mistake", [
    ("J101", out_parameter), ("J101", in_parameter), ("J101", any_number), ("J101", an_option), ("J103", never_written),
    ("J104", inout_returned), ("J107", unknown_table), ("J107", scaled_table), ("J201", other_symbol), ("J201", inner_mismatch),
    ("J102", inner_write), ("J109", wrong_rank)])
def test_a_wrong_parameter_has_its_code(code: str, mistake: Callable[[], object]) -> None:
    with pytest.raises(PtoError) as caught:
        mistake()
    assert caught.value.code == code, str(caught.value)


def test_what_is_fine_is_not_refused() -> None:
    def f(x: Tensor["t", 4, F32], places: Injective[Tensor["t", I64]], starts: Monotone[Tensor["b", I32]], scale: Scalar[F32],
          mask: Tensor["t", BOOL]):
        x = x + 1
        out = tt.zeros((x.shape[0] + 3, 4))
        out[places + 3] = x * scale
        tt.assume((x.shape[0] <= 64) & (x.shape[0] > 0))
        best, _ = tt.topk(x.T, 1)
        tt.print("best", best)
        return {"out": out, "parts": (best, [x[starts[0]:starts[1]].sum(0)]), "mask": ~mask}

    made = jit(f)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = made.reference(x, np.array([2, 0, 1]), np.array([0, 2], np.int32), 2.0, np.array([True, False, True]))
    np.testing.assert_array_equal(found["out"][3:], ((x + 1) * 2)[[1, 2, 0]])
    np.testing.assert_array_equal(found["parts"][0], (x + 1).max(0)[:, None])
    np.testing.assert_array_equal(found["parts"][1][0], (x + 1)[0:2].sum(0))
    np.testing.assert_array_equal(found["mask"], [False, True, False])
