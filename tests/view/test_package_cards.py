"""Packages as values: files with tones, kernels with pipes and memories, differences, and folders that cannot be trusted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Package, Program, PtoError, Tensor, Tile, kernel, pto, workload
from pto_wsp.artifact.contents import FileText, PackagedKernel, compare_packages
from pto_wsp.artifact.manifest import DeviceKernelEntry
from pto_wsp.errors import PackageNameError
from pto_wsp.view.card import CodePart, DiffPart, InstructionsPart, TablePart
from pto_wsp.view.listing import code_of_steps, read_listing
from pto_wsp.view.package_cards import packaged_kernel_card
from tests.view.test_cards import HOSTILE, part_of, text_of

F32 = DType.F32
X, Y = (Tensor(np.ones((64, 128), np.float32), name=name) for name in "XY")
A, B, C = (Tensor(np.ones((64, 64), np.float16 if name != "C" else np.float32), name=name) for name in "ABC")


@kernel
def squared(x: In[Tile[16, 128, F32]], y: Out[Tile[16, 128, F32]]) -> None:
    mean = pto.rowmean(x * x)
    pto.store(y, x * mean)


@kernel
def product(a: In[Tile[64, 64, DType.F16]], b: In[Tile[64, 64, DType.F16]], c: Out[Tile[64, 64, F32]]) -> None:
    pto.store(c, a @ b)


@workload
def rows() -> None:
    for i in P(4):
        squared[i](X[16 * i:16 * i + 16], Y[16 * i:16 * i + 16])


@workload
def both() -> None:
    product(A, B, C)
    squared(X[0:16], Y[0:16])


@pytest.fixture(scope="module")
def made() -> Program:
    return rows().compile(target="ascend_npu")


@pytest.fixture(scope="module")
def package(made: Program) -> Package:
    return made.package


# -- listings ----------------------------------------------------------------------------------------------------------
LISTING = """cube program k(a: In[Tile[8, 8, f16]]):
    buffer left  L0A    128 bytes x 2 at 0x100
    buffer in_l1 L1    1024 bytes at 0x0
    buffer acc   L0C    256 bytes at 0x0
    buffer ub    UB      64 bytes at 0x40
    left = f16 8x8 left in left
    l1   = f16 8x64 nz in in_l1 + 64, valid n x 8
    acc  = f32 8x8 acc in acc
    col  = f32 8x1 column in ub
    row  = f32 1x8 rows in ub
    for i in range(0, 4, 1):
        load l1 <- a[8 * i, 0], turned                        # a b.py:7
        set MTE2 -> MTE1, event i % 2
        wait MTE2 -> MTE1, event i % 2
        TEXTRACT left, l1, 0, 0
        barrier M
        TMATMUL<AccPhase> acc, left, left                     # a b.py:8
    TADDS row, col, 1.0
    let v = row[3]
    let n = 4 * i
    store c[0, 0] <- acc
    store d[0, 0] <- row, turned
