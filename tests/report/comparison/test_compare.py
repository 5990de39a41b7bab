import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience
from support.sweeps import SETTINGS, Credits, evenly, make_run, rated

from pytest_tfgrpo.core.lessons import Library, Operation
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.comparison.compare_columns import LETTERS
from pytest_tfgrpo.report.comparison.compare_lines import compare_lines

Golden = Callable[[str, str], None]
IDS = [f"count-{i}" for i in range(25)] + [f"date-{i}" for i in range(15)]


def drawn(passed: float, seed: int) -> dict[str, Credits]:
    rng = random.Random(seed)
    return {i: [1.0 if rng.random() < passed else 0.0 for _ in range(5)] for i in IDS}


def run(final: Mapping[str, Credits], run_id: str = "run2", **changes: Any) -> Run:
    """Return a run with this final sweep; equal ids are equal tasks, in whatever order."""
    made = make_run(None, final, run_id=run_id, **changes)
    if "scenarios" in changes:
        return made
    return replace(made, scenarios=tuple(replace(s, stamp=f"stamp of {s.id}") for s in made.scenarios))


def at(temperature: float, of: Run) -> Run:
    result = of.phases[-1]
    return replace(of, phases=(replace(result, phase=replace(result.phase, temperature=temperature)),))


def learned(of: Run, *lessons: Any) -> Run:
    return replace(of, library=Library(hash="d" * 64, experiences=lessons))


def two() -> tuple[Run, Run]:
    """Return two runs that differ in whatever they can."""
    first = {**drawn(0.5, 1), "gone-1": [1], "broken": [None, None]}
    second = {**drawn(0.8, 2), "new-1": [0], "broken": [1, 1], "count-3": [1, None, None, 1, 0]}
    before, after = run(first, "run1"), run(second, settings={**SETTINGS, "seed": 7, "epochs": 5})
    old, new = make_experience(1, summary32="Count by hand."), make_experience(3, parents=("0" * 15 + "1",))
    before = learned(before, old, make_experience(2, polarity="avoid"))
    after = learned(after, new, make_experience(4, domain="dates", summary32="Ask for the year."))
    scenarios = tuple(replace(s, stamp="x") if s.id == "date-9" else s for s in after.scenarios)
    return before, replace(after, scenarios=scenarios, stamps={**after.stamps, "actor": "9" * 64})


@pytest.mark.parametrize(("name", "verbosity"), [("", 0), ("-quiet", -1), ("-verbose", 1)])
def test_two_runs_side_by_side_read_well(golden: Golden, name: str, verbosity: int) -> None:
    golden(f"versus{name}.txt", "\n".join(compare_lines(versus(*two()), verbosity=verbosity)) + "\n")


def three() -> dict[str, Any]:
    """Return a run beside which one is better, and of another nothing can be said."""
    before, after = two()
    return versus(before, after, [run({**drawn(0.55, 3), "gone-1": [1]}, "run3")])


def test_several_runs_are_columns_and_each_is_compared_with_the_first(golden: Golden) -> None:
    golden("versus-several.txt", "\n".join(compare_lines(three())) + "\n")


@pytest.mark.parametrize("value", [versus(*two()), three()])
def test_the_value_fits_its_schema_and_is_plain_json(value: dict[str, Any]) -> None:
    assert violations("versus", value) == []
    assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_a_difference_is_paired_by_scenario_and_claimed_only_with_evidence() -> None:
    value = versus(run(evenly(40, [0, 1]), "run1"), run(evenly(40, [1, 1])))
    assert (value["difference"]["n"], value["difference"]["difference"]) == (40, 0.5)
    assert value["claim"] == "better"
    assert versus(run(evenly(40, [1, 1]), "run1"), run(evenly(40, [0, 1])))["claim"] == "worse"
    one_gained = {**evenly(40, [1, 0]), "s3": [1, 1]}
    assert versus(run(evenly(40, [1, 0]), "run1"), run(one_gained))["claim"] is None


def passed(of: Mapping[str, Credits], ids: Sequence[str]) -> dict[str, Credits]:
    return {**of, **{id_: [1, 1] for id_ in ids}}


