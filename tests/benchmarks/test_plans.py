"""The ranking of plans by cost and by wall time runs and says what it is about; the times are not judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.plans import CASES, HOST, N_PLANS, plans_of, rank_correlation

ROOT = Path(__file__).resolve().parents[2]


def test_rank_correlation_is_that_of_spearman() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 40, 30]) == 0.8
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == -1
    assert rank_correlation([1, 1, 2], [5, 5, 9]) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_function_has_plans_that_differ(case) -> None:
    plans = plans_of(case)
    assert N_PLANS <= len(plans) <= N_PLANS + 1 and len({plan.digest for plan in plans}) == len(plans)
    assert plans[0] == case.function.plan(*case.arrays(), arch=HOST)


@pytest.mark.bench
@pytest.mark.slow
def test_a_function_has_a_row() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks.plans", "--only", "softmax", "--rounds", "1"], cwd=ROOT, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    name, n_plans, correlation, chosen, slowest = [part.strip() for part in done.stdout.splitlines()[-1].strip("|").split("|")]
    assert name == "softmax" and int(n_plans) >= N_PLANS and -1 <= float(correlation) <= 1 and float(slowest) >= float(chosen) >= 1