"""


def test_a_listing_says_which_pipe_does_what_to_which_buffer() -> None:
    listing = read_listing(LISTING)
    assert {name: (one.space, one.size_bytes, one.address) for name, one in listing.buffers.items()} == {
        "left": ("L0A", 256, 256), "in_l1": ("L1", 1024, 0), "acc": ("L0C", 256, 0), "ub": ("UB", 64, 64)}
    assert [(step.text.split(" ")[0], step.depth, step.pipe, step.buffers, step.line) for step in listing.steps] == [
        ("for", 0, "", (), 0), ("load", 1, "MTE2", ("in_l1",), 7), ("set", 1, "", (), 0), ("wait", 1, "", (), 0),
        ("TEXTRACT", 1, "MTE1", ("left", "in_l1"), 0), ("barrier", 1, "", (), 0), ("TMATMUL<AccPhase>", 1, "M", ("acc", "left"), 8),
        ("TADDS", 0, "V", ("ub",), 0), ("let", 0, "S", ("ub",), 0), ("let", 0, "", (), 0), ("store", 0, "FIX", ("acc",), 0),
        ("store", 0, "MTE3", ("ub",), 0)]
    assert listing.steps[2].flag == ("set", "MTE2", "MTE1", "i % 2")


@pytest.mark.parametrize("text", ["", "x", "x\n\n  \n", "a program:\n    buffer\n    = in\n    set -> \n    store", "\n".join(HOSTILE)])
def test_a_listing_that_is_none_has_a_card(text: str) -> None:
    entry = DeviceKernelEntry(func_id=0, name="k", core_type="aiv", source="k.cpp", origin="nowhere", signature=(), scalars=(),
                              on_chip=(("UB", 64),))
    text_of(PackagedKernel("no such arch", entry, text, text)._repr_mimebundle_()["text/html"])


def test_what_a_loop_uses_lives_as_long_as_the_loop() -> None:
    entry = DeviceKernelEntry(func_id=0, name="k", core_type="aic", source="k.cpp", origin="a b.py:6", signature=(), scalars=(), on_chip=())
    part = part_of(packaged_kernel_card(PackagedKernel("ascend_910b", entry, "", LISTING)), InstructionsPart)
    lives = {life.name: (life.first, life.last) for life in part.lifetimes}
    assert lives == {"in_l1": (0, 3), "left": (0, 3), "acc": (0, 7), "ub": (4, 8)}
    assert [(flag.done, flag.wait, part.pipes[flag.after], part.pipes[flag.before]) for flag in part.flags] == [(1, 2, "MTE2", "MTE1")]
    assert [(barrier.row, part.pipes[barrier.pipe]) for barrier in part.barriers] == [(3, "M")]


def test_code_stops_where_it_does_not_agree_with_the_listing() -> None:
    steps = read_listing(LISTING).steps
    text = "void kernel_entry(int *args) {\n int x;\n TASSIGN(l1, 0);\n TLOAD(l1, a);\n set_flag(A, B, 0);\n TOTHER(x);\n}"
    found = code_of_steps(steps, text)
    assert len(found) == len(steps)
    assert found[:3] == (("", 0), ("TLOAD(l1, a);", 2), ("set_flag(A, B, 0);", 0)) and set(found[3:]) == {("", 0)}


# -- kernels of a package ----------------------------------------------------------------------------------------------
def test_a_kernel_ties_lines_listing_code_pipes_and_memory(package: Package) -> None:
    kernel_ = package.kernels["squared"]
    part = part_of(kernel_.card, InstructionsPart)
    names = [row.ir.split(" ")[0] for row in part.rows]
    assert names[0] == "load" and names[-1] == "store" and "TMUL" in names
    assert all(row.code.partition("(")[0] == {"load": "TLOAD", "store": "TSTORE"}.get(name, name)
               for row, name in zip(part.rows, names, strict=True))
    first = part.rows[names.index("TMUL")]
    assert part.pipes[first.pipe or 0] == "V"
    assert {row.source for row in part.rows} >= {"mean = pto.rowmean(x * x)", "pto.store(y, x * mean)"}
    listing = package.files["ir/kernels/squared.wsp"]
    assert len(part.flags) == listing.count("    set ") == listing.count("    wait ")
    assert len(part.barriers) == listing.count("    barrier ")
    (memory,) = part.memories
    assert (memory.name, memory.used_bytes) == kernel_.entry.on_chip[0] and memory.size_bytes == 188416
    assert {life.name for life in part.lifetimes} == {line.split()[1] for line in listing.splitlines() if line.startswith("    buffer ")}
    for one in part.lifetimes:
        for two in part.lifetimes:
            apart = one.address + one.size_bytes <= two.address or two.address + two.size_bytes <= one.address
            assert one is two or apart or one.last < two.first or two.last < one.first
    assert repr(kernel_).startswith("PackagedKernel(squared, aiv, from test_package_cards.py:")


def test_a_cube_kernel_uses_its_memories_and_pipes() -> None:
    card = both().compile(target="ascend_npu").package.kernels["product"].card
    part = part_of(card, InstructionsPart)
    assert [memory.name for memory in part.memories] == ["L1", "L0C", "L0A", "L0B"]
    assert set(part.pipes) == {"MTE2", "MTE1", "M", "FIX", "S"}
    assert "pipes, ordered by" in card.sentence


def test_a_saved_package_has_the_lines_without_their_text(made: Program, tmp_path: Path) -> None:
    saved = Package(made.save(tmp_path / "saved"))
    rows_ = part_of(saved.kernels["squared"].card, InstructionsPart).rows
    assert {row.source for row in rows_} == {""} and any(row.number for row in rows_)


# -- packages and files ------------------------------------------------------------------------------------------------
def test_a_package_lists_files_kernels_tasks_and_checks(package: Package) -> None:
    tables = {part.title: part for part in package.card.parts if isinstance(part, TablePart)}
    assert [row[0] for row in tables["Files"].rows] == list(package.files)
    assert {row[0]: int(row[2].replace(",", "")) for row in tables["Files"].rows} == {
        name: (package.root / name).stat().st_size for name in package.files}
    assert tables["Kernels"].rows[0][:4] == ("0", "squared", "aiv", "IN OUT")
    assert len(tables["Checks"].rows) + tables["Checks"].more == len(set(package.checks))
    assert "launch 0 squared[i]" in text_of(package._repr_mimebundle_()["text/html"])
    assert repr(package) == f"Package(rows for ascend_npu on ascend_910b: {len(package.files)} files)"


def test_the_cards_of_a_program_and_its_package_count_the_same_checks() -> None:
    """The same check of two calls counts once on both; the card names only what the package has."""
    @workload
    def twice() -> None:
        for i in P.seq(4):
            squared[i](X[16 * i:16 * i + 16], Y[16 * i:16 * i + 16])
            squared[i](X[16 * i:16 * i + 16], Y[16 * i:16 * i + 16])

    program = twice().compile()
    card, n = program.package.card, len(program.checks)
    proved = sum(finding.verdict.value == "proved" for finding in program.checks.findings)
    assert len(program.package.checks) > n
    assert card.sentence.startswith(f"{proved} of {n} checks proved")
    assert [len(part.rows) for part in card.parts if isinstance(part, TablePart) and part.title == "Checks"] == [n]
    assert card.foot == 'package.files["manifest.json"] shows a file, package.diff(other) what differs'


def test_a_program_that_is_a_package_is_not_said_to_run(made: Program) -> None:
    assert made.card.state == "not run here: .package shows it"
    assert 'package.files["README.md"]' in made.package.card.foot and 'package.kernels["name"]' in made.package.card.foot


def test_a_file_is_its_text_with_tones(made: Program) -> None:
    file = made.files["kernels/aiv/squared.cpp"]
    assert file == made.package.root.joinpath(file.path).read_text() and repr(file) == file
    part = part_of(file.card, CodePart)
    assert "\n".join("".join(run.text for run in line.runs) for line in part.lines) == file.rstrip("\n")
    assert {"comment", "key", "number"} <= {run.tone for line in part.lines for run in line.runs}
    with pytest.raises(PackageNameError, match=r"README\.md") as caught:
        made.files["nowhere"]
    assert isinstance(caught.value, KeyError) and caught.value.code == "C116"
    assert "nowhere" not in made.files and made.files.get("nowhere") is None


@pytest.mark.parametrize("asked, near", [("squard", "did you mean 'squared'?"), (3, None)])
def test_a_kernel_that_the_package_lacks_is_refused_with_the_nearest(made: Program, asked: object, near: str | None) -> None:
    with pytest.raises(PackageNameError, match="has no kernel") as caught:
        made.package.kernels[asked]   # type: ignore[index]
    assert caught.value.help == near and "test_package_cards.py" in str(caught.value.span)
    assert caught.value.expected == f"one of {', '.join(made.package.kernels)}"
    assert "squard" not in made.package.kernels and made.package.kernels.get("squard") is None


def test_files_that_are_no_text_say_their_size() -> None:
    library = rows().compile().package
    name = next(name for name in library.files if name.endswith((".so", ".dylib")))
    assert library.files[name] == f"{library.files[name].n_bytes:,} bytes that are no text"
    assert library.kernels == {} and len(library._repr_mimebundle_()["text/html"]) < 100_000


@pytest.mark.slow
def test_a_file_of_any_size_and_content_has_a_small_card() -> None:
    for data in (b"", b"\x1b[31mred\xff", b"x" * 10 ** 6, b"int x;\n" * 10 ** 5, "".join(HOSTILE).encode()):
        for path in ("a.cpp", "a.wsp", "a.json", "a"):
            html = FileText(path, data)._repr_mimebundle_()["text/html"]
            assert len(html) < 100_000
            text_of(html)
    assert "\x1b" not in FileText("a", b"\x1b[31mred")


# -- differences -------------------------------------------------------------------------------------------------------
def test_packages_differ_file_by_file(package: Package) -> None:
    other = both().compile(target="ascend_npu").package
    found = package.diff(other)
    how = {file.path: file.how for file in found.files}
    assert how["kernels/aic/product.cpp"] == f"only in {other.root}" and how["README.md"] == "differs"
    assert not any(path.startswith("ir/") for path in how)
    table = found.card.parts[0]
    assert isinstance(table, TablePart) and ("kernels/aic/product.cpp", "only in the second", "0", "0") in table.rows
    diffs = [part for part in found.card.parts if isinstance(part, DiffPart)]
    assert diffs and all(line[:1] in "+- @" for line in diffs[0].lines)
    assert len(found._repr_mimebundle_()["text/html"]) < 100_000 and len(repr(found)) <= 200


def test_a_package_does_not_differ_from_itself(package: Package) -> None:
    found = compare_packages(package, Package(package.root))
    assert not found and str(found) == "the packages are the same" == found.card.sentence.replace("The", "the").rstrip(".")


def test_what_is_no_package_is_an_error(tmp_path: Path, made: Program) -> None:
    for folder in (tmp_path, tmp_path / "none", 3):
        with pytest.raises(PtoError, match="C108"):
            Package(folder)  # type: ignore[arg-type]
    saved = made.save(tmp_path / "saved")
    saved.joinpath("golden.py").write_text("import os")
    with pytest.raises(PtoError, match="C103"):
        Package(saved)
    with pytest.raises(PtoError, match="R103"):
        rows().compile(target="interp").package  # noqa: B018
