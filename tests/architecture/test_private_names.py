"""Tests use what is public: no import of a private name, no attribute of one, no name of one in a string that is patched."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

# Private names of other libraries, and the methods by which IPython asks for text and HTML.
FOREIGN = frozenset({"ctypes._CFuncPtr", "ctypes._SimpleCData", "os._exit", "sys._current_frames", "sys._getframe", "torch._C",
                     "torch._int_mm"})
PROTOCOLS = frozenset({"_asdict", "_fields", "_replace", "_repr_pretty_", "_repr_mimebundle_"})     # of IPython and of named tuples
OWN = frozenset({"self", "cls", "super()"})     # the class's own
MENTION = re.compile(r"""(?:\.|import |, ?|^ +|\(|["'])_[A-Za-z]""", re.MULTILINE)     # only files with one are parsed
DOTTED = re.compile(r"[a-z]\w*(?:\.\w+)+")


def is_private(name: str) -> bool:
    """Tell whether a name begins with one underscore."""
    return name.startswith("_") and not name.startswith("__")


def private_names(text: str) -> Iterator[str]:
    """Yield the private names of others that a test uses, each with its line."""
    if not MENTION.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=module, names=names) if module and module.partition(".")[0] == "pto_wsp":
                yield from (f"{node.lineno}: {module}.{alias.name}" for alias in names
                            if any(map(is_private, f"{module}.{alias.name}".split("."))))
            case ast.Import(names=names):
                yield from (f"{node.lineno}: {alias.name}" for alias in names
                            if alias.name.startswith("pto_wsp.") and any(map(is_private, alias.name.split("."))))
            case ast.Attribute(value=value, attr=attr) if is_private(attr) and attr not in PROTOCOLS:
                owner = ast.unparse(value)
                if owner not in OWN and f"{owner}.{attr}" not in FOREIGN and not any(owner.startswith(name) for name in FOREIGN):
                    yield f"{node.lineno}: {owner}.{attr}"
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr", value=value), args=[ast.Constant(value=str(name)), *_]) \
                    if DOTTED.fullmatch(name) and any(map(is_private, name.split("."))):
                yield f"{node.lineno}: {name}"
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr") | ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"),
                          args=[_, ast.Constant(value=str(name)), *_]) if is_private(name) and name not in PROTOCOLS:
                yield f"{node.lineno}: {name}"


def test_no_test_uses_a_private_name() -> None:
    faults = [f"{path.relative_to(TESTS)}:{fault}" for path in sorted(TESTS.rglob("*.py")) for fault in private_names(path.read_text())]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("text", [
    "from pto_wsp.ops.table import _index",
    "from pto_wsp._hidden import index",
    "import pto_wsp._hidden",
    "program._compiled.runner",
    "made()._node",
    "patch.setattr('pto_wsp.ops.table._index', 3)",
    "patch.setattr(table, '_index', 3)",
    "getattr(program, '_compiled')",
    "object.__setattr__(self, 'x', program._x)",
])
def test_a_private_name_is_found(text: str) -> None:
    assert list(private_names(text))


@pytest.mark.parametrize("text", [
    "from pto_wsp.ops.table import TABLE", "from pto_wsp import __version__", "self._x", "super()._x()", "sys._getframe(1)",
    "value._repr_pretty_(printer, False)", "patch.setattr('pto_wsp.ops.table.TABLE', 3)", "object.__new__(kind)",
])
def test_a_public_name_is_left_alone(text: str) -> None:
    assert not list(private_names(text))
