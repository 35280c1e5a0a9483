"""Read the listing of a kernel for a core, as `ir/kernels/` of a package has it: buffers, tiles, and steps with what each touches.

A package may come from anywhere, and only its text is there: what a line does follows from the line. Lines that are not known are steps
without work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from pto_wsp.values import dataclass

_BUFFER = re.compile(r"buffer (\S+)\s+(\w+)\s+(\d+) bytes(?: x (\d+))?(?: at (0x[0-9a-f]+))?")
_TILE = re.compile(r"(\S+)\s+= \S+ \d+x\d+ \w+ in ([^\s,]+)(?: \+ (\d+))?(?:, valid .*)?")
_FLAG = re.compile(r"(set|wait) (\w+) -> (\w+), event (.+)")
_COMMENT = re.compile(r"\s+# (\S.*):(\d+)$")
_WORD = re.compile(r"&?[\w.]+")
_CPP = re.compile(r"\s*(T[A-Z][A-Z0-9_]*|set_flag|wait_flag|pipe_barrier)\b")
_NO_WORK = frozenset({"for", "when", "otherwise:", "leave", "declare", "(nothing)"})


@dataclass(frozen=True, slots=True)
class ListedBuffer:
    """An on-chip buffer of a listing: its memory, the bytes of all copies, and its address."""

    name: str
    space: str
    size_bytes: int
    address: int


@dataclass(frozen=True, slots=True)
class ListedStep:
    """A step of a listing. `buffers`: buffers that the step uses; `pipe`: its pipe, "" for none; `line`: the user's line, 0 for none.

    `flag`: (set or wait, pipe after, pipe before, event) for a flag. A barrier has the text `barrier PIPE`.
    """

    text: str
    depth: int
    pipe: str
    buffers: tuple[str, ...] = ()
    flag: tuple[str, str, str, str] | None = None
    line: int = 0

    @property
    def is_barrier(self) -> bool:
        """Whether the step is a barrier."""
        return self.text.startswith("barrier ")


@dataclass(frozen=True, slots=True)
class Listing:
    """A kernel as it is listed."""

    buffers: Mapping[str, ListedBuffer]
    steps: tuple[ListedStep, ...] = field(default=())


def read_listing(text: str) -> Listing:
    """Return what a listing says."""
    buffers: dict[str, ListedBuffer] = {}
    tiles: dict[str, str] = {}
    steps: list[ListedStep] = []
    for raw in text.splitlines()[1:]:
        comment = _COMMENT.search(raw)
        line = raw[:comment.start()] if comment is not None else raw
        words = line.strip()
        buffer, tile = (None, None) if steps else (_BUFFER.fullmatch(words), _TILE.fullmatch(words))
        if buffer is not None:
            name, space, size, copies, address = buffer.groups()
            buffers[name] = ListedBuffer(name, space, int(size) * int(copies or 1), int(address or "0", 16))
        elif tile is not None and tile[2] in buffers:
            tiles[tile[1]] = tile[2]
        elif words:
            steps.append(_step(words, (len(line) - len(line.lstrip())) // 4 - 1, tiles, buffers, int(comment[2]) if comment else 0))
    return Listing(buffers, tuple(steps))


def _step(words: str, depth: int, tiles: Mapping[str, str], buffers: Mapping[str, ListedBuffer], line: int) -> ListedStep:
    flag = _FLAG.fullmatch(words)
    if flag is not None:
        return ListedStep(words, depth, "", flag=(flag[1], flag[2], flag[3], flag[4]), line=line)
    head = words.split(" ", 1)[0]
    if head in _NO_WORK or words.startswith("barrier "):
        return ListedStep(words, depth, "", line=line)
    touched = tuple(dict.fromkeys(tiles[name] for name in (word.lstrip("&") for word in _operands(words, head)) if name in tiles))
    spaces = {buffers[name].space for name in touched}
    return ListedStep(words, depth, _pipe(head, words, spaces), touched, line=line)


def _operands(words: str, head: str) -> Iterator[str]:
    """Yield the words that may name tiles: of a load the target, of a store what is stored."""
    if head == "load":
        yield words.split(" ")[1].rstrip(",")
    elif head == "store":
        yield words.rpartition("<- ")[2].partition(",")[0]
    else:
        yield from _WORD.findall(words.partition(" ")[2])


def _pipe(head: str, words: str, spaces: set[str]) -> str:
    if head == "load":
        return "MTE2"
    if head == "store":
        return "FIX" if "L0C" in spaces else "MTE3"
    if head == "let":
        return "S" if "[" in words else ""
    if "L1" in spaces:
        return "MTE1"
    return "V" if spaces <= {"UB"} else "M"


def code_of_steps(steps: tuple[ListedStep, ...], text: str) -> tuple[tuple[str, int], ...]:
    """Return for each step its line of C++ and the number of lines before it that declare: "" from where the two do not agree."""
    lines = text.splitlines()
    at = next((k + 1 for k, line in enumerate(lines) if "kernel_entry(" in line), len(lines))
    found: list[tuple[str, int]] = []
    for step in steps:
        wanted = _instruction(step)
        if not wanted:
            found.append(("", 0))
            continue
        folded = 0
        while at < len(lines) and ((match := _CPP.match(lines[at])) is None or match[1] == "TASSIGN" != wanted):
            folded += 1
            at += 1
        if at == len(lines) or (match := _CPP.match(lines[at])) is None or match[1] != wanted:
            break
        found.append((lines[at].strip(), folded))
        at += 1
    return (*found, *((("", 0),) * (len(steps) - len(found))))


def _instruction(step: ListedStep) -> str:
    head = step.text.split(" ", 1)[0].partition("<")[0]
    if step.flag is not None:
        return f"{step.flag[0]}_flag"
    known = {"load": "TLOAD", "store": "TSTORE", "barrier": "pipe_barrier"}
    return known.get(head, head if step.pipe and head != "let" else "")
