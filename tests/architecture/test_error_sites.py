"""A code of an error is one cause: a class that is made in more than twenty places is several."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pto_wsp
from pto_wsp.errors import PtoError, catalog

MOST_PLACES = 20
PACKAGE = Path(pto_wsp.__file__).parent


def places_by_class(files: list[Path]) -> Counter[str]:
    """Return how many calls make an error of each class, by the class's name."""
    texts = (text for path in files if MADE.search(text := path.read_text(encoding="utf-8")))
    return Counter(name for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
                   if (name := called(node.func)) in NAMES)


def called(function: ast.expr) -> str:
    """Return the last name of what is called: `X` of X(...) and of errors.X(...)."""
    match function:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return ""


NAMES = frozenset(kind.__name__ for kind in catalog())
MADE = re.compile(rf"(?<!class )\b(?:{'|'.join(sorted(NAMES))})\(")     # only such files are parsed


@cache
def places_of_the_package() -> Counter[str]:
    """Return the places of all modules: not counted at import, which every worker of both test sets does."""
    return places_by_class(sorted(PACKAGE.rglob("*.py")))


def test_no_error_is_made_in_more_than_twenty_places() -> None:
    assert {name: count for name, count in places_of_the_package().items() if count > MOST_PLACES} == {}


def test_each_error_is_made_somewhere() -> None:
    assert sorted(NAMES - set(places_of_the_package())) == []


def test_no_class_leaves_its_code_to_another() -> None:
    assert [kind.__name__ for kind in catalog() if "code" not in vars(kind)] == []


def test_the_places_are_counted(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text("raise ArityError('a')\ntry: ...\nexcept ArityError: ...\nx = [errors.ArityError('b'), PtoError('c')]\n")
    assert places_by_class([source]) == {"ArityError": 2} and PtoError.__name__ not in NAMES