def test_several_comparisons_are_corrected_for_their_number() -> None:
    # six of 40 scenarios gained: p = 2 / 2^6 = 0.031 alone, and 0.0625 after Holm's correction for two
    nothing = evenly(40, [0, 0])
    before, after = run(nothing, "run1"), run(passed(nothing, [f"s{i}" for i in range(6)]))
    other = run(passed(nothing, [f"s{i}" for i in range(10, 16)]), "run3")
    alone = versus(before, after)
    assert (alone["claim"], alone["difference"]["p"]) == ("better", pytest.approx(2 / 2**6, abs=0.003))
    assert alone["difference"]["p_adjusted"] == alone["difference"]["p"]
    both = versus(before, after, [other])
    assert [one["claim"] for one in (both, *both["further"])] == [None, None]
    assert both["difference"]["p_adjusted"] == pytest.approx(2 * 2 / 2**6, abs=0.006)
    assert both["comparisons"] == 2
    shown = [" ".join(" ".join(compare_lines(value, verbosity=-1)).split()) for value in (alone, both)]
    assert [text.count("p 0.03") for text in shown] == [1, 0]
    assert [text.count("p 0.06") for text in shown] == [0, 2]


def test_an_open_comparison_says_how_many_scenarios_would_settle_it() -> None:
    before, after = run(drawn(0.5, 1), "run1"), run(drawn(0.55, 3))
    value = versus(before, after)
    assert (value["claim"], value["obstacles"]) == (None, [])
    needed = value["settling"]["scenarios"]
    assert needed > 40
    shown = " ".join(" ".join(compare_lines(value, verbosity=-1)).split())
    assert f"to settle it, about {needed} eval scenarios x 5 rollouts" in shown
    stricter = versus(before, after, [run(drawn(0.5, 4), "run3")])["settling"]["scenarios"]
    assert stricter > needed


def test_runs_that_score_alike_need_no_more_scenarios_than_show_that_they_are_equal() -> None:
    few = versus(run(drawn(0.5, 1), "run1"), run(drawn(0.5, 1)))
    assert (few["equal_within"], few["settling"]["scenarios"]) == (None, 72)
    many = evenly(72, [1, 0])
    value = versus(run(many, "run1"), run(many))
    assert (value["claim"], value["equal_within"], value["settling"]) == (None, 0.05, None)
    assert violations("versus", value) == []
    shown = " ".join(" ".join(compare_lines(value, verbosity=-1)).split())
    assert shown.startswith(
        "result A and B are equal within 0.05: +0.000 (from 0.500 to 0.500), 95 % interval"
    )
    assert "settle" not in shown
    assert "found in 4 of 5" not in shown


def test_equal_within_holds_for_the_smaller_margin_of_both_and_for_each_of_several_comparisons() -> None:
    before, near = (run(evenly(72, [1, 0]), name) for name in ("run1", "run2"))
    narrow = replace(near, settings={**near.settings, "gate_margin": 0.04})
    assert versus(before, narrow)["equal_within"] is None
    assert versus(narrow, before)["equal_within"] is None
    further = [replace(near, run_id=f"run{n}") for n in range(3, 6)]
    assert versus(before, near, further)["equal_within"] is None


@pytest.mark.parametrize("seeds", [(1, 3), (3, 1)])
def test_the_number_that_settles_a_small_difference_is_the_same_in_both_directions(
    seeds: tuple[int, int],
) -> None:
    before, after = (run(drawn(0.5, seed), f"run{seed}") for seed in seeds)
    value = versus(before, after)
    size = abs(value["difference"]["difference"])
    assert 0.02 < size < 0.03
    assert value["settling"]["scenarios"] < 2_000


def test_a_claim_needs_nothing_that_settles_it() -> None:
    assert versus(*two())["settling"] is None


