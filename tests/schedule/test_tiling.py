"""Tile plans: what entries by hand mean, how plans print, compare, are saved and read back."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

from pto_wsp import PtoError, Tunable
from pto_wsp.errors import PlanConflictError, PlanFileError, PlanFitError, PlanNameError, PlanUseError
from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, SymbolRef
from pto_wsp.ir.tensor_function import Apply, Array, ArrayParam, ArrayView, TensorFunction
from pto_wsp.schedule.tiling import GroupCost, Planner, TilePlan
from pto_wsp.schedule.tiling_entries import KEYS, PlanEntry, entries_of, match_of
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue, checked_entries, names_of

NAMES = FunctionNames(
    (NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
     NamedValue("normed.mean", ("t", "1"), (None, 1)), NamedValue("normed", ("t", "1"), (None, 4096)),
     NamedValue("out", ("t", "1"), (None, 6144)), NamedValue("out#2", ("t", "1"), (None, 6144))),
    symbols=("t",), loops=("j", "j#2"), tunables=("block",))


def choose(plan: TilePlan) -> TilePlan:
    """Choose as a compiler would: two groups; rows by 4 and 128 x 256."""
    bytes_of_ub = "8 needs 278,560 of 188,416 bytes of UB"
    for key, name, axis, value, reason in (
            ("groups", "normed", "", ("normed.mean", "normed"), ""), ("groups", "out", "", ("out",), ""),
            ("tiles", "normed", "t", 4, bytes_of_ub), ("tiles", "out", "t", 128, "best of 31; next t=64 1=256: +4%"),
            ("tiles", "out", "1", 256, "best of 31; next t=64 1=256: +4%"), ("inner", "out", "w:0", 64, ""),
            ("keep", "normed", "", "whole", ""), ("tails", "", "t", "short", ""), ("loops", "j", "", "kernel", "its state fits")):
        plan = plan.with_choice(key, name, axis, value, reason)
    rows = plan.said("tiles", "out", "t")
    assert rows is not None and isinstance(rows.value, int)
    return plan.with_cost(GroupCost("normed", ("mul", "rowmean", "sqrt", "div", "mul"), "vector", ("4096",), 256, 374772)).with_cost(
        GroupCost("out", ("matmul",), "cube", (), 192, 3000000 * 128 // rows.value))


PLANNER = Planner(NAMES, choose, reads_all=False)


@pytest.fixture(name="plan")
def made_plan() -> TilePlan:
    return TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim", (("t", 1024),)).used_with("rmsnorm_linear", PLANNER)


# -- printing ----------------------------------------------------------------------------------------------------------
def test_a_plan_prints_a_table_with_reasons(plan: TilePlan) -> None:
    assert str(plan) == """\
