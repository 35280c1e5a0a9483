"""Every example runs as a script, from another folder, and prints what it promises; bad input ends in a message, not in a traceback.

That each is a script is shown once, by a process of its own; what else it does is looked at in this process, which has all loaded.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# test_recipes.py and test_tensors.py run the others.
SCRIPTS = sorted(path for path in EXAMPLES.glob("*/*.py") if path.parent.name not in ("recipes", "tensors"))
# What makes a script small enough for a test; an example without an entry runs as it stands.
SMALL = {"ragged_attention": ("--requests", "5", "--heads", "2", "--block", "32", "--max-length", "150", "--workers", "3"),
         "paged_attention": ("--requests", "7", "--heads", "2", "--page", "8", "--max-pages", "5"),
         "schedule_search": ("--experts", "5", "--tokens", "512", "--budget", "25"),
         "moe": ("--tokens", "32", "--width", "16", "--hidden", "32")}
RAGGED = EXAMPLES / "ragged_attention" / "ragged_attention.py"
PAGED = EXAMPLES / "paged_attention" / "paged_attention.py"
MOE = EXAMPLES / "moe" / "moe.py"


@dataclass(frozen=True)
class Ended:
    """How a script ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(script: Path, folder: Path, *arguments: str) -> Ended:
    """Run a script in `folder`, in this process."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        patch.chdir(folder)
        patch.setattr(sys, "argv", [str(script), *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
    assert isinstance(ended.value.code, int)
    return Ended(ended.value.code, stdout.getvalue(), stderr.getvalue())


def output(script: Path, folder: Path, *arguments: str) -> str:
    """Return what a script prints when it ends well."""
    done = run(script, folder, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not complaints(done.stderr)
    return done.stdout


def complaints(stderr: str) -> list[str]:
    """Return the lines that say more than that another test builds what this one needs."""
    return [line for line in stderr.splitlines() if not line.startswith("pto_wsp: waiting for process ")]


def write_trace(folder: Path, rows: Sequence[tuple[int, int]], name: str = "trace.csv") -> Path:
    """Write a trace of (context, generated) token counts."""
    path = folder / name
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
        f"2023-11-16 18:15:{k:02}.0000000,{context},{generated}\n" for k, (context, generated) in enumerate(rows)))
    return path


def n_tasks(lengths: Sequence[int], heads: int, block: int) -> int:
    """Return how many blocks of queries there are."""
    return heads * sum(-(-length // block) for length in lengths)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_runs(script: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(script), *SMALL.get(script.stem, ())], cwd=tmp_path, text=True, capture_output=True,
                          timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not complaints(done.stderr)
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind where it runs"


def test_ragged_attention_takes_its_lengths_from_the_trace(tmp_path: Path) -> None:
    trace = write_trace(tmp_path, [(20, 13), (100, 1), (3, 1), (90, 90), (64, 0), (500, 500)])
    text = output(RAGGED, tmp_path, "--trace", str(trace), "--requests", "5", "--heads", "2", "--block", "32", "--workers", "3",
                  "--max-length", "128", "--target", "interp")
    assert "lengths: trace.csv, at most 128" in text
    assert f"3 requests, 4 to 101 tokens, 138 in all: {n_tasks([33, 101, 4], 2, 32)} tasks" in text
    assert f"2 requests, 64 to 128 tokens, 192 in all: {n_tasks([128, 64], 2, 32)} tasks" in text
    assert "both halves agree with NumPy" in text
    assert "Azure" not in text


@pytest.mark.slow
def test_ragged_attention_compares_two_schedules_on_one_scale(tmp_path: Path) -> None:
    text = output(RAGGED, tmp_path, *SMALL["ragged_attention"])
    cycles = re.search(r"^simulated cycles +([\d,]+) +([\d,]+)$", text, re.MULTILINE)
    bounds = re.search(r"^lower bound +([\d,]+) +([\d,]+)$", text, re.MULTILINE)
    assert cycles and bounds, text
    one, many = (int(figure.replace(",", "")) for figure in cycles.groups())
    one_bound, many_bound = (int(figure.replace(",", "")) for figure in bounds.groups())
    assert one == one_bound, "one worker is busy from the first cycle to the last"
    assert many_bound <= many < one
    assert one <= 3 * many, "three workers are at most three times as fast"
    assert f"{one / many:.2f}" in text
    assert text.count("executor ") == 1 + 3
    assert text.count(f"cycles {one}") == 2, "both timelines end at the same cycle"
    assert "one worker: dominated by work on the one executor" in text


@pytest.mark.slow
def test_ragged_attention_is_the_same_on_both_targets(tmp_path: Path) -> None:
    def figures(target: str) -> list[str]:
        text = output(RAGGED, tmp_path, *SMALL["ragged_attention"], "--target", target)
        return re.findall(r"[\d,]+ tasks|simulated cycles.*|.*simulated cycles|executor.*", text)

    assert figures("cpu_sim") == figures("interp") != []


def test_ragged_attention_names_the_owner_of_an_azure_trace(tmp_path: Path) -> None:
    trace = write_trace(tmp_path, [(20, 13), (30, 1)], "azure_llm_conv_2023.csv")
    text = output(RAGGED, tmp_path, *SMALL["ragged_attention"], "--trace", str(trace), "--target", "interp")
    assert "Microsoft Azure public dataset, LLM inference trace 2023, CC-BY 4.0" in text


@pytest.mark.slow
def test_ragged_attention_runs_on_the_recorded_trace(trace_dir: Path | None, tmp_path: Path) -> None:
    if trace_dir is None:
        pytest.skip("PTO_WSP_TRACES is not set")
    text = output(RAGGED, tmp_path, "--trace", str(trace_dir / "azure_llm_conv_2023.csv"), "--requests", "6", "--heads", "2",
                  "--block", "32", "--workers", "3")
    assert "3 requests, 418 to 934 tokens, 1,857 in all" in text
    assert "both halves agree with NumPy" in text


@pytest.mark.parametrize("content, message", [
    (None, "No such file or directory"),
    ("TIMESTAMP,ContextTokens\n1,2\n", "has no column GeneratedTokens; its columns: TIMESTAMP, ContextTokens"),
    ("", "has no column ContextTokens and GeneratedTokens"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "has no requests"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n", "has 1 request; at least two are needed"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n2,x,4\n",
     "line 3: ContextTokens and GeneratedTokens are whole numbers, not 'x' and '4'"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n2,4\n", "line 3: ContextTokens and GeneratedTokens are whole numbers"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,0,0\n", "line 2: a request has at least one token, not 0 + 0"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,-5,9\n", "line 2: a request has at least one token, not -5 + 9"),
])
def test_ragged_attention_says_what_is_wrong_with_a_trace(content: str | None, message: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    if content is not None:
        trace.write_text(content)
    done = run(RAGGED, tmp_path, "--trace", str(trace))
    assert done.returncode == 2
    assert message in done.stderr
    assert str(trace) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--requests", "--heads", "--workers", "--block", "--max-length"])
def test_ragged_attention_refuses_a_size_of_zero(option: str, tmp_path: Path) -> None:
    done = run(RAGGED, tmp_path, option, "0")
    assert done.returncode == 2
    assert f"{option} is at least" in done.stderr
    assert "Traceback" not in done.stderr


def write_pages(folder: Path, rows: Sequence[object]) -> Path:
    """Write a trace of page tables."""
    path = folder / "pages.jsonl"
    path.write_text("".join(f'{{"timestamp": 0, "hash_ids": {row}}}\n' for row in rows))
    return path


@pytest.mark.slow
def test_paged_attention_takes_its_tables_from_the_trace(tmp_path: Path) -> None:
    trace = write_pages(tmp_path, [[1, 2, 3], [1, 2], [1, 9, 10, 11], [4]])
    text = output(PAGED, tmp_path, "--trace", str(trace), "--heads", "2", "--page", "8", "--max-pages", "3")
    # two requests a half, a page of their own each: 4 + 3 pages read of 3 + 2, then 4 + 2 of 4 + 2, the third cut to 3 full pages;
    # tasks: an append, a begin and a finish for each request and head beside a meeting for each page
    assert "first half: 2 requests, 7 pages read of 5 in the cache, 26 tasks" in text
    assert "second half, same program: 2 requests, 6 pages read of 6 in the cache, 24 tasks" in text
    assert "proved: races on `K` (iterations of b and h touch different elements, given injective last)" in text
    assert "both halves agree with NumPy" in text
    assert "Mooncake" not in text


@pytest.mark.slow
def test_paged_attention_runs_on_the_recorded_trace(trace_dir: Path | None, tmp_path: Path) -> None:
    if trace_dir is None:
        pytest.skip("PTO_WSP_TRACES is not set")
    text = output(PAGED, tmp_path, "--trace", str(trace_dir / "mooncake_conversation_400.jsonl"), "--requests", "12", "--heads", "1",
                  "--page", "16")
    assert "trace: Mooncake, FAST'25 release, Apache-2.0" in text
    assert "both halves agree with NumPy" in text


@pytest.mark.parametrize("content, message", [
    (None, "No such file or directory"),
    ("", "has no requests"),
    ('{"hash_ids": [1]}\n', "has 1 request; at least two are needed"),
    ('{"hash_ids": [1]}\nnonsense\n', "line 2: a request is a JSON object with hash_ids, not 'nonsense'"),
    ('{"hash_ids": [1]}\n{"hash_ids": ["a"]}\n', "line 2: hash_ids is a list of whole numbers, not ['a']"),
    ('{"hash_ids": 4}\n{"hash_ids": [1]}\n', "line 1: hash_ids is a list of whole numbers, not 4"),
])
def test_paged_attention_says_what_is_wrong_with_a_trace(content: str | None, message: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    if content is not None:
        trace.write_text(content)
    done = run(PAGED, tmp_path, "--trace", str(trace))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_moe_says_what_waiting_for_the_routing_costs(tmp_path: Path) -> None:
    text = output(MOE, tmp_path, *SMALL["moe"])
    assert re.search(r"routed by the host: 64 tasks, .* no waits", text)
    assert re.search(r"routed by tasks: 66 tasks, .* [1-9]\d* DATA_READ_WAIT of [1-9][\d,]* cycles", text)


@pytest.mark.parametrize("arguments, message", [(("--tokens", "20"), "--tokens is a multiple of 16"),
                                                (("--experts", "1"), "--experts is at least 2")])
def test_moe_refuses_sizes_that_do_not_fit(arguments: Sequence[str], message: str, tmp_path: Path) -> None:
    done = run(MOE, tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
