"""Errors about choosing schedules: what may be chosen from, and what is asked for."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class TunableError(PtoError):
    code = "S110"
    cause = "A Tunable without values to choose from."
    example = "def scores(rows=Tunable()): ..."
    fix = "Give the values themselves, the usual one first: Tunable(16, 32, 64)."


class AutoScheduleError(PtoError):
    code = "S111"
    cause = "auto_schedule, or advise, is asked for what it cannot search."
    example = "auto_schedule(w, budget=0)"
    fix = "Give a workload (or a function that makes one of its Tunables), and a budget of at least one try."


class ComparisonError(PtoError):
    code = "S112"
    cause = "compare is given what it cannot set side by side: no run, no schedule, or schedules without a run to time them on."
    example = 'compare({"wide": TaskWindow(256)})  # no program'
    fix = 'Put a program that has run among them, compare({"as run": program, "wide": TaskWindow(256)}), or call program.compare(...).'
