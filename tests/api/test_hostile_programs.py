"""Programs that nobody's tutorial has: each works, or is an error of ours at the user's line; none ends in Python's own error."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    PtoError,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    pto,
    sequential,
    workload,
)
from pto_wsp.source import Span

I64, F32 = DType.I64, DType.F32
Y: Any = Tensor(np.zeros((8, 4), np.int64), name="Y")
N: Any = Symbol("n")
W: Any = workload
K: Any = kernel


@kernel
def add(n: Scalar[I64], y: InOut[Tile[1, 4, I64]]) -> None:
    pto.store(y, y + n)


def of(body: Callable[[], object]) -> Workload:
    @workload
    def main() -> None:
        body()
    return main()


def each(task: Callable[[Any], object]) -> Callable[[], Workload]:
    """Return what makes the workload that calls `task` for each of four iterations."""
    def body() -> None:
        for b in P(4):
            task(b)
    return lambda: of(body)


def traced(body: Callable[..., object]) -> Callable[[], object]:
    """Return what traces a kernel that stores what `body` gives of a tile and a scalar."""
    def make() -> object:
        @kernel
        def k(x: In[Tile[4, 8, F32]], n: Scalar[I64], y: Out[Tile[4, 8, F32]]) -> None:
            pto.store(y, body(x, n))
        return k.ir
    return make


def declared(function: Callable[..., object]) -> Callable[[], object]:
    return lambda: kernel(function)


async def waiting() -> None: ...


def yielding() -> Iterator[int]:
    yield 1


async def waiting_kernel(y: Out[Tile[1, 4, I64]]) -> None: ...


def yielding_kernel(y: Out[Tile[1, 4, I64]]) -> Iterator[int]:
    yield 1


def main_like() -> None: ...


def returning(y: Out[Tile[1, 4, I64]]) -> Any:
    pto.store(y, pto.zeros((1, 4), I64))
    return y


REFUSED: dict[str, Callable[[], object]] = {
    # Python asks a loop variable or a Symbol for what it is
    "round of a fraction": lambda: round(N / 2),
    "floor of a fraction": lambda: math.floor(N / 2),
    "sqrt": lambda: math.sqrt(N),
    "gcd": lambda: math.gcd(N, 2),
    "max of two": lambda: max(N, 3),
    "sorted": lambda: sorted([N, 3]),
    "a list": lambda: [1, 2, 3][N],
    "an array": lambda: np.array([1, 2, 3])[N],
    "rows of an array": lambda: np.zeros((3, 3))[N, 0],
    "len": lambda: len(N),
    "an f-string": lambda: f"{N:>3}",
    "bytes": lambda: bytes(N),
    "chr": lambda: chr(N),
    "a power": lambda: N ** 2,
    "a shift": lambda: 1 << N,
    "an element": lambda: N[0],
    "a call": lambda: N(3),
    "shape": lambda: N.shape,
    "np.sin": lambda: np.sin(N),
    "np.sum": lambda: np.sum([N, N]),
    "match": lambda: {1: 2}.get(N),
    "np.arange": lambda: np.arange(N),
    "repeat": lambda: "a" * N,
    "a power of an axis": each(lambda b: add(b ** 2, Y[b])),
    "an axis as an index of a list": each(lambda b: add([1, 2, 3, 4][b], Y[b])),
    "an axis asked for its sign": each(lambda b: add(1 if b > 2 else 2, Y[b])),
    "a slice by an array": each(lambda b: add(b, Y[np.array([1, 2])])),
    "too many indices": each(lambda b: add(b, Y[b, 0][1])),
    "a string index": each(lambda b: add(b, Y["b"])),
    "a new axis": each(lambda b: add(b, Y[None, b])),
    "a mask": each(lambda b: add(b, Y[Y > 0])),
    # loops
    "enumerate": lambda: of(lambda: [add(k, Y[b]) for k, b in enumerate(P(4))]),
    "zip": lambda: of(lambda: [add(a, Y[b]) for a, b in zip(P(4), P(4), strict=True)]),
    "next": lambda: of(lambda: add(next(iter(P(4))), Y[0])),
    "a loop outside": lambda: [b for b in P(4)],
    "a range downwards": lambda: of(lambda: [add(b, Y[b]) for b in P(range(4, 0, -1))]),
    "a range beyond 64 bits": lambda: of(lambda: [add(b, Y[0]) for b in P(range(2**63, 2**63 + 3))]),
    "a step beyond 64 bits": lambda: of(lambda: [add(b, Y[0]) for b in P(range(0, 2**62, 2**63))]),
    "a float axis": lambda: of(lambda: [add(b, Y[0]) for b in P(2.5)]),
    "a string axis": lambda: of(lambda: [add(b, Y[0]) for b in P("abc")]),
    "a list axis": lambda: of(lambda: [add(b, Y[0]) for b in P([1, 2])]),
    "a tensor axis": lambda: of(lambda: [add(b, Y[0]) for b in P(Y)]),
    # functions that are no plain ones
    "async workload": lambda: W(waiting),
    "generator workload": lambda: W(yielding),
    "a class as a workload": lambda: W(int),
    "a workload of a workload": lambda: W(W(lambda: None)),
    "async kernel": declared(waiting_kernel),
    "generator kernel": declared(yielding_kernel),
    "lambda kernel": declared(lambda x: x),
    "a builtin kernel": declared(print),
    "a kernel of a kernel": lambda: K(K(returning)),
    "a kernel that returns": lambda: K(returning).ir,
    "a kernel outside": lambda: add(1, Y[0]),
    "a kernel's op outside": lambda: pto.exp(Y),
    "a workload that is not called": lambda: W(returning).compile(),
    "a part that is not called": lambda: sequential(W(main_like), of(lambda: None)),
    "an empty combine": combine,
    # kernels
    "a tile in a set": traced(lambda x, n: {x}),
    "a tile in an f-string": traced(lambda x, n: f"{x}"),
    "rows of a tile": traced(lambda x, n: [r for r in x]),
    "in a tile": traced(lambda x, n: n in x),
    "if a tile": traced(lambda x, n: x if x else -x),
    "while a scalar": traced(lambda x, n: x if n > 3 else -x),
    "a global tensor in a kernel": traced(lambda x, n: x + Y),
    "a global symbol in a kernel": traced(lambda x, n: x + N),
    "a wide whole number": traced(lambda x, n: x + 2**70),
    "complex": traced(lambda x, n: x + 1j),
    "text": traced(lambda x, n: x + "a"),
    "None": traced(lambda x, n: None),
    "a tile's attribute": traced(lambda x, n: x.grad),
    "assignment to a tile's element": traced(lambda x, n: x.__setitem__((0, 0), 1)),
    "a tile as an index": traced(lambda x, n: [1, 2][x]),
    "matmul that does not fit": traced(lambda x, n: x @ x),
    "a dict of tiles": traced(lambda x, n: {"x": x}),
    # names and data
    "a tensor's name that is no text": lambda: Tensor(np.zeros(3), name="\ud800"),
    "a tensor's name of two lines": lambda: Tensor(np.zeros(3), name="a\nb"),
    "a tensor's name that is a number": lambda: Tensor(np.zeros(3), name=3),
    "a symbol with a space": lambda: Symbol("a b"),
    "a masked array": lambda: Tensor(np.ma.masked_array([1, 2], [0, 1])),
    "a list as data": lambda: Tensor([1, 2]),
    "objects as data": lambda: Tensor(np.array([object()])),
    "text as data": lambda: Tensor(np.array(["a"])),
    "dates": lambda: Tensor(np.zeros(2, "M8[s]")),
    "records": lambda: Tensor(np.zeros(2, [("a", "i4"), ("b", "f4")])),
    "complex data": lambda: Tensor(np.zeros(2, complex)),
    "a masked array bound": lambda: each(lambda b: add(b, Y[b]))().compile(target="interp").run(Y=np.ma.zeros((8, 4), np.int64)),
    "a key by hash": lambda: DispatchPolicy.affinity(lambda t: hash(t.b) % 3, 2),
    "arithmetic on a tensor": lambda: Y + 1,
    "a tensor asked for truth": lambda: 1 if Y else 0,
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_mistake_is_an_error_of_ours_at_its_line(what: str) -> None:
    with pytest.raises(PtoError) as caught:
        REFUSED[what]()
    error = caught.value
    assert isinstance(error.span, Span) and Path(error.span.file).name == "test_hostile_programs.py", str(error)


# ---- names that mean something elsewhere ----

NAMES = ("self", "stats", "threads", "timeout", "target", "arch", "strict", "options", "cls", "args", "kwargs", "int", "main", "Y_",
         "lambda", "class", "NULL", "errno", "n_tasks", "ключ")


def run(w: Workload, target: str, /, **bindings: object) -> Program:
    Y.data[...] = 0
    return w.compile(target=target).run(**bindings)


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_symbols_and_tensors_may_be_called_anything(name: str, target: str) -> None:
    held = Tensor(np.arange(4), name=name + "2")
    number, extent = Symbol(name), Symbol(name + "3")

    def body() -> None:
        for b in P(extent):
            add(number + held[b], Y[b])
    program = run(of(body), target, **{name: 3, name + "2": np.full(4, 5), name + "3": 4})
    assert Y.data[:5, 0].tolist() == [8] * 4 + [0]
    assert program.verify(**{name: 3, name + "3": 4}) if target == "cpu_sim" else True


CODE = """
from pto_wsp import DType, InOut, P, Scalar, Tile, kernel, pto, workload

