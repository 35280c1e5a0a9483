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
    cause = "auto_schedule is asked for what it cannot search."
    example = "auto_schedule(w, budget=0)"
    fix = "Give a workload (or a function that makes one of its Tunables), and a budget of at least one try."
