from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_rollout, make_scenario
from support.reached import reached, reaches
from support.sweeps import evenly, make_result, make_run

from pytest_tfgrpo.core.named_scores import SHARE, MetricScale, NamedScore
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.metrics.comparison import (
    Comparison,
    Sweeps,
    Tally,
    compare,
    figures,
    has_lessons,
    in_domain,
    metric_changes,
    on_scale,
    sentence,
    tally,
)
from pytest_tfgrpo.suite.families import sweeps_of


def row(total: float, n: int = 2, errors: int = 0, stamp: str = "x") -> Tally:
    return Tally(stamp=stamp, n=n, sum=total, sum_sq=total, errors=errors)


def test_scenarios_pair_by_id_and_task_stamp() -> None:
    before = {"a": row(1), "b": row(1), "changed": row(1, stamp="old"), "gone": row(1)}
    after = {"changed": row(2, stamp="new"), "b": row(2), "a": row(0), "new": row(2)}
    compared = compare(before, after)
    assert (compared.ids, compared.before_K, compared.after_K) == (("b", "a"), (0.5, 0.5), (1.0, 0.0))


def test_a_scenario_with_errors_only_pairs_when_errors_count_as_0() -> None:
    before, after = {"a": row(2)}, {"a": row(0, n=0, errors=2)}
    assert compare(before, after).ids == ()
    assert compare(before, after, errors_as_zero=True).after_K == (0.0,)


def test_sweeps_are_found_by_mode() -> None:
    run = make_run({"e": [1]}, {"e": [0]}, {"t": [1]})
    assert (Sweeps(run).before, Sweeps(run).after) == (run.phases[0], run.phases[2])
    assert (Sweeps(make_run(final={"e": [1]})).before, Sweeps(make_run({"e": [1]})).after) == (None, None)


def test_figures_and_words_tell_the_same() -> None:
    run = make_run(evenly(8, [0, 0]), evenly(8, [1, 0]))
    compared = compare(Sweeps(run).rows_before, Sweeps(run).rows_after)
    found = figures(compared)
    assert (found["n"], found["before"], found["after"], found["difference"]) == (8, 0, 0.5, 0.5)
    assert (found["method"], found["detectable"]) == ("exact", None)
    assert sentence(compared).startswith("+0.500 (from 0.000 to 0.500), 95 % interval +0.")


def test_scenarios_of_a_family_are_one_piece_of_evidence() -> None:
    def compared(families: int) -> Comparison:
        after = {f"s{n}": replace(row(n % 3), family=f"f{n % families}") for n in range(48)}
        return compare({id_: row(1) for id_ in after}, after)

    alone, together = compared(48), compared(12)
    assert (figures(alone)["families"], figures(together)["families"]) == (48, 12)
    assert sentence(alone).endswith(", 48 scenarios")
    assert sentence(together).endswith(", 48 scenarios of 12 families")
    assert (figures(alone)["method"], figures(together)["method"]) == ("bca", "sign_flip")
    assert sentence(compared(6)).endswith(", 48 scenarios of 6 families (says nothing of others)")
    assert (figures(compared(6))["ci95"], figures(compared(6))["just_these"]) == (
        figures(alone)["ci95"],
        True,
    )


def test_the_families_are_those_of_the_run_and_a_domain_has_its_own() -> None:
    domains = {f"s{n}": "text" if n < 2 else "code" for n in range(4)}
    run = make_run({id_: [1] for id_ in domains}, {id_: [1] for id_ in domains})
    run = replace(
        run,
        scenarios=tuple(replace(s, family="f", domain=domains[s.id]) for s in run.scenarios if s.id != "s3"),
    )
    run = replace(run, scenarios=(*run.scenarios, make_scenario("s3", split="eval")))
    rows = sweeps_of(run).rows_after
    assert len({rows["s0"].family, rows["s1"].family}) == 1
    assert rows["s0"].family != rows["s2"].family
    assert rows["s3"].family is None


def test_nothing_in_common_is_said() -> None:
    compared = compare({}, {"a": row(1)})
    assert sentence(compared) == "no scenario is in both sweeps"
    assert (compared.before, compared.after, figures(compared)["difference"]) == (None, None, None)


@reaches("common scenarios")
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)),
)
def test_swapping_the_sweeps_turns_the_difference_around(before: dict, after: dict) -> None:
    old = {id_: row(total, n=4) for id_, total in before.items()}
    new = {id_: row(total, n=4) for id_, total in after.items()}
    there, back = compare(old, new), compare(new, old)
    assert there.difference.n == back.difference.n == len(before.keys() & after.keys())
    if reached("common scenarios", there.ids):
        assert there.difference.mean == pytest.approx(-back.difference.mean)


