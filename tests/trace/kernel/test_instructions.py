"""Instructions of the PTO ISA: what they become, and that each means what NumPy says, on both targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, ptoisa, ptoisa_kernel, workload
from pto_wsp.errors import ArgumentKindError, InstructionError, OutsideTraceError
from pto_wsp.trace.kernel.instructions import Intrinsic, instructions
from tests.tolerances import Array

F32, I32, BOOL = DType.F32, DType.I32, DType.BOOL
A = np.random.default_rng(1).uniform(0.5, 3, (8, 16)).astype(np.float32)
B = np.random.default_rng(2).uniform(0.5, 3, (8, 16)).astype(np.float32)
COLUMN, ROW = B[:, :1].copy(), B[:1, :].copy()
LEFT, RIGHT = A[:, :8].copy(), B[:8, :].copy()
N, M = (np.random.default_rng(k).integers(-9, 9, (8, 16)).astype(np.int32) for k in (3, 4))
SMALL = np.random.default_rng(5).integers(0, 8, (8, 16)).astype(np.int32)
MASK = A > B

# instruction, tiles loaded, what follows them, result in NumPy
CASES: list[tuple[str, tuple[Array, ...], tuple[Any, ...], Array]] = [
    ("TADD", (A, B), (), A + B), ("TSUB", (A, B), (), A - B), ("TMUL", (A, B), (), A * B), ("TDIV", (A, B), (), A / B),
    ("TMAX", (A, B), (), np.maximum(A, B)), ("TMIN", (A, B), (), np.minimum(A, B)), ("TREM", (N, SMALL + 1), (), N % (SMALL + 1)),
    ("TPOW", (A, B), (), A ** B), ("TAND", (N, M), (), N & M), ("TOR", (N, M), (), N | M), ("TXOR", (N, M), (), N ^ M),
    ("TSHL", (N, SMALL), (), N << SMALL), ("TSHR", (N, SMALL), (), N >> SMALL), ("TNOT", (N,), (), ~N),
    ("TABS", (-A,), (), A), ("TNEG", (A,), (), -A), ("TRELU", (A - B,), (), np.maximum(A - B, 0)), ("TEXP", (A,), (), np.exp(A)),
    ("TLOG", (A,), (), np.log(A)), ("TSQRT", (A,), (), np.sqrt(A)), ("TRSQRT", (A,), (), 1 / np.sqrt(A)), ("TRECIP", (A,), (), 1 / A),
    ("TADDS", (A,), (2.5,), A + np.float32(2.5)),
    ("TSUBS", (A,), (2.5,), A - np.float32(2.5)), ("TMULS", (A,), (2.5,), A * np.float32(2.5)),
    ("TDIVS", (A,), (2.5,), A / np.float32(2.5)), ("TMAXS", (A,), (1,), np.maximum(A, 1)), ("TMINS", (A,), (1,), np.minimum(A, 1)),
    ("TREMS", (N,), (5,), N % 5), ("TPOWS", (A,), (2,), A ** 2), ("TANDS", (N,), (5,), N & 5), ("TORS", (N,), (5,), N | 5),
    ("TXORS", (N,), (5,), N ^ 5), ("TSHLS", (N,), (3,), N << 3), ("TSHRS", (N,), (3,), N >> 3),
    ("TROWEXPANDADD", (A, COLUMN), (), A + COLUMN), ("TROWEXPANDSUB", (A, COLUMN), (), A - COLUMN),
    ("TROWEXPANDMUL", (A, COLUMN), (), A * COLUMN), ("TROWEXPANDDIV", (A, COLUMN), (), A / COLUMN),
    ("TROWEXPANDMAX", (A, COLUMN), (), np.maximum(A, COLUMN)), ("TROWEXPANDMIN", (A, COLUMN), (), np.minimum(A, COLUMN)),
    ("TCOLEXPANDADD", (A, ROW), (), A + ROW), ("TCOLEXPANDSUB", (A, ROW), (), A - ROW), ("TCOLEXPANDMUL", (A, ROW), (), A * ROW),
    ("TCOLEXPANDDIV", (A, ROW), (), A / ROW), ("TCOLEXPANDMAX", (A, ROW), (), np.maximum(A, ROW)),
    ("TCOLEXPANDMIN", (A, ROW), (), np.minimum(A, ROW)),
    ("TROWSUM", (A,), (), A.sum(1, keepdims=True)), ("TROWMAX", (A,), (), A.max(1, keepdims=True)),
    ("TROWMIN", (A,), (), A.min(1, keepdims=True)), ("TROWPROD", (A,), (), A.prod(1, keepdims=True)),
    ("TCOLSUM", (A,), (), A.sum(0, keepdims=True)), ("TCOLMAX", (A,), (), A.max(0, keepdims=True)),
    ("TCOLMIN", (A,), (), A.min(0, keepdims=True)),
    ("TMOV", (A,), (), A), ("TTRANS", (A,), (), A.T.copy()), ("TRESHAPE", (A,), (), A.reshape(8, 16)),
    ("TCONCAT", (A, B), (), np.concatenate([A, B], 1)),
    ("TMATMUL", (LEFT, RIGHT), (), LEFT @ RIGHT), ("TMATMUL_ACC", (A, LEFT, RIGHT), (), A + LEFT @ RIGHT),
    ("TMATMUL_BIAS", (LEFT, RIGHT, ROW), (), LEFT @ RIGHT + ROW),
    ("TCMP", (A, B), ("lt",), A < B), ("TCMPS", (A,), (1.5, "ge"), A >= 1.5), ("TSEL", (MASK, A, B), (), np.where(MASK, A, B)),
    ("TCVT", (A,), (), A.astype(np.int32)), ("TEXPANDS", (), (3,), np.full((8, 16), 3, np.float32)),
    ("TROWEXPAND", (COLUMN,), (), np.broadcast_to(COLUMN, (8, 16)).copy()),
    ("TCOLEXPAND", (ROW,), (), np.broadcast_to(ROW, (8, 16)).copy()),
    ("TCI", (), (5,), np.broadcast_to(np.arange(5, 21, dtype=np.int32), (8, 16)).copy()),
]


def kernel_of(name: str, arrays: tuple[Array, ...], rest: tuple[Any, ...], expected: Array) -> Any:
    """Return a kernel of one instruction between loads and a store."""
    def body(a: Any, b: Any, c: Any, y: Any) -> None:
        tiles = []
        for array, param in zip(arrays, (a, b, c), strict=False):
            tile = ptoisa.Tile(*array.shape, DType.from_numpy(array.dtype))
            ptoisa.TLOAD(tile, param)
            tiles.append(tile)
        result = ptoisa.Tile(*expected.shape, DType.from_numpy(expected.dtype))
        getattr(ptoisa, name)(result, *tiles, *rest)
        ptoisa.TSTORE(y, result)
    given = [*arrays, *[np.zeros((1, 1), np.float32)] * 3][:3]
    annotations = {n: In[Tile[a.shape[0], a.shape[1], DType.from_numpy(a.dtype)]] for n, a in zip("abc", given, strict=True)}
    body.__annotations__ = annotations | {"y": Out[Tile[expected.shape[0], expected.shape[1], DType.from_numpy(expected.dtype)]]}
    body.__name__ = name.lower()
    return ptoisa_kernel(body), given


def test_every_instruction_is_tried() -> None:
    elsewhere = {"TLOAD", "TSTORE", "TAXPY"}   # in each of the others, and below
    assert {case[0] for case in CASES} | elsewhere == set(instructions())


@pytest.fixture(scope="module", params=["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
def found(request: pytest.FixtureRequest) -> list[Array]:
    """Return what each instruction gives on a target, all from one artifact."""
    made = [(kernel_of(*case), Tensor(np.zeros_like(case[3]))) for case in CASES]

    @workload
    def all_of_them() -> None:
        for (each, given), out in made:
            each(*[Tensor(array) for array in given], out)
    all_of_them().compile(target=request.param).run()
    return [out.data.copy() for _, out in made]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case[0] for case in CASES])
def test_an_instruction_means_what_numpy_says(number: int, found: list[Array]) -> None:
    np.testing.assert_allclose(found[number], CASES[number][3], rtol=3e-6, atol=1e-6)


@ptoisa_kernel
def softmax_blocks(x: In[Tensor], n: Scalar[I32], y: Out[Tensor]) -> None:
    """Softmax of rows of n columns in blocks of 16: maximum and sum first, then the division."""
    t, part, scaled = ptoisa.Tile(4, 16, F32), ptoisa.Tile(4, 1, F32), ptoisa.Tile(4, 1, F32)
    top, total, zero = ptoisa.Tile(4, 1, F32), ptoisa.Tile(4, 1, F32), ptoisa.Tile(4, 1, F32)
    ptoisa.TEXPANDS(top, float("-inf"))
    ptoisa.TEXPANDS(total, 0)
    ptoisa.TEXPANDS(zero, 1)
    for j in pto.range(n // 16):
        ptoisa.TLOAD(t, x, (0, j * 16))
        ptoisa.TROWMAX(part, t)
        ptoisa.TMAX(part, part, top)
        ptoisa.TSUB(top, top, part)
        ptoisa.TEXP(scaled, top)
        ptoisa.TMUL(total, total, scaled)
        ptoisa.TMOV(top, part)
        ptoisa.TROWEXPANDSUB(t, t, top)
        ptoisa.TEXP(t, t)
        ptoisa.TROWSUM(part, t)
        ptoisa.TADD(total, total, part)
    for j in pto.range(n // 16):
        ptoisa.TLOAD(t, x, at=(0, j * 16))
        ptoisa.TROWEXPANDSUB(t, t, top)
        ptoisa.TEXP(t, t)
        with pto.when(j == 0):
            ptoisa.TAXPY(total, zero, 0)
        ptoisa.TROWEXPANDDIV(t, t, total)
        ptoisa.TSTORE(y, t, (0, j * 16))


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_a_kernel_of_instructions_with_loops_branches_and_pieces(target: str) -> None:
    x = np.random.default_rng(0).standard_normal((8, 48)).astype(np.float32)
    X, Y = Tensor(x), Tensor(np.zeros((8, 48), np.float32))

    @workload
    def rows() -> None:
        for b in P(2):
            softmax_blocks[b](X[b * 4:(b + 1) * 4], 48, Y[b * 4:(b + 1) * 4])
    rows().compile(target=target).run()
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(Y.data, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_statements_stand_in_the_order_written() -> None:
    @ptoisa_kernel
    def late_load(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        one, t = ptoisa.Tile(4, 8, F32), ptoisa.Tile(4, 8, F32)
        ptoisa.TEXPANDS(one, 1)
        ptoisa.TLOAD(t, x)
        ptoisa.TADD(t, t, one)
        ptoisa.TSTORE(y, t)
    assert str(late_load.ir).index("expand") < str(late_load.ir).index("load x") < str(late_load.ir).index("add")


def test_instructions_may_stand_among_ops_in_a_plain_kernel() -> None:
    @kernel
    def mixed(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        t = ptoisa.Tile(4, 8, F32)
        ptoisa.TLOAD(t, x)
        ptoisa.TADDS(t, t, 1)
        pto.store(y, t * 2)
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(mixed.run(x), (x + 1) * 2)


def test_a_kernel_of_instructions_takes_the_options_of_a_kernel() -> None:
    @ptoisa_kernel(cpp_src="TADD(y, x, x);")
    def twice(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        t = ptoisa.Tile(4, 8, F32)
        ptoisa.TLOAD(t, x)
        ptoisa.TADD(t, t, t)
        ptoisa.TSTORE(y, t)
    assert twice.specialise().bodies[0].text == "TADD(y, x, x);"
    np.testing.assert_array_equal(twice.run(np.ones((4, 8), np.float32)), 2)


@pytest.mark.parametrize("line", [
    lambda x, t: t + 1, lambda x, t: pto.exp(t), lambda x, t: t.__setitem__(slice(None), 0), lambda x, t: x * 2, lambda x, t: t.T])
def test_ops_have_no_destination_in_a_kernel_of_instructions(line: Callable[[Any, Any], object]) -> None:
    @ptoisa_kernel
    def body(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        t = ptoisa.Tile(4, 8, F32)
        ptoisa.TLOAD(t, x)
        line(x, t)
        ptoisa.TSTORE(y, t)
    with pytest.raises(InstructionError, match="without a destination"):
        body.specialise()


def test_the_namespace_lists_and_documents() -> None:
    assert "TROWEXPANDMUL" in dir(ptoisa) and "Tile" in dir(ptoisa)
    assert all(each.__doc__ for each in instructions().values())
    assert isinstance(ptoisa.TADD, Intrinsic) and repr(ptoisa.TADD) == "ptoisa.TADD(dst, src0, src1)"
    assert not hasattr(ptoisa, "TNOTHING")
    assert ptoisa.CmpMode.LT == "lt"
    with pytest.raises(AttributeError):
        ptoisa.TADD = 1  # type: ignore[misc,assignment]
    with pytest.raises(OutsideTraceError, match=r"ptoisa\.Tile"):
        ptoisa.Tile(4, 8, F32)


def test_a_tmp_is_a_tile() -> None:
    def body(tmp: Callable[[], object]) -> Any:
        @ptoisa_kernel
        def sums(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 1, F32]]) -> None:
            t, s = ptoisa.Tile(4, 8, F32), ptoisa.Tile(4, 1, F32)
            ptoisa.TLOAD(t, x)
            ptoisa.TROWSUM(s, t, tmp())
            ptoisa.TSTORE(y, s)
        return sums
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(body(lambda: ptoisa.Tile(4, 8, F32)).run(x), 8)
    with pytest.raises(ArgumentKindError, match="tmp is not a declared tile"):
        body(lambda: 3).run(x)
