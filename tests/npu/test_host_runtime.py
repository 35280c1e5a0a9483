"""The host runtime: which edges it infers, in which orders it runs, and which misuse of the submission interface it catches."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto_wsp.npu.isa.runtime import RUNTIME_RULES
from tests.npu.graph import Argument
from tests.npu.harness import ORDERS, RunFault, Target, build, check_package, run
from tests.npu.package import Direction, PackageFault, load_package
from tests.npu.small_packages import write_package

# Task 0 reads x, task 2 writes it: nobody but the emitter knows that task 2 must wait.
OVERWRITE = """\
const ChipTensor &z = a.tensor(2).ref();
const uint32_t shape[2] = {4, 8};
TensorCreateInfo info(shape, 2, DataType::FLOAT32);
PTO2_SCOPE() {
    CoreTaskArgs first;
    first.add_input(x);
    first.add_output(info);
    first.add_scalar(2.0f);
    const TaskOutputTensors made = rt_submit_aiv_task(0, first);
    scale(made.get_ref(0), y, 1.0f);
    CoreTaskArgs third;
    third.add_input(z);
    third.add_output(x);
    third.add_scalar(5.0f);
    const PTO2TaskId reader[1] = {made.task_id()};
    third.set_dependencies(reader, 1);
    rt_submit_aiv_task(0, third);
}
CoreTaskArgs fourth;
fourth.add_input(z);
fourth.add_inout(x);
fourth.add_scalar(0.5f);
rt_submit_aiv_task(0, fourth);"""


def overwrite(root: Path, body: str) -> Path:
    """Write a package of that body, with a third tensor z."""
    root = write_package(root, body, "y[:] = 2 * x\nx[:] = t['z'] * np.float32(0.5)", "_D.INOUT, _D.OUT, _D.IN", '["x", "y"]')
    golden = (root / "golden.py").read_text()
    (root / "golden.py").write_text(golden.replace('("case"', '("z", x[::-1].copy()), ("case"', 1))
    return root


@pytest.mark.slow
def test_edges_are_inferred_for_reads_and_writes_of_what_was_written(tmp_path: Path) -> None:
    """Task 1 reads what task 0 allocates, 3 writes over 2 as INOUT; the runtime adds no other edge but those that are named."""
    graph = check_package(overwrite(tmp_path, OVERWRITE), "a2a3").graph
    assert graph.edges("made") == graph.edges("found") - {(2, 3)} == {(0, 1)}
    assert graph.edges("found") == {(0, 1), (2, 3)}
    assert graph.edges("named") == {(0, 2)}
    assert graph.most_bytes == 4 * 8 * 4
    assert graph.tasks[1].arguments[0] == Argument(Direction.IN, 3, 4, 0, (4, 8), (8, 1))


@pytest.mark.slow
def test_write_after_read_is_not_inferred(tmp_path: Path) -> None:
    """Without the named edge, an order that the runtime may take overwrites x before it is read; program order shows nothing."""
    root = overwrite(tmp_path, OVERWRITE.replace("third.set_dependencies(reader, 1);", "(void)reader;"))
    package = load_package(root)
    tensors, scalars = package.inputs()
    in_order, last_first = run(package, build(package, Target("a2a3", package.runtime)), tensors, scalars, ORDERS[:2])
    assert (in_order.tensors["y"] == 2 * tensors["x"]).all()
    assert not (last_first.tensors["y"] == 2 * tensors["x"]).all()
    with pytest.raises(AssertionError, match="output `y`, order reversed 0"):
        check_package(root, "a2a3")
    assert list(in_order.graph.unordered_conflicts()) == [(0, 2, 0), (0, 3, 0)]


@pytest.mark.slow
def test_an_output_waits_for_no_earlier_writer(tmp_path: Path) -> None:
    """With OUT in place of INOUT nothing orders the last two tasks: one of the orders leaves what the first of them wrote."""
    root = overwrite(tmp_path, OVERWRITE.replace("fourth.add_inout(x);", "fourth.add_output(x);"))
    with pytest.raises(AssertionError, match="output `x`, order reversed 0"):
        check_package(root, "a2a3")


ALLOCATED = """\
const uint32_t shape[2] = {4, 8}, half[2] = {4, 4}, left[2] = {0, 0}, right[2] = {0, 4};
const TensorCreateInfo info(shape, 2, DataType::FLOAT32), other(half, 2, DataType::FLOAT32);
const TaskOutputTensors made = alloc_tensors(info, other);
const ChipTensor xl = x.view(half, left), xr = x.view(half, right);
const ChipTensor ml = made.get_ref(0).view(half, left), mr = made.get_ref(0).view(half, right);
const PTO2TaskId both[2] = {scale(xl, ml, 2.0f), scale(xr, mr, 3.0f)};
CoreTaskArgs waits;
waits.set_dependencies(both, 2);
const PTO2TaskId joined[1] = {rt_submit_dummy_task(waits).task_id()};
CoreTaskArgs last;
last.add_input(made.get_ref(0));
last.add_output(y);
last.add_scalar(1.0f);
last.set_dependencies(joined, 1);
rt_submit_aiv_task(0, last);"""


@pytest.mark.slow
def test_tasks_without_kernels_allocate_and_join(tmp_path: Path) -> None:
    """Tasks 1 and 2 write halves of what task 0 allocates, task 3 joins them, 4 reads both."""
    graph = check_package(write_package(tmp_path, ALLOCATED, "y[:, :4] = 2 * x[:, :4]\ny[:, 4:] = 3 * x[:, 4:]"), "a5",
                          "host_build_graph").graph
    assert [task.kernels for task in graph.tasks] == [(), (0,), (0,), (), (0,)]
    assert graph.edges("made") == {(0, 1), (0, 2), (0, 4)}
    assert graph.edges("found") == {(0, 4), (1, 4), (2, 4)}
    assert graph.edges("named") == {(1, 3), (2, 3), (3, 4)}


COVERED = """\
const uint32_t row[2] = {1, 8}, at[2][2] = {{0, 0}, {1, 0}};
for (int r = 0; r < 2; ++r) {
    const ChipTensor xv = x.view(row, at[r]), yv = y.view(row, at[r]);
    scale(xv, yv, 2.0f);
}
const ChipTensor first = y.view(row, at[0]);
CoreTaskArgs over;
over.add_inout(y);
over.add_inout(y);
over.add_scalar(1.0f);
rt_submit_aiv_task(0, over);
CoreTaskArgs last;
last.add_input(first);
last.add_output(x);
last.add_scalar(1.0f);
rt_submit_aiv_task(0, last);"""


@pytest.mark.slow
def test_an_inout_stands_for_what_it_covers(tmp_path: Path) -> None:
    """Task 2 covers what 0 and 1 have written: task 3 reads a part of it and waits for task 2 alone, and so for all."""
    root = write_package(tmp_path, COVERED)
    package = load_package(root)
    tensors, scalars = package.inputs()
    graph = run(package, build(package, Target("a5", "host_build_graph")), tensors, scalars, ORDERS[:1])[0].graph
    assert graph.edges("found") == {(0, 2), (1, 2), (2, 3)}


VIEWS = """\
// Columns of x and y in two halves, then rows of y in place: only tasks that share elements wait for each other.
for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t shape[2] = {4, 4}, at[2] = {0, half * 4};
    const ChipTensor xv = x.view(shape, at), yv = y.view(shape, at);
    scale(xv, yv, 2.0f, 3);
}
for (uint32_t row = 0; row < 4; row += 3) {
    const uint32_t shape[2] = {1, 4}, at[2] = {row, 4};
    const ChipTensor yv = y.view(shape, at);
    CoreTaskArgs args;
    args.add_inout(yv);
    args.add_output(yv);
    args.add_scalar(3.0f);
    rt_submit_aiv_task(0, args);
}
"""


@pytest.mark.slow
def test_overlap_of_views_is_exact(tmp_path: Path) -> None:
    """The halves interleave in memory and share nothing; a row of the right half waits for that half alone."""
    root = write_package(tmp_path, VIEWS, "y[:] = x * 2\ny[::3, 4:] *= 3")
    config = root / "kernel_config.py"
    config.write_text(config.read_text().replace('"signature": [_D.IN, _D.OUT]}]', '"signature": [_D.INOUT, _D.OUT]}]'))
    package = load_package(root)
    tensors, scalars = package.inputs()
    outcomes = run(package, build(package, Target("a5", "host_build_graph")), tensors, scalars)
    for outcome in outcomes:
        assert outcome.graph.edges() == {(1, 2), (1, 3)}
        assert (outcome.tensors["y"] == package.expected(tensors, scalars)["y"]).all()
        assert not list(outcome.graph.unordered_conflicts())
    assert [task.blocks for task in outcomes[0].graph.tasks] == [3, 3, 1, 1]
    with pytest.raises(PackageFault, match=r"kernel `scale` declares \[INOUT, OUT\], is given \[IN, OUT\]"):
        check_package(root, "a2a3")


@pytest.mark.slow
def test_an_element_is_read_when_its_writer_has_run(tmp_path: Path) -> None:
    """The second task is submitted as often as the element says that the first one wrote."""
    body = """\
