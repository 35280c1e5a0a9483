"""Check flags and pipe hazards of a tile program.

`check_flags` checks that every flag is awaited and every wait met, on every path. Invariant: at each point the set of flags that are set
does not depend on the path. Both sides of a branch leave the same flags set, an iteration leaves the flags that it found, and none is set
at an end. Then flags pair for any number of iterations; iterations are walked one by one until their events repeat.

`check_hazards` checks that every pipe waits for its operands, with vector clocks. Each pipe counts its work; a clock holds, for every pipe,
the count known to be complete. Setting a flag sends the clock of the pipe and its own count; a wait joins them; a barrier completes the
pipe's own work. Two accesses to a byte, one of them a write, need the later pipe to know the earlier access complete. An event is set again
only after its last wait is known to be complete.
"""

from __future__ import annotations

from dataclasses import field

from pto_wsp.arch.model import Arch
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import FlagError, PipeHazardError
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, Var, add, mul, substitute
from pto_wsp.npu.check.forms import own_flags
from pto_wsp.npu.check.runs import Bytes, Ending, Mark, ParamRect, Run, WorkStep, overlap, runs_of
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.tile_program import Pipe
from pto_wsp.source import Span
from pto_wsp.values import dataclass

_CHECK = "flag pairing"
_EVENTS = 8
_Flag = tuple[Pipe, Pipe, int]
_Up = dict[_Flag, Span]


class _Refused(Exception):
    def __init__(self, error: FlagError) -> None:
        super().__init__(error)
        self.error = error


