"""`pto-wsp` as a process of its own: what it loads, exit codes, pipes, terminals, Ctrl-C, completion."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.commands import MODEL

LATE = {"jinja2", "ml_dtypes", "pydantic", "pycparser", "filelock", "pto_wsp.api.compiling", "pto_wsp.api.program", "pto_wsp.cli.programs",
        "pto_wsp.view.card", "pto_wsp.targets", "pto_wsp.run", "pto_wsp.timing"}


def started(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    # a process in the background of a shell ignores SIGINT, and so would its children
    return subprocess.Popen([sys.executable, "-m", "pto_wsp", *arguments], cwd=folder, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, **environment}, encoding="utf-8", errors="surrogateescape",
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


@pytest.mark.slow
def test_help_and_version_load_no_command() -> None:
    source = "import sys, json\nfrom pto_wsp.cli.main import main\ntry:\n    main(['{}'])\nexcept SystemExit:\n    pass\n" \
             "print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", source.format("--help")], text=True, capture_output=True, check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    commands = ["run", "compile", "simulate", "tune", "report", "inspect", "diff", "check", "explain", "passes", "cache", "doctor", "demo"]
    for name in commands:
        assert re.search(rf"│ {name} ", done.stdout), name
    assert "pto_wsp.cli.main" in loaded and not loaded & LATE


@pytest.mark.slow
def test_a_reader_that_goes_ends_the_command_quietly(model: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)      # before the command begins: later would be a race
    command = [sys.executable, "-m", "pto_wsp", "explain", "W201"]
    done = subprocess.run(command, cwd=model, stdout=writer, stderr=subprocess.PIPE, timeout=300)
    os.close(writer)
    assert done.returncode == 141 and done.stderr == b""


@pytest.mark.slow
def test_ctrl_c_ends_a_file_that_never_does(model: Path) -> None:
    (model / "loop.py").write_text("print('begun', flush=True)\nwhile True:\n    pass\n")
    process = started(model, "run", "loop.py")
    try:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130 and "Traceback" not in said


@pytest.mark.slow
def test_a_stream_that_is_not_unicode(model: Path) -> None:
    (model / "ünï.py").write_text(MODEL.replace("def own", "def ëigen"), encoding="utf-8")
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    text, _ = started(model, "inspect", "ünï.py", "-w", "ëigen", **ascii_only).communicate(timeout=300)
    assert text.isascii() and "|| for b in P(8):" in text and "\\xebigen" in text
    text, _ = started(model, "inspect", "ünï.py", "-w", "ëigen", "--json", **ascii_only).communicate(timeout=300)
    assert text.isascii() and json.loads(text)["title"] == "ëigen"
    refused = started(model, "inspect", "ünï.py", "-w", "ëige", **ascii_only)
    _, said = refused.communicate(timeout=300)
    assert refused.returncode == 2 and "\\xebigen" in said


@pytest.mark.slow
def test_a_terminal_shows_colours_and_progress(model: Path) -> None:
    """On a terminal of 40 columns: colours unless NO_COLOR says otherwise, no line longer than 40, progress on stderr alone."""
    for no_colour in ("", "1"):
        ours, theirs = pty.openpty()
        os.set_blocking(ours, False)
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
        environment |= {"TERM": "xterm-256color", **({"NO_COLOR": no_colour} if no_colour else {})}
        setting = "import fcntl,struct,termios; fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 40, 0, 0))"
        subprocess.run([sys.executable, "-c", setting], stdout=theirs, check=True)
        command = [sys.executable, "-m", "pto_wsp", "run", "model.py", "-w", "own", "--target", "interp"]
        process = subprocess.Popen(command, cwd=model, stdout=theirs, stderr=subprocess.PIPE, env=environment, text=True)
        os.close(theirs)
        text = b""
        while process.poll() is None or text[-1:] != b"\n":
            try:
                text += os.read(ours, 1 << 16)
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        os.close(ours)
        shown = text.decode()
        assert process.returncode == 0 and "own" in shown and ("\x1b[" in shown) == (not no_colour)
        assert max(len(line.rstrip("\r")) for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\n")) <= 40
        assert process.communicate()[1] == ""      # stderr is no terminal: nothing moves there


@pytest.mark.slow
def test_completion_names_commands_and_values(model: Path) -> None:
    for words, wanted in (("pto-wsp si", "simulate"), ("pto-wsp compile --target asc", "ascend_npu"), ("pto-wsp explain W20", "W201"),
                          ("pto-wsp run --arch uni", "unit")):
        asked = {"_PTO_WSP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        text, _ = started(model, **asked).communicate(timeout=300)
        assert wanted in text.split(), (words, text)
