"""What targets make of a directive: enforced, recorded in the artifact's manifest, or refused, each with the reason.

A directive is recorded where a target leaves to its runtime what the directive steers, and nothing but performance depends on it. It is
refused where leaving it out would break a promise: an order of tasks, an end of the run, a count.
"""

from __future__ import annotations

from enum import Enum

from pto_wsp.values import dataclass


class Capability(Enum):
    """What a target makes of a directive."""

    ENFORCED = "enforced"
    RECORDED = "recorded"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Support:
    """What a target makes of a directive, and why."""

    capability: Capability
    reason: str


@dataclass(frozen=True, slots=True)
class Directive:
    """The entry of a directive. `host`: what the engine, the interpreter and the simulator make of it; `device`: the device's runtime."""

    name: str
    host: Support
    device: Support


def enforced(reason: str) -> Support:
    """Return that a directive is enforced, and how."""
    return Support(Capability.ENFORCED, reason)


def recorded(reason: str) -> Support:
    """Return that a directive is recorded, and what decides instead."""
    return Support(Capability.RECORDED, reason)


def refused(reason: str) -> Support:
    """Return that a directive is refused, and why."""
    return Support(Capability.REFUSED, reason)
