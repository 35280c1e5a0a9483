"""Numbers that Python and the runtime library both have are those of the interface."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import pytest

from pto_wsp.artifact.build import load_runtime
from pto_wsp.ir.channels import Wait
from pto_wsp.ir.execution_rules import FullWindow, Places, Release, TaskField, WindowUnit
from pto_wsp.passes.schedule import MAX_POOLS
from pto_wsp.run.record import EdgeReason, MarkFlag, NodeKind, Stall
from pto_wsp.run.simulator import LastWait
from pto_wsp.schedule.calendar import MAX_EXECUTORS


def of_interface(prefix: str) -> dict[str, int]:
    lib = load_runtime().lib
    return {name.removeprefix(prefix): getattr(lib, name) for name in dir(lib) if name.startswith(prefix)}


@pytest.mark.parametrize("kinds, prefix", [
    ((NodeKind,), "PTO_NODE_"), ((MarkFlag,), "PTO_MARK_"), ((EdgeReason,), "PTO_EDGE_"), ((Stall,), "PTO_STALL_"), ((Wait,), "PTO_STUCK_"),
    ((LastWait,), "PTO_HELD_"), ((Places,), "PTO_PLACE_"), ((Release,), "PTO_TIMING_"), ((WindowUnit, FullWindow), "PTO_WINDOW_"),
])
def test_members_are_those_of_the_interface(kinds: tuple[type[IntEnum | IntFlag], ...], prefix: str) -> None:
    assert {member.name: member.value for kind in kinds for member in kind} == of_interface(prefix)


def test_columns_are_the_bits_of_the_interface() -> None:
    assert {column.name: 1 << column.value for column in TaskField} == of_interface("PTO_KEEP_")


def test_limits_are_those_of_the_interface() -> None:
    lib = load_runtime().lib
    assert (MAX_POOLS, MAX_EXECUTORS) == (lib.PTO_MAX_POOLS, lib.PTO_MAX_CALENDAR)
