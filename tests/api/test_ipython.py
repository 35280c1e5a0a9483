"""Errors in IPython: the report first, cells by their names, the user's frames only."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pto_wsp.errors import PtoError
from pto_wsp.errors.traceback import notebook_lines

CELLS = ("""import numpy as np
from pto_wsp import *
@kernel
def k(x: In[Tile[4, 8, "f32"]], y: Out[Tile[4, 8, "f32"]]):
    z = x + "a"
    pto.store(y, z)
X = Tensor(np.zeros((4, 8), np.float32))
@workload
def w():
    k(X, X)
""", """def go():
    return w().compile()

go()
""", """try:
    1 / 0
except ZeroDivisionError as problem:
    raise PtoError("mine") from problem
""", """try:
    go()
except PtoError as problem:
    raise ValueError("outer") from problem
""")
DRIVER = """
import contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
said = []
for cell in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        shell.run_cell(cell, store_history=True)
    said.append([out.getvalue(), type(getattr(sys, "last_value", None)).__name__])
print(json.dumps(said))
"""


@pytest.mark.slow
def test_errors_of_cells(tmp_path: Path) -> None:
    env = {**os.environ, "IPYTHONDIR": str(tmp_path), "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", DRIVER], input=json.dumps(CELLS), env=env, capture_output=True, text=True, check=True)
    (quiet, _), (traced, last), (raised, _), (outer, _) = json.loads(done.stdout.splitlines()[-1])
    assert quiet == ""
    assert traced.splitlines() == [
        "error[T213]: `pto.add`: a value that a kernel does not know",
        "  --> Cell In[1], line 5",
        "    |",
        '  5 |     z = x + "a"',
        "    |         ^^^^^^^",
        "   = expected: a tile of this kernel, a number, or a scalar of this kernel",
        "   = found:    str: 'a'",
        "",
        "raised in these calls, the first one outermost:",
        "  Cell In[2], line 4",
        "    go()",
        "  Cell In[2], line 2, in go",
        "    return w().compile()",
        "  Cell In[1], line 10, in w",
        "    k(X, X)",
        "  Cell In[1], line 5, in k",
        '    z = x + "a"']
    assert last == "OperandKindError", "%debug looks at the error itself"
    assert raised.splitlines()[-3:] == ["  Cell In[3], line 2", "    1 / 0", "ZeroDivisionError: division by zero"]
    assert "direct cause" in outer and "--> Cell In[1], line 5" in outer and outer.rstrip().endswith("ValueError: outer")


def user_function() -> None:
    raise PtoError("mine")


def test_frames_of_files_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(PtoError) as caught:
        user_function()
    lines = notebook_lines(caught.value)
    assert lines[0] == "error[E000]: mine"
    assert re.fullmatch(r"  .*test_ipython\.py, line \d+, in user_function", lines[-2]) and lines[-1] == '    raise PtoError("mine")'


def test_colours_add_nothing_but_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    error = PtoError("of `a|b`", found="1 | 2", help="= 3", notes=("--> no place",))
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = "\n".join(notebook_lines(error))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == str(error)


def test_a_context_that_is_suppressed_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    for cause, expected in ((None, False), (KeyError("k"), True)):
        with pytest.raises(PtoError) as caught:
            try:
                raise KeyError("k")
            except KeyError:
                raise PtoError("mine") from cause
        assert any("KeyError" in line for line in notebook_lines(caught.value)) is expected
