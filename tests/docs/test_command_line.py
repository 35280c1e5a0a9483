"""Every ```bash block of docs/command_line.md is run, and prints the ```text block below it; `--update` writes these anew."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.commands import command
from tests.docs.test_blocks import blocks_of, matches

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command_line.md"
BLOCK = re.compile(r"```bash\npto-wsp (?P<command>.+)\n```\n(?:\n```text\n(?P<shown>(?:.*\n)*?)```\n)?")
# What depends on the machine, or is long: as the page says it.
VARIES = ((r"\d+\.\d ms", "… ms"), (r"artifact \S+", "artifact …"), (r"\d+ artifacts?, [\d.]+ \w+", "…"), (r"(?m)^(Cache  ).*$", r"\1…"),
          (r"(?s)kind +artifacts +size\n.*", "kind…\n"), (r"(?s)what +found +what to do\n.*", "what   found   what to do\n…\n"))


def varied(text: str) -> str:
    """Return what a command printed, as a page shows it."""
    for pattern, shown in VARIES:
        text = re.sub(pattern, shown, text)
    return text


@pytest.mark.slow
def test_the_page_shows_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    page = PAGE.read_text(encoding="utf-8")
    (tmp_path / "model.py").write_text(blocks_of(page)[0].code)

    def run(block: re.Match[str]) -> str:
        ended = command(tmp_path, *shlex.split(block["command"]))
        assert ended.code == 0 and ended.err == "", ended.err
        shown = varied("".join(f"{line}\n" for line in ended.out.splitlines()))
        if not request.config.getoption("--update"):
            assert block["shown"] is not None and matches(block["shown"], shown), f"pto-wsp {block['command']} prints\n{shown}"
        return f"```bash\npto-wsp {block['command']}\n```\n\n```text\n{shown}```\n"

    written, n = BLOCK.subn(run, page)
    assert n == page.count("```bash") > 10
    if request.config.getoption("--update"):
        PAGE.write_text(written, encoding="utf-8")


def test_every_command_is_on_the_page(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"│ (\w+) ", command(tmp_path, "--help").out.partition("Commands")[2])
    assert len(names) == 13 and [name for name in names if f"pto-wsp {name}" not in page] == []
