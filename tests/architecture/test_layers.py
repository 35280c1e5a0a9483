"""Imports go down the table below, hidden ones included, and in no circle; nothing is imported inside a function but by the named few."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "pto_wsp"

# Top imports downwards only; the members of one row are independent of each other.
LAYERS = (
    ("cli", "csp", "mypy_plugin", "primitives", "scalar_expr", "tt"),
    ("api",),
    ("view",),
    ("timing",),
    ("targets",),
    ("npu",),
    ("run",),
    ("artifact",),
    ("c",),
    ("check",),
    ("passes",),
    ("schedule", "trace"),
    ("arch",),
    ("ops",),
    ("ir",),
    ("calls", "pickling"),
    ("errors", "resources"),
    ("doors",),
    ("source",),
    ("progress", "records", "values", "wording"),
)
# Above every row: the package's own __init__ and __main__. Nothing imports them.
TOP = frozenset({"", "__main__"})

# The one file whose functions import modules of the package when they are called, and how many may.
DOORS, MOST_DOORS = "pto_wsp/doors.py", 12
# Functions that load a library when they are called, because it is slow and not always needed.
LATE_FUNCTIONS: Mapping[str, frozenset[str]] = {
    "pto_wsp/artifact/toolchain.py": frozenset({"_run_all", "_start"}),          # subprocess: only a cache miss runs the compiler
    "pto_wsp/ir/dtype.py": frozenset({"_numpy_dtype"}),            # ml_dtypes: only bf16 and fp8
    "pto_wsp/arch/model.py": frozenset({"cycles"}),                # fractions: only prices of copies between ranks
    "pto_wsp/wording.py": frozenset({"nearest"}),                  # difflib: only a name that is none
    "pto_wsp/schedule/calendar.py": frozenset({"__repr__"}),       # hashlib: only a calendar that is printed
    "pto_wsp/c/render.py": frozenset({"_environment"}),            # jinja2: only a cache miss renders
    "pto_wsp/artifact/store.py": frozenset({"_file_lock"}),        # filelock: only a cache miss publishes
    "pto_wsp/records.py": frozenset({"pydantic_model", "_pydantic_marks"}),   # pydantic: only values that are not plainly right
    "pto_wsp/artifact/abi.py": frozenset({"parse_abi"}),           # cffi's parser: only building the runtime parses
    "pto_wsp/api/explore.py": frozenset({"widget_class"}),        # anywidget: an extra
    "pto_wsp/timing/graph_export.py": frozenset({"_networkx"}),    # networkx: optional
    "pto_wsp/progress.py": frozenset({"__init__", "draw"}),      # rich, IPython: only what takes more than a second
}
LATE_MODULES = frozenset({"IPython", "anywidget", "cffi", "difflib", "filelock", "fractions", "hashlib", "jinja2", "ml_dtypes", "networkx",
                          "pydantic", "rich", "subprocess", "traitlets", "typer"})

DEPTH = {name: depth for depth, row in enumerate(LAYERS) for name in row}


@dataclass(frozen=True)
class Import:
    """One import: the line, the module as an absolute name (None when computed), the function it stands in ("" for none)."""

    line: int
    module: str | None
    function: str


def imports_of(text: str, module: str, is_package: bool, part_names: frozenset[str]) -> list[Import]:
    """Return every import of a file, wherever it stands. `from pto_wsp import x` names x if x is one of `part_names`."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    found: list[Import] = []

    def names(node: ast.AST) -> Iterator[str | None]:
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                stem = package[: len(package) - node.level + 1] if node.level else []
                origin = ".".join([*stem, *([node.module] if node.module else [])])
                for alias in node.names:
                    yield f"{PACKAGE}.{alias.name}" if origin == PACKAGE and alias.name in part_names else origin
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in ("__import__", "import_module"):
                literal = node.args[0] if node.args else None
                known = isinstance(literal, ast.Constant) and isinstance(literal.value, str)
                name = literal.value if known else None
                yield f"{'.'.join(package)}{name}" if name and name.startswith(".") else name

    def visit(node: ast.AST, function: str) -> None:
        found.extend(Import(node.lineno, name, function) for name in names(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            name = getattr(node, "name", "<lambda>")
            function = f"{function}.{name}" if function else name
        elif isinstance(node, ast.ClassDef) and function:
            function = f"{function}.{node.name}"
        for child in ast.iter_child_nodes(node):
            if calls or not isinstance(child, ast.expr):     # imports are statements, but for those calls
                visit(child, function)

    calls = "__import__" in text or "import_module" in text
    visit(ast.parse(text), "")
    return found


def part_of(module: str) -> str | None:
    """Return the row member that a module belongs to, "" for the package itself, None for another project's module."""
    first, *rest = module.split(".")
    return (rest[0] if rest else "") if first == PACKAGE else None


def direction_faults(part: str, imports: list[Import]) -> Iterator[str]:
    """Say which imports of a file in `part` do not go down."""
    for one in imports:
        if one.module is None:
            yield f"{one.line}: imports a module whose name is computed"
            continue
        target = part_of(one.module)
        if target is None or target == part:
            continue
        if target in TOP:
            yield f"{one.line}: imports the top of the package, not the module that defines the name"
        elif target not in DEPTH:
            yield f"{one.line}: imports {one.module}, which is not in the table"
        elif part not in TOP and DEPTH[target] <= DEPTH[part]:
            relation = "independent of" if DEPTH[target] == DEPTH[part] else "below"
            yield f"{one.line}: imports {one.module}, but {part} is {relation} {target}"


def late_faults(imports: list[Import], allowed: frozenset[str]) -> Iterator[str]:
    """Say which imports inside functions are not among the named few."""
    for one in imports:
        if not one.function:
            continue
        if one.function not in allowed:
            yield f"{one.line}: imports {one.module} inside {one.function}(): at the top, or a function of {DOORS}"
        elif one.module is None or one.module.split(".")[0] not in LATE_MODULES:
            yield f"{one.line}: {one.function}() may load {', '.join(sorted(LATE_MODULES))} late, not {one.module}"


@cache
def project_imports() -> tuple[tuple[str, str, list[Import]], ...]:
    """Return path, part and imports of every file of the package."""
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    parts = frozenset(DEPTH) | {file.relative_to(ROOT / PACKAGE).parts[0].removesuffix(".py") for file in files}
    found = []
    for file in files:
        path = file.relative_to(ROOT)
        is_package = path.name == "__init__.py"
        dotted = path.parent.parts if is_package else path.with_suffix("").parts
        part = dotted[1] if len(dotted) > 1 else ""
        found.append((path.as_posix(), part, imports_of(file.read_text(), ".".join(dotted), is_package, parts)))
    return tuple(found)


def test_every_part_is_in_the_table() -> None:
    unknown = {part for _, part, _ in project_imports()} - set(DEPTH) - TOP
    assert not unknown, f"give these a row in LAYERS: {sorted(unknown)}"


def test_imports_go_down() -> None:
    known = (entry for entry in project_imports() if entry[0] != DOORS and (entry[1] in DEPTH or entry[1] in TOP))
    faults = [f"{path}:{fault}" for path, part, imports in known for fault in direction_faults(part, imports)]
    assert not faults, "\n".join(faults)


def test_no_import_inside_a_function_but_the_named_few() -> None:
    faults = [f"{path}:{fault}" for path, _, imports in project_imports() if path != DOORS
              for fault in late_faults(imports, LATE_FUNCTIONS.get(path, frozenset()))]
    assert not faults, "\n".join(faults)


def test_every_named_late_function_still_imports() -> None:
    late = {(path, one.function) for path, _, imports in project_imports() for one in imports if one.function}
    stale = {(path, name) for path, names in LATE_FUNCTIONS.items() for name in names} - late
    assert not stale, f"take these out of LATE_FUNCTIONS: {sorted(stale)}"


def test_doors_are_few() -> None:
    late = {one.function for path, _, imports in project_imports() if path == DOORS for one in imports if one.function}
    assert 1 < len(late) <= MOST_DOORS


def inner_imports(files: Iterable[tuple[str, list[Import]]]) -> dict[str, dict[str, set[str]]]:
    """Return for each folder below the package which of its members (files and folders) imports which others."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path, imports in files:
        own = path.removesuffix(".py").split("/")
        for one in imports:
            target = (one.module or "").split(".")
            shared = next((k for k, (a, b) in enumerate(zip(own, target, strict=False)) if a != b), min(len(own), len(target)))
            if 2 <= shared < min(len(own), len(target)):
                found[".".join(own[:shared])][own[shared]].add(target[shared])
    return found


def round_members(uses: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the members that reach themselves."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            new = set(uses.get(todo.pop(), ())) - seen
            seen |= new
            todo.extend(new)
        return seen

    return {member for member in uses if member in reached(member)}


def test_folders_are_at_most_three_deep() -> None:
    deep = [path for path, _, _ in project_imports() if path.count("/") > 3]
    assert not deep, deep


def test_members_of_a_folder_do_not_import_in_a_circle() -> None:
    circles = {folder: members for folder, uses in inner_imports((path, imports) for path, _, imports in project_imports()).items()
               if (members := round_members(uses))}
    assert not circles, circles


# The checker itself.

def test_a_circle_of_folders_is_found() -> None:
    files = [(path, imports_of(text, path.removesuffix(".py").replace("/", "."), False, frozenset(DEPTH))) for path, text in (
        ("pto_wsp/npu/plan/waits.py", "from pto_wsp.npu.isa.runtime import x\nfrom pto_wsp.npu.emit.golden import y"),
        ("pto_wsp/npu/emit/golden.py", "from pto_wsp.npu.check import forms"),
        ("pto_wsp/npu/check/forms.py", "from pto_wsp.npu.plan.waits import y\nfrom pto_wsp.ir.scalar import Var"))]
    assert round_members(inner_imports(files)["pto_wsp.npu"]) == {"plan", "emit", "check"}
    assert not round_members(inner_imports(files[:2])["pto_wsp.npu"])


def faults_in(text: str, part: str = "passes", allowed: frozenset[str] = frozenset()) -> list[str]:
    imports = imports_of(text, f"{PACKAGE}.{part}.demo", False, frozenset(DEPTH))
    return [*direction_faults(part, imports), *late_faults(imports, allowed)]


@pytest.mark.parametrize("text", [
    "import pto_wsp.c.render",
    "from pto_wsp.c import render",
    "from pto_wsp import c",
    "from pto_wsp import Tensor",
    "from .. import c",
    "from ..c import render",
    "if TYPE_CHECKING:\n    from pto_wsp.api import Program",
    "try:\n    import pto_wsp.cli\nexcept ImportError:\n    pass",
    "importlib.import_module('pto_wsp.cli')",
    "import_module('pto_wsp.cli')",
    "__import__('pto_wsp.cli')",
    "importlib.import_module(name)",
    "import pto_wsp.no_such_part",
    "def f():\n    import json",
    "class A:\n    def f(self):\n        from pto_wsp.ir import tile",
    "f = lambda: __import__('json')",
])
def test_a_wrong_import_is_found(text: str) -> None:
    assert len(faults_in(text)) == 1


def test_members_of_one_row_are_independent() -> None:
    faults = faults_in("from pto_wsp.resources import read", part="errors")
    assert faults == ["1: imports pto_wsp.resources, but errors is independent of resources"]


@pytest.mark.parametrize("text", [
    "import json",
    "from pto_wsp.passes import lower",
    "from . import lower",
    "from pto_wsp.ir.dtype import DType",
    "from pto_wsp import ir",
    "from ..errors import PtoError",
])
def test_a_right_import_passes(text: str) -> None:
    assert faults_in(text) == []


def test_a_named_late_function_may_load_only_the_listed_modules() -> None:
    allowed = frozenset({"_environment"})
    assert faults_in("def _environment():\n    import jinja2", allowed=allowed) == []
    assert faults_in("def _environment():\n    from jinja2.ext import x", allowed=allowed) == []
    assert len(faults_in("def _environment():\n    import json", allowed=allowed)) == 1
    assert len(faults_in("def _environment():\n    def inner():\n        import jinja2", allowed=allowed)) == 1
