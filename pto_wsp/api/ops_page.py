"""Generate the page docs/ops.md from the op table: every name of `pto`, with one table per family.

>>> "| `pto.exp(x)` |" in ops_page()
True
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from pto_wsp.api.pto import OpFunction, members
from pto_wsp.ir.dtype import DType
from pto_wsp.npu.rules.operands import ON_CHIP
from pto_wsp.npu.select.select import npu_form, npu_lacks
from pto_wsp.ops.entry import CFunction, Operator, Spelling, Work
from pto_wsp.ops.rounding import ALL, BITS, COMPUTED, FLOATS, INTEGERS, NUMBERS, STORAGE, print_dtypes
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Iota, Matmul, Op, RowReduce
from pto_wsp.ops.table import FAMILIES, FORMULAS
from pto_wsp.ops.whole import Movement, TileFunction

_GROUPS = {"floats": FLOATS, "integers": INTEGERS, "numbers": NUMBERS, "bits": BITS, "computed": COMPUTED, "storage": STORAGE, "all": ALL}

_HEAD = """# The operations of kernels

Every name of `pto`, written from the op table by `pto_wsp/api/ops_page.py`; `help(pto.exp)` says the same in a session. Tiles are
two-dimensional; shapes broadcast: `[R, 1]`, `[1, C]`, `[1, 1]` and Python numbers meet `[R, C]`. A number takes the tile's dtype.

**Dtypes** never mix silently; `pto.cast` converts. An operation refuses other dtypes at the user's line. The tables say:

{groups}

**Numbers.** Integers wrap; `//` and `%` floor; an integer divided by 0 gives 0; a shift by the width or more gives 0. maximum, minimum,
relu and reductions propagate NaN. f16 and bf16 are computed in f32: each operation rounds its result once, half to even; a reduction adds
up in f32 and rounds at its end. fp8 is storage: loaded, stored, moved and cast.

**Cost** on the neutral `unit` arch, in cycles: {works}. `ulp` is how far an f32 result of the generated C may be from the
exact one, in units of its last place; where the column is empty the result is the exact one, rounded. f64 functions come from libm.
`NPU` is the tile instruction that an op is on f32; *composed*: several. {chip} have instructions, or a wider dtype that has: no op takes
{lacking} there, and where a cell says *not*, some more. Halves are converted to f32 and back, but where f16 gives the same.
"""


def ops_page() -> str:
    """Return the text of the page."""
    groups = "\n".join(f"- *{name}*: {print_dtypes(dtypes)}" for name, dtypes in _GROUPS.items())
    works = "; ".join(f"*{_work(work)}*, {work.value}" for work in Work)
    chip, lacking = print_dtypes(ON_CHIP), print_dtypes(tuple(dtype for dtype in ALL if dtype not in ON_CHIP))
    parts = [_HEAD.format(groups=groups, works=works, chip=chip, lacking=lacking)]
    documented = {name for name, function in members().items() if isinstance(function, OpFunction)} | _ALIASES.keys()
    for title, entries, functions, formulas in FAMILIES:
        parts.append(f"## {title}\n")
        calls = {function.__name__: function for function in (*functions, *(formula.call for formula in formulas))}
        docs = {entry.name: inspect.getdoc(calls.get(entry.name)) or entry.doc for entry in entries}     # the function documents both forms
        if entries:
            parts.append(_table([_row(entry, docs[entry.name]) for entry in entries]))
        if calls.keys() - docs.keys():
            parts.append(_function_table({name: function for name, function in calls.items() if name not in docs}))
        parts += [note for note in (_note(name, doc) for name, doc in docs.items()) if note]
        documented |= set(calls)
    parts.append("## Memory, state and control\n")
    parts.append(_function_table({name: function for name, function in members().items() if name not in documented}))
    return "\n".join(parts)


_ALIASES: Mapping[str, str] = {alias: formula.name for formula in FORMULAS for alias in formula.aliases}
_COLUMNS = ("call", "dtypes", "result", "meaning", "NumPy", "C", "NPU", "unit", "cost", "ulp")


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a table of the columns that are not empty."""
    columns = [name for name in _COLUMNS if any(row[name] for row in rows)]
    lines = [columns, ["---"] * len(columns), *([row[name].replace("|", "\\|") for name in columns] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(entry: Op, doc: str) -> Mapping[str, str]:
    also = "".join(f", `pto.{alias}`" for alias in entry.aliases)
    return {"call": f"`pto.{entry.name}{_signature(entry.signature)}`{also}", "dtypes": _dtypes(entry.dtypes), "result": _result(entry),
            "meaning": _first_line(doc), "NumPy": _numpy(entry), "C": _c(entry), "NPU": _npu(entry), "unit": entry.unit.value,
            "cost": _work(entry.work), "ulp": f"{entry.ulp:g}" if isinstance(entry, Elementwise) and entry.ulp is not None else ""}


def _function_table(functions_of: Mapping[str, Callable[..., object]]) -> str:
    rows = [f"| `pto.{name}{_signature(inspect.signature(function))}`{_also(name)} | {_first_line(inspect.getdoc(function) or '')} |\n"
            for name, function in functions_of.items()]
    return "".join(("| call | meaning |\n", "| --- | --- |\n", *rows))


def _also(name: str) -> str:
    return "".join(f", `pto.{alias}`" for alias, of in _ALIASES.items() if of == name)


def _signature(signature: inspect.Signature) -> str:
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)).replace("<", "").replace(">", "")


