"""Metrics that are derived from what a rollout is on file with: checks, judge, test function, agent."""

import math
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_rollout, make_scenario
from support.sweeps import make_run

from pytest_tfgrpo.core.named_figures import NAME, as_figure, as_scale, reported
from pytest_tfgrpo.core.named_scores import SHARE, MetricScale, NamedScore
from pytest_tfgrpo.core.records import CheckResult, JudgeResult, Rollout, Run
from pytest_tfgrpo.core.scenarios import Criterion, criterion_names
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.metrics.comparison import Sweeps, metric_changes
from pytest_tfgrpo.metrics.epochs import per_epoch
from pytest_tfgrpo.metrics.named import MOST_METRICS, SweepMetrics
from pytest_tfgrpo.metrics.values import (
    check_metric,
    column,
    criteria_of,
    derived,
    evidence_of,
    scale_of,
    source_of,
)

WORDS = MetricScale(unit="words", better="lower", most=500)
IDS = [f"s{n}" for n in range(12)]


def changed(run: Run, **fields: Any) -> Run:
    """Return a run whose rollouts have other fields; a callable gets the rollout and its place in the run."""

    def of(rollout: Rollout, n: int) -> Rollout:
        own = {key: value(rollout, n) if callable(value) else value for key, value in fields.items()}
        return replace(rollout, **own)

    phases = []
    for result in run.phases:
        groups = [
            replace(group, rollouts=tuple(of(r, n) for r in group.rollouts))
            for n, group in enumerate(result.groups)
        ]
        phases.append(replace(result, groups=tuple(groups)))
    return replace(run, phases=tuple(phases))


def last(run: Run) -> dict[str, Any]:
    value = per_epoch(run)
    assert violations("per-epoch", value) == []
    row: dict[str, Any] = value["epochs"][-1]["metrics"]
    return row


def words(value: float, **scale: Any) -> tuple[NamedScore, ...]:
    return (NamedScore(name="length", value=value, scale=MetricScale(**scale) if scale else WORDS),)


def test_checks_of_a_kind_are_one_metric_by_weight_and_those_not_reached_count_as_failed() -> None:
    checks = tuple(
        CheckResult(kind=kind, weight=weight, credit=credit)
        for kind, weight, credit in (
            *(("contains", 3.0, 1.0), ("contains", 1.0, 0.0), ("not exact", 1.0, 1.0)),
            *(("python", 1.0, 0.5), ("python", 3.0, 0.1)),
        )
    )
    row = last(changed(make_run(final={"a": [1, 1]}), checks=checks))
    assert (row["check.contains"]["mean"], row["check.not-exact"]["mean"]) == (0.75, 1.0)
    assert row["check.python"]["mean"] == pytest.approx(0.2), "part of a credit counts as such"
    assert (row["check.contains"]["unit"], row["check.contains"]["better"]) == ("", "higher")
    assert last(make_run(final={"a": [1, -1]}))["check.exact"]["mean"] == 0.5


def test_an_error_has_no_figure_of_anything() -> None:
    run = changed(make_run(final={"a": [None, 1]}), scores=words(100), extra={"sure": 0.5})
    assert [len(derived(r)) for r in run.phases[0].groups[0].rollouts] == [0, 3]


def test_a_criterion_has_the_share_of_votes_and_0_where_the_agent_failed() -> None:
    scenario = replace(make_scenario("a"), rubric=(Criterion(text="Kind?", name="kind"),))
    run = make_run(final={"a": [1, -1]}, scenarios=[scenario])
    run = replace(run, identities={"judge": {"name": "openai:x"}})
    run = changed(
        run,
        opinion=lambda r, _: JudgeResult(score=0.5, criteria={"kind": 0.5}) if r.status == "ok" else None,
    )
    assert criteria_of(run) == {"a": ("kind",)}
    assert last(run)["judge.kind"]["mean"] == 0.25
    assert "judge.kind" not in last(changed(replace(run, identities={}), opinion=None))


def test_figures_with_a_unit_keep_it_and_their_interval_stays_in_range() -> None:
    row = last(changed(make_run(final={id_: [1] for id_ in IDS}), scores=lambda _, n: words(100.0 + 20 * n)))
    length = row["test.length"]
    assert (length["n"], length["mean"], length["unit"], length["better"]) == (12, 210.0, "words", "lower")
    assert 0 <= length["ci95"][0] < 210 < length["ci95"][1] <= 500


def test_a_figure_on_another_scale_than_the_first_does_not_count() -> None:
    run = changed(
        make_run(final={"a": [1], "b": [1]}),
        scores=lambda _, n: words(100) if n == 0 else words(0.4, unit="pages"),
    )
    assert (last(run)["test.length"]["n"], last(run)["test.length"]["mean"]) == (1, 100.0)
    assert Sweeps(run).rows_of("test.length")["b"].n == 0


