"""Trace the body of a function on whole tensors: operations, views and writes become statements of the IR.

`TensorTrace` is an `Emitter` of the op table, as the trace of a kernel is: `np.exp(x)`, `x + y` and the formulas of the table (softmax,
var) come here as ops on values of any rank.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import Signature
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from pto_wsp.errors import (
    EscapedValueError,
    ExtentError,
    MixedDTypeError,
    OutsideTraceError,
    StaleValueError,
    TensorBodyError,
    TensorFunctionError,
    TensorOperandError,
    TensorRankError,
    UnsupportedDTypeError,
)
from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.exchange import NotTaken, array_of, is_array
from pto_wsp.ir.extents import simplified
from pto_wsp.ir.indexing import MAX_RANK
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Const, Element, Scalar, Var, print_scalar
from pto_wsp.ir.symbolic import Symbolic, as_scalar
from pto_wsp.ir.tensor import Tensor, TensorView
from pto_wsp.ir.view import Pick
from pto_wsp.ops.entries.create import expand
from pto_wsp.ops.entries.elementwise import add, sub
from pto_wsp.ops.entries.matmul import matmul
from pto_wsp.ops.entries.movement import transpose
from pto_wsp.ops.entry import Attrs, activate, dtype_attr
from pto_wsp.ops.rounding import print_dtypes
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, RowReduce
from pto_wsp.ops.table import TABLE, find
from pto_wsp.ops.tensors import ARANGE, FULL
from pto_wsp.ops.whole import TileFunction
from pto_wsp.source import Span, here
from pto_wsp.trace.kernel.trace import weak_number
from pto_wsp.trace.tensor.blocks import TracedBodies
from pto_wsp.trace.tensor.extent_facts import ExtentFacts, clips_of
from pto_wsp.trace.tensor.names import ValueNames
from pto_wsp.trace.tensor.value import ArrayRole, Storage, TakenCopy, TensorValue, contracts_of, place_of
from pto_wsp.values import replaced
from pto_wsp.wording import form_elsewhere

LARGEST_CONSTANT = 4096     # elements of an array that a body captures
_CURRENT: ContextVar[TensorTrace | None] = ContextVar("pto_wsp_tensor_trace", default=None)


def current_trace(name: str) -> TensorTrace:
    """Return the trace that runs.

    Raises: K105 outside the body of a function on tensors.
    """
    trace = _CURRENT.get()
    if trace is None:
        raise OutsideTraceError(f"`tt.{name}` was called outside a function on tensors", here(), help=form_elsewhere(name) or
                                "call it in the body of a @jit; f.python(*arrays) runs such a body on NumPy arrays")
    return trace


def is_tracing() -> bool:
    """Tell whether the body of a function on tensors is being traced."""
    return _CURRENT.get() is not None


_ZERO, _ONE = Const(0), Const(1)


class TensorTrace(ABC):
    """The trace of one function. `root`: the code of the function, whose frame the names of values end at."""

    def __init__(self, root: CodeType) -> None:
        self.root = root
        self.blocks = TracedBodies()
        self.facts = ExtentFacts(self.blocks)
        self.names = ValueNames()
        self.constants: list[tf.ArrayConstant] = []
        self.made: dict[int, Storage] = {}          # by the id of the array
        self._constants_by_array: dict[int, tuple[object, Storage]] = {}
        self.symbols: set[s.SymbolRef] = set()      # extents of parameters, and Scalars
        self._ids = itertools.count()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make this the trace that values and functions find, for the duration of a `with` block."""
        token = _CURRENT.set(self)
        try:
            with activate(self):
                yield
        finally:
            _CURRENT.reset(token)

    # -- arrays --------------------------------------------------------------------------------------------------------

    @property
    def group(self) -> str:
        """The group that `with tt.group(…)` names here."""
        return self.blocks.group

    def storage(self, name: str, shape: tf.Extents, dtype: DType, kind: ArrayRole, *, contracts: tuple[Contract, ...] = (),
                named: bool = False) -> Storage:
        """Return the storage of a new array. If another array has the name already, the name gets a number.

        Raises: J206 for too many dimensions.
        """
        if len(shape) > MAX_RANK:
            raise TensorRankError(f"a tensor has at most {MAX_RANK} dimensions", here(), found=f"{len(shape)}: {_shown(shape)}")
        array = tf.Array(next(self._ids), self.names.unique(name), tuple(map(simplified, shape)), dtype, contracts)
        self.facts.naturals.update(array.shape)
        made = Storage(array, kind, self.blocks.innermost.id, here(), named=named)
        self.made[array.id] = made
        return made

    def state(self, shape: tf.Extents, dtype: DType, fill: int | float | bool | None, name: str | None = None, what: str = "state",
              ) -> TensorValue:
        """Make state: of one number, or undefined (None)."""
        found, named = self.names.of_value(what, self.root) if name is None else (name, False)
        made = self.storage(found, shape, dtype, ArrayRole.STATE, named=named)
        self.blocks.append(tf.Make(made.array, fill, here()))
        return TensorValue(self, made)

    def constant(self, array: object, name: str = "constant") -> TensorValue:
        """Return an array that the body captured, as a constant of the function.

        Raises: J105 for one of too many elements, D101 and D102 for what is no array of ours.
        """
        known = self._constants_by_array.get(id(array))
        if known is not None:
            return TensorValue(self, known[1])
        found = array_of(array)
        if isinstance(found, NotTaken):
            raise TensorBodyError(f"the body computes with {found.what}", here(), expected=found.expected, found=found.found,
                                  help=found.help, notes=found.notes)
        if found.size > LARGEST_CONSTANT:
            raise TensorBodyError(f"an array of {found.size:,} elements would become a constant of the function", here(),
                                  expected=f"at most {LARGEST_CONSTANT:,} elements", found=f"an array of shape {found.shape}",
                                  help="pass it as a parameter: each call then brings its own")
        dtype = DType.from_numpy(found.dtype)
        made = self.storage(name, tuple(Const(n) for n in found.shape), dtype, ArrayRole.CONSTANT)
        made.block = 0
        self.constants.append(tf.ArrayConstant(made.array, np.ascontiguousarray(found).tobytes()))
        self._constants_by_array[id(array)] = (array, made)     # the array is kept, so that its id stays its own
        return TensorValue(self, made)

    def value(self, where: str, given: object) -> TensorValue:
        """Return a tensor or an array as a value that may be read here.

        Raises: J209 for anything else; K104, J106 for a value that is no more what it was.
        """
        if isinstance(given, TensorValue):
            self.check_read(given)
            return given
        if isinstance(given, Tensor | TensorView):
            raise TensorBodyError(f"{where}: a Tensor of a workload in a function on tensors", here(), found=repr(given),
                                  help="pass it as a parameter of the function")
        if is_array(given) and getattr(given, "shape", ()) != ():
            return self.constant(given)
        raise TensorOperandError(f"{where} takes a tensor", here(), expected="a tensor of this function", found=f"{given!r:.60}")

    def check_read(self, value: TensorValue) -> None:
        """Check that the current body may use a value, and that no write has changed the elements of the value since.

        Raises: K104 for a value of another function or of a body that has ended, J106 for a copy whose source was written since.
        """
        if value.trace is not self:
            raise EscapedValueError(f"`{value.name}` belongs to another function", here(), help="pass it as a parameter")
        storage = value.storage
        if not self.blocks.is_open(storage.block):
            kind = self.blocks.kinds[storage.block]
            raise EscapedValueError(f"`{value.name}` is made inside a {kind} and used behind it", here(), also=[("made", storage.span)],
                                    help=f"keep it in state made before the {kind}: held = tt.zeros(shape), then held[:] = ... in it")
        for taken in value.taken:
            self.check_taken(taken)

    def check_taken(self, taken: TakenCopy) -> None:
        """Check that a storage has not been written since a copy of it was taken.

        Raises: J106.
        """
        if not self.blocks.is_open(taken.block):
            raise EscapedValueError(f"{taken.what} of `{taken.storage.array.name}` is taken inside a {self.blocks.kinds[taken.block]} and "
                                    "used behind it", here(), also=[("taken", taken.span)])
        if taken.storage.version != taken.version:
            self.refuse_stale(taken, here())
        self.blocks.innermost.taken.append((taken, here()))

    def refuse_stale(self, taken: TakenCopy, span: Span) -> NoReturn:
        """Refuse a copy whose source has been written.

        Raises: J106.
        """
        name = taken.storage.array.name
        raise StaleValueError(f"{taken.what} of `{name}` is used after `{name}` was written", span, also=[("taken", taken.span)],
                              expected=f"{taken.what} that is taken after the write", help="take it again where it is used")

    def close_loop(self, var: Var) -> None:
        """End the body of a loop.

        Raises: J106 where an iteration uses what was taken before the loop of a tensor that the loop writes.
        """
        opener = self.blocks.innermost.id
        body = self.blocks.close_loop(var)
        for taken, span in body.taken:
            if taken.storage in body.written and taken.block < opener:
                self.refuse_stale(taken, span)

    # -- scalars -------------------------------------------------------------------------------------------------------

    def scalar(self, where: str, value: object) -> Scalar:
        """Return a Python number or a scalar of the function as a node.

        Raises: J209 for anything else, a scalar of a workload among it, K104 for the variable of a loop that has ended, J106 for an element
        written since.
        """
        if isinstance(value, TensorValue):
            return self._element_of(where, value)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        if not isinstance(value, Symbolic | int | float | np.generic):
            raise TensorOperandError(f"{where}: a value that a function on tensors does not know", here(),
                                   expected="a tensor of this function, or a number", found=f"{value!r:.60}")
        node = as_scalar(value)
        if isinstance(value, Symbolic):
            for held in value.holds:
                if isinstance(held, TakenCopy):
                    self.check_taken(held)
        for leaf in s.leaves(node):
            match leaf:
                case Var():
                    if not self.blocks.is_loop_open(leaf):
                        raise EscapedValueError(f"{where}: `{leaf.name}` is the variable of a loop that has ended", here(),
                                                found=print_scalar(node))
                case s.SymbolRef() if leaf in self.symbols:
                    pass
                case Element(tensor) if tensor.id in self.made and self.made[tensor.id].array.ref == tensor:
                    pass
                case _:
                    raise TensorOperandError(f"{where}: `{print_scalar(leaf)}` is a scalar of a workload, not of this function", here(),
                                             help="give the function a Scalar[dtype] parameter and pass a number to each call")
        return node

    def _element_of(self, where: str, value: TensorValue) -> Scalar:
        self.check_read(value)
        if value.rank or not (value.dtype.is_integer or value.dtype.is_bool):
            raise TensorOperandError(f"{where} takes a number or a scalar", here(), expected="a whole number, or x[i] of a tensor of them",
                                   found=repr(value))
        return self.only_element(value)

    def only_element(self, value: TensorValue) -> Scalar:
        """Return the only element of a value of rank 0 as a scalar."""
        return Element(value.storage.array.ref, place_of(value.array_view, ()))

    def whole(self, where: str, value: object) -> Scalar:
        """Return a whole number or scalar as a node.

        Raises: J209 for another number, else as `scalar`.
        """
        node = self.scalar(where, value)
        if not s.scalar_dtype(node).is_integer:
            raise TensorOperandError(f"{where} is no whole number", here(), expected="a whole number, or a scalar of one",
                              found=print_scalar(node), help="a // b is whole")
        return simplified(node)

    def extents(self, where: str, shape: object) -> tf.Extents:
        """Return a shape as extents.

        Raises: J209 for what is none.
        """
        items = shape if isinstance(shape, tuple | list) else (shape,)
        nodes = tuple(self.whole(f"{where}: an extent", item) for item in items)
        if any(isinstance(node, Const) and node.value < 0 for node in nodes):
            raise TensorOperandError(f"{where}: an extent is negative", here(), found=_shown(nodes))
        return nodes

    # -- facts about extents -------------------------------------------------------------------------------------------

    def joined(self, where: str, *values: TensorValue) -> tf.Extents:
        """Return the shape that values broadcast to: from the end, equal extents, or a written 1.

        Raises: J201 where they do not.
        """
        return self.joined_shapes(where, [(repr(value), value.extents) for value in values])

    def joined_shapes(self, where: str, shapes: Sequence[tuple[str, tf.Extents]]) -> tf.Extents:
        """Return the shape that `shapes` broadcast to. Each shape is paired with the text that an error shows for its operand."""
        rank = max((len(shape) for _, shape in shapes), default=0)
        result: list[Scalar] = []
        for back in range(rank, 0, -1):
            at = [shape[-back] for _, shape in shapes if len(shape) >= back]
            kept: Scalar = Const(1)
            for extent in at:
                if kept == Const(1):
                    kept = extent
                elif extent != Const(1) and not self.facts.are_same(kept, extent):
                    self.refuse_extents(where, kept, extent, " and ".join(text for text, _ in shapes))
                elif isinstance(extent, Const) and extent != Const(1):
                    kept = extent
            result.append(kept)
        return tuple(result)

    def refuse_extents(self, where: str, a: Scalar, b: Scalar, found: str) -> NoReturn:
        """Refuse two extents that are not provably equal.

        Raises: J201.
        """
        numbers = isinstance(a, Const) and isinstance(b, Const)
        left, right = print_scalar(a), print_scalar(b)
        leaves = [leaf for one in (a, b) for leaf in s.leaves(one) if not isinstance(leaf, Const)]
        inside = dict.fromkeys((*clips_of(self._spelled(a)), *clips_of(self._spelled(b))))
        if all(isinstance(leaf, s.SymbolRef) for leaf in leaves):
            same_extent = " == ".join(re.sub(r"\b(min|max)\(", r"np.\1imum(", print_scalar(self._spelled(one))) for one in (a, b))
            help = ("promise that the slice lies inside" if inside else "promise it") + ", which each call checks: " + ", ".join(
                f"tt.assume({one})" for one in inside or (same_extent,))
        else:
            help = "extents from data are equal where one slice cuts both: rows = slice(lo, hi), x[rows] and y[rows]"
        raise ExtentError(f"{where}: {left} and {right} are not {'equal' if numbers else 'provably equal'}", here(),
                          expected="equal extents, or a written 1", found=found, help=None if numbers else help)

    def _spelled(self, node: Scalar) -> Scalar:
        """Return a scalar with the extents of parameters under the names that the body has for them, x.shape[0]."""
        names = {extent: f"{one.array.name}.shape[{dim}]" for one in reversed(self.made.values())
                 if one.kind in (ArrayRole.READ, ArrayRole.WRITTEN) for dim, extent in reversed([*enumerate(one.array.shape)])}
        return s.substitute(node, lambda one: replaced(one, name=names[one]) if isinstance(one, s.SymbolRef) and one in names else None)

    # -- operations ----------------------------------------------------------------------------------------------------

    def apply(self, op: str, operands: Sequence[object], shape: tf.Extents, dtype: DType, attrs: tuple[tuple[str, Any], ...] = (), *,
              contracts: tuple[Contract, ...] = (), name: str | None = None) -> TensorValue:
        """Append an operation of one result, and return the result."""
        return self.apply_all(op, operands, ((shape, dtype, contracts),), attrs, (name,))[0]

    def apply_all(self, op: str, operands: Sequence[object], results: Sequence[tuple[tf.Extents, DType, tuple[Contract, ...]]],
                  attrs: tuple[tuple[str, Any], ...] = (), names: Sequence[str | None] = (None,)) -> tuple[TensorValue, ...]:
        """Append an operation, and return its results. `names`: of the results; None: as the user's statement says."""
        views = tuple(operand.array_view if isinstance(operand, TensorValue) else operand for operand in operands)
        made: list[Storage] = []
        for (shape, dtype, contracts), name in zip(results, names, strict=True):
            found, named = self.names.of_value(_word(op), self.root) if name is None else (name, False)
            made.append(self.storage(found, shape, dtype, ArrayRole.RESULT, contracts=contracts, named=named))
        self.blocks.append(tf.Apply(op, views, tuple(each.array for each in made), attrs, self.group, here()))  # type: ignore[arg-type]
        return tuple(TensorValue(self, each) for each in made)

    def emit(self, op: str, operands: tuple[object, ...], attrs: Attrs) -> Any:
        """Append an op of the table on tensors and numbers; return its result."""
        entry = find(op)
        where = f"`{op.strip('_')}`"
        if op == transpose.name:
            return self.value(where, operands[0]).mT
        match entry:
            case Elementwise():
                return self._elementwise(entry, where, operands, attrs)
            case RowReduce() | ColReduce():
                value = self._of_dtypes(where, operands[0], entry.dtypes, entry.hint)
                dim = self.dim_from_end(where, value, 1 if isinstance(entry, RowReduce) else 2)
                shape = tuple(Const(1) if k == dim else n for k, n in enumerate(value.extents))
                return self.apply(op, (value,), shape, value.dtype)
            case Convert():
                value = self._of_dtypes(where, operands[0], entry.dtypes, entry.hint)
                return self.apply(op, (value,), value.extents, dtype_attr(attrs), attrs)
            case TileFunction():
                return self._whole_axis(op, entry, where, operands, attrs)
        if op == matmul.name:
            return self.product(where, *operands)
        if op == expand.name and not isinstance(operands[0], TensorValue):
            return self.filled(where, operands[0], self.extents(where, dict(attrs)["shape"]), dtype_attr(attrs))
        raise TensorFunctionError(f"{where} is an op of tiles in kernels", here(), expected="a function of NumPy, or of tt",
                                  help="reshape, slices, np.concatenate, np.pad and tt.arange do on tensors what it does on tiles")

    def _elementwise(self, entry: Elementwise, where: str, operands: tuple[object, ...], attrs: Attrs) -> TensorValue:
        values = [self.value(where, each) if isinstance(each, TensorValue) or _has_shape(each) else each for each in operands]
        tensors = [each for each in values if isinstance(each, TensorValue)]
        shared = [each for each in (values[1:] if entry.mask_first else values) if isinstance(each, TensorValue)]
        if entry.mask_first and isinstance(values[0], TensorValue) and not values[0].dtype.is_bool:
            raise UnsupportedDTypeError(f"{where} chooses by a mask", here(), expected="a comparison, e.g. x > 0", found=repr(values[0]))
        if not tensors:
            raise TensorOperandError(f"{where} takes a tensor", here(), expected="a tensor of this function",
                                   found=", ".join(f"{each!r:.40}" for each in operands),
                                   help="of scalars alone use Python's operators, np.maximum and np.minimum; "
                                   "tt.cast(n, DType.F32) makes a tensor of a number")
        dtype = shared[0].dtype if shared else self._dtype_of_numbers(where, values[1:])
        if any(each.dtype is not dtype for each in shared):
            raise MixedDTypeError(f"{where}: operands of different dtypes", here(), expected="one dtype",
                                  found=" and ".join(map(repr, shared)), help=_converted(shared))
        if dtype not in entry.dtypes:
            self._refuse_dtype(where, shared[0] if shared else tensors[0], entry.dtypes, entry.hint)
        ready: list[object] = []
        for position, each in enumerate(values):
            if isinstance(each, TensorValue):
                ready.append(each)
            else:
                kind = DType.BOOL if entry.mask_first and position == 0 else dtype
                ready.append(self.weak(where, each, kind))
        contracts = self._shifted(entry, tensors, ready)
        return self.apply(entry.name, ready, self.joined(where, *tensors), DType.BOOL if entry.to_mask else dtype, attrs,
                          contracts=contracts)

    def _shifted(self, entry: Elementwise, tensors: Sequence[TensorValue], ready: Sequence[object]) -> tuple[Contract, ...]:
        """Return the contracts of a table that is shifted by a number: x + 1, x - n."""
        shifts = entry is add or (entry is sub and isinstance(ready[0], TensorValue))
        return contracts_of(tensors[0]) if shifts and len(tensors) == 1 else ()

    def weak(self, where: str, value: object, dtype: DType) -> Scalar:
        """Return a number or scalar with the dtype of the tensor that it meets.

        Raises: T203 for a float with integers or a number with masks, T209 for one that does not fit.
        """
        node = self.scalar(where, value)
        if isinstance(node, Const) and isinstance(node.value, bool) and not dtype.is_bool:
            node = Const(int(node.value))
        return weak_number(where, node, dtype)

    def _dtype_of_numbers(self, where: str, numbers: Sequence[object]) -> DType:
        kinds = {s.scalar_dtype(self.scalar(where, number)) for number in numbers}
        if any(kind.is_float for kind in kinds):
            return DType.F32
        return DType.BOOL if kinds and all(kind.is_bool for kind in kinds) else DType.I32

    def _of_dtypes(self, where: str, given: object, dtypes: tuple[DType, ...], hint: str) -> TensorValue:
        value = self.value(where, given)
        if value.dtype not in dtypes:
            self._refuse_dtype(where, value, dtypes, hint)
        return value

    def _refuse_dtype(self, where: str, value: TensorValue, dtypes: tuple[DType, ...], hint: str) -> NoReturn:
        target = next((dtype for dtype in (DType.F32, DType.I32) if dtype in dtypes), dtypes[0])
        raise UnsupportedDTypeError(f"{where} does not take {value.dtype}", here(), expected=print_dtypes(dtypes), found=repr(value),
                                    help=hint.replace("pto.cast(x, ", "x.astype(").replace("pto.", "tt.")
                                    or f"convert it first: x.astype({target!r})")

    def dim_from_end(self, where: str, value: TensorValue, back: int) -> int:
        """Return the number of the dimension that is `back` from the end.

        Raises: J206 where there are fewer dimensions.
        """
        if value.rank < back:
            raise TensorRankError(f"{where} works on the {'last dimension' if back == 1 else 'dimension before the last'}", here(),
                                  expected=f"{back} dimension{'s' * (back > 1)} or more", found=repr(value))
        return value.rank - back

    def _whole_axis(self, op: str, entry: TileFunction, where: str, operands: tuple[object, ...], attrs: Attrs) -> TensorValue:
        """Append an op that works along a whole last dimension: argsort, topk, rowargmax; gather."""
        value = self._of_dtypes(where, operands[0], entry.dtypes, entry.hint)
        dim = self.dim_from_end(where, value, 1)
        if len(operands) == 1:
            k = dict(attrs).get("k")
            last = Const(int(k)) if isinstance(k, int) else value.extents[dim] if entry.sorts else Const(1)
            contracts = (Contract.INJECTIVE,) if entry.sorts and value.rank == 1 else ()
            return self.apply(op, (value,), (*value.extents[:dim], last), DType.I32, attrs, contracts=contracts)
        raise TensorFunctionError(f"{where} is an op of tiles in kernels", here(), expected="a function of NumPy, or of tt",
                                  help="np.take_along_axis(x, places, axis) reads places; x[table] = v and np.add.at write them")

    def product(self, where: str, a: object, b: object, acc: object = None) -> TensorValue:
        """Return a matrix product over the last two dimensions; leading dimensions broadcast. Rank 1 is a vector, as in NumPy."""
        if acc is not None:
            raise TensorFunctionError(f"{where} adds nothing up", here(), expected="a @ b", found="acc", help="acc += a @ b")
        if not all(isinstance(each, TensorValue) or _has_shape(each) for each in (a, b)):
            raise TensorOperandError(f"{where} takes two tensors", here(), expected="a @ b of tensors", found=f"{a!r:.40} and {b!r:.40}",
                                   help="x * number scales")
        left, right = (self._of_dtypes(where, each, find(matmul.name).dtypes, "") for each in (a, b))
        if left.dtype is not right.dtype:
            raise MixedDTypeError(f"{where}: operands of different dtypes", here(), expected="one dtype",
                                  found=f"{left!r} and {right!r}", help=_converted((left, right)))
        if not left.rank or not right.rank:
            raise TensorRankError(f"{where} takes tensors of one dimension or more", here(), found=f"{left!r} and {right!r}")
        drops = [*([-2] if left.rank == 1 else []), *([-1] if right.rank == 1 else [])]
        shown = f"{left!r} @ {right!r}"
        left = left.then(tf.Insert(0)) if left.rank == 1 else left
        right = right.then(tf.Insert(1)) if right.rank == 1 else right
        if not self.facts.are_same(left.extents[-1], right.extents[-2]):
            self.refuse_extents(where, left.extents[-1], right.extents[-2], shown)
        leading = self.joined_shapes(where, [(repr(left), left.extents[:-2]), (repr(right), right.extents[:-2])])
        dtype = left.dtype.accumulates_in
        assert dtype is not None
        result = self.apply(matmul.name, (left, right), (*leading, left.extents[-2], right.extents[-1]), dtype)
        for back in drops:
            result = result.then(Pick(result.rank + back, Const(0)))
        return result

    def counted(self, extent: Scalar, dtype: DType, start: Scalar = _ZERO, step: Scalar = _ONE) -> TensorValue:
        """Return start, start + step, …, as many as the extent."""
        apart = step != Const(0)
        kept = (Contract.INJECTIVE,) if apart else ()
        rising = (Contract.MONOTONE,) if isinstance(step, Const) and step.value >= 0 else ()
        return self.apply(ARANGE, (start, step), (extent,), dtype, contracts=(*kept, *rising) if dtype.is_integer else ())

    def filled(self, where: str, number: object, shape: tf.Extents, dtype: DType) -> TensorValue:
        """Return a value of one number."""
        return self.apply(FULL, (self.weak(where, number, dtype),), shape, dtype)

    # -- what values ask for -------------------------------------------------------------------------------------------

    @abstractmethod
    def index(self, value: TensorValue, item: object) -> object:
        """Return `value[item]`."""

    @abstractmethod
    def assign(self, value: TensorValue, item: object, new: object) -> None:
        """Write `value[item] = new`."""

    @abstractmethod
    def method_of(self, value: TensorValue, name: str) -> Callable[..., object]:
        """Return what a method of the name does, with the value as the first argument."""

    @abstractmethod
    def numpy(self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Return what a function of NumPy means."""

    @abstractmethod
    def ufunc(self, ufunc: np.ufunc, method: str, inputs: Sequence[object], options: Mapping[str, object]) -> object:
        """Return what a ufunc of NumPy means."""

    @abstractmethod
    def torch(self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Return what a function of torch means."""

    # -- the rest of what an emitter is --------------------------------------------------------------------------------

    def read(self, tile: Any) -> Any:
        """Return a value as it is: views are read when they are used."""
        return self.value("a tensor's operation", tile)

    def spread(self, name: str, function: Callable[..., Any], expected: Signature, args: tuple[object, ...],
               kwargs: Mapping[str, object]) -> Any:
        """Call a function: tensors have any rank."""
        return function(*args, **kwargs)

    def stack(self, tiles: object, axis: object) -> Any:
        """Refuse: np.stack comes from the functions of tensors."""
        raise TensorFunctionError("`pto.stack` stacks tiles in kernels", here(), help="np.stack([a, b], axis=0)")

    def read_part(self, tile: Any, item: object) -> Any:
        """Return a part of a tensor."""
        return tile[item]

    def element(self, tile: Any, row: object, col: object) -> Any:
        """Return one element."""
        return tile[row, col]


def _word(op: str) -> str:
    """Return how a value inside an expression is called after its op: `mean` of rowmean and colmean."""
    entry = TABLE.get(op)
    return op[3:] if isinstance(entry, RowReduce | ColReduce) else op.strip("_")


def _converted(operands: Sequence[TensorValue]) -> str:
    """Return the help for operands of different dtypes: convert the first operand whose dtype is not the dtype of operand 0."""
    dtype = operands[0].dtype
    other = next(each for each in operands if each.dtype is not dtype)
    constant = next((each for each in operands if each.storage.kind is ArrayRole.CONSTANT and each.name.startswith("constant")), None)
    if constant is not None:      # an array that the body made and that no variable of it names
        wanted = (other if constant is operands[0] else operands[0]).dtype
        return f"NumPy made the array: array.astype(np.{wanted.np.name})" if wanted.np.kind in "fiub" else "pass the array as a parameter"
    return f"convert one of them: {other.name if other.name.isidentifier() else 'x'}.astype({dtype!r})"


def _has_shape(value: object) -> bool:
    if isinstance(value, Tensor | TensorView):
        return True
    return not isinstance(value, Symbolic) and is_array(value) and getattr(value, "shape", ()) != ()


def _shown(shape: Sequence[Scalar]) -> str:
    return f"[{', '.join(map(print_scalar, shape))}]"