def _dtypes(dtypes: tuple[DType, ...]) -> str:
    return next((f"*{name}*" for name, group in _GROUPS.items() if set(group) == set(dtypes)), print_dtypes(dtypes))


def _result(entry: Op) -> str:
    match entry:
        case Elementwise():
            return "[R, C] bool" if entry.to_mask else "[R, C]"
        case RowReduce():
            return "[R, 1]"
        case ColReduce():
            return "[1, C]"
        case Matmul():
            return "[M, N]"
        case Convert() | Expand() | Iota() | Movement() | TileFunction():
            return ""   # the call or the meaning gives it
        case _:
            assert_never(entry)


def _numpy(entry: Op) -> str:
    if not isinstance(entry, Elementwise):
        return ""
    name = getattr(entry.ref, "__name__", "")
    return f"`np.{name}`" if not name.startswith(("_", "<")) else ""


def _c(entry: Op) -> str:
    match entry:
        case Elementwise() | Convert():
            return _spelled(entry.c)
        case RowReduce() | ColReduce():
            return _spelled(entry.combine)
        case Matmul() | Expand() | Iota() | Movement() | TileFunction():
            return ""
        case _:
            assert_never(entry)


def _spelled(spelling: Spelling) -> str:
    match spelling:
        case Operator(text):
            return f"`{text}`"
        case CFunction(template):
            return f"`{template}`"
        case _:
            assert_never(spelling)


def _npu(entry: Op) -> str:
    """Return the NPU form of an op, and the dtypes that it lacks in addition to those that every op lacks."""
    lacks = npu_lacks(entry.name)
    return npu_form(entry.name) + (f"; not {print_dtypes(lacks)}" if lacks else "")


def _work(work: Work) -> str:
    match work:
        case Work.LARGEST_TILE:
            return "elements"
        case Work.MKN:
            return "product"
        case Work.SORT:
            return "sort"
        case _:
            assert_never(work)


def _first_line(doc: str) -> str:
    line = doc.strip().split("\n", 1)[0]
    return line.removeprefix("Return ").rstrip(".")


def _note(name: str, doc: str) -> str:
    """Return the text of a docstring after its first line."""
    rest = doc.partition("\n")[2].strip()
    return f"`pto.{name}`: {rest}\n" if rest else ""