const uint32_t index[2] = {1, 1};
scale(x, y, 0.1f * 3.0f);
const float turns = get_tensor_data<float>(y, 2, index);
for (int i = 0; i < static_cast<int>(turns); ++i) {
    CoreTaskArgs args;
    args.add_input(x);
    args.add_inout(y);
    args.add_scalar(static_cast<float>(i));
    rt_submit_aiv_task(0, args);
}"""
    root = write_package(tmp_path, body, "y[:] = x * np.float32(2)")   # y[1, 1] = 10 * 0.3: three turns
    outcome = check_package(root, "a2a3")
    assert len(outcome.graph.tasks) == 4
    with pytest.raises(RunFault, match=r"an element that task 0 writes: .* \[given_elements\]"):
        check_package(root, "a2a3", "host_build_graph")
    given = "const uint32_t index[2] = {0, 1};\nscale(x, y, get_tensor_data<float>(x, 2, index));"
    check_package(write_package(tmp_path / "given", given, "y[:] = x * np.float32(2)"), "a2a3", "host_build_graph")


@pytest.mark.slow
def test_the_launch_width_has_a_name_of_each_family(tmp_path: Path) -> None:
    """set_block_num is not there on a5."""
    body = "CoreTaskArgs args;\nargs.launch_spec.set_block_num(2);\nscale(x, y, 1.0f);"
    check_package(write_package(tmp_path, body), "a2a3")
    with pytest.raises(RunFault, match="set_block_num"):
        check_package(tmp_path, "a5")


MISUSE = """\
const uint32_t shape[2] = {4, 8}, at[2] = {0, 0}, zero[2] = {0, 0};
CoreTaskArgs args;
switch (a.scalar(0)) {
    case 0:
        scale(x, y, 1.0f);
        break;
    case 1: {
        {
            const ChipTensor part = x.view(shape, at);
            args.add_input(part);
        }
        args.add_output(y);
        rt_submit_aiv_task(0, args);
        break;
    }
    case 2: {
        ChipTensor part = x;
        args.add_input(part);
        part.start_offset += 8;
        rt_submit_aiv_task(0, args);
        break;
    }
    case 3:
        args.add_scalar(int64_t{1});
        args.add_input(x);
        break;
    case 4:
        for (int i = 0; i < 33; ++i) args.add_input(x);
        break;
    case 5:
        for (int i = 0; i < 17; ++i) args.add_scalar(1.0f);
        break;
    case 6: {
        const uint32_t outside[2] = {1, 0};
        (void)x.view(shape, outside);
        break;
    }
    case 7:
        rt_submit_aiv_task(1, args);
        break;
    case 8:
        rt_submit_aic_task(0, args);
        break;
    case 9: {
        TensorCreateInfo info(shape, 2, DataType::FLOAT32);
        args.add_output(info);
        args.add_output(y);
        ChipTensor kept = x;
        PTO2_SCOPE() {
            const TaskOutputTensors made = rt_submit_aiv_task(0, args);
            kept = made.get_ref(0);
        }
        scale(kept, y, 1.0f);
        break;
    }
    case 10: {
        const PTO2TaskId later[1] = {{0}};
        args.set_dependencies(later, 1);
        rt_submit_aiv_task(0, args);
        break;
    }
    case 11: {
        TensorCreateInfo info(zero, 2, DataType::FLOAT32);
        args.add_output(info);
        rt_submit_aiv_task(0, args);
        break;
    }
    case 12:
        scale(x, y, 1.0f, 0);
        break;
    case 13: {
        const uint32_t narrow[2] = {4, 4};
        (void)x.view(narrow, at).reshape(shape, 2);
        break;
    }
    case 14:
        (void)a.tensor(2);
        break;
    case 15: {
        ChipTensor other = x;
        other.buffer.addr += 4;
        scale(other, y, 1.0f);
        break;
    }
    case 16: {
        const PTO2TaskId made[1] = {scale(x, y, 1.0f)};
        args.set_dependencies(made, 0);
        break;
    }
    case 17: {
        const PTO2TaskId made[1] = {scale(x, y, 1.0f)};
        args.set_dependencies(made, 1);
        args.set_dependencies(made, 1);
        break;
    }
    case 18: {
        PTO2TaskId made[2] = {scale(x, y, 1.0f), {7}};
        args.set_dependencies(made, 1);
        made[0] = made[1];
        rt_submit_dummy_task(args);
        break;
    }
    case 19: {
        const TensorCreateInfo info(shape, 2, DataType::FLOAT32);
        const TaskOutputTensors made = alloc_tensors(info);
        (void)made.get_ref(1);
        break;
    }
    case 20: {
        struct Nest {
            static void open(int depth) {
                PTO2_SCOPE() {
                    if (depth > 1) open(depth - 1);
                }
            }
        };
        Nest::open(63);
        Nest::open(64);
        break;
    }
    case 21: {
        const uint32_t six[6] = {1, 1, 1, 1, 1, 32};
        (void)x.reshape(six, 6);
        break;
    }
}"""
TEXTS = {
    1: "task 0, tensor 0: its descriptor is gone [arguments_live]",
    2: "task 0, tensor 0: its descriptor has changed [arguments_live]",
    3: "tensor 0 [tensors_first]",
    4: "33 [tensors]",
    5: "17 [scalars]",
    6: "view: dimension 0: 1 + 4 in an extent of 4 [inside]",
    7: "task 0: no kernel 1",
    8: "task 0, kernel 0 [own_core]",
    9: "task 1, tensor 0: tensor 2 [scope_end]",
    10: "task 0 [dependencies_valid]",
    11: "task 0, tensor 0: it has none [not_empty]",
    12: "task 0 is launched with no block",
    13: "reshape: the elements are not contiguous",
    14: "tensor(2) of 2",
    15: "task 0, tensor 0: a descriptor of no known buffer",
    16: "0 [dependencies_some]",
    17: "1 more [dependencies_once]",
    18: "task 1 [dependencies_live]",
    19: "1 of 1 [get_ref_count]",
    20: "65 [scopes]",
    21: "reshape: 6 [dims]",
}


def short(said: str) -> str:
    """Return what was found and the name of the rule, without what the rule says."""
    for known in RUNTIME_RULES:
        said = said.replace(f": {known.says} [", " [")
    return said


@pytest.mark.slow
def test_misuse_of_the_interface_is_caught(tmp_path: Path) -> None:
    """Each case by its text; case 0 is none."""
    root = write_package(tmp_path, MISUSE)
    check_package(root, "a5", params={"case": 0})
    found = {}
    for case in TEXTS:
        with pytest.raises(RunFault) as caught:
            check_package(root, "a5", params={"case": case})
        found[case] = short(str(caught.value))
    assert found == TEXTS


@pytest.mark.slow
def test_outputs_are_not_copied_to_the_device(tmp_path: Path) -> None:
    """What nothing writes of an OUT tensor is not what the host had there."""
    body = "const uint32_t shape[2] = {3, 8}, at[2] = {0, 0};\nconst ChipTensor xv = x.view(shape, at), yv = y.view(shape, at);\n"
    body += "scale(xv, yv, 1.0f);"
    golden = "y[:3] = x[:3]"
    check_package(write_package(tmp_path / "inout", body, golden, "_D.IN, _D.INOUT"), "a5")
    with pytest.raises(AssertionError, match="output `y`"):
        check_package(write_package(tmp_path / "out", body, golden), "a5")


@pytest.mark.slow
def test_a_write_to_an_input_is_caught(tmp_path: Path) -> None:
    """By the elements that changed, and by the declaration."""
    root = write_package(tmp_path, "scale(y, x, 1.0f);", "y[:] = 0", "_D.IN, _D.INOUT")
    with pytest.raises(RunFault, match="input `x` was changed"):
        check_package(root, "a5")
    root = write_package(tmp_path, "scale(x, y, 1.0f);", "y[:] = x", "_D.IN, _D.IN")
    with pytest.raises(PackageFault, match="output `y` is declared IN"):
        check_package(root, "a5")
