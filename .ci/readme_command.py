"""Print the N-th command of the README: the N-th line in its ```bash blocks that is neither blank nor a comment.

    python3 .ci/readme_command.py 2
    python3 .ci/readme_command.py 1 --last-step     what follows the last && of command 1
    python3 .ci/readme_command.py python            the README's ```python blocks, joined: its quick start
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """Return the texts of a page's code blocks in one language."""
    return [text for tag, text in FENCE.findall(page) if tag == language]


def commands(page: str) -> list[str]:
    """Return the commands in a page's bash blocks, one a line."""
    lines = (line.strip() for text in blocks(page, "bash") for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def main() -> int:
    """Print what was asked for; return 1 if the README has no such command."""
    parser = argparse.ArgumentParser(description="Print a command of the README.")
    parser.add_argument("which", help="1, 2, ... or the word python")
    parser.add_argument("page", nargs="?", type=Path, default=README)
    parser.add_argument("--last-step", action="store_true", help="only what follows the last && of the command")
    options = parser.parse_args()
    page = options.page.read_text(encoding="utf-8")
    if options.which == "python":
        found = "\n".join(blocks(page, "python"))
        if not found:
            print(f"{options.page.name} has no python block", file=sys.stderr)
            return 1
        print(found, end="")
        return 0
    listed = commands(page)
    number = int(options.which)
    if not 1 <= number <= len(listed):
        print(f"{options.page.name} has {len(listed)} commands in its bash blocks, not {number}", file=sys.stderr)
        return 1
    command = listed[number - 1]
    print(command.rsplit(" && ", 1)[-1] if options.last_step else command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