def test_a_control_is_cut_where_the_sweep_beside_it_was() -> None:
    run = make_run({"a": [1, 1, 0, 0]}, {"a": [0] * 8})
    row = Sweeps(run).control_until(4)
    assert row is not None
    assert (row["a"].n, row["a"].sum) == (2, 2)
    before, after = run.phases
    alone = replace(before, phase=replace(before.phase, concurrent=False))
    for phases in ((alone, after), (after,), (before,)):
        assert Sweeps(replace(run, phases=phases)).control_until(4) is None


@pytest.mark.parametrize(
    ("better", "figures_of", "expected"),
    [
        ("higher", (0.0, 0.5, 0.5, [0.25, 0.75], 0.1), (0.0, 200.0, 200.0, [100.0, 300.0], 40.0)),
        ("lower", (0.0, 0.5, 0.5, [0.25, 0.75], 0.1), (400.0, 200.0, -200.0, [-300.0, -100.0], 40.0)),
        ("lower", (1.0, 1.0, 0.0, [-0.5, 0.25], 0.0), (0.0, 0.0, 0.0, [-100.0, 200.0], 0.0)),
        ("lower", (None, None, None, None, None), (None, None, None, None, None)),
    ],
)
def test_figures_of_shares_are_told_on_the_scale_that_they_were_made_of(
    better: Any, figures_of: Any, expected: Any
) -> None:
    names = ("before", "after", "difference", "ci95", "detectable")
    shares: Any = {"n": 3, "method": "exact"} | dict(zip(names, figures_of, strict=True))
    scale = MetricScale(unit="words", better=better, most=400)
    assert on_scale(scale, shares) == {"n": 3, "method": "exact"} | dict(zip(names, expected, strict=True))
    assert on_scale(SHARE, shares) is shares


def test_without_a_final_sweep_no_metric_has_tallies() -> None:
    sweeps = Sweeps(make_run({"a": [1]}))
    for metric in ("reward", "gt_score", "relative_rank", "check.exact", "extra.x"):
        assert sweeps.rows_of(metric) == {}
        assert sweeps.scale_of(metric) is SHARE
    assert (sweeps.rows_after, sweeps.rows_until(1)) == ({}, {})
    assert [*sweeps.rows_before] == ["a"]
    assert Sweeps(make_run(final={"a": [1]})).rows_before == {}


def test_few_scenarios_have_a_difference_without_an_interval() -> None:
    compared = compare({"a": row(1), "b": row(0)}, {"a": row(2), "b": row(1)})
    assert sentence(compared) == "+0.500 (from 0.250 to 0.750), too few for an interval, 2 scenarios"
    assert (figures(compared)["ci95"], figures(compared)["detectable"]) == (None, None)
    assert compared.differences_K == [0.5, 0.5]


def test_what_can_be_detected_is_known_where_differences_spread() -> None:
    after = {f"s{n}": row(n % 3) for n in range(24)}
    found = figures(compare(dict.fromkeys(after, row(1)), after))
    assert found["detectable"] is not None
    assert 0 < found["detectable"] < 1


def test_the_tallies_of_a_domain_are_its_own() -> None:
    rows = {"a": replace(row(1), domain="text"), "b": replace(row(1), domain="dates"), "c": row(1)}
    assert in_domain(rows, "text") == {"a": rows["a"]}
    assert in_domain(rows, "") == {"c": rows["c"]}


def test_a_control_drifts_from_its_early_part() -> None:
    run = make_run({"a": [1, 0], "b": [1, 1]}, {"a": [1]})
    early = make_result({"a": [1], "b": [0]}, epoch=-1, mode="early", scenarios=run.scenarios)
    drift = Sweeps(replace(run, phases=(early, *run.phases))).drift
    assert drift is not None
    assert (drift.ids, drift.before_K, drift.after_K) == (("a", "b"), (1, 0), (0.5, 1))
    assert Sweeps(run).drift is Sweeps(replace(run, phases=(early, run.phases[1]))).drift is None


def scored(values: list[float], **scale: Any) -> Any:
    run = make_run(final={"a": [1] * len(values)})
    result = run.phases[-1]
    (group,) = result.groups
    scores = [(NamedScore(name="length", value=value, scale=MetricScale(**scale)),) for value in values]
    rollouts = tuple(replace(r, scores=own) for r, own in zip(group.rollouts, scores, strict=True))
    result = replace(result, groups=(replace(group, rollouts=rollouts),))
    return replace(run, phases=(*run.phases[:-1], result))


WORDS: Any = {"unit": "words", "better": "lower", "most": 100}


