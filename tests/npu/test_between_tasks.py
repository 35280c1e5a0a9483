"""Packages with intermediate tensors of the workload's own: on both families and runtimes they give what golden.py says, in any order that
their edges allow; without an edge, out of its scope, or made too small, they do not."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import Deps, DType, In, InOut, Out, P, Tensor, Tile, Workload, combine, kernel, pto, workload
from pto_wsp.artifact.manifest import PackageManifest
from tests.npu.harness import FAMILIES, Outcome, check_package
from tests.npu.package import RUNTIMES, load_package
from tests.npu.workloads import WORKLOADS, normal

F32, F16, I32 = DType.F32, DType.F16, DType.I32
ARCHES = dict(zip(FAMILIES, ("ascend_910b", "ascend_950"), strict=True))


@kernel
def move(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    """Double a tile."""
    pto.store(y, x * 2)


@kernel
def grow(x: InOut[Tile[16, 64, F32]]) -> None:
    """Add one in place."""
    pto.store(x, x + 1)


@kernel
def mix(a: In[Tile[16, 64, F32]], b: In[Tile[64, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    """A product on one core, a sum on another."""
    pto.store(y, a @ b + 1)


@kernel
def add_blocks(x: In[Tensor], y: Out[Tile[16, 64, F32]]) -> None:
    """Add up the blocks of a region, however many it has."""
    total = pto.alloc((16, 64), F32, init=0)
    for row in pto.range(0, x.shape[0], 16):
        total += pto.load(x, (row, 0), shape=(16, 64))
    pto.store(y, total)


@kernel
def narrow(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F16]]) -> None:
    """Convert a tile."""
    pto.store(y, pto.cast(x, F16))


@kernel
def widen(x: In[Tile[16, 64, F16]], y: Out[Tile[16, 64, F32]]) -> None:
    """Convert it back."""
    pto.store(y, pto.cast(x, F32))


@kernel
def rank(x: In[Tile[16, 64, F32]], order: Out[Tile[16, 64, I32]]) -> None:
    """Tell in which order the elements of each row come."""
    pto.store(order, pto.argsort(x))


@kernel
def pick(x: In[Tile[16, 64, F32]], order: In[Tile[16, 64, I32]], y: Out[Tile[16, 64, F32]]) -> None:
    """Put the elements of each row in that order."""
    pto.store(y, pto.gather(x, order))


def _given() -> tuple[Tensor, Tensor]:
    return Tensor(normal(4, 16, 64), name="X"), Tensor(np.zeros((4, 16, 64), np.float32), name="Y")


def two() -> Workload:
    """One tensor that is done with before another is made, of two dtypes."""
    X, Y = _given()
    first, second = Tensor.empty((4, 16, 64), F32, "first"), Tensor.empty((4, 16, 64), F16, "second")

    @workload
    def case() -> None:
        for i in P(4):
            move[i](X[i], first[i])
        for i in P(4):
            move[i](first[3 - i], Y[i])
        for i in P(4):
            narrow[i](Y[i], second[i])
        for i in P(4):
            widen[i](second[3 - i], X[i])
    return case()


def reused() -> Workload:
    """Written anew where it was read: who writes waits for who has read."""
    X, Y = _given()
    tmp = Tensor.empty((4, 16, 64), F32, "tmp")

    @workload
    def case() -> None:
        for i in P(4):
            move[i](X[i], tmp[i])
        for i in P(4):
            move[i](tmp[3 - i], Y[i])
        for i in P(4):
            move[i](Y[i], tmp[i])
        for i in P(4):
            move[i](tmp[3 - i], X[i])
    return case().task_graph(deps=Deps.infer_bytes_overlap())


def views() -> Workload:
    """Views of views, reshaped and strided; kernels with intermediates of theirs; sides; a handle that leaves the scope."""
    X, Y = _given()
    W = Tensor(normal(64, 64) / 8, name="W")
    tmp, sums = Tensor.empty((2, 2, 32, 64), F32, "tmp"), Tensor.empty((2, 16, 64), F32)

    @workload
    def left() -> None:
        for i, j in P(2, 2):
            mix[i, j](X[2 * i + j], W, tmp[i][j][0:16])
            grow[i, j](tmp[i, j, :16])

    @workload
    def right() -> None:
        for i, j in P(2, 2):
            move[i, j](X[2 * i + j], tmp[i].reshape(64, 64)[32 * j + 16:32 * (j + 1)])

    @workload
    def case() -> None:
        combine(left(), right())
        for i in P(2):
            made = add_blocks[i](tmp[i].reshape(64, 64), sums[i])
        for i in P(2):
            move[i](sums[1 - i], Y[i])
            move[i](tmp[i, 1, 1::2], Y[2 + i])
        for i in P(4):
            move[i](Y[i], X[i], after=made)
    return case()


def whole() -> Workload:
    """Made by the task that writes all of it: one that a kernel of two parts and a loop read, and is written again."""
    X, Y = _given()
    W = Tensor(normal(64, 64) / 8, name="W")
    tmp, other = Tensor.empty((16, 64), F32, "tmp"), Tensor.empty((1, 16, 64), F32, "other")

    @workload
    def case() -> None:
        made = move(X[0], tmp)
        mix(tmp, W, Y[0])
        for i in P(2):
            move[i](tmp, Y[1 + i])
        move(X[1], tmp, after=made)
        move(tmp, other[0])
        move(other[0], Y[3])
    return case()


def ranked() -> Workload:
    """Indices that one task makes for another: golden.py is given none."""
    X, Y = _given()
    order = Tensor.empty((4, 16, 64), I32, "order")

    @workload
    def case() -> None:
        for i in P(4):
            rank[i](X[i], order[i])
        for i in P(4):
            pick[i](X[3 - i], order[i], Y[i])
    return case()


CASES: dict[str, Callable[[], Workload]] = {
    "two": two, "reused": reused, "views": views, "whole": whole, "ranked": ranked,
    "split_k": WORKLOADS["matmul_split_k"]}


def package_of(name: str, family: str = "a2a3", runtime: str = RUNTIMES[0]) -> Path:
    """Return the package of a case."""
    root = CASES[name]().compile(target="ascend_npu", arch=ARCHES[family], options={"runtime": runtime}).artifact_dir
    assert root is not None
    return root


# In the fast tests one case in three has one of the families with one of the runtimes.
@pytest.mark.slow
@pytest.mark.parametrize(("name", "family", "runtime"), [
    pytest.param(name, family, runtime, marks=() if at == of == case % 2 and case % 3 == 0 else pytest.mark.slow)
    for case, name in enumerate(CASES) for at, family in enumerate(FAMILIES) for of, runtime in enumerate(RUNTIMES)])
def test_they_are_no_arguments_and_the_numbers_are_golden(name: str, family: str, runtime: str) -> None:
    root = package_of(name, family, runtime)
    package = load_package(root)
    assert len(package.signature) == {"two": 2, "reused": 2, "views": 3, "whole": 3, "ranked": 2, "split_k": 3}[name]
    assert set(package.outputs) <= {"X", "Y", "C"}
    check_package(root, family, runtime)


@pytest.mark.slow
def test_each_lives_in_a_scope_of_its_own() -> None:
    """The second is made when the first is gone: 16 KiB of f32 and never 8 more of f16."""
    assert check_package(package_of("two"), "a2a3").graph.most_bytes == 4 * 16 * 64 * 4


def _changed(root: Path, folder: Path, change: Callable[[str], str]) -> Outcome:
    copy = folder / "package"
    shutil.copytree(root, copy)
    (source,) = (copy / "orchestration").iterdir()
    source.chmod(0o644)
    text = change(source.read_text())
    assert text != source.read_text()
    source.write_text(text)
    return check_package(copy, "a2a3")


def _behind_its_users(text: str) -> str:
    """Close the first scope before the tensor that it has made is used."""
    text = text.replace("PTO_WSP_SCOPE {", "pto_wsp::Tensor early = X;\n    PTO_WSP_SCOPE {", 1)
    ends = "early = first_made.get_ref(0);\n    }\n    {\n        const pto_wsp::Tensor &first = early;"
    return text.replace("const pto_wsp::Tensor &first = first_made.get_ref(0);", ends, 1)


MUTANTS: list[tuple[str, Callable[[str], str], str]] = [
    ("two", lambda text: re.sub(r"( *const pto_wsp::Tensor &first = .*\n)([^}]*)", r"\2\1", text, count=1), "first.* was not declared"),
    ("two", lambda text: text.replace("first_shape[3] = {4, 16, 64}", "first_shape[3] = {2, 16, 64}"), "dimension 0"),
    ("two", lambda text: text.replace("second_shape, pto_wsp::dtype::f16", "second_shape, pto_wsp::dtype::i8"), "which is i8"),
    ("two", _behind_its_users, "scope_end"),
    ("reused", lambda text: re.sub(r".*wait_for\(task.*\n", "", text), "output `|nothing orders them"),
    ("whole", lambda text: text.replace("tmp_shape[2] = {16, 64}", "tmp_shape[2] = {16, 32}"), "output `|32|TSTORE|bytes|reaches"),
    ("views", lambda text: text.replace("sums_shape[3] = {2, 16, 64}", "sums_shape[3] = {2, 8, 128}"), "dimension"),
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name, change, problem", MUTANTS, ids=range(len(MUTANTS)))
def test_a_changed_package_is_caught(name: str, change: Callable[[str], str], problem: str, tmp_path: Path) -> None:
    """Made behind its first use, or too small, with a narrower dtype, gone too early, overwritten while it is read, in another shape."""
    with pytest.raises(AssertionError, match=problem):
        _changed(package_of(name), tmp_path, change)


def test_manifest_readme_and_pto_files_say_so() -> None:
    program = two().compile(target="ascend_npu")
    root, manifest = program.artifact_dir, program.manifest
    assert root is not None and isinstance(manifest, PackageManifest)
    assert [tensor.name for tensor in manifest.tensors] == ["X", "Y"]
    assert manifest.signature == ("INOUT", "INOUT")
    assert [kernel.name for kernel in manifest.kernels if kernel.name == "allocate"] == []
    assert "| 1 | `Y` |" in (root / "README.md").read_text() and "`first`" not in (root / "README.md").read_text()
    texts = two().compile(target="pto").artifact_dir
    assert texts is not None
    assert sorted(path.name for path in texts.glob("*.pto")) == ["move.pto", "narrow.pto", "widen.pto"]


@pytest.mark.slow
def test_a_workload_read_from_json_is_given_them() -> None:
    """It knows nothing of who made its tensors."""
    root = Workload.from_json(two().to_json()).compile(target="ascend_npu").artifact_dir
    assert root is not None
    assert len(load_package(root).signature) == 4
    check_package(root, "a2a3")
