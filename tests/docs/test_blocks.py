"""Every ```python block of the README and of docs/ runs, and prints what the page says.

The blocks of one page run in order, as one file. A ```text block right after a python block is what that block prints: a line
`…` stands for any lines, `…` within a line for any text. A block tagged ```python no-run is only compiled.
"""

from __future__ import annotations
import __future__

import contextlib
import io
import linecache
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

ROOT = Path(__file__).resolve().parents[2]
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.is_file()]
FIRST_PAGES = ("README.md", "docs/tensors.md", "docs/kernels.md")
FUTURE_FLAGS = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


@dataclass(frozen=True)
class Block:
    """A python block of a page: its code, the line where the code starts, and what it must print, where the page says so."""

    code: str
    line: int
    runs: bool
    output: str | None = None


def blocks_of(page: str) -> list[Block]:
    """Return the python blocks of a page.

    Raises: ValueError for a block that would be passed over in silence: indented, never closed, or with an unknown tag.
    """
    found: list[Block] = []
    fence, tag, start, last_end = "", "", 0, -1
    lines = page.splitlines()
    for number, line in enumerate(lines, 1):
        opening = re.match(r"(\s*)(`{3,})(.*)$", line)
        if fence:
            if line.rstrip() != fence:
                continue
            body = "".join(text + "\n" for text in lines[start:number - 1])
            if tag.split()[:1] == ["python"]:
                if tag not in ("python", "python no-run"):
                    raise ValueError(f"line {start}: unknown tag {tag!r}")
                found.append(Block(body, start + 1, tag == "python"))
                last_end = number
            elif tag == "text" and last_end > 0 and not "".join(lines[last_end:start - 1]).strip():
                found[-1] = Block(found[-1].code, found[-1].line, found[-1].runs, body)
            fence = ""
        elif opening:
            indent, fence, tag = opening[1], opening[2], opening[3].strip()
            if indent and tag.startswith("python"):
                raise ValueError(f"line {number}: an indented python block would not run")
            fence, start = indent + fence, number
    if fence:
        raise ValueError(f"line {start}: the block is never closed")
    return found


def matches(expected: str, printed: str) -> bool:
    """Tell whether the output is the expected one, `…` standing for anything."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "…" else ".*?".join(map(re.escape, line.split("…"))) + "\n"
                      for line in expected.splitlines())
    return re.fullmatch(pattern, printed) is not None


def run_page(name: str, page: str) -> None:
    """Run the blocks of a page as one file called `name`; what is raised shows the page's own lines.

    Raises: AssertionError if a block prints something else than the page says.
    """
    # Read by linecache, so that carets and tracebacks point into the page wherever the run takes place.
    linecache.cache[name] = (len(page), None, page.splitlines(keepends=True), name)
    module = types.ModuleType("__main__")
    module.__file__ = name
    flags = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", module)
        for block in blocks_of(page):
            code = compile("\n" * (block.line - 1) + block.code, name, "exec", flags, dont_inherit=True)
            if not block.runs:
                continue
            flags |= code.co_flags & FUTURE_FLAGS
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, module.__dict__)
            if block.output is not None and not matches(block.output, printed.getvalue()):
                raise AssertionError(f"{name}:{block.line}: the page says\n{block.output}\nbut it prints\n{printed.getvalue()}")


def page_case(path: Path) -> ParameterSet:
    """Return a page as a case: all but the first pages of a reader are slow tests where blocks run."""
    name = path.relative_to(ROOT).as_posix()
    runs = any(block.runs for block in blocks_of(path.read_text(encoding="utf-8")))
    return pytest.param(path, id=name, marks=pytest.mark.slow if runs and name not in FIRST_PAGES else ())


@pytest.mark.parametrize("path", [page_case(path) for path in PAGES])
def test_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


# The runner itself.

def test_blocks_share_a_namespace_and_their_output_is_compared() -> None:
    run_page("p.md", "```python\nx = 2\n```\ntext\n```python\nprint(x)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match="but it prints"):
        run_page("p.md", "```python\nprint(2)\n```\n```text\n3\n```\n")


def test_a_text_block_after_prose_is_not_output() -> None:
    run_page("p.md", "```python\nprint(2)\n```\nprose\n```text\n3\n```\n")


def test_an_error_stands_on_the_pages_line() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("p.md", "# Title\n\n```python\nx = 0\n1 / x\n```\n")
    last = caught.traceback[-1]
    assert (last.frame.code.raw.co_filename, last.lineno + 1) == ("p.md", 5)
    assert linecache.getline("p.md", 5) == "1 / x\n"


def test_no_run_is_compiled_but_not_run() -> None:
    run_page("p.md", "```python no-run\n1 / 0\n```\n")
    with pytest.raises(SyntaxError):
        run_page("p.md", "```python no-run\n1 /\n```\n")


@pytest.mark.parametrize("page", ["```python\nx = 1\n", "1. item\n   ```python\n   x = 1\n   ```\n", "```python norun\n```\n"])
def test_a_block_that_would_be_passed_over_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="line "):
        blocks_of(page)


def test_a_future_import_and_main_hold_for_the_whole_page() -> None:
    run_page("p.md", "```python\nfrom __future__ import annotations\n```\n```python\ndef f(x: no_such): ...\n"
                     "assert f.__annotations__ == {'x': 'no_such'}\nassert __name__ == '__main__'\n```\n")


@pytest.mark.parametrize("expected, printed, same", [
    ("a\n", "a\n", True),
    ("a\n", "a\nb\n", False),
    ("a\n…\nz\n", "a\nb\nc\nz\n", True),
    ("a\n…\nz\n", "a\nz\n", True),
    ("…\n", "", True),
    ("took … ms\n", "took 3.5 ms\n", True),
    ("took … ms\n", "took 3\n5 ms\n", False),
    ("a.c\n", "abc\n", False),
])
def test_output_patterns(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same
