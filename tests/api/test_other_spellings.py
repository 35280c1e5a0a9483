"""Spellings of PTO-WSP v9 are names of the same mechanisms: they give the workload, kernel, key or program of the usual spelling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pto_wsp
from pto_wsp import (
    Channel,
    Dense,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    PtoError,
    Ragged,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    builtin_arch,
    combine,
    connect,
    consume,
    for_each,
    kernel,
    parallel_for,
    process,
    pto,
    ptoisa,
    ptoisa_kernel,
    send,
    sequential,
    task,
    workload,
)
from pto_wsp.scalar_expr import symbol_u64

F32, I64 = DType.F32, DType.I64
X, T, Y = (Tensor(np.zeros((8, 1, 4), np.float32), name=name) for name in "XTY")


@kernel
def double(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def negate(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, -x)


@kernel
def put(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


def over(loop: Callable[[], object]) -> Workload:
    """Return the workload that doubles each row that the loop comes to."""
    @workload
    def walked() -> None:
        for b in loop():
            double[b](X[b], Y[b])
    return walked()


# -- loops and axes ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("spelled, usual", [
    (lambda: P.seq(8, name="k"), lambda: P.seq(8, names=("k",))),
    (lambda: P(8, name="k"), lambda: P(8, names=["k"])),
    (lambda: P(8, names="long_name"), lambda: P(8, names=("long_name",))),
    (lambda: P(Dense[8]), lambda: P(Dense[8]())),
    (lambda: P(Dense(8)), lambda: P(Dense[8]())),
    (lambda: P.grid(8), lambda: P(8)),
    (lambda: P.grid([8]), lambda: P(8)),
])
def test_a_loop_is_the_usual_one(spelled: Callable[[], object], usual: Callable[[], object]) -> None:
    assert str(over(spelled)) == str(over(usual)) and over(spelled).type == over(usual).type


def test_a_grid_is_a_loop_over_each_axis() -> None:
    def walked(grid: Callable[[], object]) -> str:
        @workload
        def tiles() -> None:
            for i, j in grid():  # type: ignore[attr-defined]
                double[i, j](X[i * 4 + j], Y[i * 4 + j])
        return str(tiles())

    assert walked(lambda: P.grid(2, 4)) == walked(lambda: P.grid((2, 4))) == walked(lambda: P(2, 4))


@pytest.mark.parametrize("names", ["", ["k", "l"], [3], ["not a name"], "k l"])
def test_names_that_are_none_are_refused(names: object) -> None:
    with pytest.raises(PtoError, match="one name an axis"):
        over(lambda: P(8, names=names))  # type: ignore[arg-type]


@pytest.mark.parametrize("lengths", [[3, 0, 1, 2], (3, 0, 1, 2), np.array([3, 0, 1, 2])])
def test_a_ragged_of_numbers_walks_its_rows(lengths: object) -> None:
    rows = Ragged(outer_size=4, lengths=lengths)  # type: ignore[call-arg]
    assert Ragged(4, lengths).first.extent == rows.first.extent == 4  # type: ignore[arg-type, union-attr]

    @workload
    def run() -> None:
        for b in P(4):
            for t in P.seq(rows[b]):
                double[b, t](X[t], Y[b])

    assert [len([at for at in run().tasks() if at.index[0] == b]) for b in range(4)] == [3, 0, 1, 2]


def test_a_sparse_of_lists_walks_its_columns() -> None:
    routing = Sparse(outer_size=3, indptr=[0, 2, 2, 3], indices=[1, 3, 0])  # type: ignore[call-arg]

    @workload
    def run() -> None:
        for b, e in P(routing):
            double[b, e](X[e], Y[b * 2 + e])

    assert [tuple(at.index) for at in run().tasks()] == [(0, 1), (0, 3), (2, 0)]


@pytest.mark.parametrize("given", [[1.5, 2], [[1], [2, 3]], ["a"], [1 << 80], [None]])
def test_a_list_that_holds_no_whole_numbers_is_refused(given: object) -> None:
    with pytest.raises(PtoError, match="as whole numbers") as caught:
        Ragged(2, given)  # type: ignore[arg-type]
    assert caught.value.code == "W106"


def test_a_list_is_copied_and_an_empty_one_has_no_rows() -> None:
    lengths = [1, 2]
    rows = Ragged(2, lengths)  # type: ignore[arg-type]
    lengths[0] = 9
    assert rows.lengths.data is not None and rows.lengths.data.tolist() == [1, 2]
    assert Ragged(0, []).lengths.ref.shape == (0,)  # type: ignore[arg-type]


def test_both_names_of_a_parameter_are_refused() -> None:
    with pytest.raises(PtoError, match="outer_size= and outer= are the same"):
        Ragged(outer=4, outer_size=4, lengths=[1, 1, 1, 1])  # type: ignore[call-arg, arg-type]


# -- pipelines ---------------------------------------------------------------------------------------------------------
def pipeline(produced: Callable[[Channel], object], consumed: Callable[[Channel], object]) -> str:
    ready = Channel("ready", 2)
    return str(connect([process("load").produces(ready).body(produced(ready)),  # type: ignore[arg-type]
                        process("store").consumes(ready).body(consumed(ready))], [ready]))  # type: ignore[arg-type]


def test_send_and_consume_outside_a_workload_are_those_inside() -> None:
    @workload
    def loading(ready: Channel) -> None:
        for i in P.seq(8):
            send(ready, double[i](X[i], T[i]))

    @workload
    def storing(ready: Channel) -> None:
        with consume(ready) as i:
            double[i](T[i], Y[i])

    def deferred(ready: Channel) -> Workload:
        return for_each(8, lambda i: send(ready, task(double, [i], [X[i], T[i]])))

    def taking(ready: Channel) -> Workload:
        made: Workload = consume(ready, lambda i: task(double, [i], [T[i], Y[i]]))
        return made

    assert pipeline(loading, storing) == pipeline(deferred, taking) == pipeline(deferred, storing)


@pytest.mark.parametrize("inside", [True, False])
def test_sends_are_combined_with_their_tasks(inside: bool) -> None:
    def two(ready: Channel) -> Workload:
        return sequential(send(ready, task(double, [1], [X[1], T[1]])), send(ready, task(negate, [0], [X[0], T[0]])))

    def statements(ready: Channel) -> Callable[[], None]:
        def body() -> None:
            send(ready, double[1](X[1], T[1]))
            send(ready, negate[0](X[0], T[0]))
        return body

    def end(ready: Channel) -> Workload:
        made: Workload = consume(ready, lambda i: task(double, [i], [T[i], Y[i]]))
        return made

    assert pipeline((lambda ready: lambda: two(ready)) if inside else two, end) == pipeline(statements, end)


def test_a_send_taken_elsewhere_takes_its_task_along() -> None:
    ready = Channel("ready", 4)

    @workload
    def sides() -> None:
        first = send(ready, task(double, [0], [X[0], T[0]]))
        second = task(negate, [1], [X[1], T[1]])
        combine(first, second)

    lines = [line.strip() for line in str(sides()).splitlines()]
    assert sum("double" in line for line in lines) == 1 and lines.index("task0 = double[0](x=X[0], y=T[0])") + 1 == lines.index(
        "send(ready, task0, 0)")


def test_numbers_are_sent_outside_a_workload() -> None:
    ready = Channel("ready", 4)
    source = process("numbers").produces(ready).body(sequential(send(ready, 3), send(ready, 1)))
    sink = process("rows").consumes(ready).body(consume(ready, lambda i: task(double, [i], [X[i], Y[i]])))
    program = connect([source, sink], [ready]).compile(target="interp").run()
    assert list(program.graph.tasks) == ["double[i=3]", "double[i=1]"]


def test_a_channel_is_asked_on_the_host() -> None:
    ready = Channel[int](depth=2)
    meeting = Channel("meeting", 0)
    assert (ready.name, ready.depth) == ("ready", 2)
    assert (ready.is_open(), ready.size(), ready.empty(), ready.full(), meeting.full()) == (True, 0, True, False, True)
    source = process("a").produces(ready).body(for_each(4, lambda i: send(ready, i)))
    sink = process("b").consumes(ready).body(consume(ready, lambda i: task(double, [i], [X[i], Y[i]])))
    program = connect([source, sink], [ready]).compile(target="interp")
    assert ready.is_open()
    program.run()
    assert not ready.is_open() and ready.empty() and meeting.is_open()


@pytest.mark.parametrize("ask", ["is_open", "size", "empty", "full"])
def test_a_channel_is_not_asked_in_a_workload(ask: str) -> None:
    @workload
    def asking() -> None:
        getattr(Channel("c"), ask)()

    with pytest.raises(PtoError, match="in a workload") as caught:
        asking()
    assert caught.value.code == "W109"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_the_latency_symbol_is_the_archs_number(target: str) -> None:
    ready = Channel("ready", 1)
    source = process("a").produces(ready).body(for_each(4, lambda i: send(ready, task(double, [i], [X[i], T[i]]))))
    sink = process("b").consumes(ready).body(consume(ready, lambda i: task(double, [i], [T[i], Y[i]])))
    w = connect([source, sink], [ready])
    slow = w.compile(target=target, arch=builtin_arch("unit").with_channels(latency_cycles=50)).run().stats.total_cycles
    program = w.compile(target=target).run()
    quick = program.stats.total_cycles
    program.set_symbol_u64("__pto_wsp_channel_latency_cycles", 50)
    assert program.run().stats.total_cycles == slow > quick
    program.set_symbol_u64("__pto_wsp_channel_latency_cycles", 0)
    assert program.run().stats.total_cycles == quick
    with pytest.raises(PtoError, match="latency_cycles"):
        program.set_symbol_u64("__pto_wsp_channel_latency_cycles", -1)


def test_a_loaded_program_keeps_its_latency(tmp_path: object) -> None:
    parallel_for(8, lambda b: double[b](X[b], Y[b])).compile().save(f"{tmp_path}/saved")
    with pytest.raises(PtoError, match="loaded program") as caught:
        pto_wsp.load(f"{tmp_path}/saved").set_symbol_u64("__pto_wsp_channel_latency_cycles", 5)
    assert caught.value.code == "R103"


# -- kernels -----------------------------------------------------------------------------------------------------------
def test_an_instruction_in_lower_case_is_its_declared_form() -> None:
    @ptoisa_kernel
    def norm(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        t = ptoisa.tload(x)
        total = ptoisa.trowsum(ptoisa.tmul(t, t))
        ptoisa.tadds(t, t, 1.0)
        ptoisa.tstore(y, ptoisa.tadds(ptoisa.trowexpanddiv(t, total), 1.0))

    def written() -> object:
        @ptoisa_kernel
        def norm(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
            t, squares, total = ptoisa.Tile(4, 8, F32), ptoisa.Tile(4, 8, F32), ptoisa.Tile(4, 1, F32)
            ptoisa.TLOAD(t, x)
            ptoisa.TMUL(squares, t, t)
            ptoisa.TROWSUM(total, squares)
            ptoisa.TADDS(t, t, 1.0)
            parts, more = ptoisa.Tile(4, 8, F32), ptoisa.Tile(4, 8, F32)
            ptoisa.TROWEXPANDDIV(parts, t, total)
            ptoisa.TADDS(more, parts, 1.0)
            ptoisa.TSTORE(y, more)
        return norm

    given = np.random.default_rng(3).random((4, 8), np.float32)
    expected = (given + 1) / np.sum(given * given, axis=1, keepdims=True) + 1
    assert np.allclose(norm.run(given), expected, rtol=1e-6)
    assert np.array_equal(norm.run(given), written().run(given))  # type: ignore[attr-defined]


ISA_MISTAKES = {
    "ptoisa.texpands(1.0)": "T101", "ptoisa.tcvt(ptoisa.tload(x))": "T101", "ptoisa.tadd(ptoisa.tload(x))": "T101",
    "ptoisa.texp(x)": "T208", "ptoisa.tnothing(x)": "T211", "ptoisa.tstore(ptoisa.tload(x), x)": "T208",
    "ptoisa.tadd(ptoisa.tload(x), 1.0)": "T208", "ptoisa.cpu_sim_add_cycles('64')": "T211", "ptoisa.Tload(x)": "T211",
}


@pytest.mark.parametrize("mistake", ISA_MISTAKES)
def test_a_mistake_in_lower_case_is_a_coded_error(mistake: str) -> None:
    @ptoisa_kernel
    def wrong(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        eval(mistake, {"ptoisa": ptoisa, "x": x})

    with pytest.raises(PtoError) as caught:
        wrong.run(np.zeros((4, 8), np.float32))
    assert caught.value.code == ISA_MISTAKES[mistake]


def test_an_instruction_outside_a_kernel_is_refused() -> None:
    with pytest.raises(PtoError, match="outside a kernel"):
        ptoisa.tload(3)


@pytest.mark.parametrize("cols", [7, 32, 64, 96])
@pytest.mark.parametrize("numbered", [True, False])
def test_the_steps_of_a_top_k_are_topk(cols: int, numbered: bool) -> None:
    @kernel
    def best(x: In[Tile[4, cols, F32]], found: Out[Tile[4, 5, DType.U32 if numbered else DType.I32]]) -> None:
        index = pto.iota_u32((4, cols)) if numbered else None
        pto.store(found, pto.extract_topk_indices(pto.tsort32(x, index), 5))

    given = np.random.default_rng(cols).integers(0, 9, (4, cols)).astype(np.float32)      # with equal elements
    assert np.array_equal(best.run(given), np.argsort(-given, axis=1, kind="stable")[:, :5])


def test_tsort32_orders_each_block() -> None:
    @kernel
    def blocks(x: In[Tile[2, 64, F32]], values: Out[Tile[2, 64, F32]], columns: Out[Tile[2, 64, DType.I32]]) -> None:
        ordered, found = pto.tsort32(x)
        pto.store(values, ordered)
        pto.store(columns, found)

    given = np.random.default_rng(1).random((2, 64), np.float32)
    values, columns = blocks.run(given)  # type: ignore[misc]
    assert np.array_equal(values, -np.sort(-given.reshape(2, 2, 32), axis=2).reshape(2, 64))
    assert np.array_equal(values, np.take_along_axis(given, columns, 1))


def test_tsort32_takes_whole_blocks() -> None:
    @kernel
    def wrong(x: In[Tile[2, 40, F32]], y: Out[Tile[2, 40, F32]]) -> None:
        pto.store(y, pto.tsort32(x)[0])

    with pytest.raises(PtoError, match="no whole blocks") as caught:
        wrong.run(np.zeros((2, 40), np.float32))
    assert caught.value.code == "T207"


# -- scalars -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize("n", [0, 5, -1, -(1 << 31) - 3, (1 << 40) + (1 << 31) + 5, (1 << 63) - 1])
def test_casts_are_those_of_numpy(target: str, n: int) -> None:
    big = Tensor(np.array([(1 << 63) + 6], np.uint64), name="big")
    out = Tensor(np.zeros((7, 1), np.int64), name="out")
    x = Symbol("x")

    @workload
    def casts() -> None:
        put(x.cast_i64(), out[0:1])
        put(x.cast_i32(), out[1:2])
        put(x.cast_u32(), out[2:3])
        put(x.cast_bool(), out[3:4])
        put((x > 3).cast_i64() + 1, out[4:5])
        put(big.item(0).cast_i64() // 2, out[5:6])
        put(big.item(0).cast_u64() // 2, out[6:7])

    casts().compile(target=target).run(x=n)
    whole = np.array([n], np.int64)
    expected = [n, int(whole.astype(np.int32)[0]), int(whole.astype(np.uint32)[0]), int(n != 0), int(n > 3) + 1,
                ((1 << 63) + 6 - (1 << 64)) // 2, ((1 << 63) + 6) // 2]
    assert out.data.ravel().tolist() == expected  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [lambda: Symbol("x", DType.F32).cast_i64(), lambda: Symbol("x").cast_u64(),
                                   lambda: Symbol("x", DType.F32).cast_bool().cast_f32(), lambda: (Symbol("x") / 2).cast_i32()])
def test_a_cast_without_a_meaning_is_refused(value: Callable[[], object]) -> None:
    with pytest.raises(PtoError) as caught:
        value()
    assert caught.value.code in ("T209", "T211")


def test_what_is_unsigned_stays_so() -> None:
    assert repr(symbol_u64("n").cast_u64()).count("n") == 1


# -- keys and programs -------------------------------------------------------------------------------------------------
BOTH = parallel_for(8, lambda b: (double[b](X[b], T[b]), negate[b](X[b], Y[b]))[1])


@pytest.mark.parametrize("key, usual", [
    ({double: 0, "negate": 1}, lambda t: (t.kernel == "negate").where(1, 0)),
    ({double: 1, None: 0}, lambda t: (t.kernel == double).where(1, 0)),
    ({"double": pto_wsp.axis("b"), None: 1}, lambda t: (t.kernel == double).where(t.b, 1)),
    (lambda t: t.tags["b"], lambda t: t.b), (lambda t: t.tags.get("c", 1), lambda t: t.get("c", 1)),
])
def test_a_key_is_the_usual_one(key: object, usual: object) -> None:
    def executors(of: object) -> list[int]:
        program = BOTH.dispatch(DispatchPolicy.affinity(of, 2)).compile(target="interp").run()  # type: ignore[arg-type]
        return list(map(int, program.trace.executor))

    assert executors(key) == executors(usual)


@pytest.mark.parametrize("key, says", [
    ({}, "is empty"), ({3: 1}, "no kernel's"), ({"double": "x"}, "no whole number"), ({"double": 1}, "no number for kernel `negate`"),
    ({"other": 1, None: 0}, "names the kernel `other`"), (lambda t: t.tags[3], "takes the name"), (lambda t: str(t.b), "str"),
    (lambda t: len(str(t.kernel)), "str"), (lambda t: hash(t.params), "hash"), (lambda t: id(t.b), "id"), (lambda t: hash(t), "hash"),
    (lambda t: len(f"{t}"), "format"), (lambda t: {1: 2}[t.b], "hash"),
])
def test_a_key_without_a_meaning_is_refused(key: object, says: str) -> None:
    with pytest.raises(PtoError, match=says) as caught:
        BOTH.dispatch(DispatchPolicy.affinity(key, 2)).compile(target="interp")  # type: ignore[arg-type]
    assert caught.value.code == "S103"


@pytest.mark.parametrize("name, runtime", [("pto_runtime_host_build_graph", "host_build_graph"),
                                           ("pto_runtime_tensormap_and_ringbuffer", "tensormap_and_ringbuffer")])
def test_a_target_by_its_runtime_is_the_package(name: str, runtime: str) -> None:
    w = parallel_for(8, lambda b: double[b](X[b], Y[b]))
    by_name, usual = w.compile(target=name), w.compile(target="ascend_npu", options={"runtime": runtime})
    assert by_name.artifact_dir == usual.artifact_dir is not None
    assert str(w.lower(name)) == str(w.lower("ascend_npu", options={"runtime": runtime}))
    with pytest.raises(PtoError, match="contradict"):
        w.compile(target=name, options={"runtime": "tensormap_and_ringbuffer" if "host" in name else "host_build_graph"})


def test_a_program_answers_by_other_names() -> None:
    w = parallel_for(8, lambda b: double[b](X[b], Y[b]))
    native, model = w.compile().run(), w.compile(target="interp").run()
    assert native.stats() == native.stats and (native.using_cpp_backend, model.using_cpp_backend) == (True, False)


def test_primitives_are_the_names_of_the_package() -> None:
    from pto_wsp import primitives

    assert all(getattr(primitives, name) is getattr(pto_wsp, name) for name in primitives.__all__)


def test_the_other_error_names_catch_every_error() -> None:
    with pytest.raises(pto_wsp.errors.TypeCheckError):
        Symbol(f"x_{id(X):015d}")
    assert pto_wsp.errors.LayoutIncompatibleError is PtoError


def test_a_kernel_by_its_name_is_refused() -> None:
    with pytest.raises(PtoError, match="task takes a kernel") as caught:
        task("double", [0], [X[0], Y[0]])  # type: ignore[arg-type]
    assert caught.value.help is not None and "@kernel" in caught.value.help