def check_flags(program: tp.TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return that flags pair on every path, or the first flag that does not."""
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
        """Return the flags that are set after a block."""
        for step in body:
            up = self._step(step, up)
        return up

    def none_up(self, up: _Up, leave: tp.Leave | None) -> None:
        """Refuse a flag that is set where the kernel ends."""
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
            case tp.For():
                return self._loop(step, up)
            case tp.If(_, then, other):
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
        """Refuse a set flag that the instruction itself sets."""
        for first, then, event in own_flags(step, self.program, self.family):
            if (first, then, event) in up:
                self._refuse(f"a flag from {first.value} to {then.value} is up where {step.name} sets it itself", step.span,
                             f"event {event} to be awaited before it", "it set and not awaited")

    def _loop(self, loop: tp.For, up: _Up) -> _Up:
        left = up
        for iteration in range(self._period(loop)):
            self.values[loop.var] = add(loop.start, mul(Const(iteration), loop.step))
            left = self.block(loop.body, left)
            if left.keys() != up.keys():
                after, before, event = min(left.keys() ^ up.keys(), key=str)
                self._refuse(f"an iteration of the loop changes which flags are up from {after.value} to {before.value}", loop.span,
                             "an iteration that leaves up what it found", f"event {event} {'left' if left.keys() - up.keys() else 'taken'}")
        return left

    def _period(self, loop: tp.For) -> int:
        """Return the number of iterations after which events repeat."""
        iterations = 1
        for step in tp.steps(loop.body):
            if isinstance(step, tp.SetFlag | tp.WaitFlag) and not isinstance(step.event, Const):
                iterations = max(iterations, _EVENTS)
        return iterations

    def _value(self, node: Scalar) -> Scalar | None:
        return substitute(self.values[node], self._value) if isinstance(node, Var) and node in self.values else None

    def _event(self, step: tp.SetFlag | tp.WaitFlag) -> int:
        value = substitute(substitute(step.event, self._value), _whole_iterations)
        if not isinstance(value, Const) or not 0 <= int(value.value) < _EVENTS:
            self._refuse("the event of a flag is not one of eight", step.span, f"0 to {_EVENTS - 1}, from the iterations of loops",
                         str(value))
        assert isinstance(value, Const)
        return int(value.value)

    def _refuse(self, what: str, span: Span, expected: str, found: str) -> None:
        raise _Refused(FlagError(f"kernel `{self.program.name}`: {what}", span, expected=expected, found=found))


def _whole_iterations(node: Scalar) -> Scalar | None:
    """Return k for k * step // step, whatever the step."""
    match node:
        case Binary(Op.FLOORDIV, Const(0), _):
            return Const(0)
        case Binary(Op.FLOORDIV, lhs, rhs) if lhs == rhs:
            return Const(1)
        case Binary(Op.FLOORDIV, Binary(Op.MUL, Const(k), step), rhs) if step == rhs:
            return Const(k)
        case _:
            return None


# -- pipe hazards ----------------------------------------------------------------------------------


_HAZARD_CHECK = "pipe hazards"
_IN_ORDER = (Pipe.S, Pipe.M)      # pipes whose instructions each see the results of the previous ones
_Clock = dict[Pipe, int]


def check_hazards(program: tp.TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return that no pipe touches memory too early, or the first place where one does."""
    n_runs = 0
    for run in runs_of(program):
        n_runs += 1
        error = _HazardClocks(program).fault(run)
        if error is not None:
            return (Finding(_HAZARD_CHECK, Verdict.COUNTEREXAMPLE, error.message, error),)
    return (Finding(_HAZARD_CHECK, Verdict.PROVED, f"{n_runs} ways through the kernel"),)


@dataclass(slots=True)
class _HazardClocks:
    program: tp.TileProgram
    given: _Clock = field(default_factory=lambda: dict.fromkeys(Pipe, 0))
    known: dict[Pipe, _Clock] = field(default_factory=lambda: {pipe: dict.fromkeys(Pipe, 0) for pipe in Pipe})
    flags: dict[tuple[Pipe, Pipe, int], _Clock] = field(default_factory=dict)
    awaited: dict[tuple[Pipe, Pipe, int], int] = field(default_factory=dict)
    touched: dict[object, dict[Bytes | ParamRect, dict[tuple[Pipe, bool], tuple[int, tp.Step]]]] = field(default_factory=dict)

    def fault(self, run: Run) -> PipeHazardError | None:
        """Return the first hazard of a run, None if there is none."""
        for happening in run:
            match happening:
                case WorkStep():
                    error = self._work(happening)
                case Mark():
                    error = self._mark(happening)
                case Ending(step):
                    error = self._ending(step)
            if error is not None:
                return error
        return None

    def _work(self, work: WorkStep) -> PipeHazardError | None:
        knows = self.known[work.pipe]
        for use in work.uses:
            key = use.place.space if isinstance(use.place, Bytes) else use.place.where
            for place, before in self.touched.get(key, {}).items():
                if not overlap(place, use.place):
                    continue
                for (pipe, writes), (count, step) in before.items():
                    free = not (writes or use.writes) or (pipe is work.pipe and pipe in _IN_ORDER)
                    if not free and knows[pipe] < count:
                        return self._too_early(work, use.writes, pipe, writes, step, place)
        self.given[work.pipe] += 1
        for use in work.uses:
            key = use.place.space if isinstance(use.place, Bytes) else use.place.where
            if use.writes and isinstance(use.place, Bytes):
                self._forget(use.place)
            uses = self.touched.setdefault(key, {}).setdefault(use.place, {})
            for writes in {writes for writes, does in ((False, use.reads), (True, use.writes)) if does}:
                uses[work.pipe, writes] = self.given[work.pipe], work.step
        return None

    def _forget(self, written: Bytes) -> None:
        """Drop the uses of on-chip bytes that a step overwrites as a whole.

        The step comes after those uses, and a flag passes on all that its pipe knows: who knows of the step knows of them.
        """
        there = self.touched.get(written.space, {})
        for place in [place for place in there if isinstance(place, Bytes) and written.start <= place.start and place.stop <= written.stop]:
            del there[place]

    def _mark(self, mark: Mark) -> PipeHazardError | None:
        match mark.step:
            case tp.Barrier(pipe):
                self.known[pipe][pipe] = self.given[pipe]
            case tp.SetFlag(after, before):
                if mark.event is None:
                    return self._unknown_event(mark.step)
                flag = after, before, mark.event
                if self.known[after][before] < self.awaited.get(flag, 0):
                    return PipeHazardError(
                        f"kernel `{self.program.name}` sets an event again that may not have been awaited yet", mark.step.span,
                        expected=f"{after.value} to come after the last wait of {before.value} for event {mark.event}",
                        found="nothing that orders them")
                self.flags[flag] = {**self.known[after], after: self.given[after]}
            case tp.WaitFlag(after, before):
                if mark.event is None:
                    return self._unknown_event(mark.step)
                flag = after, before, mark.event
                brought = self.flags.get(flag, {})
                mine = self.known[before]
                for pipe, count in brought.items():
                    mine[pipe] = max(mine[pipe], count)
                self.given[before] += 1
                self.awaited[flag] = self.given[before]
        return None

    def _ending(self, step: tp.Leave | None) -> PipeHazardError | None:
        for pipe in (Pipe.MTE3, Pipe.FIX):
            stored = [(count, one) for uses in self.touched.values() for place, at in uses.items() if isinstance(place, ParamRect)
                      for (of, writes), (count, one) in at.items() if of is pipe and writes]
            last = max(stored, key=lambda entry: entry[0], default=None)
            if last is not None and self.known[Pipe.S][pipe] < last[0]:
                return PipeHazardError(
                    f"kernel `{self.program.name}` may end before what it stores has arrived", (step or last[1]).span,
                    expected=f"{Pipe.S.value} to wait for {pipe.value} at the end", found="no flag between them")
        return None

    def _unknown_event(self, step: tp.SetFlag | tp.WaitFlag) -> PipeHazardError:
        return PipeHazardError(f"kernel `{self.program.name}` uses an event that depends on what is known at run time only", step.span,
                               expected="a number, or one that follows from the iteration of a loop", found=str(step.event))

    def _too_early(self, work: WorkStep, writes: bool, pipe: Pipe, wrote: bool, step: tp.Step, place: Bytes | ParamRect) -> PipeHazardError:
        if isinstance(place, ParamRect):
            where = f"`{place.param}` in global memory"
        else:
            where = f"`{self.program.buffer(place.buffer).name}` in {place.space.value}, bytes {place.start} to {place.stop}"
        does, was = ("writes" if writes else "reads"), ("written" if wrote else "read")
        return PipeHazardError(
            f"kernel `{self.program.name}`: {work.pipe.value} {does} {where} before {pipe.value} is known to have done with it",
            work.step.span, expected=f"a {'barrier' if pipe is work.pipe else 'flag'} from {pipe.value} to {work.pipe.value} between them",
            found="none that orders them", notes=(f"it was {was} at {step.span.short}",))
