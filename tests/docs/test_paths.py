"""Every file, folder and module of the repository that a page names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# What begins a path in the repository; in packages that are emitted and folders that are saved, other paths begin with them.
FOLDERS = sorted({path.name for path in (ROOT / "pto_wsp").iterdir() if path.is_dir()} - {"__pycache__", "ir"} |
                 {"codegen", "driver", "expr", "frontend", "plan", "report", "retime", "types", "verify"})
WHOLE = re.compile(r"(?<![\w/.-])(?:pto_wsp|csrc|templates|tests|examples|docs|\.ci)/[\w./-]*")
PARTS = re.compile(rf"`((?:{'|'.join(FOLDERS)})(?:/[\w.-]+)+/?)`")
MODULES = re.compile(r"\b(?:from|import) (pto_wsp(?:\.\w+)+)")


def made_by(text: str) -> set[str]:
    """Return the files that a page itself makes, as examples."""
    return set(re.findall(r"^# new file: (\S+)$", text, re.M)) | {"templates/<target>/"}


def missing_paths(text: str) -> list[str]:
    """Return the paths and modules in a text that the repository does not have; a path may leave `pto_wsp/` out."""
    made = made_by(text)
    whole = [path for path in WHOLE.findall(text) if not (ROOT / path.rstrip("./")).exists() and path not in made]
    modules = [name for name in MODULES.findall(text) if not has_module(name) and f"{name.replace('.', '/')}.py" not in made]
    short = [path for path in PARTS.findall(text) if not (ROOT / "pto_wsp" / path).exists()]
    return [*whole, *short, *modules]


def has_module(name: str) -> bool:
    """Tell whether a module, or a package, is there."""
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_path_of_a_page_is_there(page: Path) -> None:
    assert missing_paths(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text, missing", [
    ("`pto_wsp/ops/spec.py` and pto_wsp/ir/.", []),
    ("`pto_wsp/expr/kernel.py`", ["pto_wsp/expr/kernel.py"]),
    ("`tests/ops/no_such.py`", ["tests/ops/no_such.py"]),
    ("`verify/bounds.py` says", ["verify/bounds.py"]),
    ("`check/bounds.py` and `check/verify.py`", ["check/verify.py"]),
    ("from pto_wsp.expr import kernel", ["pto_wsp.expr"]),
    ("from pto_wsp.ir.scalar import Const", []),
    ("# new file: pto_wsp/passes/mine.py\n\nfrom pto_wsp.passes.mine import f", []),
])
def test_what_is_not_there_is_found(text: str, missing: list[str]) -> None:
    assert missing_paths(text) == missing