def test_metrics_are_paired_by_scenario_in_one_order_for_every_run() -> None:
    runs = [run(evenly(12, [1, 0]), f"run{n}") for n in range(3)]
    before, after = (rated(one, evenly(12, [share])) for one, share in zip(runs, (0.25, 0.75), strict=False))
    value = versus(before, after, [rated(runs[2], evenly(12, [1.0]), "zeal")])
    metrics = {row["name"]: row for row in value["metrics"]}
    polite = metrics["politeness"]
    assert (polite["n"], polite["before"], polite["after"]) == (12, 0.25, 0.75)
    assert polite["difference"] == 0.5
    assert polite["ci95"][0] > 0
    about = {"name": "gt_score", "unit": "", "better": "higher"}
    assert {**value["difference"], **about}.items() >= metrics["gt_score"].items()
    assert (metrics["zeal"]["n"], metrics["zeal"]["difference"]) == (0, None)
    names = ["gt_score", "reward", "politeness", "zeal", "check.exact"]
    assert [row["name"] for row in value["metrics"]] == names
    assert [row["name"] for row in value["further"][0]["metrics"]] == names
    assert violations("versus", value) == []
    assert any("politeness" in line for line in compare_lines(versus(before, after)))


def test_both_readings_of_errors_must_bear_a_claim_out() -> None:
    answered = run(evenly(40, [0, 0, 0, 1]), "run1")
    mostly_errors = run(evenly(40, [1, None, None, None]))
    value = versus(answered, mostly_errors)
    assert value["difference"]["difference"] == 0.75
    assert value["difference"]["errors_as_zero"]["difference"] == 0.0
    assert value["claim"] is None
    assert value["after"]["final"]["mean"] == 1.0
    assert value["after"]["final"]["mean_errors_as_zero"] == 0.25
    assert versus(answered, answered)["difference"]["errors_as_zero"] is None


def test_what_is_lost_and_gained_is_listed_largest_first() -> None:
    before = {**evenly(12, [1, 1]), "s3": [0, 0], "s4": [0, 1]}
    after = {**evenly(12, [1, 1]), "s7": [0, 0], "s8": [0, 1], "s9": [0, 1]}
    value = versus(run(before, "run1"), run(after))
    assert [row["scenario"] for row in value["regressions"]] == ["s7", "s8", "s9"]
    assert [row["scenario"] for row in value["gains"]] == ["s3", "s4"]
    assert len(value["scenarios"]) == 12


def test_scenarios_that_are_not_compared_are_named_with_why() -> None:
    assert versus(*two())["apart"] == {
        "before": ["gone-1"],
        "after": ["new-1"],
        "changed": ["date-9"],
        "unscored": ["broken"],
    }


WIN = evenly(40, [0, 0]), evenly(40, [1, 1])


def obstacles(before: Run, after: Run) -> list[str]:
    value = versus(before, after)
    assert value["claim"] is None
    assert all(row["claim"] is None for row in value["domains"])
    shown = " ".join(" ".join(compare_lines(value, verbosity=-1)).split())
    assert shown.startswith(
        "result not sure whether B is better or worse than A: " + "; ".join(value["obstacles"])
    )
    assert value["settling"] is None
    return list(value["obstacles"])


def test_unequal_temperatures_bar_any_claim() -> None:
    before, after = run(WIN[0], "run1"), run(WIN[1])
    assert versus(before, after)["claim"] == "better"
    assert obstacles(at(0.3, before), at(0.9, after)) == [
        "the temperatures of the final sweeps differ: 0.3 and 0.9"
    ]


def test_a_run_is_not_compared_with_itself() -> None:
    assert obstacles(run(WIN[0]), run(WIN[0])) == [
        "both are the same run; compare another one, which `tfgrpo runs` lists"
    ]


def test_runs_of_other_suites_have_nothing_in_common() -> None:
    value = versus(run(evenly(20, [1]), "run1"), run(evenly(20, [1], prefix="t")))
    assert value["obstacles"] == ["no scenario is scored in both"]
    assert violations("versus", value) == []
    shown = " ".join(" ".join(compare_lines(value)).split())
    assert shown.startswith(
        "result not sure whether B is better or worse than A: no scenario is scored in both A "
    )