def test_the_tally_of_a_metric_of_groups_that_come_one_by_one_is_in_shares_of_the_best() -> None:
    run = scored([25.0, 75.0], **WORDS)
    groups, stamps = run.phases[-1].groups, {s.id: s.stamp for s in run.scenarios}
    found = tally(iter(groups), stamps, metric="test.length")
    assert found == tally(groups, stamps, metric="test.length")
    assert (found["a"].n, found["a"].sum, found["a"].sum_sq) == (2, 1.0, 0.625)


def test_a_metric_on_two_scales_is_not_compared() -> None:
    before, after = scored([20.0, 40.0], **WORDS), scored([10.0, 30.0], **WORDS)
    other = scored([10.0, 30.0], **WORDS | {"most": 50, "unit": "pages"})
    names = ["test.length", "test.none", "gt_score"]
    found = {one["name"]: one for one in metric_changes(Sweeps(before), Sweeps(after), names)}
    assert [*found] == names
    length = found["test.length"]
    assert (length["unit"], length["better"], length["n"]) == ("words", "lower", 1)
    assert (length["before"], length["after"]) == (pytest.approx(30.0), pytest.approx(20.0))
    assert length["difference"] == pytest.approx(-10.0)
    assert (found["test.none"]["n"], found["test.none"]["unit"]) == (0, SHARE.unit)
    assert (found["gt_score"]["n"], found["gt_score"]["difference"]) == (1, 0.0)
    (changed,) = metric_changes(Sweeps(before), Sweeps(other), ["test.length"])
    assert (changed["n"], changed["unit"]) == (0, "pages")
    (new,) = metric_changes(Sweeps(make_run(final={"a": [1]})), Sweeps(after), ["test.length"])
    assert (new["n"], new["unit"], new["before"]) == (0, "words", None)


def test_errors_beside_scores_pull_a_mean_down_only_where_they_count() -> None:
    found = row(2, n=2, errors=2)
    assert (found.mean(), found.mean(errors_as_zero=True)) == (1.0, 0.5)
    assert (row(0, n=0).mean(), row(0, n=0).mean(errors_as_zero=True)) == (None, None)


def in_both_sweeps(run: Run) -> Run:
    """Return a run whose control has the answers to `a` of the final sweep beside its own to `b`."""
    before, after = run.phases
    alike = replace(after.groups[0], shared=True)
    after = replace(after, groups=(alike, *after.groups[1:]))
    phase = replace(before.phase, scenarios=("a", "b"))
    return replace(run, phases=(replace(before, shared=(alike,), phase=phase), after))


def test_answers_that_count_in_both_sweeps_are_in_the_tallies_of_both() -> None:
    sweeps = Sweeps(in_both_sweeps(make_run({"b": [0, 0]}, {"a": [1, 1, 0, 0], "b": [1, 1, 1, 1]})))
    assert {id_: (row.n, row.shared) for id_, row in sweeps.rows_before.items()} == {
        "a": (4, True),
        "b": (2, False),
    }
    assert {id_: row.shared for id_, row in sweeps.rows_after.items()} == {"a": True, "b": False}
    cut = sweeps.control_until(2)
    assert cut is not None
    assert {id_: (row.n, row.sum) for id_, row in cut.items()} == {"a": (2, 2.0), "b": (1, 0.0)}


def test_a_tally_is_of_the_domain_of_its_scenario() -> None:
    rows = Sweeps(make_run(final={"a": [1], "date": [0]})).rows_after
    assert {id_: row.domain for id_, row in rows.items()} == {"a": "text", "date": "dates"}
    assert [*in_domain(rows, "dates")] == ["date"]


def test_a_group_has_lessons_where_any_of_its_prompts_carried_one() -> None:
    (group,) = make_run(final={"a": [1, 1]}).phases[-1].groups
    taught = make_rollout(1, experiences=("1",))
    assert has_lessons(replace(group, rollouts=(group.rollouts[0], taught)))
    assert not has_lessons(group)


def test_the_tallies_of_another_metric_have_the_families_and_the_criteria_of_the_run() -> None:
    scenario = make_scenario("a", split="eval", family="f", rubric=(Criterion(text="Kind?", name="kind"),))
    run = make_run(final={"a": [1, -1]}, scenarios=(scenario, replace(scenario, id="b")))
    row = Sweeps(replace(run, identities={"judge": {"name": "openai:x"}})).rows_of("judge.kind")["a"]
    assert (row.n, row.sum, row.family) == (1, 0.0, "text f")


def test_a_family_that_is_called_like_a_scenario_is_another_piece_of_evidence() -> None:
    after = {"a": row(2), "b": replace(row(2), family="a")}
    assert figures(compare({"a": row(1), "b": row(1)}, after))["families"] == 2
