"""Measure the report: seconds to write and to open it, bytes, frame times while panning, in headless Chromium with software rendering.

    python -m tests.benchmarks.report [TASKS …]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pto_wsp import DispatchPolicy, DType, In, Out, P, Program, TaskWindow, Tensor, Tile, WindowMode, kernel, pto, workload
from tests.view.browser import Browser, open_browser

F32 = DType.F32
_ROWS = 100

# Press a key a frame and return the times between frames in ms, of the whole run, of a tenth and of a few hundred tasks.
_PAN = """
const done = arguments[arguments.length - 1], [zooms, frames] = arguments, times = [];
const press = key => document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
for (let k = 0; k < zooms; k++) press('w');
let before = 0, k = 0;
const step = now => {
  if (before) times.push(now - before);
  before = now;
  if (k++ >= frames) { done(times.slice(5)); return; }
  press(k % 20 < 10 ? 'd' : 'a');
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


@dataclass(frozen=True)
class Measured:
    """A report: its tasks, bytes, seconds to write and to open, and frame times in ms by zoom: median and 95th percentile."""

    n_tasks: int
    n_bytes: int
    write_s: float
    open_s: float
    frames: tuple[tuple[int, float, float], ...]

    def __str__(self) -> str:
        pans = "; ".join(f"zoom {zoom}: {median:.1f} ms (95th {high:.1f}), {1000 / median:.0f} a second"
                         for zoom, median, high in self.frames)
        return (f"{self.n_tasks:,} tasks: {self.n_bytes / 1e6:.2f} MB, {self.n_bytes / self.n_tasks:.1f} bytes a task; written in "
                f"{self.write_s:.2f} s, opened in {self.open_s:.2f} s\n    panning, {pans}")


def program_of(n_tasks: int) -> Program:
    """Return a run of pairs of dependent tasks on 72 cores."""
    n = n_tasks // (2 * _ROWS)
    x, y, z = (Tensor(np.ones((_ROWS, n, 1, 8), np.float32)) for _ in range(3))

    @kernel
    def scale(x: In[Tile[1, 8, F32]], y: Out[Tile[1, 8, F32]]) -> None:
        pto.store(y, x * 2.0)

    @kernel
    def add(x: In[Tile[1, 8, F32]], z: Out[Tile[1, 8, F32]]) -> None:
        pto.store(z, x + 1.0)

    @workload
    def pairs() -> None:
        for b in P(_ROWS):
            for t in P(n):
                scale[b, t](x[b, t], y[b, t])
                add[b, t](y[b, t], z[b, t])

    return pairs().dispatch(DispatchPolicy.round_robin(72)).task_graph(
        window=TaskWindow(4096, "tasks", WindowMode.STALL)).compile().run()


def measure(browser: Browser, n_tasks: int, folder: Path, frames: int = 120) -> Measured:
    """Return what a report of so many tasks costs."""
    program = program_of(n_tasks)
    path = folder / f"{n_tasks}.html"
    begun = time.perf_counter()
    program.report(path)
    written = time.perf_counter() - begun
    begun = time.perf_counter()
    browser.open(path)
    opened = time.perf_counter() - begun
    found = []
    for zooms in (1, 6, 18):
        browser.press("f")
        times: Sequence[float] = browser.driver.execute_async_script(_PAN, zooms, frames)
        found.append((zooms, statistics.median(times), statistics.quantiles(times, n=20)[-1]))
    return Measured(len(program.trace), path.stat().st_size, written, opened, tuple(found))


def main(sizes: Sequence[int]) -> None:
    """Print the measurements."""
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        print(browser.name, flush=True)
        for n_tasks in sizes:
            print(measure(browser, n_tasks, Path(folder)), flush=True)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [10 ** 5, 10 ** 6])
