"""golden.py put together: inputs, kernels as functions, the workload's loops, and how near outputs must be."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated

from pto_wsp.codegen.npu.golden.inputs import Array, emit_inputs, spell_number, steering_tensors
from pto_wsp.codegen.npu.golden.kernels import emit_function
from pto_wsp.codegen.npu.golden.names import Scope
from pto_wsp.codegen.npu.golden.spelling import spell_dtype
from pto_wsp.codegen.npu.golden.tasks import emit_tasks
from pto_wsp.codegen.npu.golden.tolerance import tolerance_of
from pto_wsp.codegen.render import Unit, render
from pto_wsp.errors import InternalError
from pto_wsp.plan.model import TaskPlan, TensorSlot
from pto_wsp.records import After
from pto_wsp.resources import templates_dir
from pto_wsp.types.scalar import Number


def _printable(text: str) -> str:
    if not text.isprintable() or '"' in text or "\\" in text:
        raise ValueError(f"{text!r} cannot stand in a docstring")
    return text


class _GoldenUnit(Unit):
    """What golden.py.j2 prints."""

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
    """Return the text of golden.py for a plan whose kernels are as they were traced.

    `steering`: by id of the tensor, the elements of each that `steering_tensors` names, as they are bound. `numbers`: by id of the
    symbol, the values that are bound; a symbol without one is asked for in `params`.
    """
    if missing := steering_tensors(plan) - steering.keys():
        raise InternalError(f"no elements are given for tensors {sorted(missing)}, which decide what golden.py does")
    top = Scope(frozenset(_functions()))
    for reserved in ("generate_inputs", "compute_golden", "RTOL", "ATOL"):
        top.take(reserved, reserved)
    functions = [top.take(use.kernel.name, "kernel") for use in plan.kernels]
    local = Scope(top.names())
    tensors = {slot.ref.id: local.take(slot.ref.shown, "tensor") for slot in plan.tensors}
    symbols = {symbol.id: local.take(symbol.name, "symbol") for symbol in plan.symbols}
    made, entries = emit_inputs(plan, tensors, symbols, steering, numbers)
    arguments = [_argument(slot, tensors[slot.ref.id]) for slot in plan.tensors if not slot.fresh]
    arguments += [f"{name} = {spell_number(symbol, name, numbers)}" for symbol in plan.symbols for name in (symbols[symbol.id],)]
    bodies = tuple(emit_function(use.kernel, name, top.names()) for use, name in zip(plan.kernels, functions, strict=True))
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
    """Return the line by which compute_golden has a tensor: it is given it, or makes it."""
    return f"{name} = np.zeros({slot.ref.shape}, {spell_dtype(slot.ref.dtype)})" if slot.allocated else f'{name} = tensors["{name}"]'


def _imports(text: str) -> tuple[str, ...]:
    own = tuple(f"import {name}" for name in ("ctypes", "math") if f"{name}." in text)
    return (*own, *([""] if own else []), *(["import ml_dtypes"] if "ml_dtypes." in text else []), "import numpy as np")


def _brought_for(text: str) -> tuple[str, ...]:
    """Return the functions to bring along that a text calls, and those that they call, in the order of their file."""
    wanted, found = [text], set[str]()
    while wanted:
        calls = set(re.findall(r"\b_[a-z_]+\b", wanted.pop())) & _functions().keys() - found
        found |= calls
        wanted += [_functions()[name] for name in calls]
    return tuple(text for name, text in _functions().items() if name in found)


@lru_cache(maxsize=1)
def _functions() -> Mapping[str, str]:
    """Return the functions that a golden.py may bring along, by name, word by word."""
    text = (templates_dir() / "ascend_npu" / "golden_functions.py").read_text(encoding="utf-8")
    return {node.name: ast.get_source_segment(text, node) or "" for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
