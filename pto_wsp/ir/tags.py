"""Tags: what JSON, digests and errors call the nodes of kernels and workloads, whatever Python calls their classes and fields.

One table a level lists every class with its tag and fields. A class or field that is renamed keeps its tag, so that no byte changes:

    Loop: "Loop: var start ..."             as written
    Repeat: "Loop: var start=first ..."     the class is called Repeat now, and its field `start` is called `first`

The order of the fields in a table is the order in which digests read them. `~` marks a field that is no part of what a node means, `?`
a text or tuple that is left out where it is empty, `!` a field that data must have although the class has a default. A field that the
table of a level leaves out has its default there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from pto_wsp.ir import flow, layout, mesh, scalar, tile, view
from pto_wsp.ir import kernel as k
from pto_wsp.ir import workload as wl
from pto_wsp.ir.dtype import DType

# what digests call the values that are no nodes
PLAIN: Mapping[type, str] = {bool: "bool", int: "int", float: "float", str: "str", type(None): "NoneType"}


class FieldTag(NamedTuple):
    """A field of a node: its tag, its attribute (`note.checks`: of the node's note), whether the field counts in comparisons, and whether
    data must have the field although the class has a default. `optional`: data leave the field out where it is `empty`.
    """

    tag: str
    attribute: str
    counts: bool
    needed: bool = False
    optional: bool = False
    empty: str | tuple[()] = ""


class NodeTag(NamedTuple):
    """What the nodes of a class are called, in JSON with the prefix of their level, and their fields in a fixed order."""

    tag: str
    json: str
    fields: tuple[FieldTag, ...]


class EnumTag(NamedTuple):
    """The tag of an enum, in JSON with the prefix of its level, and the tags of its members."""

    tag: str
    json: str
    members: Mapping[str, str]      # tags by the members' names


class Tags:
    """The table of a level: tags of its classes, of its enums, and of all of the level below.

    `nodes` and `enums`: for each class `"Tag: field field=attribute ~field ?text *sequence field!"` and `"Tag: MEMBER MEMBER=NAME"`.
    `wrappers`: classes with one field, which are spelled as what stands in it, each with the classes that stand in it.
    `level`: what the type variables of the control tree are at this level; `note`: the class of its notes, which are spelled in their node.
    """

    def __init__(self, nodes: Mapping[type, str], enums: Mapping[type[Enum], str], *, below: Tags | None = None, prefix: str = "",
                 wrappers: Mapping[type, Iterable[type]] | None = None, level: Mapping[object, object] = MappingProxyType({}),
                 note: type | None = None) -> None:
        self.level, self.note = level, note
        self.nodes: Mapping[type, NodeTag] = {**({} if below is None else below.nodes),
                                              **{kind: _node(text, prefix) for kind, text in nodes.items()}}
        self.enums: Mapping[type[Enum], EnumTag] = {**({} if below is None else below.enums),
                                                    **{kind: _enum(text, prefix) for kind, text in enums.items()}}
        self.wrappers: Mapping[type, tuple[type, ...]] = {**({} if below is None else below.wrappers),
                                                          **{kind: tuple(inner) for kind, inner in (wrappers or {}).items()}}
        self._wrapper_of = {inner: kind for kind, inside in self.wrappers.items() for inner in inside}
        self.node_of: Mapping[str, type] = {entry.json: kind for kind, entry in self.nodes.items()}
        self.enum_of: Mapping[str, type[Enum]] = {entry.json: kind for kind, entry in self.enums.items()}
        if len(self.node_of) + len(self.enum_of) < len(self.nodes) + len(self.enums):
            raise ValueError("two classes have one tag")

    def unwrapped(self, node: object) -> object:
        """Return the node that is spelled: the node itself, or the node inside a wrapper."""
        while type(node) in self.wrappers:
            (name,) = type(node).__match_args__   # type: ignore[attr-defined]
            node = getattr(node, name)
        return node

    def wrapped(self, node: object) -> object:
        """Return a node as it stands in a tree: in its wrapper, where its class has one."""
        wrapper = self._wrapper_of.get(type(node))
        return node if wrapper is None else wrapper(node)

    def of_node(self, node: object) -> NodeTag:
        """Return the entry of a node's class.

        Raises: TypeError for a class that the table does not have.
        """
        entry = self.nodes.get(type(node))
        if entry is None:
            raise TypeError(f"no tag for {type(node).__name__}")
        return entry

    def of_member(self, member: Enum) -> tuple[EnumTag, str]:
        """Return the entry of a member's enum, and the member's own tag.

        Raises: TypeError for what the table does not have.
        """
        entry = self.enums.get(type(member))
        if entry is None or member.name not in entry.members:
            raise TypeError(f"no tag for {member!r}")
        return entry, entry.members[member.name]

    def member_text(self, member: Enum) -> str:
        """Return what digests call a member of an enum."""
        entry, name = self.of_member(member)
        return f"{entry.tag}.{name}"

    def name(self, node: object) -> str:
        """Return what errors call a node, in a wrapper or not."""
        return self.of_node(self.unwrapped(node)).tag

    def shown(self, value: object) -> str:
        """Return what errors write for a value: as `repr`, with the tags of nodes and fields."""
        if isinstance(value, tuple):
            return f"({', '.join(map(self.shown, value))}{',' * (len(value) == 1)})"
        value = self.unwrapped(value)
        entry = self.nodes.get(type(value))
        if entry is None or isinstance(value, tile.TileType):     # which says of itself how users write it
            return repr(value)
        return f"{entry.tag}({', '.join(f'{field.tag}={self.shown(value_of(value, field))}' for field in entry.fields if field.counts)})"


def _parts(text: str, prefix: str) -> tuple[str, str, Iterator[tuple[str, str]]]:
    """Return the tag of a table's entry, the tag in JSON, and pairs of a part's tag and what Python calls the part."""
    tag, _, rest = text.partition(":")
    pairs = (part.partition("=") for part in rest.split())
    return tag, prefix + tag, ((name, given or name) for name, _, given in pairs)


def _node(text: str, prefix: str) -> NodeTag:
    tag, json, parts = _parts(text, prefix)
    return NodeTag(tag, json, tuple(FieldTag(name.strip("~?*!"), attribute.strip("~?*!"), not name.startswith("~"), name.endswith("!"),
                                             name.startswith(("?", "*")), () if name.startswith("*") else "")
                                    for name, attribute in parts))


def _enum(text: str, prefix: str) -> EnumTag:
    tag, json, parts = _parts(text, prefix)
    return EnumTag(tag, json, {name: member for member, name in parts})


def value_of(node: object, field: FieldTag) -> object:
    """Return the value of a field."""
    return attrgetter(field.attribute)(node) if "." in field.attribute else getattr(node, field.attribute)


def values_of(node: object, fields: Iterable[FieldTag]) -> Iterator[tuple[str, object]]:
    """Yield the tag and the value of each field, without optional ones that are empty."""
    for field in fields:
        value = value_of(node, field)
        if value or not field.optional:
            yield field.tag, value


KERNEL_TAGS = Tags({
    layout.Layout: "Layout: strides",
    layout.TensorRef: "TensorRef: id shape dtype name layout contracts",
    scalar.Const: "Const: value",
    scalar.Var: "Var: name id",
    scalar.AxisName: "AxisName: name default",
    scalar.BracketIndex: "BracketIndex: position",
    scalar.KernelIs: "KernelIs: name",
    scalar.TaskIndex: "TaskIndex:",
    scalar.CalendarEntry: "CalendarEntry: column",
    scalar.ReplicaIndex: "ReplicaIndex:",
    scalar.SymbolRef: "SymbolRef: name id dtype default",
    scalar.ParamScalar: "ParamScalar: name dtype",
    scalar.ItemRef: "ItemRef: name id dtype",
    scalar.ParamExtent: "ParamExtent: name dim",
    scalar.DimOf: "DimOf: tensor dim",
    scalar.StrideOf: "StrideOf: tensor dim",
    scalar.Element: "Element: tensor index",
    scalar.SlotValue: "SlotValue: slot",
    scalar.Unary: "Unary: op value",
    scalar.Binary: "Binary: op lhs rhs",
    scalar.Select: "Select: condition then other",
    scalar.Sum: "Sum: var start stop step body",
    tile.TileType: "TileType: rows cols dtype",
    view.Pick: "Pick: dim index",
    view.Cut: "Cut: dim start stop step",
    view.Clip: "Clip: limits",
    view.Permute: "Permute: order",
    view.Reshape: "Reshape: shape *dims",
    view.View: "View: tensor steps",
    view.ViewDim: "ViewDim: extent stride limit",
    view.StridedView: "Place: offset dims",
    view.Bound: "Bound: step value lower upper",
    k.TileParam: "TileParam: name role type ?combine ~span",
    k.TensorParam: "TensorParam: name role dtype ~span",
    k.ScalarParamDecl: "ScalarParamDecl: name dtype ~span",
    k.Value: "Value: id type ~name",
    k.ScalarOperand: "ScalarOperand: value dtype",
    k.Compute: "Compute: result op operands attrs ~span guard",
    k.Load: "Load: result param row col valid_rows valid_cols fill transpose guard copy ~span",
    k.Store: "Store: param value row col valid_rows valid_cols guard streams ~span",
    k.Gather: "Gather: result param index col valid fill guard ~span",
    k.Scatter: "Scatter: param index value col valid add guard ~span",
    k.Buffer: "Buffer: id name type",
    k.Alloc: "Alloc: buffer init ~span",
    k.Read: "Read: result buffer ~span",
    k.Write: "Write: buffer value ~span",
    k.WritePart: "WritePart: buffer value row col guard ~span",
    k.Accumulate: "Accumulate: buffer lhs rhs attrs ~span",
    k.Item: "Item: item value row col guard ~span",
    k.Print: "Print: id label value ?valid_rows ?valid_cols ~span",
    k.Source: "Source: operand reach",
    k.FiniteCheck: "Check: number value what sources ?valid_rows ?valid_cols ~span",
    k.For: "For: var start stop step body ~span",
    k.If: "If: condition then other ~span",
    k.Rows: "Rows: rows body vector of",
    k.Columns: "Columns: cols body lanes",
    k.Slot: "Slot: name kind key type offset first last",
    k.OwnBody: "OwnBody: form text scratch_bytes constants ~span",
    k.Kernel: "Kernel: name params body ~span bodies arena",
    mesh.OnRank: "OnRank: mesh rank ?source ?limits",
    mesh.RowLimit: "RowLimit: rows most problem",
}, {
    DType: "DType: F64 F32 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 BOOL FP8E4M3 FP8E5M2",
    scalar.Op: "Op: ADD SUB MUL DIV FLOORDIV MOD MIN MAX EQ NE LT LE GT GE AND OR NOT NEG HASHMOD",
    k.Role: "Role: IN OUT INOUT",
    k.Reach: "Reach: ELEMENT ROW COLUMN TURNED_ROW TURNED_COLUMN ALL",
    k.BodyForm: "BodyForm: C CPP CPP_BODY CPP_TU",
    k.SlotKind: "SlotKind: BUFFER VALUE SUMS STORE WORK",
    layout.Contract: "Contract: INJECTIVE MONOTONE",
})

# The nodes of the control tree, as workloads and as plans call them.
FLOW_TAGS: Mapping[type, tuple[str, str]] = {
    flow.Through: ("Through: var value",
                  "Through: var value checks=note.checks waits=note.waits"),
    flow.Loop: ("Loop: var axis!=note.axis start stop step ordered body through ~span",
               "Loop: var start stop step ordered body checks=note.checks through waits=note.waits ~span"),
    flow.Branch: ("Branch: condition body ~span",
                 "Branch: condition body checks=note.checks waits=note.waits ~span"),
    flow.Choice: ("Choice: branches otherwise",
                 "Choice: branches otherwise"),
    flow.SetSlot: ("SetSlot: slot value ~span",
                  "SetSlot: slot value checks=note.checks waits=note.waits ~span"),
    flow.Fresh: ("Fresh: tensor *sizes ~span",
                "Fresh: slot=tensor *sizes *checks=note.checks *waits=note.waits ~span"),
    flow.Sides: ("Combine: sides",
                "Sides: sides"),
    flow.Send: ("Send: channel payload after ~span",
               "Send: channel payload after! site! checks=note.checks waits=note.waits ~span"),
    flow.Receive: ("Receive: channel vars ~span",
                  "Receive: channel vars site! ~span"),
    flow.Consume: ("Consume: channel vars body ~span",
                  "Consume: channel vars body site! ~span"),
    flow.RecordEvent: ("Record: event ~span",
                      "RecordEvent: event site! ~span"),
    flow.AwaitEvent: ("Synchronize: event ~span",
                     "AwaitEvent: event site! ~span"),
    flow.Process: ("Process: name body consumes produces replicas ~span",
                  "Process: name body consumes! produces! replicas! stream! ~span"),
    flow.Pipeline: ("Pipeline: processes ~span",
                   "Pipeline: processes channels events ~span"),
    flow.Sequence: ("Block: items",
                   "Sequence: items"),
}

WORKLOAD_TAGS = Tags({
    wl.ViewArg: "ViewArg: param view ~span",
    wl.ScalarArg: "ScalarArg: param value ~span",
    wl.Task: "Task: kernel index args handle after ~span ?label ?on",
    wl.Axis: "Axis: name! label! tensors rows",
    wl.Fixed: "Fixed: tensor dim ~span",
    wl.ChannelRef: "ChannelRef: id name depth *initial",
    wl.EventRef: "EventRef: id name",
    wl.Workload: "Workload: name body",
    **{node: texts[0] for node, texts in FLOW_TAGS.items()},
}, {}, below=KERNEL_TAGS, wrappers={flow.Do: (wl.Task, wl.Fixed)}, note=wl.WorkloadNote, level={
    flow.Leaf: wl.Leaf, flow.Note: wl.WorkloadNote, flow.Channel: wl.ChannelRef, flow.Event: wl.EventRef, flow.Tensor: layout.TensorRef})
