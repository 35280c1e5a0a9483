"""Programs for the NPU: packages that are found again, saved, the same in any process, and that do not run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Program, PtoError, Tensor, Tile, Workload, ceildiv, kernel, pto, workload
from pto_wsp.artifact.manifest import PackageManifest, read_manifest

F32 = DType.F32


@kernel
def doubled(x: In[Tile[16, 32, F32]], y: Out[Tile[16, 32, F32]]):
    pto.store(y, x * 2)


def ragged(lengths: list[int], fill: float = 0.0) -> Workload:
    """Double the first rows of each matrix; how many is data."""
    x, y = Tensor(np.full((2, 64, 32), fill, np.float32), name="X"), Tensor(np.zeros((2, 64, 32), np.float32), name="Y")
    lens = Tensor(np.array(lengths, np.int32), name="lens")

    @workload
    def rows():
        for b in P(2):
            for i in P(ceildiv(lens[b], 16)):
                doubled[b, i](x[b, :lens[b]][i * 16:].clip(16, 32), y[b, :lens[b]][i * 16:].clip(16, 32))

    return rows()


def package(source: Workload, **options: object) -> Program:
    return source.compile(target="ascend_npu", **options)  # type: ignore[arg-type]


def test_a_package_is_found_again_and_data_that_steers_is_part_of_it() -> None:
    first, again = package(ragged([20, 5])), package(ragged([20, 5], fill=3.0))
    assert again.compiled.from_cache and again.artifact_dir == first.artifact_dir and again.checks == first.checks
    assert "proved: flag pairing" in " ".join(again.checks)
    other = package(ragged([20, 6]))
    assert not other.compiled.from_cache and other.artifact_dir != first.artifact_dir


@pytest.mark.parametrize("options", [{"arch": "ascend_950"}, {"dump": True}])
def test_what_a_package_is_made_for_is_part_of_it(options: dict[str, object]) -> None:
    plain, other = package(ragged([7, 7])), package(ragged([7, 7]), **options)
    assert plain.artifact_dir != other.artifact_dir


def test_the_manifest_lists_every_file_and_verifies() -> None:
    program = package(ragged([1, 64]))
    root = program.artifact_dir
    assert root is not None
    manifest = read_manifest(root, PackageManifest)
    assert manifest == program.manifest
    assert {path for path, _ in manifest.files} == {p.relative_to(root).as_posix() for p in root.rglob("*")
                                                    if p.is_file() and p.name != "manifest.json"}
    (entry,) = manifest.kernels
    assert (entry.func_id, entry.name, entry.core_type, entry.signature) == (0, "doubled", "aiv", ("IN", "OUT"))
    assert dict(entry.on_chip)["UB"] == 2 * 16 * 32 * 4 and manifest.signature == ("IN", "IN", "INOUT")


def test_a_package_does_not_run_here() -> None:
    program = package(ragged([3, 3]))
    for use in (program.run, program.execute, lambda: program.stats, lambda: program.trace, lambda: program.graph):
        with pytest.raises(PtoError, match="a program for target ascend_npu does not run in this process"):
            use()


def test_saving_copies_a_package_to_a_new_or_empty_folder(tmp_path: Path) -> None:
    program = package(ragged([3, 4]))
    assert program.save(tmp_path / "new") == tmp_path / "new"
    assert read_manifest(tmp_path / "new", PackageManifest) == program.manifest
    (tmp_path / "empty").mkdir()
    program.save(str(tmp_path / "empty"))
    with pytest.raises(PtoError, match="is not empty"):
        program.save(tmp_path / "new")
    with pytest.raises(PtoError, match="has no artifact to save"):
        ragged([3, 4]).compile(target="interp").save(tmp_path / "other")
    ragged([3, 4]).compile(target="cpu_sim").save(tmp_path / "library")
    assert (tmp_path / "library" / "src" / "kernels.c").is_file()


def test_elements_that_decide_what_tasks_do_must_be_there() -> None:
    source = Workload.from_json(ragged([3, 3]).to_json())
    with pytest.raises(PtoError, match=r"`lens` has no data, and golden\.py needs its elements"):
        package(source)


def test_pto_files_are_of_what_kernels_mean_in_python() -> None:
    @kernel(cpp_src="// nothing")
    def own(x: In[Tile[16, 32, F32]], y: Out[Tile[16, 32, F32]]):
        pto.store(y, x + 1)

    X, Y = Tensor(np.zeros((16, 32), np.float32)), Tensor(np.zeros((16, 32), np.float32))

    @workload
    def one():
        own[0](X, Y)

    texts, tree = one().compile(target="pto").artifact_dir, package(one()).artifact_dir
    assert texts is not None and tree is not None
    assert "pto.tadds" in (texts / "own.pto").read_text()
    assert "// nothing" in (tree / "kernels/aiv/own.cpp").read_text()


SCRIPT = '''
import numpy as np
from pto_wsp import *
F32 = DType.F32
@kernel
def part(x: In[Tile[16, 32, F32]], w: In[Tile[32, 32, F32]], y: Out[Tile[16, 32, F32]]):
    pto.store(y, pto.relu(x @ w) + x)
X, W, Y = (Tensor(np.zeros(shape, np.float32)) for shape in ((32, 32), (32, 32), (32, 32)))
@workload
def both():
    for i in P(2):
        part[i](X[i * 16:(i + 1) * 16], W, Y[i * 16:(i + 1) * 16])
for target in ("ascend_npu", "pto"):
    print(both().compile(target=target, dump=True).manifest.model_dump_json())
'''


@pytest.mark.slow
def test_a_package_is_the_same_in_any_process_and_folder(tmp_path: Path) -> None:
    found = []
    for seed, name in (("1", "one"), ("2", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(SCRIPT)
        done = subprocess.run([sys.executable, "model.py"], cwd=tmp_path / name, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONHASHSEED": seed, "PTO_WSP_CACHE_DIR": str(tmp_path / name / "cache")})
        assert done.returncode == 0, done.stderr
        found.append([json.loads(line) for line in done.stdout.splitlines()])
    assert found[0] == found[1] and len(found[0][0]["files"]) > 20
