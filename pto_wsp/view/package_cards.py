"""Cards of packages: files, kernels with their instructions, pipes and memories, checks, and what another package has otherwise."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from typing import Any

from pto_wsp.arch.instances import ARCH_NAMES, builtin_arch
from pto_wsp.artifact.contents import FileText, Package, PackageDifference, PackagedKernel, PackageFiles
from pto_wsp.artifact.manifest import MANIFEST, PackageManifest
from pto_wsp.check.verdict import Verdict
from pto_wsp.view.card import (
    BarrierMark,
    Card,
    CodePart,
    DiffPart,
    FlagCurve,
    InstructionRow,
    InstructionsPart,
    LabelledValue,
    Lifetime,
    Preformatted,
    TablePart,
    UsedMemory,
    ValuesPart,
)
from pto_wsp.view.check_cards import MARKS
from pto_wsp.view.highlight import code_lines, language_of
from pto_wsp.view.listing import ListedStep, Listing, code_of_steps, read_listing

_MOST_FILES, _MOST_LINES, _MOST_CHARACTERS = 60, 300, 30_000
_MOST_STEPS, _MOST_STEPS_TOGETHER = 100, 60
_MOST_TASKS = 24
_PIPES = ("MTE2", "MTE1", "M", "V", "FIX", "MTE3", "S")
_TEXT = 90          # characters of a cell of a row


# -- packages ----------------------------------------------------------------------------------------------------------
def package_card(package: Package) -> Card:
    """Return the card of a package: its files, kernels, tasks and checks; the instructions of its kernels, if these are few."""
    manifest = package.manifest
    kernels = package.kernels
    checks = tuple(dict.fromkeys(package.checks))       # as `program.checks`: what says the same counts once
    proved = sum(check.verdict == Verdict.PROVED.value for check in checks)
    facts = [("target", manifest.target), ("arch", manifest.arch), ("digest", manifest.digest[:12]),
             ("checksums", f"all {len(manifest.files)} match")]
    facts += [("runtime", manifest.runtime)] if isinstance(manifest, PackageManifest) else []
    parts: list[Any] = [ValuesPart(values=tuple(LabelledValue(label=label, value=value) for label, value in facts))]
    left = _MOST_STEPS_TOGETHER
    for kernel in kernels.values():
        listing = read_listing(kernel.listing)
        if kernel.listing and len(listing.steps) <= left:
            left -= len(listing.steps)
            parts.append(_instructions(kernel, listing))
    if kernels:
        parts.append(_kernel_table(tuple(kernels.values())))
    if "ir/plan.wsp" in package.files and (tasks := _tasks(package.files["ir/plan.wsp"])):
        parts.append(Preformatted(title="Tasks", text=tasks))
    parts.append(_file_table(package.files))
    if checks:
        rows = tuple((MARKS[Verdict(check.verdict)], check.check, check.detail) for check in checks)
        parts.append(TablePart(title="Checks", head=("verdict", "check", "why"), rows=rows[:20], more=max(0, len(rows) - 20)))
    readme = "README.md" if "README.md" in package.files else MANIFEST
    shows = [f'package.files["{readme}"] shows a file', *(['package.kernels["name"] a kernel'] if kernels else []),
             "package.diff(other) what differs"]
    return Card(title=package.name, subtitle=f"Package · {len(package.files)} files",
                sentence=f"{proved} of {len(checks)} checks proved; the checksums of all files match.", parts=tuple(parts),
                foot=", ".join(shows))


def _kernel_table(kernels: Sequence[PackagedKernel]) -> TablePart:
    rows = tuple((str(one.entry.func_id), one.entry.name, one.entry.core_type, " ".join(one.entry.signature) or "-",
                  " ".join(one.entry.scalars) or "-", ", ".join(_of_size(one.arch, name, used) for name, used in one.entry.on_chip) or "-",
                  one.entry.origin) for one in kernels)
    return TablePart(title="Kernels", head=("func", "kernel", "core", "tensors", "scalars", "on chip", "from"), rows=rows[:_MOST_FILES],
                     more=max(0, len(rows) - _MOST_FILES))


def _of_size(arch: str, name: str, used: int) -> str:
    size = _size_of(arch, name)
    return f"{name} {used:,} of {size:,} B, {used / size:.0%}" if size else f"{name} {used:,} B"


def _size_of(arch: str, name: str) -> int:
    """Return the bytes of a memory that programs may use; 0 where they are not known."""
    memory = next((one for one in builtin_arch(arch).memories if one.name == name), None) if arch in ARCH_NAMES else None
    return 0 if memory is None or memory.usable_bytes is None else memory.usable_bytes


def _tasks(plan: str) -> str:
    """Return the loops and launches of a printed plan."""
    lines = plan.splitlines()
    first = next((k for k, line in enumerate(lines) if k and not line.startswith((" ", "tensor", "kernel", "symbol"))), len(lines))
    body = [line for line in lines[first:] if line.strip() and not line.strip().startswith("check ")]
    more = f"\n… {len(body) - _MOST_TASKS} more lines" if len(body) > _MOST_TASKS else ""
    return "\n".join(line[:400] for line in body[:_MOST_TASKS]) + more


# -- files -------------------------------------------------------------------------------------------------------------
_WHAT = (("kernels/", "a kernel for a core"), ("orchestration/", "submits the tasks"), ("include/", "the names of the runtime"),
         ("ir/kernels/", "the listing of a kernel"), ("ir/", "what was before the code"), ("kernel_config.py", "what drivers read"),
         ("golden.py", "inputs, and what must come out, in NumPy"), ("README.md", "how to build and run it"),
         (MANIFEST, "what it holds, with checksums"), ("lib", "the library of this machine"), ("Makefile", "builds the program elsewhere"))


def files_card(files: PackageFiles) -> Card:
    """Return the card of the files of a package."""
    return Card(title="Files", subtitle=files.root.name, parts=(_file_table(files),), foot='files["name"] shows one')


def _file_table(files: PackageFiles) -> TablePart:
    shown = [name for name in files if not name.startswith("ir/") or name.count("/") <= 1 or name.startswith("ir/kernels/")]
    rows = tuple((name, next((text for start, text in _WHAT if name.startswith(start)), ""), _size(files, name))
                 for name in shown[:_MOST_FILES])
    return TablePart(title="Files", head=("file", "what it is", "bytes"), rows=rows, right=(2,), more=len(files) - len(rows))


def _size(files: PackageFiles, name: str) -> str:
    try:
        return f"{(files.root / name).stat().st_size:,}"
    except OSError:
        return "removed"


def file_card(file: FileText) -> Card:
    """Return the card of a file of a package: its text in the colours of its language."""
    text = file if len(file) <= _MOST_CHARACTERS else file[:_MOST_CHARACTERS].rpartition("\n")[0]
    lines = code_lines(text.rstrip("\n"), language_of(file.path))
    n = file.count("\n") + (not file.endswith("\n"))
    return Card(title=file.path, subtitle=f"{n:,} lines, {file.n_bytes:,} bytes",
                parts=(CodePart(lines=lines[:_MOST_LINES], more=max(0, n - min(len(lines), _MOST_LINES))),))


# -- kernels -----------------------------------------------------------------------------------------------------------
def packaged_kernel_card(kernel: PackagedKernel) -> Card:
    """Return the card of a kernel of a package: its instructions on their pipes and its memories; its text if it has no listing."""
    entry = kernel.entry
    used = [_of_size(kernel.arch, name, bytes_) for name, bytes_ in entry.on_chip]
    listing = read_listing(kernel.listing)
    part = _instructions(kernel, listing).model_copy(update={"title": ""}) if kernel.listing else CodePart(
        title=entry.source, lines=code_lines(kernel.text[:_MOST_CHARACTERS], "cpp")[:_MOST_LINES])
    return Card(title=entry.name, subtitle=f"{entry.core_type} kernel {entry.func_id} · {kernel.arch} · from {entry.origin}",
                state="; ".join(used), sentence=_sentence(listing) if kernel.listing else "A body of the user's own.", parts=(part,))


def _sentence(listing: Listing) -> str:
    flags = sum(step.flag is not None and step.flag[0] == "set" for step in listing.steps)
    barriers = sum(step.is_barrier for step in listing.steps)
    work = [step for step in listing.steps if step.pipe]
    pipes = len({step.pipe for step in work})
    return (f"{len(work)} instructions on {pipes} pipe{'s' * (pipes != 1)}, ordered by {flags} flag{'s' * (flags != 1)} and {barriers} "
            f"barrier{'s' * (barriers != 1)}; {len(listing.buffers)} buffers, {_shared(listing)}.")


def _shared(listing: Listing) -> str:
    buffers = tuple(listing.buffers.values())
    sharing = {one.name for at, one in enumerate(buffers) for two in buffers[at + 1:]
               if one.space == two.space and one.address < two.address + two.size_bytes and two.address < one.address + one.size_bytes}
    return f"{len(sharing) or 'none'} share bytes with others over time"


def _instructions(kernel: PackagedKernel, listing: Listing) -> InstructionsPart:
    """Return the rows of a kernel: its steps but flags and barriers, which stand between them."""
    code = code_of_steps(listing.steps, kernel.text)
    shift, rows = _shift(kernel), list[InstructionRow]()
    pipes = tuple(pipe for pipe in _PIPES if any(step.pipe == pipe or (step.flag is not None and pipe in step.flag[1:3])
                                                 for step in listing.steps))
    flags: list[FlagCurve] = []
    barriers: list[BarrierMark] = []
    pending: dict[tuple[str, str, str], list[int]] = {}
    lifetimes: dict[str, list[int]] = {}
    folded, line = 0, 0
    for step, (text, more) in zip(listing.steps, code, strict=True):
        at = len(rows)
        folded += more
        if step.flag is not None:
            how, after, before, event = step.flag
            if how == "set":
                pending.setdefault((after, before, event), []).append(at - 1)
            elif set_at := pending.get((after, before, event)):
                flags.append(FlagCurve(done=max(0, set_at.pop(0)), after=pipes.index(after), wait=at, before=pipes.index(before),
                                       event=event))
        elif step.is_barrier:
            barriers += [BarrierMark(row=at, pipe=pipes.index(pipe))] if (pipe := step.text.split(" ")[1]) in pipes else []
        else:
            for buffer in step.buffers:
                lifetimes.setdefault(buffer, [at, at])[1] = at
            is_new = bool(step.line) and step.line != line
            line = step.line or line
            rows.append(InstructionRow(number=str(line + shift) if is_new else "", source=_source(kernel, line + shift) if is_new else "",
                                    ir=_cut("  " * step.depth + step.text), code=_cut(text), folded=folded,
                                    pipe=pipes.index(step.pipe) if step.pipe in pipes else None))
            folded = 0
    for life in lifetimes.values():      # what a loop uses lives as long as the loop
        life[:] = _widened(listing, life)
    shown = rows[:_MOST_STEPS]
    n = len(shown)
    spaces = tuple(dict.fromkeys(buffer.space for buffer in listing.buffers.values()))
    used = {name: size for name, size in kernel.entry.on_chip}
    memories = tuple(UsedMemory(name=space, used_bytes=max((one.address + one.size_bytes for one in listing.buffers.values()
                                                            if one.space == space), default=used.get(space, 0)),
                                size_bytes=_size_of(kernel.arch, space)) for space in spaces)
    lives = tuple(Lifetime(name=name, memory=spaces.index(one.space), address=one.address, size_bytes=one.size_bytes, first=first,
                           last=min(last, n - 1)) for name, one in listing.buffers.items()
                  for first, last in [lifetimes.get(name, [n, n])] if first < n)
    return InstructionsPart(title=kernel.entry.name, rows=tuple(shown), pipes=pipes,
                            flags=tuple(flag for flag in flags if flag.wait <= n and flag.done < n),
                            barriers=tuple(one for one in barriers if one.row <= n), memories=memories, lifetimes=lives,
                            more=len(rows) - n)


def _widened(listing: Listing, life: Sequence[int]) -> list[int]:
    """Return a lifetime in rows that covers each loop of which it begins before or inside, and ends inside."""
    rows = [step for step in listing.steps if step.flag is None and not step.is_barrier]
    first, last = life
    for begin, end in _loops(rows):
        if begin <= first <= end or begin <= last <= end:
            first, last = min(first, begin), max(last, end)
    return [first, last]


def _loops(rows: Sequence[ListedStep]) -> Iterator[tuple[int, int]]:
    """Yield the first and last row of each loop."""
    for at, row in enumerate(rows):
        if row.text.startswith("for "):
            end = at
            while end + 1 < len(rows) and rows[end + 1].depth > row.depth:
                end += 1
            yield at, end


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else text[:_TEXT - 1] + "…"


def _shift(kernel: PackagedKernel) -> int:
    """Return how far the def stands below where it stood when the package was made."""
    line = kernel.entry.origin.rpartition(":")[2]
    return kernel.span.line - int(line) if kernel.span is not None and line.isdecimal() else 0


def _source(kernel: PackagedKernel, line: int) -> str:
    """Return a line of the user's file, where this process knows it."""
    return "" if kernel.span is None else _cut(linecache.getline(kernel.span.file, line).strip())


