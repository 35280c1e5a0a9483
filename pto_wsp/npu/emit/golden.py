"""Emit golden.py: inputs, kernels as NumPy functions, the workload's loops, and tolerances for the outputs.

- `index_params` and `positive_params` trace, backwards through a kernel, the parameters that become indices or operands of functions
  undefined below 0.
- `emit_inputs` feeds the package numbers from a seed; tensors that steer control flow or addressing keep their bound values.
- `tolerance_of` derives tolerances from ops, dtypes, and the number of terms that sums add.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from pto_wsp.c.render import TemplateUnit, render
from pto_wsp.errors import InternalError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.kernel_walk import operand_types, walk
from pto_wsp.ir.names import Names
from pto_wsp.ir.plan import TaskPlan, TensorSlot, is_float_symbol
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.scalar import Number, SymbolRef
from pto_wsp.ir.waits import waited_for
from pto_wsp.npu.emit.golden_tasks import emit_function, emit_tasks
from pto_wsp.npu.emit.golden_text import PYTHON_NAMES, python_ident, spell_dtype
from pto_wsp.ops.entry import Identity
from pto_wsp.ops.guards import takes_indices
from pto_wsp.ops.spec import ColReduce, Elementwise, Expand, Iota, Matmul, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.records import After
from pto_wsp.resources import templates_dir
from pto_wsp.values import dataclass


def index_params(kernel: k.Kernel) -> frozenset[str]:
    """Return the parameters whose elements become indices, or whole numbers that a kernel reads as scalars."""
    def seeds(stmt: k.Stmt) -> tuple[k.Operand, ...]:
        match stmt:
            case k.Gather() | k.Scatter():
                return (stmt.index,)
            case k.Item(item, value) if item.dtype.is_integer:
                return (value,)
            case k.Compute() if takes_indices(stmt):
                return (stmt.operands[1],)
            case _:
                return ()

    def through(stmt: k.Compute) -> tuple[k.Operand, ...]:
        entry, dtype = find(stmt.op), stmt.result.type.dtype
        if isinstance(entry, TileFunction) and entry.gives_columns:
            return ()       # they fit, whatever the operands are
        return stmt.operands[1:] if dtype in entry.selects else stmt.operands

    return _feeding(kernel, seeds, through)


def positive_params(kernel: k.Kernel) -> frozenset[str]:
    """Return the parameters whose negative elements would give a NaN: in a logarithm, a root, or a power."""
    def seeds(stmt: k.Stmt) -> tuple[k.Operand, ...]:
        match stmt:
            case k.Compute() if stmt.result.type.dtype in find(stmt.op).nan_below_zero:
                return stmt.operands[:1]
            case _:
                return ()

    def through(stmt: k.Compute) -> tuple[k.Operand, ...]:
        entry, dtype = find(stmt.op), stmt.result.type.dtype
        square = dtype in entry.non_negative_of_equals and stmt.operands[0] == stmt.operands[1]
        return () if square or dtype in entry.non_negative else stmt.operands

    return _feeding(kernel, seeds, through)


def _feeding(kernel: k.Kernel, seeds: Callable[[k.Stmt], tuple[k.Operand, ...]],
             through: Callable[[k.Compute], tuple[k.Operand, ...]]) -> frozenset[str]:
    stmts = tuple(walk(kernel.body))
    values = {operand.id for stmt in stmts for operand in seeds(stmt) if isinstance(operand, k.Value)}
    buffers: set[int] = set()
    params: set[str] = set()
    before = (-1, -1)
    while before != (len(values), len(buffers)):
        before = (len(values), len(buffers))
        for stmt in reversed(stmts):
            match stmt:
                case k.Compute(result, _, _, _) if result.id in values:
                    values |= {operand.id for operand in through(stmt) if isinstance(operand, k.Value)}
                case k.Load(result, param) | k.Gather(result, param) if result.id in values:
                    params.add(param)
                case k.Read(result, buffer) if result.id in values:
                    buffers.add(buffer.id)
                case k.Write(buffer, value) | k.WritePart(buffer, value) if buffer.id in buffers:
                    values.add(value.id)
                case _:
                    pass
    return frozenset(params)


# -- inputs ----------------------------------------------------------------------------------------


Array = npt.NDArray[Any]


def steering_tensors(plan: TaskPlan) -> frozenset[int]:
    """Return the ids of the given tensors that steer the run: read as scalars, or as indices by a kernel.

    Tensors that tasks compute before they are read as scalars need no values.
    """
    read = {slot.ref.id for slot in plan.tensors if slot.scalars and not slot.writes}
    return frozenset(read | _bound_to(plan, index_params)) - {slot.ref.id for slot in plan.tensors if slot.allocated}


def deciding_tensors(plan: TaskPlan) -> frozenset[int]:
    """Return the ids of the integer tensors whose elements are read as scalars after tasks wrote them, and of all inputs of those tasks.

    Inputs are followed transitively. These tensors keep their bound values: random numbers could lead to invalid indices.
    """
    slots = {number for number, slot in enumerate(plan.tensors) if waited_for(slot)}
    while slots:
        more = {place.slot for task in submits(plan) if any(place.slot in slots and place.role.writes for place in task.places)
                for place in task.places if place.role.reads} - slots
        if not more:
            break
        slots |= more
    return frozenset(slot.ref.id for number, slot in enumerate(plan.tensors)
                     if number in slots and not slot.allocated and not slot.ref.dtype.is_real)


def emit_inputs(plan: TaskPlan, names: Mapping[int, str], symbols: Mapping[int, str], steering: Mapping[int, Array],
                numbers: Mapping[int, Number]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines that create the tensors, and the entries of the list that generate_inputs returns."""
    positive = _bound_to(plan, positive_params)
    given = [slot for slot in plan.tensors if not slot.allocated]
    lines = [line for slot in given for line in _tensor(slot, names[slot.ref.id], steering, slot.ref.id in positive)]
    entries = [f'("{names[slot.ref.id]}", {names[slot.ref.id]}),' for slot in given]
    for symbol in plan.symbols:
        kind = "ctypes.c_float" if is_float_symbol(symbol) else "ctypes.c_int64"
        entries.append(f'("{symbols[symbol.id]}", {kind}({spell_number(symbol, symbols[symbol.id], numbers, "{}")})),')
    return tuple(lines), tuple(entries)