def test_less_is_better_in_a_tally_and_a_comparison_is_in_the_unit() -> None:
    before, after = (
        changed(make_run(final={id_: [1] for id_ in IDS}), scores=lambda _, n, far=far: words(far + n))
        for far in (300.0, 100.0)
    )
    row = Sweeps(after).rows_of("test.length")["s0"]
    assert row.sum == pytest.approx(0.8)
    (change,) = metric_changes(Sweeps(before), Sweeps(after), ["test.length"])
    assert (change["before"], change["after"]) == (pytest.approx(305.5), pytest.approx(105.5))
    assert change["difference"] == pytest.approx(-200)
    assert (change["unit"], change["better"]) == ("words", "lower")
    low, high = change["ci95"] or (0, 0)
    assert low <= -200 + 1e-6 <= high + 1e-3
    pages = changed(after, scores=words(3, unit="pages", most=10.0))
    assert metric_changes(Sweeps(before), Sweeps(pages), ["test.length"])[0]["n"] == 0


def test_what_an_agent_reports_is_a_metric_where_it_is_a_figure() -> None:
    extra = {
        "sure": 0.5, "right": True, "found": {"value": 3, "unit": "documents", "most": 10}, "five": 5,
        "nan": math.nan, "text": "0.5", "no name!": 0.5, "a" * 65: 0.5, "odd": {"value": 3}, "list": [0.5],
        "worse": {"value": 0.5, "better": "sideways"}, "more": {"value": 0.5, "other": 1}, "huge": 10**5000,
    }  # fmt: skip
    row = last(changed(make_run(final={"a": [1]}), extra=extra))
    found = {name: of["mean"] for name, of in row.items() if name.startswith("extra.")}
    assert found == {"extra.sure": 0.5, "extra.right": 1.0, "extra.found": 3.0}
    assert row["extra.found"]["unit"] == "documents"


def test_of_many_metrics_those_of_most_scenarios_are_shown_and_the_rest_is_counted() -> None:
    run = make_run(final={id_: [1] for id_ in IDS})
    run = changed(run, extra=lambda _, n: {"common": 1.0} | {f"own{n}-{i}": 0.5 for i in range(20)})
    found, left_out = SweepMetrics(run.phases[0].counted).figures({})
    extra = [name for name in found if name.startswith("extra.")]
    assert (len(extra), left_out) == (MOST_METRICS, 241 - MOST_METRICS)
    assert "extra.common" in found
    assert per_epoch(run)["epochs"][-1]["metrics_left_out"] == left_out


def test_the_evidence_of_a_metric_is_that_of_its_source() -> None:
    group = make_run(final={"a": [0]}).phases[0].groups[0]
    rollout = replace(
        group.rollouts[0],
        scores=(NamedScore(name="tone", value=0.2, why="curt"),),
        opinion=JudgeResult(score=0.0, reason="c1 not met (1 of 1): rude", criteria={"kind": 0.0}),
    )
    told = {name: evidence_of(rollout, group.scores[0], name) for name in derived(rollout)}
    assert told == {
        "check.exact": "expected '3', got '4'",
        "judge.kind": "c1 not met (1 of 1): rude",
        "test.tone": "curt",
    }  # fmt: skip


def test_criteria_are_named_by_their_names_or_texts_and_never_alike() -> None:
    texts = ("The answer is 3.", "the answer is 3", "kind", "答案是三", "word " * 100, "?")
    rubric = [Criterion(text=text) for text in texts]
    rubric.insert(2, Criterion(text="Kind?", name="kind"))
    names = criterion_names(rubric)
    assert names[:4] == ("the-answer-is-3", "the-answer-is-3-2", "kind", "kind-2")
    assert [name.rpartition("-")[0] for name in names[4:]] == [
        "criterion", "word-word-word-word-word-word-word-word", "criterion",
    ]  # fmt: skip
    assert len(set(names)) == len(names)


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=20))
def test_every_rubric_has_fit_names(texts: list[str]) -> None:
    names = criterion_names([Criterion(text=text) for text in texts])
    assert len(set(names)) == len(texts)
    assert all(NAME.fullmatch(name) for name in names)


@given(st.text(max_size=80))
def test_every_check_kind_has_a_fit_metric(kind: str) -> None:
    first, _, name = check_metric(kind).partition(".")
    assert first == "check"
    assert NAME.fullmatch(name)


@given(st.floats(0, 1), st.sampled_from([SHARE, WORDS]))
def test_a_share_and_a_figure_are_each_others_inverse(share: float, scale: MetricScale) -> None:
    assert scale.share(scale.figure(share)) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1, True, "0.5", None, [], 10**400])
def test_a_value_that_is_not_on_the_scale_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="a score must be a number between 0 and 1"):
        as_figure(value, SHARE)
    assert reported(value) is None or value is True


def test_a_scale_and_a_value_may_be_as_large_as_is_said() -> None:
    largest = as_scale("x" * 32, "lower", sys.float_info.max)
    assert as_figure(sys.float_info.max, largest) == sys.float_info.max
    assert (reported(0), reported(1)) == ((0.0, SHARE), (1.0, SHARE))
    assert (as_figure(0, SHARE), as_figure(1, SHARE)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("unit", "better", "most"),
    [
        ("\x1b[31m", "higher", 1), ("x" * 33, "higher", 1), ("", "more", 1), ("", [], 1), ("", "higher", 0),
        ("s", "lower", math.inf), ("s", "lower", math.nan), (3, "lower", 1), (" s", "lower", 1),
    ],
)  # fmt: skip
def test_an_unfit_scale_is_refused(unit: object, better: object, most: object) -> None:
    with pytest.raises(ValueError, match=r"unit|better|most"):
        as_scale(unit, better, most)


