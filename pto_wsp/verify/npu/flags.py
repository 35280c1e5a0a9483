"""Is every flag that is set awaited, and every wait met, on every path?

Between two steps there is one set of flags that are up, whichever way led there: both sides of a branch leave the same flags up, a turn of
a loop leaves up those that it found, where the kernel ends none is. Then every path pairs, whatever the number of turns; turns are looked
at one after the other until their events repeat.
"""

from __future__ import annotations

from dataclasses import field

from pto_wsp.arch.model import Arch
from pto_wsp.errors import FlagError
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.tile_program import Pipe
from pto_wsp.source import Span
from pto_wsp.types.scalar import Binary, Const, Op, Scalar, Var, add, mul, substitute
from pto_wsp.values import dataclass
from pto_wsp.verify.npu.demands import own_flags
from pto_wsp.verify.verdict import Finding, Verdict

_CHECK = "flag pairing"
_EVENTS = 8
_Flag = tuple[Pipe, Pipe, int]
_Up = dict[_Flag, Span]


class _Refused(Exception):
    def __init__(self, error: FlagError) -> None:
        super().__init__(error)
        self.error = error


def check_flags(program: tp.TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return that flags pair on every path, or the first that does not."""
    pairing = _Pairing(program, arch.family)
    try:
        up = pairing.block(program.body, {})
        pairing.none_up(up, None)
    except _Refused as refused:
        return (Finding(_CHECK, Verdict.COUNTEREXAMPLE, refused.error.message, refused.error),)
    return (Finding(_CHECK, Verdict.PROVED, f"{pairing.n_flags} flags"),)


@dataclass(slots=True)
class _Pairing:
    program: tp.TileProgram
    family: str
    values: dict[Var, Scalar] = field(default_factory=dict)
    n_flags: int = 0

    def block(self, body: tuple[tp.Step, ...], up: _Up) -> _Up:
        """Return the flags that are up behind a block."""
        for step in body:
            up = self._step(step, up)
        return up

    def none_up(self, up: _Up, leave: tp.Leave | None) -> None:
        """Where the kernel ends no flag is up."""
        for (after, before, event), span in up.items():
            where = "where the kernel may end" if leave is not None else "at the kernel's end"
            self._refuse(f"a flag from {after.value} to {before.value} is up {where}", leave.span if leave is not None else span,
                         "a wait for every flag that is set", f"none for event {event}")

    def _step(self, step: tp.Step, up: _Up) -> _Up:
        match step:
            case tp.SetFlag(after, before):
                self.n_flags += 1
                flag = after, before, self._event(step)
                if flag in up:
                    self._refuse(f"a flag from {after.value} to {before.value} is set twice", step.span,
                                 f"a wait for event {flag[2]} before it is set again", "none")
                return {**up, flag: step.span}
            case tp.WaitFlag(after, before):
                flag = after, before, self._event(step)
                if flag not in up:
                    self._refuse(f"{before.value} waits for a flag of {after.value} that is not set", step.span,
                                 f"event {flag[2]} to be set on every way here", "a way on which it is not")
                return {one: span for one, span in up.items() if one != flag}
            case tp.Loop():
                return self._loop(step, up)
            case tp.Branch(_, then, other):
                one, two = self.block(then, up), self.block(other, up)
                if one.keys() != two.keys():
                    after, before, event = min(one.keys() ^ two.keys(), key=str)
                    self._refuse(f"the two sides of a branch leave different flags up from {after.value} to {before.value}", step.span,
                                 "flags that are set and awaited on the same side", f"event {event} on one side only")
                return one
            case tp.Leave():
                self.none_up(up, step)
                return up
            case tp.Let(var, value):
                self.values[var] = substitute(value, self._value)
                return up
            case tp.Instr():
                self._own_flags_down(step, up)
                return up
            case _:
                return up

    def _own_flags_down(self, step: tp.Instr, up: _Up) -> None:
        """Some instructions set flags themselves: these are down where they are given."""
        for first, then, event in own_flags(step, self.program, self.family):
            if (first, then, event) in up:
                self._refuse(f"a flag from {first.value} to {then.value} is up where {step.name} sets it itself", step.span,
                             f"event {event} to be awaited before it", "it set and not awaited")

    def _loop(self, loop: tp.Loop, up: _Up) -> _Up:
        found = up
        for turn in range(self._period(loop)):
            self.values[loop.var] = add(loop.start, mul(Const(turn), loop.step))
            found = self.block(loop.body, found)
            if found.keys() != up.keys():
                after, before, event = min(found.keys() ^ up.keys(), key=str)
                self._refuse(f"a turn of the loop changes which flags are up from {after.value} to {before.value}", loop.span,
                             "a turn that leaves up what it found", f"event {event} {'left' if found.keys() - up.keys() else 'taken'}")
        return found

    def _period(self, loop: tp.Loop) -> int:
        """After how many turns events repeat: that of all remainders taken in them."""
        turns = 1
        for step in tp.steps(loop.body):
            if isinstance(step, tp.SetFlag | tp.WaitFlag) and not isinstance(step.event, Const):
                turns = max(turns, _EVENTS)
        return turns

    def _value(self, node: Scalar) -> Scalar | None:
        return substitute(self.values[node], self._value) if isinstance(node, Var) and node in self.values else None

    def _event(self, step: tp.SetFlag | tp.WaitFlag) -> int:
        value = substitute(substitute(step.event, self._value), _whole_turns)
        if not isinstance(value, Const) or not 0 <= int(value.value) < _EVENTS:
            self._refuse("the event of a flag is not one of eight", step.span, f"0 to {_EVENTS - 1}, from the turns of loops", str(value))
        assert isinstance(value, Const)
        return int(value.value)

    def _refuse(self, what: str, span: Span, expected: str, found: str) -> None:
        raise _Refused(FlagError(f"kernel `{self.program.name}`: {what}", span, expected=expected, found=found))


def _whole_turns(node: Scalar) -> Scalar | None:
    """k * step // step → k, for a step that is not a number."""
    match node:
        case Binary(Op.FLOORDIV, Const(0), _):
            return Const(0)
        case Binary(Op.FLOORDIV, lhs, rhs) if lhs == rhs:
            return Const(1)
        case Binary(Op.FLOORDIV, Binary(Op.MUL, Const(k), step), rhs) if step == rhs:
            return Const(k)
        case _:
            return None
