"""`TensorWorkload`: the workload that a function on whole tensors is lowered to. It is as one written by hand, and shows its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import unified_diff
from os import PathLike
from pathlib import Path

from pto_wsp.api.workload import Workload
from pto_wsp.calls import user_calls
from pto_wsp.check.verdict import CheckList
from pto_wsp.doors import DisplayedText
from pto_wsp.errors import CompileOptionError, FormError, PtoError, UnknownPassError
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import PassRun
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.source import here
from pto_wsp.wording import nearest

_LAST = PASSES[-1].name

@user_calls()
class TensorWorkload(Workload):
    """A workload that was lowered from a function on whole tensors.

    `steps`: each pass of the tensor level, what it changed and its seconds, where `f.lower(plan, dump=True)` asked for them, else ().
    `checks`: whether what is read of `tt.empty`, of memory between kernels and of results was written before, with a line for each.
    """

    __slots__ = ("_source_text", "_steps_again", "checks", "plan", "steps")

    _source_text: str
    _steps_again: Callable[[], tuple[PassRun, ...]]
    checks: CheckList
    plan: TilePlan
    steps: tuple[PassRun, ...]

    @classmethod
    def of(cls, workload: Workload, source: str, plan: TilePlan, checks: CheckList, steps_again: Callable[[], tuple[PassRun, ...]],
           steps: tuple[PassRun, ...] = ()) -> TensorWorkload:
        """Return a workload together with its source text, its plan, and the verdicts on the writes of its tasks.

        `steps_again`: runs the passes of the tensor level once more, for `compile(dump=True)`.
        """
        made = cls.__new__(cls)
        for name in Workload.__slots__:
            setattr(made, name, getattr(workload, name))
        made.schedule = workload.schedule
        made._source_text = DisplayedText(source)
        made.plan = plan
        made.checks = checks
        made._steps_again = steps_again
        made.steps = steps
        return made

    def source(self) -> str:
        """Return the kernels and the workload as a Python module of the level below, with `run(*arrays)`: a start for changes by hand."""
        return self._source_text

    def dump(self, folder: str | PathLike[str]) -> Path:
        """Write what each level is, a file a pass, and return the folder `ir` in `folder`.

        `0_tensor`: the function behind each pass, the plan, and a table of the passes with their times; `1_tile`: the kernels;
        `2_block`: the workload and the module; `3_execution`: the tasks, as `cpu_sim` takes them.
        Raises: C104 unless `f.lower(plan, dump=True)` made the workload.
        """
        if not self.steps:
            raise CompileOptionError("no passes were kept to dump", here(), help="f.lower(plan, dump=True).dump(folder)")
        root = Path(folder) / "ir"
        files = {"0_tensor/passes.txt": "\n".join(
            f"{step.name:18}{step.seconds * 1e3:9.2f} ms  {'changed' if step.changed else ''}".rstrip() for step in self.steps),
            **self._tensor_level(self.steps)}
        tasks = self.lower(until=_LAST)
        for plan in tasks.irs:
            assert isinstance(plan, TaskPlan)
            files |= {f"1_tile/{use.kernel.name}.txt": print_kernel(use.kernel) for use in plan.kernels}
        files |= {"2_block/workload.txt": str(self), "2_block/module.py": self._source_text}
        files["3_execution/tasks.txt"] = tasks.text
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.rstrip("\n") + "\n", encoding="utf-8")
        return root

    def _tensor_level(self, steps: tuple[PassRun, ...]) -> dict[str, str]:
        """Return the plan, and the function behind each pass, by file."""
        text = next((step.before for step in steps if step.changed), "")
        files = {"0_tensor/plan.txt": str(self.plan), "0_tensor/00_trace.txt": text}
        for number, step in enumerate(steps, 1):
            text = step.after or text
            files[f"0_tensor/{number:02}_{step.name}.txt"] = text
        return files

    def _reword(self, problem: PtoError) -> None:
        for error in (problem, *problem.others):
            if isinstance(error, FormError) and error.form == "fresh.sized":
                error.message = "this value has a size that only data tell, without an upper bound, and a package states its sizes"
                error.args = (error.message,)
                error.expected, error.found, error.notes = "extents of numbers, of symbols, or with an upper bound", None, ()
                error.help = "bound the slices that it is made of, x[lo:np.minimum(hi, lo + 64)]; cpu_sim and interp take any"

    def _texts(self) -> Mapping[str, str]:
        level = self._tensor_level(self.steps or self._steps_again())
        return {f"ir/{name}": text.rstrip("\n") + "\n" for name, text in level.items()}

    def changes(self, before: str, after: str) -> str:
        """Return a unified diff of the function from behind one pass to behind another; "trace" is in front of all.

        Raises: C114 for a name that no pass has, and where `f.lower(plan, dump=True)` did not make the workload.
        """
        texts = {"trace": next((step.before for step in self.steps if step.changed), "")}
        for step in self.steps:
            texts[step.name] = step.after or list(texts.values())[-1]
        for name in (before, after):
            if name not in texts or not self.steps:
                near = nearest(name, texts)
                raise UnknownPassError(f"no pass that was kept is called {name!r}", here(), expected=f"one of {', '.join(texts)}",
                                       help=f"did you mean {near}?" if near and self.steps else "f.lower(plan, dump=True) keeps the passes")
        lines = unified_diff(texts[before].splitlines(), texts[after].splitlines(), before, after, lineterm="")
        return DisplayedText("\n".join(lines))

    def _scheduled(self, schedule: Schedule) -> TensorWorkload:
        return TensorWorkload.of(super()._scheduled(schedule), self._source_text, self.plan, self.checks, self._steps_again, self.steps)
