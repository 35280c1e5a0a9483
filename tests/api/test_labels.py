"""A label is a part of a task's name wherever people read it, and of nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import (
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    PtoError,
    Scalar,
    Tensor,
    Tile,
    Workload,
    kernel,
    load,
    parallel_for,
    pto,
    task,
    workload,
)

F32, I64 = DType.F32, DType.I64
X, Y = (Tensor(np.zeros((8, 1, 4), np.float32), name=name) for name in "XY")


@kernel
def double(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x * 2)


def layers(first: str | None = "layer 0 q", second: str | None = "layer 1 q") -> Workload:
    @workload
    def model() -> None:
        for b in P(2):
            double[b](X[b], Y[b], label=first)
        double(X[4], Y[4], label=second)
    return model()


NAMES = ["double[b=0] (layer 0 q)", "double[b=1] (layer 0 q)", "double (layer 1 q)"]


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_label_is_in_the_names_of_tasks(target: str, tmp_path: Path) -> None:
    program = layers().compile(target=target).run()
    assert list(program.graph.tasks) == list(program.trace.names) == NAMES
    events = json.loads(program.trace.to_perfetto(tmp_path / "t.json").read_text())["traceEvents"]
    assert set(NAMES) <= {event.get("name") for event in events}
    assert [at.name for at in layers().tasks()] == NAMES


@pytest.mark.parametrize("wanted", ["double (layer 1 q)", "layer 1 q", 2])
def test_a_task_is_found_by_its_label(wanted: object) -> None:
    program = layers().compile(target="interp").run()
    assert str(program.explain(wanted)) == str(program.explain(2))  # type: ignore[arg-type]
    assert str(program.explain("double[b=1]")) == str(program.explain("double[b=1] (layer 0 q)")) == str(program.explain(1))
    with pytest.raises(PtoError, match="2 tasks"):
        program.explain("layer 0 q")
    with pytest.raises(PtoError, match="there is no task"):
        program.explain("layer 7")


def test_an_error_of_a_task_names_its_label() -> None:
    @kernel
    def piece(x: In[Tensor], n: Scalar[I64], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, pto.load(x, (n, 0), shape=(1, 4)))

    @workload
    def outside() -> None:
        for b in P(2):
            piece[b](X[b], 5, Y[b], label="layer 3 q")

    for target in "interp", "cpu_sim":
        with pytest.raises(PtoError, match=r"piece\[b=0\] \(layer 3 q\)"):
            outside().compile(target=target).run()


@pytest.mark.slow
def test_a_label_changes_no_result_and_no_cycle() -> None:
    plain, named = (layers(*labels).compile().run() for labels in ((None, None), ("a", "b")))
    assert plain.stats.total_cycles == named.stats.total_cycles and plain.graph.tasks[2] == "double"
    digests = {layers(*labels).compile(target="ascend_npu").artifact_dir for labels in ((None, None), ("a", "b"))}
    assert None not in digests
    assert layers(None, None).to_json().count("label") == parallel_for(8, lambda b: double[b](X[b], Y[b])).to_json().count("label")


def test_a_label_goes_through_json_and_a_saved_folder(tmp_path: Path) -> None:
    w = layers()
    again = Workload.from_json(w.to_json())
    assert again == w != layers(None, None) and str(again) == str(w) and "label='layer 1 q'" in str(w)
    w.compile().save(tmp_path / "saved")
    loaded = load(tmp_path / "saved").run(X=X.data, Y=Y.data)
    assert list(loaded.graph.tasks) == NAMES


def test_a_task_form_takes_a_label() -> None:
    assert [at.name for at in task(double, [3], [X[0], Y[0]], label="last").tasks()] == ["double[3] (last)"]


def test_a_parameter_called_label_keeps_its_argument() -> None:
    @kernel
    def pick(label: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, label + 1)

    program = parallel_for(2, lambda b: pick[b](label=X[b], y=Y[b])).compile(target="interp").run()
    assert list(program.graph.tasks) == ["pick[b=0]", "pick[b=1]"]


@pytest.mark.parametrize("label", [3, "", " ", "two\nlines", "x" * 201, b"q", ["q"]])
def test_what_is_no_label_is_refused(label: object) -> None:
    with pytest.raises(PtoError, match="label= is text") as caught:
        layers(first=label)  # type: ignore[arg-type]
    assert caught.value.code == "T205"


@pytest.mark.parametrize("label", ['3', '"two\\nlines"', 'null', '["q"]'])
def test_a_label_in_json_is_checked(label: str) -> None:
    with pytest.raises(PtoError) as caught:
        Workload.from_json(layers().to_json().replace('"layer 1 q"', label))
    assert caught.value.code == "W113"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("label", ['a "quote" and \\', "*/ %s {b}", "</script>", "näme ▸"])
def test_any_printable_text_is_a_label(label: str, tmp_path: Path) -> None:
    program = layers(second=label).dispatch(DispatchPolicy.round_robin(2)).compile().run()
    assert program.graph.tasks[2] == f"double ({label})"
    text = program.trace.to_perfetto(tmp_path / "t.json").read_text()
    assert f"double ({label})" in {event.get("name") for event in json.loads(text)["traceEvents"]}


def test_a_label_stands_beside_its_task_in_the_generated_c() -> None:
    plain, named = (_source(layers(*labels)) for labels in ((None, None), ("a */ b", "c")))
    assert "(a * / b)" in named and "double[] (c)" in named
    assert plain.count(" (") == named.count(" (") - 2


def _source(w: Workload) -> str:
    folder = w.compile().artifact_dir
    assert isinstance(folder, Path)
    return "".join(path.read_text() for path in sorted(folder.rglob("*.c")))