@kernel
def {name}(n: Scalar[DType.I64], y: InOut[Tile[1, 4, DType.I64]]) -> None:
    pto.store(y, y + n)

def make(Y):
    kernel_of_name = {name}

    @workload
    def {name}_():
        for {name} in P(4):
            kernel_of_name[{name}]({name}, Y[{name}])
    return {name}_()
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["int", "main", "double", "restrict", "errno", "NULL", "pto_run", "ядро", "_", "__x", "self", "extern"])
def test_kernels_workloads_and_loops_of_text_may_be_called_anything(name: str) -> None:
    """The text has no file: a REPL's, a notebook's, an exec's."""
    scope: dict[str, Any] = {}
    exec(CODE.format(name=name), scope)
    run(scope["make"](Y), "cpu_sim")
    assert Y.data[:5, 0].tolist() == [0, 1, 2, 3, 0]
    assert not linecache.getline("<string>", 1)


def test_a_decorator_above_kernel_and_one_inside() -> None:
    def logged(thing: Any) -> Any:
        return thing

    @logged
    @kernel
    def twice(y: InOut[Tile[1, 4, I64]]) -> None:
        y *= 2

    run(of(lambda: [add(3, Y[1]), twice(Y[1])]), "interp")
    assert Y.data[1].tolist() == [6] * 4
