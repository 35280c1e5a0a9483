"""One mistake a file: it must give exactly the error that stands in the comment at the file's end.

In kernels/ `mistake` is a kernel's function, which is traced; in workloads/ it is called; in builds/ it is called with a fresh cache
folder and a way to change the environment, and `CACHE` stands for that folder.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto_wsp.errors import PtoError
from pto_wsp.ir.dtype import DType
from pto_wsp.trace.kernel.definition import KernelDef
from tests.caches import with_runtime

FOLDER = Path(__file__).resolve().parent
FILES = sorted(path for path in FOLDER.rglob("*.py") if path != Path(__file__).resolve())


def error_of(path: Path, cache: Path, environment: pytest.MonkeyPatch) -> str:
    """Return what the file's `mistake` reports, with the bare name of the file for its path."""
    scope: dict[str, object] = {"__name__": path.stem}
    try:
        exec(compile(path.read_text(), str(path), "exec"), scope)
        mistake = scope["mistake"]
        assert callable(mistake)
        match path.relative_to(FOLDER).parts[0]:
            case "kernels":
                definition = KernelDef.from_function(mistake, scope)
                definition.trace({}, {p.name: DType.F32 for p in definition.params})
            case "builds":
                environment.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(cache)))
                mistake(cache, environment)
            case _:
                mistake()
    except PtoError as error:
        text = re.sub(rf"[^\s]*{re.escape(path.name)}", path.name, str(error))
        text = re.sub(r"building-\w+-failed", "building-…-failed", text.replace(str(cache), "CACHE"))
        return re.sub(r"-[0-9a-f]{12}\b", "-DIGEST", text)
    return "no error"


def expected_of(path: Path) -> str:
    """Return the comment at the end of a file."""
    lines = path.read_text().splitlines()
    start = max(number for number, line in enumerate(lines) if not line.startswith("#")) + 1
    return "\n".join(line[2:] for line in lines[start:])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())
def test_the_report_is_exactly(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert error_of(path, tmp_path, monkeypatch) == expected_of(path)
