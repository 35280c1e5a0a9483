"""`print_ir`: the text of an IR, which `pto_wsp.parse` reads back: of kernels as `print_kernel`, of workloads and plans as below.

The nodes of workloads and plans are spelled by the tables of tags, `Tag(field=value, …)`, without fields that have their default. Kernels,
tensors, variables, symbols, channels and events stand in front, each once, under a name of their own.

>>> print(print_ir(workload))
workload twice:
    X = TensorRef(id=0, shape=[4, 8], dtype=f32, name='X', layout=Layout(strides=[8, 1]))
    b = Var(name='b', id=0)
    kernel double(x: InOut[Tile[1, 8, f32]]):
        …
    Workload(name='twice', body=[Loop(var=b, stop=4, …, body=[Task(kernel=double, index=[b], args=[ViewArg(param='x', view=X[b])], …)])])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import TypeAlias, get_args

from pto_wsp.ir import flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.names import Names
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_tags import PLAN_TAGS
from pto_wsp.ir.rewrite import field_names, rewrite
from pto_wsp.ir.scalar import Scalar, SymbolRef, Var, print_scalar
from pto_wsp.ir.tags import WORKLOAD_TAGS, FieldTag, Tags, value_of
from pto_wsp.ir.text import Text, TextRow, listed, wrap_text
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, View
from pto_wsp.source import Span

_WIDTH = 140
SHARED = (TensorRef, Var, SymbolRef, wl.ChannelRef, wl.EventRef, Kernel)     # what stands in front, under a name of its own
SCALARS: tuple[type, ...] = get_args(Scalar)
LEVELS: Mapping[type, tuple[str, Tags]] = {wl.Workload: ("workload", WORKLOAD_TAGS), TaskPlan: ("plan", PLAN_TAGS)}
# words of scalars: no name in the text is one
RESERVED = frozenset({"True", "False", "None", "inf", "nan", "task_index", "calendar", "replica", "kernel", "workload", "plan", "for",
                      "in"})
Shared: TypeAlias = TensorRef | Var | SymbolRef | wl.ChannelRef | wl.EventRef | Kernel
Printed: TypeAlias = Kernel | wl.Workload | TaskPlan


def print_ir(ir: Printed) -> str:
    """Return the text of an IR."""
    return print_kernel(ir) if isinstance(ir, Kernel) else _Printer(ir).text()


class _Printer:
    """Prints one workload or plan."""

    def __init__(self, ir: wl.Workload | TaskPlan) -> None:
        self._ir = ir
        self._word, self._tags = LEVELS[type(ir)]
        self._names: dict[Shared, str] = {}
        names = Names(RESERVED, lambda name, count: f"{name}.{count - 1}")
        shared = tuple(dict.fromkeys(_shared(ir)))
        params = {param.name for node in shared if isinstance(node, Kernel) for param in node.params}     # which costs of kernels name, too
        for node in shared:
            shown = node.name if node.name.isidentifier() else type(node).__name__.removesuffix("Ref").lower()
            name = names.take(shown)
            self._names[node] = names.take(shown) if isinstance(node, Var) and name in params else name

    def text(self) -> str:
        """Return the text."""
        lines = [f"{self._word} {self._ir.name}:"]
        for node, name in self._names.items():
            if isinstance(node, Kernel):
                lines.extend(print_kernel(replace(node, name=name)).split("\n"))
            else:
                lines.extend(wrap_text(TextRow((f"{name} = ", self._node(node))), _WIDTH).split("\n"))
        lines.extend(wrap_text(self._node(self._ir), _WIDTH).split("\n"))
        return "\n".join((lines[0], *(f"    {line}".rstrip() for line in lines[1:])))

    def _node(self, node: object) -> Text:
        entry = self._tags.of_node(node)
        parts = tuple(TextRow((f"{field.tag}=", self._field(value_of(node, field)))) for field in entry.fields
                      if field.counts and not self._is_default(type(node), field, value_of(node, field)))
        return listed(f"{entry.tag}(", parts, ",", ")") if parts else f"{entry.tag}()"

    def _field(self, value: object) -> Text:
        return self._value(value.items if isinstance(value, flow.Sequence) else value)

    def _value(self, value: object) -> Text:
        if isinstance(value, DType):
            return str(value)
        if isinstance(value, Enum):
            return self._tags.of_member(value)[1]
        if isinstance(value, tuple):
            return listed("[", tuple(map(self._value, value)), ",", "]")
        if isinstance(value, frozenset):
            return f"{{{', '.join(sorted(self._tags.of_member(member)[1] for member in value))}}}"
        if isinstance(value, SHARED):
            return self._names[value]
        if isinstance(value, SCALARS):
            return self._scalar(value)    # type: ignore[arg-type]
        if isinstance(value, View):
            return self._names[value.tensor] + "".join(self._steps(value))
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        return self._node(self._tags.unwrapped(value))

    def _is_default(self, kind: type, field: FieldTag, value: object) -> bool:
        """Tell whether a field has its default, which the text leaves out."""
        note, _, name = field.attribute.rpartition(".")
        default = defaults(self._tags.note if note and self._tags.note else kind).get(name, MISSING)
        return default is not MISSING and type(value) is type(default) and value == default

    def _scalar(self, node: Scalar) -> str:
        def named(inner: object) -> object | None:
            if isinstance(inner, SymbolRef):
                return SymbolRef(self._names[inner], inner.id)
            return replace(inner, name=self._names[inner]) if isinstance(inner, TensorRef | Var) else None

        return print_scalar(rewrite(node, named))

    def _steps(self, view: View) -> Iterator[str]:
        """Yield the brackets and calls of a view. A bracket holds steps from left to right."""
        entries: list[str] = []
        dim = 0
        for step in view.steps:
            if isinstance(step, Pick | Cut):
                if step.dim < dim:
                    yield f"[{', '.join(entries)}]"
                    entries, dim = [], 0
                entries += [":"] * (step.dim - dim)
                dim = step.dim
                if isinstance(step, Pick):
                    entries.append(self._scalar(step.index))
                else:
                    by = f":{step.step}" if step.step != 1 else ""
                    entries.append(f"{self._scalar(step.start)}:{self._scalar(step.stop)}{by}")
                    dim += 1
                continue
            if entries:
                yield f"[{', '.join(entries)}]"
                entries, dim = [], 0
            match step:
                case Clip(numbers):
                    yield f".clip({', '.join(map(str, numbers))})"
                case Permute(numbers):
                    yield f".transpose({', '.join(map(str, numbers))})"
                case Reshape(numbers, dims):
                    within = f", dims=({dims[0]}, {dims[1]})" if dims else ""
                    yield f".reshape({', '.join(map(str, numbers))}{within})"
        if entries:
            yield f"[{', '.join(entries)}]"


def _shared(node: object) -> Iterator[Shared]:
    """Yield what stands in front of a text, in the order of its first use; nothing inside a kernel."""
    if isinstance(node, tuple):
        for item in node:
            yield from _shared(item)
    elif isinstance(node, SHARED):
        yield node
    elif is_dataclass(node) and not isinstance(node, Span | type):
        for name in field_names(type(node)):
            yield from _shared(getattr(node, name))


@cache
def defaults(kind: type) -> Mapping[str, object]:
    """Return the fields of a node's class that have a default, with it."""
    return {f.name: f.default for f in fields(kind) if f.default is not MISSING}
