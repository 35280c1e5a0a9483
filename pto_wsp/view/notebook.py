"""What a notebook shows of a value: a card as HTML beside the value's text.

Nothing here runs, compiles or simulates anything. A fault of a card is no fault of the user's cell: the text is shown alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.contents import FileText, Package, PackageDifference, PackagedKernel, PackageFiles
from pto_wsp.check.verdict import CheckList
from pto_wsp.errors import CommandError, PtoError
from pto_wsp.ir.tensor import TensorView
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.passes.pipeline import PassRun
from pto_wsp.run.task_list import TaskList
from pto_wsp.schedule.schedule import Schedule, ScheduleDifference
from pto_wsp.schedule.tiling import TilePlan, TilePlanDifference
from pto_wsp.source import here
from pto_wsp.timing.arguments import file_path
from pto_wsp.timing.comparison import Comparison
from pto_wsp.timing.explain import Chain, Explanation
from pto_wsp.timing.graph import CriticalPath, EdgeList, RunGraph
from pto_wsp.timing.retime import Simulation
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.trace import Trace
from pto_wsp.view.card import Card
from pto_wsp.view.check_cards import checks_card, error_card
from pto_wsp.view.compare_cards import comparison_card, simulation_card
from pto_wsp.view.explain_cards import chain_card, edges_card, explanation_card, path_card
from pto_wsp.view.graph_cards import graph_card
from pto_wsp.view.html import html_of, page_of
from pto_wsp.view.iteration_cards import task_list_card
from pto_wsp.view.package_cards import file_card, files_card, package_card, package_difference_card, packaged_kernel_card
from pto_wsp.view.pass_cards import pass_card
from pto_wsp.view.run_cards import lanes_of, stats_card, trace_card
from pto_wsp.view.schedule_cards import arch_card, schedule_card, schedule_difference_card
from pto_wsp.view.tensor_cards import tensor_card
from pto_wsp.view.tiling_cards import function_card, plan_card, plan_difference_card

_CARDS: dict[type, Callable[..., Card]] = {
    Trace: trace_card, Stats: stats_card, RunGraph: graph_card, Schedule: schedule_card, CheckList: checks_card, PtoError: error_card,
    Comparison: comparison_card, Simulation: simulation_card,
    ScheduleDifference: schedule_difference_card, Arch: arch_card, TaskList: task_list_card, TensorView: tensor_card,
    Package: package_card, PackageFiles: files_card, FileText: file_card,
    Explanation: explanation_card, Chain: chain_card, EdgeList: edges_card, CriticalPath: path_card,
    PassRun: pass_card,
    TilePlan: plan_card, TilePlanDifference: plan_difference_card, TensorFunction: function_card,
    PackagedKernel: packaged_kernel_card, PackageDifference: package_difference_card,
}


def card_of(value: object) -> Card | None:
    """Return the card of a trace, the figures of a run or a task graph; None for other values."""
    for kind in type(value).__mro__:
        if kind in _CARDS:
            return _CARDS[kind](value)
    return None


def timeline_card(trace: Trace, end: int | None) -> Card:
    """Return the card of a timeline: lanes of which the full width stands for the time `end`, by default that of the trace."""
    return Card(title="Timeline", parts=(lanes_of(trace, end),) if len(trace) else ())


def write_page(cards: Sequence[Card], title: str, given: object, run: str = "") -> Path:
    """Write cards as a page of HTML and return its path. `run`: the data of a run as JSON, as `view.run_page` makes it.

    Raises: T205 for a value that is no path, C108 if the file cannot be written.
    """
    path = file_path("report", given, "report.html")
    try:
        path.write_text(page_of(cards, title, run), encoding="utf-8")
    except OSError as problem:
        raise CommandError("the report cannot be written there", here(), found=str(problem)) from None
    return path


def mimebundle(text: Callable[[], str], card: Callable[[], Card | None]) -> dict[str, str]:
    """Return what `_repr_mimebundle_` returns: the text, and the card as HTML if it can be made."""
    bundle = {"text/plain": text()}
    try:
        made = card()
        if made is not None:
            bundle["text/html"] = html_of(made)
    except Exception:    # a view never fails a cell; tests call the cards themselves
        return bundle
    return bundle
