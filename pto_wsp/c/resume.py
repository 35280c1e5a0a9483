"""Functions that return at each wait and later resume there: the processes of pipelines, in C on the host and in C++ on the device.

What outlives a wait is a field of a frame. A wait is a label; the function starts with a jump to the label of its last wait:

    switch (self->step) { case 1: goto wait_1; case 2: goto wait_2; }
    …
    wait_1:
        if (nothing has come) return …;
"""

from __future__ import annotations

from dataclasses import field

from pto_wsp.c import syntax as c
from pto_wsp.values import dataclass


@dataclass(slots=True)
class ResumableFrame:
    """The frame of a resumable function: types of its fields by name, and the labels of its waits, numbered from 1."""

    fields: dict[str, str] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)

    def wait(self) -> tuple[str, int]:
        """Return the label and the number of the next wait."""
        self.labels.append(f"wait_{len(self.labels) + 1}")
        return self.labels[-1], len(self.labels)

    def struct(self, name: str) -> c.Struct:
        """Return the definition of the frame."""
        return c.Struct(name, tuple(c.Declare(type_, field_name) for field_name, type_ in self.fields.items()))

    def resume(self, step: c.Expr) -> tuple[c.Stmt, ...]:
        """Return the jump to wait number `step`; 0 goes on, to the start of the function."""
        return (c.JumpTable(step, tuple(self.labels)),) if self.labels else ()
