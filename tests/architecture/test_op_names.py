"""What the package knows of an op stands in the op's entry: no other file names an op, the NPU's rules apart.

A name is a string equal to that of an entry of the op table, wherever in the code it stands: compared, matched, in a set, a key.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pto_wsp.ops.table import TABLE

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pto_wsp"

QUOTED = re.compile(rf"""["'](?:{'|'.join(sorted(TABLE))})["']""")

# Where an op has its entry, and where it has its instructions.
HOMES = ("ops/", "npu/rules/", "npu/isa/")

# Words that are also names of ops, and mean something else here.
ELSEWHERE: Mapping[str, tuple[frozenset[str], str]] = {
    "__init__.py": (frozenset({"maximum", "minimum"}), "functions of scalars, by their names"),
    "scalar_expr.py": (frozenset({"maximum", "minimum"}), "functions of scalars, by their names"),
    "c/scalars.py": (frozenset({"floordiv", "mod"}), "stems of C functions of scalars"),
    "c/kernel_rows.py": (frozenset({"round", "floor", "ceil"}), "modes of a cast"),
    "npu/emit/mlir_text.py": (frozenset({"eq", "ne"}), "predicates of MLIR"),
    "npu/emit/kernel_cpp.py": (frozenset({"xor"}), "a word of C++"),
    "trace/kernel/instructions.py": (frozenset({"eq", "ne", "lt", "le", "gt", "ge"}), "modes of TCMP"),
    "trace/kernel/stack.py": (frozenset({"transpose"}), "the method of arrays, in errors"),
    "trace/kernel/stack_ops.py": (frozenset({"reshape", "transpose"}), "methods of arrays, and functions of NumPy"),
    "records.py": (frozenset({"ge", "gt", "le"}), "bounds of fields, as pydantic calls them"),
    "ir/symbolic.py": (frozenset({"add", "sub", "mul", "floordiv", "mod", "pow", "xor", "lt", "le", "gt", "ge", "eq", "ne", "neg", "abs",
                                   "round", "floor", "ceil"}), "special methods of Python"),
    "ir/scalar.py": (frozenset({"neg"}), "an operator of scalars"),
    "trace/text/kernel.py": (frozenset({"gather", "scatter", "scatter_add", "transpose"}), "statements on rows of a parameter; an option"),
    "trace/text/nodes.py": (frozenset({"transpose", "reshape"}), "methods of views"),
    "trace/text/scalars.py": (frozenset({"where"}), "a function of scalars"),
    "passes/tensor/scalar_text.py": (frozenset({"maximum", "minimum"}), "functions of scalars, by their names"),
    "ir/kernel_walk.py": (frozenset({"gather", "scatter", "scatter_add"}), "statements on rows of a parameter"),
    "trace/tensor/host_arrays.py": (frozenset({"cast", "expand", "gather", "topk"}), "functions of tt"),
    "trace/tensor/functions.py": (frozenset({"argsort", "concat", "expand", "pad", "reshape", "round", "topk", "transpose", "where"}),
                                  "functions of NumPy, in errors and names of values"),
    "trace/tensor/namespace.py": (frozenset({"argsort", "cast", "expand", "gather", "matmul", "pad", "reshape", "rowargmax", "rowargmin",
                                             "topk", "transpose", "where"}), "functions of tt"),
    "trace/tensor/protocols.py": (frozenset({"add", "argsort", "concat", "expand", "matmul", "maximum", "minimum", "pad", "reshape",
                                             "round", "topk", "transpose", "where"}), "functions and methods of NumPy"),
    "trace/tensor/torch_functions.py": (frozenset({"argsort", "concat", "gather", "matmul", "pad", "relu", "reshape", "round", "silu",
                                                   "topk", "transpose", "where"}), "functions of torch"),
    "trace/tensor/value.py": (frozenset({"round"}), "Python's round"),
    "run/failures.py": (frozenset({"gather"}), "a call in the user's line"),
    "tt/__init__.py": (frozenset({"cast", "topk"}), "functions of tt"),
}


def op_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each string that names an op, docstrings and text with other words apart."""
    if not QUOTED.search(text):     # to parse the whole package takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in TABLE:
            yield node.lineno, node.value


@cache
def names_in_package() -> Mapping[str, tuple[tuple[int, str], ...]]:
    """Return the lines and names in each file that must not name an op."""
    paths = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
    return {name: tuple(op_names(path.read_text())) for name, path in paths.items() if not name.startswith(HOMES)}


def test_no_op_is_named_outside_its_entry_and_the_rules_of_the_npu() -> None:
    faults = [f"pto_wsp/{file}:{line}: {name}" for file, names in names_in_package().items() for line, name in names
              if file not in ELSEWHERE or name not in ELSEWHERE[file][0]]
    assert not faults, "ask for a trait of the entry instead:\n" + "\n".join(faults)


def test_no_word_is_listed_that_is_not_there() -> None:
    found = {file: {name for _, name in names} for file, names in names_in_package().items()}
    assert {file: set(words) for file, (words, _) in ELSEWHERE.items()} == {file: names for file, names in found.items() if names}


def test_a_name_is_found_wherever_it_stands() -> None:
    text = '''
if stmt.op == "exp" or stmt.op in {"log"}: pass
match stmt:
    case Compute(op="div"): pass
COST = {"tanh": 4}
find("rowsum")
"""an exp in a docstring"""
print("the exp of x")
'''
    assert sorted(name for _, name in op_names(text)) == ["div", "exp", "log", "rowsum", "tanh"]
