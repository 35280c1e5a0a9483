"""Tracing: what the statements of a body become."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp.api.pto import pto
from pto_wsp.errors import ArgumentKindError, ArityError, BufferMisuseError, OutsideTraceError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.ir.symbolic import Symbol
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Constexpr, In, InOut, Out, Scalar
from pto_wsp.trace.kernel.definition import KernelDef

F32, I32 = DType.F32, DType.I32
SMALL = Tile[4, 8, F32]


def trace(function: Callable[..., object], **constexprs: object) -> k.Kernel:
    """Trace a kernel whose Tensor parameters are f32."""
    definition = KernelDef.from_function(function, {})
    return definition.trace(constexprs, {p.name: F32 for p in definition.params})


def lines(kernel: k.Kernel) -> list[str]:
    """Return the printed body without its types."""
    return [line.split("#")[0].strip() for line in print_kernel(kernel).splitlines()[1:]]


def test_naming_an_in_parameter_loads_it_once() -> None:
    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        pto.store(y, x * x + x)
    assert lines(trace(body)) == ["%0 = load x", "%1 = mul %0, %0", "%2 = add %1, %0", "store y, %2"]


def test_an_in_parameter_named_in_a_loop_is_known_after_it() -> None:
    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        acc = pto.alloc((4, 8), F32, init=0)
        for _ in pto.range(3):
            acc += x
        pto.store(y, acc + x)
    assert lines(trace(body))[:3] == ["%1 = load x", "acc = alloc Tile[4, 8, f32], init=0.0", "for _ in range(0, 3, 1):"]


def test_an_inout_parameter_reads_its_latest_store() -> None:
    def body(x: InOut[SMALL]) -> None:
        pto.store(x, x + 1)
        pto.store(x, x * 2)
    assert lines(trace(body)) == ["%0 = load x", "%1 = add %0, 1.0", "store x, %1", "%2 = load x", "%3 = mul %2, 2.0",
                                  "store x, %3"]


def test_an_out_parameter_can_be_read_after_its_store() -> None:
    def body(y: Out[SMALL]) -> None:
        pto.store(y, 1)
        pto.store(y, y + 1)
    assert lines(trace(body))[2] == "%1 = load y"


@pytest.mark.parametrize("expression, expected", [
    (lambda x, w: x + 1, "add %0, 1.0"), (lambda x, w: 1 + x, "add 1.0, %0"), (lambda x, w: 2.5 - x, "sub 2.5, %0"),
    (lambda x, w: x / 2, "div %0, 2.0"), (lambda x, w: 1 / x, "div 1.0, %0"), (lambda x, w: x // 2, "floordiv %0, 2.0"),
    (lambda x, w: x % 2, "mod %0, 2.0"), (lambda x, w: -x, "neg %0"), (lambda x, w: x < 0, "lt %0, 0.0"),
    (lambda x, w: np.float32(0) < x, "lt 0.0, %0"), (lambda x, w: x == 0, "eq %0, 0.0"),
    (lambda x, w: x != x, "ne %0, %0"),
    (lambda x, w: abs(x), "abs %0"), (lambda x, w: x.T, "transpose %0"), (lambda x, w: x ** 2, "pow %0, 2.0"),
    (lambda x, w: x * np.float32(0.5), "mul %0, 0.5"), (lambda x, w: np.int64(3) * x, "mul 3.0, %0"),
    (lambda x, w: pto.max(x, 0), "maximum %0, 0.0"), (lambda x, w: pto.mul(y=x, x=2), "mul 2.0, %0"),
])
def test_operators(expression: Callable[..., object], expected: str) -> None:
    def body(x: In[SMALL], y: Out[Tile[1, 1, F32]]) -> None:
        expression(x, None)
        pto.store(y, 0)
    assert lines(trace(body))[1].split(" = ")[1] == expected


def test_matmul_operator_and_accumulator() -> None:
    def body(a: In[Tile[4, 8, DType.I8]], b: In[Tile[8, 2, DType.I8]], y: InOut[Tile[4, 2, I32]]) -> None:
        pto.store(y, a @ b)
        pto.store(y, pto.matmul(a, b, acc=y))
    kernel = trace(body)
    products = [stmt for stmt in walk(kernel.body) if isinstance(stmt, k.Compute)]
    assert [stmt.op for stmt in products] == ["matmul", "matmul"]
    assert [len(stmt.operands) for stmt in products] == [2, 3]
    assert all(stmt.result.type == Tile[4, 2, I32] for stmt in products)


def test_masks() -> None:
    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        mask = (x > 0) & ~(x > 1) | (x == 5)
        pto.store(y, pto.where(mask, x, 0))
    assert lines(trace(body))[-2:] == ["%7 = where %6, %0, 0.0", "store y, %7"]


def test_a_loop_is_traced_once_under_the_users_name() -> None:
    def body(x: In[Tensor], n: Scalar[I32], y: Out[Tile[1, 8, F32]]) -> None:
        acc = pto.alloc((1, 8), F32, init=0)
        for block in pto.range(1, n, 2):
            acc += pto.colsum(pto.load(x, (block * 4, 0), shape=(4, 8)))
        y[:] = acc
    assert lines(trace(body)) == [
        "acc = alloc Tile[1, 8, f32], init=0.0", "for block in range(1, n, 2):", "%0 = load x[block * 4, 0]", "%1 = colsum %0",
        "%2 = read acc", "%3 = add %2, %1", "acc[:] = %3", "%4 = read acc", "store y, %4"]


def test_python_range_unrolls() -> None:
    def body(x: In[SMALL], n: Constexpr[int], y: Out[SMALL]) -> None:
        for _ in range(n):
            x = x + 1
        pto.store(y, x)
    assert sum("add" in line for line in lines(trace(body, n=3))) == 3


def test_a_captured_number_specialises() -> None:
    scale = 3

    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        pto.store(y, x * scale)
    assert "3.0" in lines(trace(body))[1]
    scale = 4
    assert "4.0" in lines(trace(body))[1]


def test_augmented_assignment_of_an_in_parameter_makes_a_new_value() -> None:
    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        x += 1
        pto.store(y, x)
    assert lines(trace(body)) == ["%0 = load x", "%1 = add %0, 1.0", "store y, %1"]


def test_augmented_assignment_of_an_inout_parameter_stores() -> None:
    def body(x: InOut[SMALL]) -> None:
        x *= 2
    assert lines(trace(body)) == ["%0 = load x", "%1 = mul %0, 2.0", "store x, %1"]


@pytest.mark.parametrize("shape", [(4, 8), (4, 1), (1, 8), (1, 1)])
def test_a_store_broadcasts(shape: tuple[int, int]) -> None:
    def body(x: In[Tile[shape[0], shape[1], F32]], y: Out[SMALL]) -> None:
        pto.store(y, x)
    definition = KernelDef.from_function(body, {"shape": shape})
    text = lines(definition.trace({}, {}))
    assert ("expand" in text[1]) is (shape != (4, 8))


def test_scalars_of_the_kernel_are_operands() -> None:
    def body(x: In[SMALL], n: Scalar[I32], a: Scalar[F32], y: Out[SMALL]) -> None:
        pto.store(y, x * a + (n + x.valid[1]))
    assert lines(trace(body))[1:3] == ["%1 = mul %0, a", "%2 = add %1, n + x.shape[1]"]


def test_a_piece_can_be_valid_in_part_filled_and_transposed() -> None:
    def body(x: In[Tensor], y: Out[Tile[8, 4, F32]]) -> None:
        rows = x.shape[0]
        pto.store(y, pto.load(x, (0, 0), shape=(4, 8), valid=(rows, None), fill=-np.inf, transpose=True))
    kernel = trace(body)
    load = kernel.body[0]
    assert isinstance(load, k.Load)
    assert load.result.type == Tile[8, 4, F32] and load.fill == -np.inf and load.transpose and load.valid_cols is None


def test_pieces_of_a_tile_are_stored_at_offsets() -> None:
    def body(x: In[Tile[2, 8, F32]], y: Out[SMALL]) -> None:
        for half in range(2):
            pto.store(y, x + half, (2 * half, 0))
    assert [line for line in lines(trace(body)) if "store" in line] == ["store y, %1", "store y[2, 0], %2"]


def test_creation() -> None:
    def body(y: Out[SMALL]) -> None:
        rows = pto.cast(pto.iota((4, 8), axis=0), F32)
        rows = rows + pto.full((4, 8), 2, F32) + pto.ones((1, 8), F32) + pto.zeros((4, 1), F32)
        pto.store(y, pto.tril(rows + pto.constant(1.5)))
    assert trace(body).body[0] == k.Compute(
        k.Value(0, Tile[4, 8, I32]), "iota", (), (("shape", (4, 8)), ("dtype", I32), ("axis", 0)))


def test_row_and_column_arithmetic_is_that_of_its_operators() -> None:
    def body(x: In[SMALL], r: In[Tile[4, 1, F32]], c: In[Tile[1, 8, F32]], y: Out[SMALL]) -> None:
        for op in (pto.rowadd, pto.rowsub, pto.rowmul, pto.rowdiv):
            x = op(x, r)
        for op in (pto.coladd, pto.colsub, pto.colmul, pto.coldiv):
            x = op(x, c)
        pto.store(y, x)
    ops = [stmt.op for stmt in trace(body).body if isinstance(stmt, k.Compute)]
    assert ops == ["add", "sub", "mul", "div"] * 2


def test_annotations_as_text_see_the_scope_of_the_def() -> None:
    rows = 4

    def body(x: In[Tile[rows, 8, F32]], y: Out[Tile[rows, 8, F32]]) -> None:
        pto.store(y, x)
    assert isinstance(body.__annotations__["x"], str)
    kernel = KernelDef.from_function(body, locals()).trace({}, {})
    assert [p.type for p in kernel.params if isinstance(p, k.TileParam)] == [SMALL, SMALL]


def test_parameters_stand_in_order_without_constexprs() -> None:
    def body(x: In[Tensor], n: Constexpr[int], a: Scalar[F32], y: Out[SMALL]) -> None:
        pto.store(y, a * n)
    assert [p.name for p in trace(body, n=2).params] == ["x", "a", "y"]
    with pytest.raises(ArgumentKindError, match="Constexpr `n`"):
        trace(body, n="2")
    with pytest.raises(ArityError, match="`n` is missing"):
        trace(body)


def test_a_users_exception_goes_through() -> None:
    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine") as caught:
        trace(body)
    assert caught.traceback[-1].name == "body"
    with pytest.raises(OutsideTraceError):
        pto.zeros((1, 1), F32)


def test_helper_functions_trace_into_the_kernel() -> None:
    def softmax(tile: object) -> object:
        raised = pto.exp(tile - pto.rowmax(tile))  # type: ignore[operator]
        return raised / pto.rowsum(raised)  # type: ignore[operator]

    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        pto.store(y, softmax(x))
    assert [s.op for s in trace(body).body if isinstance(s, k.Compute)] == ["rowmax", "sub", "exp", "rowsum", "div"]


def test_threads_trace_apart() -> None:
    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        for _ in range(50):
            x = x + 1
        pto.store(y, x)
    found: list[k.Kernel] = []
    threads = [threading.Thread(target=lambda: found.append(trace(body))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(kernel == found[0] for kernel in found)


def test_statements_carry_the_users_line() -> None:
    def body(x: In[SMALL], y: Out[SMALL]) -> None:
        pto.store(y, pto.exp(x))
    kernel = trace(body)
    first = body.__code__.co_firstlineno
    assert {stmt.span.line for stmt in kernel.body} == {first + 1}
    assert kernel.span.line == first
    assert {p.span.line for p in kernel.params} == {first}


def test_the_namespace_lists_documents_and_suggests() -> None:
    assert {"exp", "max", "select", "load", "range", "tril", "rowadd"} <= set(dir(pto))
    assert all(getattr(pto, name).__doc__ for name in dir(pto))
    assert repr(pto.matmul) == "pto.matmul(a, b, acc=None)"
    assert not hasattr(pto, "sinh")
    with pytest.raises(ArgumentKindError, match=r"did you mean pto\.rowsum") as caught:
        pto.rowsm  # noqa: B018
    assert isinstance(caught.value, AttributeError)


def test_a_partial_is_no_kernel() -> None:
    with pytest.raises(Exception, match="plain function"):
        KernelDef.from_function(functools.partial(print), {})


def test_a_kernel_without_source_text_has_lines_all_the_same() -> None:
    scope: dict[str, object] = {"In": In, "Out": Out, "SMALL": SMALL, "pto": pto}
    text = "def body(x: In[SMALL], y: Out[SMALL]):\n    acc = pto.alloc((4, 8), x.dtype)\n    acc + x"
    exec(compile(text, "<cell 3>", "exec"), scope)
    body = scope["body"]
    assert callable(body)
    with pytest.raises(BufferMisuseError, match="buffer `acc`") as caught:
        trace(body)
    assert str(caught.value.span) == "<cell 3>:3:5"


def test_scalars_of_the_workload_are_refused() -> None:
    outside = Symbol("outside")

    def body(y: Out[SMALL]) -> None:
        pto.store(y, outside)
    with pytest.raises(ArgumentKindError, match="`outside` is a scalar of the workload"):
        trace(body)


def test_functions_of_numpy_trace_the_op_of_their_meaning() -> None:
    def by_numpy(x: In[SMALL], n: In[Tile[4, 8, I32]], y: Out[SMALL], m: Out[Tile[4, 8, I32]]) -> None:
        pto.store(y, np.float32(2) * np.exp(x) + np.sqrt(np.maximum(x, np.float32(0))))
        pto.store(m, np.int32(1) << n)

    def by_op(x: In[SMALL], n: In[Tile[4, 8, I32]], y: Out[SMALL], m: Out[Tile[4, 8, I32]]) -> None:
        pto.store(y, 2 * pto.exp(x) + pto.sqrt(pto.maximum(x, 0)))
        pto.store(m, 1 << n)

    assert lines(trace(by_numpy)) == lines(trace(by_op))


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 65504.0, 65519.0, 1e-9])
def test_a_float_tile_takes_what_rounds_to_a_number_of_its_dtype(number: float) -> None:
    def body(x: In[Tile[1, 4, DType.F16]], y: Out[Tile[1, 4, DType.F16]]) -> None:
        pto.store(y, x + number)

    assert f"%1 = add %0, {number!r}" in lines(trace(body))
