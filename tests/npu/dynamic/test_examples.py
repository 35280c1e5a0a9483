"""The examples whose tasks depend on data, as packages: in four orders they give what golden.py says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto_wsp import PtoError
from tests.npu.emit.golden.test_examples import mixture, paged_attention, pipelined_mlp
from tests.npu.harness import check_package

CASES = {"routed by the host": lambda: mixture("routed_by_host"), "routed by tasks": lambda: mixture("routed_by_tasks"),
         "paged attention": paged_attention, "pipelined mlp": pipelined_mlp}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_example_gives_its_golden_numbers(name: str) -> None:
    root = CASES[name]().compile(target="ascend_npu").artifact_dir
    assert isinstance(root, Path)
    check_package(root, "a2a3")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("family", "arch"), [("a2a3", "ascend_910b"), ("a5", "ascend_950")])
def test_an_example_runs_on_the_other_runtime_where_no_task_decides(name: str, family: str, arch: str) -> None:
    try:
        root = CASES[name]().compile(target="ascend_npu", arch=arch, options={"runtime": "host_build_graph"}).artifact_dir
    except PtoError as error:
        assert name == "routed by tasks" and "which tasks write" in error.message
        return
    assert isinstance(root, Path)
    check_package(root, family)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in CASES if name != "routed by tasks"])     # its topk has no form in the text
def test_a_pto_file_is_a_kernel_of_the_user(name: str) -> None:
    """Tasks that only wait for others, or make tensors, have no file: there are no tasks in them."""
    root = CASES[name]().compile(target="pto").artifact_dir
    assert isinstance(root, Path)
    names = {path.stem for path in root.glob("*.pto")}
    assert names and not names & {"join", "allocate"}
    assert all(":0:" not in path.read_text() for path in root.glob("*.pto"))
