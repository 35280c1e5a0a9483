"""The table of the runtime's rules as a header of the emulation: limits as numbers, and a name that each refusal ends with."""

from __future__ import annotations

from pathlib import Path

from pto_wsp.npu.isa.runtime import RUNTIME_RULES

HEADER = Path(__file__).resolve().parent / "include" / "runtime_rules.h"


def header_text() -> str:
    """Return the header that the table makes."""
    lines = ["// The runtime's rules, from pto_wsp/npu/isa/runtime.py: tests/npu/test_runtime_rules.py --update writes this file.",
             "#pragma once", "", "#include <stdexcept>", "#include <string>", "", "namespace rules {", ""]
    lines += [f"constexpr int k_{rule.name} = {rule.most};" for rule in RUNTIME_RULES if rule.most is not None]
    lines += ["", "struct Rule {", "    const char *name, *says;", "};", ""]
    lines += [f'constexpr Rule {rule.name} = {{"{rule.name}", "{rule.says}"}};' for rule in RUNTIME_RULES]
    lines += ["", "// Ends a run that breaks a rule.",
              "[[noreturn]] inline void refuse(const Rule &rule, const std::string &found) {",
              '    throw std::logic_error(found + ": " + rule.says + " [" + rule.name + "]");', "}", "", "}  // namespace rules", ""]
    return "\n".join(lines)
