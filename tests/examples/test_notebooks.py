"""Every notebook of examples/notebooks runs from top to bottom, and prints what is saved in it; `--update` saves what it prints now.

A notebook holds text outputs only: what a cell prints, and its last value as text. Cards and plots are made by whoever runs it.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def text_outputs(outputs: list[Any]) -> list[dict[str, Any]]:
    """Return the outputs of a cell that are text, as a notebook holds them: what it prints as one, then its last value."""
    printed = "".join(output["text"] for output in outputs if output["output_type"] == "stream" and output["name"] == "stdout")
    kept: list[dict[str, Any]] = [{"name": "stdout", "output_type": "stream", "text": printed}] if printed else []
    for output in outputs:
        if output["output_type"] == "execute_result" and "text/plain" in output["data"]:
            kept.append({"data": {"text/plain": output["data"]["text/plain"]}, "execution_count": None, "metadata": {},
                         "output_type": "execute_result"})
    return kept


def text_of(outputs: list[Any]) -> str:
    """Return the outputs of a cell as text."""
    parts = (output["text"] if "text" in output else output["data"]["text/plain"] for output in outputs)
    return "\n".join("".join(part).rstrip("\n") for part in parts)


def saved(path: Path) -> Any:
    """Return a notebook as it is in the repository."""
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_saved_in_it(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = [output["text"] for cell in notebook.cells for output in cell.get("outputs", ()) if output.get("name") == "stderr"]
    assert all(text.startswith("pto_wsp: waiting for process") for text in said), said       # another test builds the runtime
    cells = [text_outputs(cell.get("outputs", [])) for cell in notebook.cells]
    if request.config.getoption("--update"):
        for cell, outputs in zip(notebook.cells, cells, strict=True):
            cell.metadata = {}
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [nbformat.from_dict(output) for output in outputs], None
        notebook.metadata = {key: notebook.metadata[key] for key in ("kernelspec",)} | {"language_info": {"name": "python"}}
        nbformat.write(notebook, path)
    for cell, outputs in zip(saved(path)["cells"], cells, strict=True):
        kept, now = text_of(cell.get("outputs", [])).splitlines(), text_of(outputs).splitlines()
        assert kept == now, "\n".join(difflib.unified_diff(kept, now, "saved", "printed now", lineterm=""))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_holds_text_alone(path: Path) -> None:
    cells = saved(path)["cells"]
    assert path.stat().st_size < 40_000 and cells[0]["cell_type"] == "markdown" and cells[0]["source"][0].startswith("# ")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(set(output.get("data", {"text/plain": ""})) == {"text/plain"} for cell in code for output in cell["outputs"])
    assert any(cell["outputs"] for cell in code) and not any(cell["execution_count"] for cell in code)
    assert sum(cell["cell_type"] == "markdown" for cell in cells) >= 5


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 7
