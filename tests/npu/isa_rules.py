"""The rules of the instruction table as a header of the emulated core: it states none of them a second time.

>>> header().splitlines()[1]
'#pragma once'
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pto_wsp.npu.isa.instructions import FAMILIES, ROWS, FormOperand, Instruction, find_instruction
from pto_wsp.npu.isa.rules import RULES, Demand, Rule, conversions

HEADER = Path(__file__).resolve().parent / "core" / "check" / "isa_rules.h"
_FLAG = {("a2a3",): "kA2a3", ("a5",): "kA5", FAMILIES: "kBoth"}
_TYPES = {"": "kAnyMemory", "Vec": "static_cast<int>(TileType::Vec)", "Mat": "static_cast<int>(TileType::Mat)"}


def header() -> str:
    """Return the text of `core/check/isa_rules.h`."""
    parts = {"DEMANDS": (f"    {demand.name}," for demand in Demand), "RULES": _rules(), "FORMS": _forms(), "CONVERSIONS": _conversions()}
    text = _TEMPLATE
    for name, lines in parts.items():
        text = text.replace(f"@{name}@", "\n".join(lines))
    return text


_TEMPLATE = """\
// What instructions demand of their operands. Written from the instruction table (tests/npu/isa_rules.py); --update writes it anew.
#pragma once

#include "pto/types.hpp"

namespace pto::emu {

constexpr unsigned kA2a3 = 1, kA5 = 2, kBoth = 3;
constexpr int kAnyMemory = -1, kNoTile = -1, kNumber = -2;

enum class Demand {
@DEMANDS@
};

// What is demanded of some tiles, counted from 0, of an instruction that has so many.
struct Rule {
    const char *op;
    int n_tiles;
    Demand demand;
    unsigned families;
    int operands[4];
    int number;
    int memory;       // of the source
    unsigned widths;  // bytes of an element, a bit for each; 0: any
};
constexpr Rule kRules[] = {
@RULES@
};

// How many tiles the forms of an instruction have, a bit for each.
struct Forms {
    const char *op;
    unsigned counts;
};
constexpr Forms kForms[] = {
@FORMS@
};

// What one TCVT converts.
struct Conversion {
    Dtype from, to;
    unsigned families;
};
constexpr Conversion kConversions[] = {
@CONVERSIONS@
};

}  // namespace pto::emu
"""


def _rules() -> Iterator[str]:
    known = {row.name for row in ROWS}
    for rule in RULES:
        for form in find_instruction(rule.name).forms if rule.name in known else ():
            names = [operand.name for operand in form]
            if all(name in names for name in rule.operands):
                yield _rule(rule, form)


def _rule(rule: Rule, form: tuple[FormOperand, ...]) -> str:
    tiles = [operand.name for operand in form if operand.kind.is_tile]
    places = [str(tiles.index(name)) if name in tiles else "kNumber" for name in rule.operands]
    places += ["kNoTile"] * (4 - len(places))
    widths = sum(1 << width for width in rule.widths)
    return (f'    {{"{rule.name}", {len(tiles)}, Demand::{rule.demand.name}, {_FLAG[rule.families]}, {{{", ".join(places)}}}, '
            f"{rule.number}, {_TYPES[rule.memory]}, {widths}}},")


def _forms() -> Iterator[str]:
    for row in ROWS:
        yield f'    {{"{row.name}", {_counts(find_instruction(row.name))}u}},'


def _counts(instruction: Instruction) -> int:
    counts = {sum(operand.kind.is_tile for operand in form) for form in instruction.forms}
    return sum(1 << count for count in counts)


def _conversions() -> Iterator[str]:
    pairs = {family: set(conversions(family)) for family in FAMILIES}
    for source, target in dict.fromkeys(pair for family in FAMILIES for pair in conversions(family)):
        families = tuple(family for family in FAMILIES if (source, target) in pairs[family])
        yield f"    {{Dtype::{source}, Dtype::{target}, {_FLAG[families]}}},"
