"""Tags: JSON and digests stay the same bytes whatever classes, fields and members are called."""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass, make_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import pytest

from pto_wsp import Channel, DType, In, Out, P, ReadyPolicy, Scalar, Tensor, Tile, Workload, consume, kernel, pto, send, workload
from pto_wsp.errors import DataFormatError
from pto_wsp.ir import execution_rules, flow, layout, plan, scalar, tile, view
from pto_wsp.ir import kernel as kernel_ir
from pto_wsp.ir import workload as workload_ir
from pto_wsp.ir.codec import NodeCodec, check_types
from pto_wsp.ir.digest import kernel_digest, plan_digest
from pto_wsp.ir.plan_tags import PLAN_TAGS
from pto_wsp.ir.tags import KERNEL_TAGS, WORKLOAD_TAGS, Tags
from pto_wsp.ir.workload import Task, WorkloadNote
from pto_wsp.source import Span

F32 = DType.F32


@kernel
def scale(x: In[Tile[1, 4, F32]], n: Scalar[F32], y: Out[Tile[1, 4, F32]]) -> None:
    total = pto.alloc((1, 4), F32, init=0)
    for _ in pto.range(3):
        total += x * n
    with pto.when(n > 1):
        total[:] = -total
    pto.store(y, total)


def whole() -> Workload:
    X, Y, Z = (Tensor(np.zeros((4, 4), np.float32), name=name) for name in "XYZ")
    ch = Channel("ch", 2)

    @workload
    def made() -> None:
        for i in P(4):
            with P.when(i > 1):
                scale[i](X[i:i + 1], 2.0, Y[i:i + 1])
        with P.pipe():
            for i in P.seq(4):
                send(ch, scale[i](Y[i:i + 1], 1.5, Z[i:i + 1]))
            with consume(ch) as i:
                scale[i](Z[i:i + 1], 1.5, Y[i:i + 1])

    return made()


# what lowering numbers and opens, and the notes of nodes that a workload says nothing of
LEFT_OUT: dict[int, set[tuple[type, str]]] = {id(KERNEL_TAGS): set(), id(PLAN_TAGS): set(), id(WORKLOAD_TAGS): {
    *((kind, "note") for kind in (flow.Through, flow.Branch, flow.SetSlot, flow.Send, flow.Fresh)),
    *((kind, "site") for kind in (flow.Send, flow.Receive, flow.Consume, flow.RecordEvent, flow.AwaitEvent)),
    (flow.Process, "stream"), (flow.Pipeline, "channels"), (flow.Pipeline, "events")}}


@pytest.mark.parametrize(("tags", "modules"), [(KERNEL_TAGS, (layout, scalar, tile, view, kernel_ir)), (WORKLOAD_TAGS, (workload_ir,)),
                                               (PLAN_TAGS, (plan, execution_rules))], ids=["kernel", "workload", "plan"])
def test_a_table_has_each_class_of_its_level_with_every_field(tags: Tags, modules: tuple[Any, ...]) -> None:
    own = [kind for module in modules for kind in vars(module).values()
           if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
           and kind not in (plan.Precondition, WorkloadNote, tile.SizedTile, tile.StackType)]
    assert own and not [kind for kind in own if kind not in tags.nodes]
    for kind, entry in tags.nodes.items():
        spelled = {(field.attribute.partition(".")[0], field.counts) for field in entry.fields}
        assert spelled == {(f.name, f.compare) for f in fields(kind) if (kind, f.name) not in LEFT_OUT[id(tags)]}, kind
    for enum, said in tags.enums.items():
        assert list(said.members) == [member.name for member in enum]


def renamed(attribute: str) -> str:
    """Return another name for a field; that of the note, which is spelled in its node, stays."""
    return attribute if attribute.startswith("note.") or attribute == "note" else f"new_{attribute}"


class Renamed:
    """A level whose classes, fields and members all have other names, and the trees of it."""

    def __init__(self, tags: Tags) -> None:
        self.kinds: dict[type, type] = {}
        self.enums: dict[type[Enum], Any] = {}
        levels: dict[str, tuple[dict[type, str], dict[type[Enum], str]]] = {"": ({}, {}), "plan.": ({}, {})}
        for kind, entry in tags.nodes.items():
            names = dict.fromkeys(renamed(field.attribute).partition(".")[0] for field in entry.fields)
            empty = {renamed(f.name): f.default for f in fields(kind) if any(f.name == field.attribute and field.optional
                                                                             for field in entry.fields)}
            made = make_dataclass(f"New{kind.__name__}", [(name, Any, field(default=empty[name])) if name in empty else (name, Any)
                                                          for name in names], frozen=True, kw_only=True)
            self.kinds[kind] = made
            nodes, _ = levels[entry.json.removesuffix(entry.tag)]
            marks = {f.tag: "?" if f.optional else "" if f.counts else "~" for f in entry.fields}
            nodes[made] = f"{entry.tag}: " + " ".join(f"{marks[f.tag]}{f.tag}={renamed(f.attribute)}" for f in entry.fields)
        for enum, said in tags.enums.items():
            members: Any = Enum(f"New{enum.__name__}", {f"NEW_{m.name}": m.value for m in enum})   # type: ignore[misc]
            self.enums[enum] = members
            _, enums = levels[said.json.removesuffix(said.tag)]
            enums[members] = f"{said.tag}: " + " ".join(f"{tag}=NEW_{name}" for name, tag in said.members.items())
        self.tags = Tags(*levels["plan."], below=Tags(*levels[""]), prefix="plan.", level=tags.level, note=tags.note,
                         wrappers={kind: [self.kinds[inner] for inner in inside] for kind, inside in tags.wrappers.items()})
        self.old = tags

    def of(self, node: object) -> Any:
        if isinstance(node, tuple | frozenset):
            return type(node)(self.of(item) for item in node)
        if isinstance(node, Enum):
            return self.enums[type(node)][f"NEW_{node.name}"]
        if not is_dataclass(node) or isinstance(node, Span):
            return node
        if type(node) not in self.kinds:       # a wrapper or a note, which has no tag
            return type(node)(**{f.name: self.of(getattr(node, f.name)) for f in fields(node)})
        given = {field.attribute.partition(".")[0] for field in self.old.nodes[type(node)].fields}
        return self.kinds[type(node)](**{renamed(name): self.of(getattr(node, name)) for name in given})


