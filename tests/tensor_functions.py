"""Build functions on tensors directly, for tests of what runs and changes them.

    f = FunctionBuilder("f")
    n = f.symbol("n")
    x = f.param("x", (n, 8))
    f.give(f.apply("exp", x))
    function = f.function()
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import simplified
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, SymbolRef, Var
from pto_wsp.ops.tensors import ArrayType, infer
from pto_wsp.source import UNKNOWN, Span

F32 = DType.F32


def extents(shape: Any) -> tuple[Scalar, ...]:
    """Whole numbers and scalars as extents."""
    return tuple(scalar(n) for n in shape)


def scalar(value: Any) -> Scalar:
    """A number, or a scalar as it is."""
    return Const(value) if isinstance(value, int | float | bool) else value


class FunctionBuilder:
    """Collects statements; arrays are views, so that steps and operands read alike."""

    def __init__(self, name: str = "f") -> None:
        self.name = name
        self.group = ""          # of what follows
        self._ids = itertools.count()
        self._names: dict[str, int] = {}
        self._bodies: list[list[t.Item]] = [[]]
        self.params: list[t.ArrayParam] = []
        self.constants: list[t.ArrayConstant] = []
        self.symbols: list[SymbolRef] = []
        self.scalars: list[SymbolRef] = []
        self.assumptions: list[t.Assumption] = []
        self.results: list[t.ArrayView] = []
        self._lines = itertools.count(1)

    def span(self) -> Span:
        """A line of its own."""
        return Span("function.py", next(self._lines), 0)

    def array(self, name: str, shape: Any, dtype: DType = F32, contracts: tuple[Contract, ...] = ()) -> t.Array:
        """An array under a name of its own."""
        count = self._names[name] = self._names.get(name, 0) + 1
        return t.Array(next(self._ids), name if count == 1 else f"{name}_{count}", extents(shape), dtype, contracts)

    def symbol(self, name: str) -> SymbolRef:
        """An extent."""
        self.symbols.append(SymbolRef(name, next(self._ids)))
        return self.symbols[-1]

    def scalar(self, name: str, dtype: DType = F32) -> SymbolRef:
        """A number of each call."""
        self.scalars.append(SymbolRef(name, next(self._ids), dtype))
        return self.scalars[-1]

    def param(self, name: str, shape: Any, dtype: DType = F32, *, written: bool = False,
              contracts: tuple[Contract, ...] = ()) -> t.ArrayView:
        """A parameter."""
        made = self.array(name, shape, dtype, contracts)
        self.params.append(t.ArrayParam(made, written))
        return t.ArrayView(made)

    def constant(self, name: str, value: Any) -> t.ArrayView:
        """A NumPy array that the body captured."""
        made = self.array(name, value.shape, DType.from_numpy(value.dtype))
        self.constants.append(t.ArrayConstant(made, value.tobytes()))
        return t.ArrayView(made)

    def assume(self, condition: Scalar) -> None:
        """A condition that calls keep."""
        self.assumptions.append(t.Assumption(condition, self.span()))

    def append(self, statement: t.Statement) -> None:
        """A statement."""
        self._bodies[-1].append(flow.Do(statement))

    def apply(self, op: str, *operands: Any, attrs: Any = (), shape: Any = None, dtype: DType = F32, name: str = "",
              contracts: tuple[Contract, ...] = (), group: str = "") -> t.ArrayView:
        """An operation; `shape` and `dtype` of the result where the op takes them from there."""
        return self.apply_all(op, *operands, attrs=attrs, shape=shape, dtype=dtype, name=name, contracts=contracts, group=group)[0]

    def apply_all(self, op: str, *operands: Any, attrs: Any = (), shape: Any = None, dtype: DType = F32, name: str = "",
                  contracts: tuple[Contract, ...] = (), group: str = "") -> tuple[t.ArrayView, ...]:
        """An operation with all of its results."""
        values = tuple(one if isinstance(one, t.ArrayView) else scalar(one) for one in operands)
        types = [ArrayType(one.shape, one.dtype) if isinstance(one, t.ArrayView) else None for one in values]
        wanted = None if shape is None else ArrayType(extents(shape), dtype)
        made = tuple(self.array(name or op, tuple(map(simplified, found.shape)), found.dtype, contracts)
                     for found in infer(op, types, attrs, wanted))
        self.append(t.Apply(op, values, made, attrs, group or self.group, self.span()))
        return tuple(map(t.ArrayView, made))

    def make(self, name: str, shape: Any, fill: Any = None, dtype: DType = F32) -> t.ArrayView:
        """State."""
        made = self.array(name, shape, dtype)
        self.append(t.Make(made, fill, self.span()))
        return t.ArrayView(made)

    def put(self, target: t.ArrayView, value: Any, table: t.ArrayView | None = None, add: bool = False) -> None:
        """A write."""
        self.append(t.Put(target, value if isinstance(value, t.ArrayView) else scalar(value), table, add, "", self.span()))

    def show(self, label: str, value: t.ArrayView) -> None:
        """A print."""
        self.append(t.Show(label, value, self.group, self.span()))

    @contextmanager
    def loop(self, stop: Any, start: Any = 0, step: Any = 1, *, ordered: bool = True, name: str = "i", group: str = "") -> Iterator[Var]:
        """A loop around what stands in the block."""
        var = Var(name, next(self._ids))
        self._bodies.append([])
        yield var
        body = flow.Sequence(tuple(self._bodies.pop()))
        self._bodies[-1].append(flow.Loop(var, scalar(start), scalar(stop), scalar(step), ordered, body, t.BodyNote(group),
                                          None, self.span()))

    @contextmanager
    def when(self, condition: Scalar) -> Iterator[None]:
        """A choice of one branch around what stands in the block."""
        self._bodies.append([])
        yield
        body = flow.Sequence(tuple(self._bodies.pop()))
        self._bodies[-1].append(flow.Choice((flow.Branch(condition, body, t.BodyNote(), self.span()),), flow.Sequence()))

    def give(self, *views: t.ArrayView) -> None:
        """Results."""
        self.results += views

    def function(self) -> t.TensorFunction:
        """What was built."""
        return t.TensorFunction(self.name, tuple(self.params), flow.Sequence(tuple(self._bodies[0])), tuple(self.results),
                                tuple(self.symbols), tuple(self.scalars), tuple(self.constants), tuple(self.assumptions), UNKNOWN)


def at_least(lhs: Any, rhs: Any) -> Scalar:
    """lhs >= rhs."""
    return Binary(Op.GE, scalar(lhs), scalar(rhs))
