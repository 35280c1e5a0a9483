"""Variables that a traced body reads and then changes, and the many that it may change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pto_wsp.api.pto import pto
from pto_wsp.errors import BufferMisuseError, CarriedValueError, EscapedValueError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar

from .test_trace import trace

F32, I32 = DType.F32, DType.I32
SMALL = Tile[4, 8, F32]


def variables_of_the_bodys_own(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """Assign first, then read."""
    t, off, rest = x + 1, 3, n
    pto.store(y, t * off * rest)
    for j in pto.range(n):
        off = j * 4
        rest = n - off
        t = x * off
        t = t + rest
        pto.store(y, t)


def unrolled(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """Python's loops run while the body is traced."""
    total, count = x * 0, 0
    for i in range(3):
        total = total + x * i
        count += i
        for j in pto.range(n):
            pto.store(y, total * count * j)
        for k in range(2):
            with pto.when(n > k):
                off = k * 4
                pto.store(y, total * off)


def in_place(x: In[SMALL], n: Scalar[I32], state: InOut[SMALL], y: Out[SMALL]) -> None:
    """Buffers and parameters that are written keep their names."""
    acc = pto.alloc((4, 8), F32, init=0)
    for _ in pto.range(n):
        acc += x
        state += acc
        for _ in pto.range(n):
            acc[:] = acc * 2
            with pto.when(n > 3):
                acc *= 2
    pto.store(y, acc)


def loops_in_loops(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """The names of inner loops and of what they make."""
    j = 5
    pto.store(y, x * j)
    for i in pto.range(n):
        row = i * 2
        for j in pto.range(row):
            pto.store(y, x * j)
        squares = [i * k for k in range(4)]
        pto.store(y, x * squares[2])


def another_name(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """What is read is not what is assigned to."""
    kept = x + 1
    t = kept
    for j in pto.range(n):
        t = x * j
        pto.store(y, kept + t)


def same_value(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """Read, and assigned what it was."""
    rows, half = 4, n // 2
    for j in pto.range(n):
        pto.store(y, x * rows * half * j)
        rows, half = 4, n // 2


def changed_elsewhere(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """An inner function's doing is not seen, and what stands behind the loop is not the loop's."""
    count = 0

    def bump() -> int:
        nonlocal count
        count += 1
        return count
    for _ in pto.range(n):
        pto.store(y, x * bump())
    pto.store(y, x * count)
    count = 7


@pytest.mark.parametrize("function", [
    variables_of_the_bodys_own, unrolled, in_place, loops_in_loops, another_name, same_value, changed_elsewhere])
def test_what_a_body_may_change(function: Callable[..., object]) -> None:
    trace(function)


def in_an_inner_loop(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """Carried from turn to turn of both loops."""
    t = x + 1
    for _ in pto.range(n):
        for _ in pto.range(n):
            t = t * 2
            pto.store(y, t)


def through_a_closure(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """A variable that an inner function sees."""
    t = x + 1

    def now() -> object:
        return t
    for _ in pto.range(n):
        t = t * 2
        pto.store(y, now())


def as_a_flag(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """A Python bool decides once."""
    first = True
    for _ in pto.range(n):
        if first:
            pto.store(y, x)
        first = False


def unpacked(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
    """Two at once."""
    a, b = x + 1, x + 2
    for _ in pto.range(n):
        a, b = b, a
        pto.store(y, a - b)


@pytest.mark.parametrize("function, name", [(in_an_inner_loop, "t"), (through_a_closure, "t"), (as_a_flag, "first"), (unpacked, "[ab]")])
def test_what_a_body_may_not_carry(function: Callable[..., object], name: str) -> None:
    with pytest.raises(CarriedValueError, match=f"`{name}` is read in a loop and then assigned to") as caught:
        trace(function)
    line = getattr(caught.value.span, "line", 0)
    first = function.__code__.co_firstlineno
    assert first < line


def test_a_buffer_that_is_written_somewhere_may_be_read_in_a_loop() -> None:
    def body(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
        before, inside = pto.alloc((4, 8), F32, init=0), pto.alloc((4, 8), F32, init=1)
        before[:] = x
        pto.store(y, inside)
        for _ in pto.range(n):
            own = pto.alloc((4, 8), F32, init=2)
            pto.store(y, before + own)
    trace(body)


def test_a_buffer_that_nothing_writes_may_not() -> None:
    def body(n: Scalar[I32], y: Out[SMALL]) -> None:
        zero = pto.alloc((4, 8), F32, init=0)
        for _ in pto.range(n):
            with pto.when(n > 2):
                pto.store(y, zero + 1)
    with pytest.raises(BufferMisuseError, match="`zero` is read in a loop and never written"):
        trace(body)


def test_an_escaped_value_says_where_it_was_made() -> None:
    def body(x: In[SMALL], n: Scalar[I32], y: Out[SMALL]) -> None:
        for j in pto.range(n):
            made = x * j
        pto.store(y, made)
    with pytest.raises(EscapedValueError) as caught:
        trace(body)
    assert caught.value.notes[0].endswith(f"test_carried.py:{body.__code__.co_firstlineno + 2}:20")