def spell_number(symbol: SymbolRef, name: str, numbers: Mapping[int, Number], tensors: str = "tensors") -> str:
    """Return a symbol's value: from params if given there, else its bound value."""
    default = numbers.get(symbol.id, symbol.default)
    return f'_number({tensors}, params, "{name}"{"" if default is None else f", {default!r}"})'


def _bound_to(plan: TaskPlan, choose: Callable[[Kernel], frozenset[str]]) -> frozenset[int]:
    """Return the ids of the tensors that some task binds to a parameter that `choose` names."""
    tensor_ids: set[int] = set()
    chosen = [choose(use.kernel) for use in plan.kernels]
    for task in submits(plan):
        params = plan.kernels[task.kernel].kernel.memory_params
        tensor_ids |= {place.view.tensor.id for place, param in zip(task.places, params, strict=True) if param.name in chosen[task.kernel]}
    return frozenset(tensor_ids)


def _tensor(slot: TensorSlot, name: str, steering: Mapping[int, Array], positive: bool) -> tuple[str, ...]:
    ref = slot.ref
    dtype = spell_dtype(ref.dtype)
    if ref.id in steering:
        return _embedded(name, steering[ref.id], dtype)
    if not slot.reads or slot.scalars:
        return (f"{name} = np.zeros({ref.shape}, {dtype})",)
    if ref.dtype.is_bool:
        return (f"{name} = rng.integers(0, 2, {ref.shape}).astype({dtype})",)
    if not ref.dtype.is_real:
        return (f"{name} = _whole_numbers(rng, {ref.shape}, {dtype})",)
    return (f"{name} = _floats(rng, {ref.shape}, {dtype}{', positive=True' if positive else ''})",)


def _embedded(name: str, data: Array, dtype: str) -> tuple[str, ...]:
    """Return the lines that spell an array's elements."""
    shaped = "" if data.ndim == 1 else f".reshape({data.shape})"
    elements = ", ".join(map(_element, data.ravel().tolist()))
    if len(elements) < 100:
        return (f"{name} = np.array([{elements}], {dtype}){shaped}",)
    return (f"{name} = np.array([", *(f"    {line}" for line in textwrap.wrap(elements, 130)), f"], {dtype}){shaped}")


def _element(value: Number) -> str:
    return repr(value) if not isinstance(value, float) or np.isfinite(value) else f'float("{value!r}")'


