"""Try schedules in a notebook: every control times the record of a run again, and the picture follows.

All is made in Python and drawn by the renderer of cards; the page has a little script that shows controls and tells what was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pto_wsp.api.compare import compare_all
from pto_wsp.api.controls import ScheduleChoices
from pto_wsp.api.program import Program
from pto_wsp.api.workload import Workload
from pto_wsp.calls import user_call
from pto_wsp.doors import late_module
from pto_wsp.errors import ComparisonError, MissingLibraryError
from pto_wsp.resources import templates_dir
from pto_wsp.schedule.policy import shown_value
from pto_wsp.schedule.tunable import tunables_of
from pto_wsp.source import here


@user_call()
def explore(what: Program | Workload | Callable[..., Workload], *, arch: object = None, overheads: bool = False,
            bindings: Mapping[str, object] | None = None) -> Any:
    """Return a widget that tries schedules on the record of a run: dispatch, ready tasks, window, pools, edges, machine, Tunables.

    what: a program that has run; a workload, or a function of Tunables that returns one, which are compiled and run here, and write their
    outputs. arch, overheads: as for compile(), bindings: as for run(), of a workload alone. A Tunable's value runs once when it is chosen.

    widget.comparison is what was kept, widget.code the Python of what is chosen, widget.schedule its schedule.

    Raises: C120 without anywidget (`pip install 'pto-wsp[notebook]'`), S112 for what cannot be explored, R103 for a program that has not
    run.
    """
    make_widget = widget_class()
    tunables = tunables_of(what) if callable(what) and not isinstance(what, Workload) else {}
    if not isinstance(what, Program | Workload) and not callable(what):
        raise ComparisonError("this cannot be explored", here(), found=shown_value(what),
                              expected="a program that has run, a workload, or a function that returns one")

    def make(values: Mapping[str, object]) -> Program:
        if isinstance(what, Program):
            return what
        workload = what if isinstance(what, Workload) else what(**values)
        if not isinstance(workload, Workload):
            raise ComparisonError("the function returns no workload", here(), expected="a Workload", found=shown_value(workload))
        return workload.compile(arch=arch, overheads=overheads).run(**({} if bindings is None else bindings))

    program = make({name: tunable.values[0] for name, tunable in tunables.items()})
    program.timed_run  # noqa: B018 - raises for a program that has not run
    return make_widget(ScheduleChoices(program, {name: tunable.values for name, tunable in tunables.items()}, make,
                               getattr(what, "__name__", "w")))


def _card_of(compared: Any, title: str, **changes: str) -> Any:
    """Return the card of a comparison under another title."""
    return late_module("pto_wsp.view.compare_cards").comparison_card(compared).model_copy(update={"title": title, **changes})


@cache
def widget_class() -> Any:
    """Return the class of the widget.

    Raises: C120 where anywidget is not installed.
    """
    try:
        import anywidget  # an extra of the package
        import traitlets
    except ImportError:
        raise MissingLibraryError("explore needs anywidget, which is not installed", here(),
                                  help="pip install 'pto-wsp[notebook]'") from None
    folder = templates_dir() / "view"

    class ScheduleExplorer(anywidget.AnyWidget):  # type: ignore[misc,unused-ignore]
        """The widget: `chosen` and `asked` come from the page, all else is written here."""

        _esm = (folder / "explore.js").read_text(encoding="utf-8")
        _css = (folder / "explore.css").read_text(encoding="utf-8")
        chosen = traitlets.Dict().tag(sync=True)          # control -> place of the option; what is left out is as run
        asked = traitlets.Dict().tag(sync=True)           # {"do": "keep", "n": 3}; n tells one from the next
        controls: Any = traitlets.List().tag(sync=True)
        html = traitlets.Unicode().tag(sync=True)
        style = traitlets.Unicode().tag(sync=True)
        kept_html = traitlets.Unicode().tag(sync=True)
        code = traitlets.Unicode().tag(sync=True)
        message = traitlets.Unicode().tag(sync=True)

        def __init__(self, choices: ScheduleChoices) -> None:
            super().__init__()
            self._choices = choices
            self._kept: list[dict[str, int]] = []
            self._read = choices.read({})
            self.observe(self._on_chosen, "chosen")
            self.observe(self._on_asked, "asked")
            self._refresh()

        @property
        def schedule(self) -> Any:
            """The schedule that is chosen."""
            return self._choices.schedule(self._read)

        @property
        def simulation(self) -> Any:
            """The simulation of the chosen options; None if they are refused, for the reason in `message`."""
            found = self._choices.simulated(self._read)
            return None if isinstance(found, str) else found

        @property
        def comparison(self) -> Any:
            """What was kept, beside the run."""
            return self._choices.comparison(self._kept)

        def keep(self) -> None:
            """Add what is chosen to the comparison."""
            if self.simulation is not None and self._read not in self._kept:
                self._kept.append(dict(self._read))
            self._show_kept()

        def _show_kept(self) -> None:
            self.kept_html = late_module("pto_wsp.view.html").body_of(_card_of(self.comparison, "Kept")) if self._kept else ""

        def reset(self) -> None:
            """Choose everything as it was run."""
            self.chosen = {}

        def _on_chosen(self, change: Any) -> None:
            self._read = self._choices.read(change["new"])
            self._refresh()

        def _on_asked(self, change: Any) -> None:
            match change["new"].get("do"):
                case "keep":
                    self.keep()
                case "clear":
                    self._kept = []
                    self._show_kept()

        def _refresh(self) -> None:
            """Show the chosen options beside the run, their code, and then the cost of each other option."""
            choices, read = self._choices, self._read
            found = choices.simulated(read)
            self.message = found if isinstance(found, str) else ""
            if not isinstance(found, str):
                start, name = choices.simulated({}), choices.name_of(read)
                shown = compare_all([("as run", start), (name, found)] if read else [("as run", start)])
                card, html = _card_of(shown, choices.program.plan.name, foot=""), late_module("pto_wsp.view.html")
                self.style, self.html, self.code = str(html.style_of([card])), html.body_of(card), choices.code(read)
            self._show_costs()

        def _show_costs(self) -> None:
            costs: dict[str, list[dict[str, object]]] = {}
            by_name = {control.name: control for control in self._choices.controls}
            for name, place, cycles, refused in self._choices.costs(self._read):
                costs.setdefault(name, []).append({"label": by_name[name].options[place], "cycles": cycles, "refused": refused})
            self.controls = [{"name": control.name, "note": control.note, "chosen": self._read.get(control.name, 0),
                              "options": costs[control.name]} for control in self._choices.controls]

    return ScheduleExplorer
