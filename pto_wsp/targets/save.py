"""`save`: an artifact leaves the cache, with what it needs where there is no cache and no source."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from pto_wsp.artifact.folders import open_folder
from pto_wsp.artifact.manifest import MANIFEST, Manifest, damaged, read_manifest
from pto_wsp.artifact.store import copy_artifact, writing_to
from pto_wsp.c.program import emit_program
from pto_wsp.ir.codec import to_data
from pto_wsp.ir.plan_text import plan_to_data
from pto_wsp.resources import csrc_dir
from pto_wsp.run.simulator import MAX_RECORDED_TASKS
from pto_wsp.targets.compiled import Compiled

PLAN = "plan.json"
PLAN_FORMAT = 1
_SOURCES = ("include", "src", "program")       # of csrc/: the headers, the library, what runs a program without Python


def save_compiled(compiled: Compiled, intermediates: Sequence[int], folder: Path) -> Path:
    """Write what was compiled to a folder that is new or empty, and return it. `intermediates`: tensor slots for results between tasks.

    A package for a device is copied as it is. A program for this machine gets its plan beside it, what builds it without pto_wsp, the
    sources of the library that it runs on (0.6 MB, which is why the cache's copy has none), and a manifest of all of it.
    Raises: R103 without an artifact; C103 when the cache's copy is damaged, C107 for a folder that is not empty or cannot be written.
    """
    root, manifest = compiled.to_save()
    try:
        opened = open_folder(root)
    except OSError as problem:
        raise damaged(root, MANIFEST, str(problem.strerror)) from None
    with opened:
        found = read_manifest(opened, type(manifest))     # read again: what is damaged is not passed on
        if found.digest != manifest.digest:
            raise damaged(root, MANIFEST, "it is that of another program, written there since")
        copy_artifact(opened, found, folder)
    if isinstance(manifest, Manifest):
        with writing_to(folder):
            (folder / PLAN).write_text(_plan_text(compiled, intermediates), encoding="utf-8")
            files = emit_program(compiled.plan, intermediates, portable=compiled.options.portable, max_tasks=MAX_RECORDED_TASKS)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
            if not (folder / "csrc").exists():      # what was loaded has the sources that it was saved with
                for part in _SOURCES:
                    shutil.copytree(csrc_dir() / part, folder / "csrc" / part)
            manifest.sealed(folder).write(folder)
    return folder


def _plan_text(compiled: Compiled, intermediates: Sequence[int]) -> str:
    """Return plan.json: what the process that compiled knew beside the manifest."""
    data = {"format_version": PLAN_FORMAT, "workload": to_data(compiled.workload), "plan": plan_to_data(compiled.plan),
            "unscheduled": plan_to_data(compiled.unscheduled), "arch": compiled.arch.model_dump(), "options": compiled.options.model_dump(),
            "intermediates": list(intermediates)}
    return json.dumps(data, separators=(",", ":"), sort_keys=True, allow_nan=False) + "\n"
