"""The README's first two commands: each stands alone, so that a reader can paste it and CI can run it as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "readme_command.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], text=True, capture_output=True)


@pytest.mark.parametrize("number", ["1", "2"])
def test_command_is_one_complete_line(number: str) -> None:
    done = run(number)
    assert done.returncode == 0, done.stderr
    command = done.stdout.rstrip("\n")
    assert command.startswith("python3 -m venv ")
    assert "\n" not in command and not command.endswith("\\")
    assert "cd " not in command and "git clone" not in command
    subprocess.run(["bash", "-n", "-c", command], check=True)


def test_second_command_runs_the_tests() -> None:
    assert "python -m pytest" in run("2").stdout


README = """# Title

```python
x = 1
```

```bash
# why
python3 -m venv a
```

```bash
python3 -m venv b && c
d
```
"""


@pytest.mark.parametrize("number, command", [("1", "python3 -m venv a"), ("2", "python3 -m venv b && c"), ("3", "d")])
def test_commands_are_counted_over_bash_blocks(tmp_path: Path, number: str, command: str) -> None:
    page = tmp_path / "README.md"
    page.write_text(README)
    assert run(number, str(page)).stdout == command + "\n"


def test_last_step_is_what_follows_the_last_and(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(README)
    assert run("2", str(page), "--last-step").stdout == "c\n"


def test_missing_command_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(README)
    done = run("4", str(page))
    assert done.returncode == 1
    assert "README.md has 3 commands in its bash blocks, not 4" in done.stderr
