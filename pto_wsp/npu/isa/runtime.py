"""The rules of the device runtime that a package must keep: limits of tasks, demands of calls, and the edges it infers.

The emitter and the plan checks take their limits from here, docs/npu.md shows the rows, and the tests' emulated runtime refuses what a row
forbids and infers exactly the edges that the last rows state.

>>> rule("scopes").most
64
"""

from __future__ import annotations

from pto_wsp.errors import InternalError
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class RuntimeRule:
    """A rule of the device runtime. `most`: the limit of the rule, None for a rule without a limit."""

    name: str
    says: str
    most: int | None = None


RUNTIME_RULES = (
    # Limits of a task and a program.
    RuntimeRule("tensors", "a task has at most 32 tensors", 32),
    RuntimeRule("scalars", "a task has at most 16 scalars", 16),
    RuntimeRule("dims", "a tensor has 1 to 5 dimensions", 5),
    RuntimeRule("callables", "a program has at most 64 kernels", 64),
    RuntimeRule("scopes", "scopes nest at most 64 deep, that around all tasks among them", 64),
    # Demands of the runtime's calls.
    RuntimeRule("tensors_first", "a task's tensors are added before its scalars"),
    RuntimeRule("arguments_live", "what a task is given lives, unchanged, until its submit"),
    RuntimeRule("inside", "a view lies inside its tensor"),
    RuntimeRule("own_core", "a kernel is submitted for the core that it is made for"),
    RuntimeRule("not_empty", "a tensor that the runtime allocates has elements"),
    RuntimeRule("scope_end", "a tensor that the runtime allocates is used inside its scope"),
    RuntimeRule("dependencies_some", "set_dependencies names at least one task, and as many as there are"),
    RuntimeRule("dependencies_once", "set_dependencies is called at most once for a task"),
    RuntimeRule("dependencies_live", "the array of set_dependencies lives, unchanged, until the submit"),
    RuntimeRule("dependencies_valid", "every id of set_dependencies is that of a task submitted before"),
    RuntimeRule("get_ref_named", "get_ref is asked of a result that has a name"),
    RuntimeRule("get_ref_count", "get_ref(k) has k below the number of tensors that the task allocates"),
    RuntimeRule("given_elements", "host_build_graph reads elements of tensors that it is given, and of none that tasks write"),
    # Edges that the runtime infers.
    RuntimeRule("wait_lookup", "IN and INOUT wait for all tasks that have written overlapping elements; an INOUT stands for those that it "
                               "covers from then on"),
    RuntimeRule("wait_output", "OUT waits for nobody but the task that allocates the tensor"),
    RuntimeRule("wait_readers", "nothing waits for tasks that have read, unless it names them"),
)
_BY_NAME = {rule.name: rule for rule in RUNTIME_RULES}


def rule(name: str) -> RuntimeRule:
    """Return the rule of a name."""
    if name not in _BY_NAME:
        raise InternalError(f"the table of the runtime's rules has no `{name}`")
    return _BY_NAME[name]


def limit(name: str) -> int:
    """Return the limit that a rule states."""
    most = rule(name).most
    if most is None:
        raise InternalError(f"the rule `{name}` states no number")
    return most
