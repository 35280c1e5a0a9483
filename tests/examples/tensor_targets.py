"""Which target takes which example of whole tensors: the table of docs/tensor_targets.md, `python -m tests.examples.tensor_targets`."""

from __future__ import annotations

import copy
import re
import sys
from functools import cache
from pathlib import Path

from pto_wsp import PtoError
from tests.benchmarks.page import put_between
from tests.examples.tensors import EXAMPLES, TensorExample

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tensor_targets.md"
ARCH = "ascend_910b"
HOSTS, PACKAGES = ("interp", "cpu_sim"), ("ascend_npu", "pto")


@cache
def outcome(name: str, target: str) -> str:
    """Return what a target makes of an example: `runs`, `a package`, or why not. A run's numbers are NumPy's."""
    example = EXAMPLES[name]
    try:
        return _run(example, target) if target in HOSTS else _packed(example, target)
    except PtoError as refusal:
        return f"refused, {refusal.code}: {_line(refusal)}"


def _run(example: TensorExample, target: str) -> str:
    given = example.module.draw()
    data = copy.deepcopy(given)
    example.check(data, given, example.function.using(target=target)(**data), target)
    return "runs"


def _packed(example: TensorExample, target: str) -> str:
    data = example.module.draw()
    plan = example.function.plan(**data, arch=ARCH, target=target)
    example.function.lower(plan, **data).compile(target=target, arch=ARCH)
    return "a package"


def _line(refusal: PtoError) -> str:
    """Return a refusal's first line, with what was found, for a cell of a table; names of the module stay as they are."""
    first = str(refusal).splitlines()[0].partition(": ")[2]
    found = re.search(r"= found: +(.+)", str(refusal))
    return (first + (f": {found[1]}" if found else "")).replace("|", "\\|")


def table() -> str:
    """Return the table of Markdown, a row for each example."""
    rows = [f"| example | {' | '.join(f'`{target}`' for target in (*HOSTS, *PACKAGES))} |", "| --- " * 5 + "|"]
    for name, example in EXAMPLES.items():
        cells = " | ".join(outcome(name, target) for target in (*HOSTS, *PACKAGES))
        rows.append(f"| [{name}](../examples/tensors/{example.file}.py) | {cells} |")
    return "\n".join(rows)


if __name__ == "__main__":
    put_between(PAGE, "targets", table())
    sys.exit(0)
