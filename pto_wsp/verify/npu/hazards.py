"""Does every pipe wait for what it needs? What is known to be done, pipe by pipe, as clocks that flags pass on.

Each pipe counts what it is given. A clock says, of every pipe, up to which count it is known to be done: setting a flag takes along what
the pipe knows and all that it was given itself, awaiting one joins that in, a barrier makes a pipe know all of its own. Two works that
touch a byte, one of them writing, must be such that the later one's pipe knows the earlier one to be done. And an event is set again only
where its last wait is known to be over.
"""

from __future__ import annotations

from dataclasses import field

from pto_wsp.arch.model import Arch
from pto_wsp.errors import PipeHazardError
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.tile_program import Pipe
from pto_wsp.values import dataclass
from pto_wsp.verify.npu.runs import Bytes, Ending, Mark, Region, Run, Work, overlap, runs_of
from pto_wsp.verify.verdict import Finding, Verdict

_CHECK = "pipe hazards"
_IN_ORDER = (Pipe.S, Pipe.M)      # what one of their instructions makes, the next one finds
_Clock = dict[Pipe, int]


def check_hazards(program: tp.TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return that no pipe uses memory before it may, or the first place where one does."""
    n_runs = 0
    for run in runs_of(program):
        n_runs += 1
        error = _Clocks(program).fault(run)
        if error is not None:
            return (Finding(_CHECK, Verdict.COUNTEREXAMPLE, error.message, error),)
    return (Finding(_CHECK, Verdict.PROVED, f"{n_runs} ways through the kernel"),)


@dataclass(slots=True)
class _Clocks:
    program: tp.TileProgram
    given: _Clock = field(default_factory=lambda: dict.fromkeys(Pipe, 0))
    known: dict[Pipe, _Clock] = field(default_factory=lambda: {pipe: dict.fromkeys(Pipe, 0) for pipe in Pipe})
    flags: dict[tuple[Pipe, Pipe, int], _Clock] = field(default_factory=dict)
    awaited: dict[tuple[Pipe, Pipe, int], int] = field(default_factory=dict)
    touched: dict[object, dict[Bytes | Region, dict[tuple[Pipe, bool], tuple[int, tp.Step]]]] = field(default_factory=dict)

    def fault(self, run: Run) -> PipeHazardError | None:
        """Return what is wrong with a run."""
        for happening in run:
            match happening:
                case Work():
                    error = self._work(happening)
                case Mark():
                    error = self._mark(happening)
                case Ending(step):
                    error = self._ending(step)
            if error is not None:
                return error
        return None

    def _work(self, work: Work) -> PipeHazardError | None:
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
            uses = self.touched.setdefault(key, {}).setdefault(use.place, {})
            for writes in {writes for writes, does in ((False, use.reads), (True, use.writes)) if does}:
                uses[work.pipe, writes] = self.given[work.pipe], work.step
        return None

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
            stored = [(count, one) for uses in self.touched.values() for place, at in uses.items() if isinstance(place, Region)
                      for (of, writes), (count, one) in at.items() if of is pipe and writes]
            last = max(stored, key=lambda entry: entry[0], default=None)
            if last is not None and self.known[Pipe.S][pipe] < last[0]:
                return PipeHazardError(
                    f"kernel `{self.program.name}` may end before what it stores has arrived", (step or last[1]).span,
                    expected=f"{Pipe.S.value} to wait for {pipe.value} at the end", found="no flag between them")
        return None

    def _unknown_event(self, step: tp.SetFlag | tp.WaitFlag) -> PipeHazardError:
        return PipeHazardError(f"kernel `{self.program.name}` uses an event that depends on what is known at run time only", step.span,
                               expected="a number, or one that follows from the turn of a loop", found=str(step.event))

    def _too_early(self, work: Work, writes: bool, pipe: Pipe, wrote: bool, step: tp.Step, place: Bytes | Region) -> PipeHazardError:
        if isinstance(place, Region):
            where = f"`{place.param}` in global memory"
        else:
            where = f"`{self.program.room(place.room).name}` in {place.space.value}, bytes {place.start} to {place.stop}"
        does, was = ("writes" if writes else "reads"), ("written" if wrote else "read")
        return PipeHazardError(
            f"kernel `{self.program.name}`: {work.pipe.value} {does} {where} before {pipe.value} is known to have done with it",
            work.step.span, expected=f"a {'barrier' if pipe is work.pipe else 'flag'} from {pipe.value} to {work.pipe.value} between them",
            found="none that orders them", notes=(f"it was {was} at {step.span.short}",))

