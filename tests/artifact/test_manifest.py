"""The manifest: what it says of a program, and how it is checked."""

from __future__ import annotations

import hashlib

from pto_wsp.artifact.manifest import Manifest, read_manifest
from pto_wsp.schedule.schedule import Schedule
from tests.artifact.small_program import contents, small


def test_a_manifest_tells_what_the_artifact_is() -> None:
    program, _ = small()
    manifest = program.manifest
    assert isinstance(manifest, Manifest)
    assert (manifest.name, manifest.target, manifest.arch, manifest.library) == ("small_one", "cpu_sim", "unit", "libsmall_one.so")
    assert [(k.id, k.name, k.params) for k in manifest.kernels] == [(0, "scaled", ("x: In[Tile[2, 8, f32]]", "y: Out[Tile[2, 8, f32]]"))]
    assert [(t.name, t.dtype, t.shape, t.access) for t in manifest.tensors] == [("X", "f32", (4, 8), "in"), ("Y", "f32", (4, 8), "out")]
    assert Schedule.model_validate_json(manifest.schedule) == program.schedule


def test_it_lists_every_file_with_its_checksum() -> None:
    program, _ = small()
    assert program.artifact_dir is not None and isinstance(program.manifest, Manifest)
    found = {name: hashlib.sha256(data).hexdigest() for name, data in contents(program.artifact_dir).items() if name != "manifest.json"}
    assert dict(program.manifest.files) == found


def test_it_reads_back_as_it_was_written() -> None:
    program, _ = small()
    assert program.artifact_dir is not None
    assert read_manifest(program.artifact_dir, Manifest) == program.manifest


def test_its_digest_names_the_folder() -> None:
    program, _ = small()
    assert program.artifact_dir is not None and isinstance(program.manifest, Manifest)
    assert program.artifact_dir.name == f"small_one-{program.manifest.digest[:12]}"