# -- tolerances ------------------------------------------------------------------------------------


# A device's float + - * equal NumPy's except for the last digit, which may round differently.
_EXACT = 1e-6
# Quotients, roots, exponentials and their like: a few units in the last place of f32, with a margin for chains of them.
_FUNCTION = 1e-5
# Per term of a sum: the error grows with the number of terms; 256 terms of a matrix product give 1e-4.
_TERM = 4e-7
# Two units in the last place of a rounded result: the device and golden.py both round.
_ROUNDED = {DType.F16: 2e-3, DType.BF16: 1.6e-2, DType.FP8E4M3: 0.25, DType.FP8E5M2: 0.5}
_SMALLEST_HALF = 6e-8   # distance between the smallest numbers of f16
_ASSUMED_ITERATIONS = 16   # assumed iterations of a loop of run-time length


@dataclass(frozen=True, slots=True)
class GoldenTolerance:
    """|found - expected| <= atol + rtol * |expected|. For scaled results, a small atol lets small rows count too.

    `grows`: results may be differences of larger terms: golden.py multiplies atol by their magnitude.
    """

    rtol: float
    atol: float
    grows: bool = False


def tolerance_of(plan: TaskPlan) -> GoldenTolerance:
    """Return the tolerance of a plan's outputs: the sum of the four largest kernel errors, as kernels feed each other."""
    needs = sorted((_body(use.kernel.body, 1) for use in plan.kernels), reverse=True)
    need = float(f"{sum(needs[:4]):.1e}")
    stmts = [stmt for use in plan.kernels for stmt in walk(use.kernel.body)]
    if not need or not all(map(_scales, stmts)):
        return GoldenTolerance(need, need, grows=bool(need))
    least = _SMALLEST_HALF if any(isinstance(stmt, k.Compute) and stmt.result.type.dtype is DType.F16 for stmt in stmts) else 0.0
    return GoldenTolerance(need, float(f"{max(need * 1e-6, least):.1e}"))


def _scales(stmt: k.Stmt) -> bool:
    """Return whether results are as exact, in digits, as their operands: nothing cancels."""
    if not isinstance(stmt, k.Compute) or not stmt.result.type.dtype.is_real:
        return not isinstance(stmt, k.Scatter) or not stmt.add
    entry = find(stmt.op)
    return stmt.result.type.dtype in entry.scales or isinstance(entry, Movement | Expand | Iota)


def _body(body: tuple[k.Stmt, ...], iterations: int) -> float:
    """Return the largest error of a statement, 0 for moves and counts. `iterations`: iterations of the enclosing loops."""
    largest = 0.0
    for stmt in body:
        match stmt:
            case k.Compute():
                largest = max(largest, _compute(stmt, iterations))
            case k.For(start=start, stop=stop, step=step):
                largest = max(largest, _body(stmt.body, iterations * _n_iterations(start, stop, step)))
            case k.If():
                largest = max(largest, _body(stmt.then, iterations), _body(stmt.other, iterations))
            case _:
                pass
    return largest


def _n_iterations(start: s.Scalar, stop: s.Scalar, step: s.Scalar) -> int:
    match start, stop, step:
        case s.Const(low), s.Const(high), s.Const(by):
            return max(1, len(range(int(low), int(high), int(by))))
        case _:
            return _ASSUMED_ITERATIONS


def _compute(stmt: k.Compute, iterations: int) -> float:
    entry, dtype = find(stmt.op), stmt.result.type.dtype
    if isinstance(entry, Movement | TileFunction | Expand | Iota) or not dtype.is_real:
        return 0.0
    least = _ROUNDED.get(dtype, 0.0)
    match entry:
        case Matmul():
            return max(least, _FUNCTION, _TERM * iterations * operand_types(stmt)[0].cols)
        case RowReduce() | ColReduce() if entry.identity not in (Identity.LOWEST, Identity.HIGHEST):
            source = operand_types(stmt)[0]
            return max(least, _FUNCTION, _TERM * iterations * (source.cols if isinstance(entry, RowReduce) else source.rows))
        case Elementwise() if not entry.c.simple:
            return max(least, _FUNCTION)
        case _:
            return max(least, _EXACT)


# -- the file --------------------------------------------------------------------------------------