def test_other_names_in_python_give_the_same_json_of_a_workload() -> None:
    renamed, node = Renamed(WORKLOAD_TAGS), whole().node
    data = NodeCodec(WORKLOAD_TAGS).to_data(node)
    assert NodeCodec(renamed.tags).to_data(renamed.of(node)) == data
    assert NodeCodec(WORKLOAD_TAGS).from_data(data) == node


def test_other_names_in_python_give_the_same_json_of_a_plan() -> None:
    renamed, plan = Renamed(PLAN_TAGS), whole().compile(target="interp").plan
    data = NodeCodec(PLAN_TAGS, key="node", spans=True).to_data(plan)
    again = NodeCodec(renamed.tags, key="node", spans=True)
    assert again.to_data(renamed.of(plan)) == data
    assert again.from_data(data) == renamed.of(NodeCodec(PLAN_TAGS, key="node", spans=True).from_data(data))


@pytest.mark.slow
def test_other_names_in_python_give_the_same_digests() -> None:
    made = scale.specialise()
    renamed = Renamed(KERNEL_TAGS)
    assert kernel_digest(renamed.of(made), renamed.tags) == kernel_digest(made)
    plan = whole().streams(2).task_graph(ready=ReadyPolicy.priority(lambda t: t.params[0])).compile(target="interp", strict=False).plan
    of_plans = Renamed(PLAN_TAGS)
    assert plan_digest(of_plans.of(plan), of_plans.tags) == plan_digest(plan)


def test_a_wrapper_is_spelled_as_what_stands_in_it_and_comes_back() -> None:
    X, Y = (Tensor(np.zeros((1, 4), np.float32), name=name) for name in "XY")
    (item,) = workload(lambda: scale[0](X, 2.0, Y))().node.body.items
    assert isinstance(item, flow.Do) and isinstance(item.leaf, Task)
    data = NodeCodec(WORKLOAD_TAGS).to_data(item)
    assert data == NodeCodec(WORKLOAD_TAGS).to_data(item.leaf) and NodeCodec(WORKLOAD_TAGS).from_data(data) == item
    assert WORKLOAD_TAGS.name(item) == "Task"


def test_errors_write_values_by_their_tags() -> None:
    (loop, _) = whole().node.body.items
    assert isinstance(loop, flow.Loop)
    assert WORKLOAD_TAGS.shown(loop).startswith(f"Loop(var={loop.var!r}, axis=Axis(name='', label='")
    task = next(inner for inner in flow.walk(loop) if isinstance(inner, flow.Do))
    assert WORKLOAD_TAGS.shown((task,)) == f"({task.leaf!r},)"
    with pytest.raises(DataFormatError, match=r"Loop\.var is Block\(items=\(Choice\(branches="):
        check_types(replace(loop, var=loop.body))   # type: ignore[arg-type]


NEEDED = {
    "workload": "Axis: name, label; Loop: var, axis, start, stop, step, ordered, body; Through: var, value; Branch: condition, body; "
                "Choice: branches, otherwise; SetSlot: slot, value; Fresh: tensor; Combine: sides; Send: channel, payload; "
                "Receive: channel, vars; Consume: channel, vars, body; Record: event; Synchronize: event; Process: name, body; "
                "Pipeline: processes",
    "plan": "plan.Loop: var, start, stop, step, ordered, body; plan.Through: var, value; plan.Branch: condition, body; "
            "plan.Choice: branches, otherwise; plan.SetSlot: slot, value; plan.Fresh: slot; plan.Sides: sides; "
            "plan.Send: channel, payload, after, site; plan.Receive: channel, vars, site; plan.Consume: channel, vars, body, site; "
            "plan.RecordEvent: event, site; plan.AwaitEvent: event, site; "
            "plan.Process: name, body, consumes, produces, replicas, stream; plan.Pipeline: processes"}


@pytest.mark.parametrize(("level", "tags"), [("workload", WORKLOAD_TAGS), ("plan", PLAN_TAGS)])
def test_a_level_needs_the_fields_of_its_format_whatever_default_a_class_has(level: str, tags: Tags) -> None:
    for entry in NEEDED[level].split("; "):
        kind, _, fields_needed = entry.partition(": ")
        with pytest.raises(DataFormatError, match=f"{kind} without {fields_needed}$"):
            NodeCodec(tags).from_data({"kind": kind})


def test_two_classes_of_one_tag_are_refused() -> None:
    with pytest.raises(ValueError, match="one tag"):
        Tags({flow.Do: "Task: leaf"}, {}, below=WORKLOAD_TAGS)
