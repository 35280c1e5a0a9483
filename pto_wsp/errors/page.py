"""What every error code means: the text of `pto-wsp explain CODE`, and the page docs/errors.md, both written from the error classes.

>>> print(explanation("K102"))
K102  OutNeverStoredError
...
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import MappingProxyType

from pto_wsp.errors import catalog
from pto_wsp.errors.pto_error import PtoError

# The first letter of a code, by the stage that finds the mistake.
STAGES = MappingProxyType({
    "K": "Kernels: signatures, bodies and what fits on chip",
    "T": "Types: arguments, operands, indices",
    "D": "Data: tensors and the arrays behind them",
    "W": "Workloads: structure, pipelines, races",
    "M": "Meshes: layouts, ranks, collectives",
    "S": "Schedules: directives, keys, calendars, the search",
    "C": "Compiling: targets, options, artifacts, the command",
    "R": "Runs: bindings, checks at run time, the sanitizer",
    "J": "Functions on tensors: bodies, shapes and axes, plans",
    "N": "The NPU: limits of the device, checks of what is emitted",
})

_HEAD = """# Errors

Every error that a user can cause has a code, which stays the same across versions. A report names the code, the user's line, what was
expected, what was found and what to do. `pto-wsp explain CODE` prints an entry of this page; `error.code` is the code in a program.

The first letter says which stage found the mistake: {stages}.

An `InternalError` has no code: it is a bug of this package, and says so.
"""


@cache
def errors_by_code() -> MappingProxyType[str, type[PtoError]]:
    """Return the classes of all errors that a user can cause, by their codes, in order."""
    return MappingProxyType({kind.code: kind for kind in sorted(catalog(), key=lambda kind: list(STAGES).index(kind.code[0]))})


def explanation(code: str) -> str:
    """Return what a code means: cause, an example that fails, what to do.

    Raises: KeyError for a code that no error has.
    """
    kind = errors_by_code()[code]
    example = "\n".join(f"    {line}" for line in kind.example.splitlines())
    return f"{kind.code}  {kind.__name__}\n\n{kind.cause}\n\nFor example:\n\n{example}\n\n{kind.fix}\n"


def errors_page() -> str:
    """Return the page docs/errors.md."""
    stages = ", ".join(f"`{letter}` {text.split(':')[0].lower().replace('npu', 'NPU')}" for letter, text in STAGES.items())
    return _HEAD.format(stages=stages) + "".join(_sections())


def _sections() -> Iterator[str]:
    for letter, title in STAGES.items():
        yield f"\n## {title}\n"
        for code, kind in errors_by_code().items():
            if code.startswith(letter):
                yield f"\n### {code} {kind.__name__}\n\n{kind.cause}\n\n```text\n{kind.example}\n```\n\n{kind.fix}\n"