def test_too_few_in_common_bar_a_claim() -> None:
    assert obstacles(run(evenly(40, [0]), "run1"), run(evenly(30, [1]))) == [
        "only 30 of 40 scenarios are in both"
    ]
    assert obstacles(run(evenly(9, [0]), "run1"), run(evenly(9, [1]))) == [
        "only 9 scenarios are in both; a claim needs 10 or more eval scenarios"
    ]


def test_runs_without_a_whole_final_sweep_bar_a_claim() -> None:
    before, after = run(WIN[0], "run1"), run(WIN[1])
    assert obstacles(before, replace(after, phases=())) == ["run run2 has no final sweep"]
    broken = replace(after, phases=(replace(after.phases[0], status="incomplete"),))
    assert obstacles(before, broken) == ["the final sweep of run run2 is incomplete"]
    stopped = replace(after, phases=(replace(after.phases[0], settled=("s1",)),))
    assert obstacles(before, stopped) == [
        "the final sweep of run run2 stopped as soon as its gate was decided"
    ]


def test_different_judges_bar_a_claim() -> None:
    before, after = run(WIN[0], "run1"), run(WIN[1])
    judged = tuple(replace(s, truth="judge") for s in before.scenarios)
    one = replace(before, scenarios=judged, identities={"judge": {"name": "a"}})
    other = replace(after, scenarios=judged, identities={"judge": {"name": "b"}})
    assert obstacles(one, other) == ["different judges scored them"]


def test_the_libraries_are_told_apart_also_over_runs() -> None:
    old = make_experience(1, summary32="Count by hand.")
    new = make_experience(2, summary32="Count with the tool.", parents=(old.id,))
    value = versus(learned(run(WIN[0], "run1"), old), learned(run(WIN[1]), new))
    (change,) = value["library"]["changed"]
    assert [lesson["id"] for lesson in change["before"]] == [old.id]
    assert change["after"]["text"] == "Count with the tool."


def test_a_lesson_revised_twice_is_still_the_same_one() -> None:
    first, second, third = (
        make_experience(n, summary32=f"Lesson {n}.", parents=(f"{n - 1:016x}",) if n > 1 else ())
        for n in (1, 2, 3)
    )
    trained = make_run(train={"t": [1, 0]}, final=WIN[1], run_id="run2")
    (training, *rest) = trained.phases
    assert training.revision is not None
    steps = tuple(Operation(kind="update", experience=e, targets=e.parents) for e in (second, third))
    revised = replace(training, revision=replace(training.revision, applied=steps))
    after = learned(replace(trained, phases=(revised, *rest)), third)
    assert not versus(learned(run(WIN[0], "run1"), first), after)["library"]["added"]


def test_settings_stamps_and_versions_that_differ_are_listed() -> None:
    value = versus(*two())
    assert [row["name"] for row in value["settings"]] == ["epochs", "seed"]
    assert [row["name"] for row in value["stamps"]] == ["actor"]
    assert value["versions"] == []


HOSTILE = st.text(st.characters(), max_size=120) | st.just("\x1b[2J\u202e\ud800" + "x" * 300)


@given(text=HOSTILE, verbosity=st.integers(-1, 1), further=st.integers(0, len(LETTERS) - 2))
def test_no_foreign_text_breaks_out_of_80_columns(text: str, verbosity: int, further: int) -> None:
    lesson = make_experience(summary32=text, domain=text)
    before = learned(run({"a": [1], "b": [0], f"{text}.": [1]}, "run1"), lesson)
    named = {**SETTINGS, "actor": text, f"{text}.": text}  # never the name of a setting of ours
    after = run({"a": [0], "b": [1]}, settings=named, stamps={text: "1"}, reason=text, status="aborted")
    scenarios = tuple(replace(s, domain=text) for s in after.scenarios)
    after = replace(after, scenarios=scenarios)
    others = [replace(after, run_id=f"{text}{n}", partial_selection=True) for n in range(further)]
    for shown in compare_lines(versus(before, after, others), verbosity=verbosity):
        assert len(shown) <= 80
        assert shown.isprintable()
