"""Define the base of the policies: a frozen record with positional fields, which reports bad values at the user's call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Self

from pto_wsp.calls import user_calls
from pto_wsp.errors import PolicyValueError, PtoError
from pto_wsp.ir import codec
from pto_wsp.ir import scalar as s
from pto_wsp.ir.scalar import Scalar, print_scalar
from pto_wsp.records import Before, Codec, Field, Record, first_problem, plain_float, plain_int
from pto_wsp.schedule.support import Directive
from pto_wsp.source import here

_FIELD = re.compile(r"\{(\w+)\}")
Count = Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1 << 62)]
PerMillisecond = Annotated[float, Before(plain_float), Field(strict=True, ge=1e-3, le=1e12)]   # so that the cycles fit 64 bits
Executors = Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1 << 16)]


@user_calls(also_of=Record)
class Policy(Record):
    """Define the base of the policies.

    `positional` lists the fields that can be given without a name, in order. `needs` maps a kind to the field that it requires. `spelled`:
    for each kind the call that makes such a policy, with {field} for a field and " for a quote: what `repr` prints.
    `entries` holds a directive for each kind, with what targets do with it; `said_as` is its name, in which {0} is the policy.
    """

    positional: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[dict[str, str]] = {}
    spelled: ClassVar[Mapping[str, str]] = {}
    kind_is_class: ClassVar[bool] = False
    said_as: ClassVar[str] = ""
    entries: ClassVar[tuple[Directive, ...]] = ()

    def __init__(self, *args: object, **fields: object) -> None:
        names = type(self).positional
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or given.keys() & fields.keys():
            raise PolicyValueError(f"{type(self).__name__} takes {', '.join(names) or 'no positional values'}", here(),
                                   found=f"{len(args)} positional values and {', '.join(fields) or 'no names'}")
        try:
            super().__init__(**given, **fields)
        except ValueError as problem:
            where, expected, found = first_problem(problem)
            raise PolicyValueError(f"{type(self).__name__} does not take this value for {where or type(self).__name__}", here(),
                                   expected=expected, found=shown_value(found)) from None
        self.refuse_gaps()

    @property
    def directive(self) -> str:
        """The name of what it says: `dispatch.round_robin`."""
        return self.said_as.format(self)

    def refuse_gaps(self) -> None:
        """Check that the policy and the policies in it have the fields that their kinds require.

        Raises: S102 otherwise.
        """
        kind = getattr(self, "kind", "")
        needed = self.needs.get(kind)
        if needed is not None and getattr(self, needed) is None:
            raise PolicyValueError(f"{type(self).__name__} of the kind `{kind}` says no {needed}", here(), expected=f"a value for {needed}",
                                   found="None")
        for part in self.__dict__.values():
            if isinstance(part, Policy):
                part.refuse_gaps()

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """Return the policy that `model_dump_json` wrote.

        Raises: S102 for text that is not the JSON of such a policy.
        """
        try:
            policy = super().model_validate_json(text)
        except ValueError as problem:
            where, expected, found = first_problem(problem)
            message = f"{cls.__name__} does not take this value for {where}" if where else f"this is no {cls.__name__}"
            raise PolicyValueError(message, here(), expected=expected, found=shown_value(found)) from None
        policy.refuse_gaps()
        return policy

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        call = self.spelled.get(getattr(self, "kind", ""), "")
        said = frozenset(_FIELD.findall(call))
        if not call or any(value is not None for name, value in self.__dict__.items() if name != "kind" and name not in said):
            return super().__repr__()
        return call.format(**{name: code_of(getattr(self, name)) for name in said}).replace("(None)", "()")

    def shown_fields(self) -> Iterator[tuple[str, object]]:
        """Yield the fields that `repr` prints: without the kind if the class implies it."""
        for name, value in super().shown_fields():
            if name != "kind" or not self.kind_is_class:
                yield name, value


def code_of(value: object) -> str:
    """Return a value of a field as code; a key as a function of the task."""
    if not isinstance(value, KeyExpr):
        return repr(value)
    return _table_code(value.node) or f"lambda t: {key_code(value.node)}"


OUTSIDE_TABLE = "kernel of the table"    # the name that stands for the kernels that a table does not have


def _table_code(node: Scalar) -> str:
    """Return a key that gives a number for each kernel as a table, "" for any other."""
    entries = []
    while isinstance(node, s.Select) and isinstance(node.condition, s.KernelIs) and isinstance(node.then, s.Const):
        entries.append(f"{node.condition.name!r}: {node.then.value!r}")
        node = node.other
    if not entries or not (isinstance(node, s.Const) or node == s.AxisName(OUTSIDE_TABLE)):
        return ""
    return f"{{{', '.join([*entries, *([f'None: {node.value!r}'] if isinstance(node, s.Const) else [])])}}}"


_OWN_NAMES = frozenset({"get", "kernel", "params", "tags"})      # of the task that a key receives, and no loop variables


def key_code(node: Scalar, level: int = 0) -> str:
    """Return the expression of a key as code in terms of the task `t`. `level`: the precedence of the context."""
    match node:
        case s.AxisName(name, None) if name.isidentifier() and name not in _OWN_NAMES:
            return f"t.{name}"
        case s.AxisName(name, default):
            stem, dot, position = name.rpartition(".")
            given = "" if default is None else f", {key_code(default)}"
            return f"t.get({stem or position!r}{given})" + (".position" if dot else "")
        case s.SymbolRef(name):
            return f"Symbol({name!r})"
        case s.BracketIndex(position):
            return f"t.params[{position}]"
        case s.KernelIs(name):
            return f"(t.kernel == {name!r})" if level > s.LEVEL[s.Op.EQ] else f"t.kernel == {name!r}"
        case s.Unary(op, value):
            return f"{'-' if op is s.Op.NEG else '~'}({key_code(value)})" if isinstance(value, s.Const | s.Binary) else \
                f"{'-' if op is s.Op.NEG else '~'}{key_code(value, 6)}"
        case s.Binary(s.Op.MIN | s.Op.MAX as op, lhs, rhs):
            return f"{op.value}imum({key_code(lhs)}, {key_code(rhs)})"
        case s.Binary(op, lhs, rhs):
            left = s.LEVEL[op] if op not in s.COMPARISONS else s.LEVEL[op] + 1
            text = f"{key_code(lhs, left)} {op.value} {key_code(rhs, s.LEVEL[op] + 1)}"
            return f"({text})" if s.LEVEL[op] < level else text
        case _:
            return print_scalar(node, level)


def shown_value(value: object) -> str:
    """Return the repr of a value, in at most 60 characters."""
    try:
        text = repr(value)
    except Exception:       # a user's __repr__ may raise, and so does a number with thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


class KeyExpr:
    """A traced key: an expression over a task's loop variables and bracket indices, compared by its nodes and printed as text."""

    __slots__ = ("node",)

    def __init__(self, node: Scalar) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyExpr) and self.node == other.node

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return print_scalar(self.node)


def _read_key(value: object) -> KeyExpr:
    if isinstance(value, KeyExpr):
        return value
    if isinstance(value, dict):
        try:
            return KeyExpr(codec.from_data(value))  # type: ignore[arg-type]
        except PtoError:
            raise ValueError("a traced key") from None
    raise ValueError("a traced key")


Key = Annotated[KeyExpr, Codec(_read_key, lambda key: codec.to_data(key.node))]
