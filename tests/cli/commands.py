"""Run `pto-wsp` in this process, and the file that the tests of its commands give it."""

from __future__ import annotations

import io
import json
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pto_wsp.cli.main import main

MODEL = """\
import numpy as np
from pto_wsp import DispatchPolicy, DType, In, Out, P, Symbol, Tensor, Tile, Tunable, Workload, kernel, pto, workload

F32 = DType.F32
X, Y = Tensor(np.ones((8, 4, 8), np.float32)), Tensor(np.zeros((8, 4, 8), np.float32))
A, B = Tensor(shape=(8, 4, 8), dtype=F32), Tensor(shape=(8, 4, 8), dtype=F32)
n = Symbol("n")

@kernel
def doubled(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]):
    pto.store(y, x * 2)

@workload
def own():
    for b in P(8):
        doubled[b](X[b], Y[b])

@workload
def given():
    for b in P(n):
        doubled[b](A[b], B[b])
"""


@dataclass(frozen=True)
class Ended:
    """What a command wrote, and its exit code."""

    out: str
    err: str
    code: int

    @property
    def card(self) -> dict[str, Any]:
        """The card of a command that was given --json."""
        (line,) = self.out.splitlines()
        card: dict[str, Any] = json.loads(line)
        return card

    def table(self, title: str) -> list[list[str]]:
        """Return the rows of a table of the card."""
        (rows,) = [part["rows"] for part in self.card["parts"] if part.get("title") == title]
        return list(rows)

    def values(self) -> dict[str, str]:
        """Return the labelled values of the card."""
        return {value["label"]: value["value"] for part in self.card["parts"] if part["kind"] == "values" for value in part["values"]}


def command(folder: Path, *arguments: str) -> Ended:
    """Run the command in a folder."""
    out, err, searched = io.StringIO(), io.StringIO(), list(sys.path)
    with chdir(folder), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(list(arguments))
    sys.path[:] = searched      # without the folder of a file that was loaded: a later test starts processes
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Ended(out.getvalue(), err.getvalue(), int(left.value.code or 0))