# -- differences -------------------------------------------------------------------------------------------------------
def package_difference_card(found: PackageDifference) -> Card:
    """Return the card of what two packages do not have alike."""
    n = len(found.files)
    rows = tuple((file.path, _how(found, file.how),
                  str(sum(line[:1] == "+" and line[:3] != "+++" for line in file.lines)),
                  str(sum(line[:1] == "-" and line[:3] != "---" for line in file.lines))) for file in found.files)
    parts: list[Any] = [TablePart(head=("file", "how", "lines more", "lines less"), rows=rows[:_MOST_FILES], right=(2, 3),
                                  more=max(0, n - _MOST_FILES))] if rows else []
    left = _MOST_LINES
    for file in found.files:
        if file.lines and left > 0:
            parts.append(DiffPart(title=file.path, lines=tuple(_cut(line) for line in file.lines[2:2 + left]),
                                  more=max(0, len(file.lines) - 2 - left)))
            left -= len(file.lines)
    return Card(title="Two packages", subtitle=f"{found.one.name} and {found.other.name}",
                sentence=f"{n} file{'s' * (n != 1)} differ{'s' * (n == 1)}." if n else "The packages are the same.", parts=tuple(parts))


def _how(found: PackageDifference, how: str) -> str:
    if not how.startswith("only in "):
        return how
    return "only in the first" if how == f"only in {found.one}" else "only in the second"