@pytest.mark.parametrize(
    ("fields", "criteria", "found"),
    [
        ({}, (), {}),
        ({}, ("tone",), {}),
        ({"status": "error"}, ("tone",), {}),
        ({"status": "failed"}, ("tone", "facts"), {"judge.tone": 0.0, "judge.facts": 0.0}),
        ({"opinion": JudgeResult(score=0.0, criteria={"tone": 0.0})}, (), {"judge.tone": 0.0}),
        ({"opinion": JudgeResult(score=None)}, ("tone",), {}),
        (
            {"status": "failed", "opinion": JudgeResult(score=1.0, criteria={"tone": 1.0})},
            ("tone",),
            {"judge.tone": 0.0},
        ),
        ({"scores": words(0.0)}, (), {"test.length": 0.0}),
        ({"extra": {"turns": 0, "name": "x"}}, (), {"extra.turns": 0}),
    ],
)
def test_a_rollout_has_the_figures_of_each_source_that_measured_it(
    fields: Any, criteria: tuple[str, ...], found: dict[str, float]
) -> None:
    rollout = make_rollout(0, 1.0, **{"checks": ()} | fields)
    assert {name: value for name, (value, _) in derived(rollout, criteria).items()} == found


def test_metrics_of_a_sweep_are_in_order_whichever_came_first() -> None:
    run = changed(
        make_run(final={"a": [1], "b": [0]}),
        scores=lambda rollout, n: words(0.0) if n else (replace(words(0.5)[0], name="zeal"),),
        checks=(),
    )
    found = SweepMetrics(run.phases[-1].groups).means()
    assert [*found][-2:] == ["test.length", "test.zeal"]
    assert [[*found[name].means] for name in [*found][-2:]] == [[0.0], [0.5]]


def test_the_evidence_of_a_metric_is_no_other_of_its_source() -> None:
    group = make_run(final={"a": [0]}).phases[0].groups[0]
    checks = [("exact", "no match"), ("regex", "no find"), ("exact", ""), ("exact", "no such")]
    rollout = replace(
        group.rollouts[0],
        checks=tuple(CheckResult(kind=kind, weight=1.0, credit=0.0, reason=why) for kind, why in checks),
        scores=tuple(NamedScore(name=name, value=0.2, why=f"too {name}") for name in ("long", "loud")),
        extra={"loud": 1},
    )
    rated = replace(group.scores[0], evidence={"politeness": "curt", "loud": "shouts"})
    names = ("check.exact", "test.loud", "test.low", "extra.loud", "judge.kind", "politeness", "zeal", "loud")
    told = [evidence_of(rollout, rated, name) for name in names]
    assert told == ["no match; no such", "too loud", "", "", "", "curt", "", "shouts"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("check.exact", "check"),
        ("check", ""),
        ("check.", "check"),
        ("politeness", ""),
        ("own.check", ""),
        ("", ""),
    ],
)
def test_the_source_of_a_metric_is_its_first_part(name: str, source: str) -> None:
    assert source_of(name) == source


def test_a_column_has_what_counts_on_the_scale_of_the_first_rollout_that_has_it() -> None:
    run = make_run(final={"a": [1, -1, None, 1, 1]})
    (group,) = run.phases[-1].groups
    scores = [(), words(30.0), words(40.0), words(50.0, unit="lines", better="lower", most=9), words(60.0)]
    rollouts = tuple(
        replace(r, scores=own, extra={"turns": n / 4, "dropped": 1}, opinion=None)
        for n, (r, own) in enumerate(zip(group.rollouts, scores, strict=True))
    )
    group = replace(group, rollouts=rollouts)
    scale = scale_of([group], "test.length")
    assert scale == WORDS
    assert column(group, "test.length", scale=scale) == [None, 30.0, None, None, 60.0]
    assert column(group, "test.length") == [None] * 5
    assert scale_of([group], "check.exact") is scale_of([], "test.length") is SHARE
    assert column(group, "extra.turns", scale=scale_of([group], "extra.turns")) == [0, 0.25, None, 0.75, 1]
    assert column(group, "judge.kind", {"a": ("kind",)}) == [None, 0.0, None, None, None]
    assert column(group, "extra.dropped") == [None] * 5
    pages = {"value": 3, "unit": "pages", "most": 10}
    reporting = replace(group, rollouts=(replace(rollouts[0], extra={"read": pages}),))
    scale = scale_of([group, reporting], "extra.read")
    assert (scale.unit, column(reporting, "extra.read", scale=scale)) == ("pages", [3.0])
    assert [name for name in derived(rollouts[0]) if name.startswith("extra.")] == ["extra.turns"]
