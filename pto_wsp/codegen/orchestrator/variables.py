"""Where an orchestrator's variables live: in its function, or where they outlive it.

A process returns whenever it has to wait, so what it needs afterwards lives in its frame (`self->x`). What the main program has and
processes read lives in what they share (`run->x`). Everything else is local.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pto_wsp.codegen.c import syntax as c
from pto_wsp.values import dataclass

SELF = c.Name("self")
PROCESS = c.Member(SELF, "process", arrow=True)
RUN = c.Name("run")
ALL_TASKS = "all_tasks"     # the open join of a process whose event waits for all of its tasks


@dataclass(slots=True)
class Frame:
    """The process being written: what outlives its waits, and where it may go on."""

    fields: dict[str, str] = field(default_factory=dict)      # types by name
    locals: set[str] = field(default_factory=set)
    labels: list[str] = field(default_factory=list)
    is_local: bool = False         # the statement being written never waits: what it declares is gone behind it
    records: bool = False          # an event of this process waits for all of its tasks

    def label(self) -> str:
        """Return the name of the next place at which the process may go on."""
        self.labels.append(f"wait_{len(self.labels) + 1}")
        return self.labels[-1]


@dataclass(slots=True)
class Variables:
    """The variables of one orchestrator. `shared`: those of the main program that processes read."""

    shared: frozenset[str] = frozenset()
    run: dict[str, str] = field(default_factory=dict)         # types of the shared ones that have been declared, by name
    wanted: set[str] = field(default_factory=set)             # variables of the main program that processes have read
    frame: Frame | None = None

    def declare(self, type_: str, name: str, value: c.Expr) -> Iterator[c.Stmt]:
        """Make a variable and give it a value."""
        if self._lives_on(type_, name):
            yield c.Assign(self.ref(name), value)
        else:
            yield c.Declare(type_, name, value)

    def counter(self, name: str) -> tuple[str, str]:
        """Make a loop's variable: its type, empty when it need not be declared, and how it is spelled."""
        if not self._lives_on("int64_t", name):
            return "int64_t", name
        return "", f"{'run' if self.frame is None else 'self'}->{name}"

    def ref(self, name: str) -> c.Expr:
        """Return the variable that was declared under a name."""
        if self.frame is None:
            return c.Member(RUN, name, arrow=True) if name in self.shared else c.Name(name)
        if name == "after":
            return c.Member(PROCESS, "after", arrow=False)
        if name in self.frame.fields:
            return c.Member(SELF, name, arrow=True)
        if name in self.frame.locals:
            return c.Name(name)
        self.wanted.add(name)
        return c.Member(RUN, name, arrow=True)

    def keep(self, name: str) -> None:
        """Give the frame of the process a number, 0 at its start."""
        if self.frame is not None:
            self.frame.fields.setdefault(name, "int64_t")

    def _lives_on(self, type_: str, name: str) -> bool:
        kept = type_.removeprefix("const ")
        if self.frame is None:
            if name in self.shared:
                self.run[name] = kept
            return name in self.shared
        if self.frame.is_local:
            self.frame.locals.add(name)
            return False
        self.frame.fields[name] = kept
        return True
