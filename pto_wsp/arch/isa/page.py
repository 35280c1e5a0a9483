"""The page docs/tile_rules.md: what tile instructions demand besides dtypes, written from the rules of the instruction table.

>>> rules_page().splitlines()[0]
'# What tile instructions demand'
"""

from __future__ import annotations

from pto_wsp.arch.isa.instruction import FAMILIES
from pto_wsp.arch.isa.rules import RULES, Rule, converted_to
from pto_wsp.types.dtype import DType

_HEAD = """# What tile instructions demand

Written from the instruction table by `pto_wsp/arch/isa/page.py`. Kernels of packages keep all of this: selection asks the rules where it
has a choice, the emitter refuses a kernel that breaks one (`N204`, and `N201` for flags), and the emulated core of the tests refuses to
run it. For bodies of your own ([own_bodies.md](own_bodies.md)) nothing is proved: keep these rules there yourself. a2a3 is `ascend_910b`,
a5 is `ascend_950`. A tile's *storage* is what its type says first, rows and columns; its *valid part* is what instructions handle.
"""


def rules_page() -> str:
    """Return the page."""
    lines = [_HEAD, "## Operands", "", "| instruction | operands | which | cores | why |", "| --- | --- | --- | --- | --- |"]
    merged: dict[tuple[str, ...], list[str]] = {}
    for rule in RULES:
        merged.setdefault(_cells(rule), []).append(f"`{rule.name}`")
    lines += [f"| {' '.join(names)} | {' | '.join(cells)} |" for cells, names in merged.items()]
    lines += ["", "## Conversions", "",
              "What one `TCVT` makes of a dtype; `pto.cast` goes by several where it has to, and keeps its meaning.", "",
              "| from | a2a3 | a5 |", "| --- | --- | --- |"]
    for dtype in DType:
        targets = [" ".join(str(target) for target in converted_to(dtype, family)) for family in FAMILIES]
        if any(targets):
            lines.append(f"| {dtype} | {' | '.join(targets)} |")
    return "\n".join(lines) + "\n"


def _cells(rule: Rule) -> tuple[str, ...]:
    sources = f" from a {rule.memory} tile" if rule.memory else ""
    widths = f", elements of {' or '.join(map(str, rule.widths))} bytes" if rule.widths else ""
    cores = "both" if rule.families == FAMILIES else rule.families[0]
    return ", ".join(rule.operands) or "all", f"{rule.text}{widths}", f"{cores}{sources}", rule.why