rmsnorm_linear on ascend_910b, t = symbol (planned for 1,024)
group   ops        core    tiles        inner       keep        cost
normed  mul … mul  vector  t=4          4096 whole  whole    374,772  chosen: 8 needs 278,560 of 188,416 bytes of UB
out     matmul     cube    t=128 1=256  w:0=64             3,000,000  chosen: best of 31; next t=64 1=256: +4%
loops  j: kernel  (its state fits)
tails  t: short last tile"""
    assert repr(plan) == "TilePlan(rmsnorm_linear on ascend_910b: 2 groups, 9 entries, 0 by hand)"


def test_entries_by_hand_are_marked(plan: TilePlan) -> None:
    text = str(plan.but(tiles={"out": {1: 1024}}, tails={"t": (64, 16, 4, 1)}))
    assert "out     matmul     cube    1=1024 t=128" in text and "1 by hand; chosen: best of 31" in text
    assert "tails  t: 64, 16, 4, 1  (by hand)" in text


def test_a_plan_that_says_nothing_prints() -> None:
    assert str(TilePlan("f", "unit", "interp")) == "f on unit"


# -- entries by hand ---------------------------------------------------------------------------------------------------
def test_hand_wins_and_the_rest_is_chosen_again(plan: TilePlan) -> None:
    mine = plan.but(tiles={"out": {"t": 64}})
    said = mine.said("tiles", "out", "t")
    assert said is not None and (said.value, said.by_hand) == (64, True)
    assert mine.said("tiles", "out", "1") == plan.said("tiles", "out", "1")
    assert mine.diff(plan).totals == (374772 + 6000000, 374772 + 3000000)


def test_entries_add_up_over_calls_and_the_last_wins(plan: TilePlan) -> None:
    mine = plan.but(tiles={"out": {1: 512}}).but(keep={"normed": "task"}).but(tiles={"out": {1: 1024}})
    assert mine.said("tiles", "out", "1").value == 1024 and mine.said("keep", "normed").value == "task"


def test_none_takes_an_entry_back(plan: TilePlan) -> None:
    assert plan.but(tiles={"out": {1: 512}}).but(tiles={"out": {1: None}}) == plan


@pytest.mark.parametrize(("given", "place", "value"), [
    ({"groups": {"all": ("normed", "out")}}, ("groups", "all", ""), ("normed", "out")),
    ({"tiles": {"out": {0: 64}}}, ("tiles", "out", "t"), 64),
    ({"tiles": {"out": {-1: 64}}}, ("tiles", "out", "1"), 64),
    ({"tiles": {"out": {"w:0": 64}}}, ("tiles", "out", "w:0"), 64),
    ({"tiles": {"out": {"x:0": 64}}}, ("tiles", "out", "t"), 64),
    ({"tiles": {"t": 64}}, ("tiles", "", "t"), 64),
    ({"inner": {"out": {"k": 32, "stay": "left"}}}, ("inner", "out", "k"), 32),
    ({"inner": {"out": {"stay": "left"}}}, ("inner", "out", "stay"), "left"),
    ({"batch": {"normed": 4}}, ("batch", "normed", ""), 4),
    ({"tails": {"t": [64, 16, 1]}}, ("tails", "", "t"), (64, 16, 1)),
    ({"tails": {"out": {1: "short"}}}, ("tails", "out", "1"), "short"),
    ({"split": {"out": 4}}, ("split", "out", ""), 4),
    ({"split": {"out": {"w:0": 4}}}, ("split", "out", "w:0"), 4),
    ({"loops": {"j": "tasks"}}, ("loops", "j", ""), "tasks"),
    ({"order": {"out": (1, 0)}}, ("order", "out", ""), ("1", "t")),
    ({"keep": {"normed": "again"}}, ("keep", "normed", ""), "again"),
    ({"flat": {"out": ("t",)}}, ("flat", "out", ""), ("t",)),
    ({"allow": "row_scale"}, ("allow", "", ""), ("row_scale",)),
    ({"allow": {"out": ("online_softmax", "row_scale")}}, ("allow", "out", ""), ("online_softmax", "row_scale")),
    ({"tunables": {"block": 256}}, ("tunables", "block", ""), 256),
])
def test_every_key_is_read(plan: TilePlan, given: dict, place: tuple, value: object) -> None:
    entry = next(entry for entry in plan.but(**given).entries if entry.place == place)
    assert (entry.value, entry.by_hand, entry.reason) == (value, True, "")
    assert place[0] in KEYS


def test_a_name_means_all_of_that_name_and_an_exact_one_wins(plan: TilePlan) -> None:
    mine = plan.but(tiles={"out": {1: 512}, "out#2": {1: 128}})
    assert [mine.said("tiles", name, "1").value for name in ("out", "out#2", "out#3")] == [512, 128, 512]
    assert plan.but(tiles={"out": {1: 512}}).said("tiles", "out#2", "1").value == 512
    assert plan.said("tiles", "out#2", "1") is None, "what the compiler chose is of one group"


def test_a_number_that_is_another_axis_of_a_later_value_is_refused() -> None:
    names = FunctionNames((NamedValue("y", ("t", "1"), (None, 8)), NamedValue("y#2", ("0", "1"), (512, 8))), symbols=("t",))
    with pytest.raises(PlanConflictError, match="axis 0 is `t` of `y` and `0` of `y#2`"):
        checked_entries((PlanEntry("tiles", "y", "0", 8),), names)
    for name, axis, spelled in (("y#2", "0", "0"), ("y", "t", "t"), ("y", "1", "1"), ("y", "-1", "1")):
        assert checked_entries((PlanEntry("tiles", name, axis, 8),), names)[0].axis == spelled


def test_an_entry_of_a_symbol_is_for_every_group(plan: TilePlan) -> None:
    mine = plan.but(tiles={"t": 32, "out": {"t": 64}})
    assert [mine.said("tiles", name, "t").value for name in ("normed", "out")] == [32, 64]


def test_other_names_of_a_place_are_found(plan: TilePlan) -> None:
    mine = plan.but(tiles={"normed.mean": {"t": 2}})
    assert mine.said("tiles", "normed", "t").value == 4
    assert replace_automatic(mine).said("tiles", "normed", "t", also=[("normed.mean", "t")]).value == 2


def replace_automatic(plan: TilePlan) -> TilePlan:
    return TilePlan(plan.function, plan.arch, plan.target, plan.sizes, tuple(entry for entry in plan.entries if entry.by_hand))


def test_counters_in_names() -> None:
    assert match_of("softmax.peak", "softmax#2.peak") == 0
    assert match_of("softmax#2.peak", "softmax#2.peak#3") == 1
    assert match_of("softmax#3.peak", "softmax#2.peak") == -1
    assert match_of("peak", "softmax.peak") == -1


@pytest.mark.parametrize(("given", "kind"), [
    ({"tiles": {"out": {1: 8192}}}, PlanFitError), ({"tiles": {"out": {1: Tunable(64, 8192)}}}, PlanFitError),
    ({"groups": {"a": ("normed",), "b": ("normed",)}}, PlanConflictError), ({"tails": {"t": (4, 4)}}, PlanConflictError),
    ({"order": {"out": (0, "t")}}, PlanConflictError), ({"tiles": {"out": {"x:5": 4}}}, PlanNameError),
    ({"tiles": {"out#3": {1: 4}}}, PlanNameError), ({"keep": {"x": "whole"}}, PlanNameError),
])
def test_what_matches_nothing_contradicts_or_is_too_long_is_refused(plan: TilePlan, given: dict, kind: type) -> None:
    with pytest.raises(kind):
        plan.but(**given)


@pytest.mark.parametrize("value", [0, -4, True, 1.5, "8", (8,), 1 << 60, [], {}, object(), b"8", float("nan")])
def test_a_tile_is_a_whole_number_from_one(plan: TilePlan, value: object) -> None:
    with pytest.raises(PtoError) as caught:
        plan.but(tiles={"out": {1: value}})
    assert caught.value.code == "J301" and Path(__file__).name in str(caught.value)


@pytest.mark.parametrize("given", [
    {"tiles": 4}, {"tiles": {3: {1: 4}}}, {"tiles": {"out": {None: 4}}}, {"tiles": {"": 4}}, {"groups": {"a": "normed"}},
    {"groups": {"a": ()}},
    {"inner": {"out": {"stay": "up"}}}, {"inner": {"out": 4}}, {"tails": {"t": "long"}}, {"tails": {"t": ()}}, {"loops": {"j": "both"}},
    {"order": {"out": 1}}, {"keep": {"out": 4}}, {"allow": 4}, {"allow": ("fast",)}, {"schedule": 1}, {"tunables": {"block": [4]}},
    {"batch": {"out": {1: 4}}}, {"tiles": {"out": {True: 4}}},
])
def test_values_of_other_kinds_are_refused(plan: TilePlan, given: dict) -> None:
    with pytest.raises(PtoError) as caught:
        plan.but(**given)
    assert caught.value.code == "J301"


# -- Tunable values ----------------------------------------------------------------------------------------------------
def test_a_call_takes_the_first_value_of_a_tunable(plan: TilePlan) -> None:
    mine = plan.but(tiles={"out": {"t": Tunable(64, 32)}})
    assert mine.said("tiles", "out", "t").value == 64
    assert mine.tunables == {("tiles", "out", "t"): Tunable(64, 32)}
    fixed = mine.with_values({("tiles", "out", "t"): 32})
    assert fixed.said("tiles", "out", "t").value == 32 and not fixed.tunables
    assert fixed == plan.but(tiles={"out": {"t": 32}})
    with pytest.raises(PtoError, match="J301"):
        mine.with_values({("tiles", "out", "t"): 16})


# -- differences -------------------------------------------------------------------------------------------------------
def test_a_difference_goes_entry_by_entry_with_costs(plan: TilePlan) -> None:
    mine = plan.but(tiles={"out": {"t": 64, 1: 512}}, batch={"normed": 4})
    assert str(mine.diff(plan)) == """\
