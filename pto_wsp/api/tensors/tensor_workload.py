"""`TensorWorkload`: the workload that a function on whole tensors is lowered to. It is as one written by hand, and shows its source."""

from __future__ import annotations

from pto_wsp.api.workload import Workload
from pto_wsp.calls import user_calls
from pto_wsp.check.verdict import CheckList
from pto_wsp.doors import DisplayedText
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.schedule.tiling import TilePlan


@user_calls()
class TensorWorkload(Workload):
    """A workload that was lowered from a function on whole tensors.

    `checks`: whether what is read of `tt.empty`, of memory between kernels and of results was written before, with a line for each.
    """

    __slots__ = ("_source_text", "checks", "plan")

    _source_text: str
    checks: CheckList
    plan: TilePlan

    @classmethod
    def of(cls, workload: Workload, source: str, plan: TilePlan, checks: CheckList) -> TensorWorkload:
        """Return a workload with the text that it was made of, the plan, and what is proved of its writes."""
        made = cls.__new__(cls)
        for name in Workload.__slots__:
            setattr(made, name, getattr(workload, name))
        made.schedule = workload.schedule
        made._source_text = DisplayedText(source)
        made.plan = plan
        made.checks = checks
        return made

    def source(self) -> str:
        """Return the kernels and the workload as a Python module of the level below, with `run(*arrays)`: a start for changes by hand."""
        return self._source_text

    def _scheduled(self, schedule: Schedule) -> TensorWorkload:
        return TensorWorkload.of(super()._scheduled(schedule), self._source_text, self.plan, self.checks)