def _printable(text: str) -> str:
    if not text.isprintable() or '"' in text or "\\" in text:
        raise ValueError(f"{text!r} cannot stand in a docstring")
    return text


class _GoldenUnit(TemplateUnit):
    """The values of golden.py.j2."""

    name: Annotated[str, After(_printable)]
    imports: tuple[str, ...]
    outputs: str
    rtol: float
    atol: float
    tensors: tuple[str, ...]
    entries: tuple[str, ...]
    arguments: tuple[str, ...]
    tasks: tuple[str, ...]
    functions: tuple[tuple[str, ...], ...]
    brought: tuple[str, ...]
    behind: tuple[str, ...]


def emit_golden(plan: TaskPlan, steering: Mapping[int, Array], numbers: Mapping[int, Number]) -> str:
    """Return the text of golden.py for a plan with traced, untransformed kernels.

    `steering`: by tensor id, the bound elements of each tensor that `steering_tensors` names. `numbers`: by symbol id, the bound values;
    `params` must give the other symbols.
    """
    if missing := steering_tensors(plan) - steering.keys():
        raise InternalError(f"no elements are given for tensors {sorted(missing)}, which decide what golden.py does")
    top = Names((*PYTHON_NAMES, *_functions(), "generate_inputs", "compute_golden", "RTOL", "ATOL"))
    functions = [top.take(python_ident(use.kernel.name, "kernel")) for use in plan.kernels]
    local = top.inner()
    tensors = {slot.ref.id: local.take(python_ident(slot.ref.shown, "tensor")) for slot in plan.tensors}
    symbols = {symbol.id: local.take(python_ident(symbol.name, "symbol")) for symbol in plan.symbols}
    made, entries = emit_inputs(plan, tensors, symbols, steering, numbers)
    arguments = [_argument(slot, tensors[slot.ref.id]) for slot in plan.tensors if not slot.fresh]
    arguments += [f"{name} = {spell_number(symbol, name, numbers)}" for symbol in plan.symbols for name in (symbols[symbol.id],)]
    bodies = tuple(emit_function(use.kernel, name, top.inner()) for use, name in zip(plan.kernels, functions, strict=True))
    tasks = emit_tasks(plan, functions, tensors, symbols, local)
    tolerance = tolerance_of(plan)
    lines = (*made, *entries, *arguments, *tasks, *(line for body in bodies for line in body))
    behind = ("", "", "ATOL *= _largest(generate_inputs, compute_golden, __outputs__)") if tolerance.grows else ()
    brought = _brought_for("\n".join((*lines, *behind)))
    return render("ascend_npu/golden.py.j2", _GoldenUnit(
        name=plan.name, imports=_imports("\n".join((*lines, *brought))),
        outputs=repr([tensors[slot.ref.id] for slot in plan.tensors if slot.writes and not slot.allocated]).replace("'", '"'),
        rtol=tolerance.rtol, atol=tolerance.atol, tensors=made, entries=entries, arguments=tuple(arguments), tasks=tasks,
        functions=bodies, brought=brought, behind=behind))


def _argument(slot: TensorSlot, name: str) -> str:
    """Return the line by which compute_golden gets a tensor: from its arguments, or newly created."""
    return f"{name} = np.zeros({slot.ref.shape}, {spell_dtype(slot.ref.dtype)})" if slot.allocated else f'{name} = tensors["{name}"]'


def _imports(text: str) -> tuple[str, ...]:
    own = tuple(f"import {name}" for name in ("ctypes", "math") if f"{name}." in text)
    return (*own, *([""] if own else []), *(["import ml_dtypes"] if "ml_dtypes." in text else []), "import numpy as np")


def _brought_for(text: str) -> tuple[str, ...]:
    """Return the library functions that a text calls, directly or through others, in the order of their file."""
    wanted, included = [text], set[str]()
    while wanted:
        calls = set(re.findall(r"\b_[a-z_]+\b", wanted.pop())) & _functions().keys() - included
        included |= calls
        wanted += [_functions()[name] for name in calls]
    return tuple(text for name, text in _functions().items() if name in included)


@lru_cache(maxsize=1)
def _functions() -> Mapping[str, str]:
    """Return the source of the library functions that golden.py may include, by name."""
    text = (templates_dir() / "ascend_npu" / "golden_functions.py").read_text(encoding="utf-8")
    return {node.name: ast.get_source_segment(text, node) or "" for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