tiles['out'][1]: 512, was 256
tiles['out']['t']: 64, was 128
batch['normed']: 4, was not said
cost of out: 6,000,000 cycles, was 3,000,000 cycles (+100%)
together: 6,374,772 cycles, was 3,374,772 (+89%)"""
    assert bool(mine.diff(plan)) and not plan.diff(plan) and str(plan.diff(plan)) == "the plans say the same"
    assert repr(mine.diff(plan)) == "TilePlanDifference(tiles['out'][1], tiles['out']['t'], batch['normed'])"


def test_plans_of_other_archs_and_sizes_differ(plan: TilePlan) -> None:
    other = TilePlan("rmsnorm_linear", "host_cpu", "cpu_sim", (("t", 4096),), plan.entries)
    assert other.diff(plan).rows == (("arch", "host_cpu", "ascend_910b"), ("size of t", "4096", "1024"))
    assert other.diff(plan).totals is None


# -- equality, digest, pickle --------------------------------------------------------------------------------------------
def test_equal_plans_say_the_same(plan: TilePlan) -> None:
    again = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim", (("t", 1024),)).used_with("rmsnorm_linear", PLANNER)
    assert again == plan and hash(again) == hash(plan) and again.digest == plan.digest
    assert plan.but(tiles={"out": {1: 256}}) == plan, "said by hand or chosen: it says the same"
    assert plan.but(tiles={"out": {1: 512}}) != plan and plan != "plan"


def test_a_plan_is_pickled_without_its_planner(plan: TilePlan) -> None:
    for made in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert made == plan and made.entries == plan.entries and made.costs == plan.costs and made.planner is None


# -- files -------------------------------------------------------------------------------------------------------------
def test_a_plan_comes_back_from_its_file(plan: TilePlan, tmp_path: Path) -> None:
    mine = plan.but(tiles={"out": {1: Tunable(1024, 512)}}, tails={"t": (64, 16, 1)}, allow="row_scale", tunables={"block": 0.5})
    file = mine.save(tmp_path / "plan.json")
    loaded = TilePlan.load(file)
    assert (loaded, loaded.entries, loaded.costs, loaded.planner) == (mine, mine.entries, mine.costs, None)
    assert loaded.save(tmp_path / "again.json").read_bytes() == file.read_bytes()
    assert loaded.used_with("rmsnorm_linear", PLANNER) == mine
    with pytest.raises(PlanUseError):
        loaded.used_with("softmax", PLANNER)


def test_a_loaded_plan_follows_what_was_chosen_then(plan: TilePlan, tmp_path: Path) -> None:
    loaded = TilePlan.load(plan.save(tmp_path / "plan.json"))
    other = Planner(NAMES, lambda chosen: chosen.with_choice("tiles", "normed", "t", 1, "").with_choice("order", "out", "", ("t",), ""),
                    reads_all=False)
    used = loaded.used_with("rmsnorm_linear", other)
    assert used.said("tiles", "normed", "t").value == 4 and used.said("order", "out").value == ("t",)


def test_a_loaded_plan_changes_before_it_has_a_function(plan: TilePlan, tmp_path: Path) -> None:
    loaded = TilePlan.load(plan.save(tmp_path / "plan.json")).but(tiles={"out": {1: 1024}, "nothing": {7: 4}})
    assert loaded.said("tiles", "out", "1").value == 1024 and loaded.said("tiles", "out", "t").value == 128
    with pytest.raises(PlanNameError, match="nothing"):
        loaded.used_with("rmsnorm_linear", PLANNER)


def _mutants() -> list[tuple[str, str]]:
    text = json.loads(_saved_text())
    mutants = [("", "no JSON"), ("[1, 2]", "no tile plan"), ("{}", "no tile plan"), ("[" * 100_000, "no JSON"), ("\x00", "no JSON"),
               ('{"format": "pto_wsp tile plan", "version": 2}', "another version"), (_saved_text()[:-40], "no JSON"),
               ('{"version": ' + "9" * 5000 + "}", "no JSON")]

    def changed(what: str, **fields: object) -> None:
        mutants.append((json.dumps({**text, **fields}), what))

    def changed_entry(what: str, **fields: object) -> None:
        changed(what, entries=[{**text["entries"][2], **fields}, *text["entries"][3:]])

    changed("version", version=True)
    changed("unknown field", extra=1)
    mutants.append((json.dumps({key: value for key, value in text.items() if key != "arch"}), "lacks arch"))
    changed("no text", function=4)
    changed("sizes", sizes={"t": 0})
    changed("sizes", sizes=[1])
    changed("no list", entries={})
    changed("no object", entries=[4])
    changed("twice", entries=[text["entries"][0]] * 2)
    changed_entry("unknown key", key="tile")
    changed_entry("no text", axis=1)
    changed_entry("does not take", value="many")
    changed_entry("does not take", value=True)
    changed_entry("does not take", value=[])
    changed_entry("no value", value=None)
    changed_entry("value that is none", value={"tunables": [1]})
    changed_entry("Tunable that is none", value={"tunable": [1, 1]})
    changed_entry("Tunable that is none", value={"tunable": [{"tunable": [1]}]})
    changed_entry("does not take", value={"tunable": ["x"]})
    changed_entry("by hand", by_hand=1)
    changed("no number", costs=[{**text["costs"][0], "cycles": "many"}])
    changed("no list of words", costs=[{**text["costs"][0], "ops": "exp"}])
    return mutants


def _saved_text() -> str:
    return (FOLDER / "plan.json").read_text()


FOLDER = Path(__file__).resolve().parent / "plans"


def test_a_saved_file_stays_as_it_is(plan: TilePlan, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text = plan.but(tiles={"out": {"t": Tunable(64, 32)}}).save(tmp_path / "plan.json").read_text()
    if request.config.getoption("--update"):
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / "plan.json").write_text(text)
    assert text == _saved_text()


@pytest.mark.parametrize(("text", "what"), _mutants() if FOLDER.exists() else [])
def test_a_changed_file_is_a_clear_error(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(PlanFileError) as caught:
        TilePlan.load(file)
    assert what in str(caught.value) and "J305" in str(caught.value)


def test_files_that_are_not_there_or_no_text(plan: TilePlan, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "bytes", 7, ""):
        with pytest.raises(PlanFileError):
            TilePlan.load(path)
    for path in (tmp_path / "no" / "folder.json", tmp_path, None):
        with pytest.raises(PlanFileError):
            plan.save(path)


# -- names of a function -----------------------------------------------------------------------------------------------
def test_names_are_those_of_the_function() -> None:
    t = SymbolRef("t", 0)
    x, y = Array(0, "x", (t, Const(64)), DType.F32), Array(1, "y", (t, Const(64)), DType.F32)
    body = flow.Sequence((flow.Do(Apply("exp", (ArrayView(x),), (y,), group="all")),))
    function = TensorFunction("f", (ArrayParam(x),), body, (ArrayView(y),), (t,))
    assert names_of(function, ("block",)) == FunctionNames(
        (NamedValue("x", ("t", "1"), (None, 64), given=True), NamedValue("y", ("t", "1"), (None, 64))), ("t",), (), ("all",), ("block",))


def test_an_axis_of_another_value_is_that_of_the_very_name() -> None:
    names = FunctionNames(tuple(NamedValue(name, ("0", "1"), (8, 8)) for name in ("w", "w#2", "out")))
    entries = entries_of({"inner": {"out": {"w:1": 4, "w#2:0": 2}}})
    assert [entry.axis for entry in checked_entries(entries, names)] == ["w:1", "w#2:0"]


def test_an_entry_reads_as_its_place_and_value() -> None:
    assert str(PlanEntry("tiles", "out", "1", Tunable(64, 32))) == "tiles['out'][1] = Tunable(64, 32)"
    assert str(PlanEntry("tails", "", "t", (64, 1))) == "tails['t'] = 64, 1"


def test_an_entry_that_no_pass_asks_for_is_refused(plan: TilePlan) -> None:
    strict = TilePlan("f", "unit", "interp").used_with("f", Planner(NAMES, choose))
    assert strict.but(tiles={"out": {1: 512}}).said("tiles", "out", "1").value == 512
    with pytest.raises(PlanNameError, match=r"batch\['out'\] = 4 changes nothing"):
        strict.but(batch={"out": 4})
    with pytest.raises(PlanNameError, match=r"tiles\['normed'\]\[1\] = 4 changes nothing"):
        strict.but(tiles={"normed": {1: 4}})
