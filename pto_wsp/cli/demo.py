"""The demo: a file with a workload that a user can edit, a run of it, two schedules compared, and a report."""

from __future__ import annotations

from pathlib import Path

from pto_wsp.api.program import Program
from pto_wsp.cli.programs import find_workload, load_file, refused
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.view.card import Card, LabelledValue, Part, Preformatted, TablePart, ValuesPart
from pto_wsp.view.run_cards import lanes_of

FILE, REPORT = "pto_wsp_demo.py", "pto_wsp_demo.html"
SOURCE = '''"""A batch of requests of different lengths: a task for each block of 16 tokens. Edit it, and run it again: `pto-wsp run`."""

import numpy as np

from pto_wsp import DispatchPolicy, DType, In, Out, P, Ragged, Tensor, Tile, kernel, pto, workload

BLOCKS = np.array([1, 1, 12, 1, 1, 2, 11, 1], np.int64)      # blocks of each request
N = len(BLOCKS)
X = Tensor(np.random.default_rng(0).standard_normal((N, 12, 16, 32)).astype(np.float32))
W = Tensor(np.eye(32, dtype=np.float32))
Y = Tensor(np.zeros((N, 12, 16, 32), np.float32))
blocks = Ragged(N, BLOCKS)


@kernel
def project(x: In[Tile[16, 32, DType.F32]], w: In[Tile[32, 32, DType.F32]], y: Out[Tile[16, 32, DType.F32]]):
    pto.store(y, pto.relu(x @ w))


@workload
def requests():
    for b in P(N):
        for i in P(blocks[b]):
            project[b, i](X[b, i], W, Y[b, i])


by_request = requests().dispatch(DispatchPolicy.affinity("b", 4))      # all blocks of a request on one executor
shared = requests().dispatch(DispatchPolicy.work_steal(4))             # whoever is free takes the next block

if __name__ == "__main__":
    program = by_request.compile().run()
    print(program.stats.card)
    print(program.simulate(shared).stats.card)
'''


def demonstrated(folder: Path) -> Card:
    """Write the demo's file and report into a folder and return the card of its runs.

    Raises: C108 for a file that is there already, or a folder that cannot be written.
    """
    file, page = folder / FILE, folder / REPORT
    there = next((path for path in (file, page) if path.exists() or path.is_symlink()), None)
    if there is not None:
        raise refused(f"{there} is there already, and is not overwritten", help="name an empty folder: pto-wsp demo FOLDER")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(file, "x", encoding="utf-8") as written:
            written.write(SOURCE)
    except OSError as problem:
        raise refused(f"{file} cannot be written", found=str(problem.strerror)) from None
    module = load_file(file)
    program = find_workload(module, file, "by_request").compile().run()
    shared = find_workload(module, file, "shared").schedule
    program.report(page)
    return _card(program, shared, file, page)


def _card(program: Program, other: Schedule, file: Path, page: Path) -> Card:
    """Return the card that compares a run with the same tasks under another schedule, on one scale."""
    ours, theirs = program.stats, program.simulate(other)
    cycles = {"by request": ours.total_cycles, "shared": theirs.total_cycles}
    most = max(cycles.values())
    rows = tuple((name, "█" * round(24 * n / most), f"{n:,}", f"{n / ours.lower_bound - 1:.0%}") for name, n in cycles.items())
    parts: tuple[Part, ...] = (
        ValuesPart(values=(LabelledValue(label="tasks", value=f"{ours.task_count}"), LabelledValue(label="executors", value="4"),
                           LabelledValue(label="run", value=f"{ours.execute_time_ms:.1f} ms"))),
        TablePart(title="Two schedules of the same tasks", head=("schedule", "", "cycles", "above bound"), rows=rows, right=(2, 3)),
        lanes_of(program.trace, most), lanes_of(theirs.trace, most),
        Preformatted(title="Next", text=f"pto-wsp run {_quoted(file)} --workload shared\n"
                                        f"pto-wsp tune {_quoted(file)} --workload by_request\n"
                                        f"open {_quoted(page)}"))
    return Card(title="Demo", subtitle=f"written to {file}, report in {page}", parts=parts,
                sentence=f"Idle executors that take the next block: {cycles['shared']:,} cycles instead of {cycles['by request']:,}, "
                         f"{cycles['shared'] / cycles['by request'] - 1:+.0%}.")


def _quoted(path: Path) -> str:
    return f"'{path}'" if " " in str(path) else str(path)
