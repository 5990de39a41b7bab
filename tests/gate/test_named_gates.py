"""Named gates over a run: what each sees, what each domain comes to, and that what breaks closes the gate."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import make_scenario
from support.reached import reached, reaches
from support.sweeps import SETTINGS, Credits, evenly, make_run, rated, rule, swept

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.named_scores import MetricScale, NamedScore
from pytest_tfgrpo.core.records import Group, Reference, Run
from pytest_tfgrpo.core.scenarios import Check, Criterion, Scenario
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.gate import rules
from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.config import GatePlace, NamedGate, load_gates, require_selections, resolve_metrics
from pytest_tfgrpo.gate.named_gates import NamedVerdict, OpenGate, baseline_name, judge_named
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.gate.verdict import Verdict, judge
from pytest_tfgrpo.plugin.progress import github
from pytest_tfgrpo.report.gates import gate_lines, overall
from pytest_tfgrpo.report.markdown import summary
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.value import build


def verdict(run: Run, baseline: Baseline | None = None, **fields: Any) -> NamedVerdict:
    return judge_named(run, OpenGate(NamedGate(name="mine", **fields), baseline), SETTINGS)


def stored(final: Mapping[str, Credits], like: Run) -> Baseline:
    """Return the baseline of the scenarios of `like`, with other results."""
    return from_run(make_run(final=final, scenarios=like.scenarios), "main")


def domains(text: float, dates: float, n: int = 60) -> dict[str, Credits]:
    """Return n scenarios of each domain, of which the given shares passed."""
    shares = {"text": text, "date": dates}
    return {f"{d}{i}": [float(i < share * n)] for d, share in shares.items() for i in range(n)}


BOTH = swept(domains(0.9, 0.9))


# metrics


def polite(final: Mapping[str, Credits], mean: float, **changes: Any) -> Run:
    """Return a run in which each rollout that is no error was rated as polite as that."""
    credited = {id_: [None if one is None else mean for one in own] for id_, own in final.items()}
    return rated(swept(final, **changes), credited)


def test_a_gate_of_a_metric_sees_nothing_else() -> None:
    run = polite(evenly(12, [0.0]), 0.6)
    assert verdict(run, metric="politeness", min_mean=0.5).outcome == "pass"
    assert verdict(run, metric="gt_score", min_mean=0.5).outcome == "fail"
    found = verdict(run, metric="politeness", min_mean=0.7)
    assert found.outcome == "fail"
    assert rule(found, "minimum politeness").message == "politeness 0.600, at least 0.7 required"
    assert rule(found, "minimum politeness").figures["metric"] == "politeness"


def test_a_gate_of_a_metric_says_who_scored_lowest_and_why() -> None:
    scores = {**evenly(12, [0.5, 0.5]), "s7": [0.4, 0.1]}
    run = rated(swept(evenly(12, [1.0, 1.0])), scores, why="no \x1bplease")
    found = rule(verdict(run, metric="politeness", min_mean=0.9), "minimum politeness")
    assert found.advice == "lowest: 0.100 by r1 of s7, no \\x1bplease"
    assert rule(verdict(run, metric="politeness", min_mean=0.1), "minimum politeness").advice == ""


def test_a_metric_is_judged_with_errors_left_out_and_as_0() -> None:
    run = polite(evenly(12, [1.0, None]), 0.8)
    assert verdict(run, metric="politeness", min_mean=0.4).outcome == "pass"
    found = rule(verdict(run, metric="politeness", min_mean=0.5), "minimum politeness")
    assert (found.outcome, found.figures["errors_as_zero"]) == ("fail", pytest.approx(0.4))
    assert "0.400 with errors as 0" in found.message


@pytest.mark.parametrize(
    ("metric", "where"),
    [
        ("test.tone", "tfgrpo.score"),
        ("extra.sure", "does the agent report"),
        ("test", "its rewarder"),
        ("style.wit", "its rewarder"),
    ],
)
def test_a_metric_that_nobody_scored_says_where_to_look(metric: str, where: str) -> None:
    assert where in rule(verdict(BOTH, metric=metric, min_mean=0.5), f"minimum {metric}").advice


def test_a_metric_that_nobody_scored_closes_the_gate() -> None:
    for metric, run in (("warmth", BOTH), ("politeness", rated(BOTH, {})), ("style.part", BOTH)):
        found = rule(verdict(run, metric=metric, min_mean=0.0), f"minimum {metric}")
        assert found.outcome == "fail"
        assert found.message == f"no rollout of 120 eval scenarios has a score of {metric}"


def test_a_metric_that_few_scenarios_have_is_no_pass() -> None:
    run = swept(evenly(10, [1.0]))
    for n, outcome in ((7, "inconclusive"), (8, "pass"), (10, "pass")):
        found = verdict(rated(run, {f"s{i}": [1.0] for i in range(n)}), metric="politeness", min_mean=0.5)
        assert found.outcome == outcome
        assert (f"{n} of 10 scenarios have a score" in rule(found, "minimum politeness").message) is (n < 10)


def test_a_metric_that_few_rollouts_have_is_no_pass() -> None:
    run = swept(evenly(12, [1.0] * 5))
    for n, outcome in ((1, "inconclusive"), (3, "inconclusive"), (4, "pass"), (5, "pass")):
        found = verdict(rated(run, evenly(12, [1.0] * n)), metric="politeness", min_mean=0.5)
        assert found.outcome == outcome
        told = f"{12 * n} of 60 rollouts have a score" in rule(found, "minimum politeness").message
        assert told is (n < 5)


def test_a_metric_is_judged_in_each_domain_apart() -> None:
    run = rated(BOTH, {id_: [0.9 if id_.startswith("text") else 0.1] for id_ in domains(1, 1)})
    found = verdict(run, metric="politeness", min_mean=0.4, per_domain=True)
    assert verdict(run, metric="politeness", min_mean=0.4).outcome == "pass"
    assert rule(found, "minimum politeness (text)").outcome == "pass"
    assert rule(found, "minimum politeness (dates)").outcome == "fail"


def test_a_gate_of_a_metric_compares_with_no_baseline() -> None:
    names = [
        result.name for result in verdict(polite(evenly(12, [1.0]), 1.0), metric="reward", min_mean=0).results
    ]
    assert names == ["complete", "minimum reward"]
    settings = {**SETTINGS, "baseline": "main"}
    assert baseline_name(NamedGate(name="mine", metric="reward"), settings) is None
    for fields in ({"margin": 0.1}, {"alarm": 0.1}, {"baseline": "main"}):
        assert baseline_name(NamedGate(name="mine", metric="reward", **fields), settings) == "main"
    none = NamedGate(name="mine", metric="reward", baseline="none", margin=0.1, alarm=0.1)
    assert baseline_name(none, settings) is None


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ("metric: politeness", "#/gates/mine/metric: a metric needs a min_mean"),
        ("metric: politeness, max_errors: 0", "#/gates/mine/metric: a metric needs a min_mean, a margin"),
        *(
            (
                f"metric: relative_rank, min_mean: .5, {other}",
                "#/gates/mine/metric: a rank within a group cannot",
            )
            for other in ("margin: .1", "alarm: .1", "baseline: main", "gain: true")
        ),
        ("metric: [politeness], min_mean: .5", "#/gates/mine/metric"),
        ("metric: '', min_mean: .5", "#/gates/mine/metric"),
    ],
)
def test_a_metric_has_something_to_be_judged_by(tmp_path: Path, fields: str, complaint: str) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(f"gates:\n  mine: {{{fields}}}\n")
    with pytest.raises(SettingError, match=re.escape(complaint)):
        load_gates(path)


def test_each_key_that_judges_is_enough_for_a_metric(tmp_path: Path) -> None:
    path = tmp_path / "gates.yaml"
    for key, value in (("min_mean", ".5"), ("margin", ".1"), ("alarm", ".1"), ("baseline", "main")):
        path.write_text(f"gates:\n  mine: {{metric: politeness, {key}: {value}}}\n")
        assert load_gates(path)[0].metric == "politeness"
    path.write_text("gates:\n  mine: {metric: relative_rank, min_mean: .5}\n")
    assert load_gates(path)[0].min_mean == 0.5


def test_a_metric_is_one_that_a_rewarder_gives() -> None:
    def require(metric: str | None) -> None:
        gate = NamedGate(name="mine", metric=metric, place=GatePlace(source="gates.yaml"))
        assert resolve_metrics([gate], ["politeness", "style"], [], judged=False) == [gate]

    for metric in (None, "gt_score", "reward", "relative_rank", "politeness", "style", "style.warmth"):
        require(metric)
    with pytest.raises(SettingError, match="'politness'; did you mean 'politeness'"):
        require("politness")
    with pytest.raises(SettingError, match="there are gt_score, reward, relative_rank, politeness, style"):
        require("warmth")
    with pytest.raises(SettingError, match=r"reports the metric 'reward\.part'"):
        require("reward.part")


def test_a_short_name_is_the_one_metric_that_it_can_be() -> None:
    rubric = (Criterion(text="Kind?", name="kind"), Criterion(text="x", name="exact"))
    scenarios = [replace(make_scenario("a", checks=(Check(kind="exact"),)), split="eval", rubric=rubric)]

    def full(metric: str, *more: Scenario, judged: bool = True) -> str | None:
        gate = NamedGate(name="mine", metric=metric, place=GatePlace(source="gates.yaml"))
        return resolve_metrics([gate], ["judge", "style"], [*scenarios, *more], judged=judged)[0].metric

    marked = replace(make_scenario("b", checks=()), split="eval", checker="t.py::test_b")
    assert (full("kind"), full("judge.kind"), full("style"), full("judge")) == (
        "judge.kind",
        "judge.kind",
        "style",
        "judge",
    )
    assert (full("extra.sure"), full("tone", marked), full("test.tone", marked)) == (
        "extra.sure",
        "test.tone",
        "test.tone",
    )
    for metric, judged, complaint in (
        ("exact", True, "'exact' may be check.exact or judge.exact; write which of them"),
        ("kind", False, "nothing in this run reports the metric 'kind'"),
        ("judge.other", True, "nothing in this run reports the metric 'judge.other'; did you mean"),
        ("test.tone", True, "nothing in this run reports the metric 'test.tone'"),
        ("sure", True, "nothing in this run reports the metric 'sure'"),
    ):
        with pytest.raises(SettingError, match=re.escape(complaint)):
            full(metric, judged=judged)


MANY = [f"s{n}" for n in range(40)]


def mannered(mean: float, spread: float = 0.1, **changes: Any) -> Run:
    """Return a run of 40 right answers that are so polite on average."""
    ratings = {id_: [mean + spread * (n % 3 - 1)] for n, id_ in enumerate(MANY)}
    return rated(swept({id_: [1.0] for id_ in MANY}, **changes), ratings)


def test_a_metric_is_compared_with_the_baseline_by_the_statistics_of_the_gate() -> None:
    before = from_run(mannered(0.7), "main")
    assert before.metrics["politeness"] == MetricScale()
    for mean, outcome in ((0.7, "pass"), (0.69, "pass"), (0.5, "fail")):
        found = verdict(mannered(mean), before, metric="politeness", margin=0.12)
        result = rule(found, "baseline politeness")
        assert (found.outcome, result.outcome) == (outcome, outcome)
        assert result.figures["difference"] == pytest.approx(mean - 0.7)
        assert (result.figures["metric"], result.figures["better"]) == ("politeness", "higher")
    names = [r.name for r in verdict(mannered(0.7), before, metric="politeness", margin=0.05).results]
    assert names == ["complete", "baseline politeness"]


def test_a_baseline_without_the_metric_skips_the_rule_and_says_so() -> None:
    old = from_run(swept({id_: [1.0] for id_ in MANY}), "main")
    found = verdict(mannered(0.1), old, metric="politeness", margin=0.05, min_mean=0.05)
    result = rule(found, "baseline politeness")
    assert (found.outcome, result.outcome) == ("pass", "skipped")
    assert result.message == "the baseline main has no metric politeness"
    assert result.advice == "save the baseline again with `tfgrpo baseline save main`"
    assert rule(found, "minimum politeness").outcome == "pass"


def lengthy(words: float, unit: str = "words") -> Run:
    """Return a run of 40 right answers, each of about so many words of which fewer are better."""
    run = swept({id_: [1.0] for id_ in MANY})
    scale = MetricScale(unit=unit, better="lower", most=500)

    def of(group: Group, n: int) -> Group:
        scores = (NamedScore(name="length", value=words + n % 5, scale=scale),)
        return replace(group, rollouts=tuple(replace(r, scores=scores) for r in group.rollouts))

    phases = [replace(p, groups=tuple(of(g, n) for n, g in enumerate(p.groups))) for p in run.phases]
    return replace(run, phases=tuple(phases))


def test_where_lower_is_better_a_rise_is_worse_and_the_margin_is_a_share_of_the_scale() -> None:
    before = from_run(lengthy(100), "main")
    for words, outcome in ((20, "pass"), (110, "pass"), (200, "fail")):
        found = rule(
            verdict(lengthy(words), before, metric="test.length", margin=0.12), "baseline test.length"
        )
        assert found.outcome == outcome
        assert found.figures["difference"] == pytest.approx((100 - words) / 500)
        assert found.message.endswith("; figures are shares of 500 words saved, as lower is better")
    short = verdict(lengthy(100), metric="test.length", min_mean=0.7)
    assert (short.outcome, rule(short, "minimum test.length").figures["errors_excluded"]) == (
        "pass",
        pytest.approx(0.796),
    )
    assert rule(verdict(lengthy(100), metric="test.length", min_mean=0.9), "minimum test.length").advice == (
        "highest: 104.000 by r0 of s4"
    )


def test_a_metric_on_another_scale_than_in_the_baseline_is_an_open_question() -> None:
    before = from_run(lengthy(100), "main")
    found = verdict(lengthy(100, unit="letters"), before, metric="test.length", margin=0.05)
    result = rule(found, "baseline test.length")
    assert (found.outcome, result.outcome) == ("inconclusive", "inconclusive")
    assert "shares of 500 letters saved" in result.message


def reporting(then: float, now: float, most: float, *domains: str) -> Run:
    """Return a run whose agent reports words before it learned and after, then of `most` in `domains`."""
    ids = [f"{domain}{n}" for domain in ("text", "date") for n in range(40)]
    run = make_run({id_: [1.0] for id_ in ids}, {id_: [1.0] for id_ in ids}, {"t": [1.0, 0.0]})

    def of(group: Group, mode: str) -> Group:
        top = most if mode == "eval" and group.scenario_id[:4] in domains else 500.0
        said = {"words": {"value": now if mode == "eval" else then, "better": "lower", "most": top}}
        return replace(group, rollouts=tuple(replace(r, extra=said) for r in group.rollouts))

    phases = [replace(p, groups=tuple(of(g, p.phase.mode) for g in p.groups)) for p in run.phases]
    return replace(run, phases=tuple(phases))


@pytest.mark.parametrize(
    ("domains", "per_domain"), [(["text", "date"], False), (["text", "date"], True), (["date"], True)]
)
def test_a_metric_on_another_scale_than_in_the_own_control_is_an_open_question(
    domains: list[str], per_domain: bool
) -> None:
    """An agent that learned to report a larger scale has gained nothing by it."""

    def gained(now: float, most: float) -> NamedVerdict:
        made = reporting(200, now, most, *domains)
        return verdict(made, metric="extra.words", margin=0.1, gain=True, per_domain=per_domain)

    assert (gained(200, 500).outcome, gained(400, 500).outcome) == ("pass", "fail")
    found = gained(210, 5000)
    assert found.outcome == "inconclusive"
    place = " (dates)" if per_domain else ""
    assert "now shares of 5000 saved" in rule(found, f"gain extra.words{place}").message
    if domains == ["date"]:
        assert gained(400, 5000).outcome == "fail"  # as it still says of the other domain


def test_a_reference_on_another_scale_is_an_open_question_too() -> None:
    library = Library(hash="d" * 64)
    reference = Reference(name="old", kind="library", stamp="e" * 64, library=library, packs=())
    run = replace(reporting(200, 210, 5000, "text", "date"), reference=reference)
    gate = NamedGate(name="g", metric="extra.words", margin=0.1)
    found = judge_named(run, OpenGate(gate, None, live=True), SETTINGS)
    assert [(r.name, r.outcome) for r in found.results] == [
        ("complete", "pass"),
        ("baseline extra.words", "inconclusive"),
    ]
    assert found.results[1].advice == "use one scale for the metric"
    closed = judge_named(run, OpenGate(gate, None), SETTINGS)
    assert [r.name for r in closed.results] == ["complete"]


@pytest.mark.parametrize("lacking", ["baseline", "eval"])
def test_a_sweep_without_the_metric_is_on_no_other_scale(lacking: str) -> None:
    run = reporting(200, 210, 5000, "text", "date")
    bare = [
        tuple(replace(g, rollouts=tuple(replace(r, extra={}) for r in g.rollouts)) for g in p.groups)
        if p.phase.mode == lacking
        else p.groups
        for p in run.phases
    ]
    phases = tuple(replace(p, groups=groups) for p, groups in zip(run.phases, bare, strict=True))
    found = verdict(replace(run, phases=phases), metric="extra.words", margin=0.1, gain=True)
    assert [result.name for result in found.results] == ["complete", "gain extra.words"]
    assert found.outcome != "pass"
    assert "use one scale" not in found.results[1].advice


def test_scenarios_that_lost_the_metric_keep_a_comparison_from_passing() -> None:
    before = from_run(mannered(0.7), "main")
    now = rated(swept({id_: [1.0] for id_ in MANY}), {id_: [0.9] for id_ in MANY[:30]})
    found = verdict(now, before, metric="politeness", margin=0.05)
    assert found.outcome != "pass"
    assert rule(found, "baseline politeness").figures["share"] == 0.75
    gone = verdict(rated(swept({"s0": [1.0]}), {"s0": [1.0]}), before, metric="politeness", margin=0.05)
    assert "39 scenarios" in rule(gone, "baseline politeness").message
    assert gone.outcome == "fail"


def test_few_scored_rollouts_keep_a_comparison_from_passing() -> None:
    run = swept({id_: [1.0] * 4 for id_ in MANY})
    before = from_run(rated(run, {id_: [0.5] * 4 for id_ in MANY}), "main")
    found = verdict(rated(run, {id_: [0.9] for id_ in MANY}), before, metric="politeness", margin=0.1)
    assert found.outcome == "inconclusive"
    assert "40 of 160 rollouts have a score" in rule(found, "baseline politeness").message


def test_an_error_counts_as_the_worst_figure_of_a_metric() -> None:
    before = from_run(mannered(0.7), "main")
    broken = rated(
        swept({id_: [1.0 if n % 2 else None] for n, id_ in enumerate(MANY)}), {id_: [0.7] for id_ in MANY}
    )
    found = verdict(broken, before, metric="politeness", margin=0.05)
    assert found.outcome == "fail"
    assert rule(found, "baseline politeness").figures["errors_as_zero"]["difference"] < -0.3


def test_a_metric_is_compared_in_each_domain_and_with_the_own_control() -> None:
    run = rated(BOTH, {id_: [0.9] for id_ in domains(1, 1)})
    worse = rated(BOTH, {id_: [0.9 if id_.startswith("text") else 0.1] for id_ in domains(1, 1)})
    found = verdict(worse, from_run(run, "main"), metric="politeness", margin=0.1, per_domain=True)
    assert rule(found, "baseline politeness (text)").outcome == "pass"
    assert rule(found, "baseline politeness (dates)").outcome == "fail"
    both = make_run({id_: [1.0] for id_ in MANY}, {id_: [1.0] for id_ in MANY}, {"t": [1.0, 0.0]})
    gained = rated(both, {id_: [0.5] for id_ in MANY})
    result = rule(verdict(gained, metric="politeness", gain=True), "gain politeness")
    assert result.figures["difference"] == 0.0


# selection


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        ({"domains": ("text",), "tags": ("long",)}, None),
        ({"domains": ("dates",)}, "domains"),
        ({"tags": ("easy",)}, "tags"),
        ({"domains": ("text",), "tags": ("short",)}, "selects no eval scenario"),
    ],
)
def test_a_gate_selects_from_the_eval_split_alone(selection: dict[str, Any], told: str | None) -> None:
    suite = [
        make_scenario("a", split="eval", domain="text", tags=("long",)),
        make_scenario("b", split="eval", domain="code", tags=("short",)),
        make_scenario("c", split="train", domain="dates", tags=("easy",)),
    ]
    gates = [NamedGate(name="mine", **selection)]
    if told is None:
        require_selections(gates, suite)
        return
    with pytest.raises(SettingError, match=told):
        require_selections(gates, suite)


def test_a_gate_judges_its_selection_alone() -> None:
    run = swept(domains(1.0, 0.0))
    assert verdict(run, domains=("text",), min_mean=1.0).outcome == "pass"
    assert verdict(run, domains=("dates",), min_mean=0.1).outcome == "fail"
    assert verdict(run, min_mean=0.5).outcome == "pass"
    assert verdict(run, domains=("text",), min_mean=1.0).scenarios == 60


def test_a_tag_selects_and_both_must_fit() -> None:
    run = swept(domains(1.0, 0.0))
    tagged = replace(
        run,
        scenarios=tuple(replace(s, tags=("smoke",)) if s.id.endswith("7") else s for s in run.scenarios),
    )
    assert verdict(tagged, tags=("smoke",), min_mean=0.5).scenarios == 12
    assert verdict(tagged, tags=("smoke",), domains=("dates",), min_mean=0.1).outcome == "fail"


def test_errors_and_cost_are_those_of_the_selection() -> None:
    run = swept({**evenly(12, [1], "text"), **evenly(12, [None, 1], "date")})
    assert verdict(run, domains=("text",), max_errors=0).outcome == "pass"
    assert verdict(run, domains=("dates",), max_errors=11).outcome == "fail"
    assert verdict(run, domains=("text",), max_cost_per_success_usd=0.001).outcome == "pass"
    assert verdict(run, domains=("dates",), max_cost_per_success_usd=0.001).outcome == "fail"


def test_a_baseline_is_cut_to_the_selection() -> None:
    found = verdict(BOTH, stored(domains(0.9, 0.1), BOTH), domains=("text",))
    assert rule(found, "baseline").figures["n"] == 60
    assert "made with other scenarios" not in rule(found, "baseline").message


def test_what_the_suite_lost_belongs_to_the_selection_by_its_domain() -> None:
    before = from_run(BOTH, "main")
    fewer = swept(
        {
            id_: row
            for id_, row in domains(0.9, 0.9).items()
            if not id_.startswith("date") or id_[-1] in "0123"
        },
        scenarios=tuple(s for s in BOTH.scenarios if s.domain == "text" or s.id[-1] in "0123"),
    )
    dates = rule(verdict(fewer, before, domains=("dates",)), "baseline")
    assert (dates.outcome, dates.figures["share"]) == ("fail", pytest.approx(0.4))
    assert len(dates.figures["lost"]) == round(0.6 * dates.figures["n"] / 0.4)
    assert rule(verdict(fewer, before, domains=("text",)), "baseline").figures["share"] == 1


# settings and limits


def test_margin_and_strictness_fall_back_on_the_settings_and_limits_do_not() -> None:
    run = swept(evenly(40, [1]))
    base = from_run(run, "main")
    assert rule(verdict(run, base), "baseline").figures["margin"] == SETTINGS["gate_margin"]
    assert rule(verdict(run, base, margin=0.2), "baseline").figures["margin"] == 0.2
    assert [(v.baseline, v.margin) for v in (verdict(run, base, margin=0.2), verdict(run))] == [
        ("main", 0.2),
        ("", SETTINGS["gate_margin"]),
    ]
    assert verdict(run, base).outcome == "inconclusive"
    assert verdict(run, base, strict=True).outcome == "fail"
    strict = judge_named(run, OpenGate(NamedGate(name="x"), base), {**SETTINGS, "gate_strict": True})
    assert (strict.outcome, strict.strict) == ("fail", True)
    lenient = {**SETTINGS, "gate_strict": True, "gate_min_mean": 2.0}
    assert judge_named(run, OpenGate(NamedGate(name="x", strict=False), base), lenient).outcome != "fail"
    failed = swept({**evenly(40, [1]), "broken": [None]})
    none_allowed = OpenGate(NamedGate(name="x", max_errors=0))
    assert judge_named(failed, none_allowed, {**SETTINGS, "gate_max_errors": 5}).outcome == "fail"


def test_the_gain_is_judged_only_where_it_is_asked_for() -> None:
    worse = make_run(evenly(60, [1]), evenly(60, [0]))
    assert verdict(worse, gain=True).outcome == "fail"
    assert verdict(worse, min_mean=0.0).outcome == "pass"


def test_a_gate_that_only_warns_fails_without_failing_the_run() -> None:
    found = verdict(swept(evenly(12, [0])), severity="warn", min_mean=0.5)
    assert (found.outcome, found.failed) == ("fail", False)


# closed


def test_an_incomplete_run_closes_every_gate() -> None:
    run = replace(BOTH, status="incomplete", reason="budget_usd of 1 is used up")
    assert verdict(run, domains=("text",), min_mean=0.1).outcome == "fail"


def test_a_sweep_that_lacks_groups_closes_the_gate_they_belong_to() -> None:
    last = BOTH.phases[-1]
    cut = replace(last, groups=tuple(g for g in last.groups if g.domain == "text"))
    run = replace(BOTH, phases=(cut,))
    assert verdict(run, domains=("dates",), min_mean=0.1).outcome == "fail"
    assert judge(run, baseline=None, settings=SETTINGS).outcome == "fail"


def test_a_part_of_the_suite_is_never_a_pass() -> None:
    run = replace(BOTH, partial_selection=True)
    for fields in ({}, {"per_domain": True}):
        found = verdict(run, from_run(BOTH, "main"), min_mean=0.1, **fields)
        assert found.outcome == "inconclusive"
        assert {r.outcome for r in found.results} == {"not_judged"}


@pytest.mark.parametrize("per_domain", [False, True])
def test_a_gate_that_breaks_fails(monkeypatch: pytest.MonkeyPatch, per_domain: bool) -> None:
    def broken(*_: object) -> RuleResult:
        raise ZeroDivisionError("oh\x1b[2J")

    monkeypatch.setattr(rules, "judge_minimum", broken)
    found = verdict(BOTH, min_mean=0.1, per_domain=per_domain)
    assert (found.outcome, found.failed) == ("fail", True)
    assert found.results[0].message == "the rule raised ZeroDivisionError: oh\\x1b[2J"


def test_a_built_in_rule_that_breaks_fails_the_default_gate() -> None:
    found = judge(BOTH, baseline=None, settings={**SETTINGS, "gate_min_mean": "high"})
    assert found.failed
    assert {r.name for r in found.results if r.outcome == "fail"} == {"minimum"}


# by domain


def test_a_good_domain_does_not_hide_a_bad_one() -> None:
    run = swept(domains(1.0, 0.5))
    base = stored(domains(0.6, 0.9), run)
    assert rule(verdict(run, base), "baseline").outcome != "fail"
    found = verdict(run, base, per_domain=True)
    assert rule(found, "baseline (text)").outcome == "pass"
    assert rule(found, "baseline (dates)").outcome == "fail"
    assert rule(found, "baseline (dates)").figures["p_holm"] < 0.025
    assert found.outcome == "fail"


def test_a_minimum_holds_in_each_domain() -> None:
    found = verdict(swept(domains(1.0, 0.5)), min_mean=0.7, per_domain=True)
    assert rule(found, "minimum mean (text)").outcome == "pass"
    assert rule(found, "minimum mean (dates)").outcome == "fail"


def test_the_gain_is_judged_in_each_domain() -> None:
    found = verdict(make_run(domains(0.2, 0.9), domains(1.0, 0.4)), per_domain=True, gain=True)
    assert rule(found, "gain (text)").outcome == "pass"
    assert rule(found, "gain (dates)").outcome == "fail"


def many(lost: int, of: int = 8, n: int = 20) -> tuple[Run, Baseline]:
    """Return a run of several domains, in the first of which `lost` scenarios fell, and its baseline."""
    credited: dict[str, Credits] = {f"d{d}-{i}": [1] for d in range(of) for i in range(n)}
    run = swept(credited)
    scenarios = tuple(replace(s, domain=s.id.partition("-")[0]) for s in run.scenarios)
    fallen = {
        id_: [0.0] if id_.startswith("d0-") and int(id_[3:]) < lost else row for id_, row in credited.items()
    }
    after = make_run(final=fallen, scenarios=scenarios)
    return _in_domains(after), from_run(_in_domains(make_run(final=credited, scenarios=scenarios)), "main")


def _in_domains(run: Run) -> Run:
    """Return `run` with the domain of each group as its scenario says."""
    of = {s.id: s.domain for s in run.scenarios}
    phases = tuple(
        replace(p, groups=tuple(replace(g, domain=of[g.scenario_id]) for g in p.groups)) for p in run.phases
    )
    return replace(run, phases=phases)


def test_a_drop_that_may_be_chance_among_many_domains_is_open() -> None:
    run, base = many(lost=7)
    alone = rule(verdict(run, base, per_domain=True, domains=("d0",)), "baseline (d0)")
    among = rule(verdict(run, base, per_domain=True), "baseline (d0)")
    assert alone.figures["answer"] == "worse"
    assert (among.figures["answer"], among.figures["p_holm"]) == (
        "unseen",
        pytest.approx(8 * alone.figures["p_worse"]),
    )
    assert "with 8 comparisons, such a drop may be chance" in among.advice
    assert among.message.startswith("cannot see a drop of 0.15: -0.350 ")
    for alarm in (0.9, 1.0):
        warned = rule(verdict(run, base, per_domain=True, alarm=alarm), "baseline (d0)")
        assert (warned.outcome, warned.figures["answer"]) == ("inconclusive", "open")
    assert rule(verdict(*many(lost=16), per_domain=True), "baseline (d0)").outcome == "fail"


def test_too_few_scenarios_in_a_domain_say_how_many_would_do() -> None:
    run = swept({**evenly(40, [1], "text"), **evenly(4, [1], "date")})
    found = rule(verdict(run, from_run(run, "main"), per_domain=True), "baseline (dates)")
    settled = found.figures["settled_by"]
    assert (found.outcome, found.figures["answer"], settled >= 10) == ("fail", "unseen", True)
    assert found.advice == (
        f"4 scenarios are too few: about {settled} eval scenarios of the domain would be enough "
        "in 4 of 5 runs"
    )


def test_a_domain_that_the_suite_lost_fails_by_itself() -> None:
    run = swept(evenly(60, [1], "text"))
    found = verdict(run, from_run(BOTH, "main"), per_domain=True)
    assert rule(found, "baseline (dates)").outcome == "fail"
    assert "of the baseline are no longer in the eval split" in rule(found, "baseline (dates)").message
    assert rule(found, "baseline (text)").outcome == "pass"


def test_a_baseline_without_domains_takes_them_from_the_suite() -> None:
    base = from_run(BOTH, "main")
    old = replace(base, scenarios={id_: replace(row, domain="") for id_, row in base.scenarios.items()})
    new, same = (verdict(BOTH, b, per_domain=True) for b in (base, old))
    assert to_wire(new) == to_wire(same)
    gone = {"gone": next(iter(old.scenarios.values()))}
    more = verdict(BOTH, replace(old, scenarios={**old.scenarios, **gone}), per_domain=True)
    assert [result.name for result in more.results] == [result.name for result in new.results]


# in words


def reported(run: Run, *gates: NamedGate) -> dict[str, Any]:
    found: Verdict = judge(run, baseline=None, settings=SETTINGS)
    found = replace(found, gates=tuple(judge_named(run, OpenGate(g), SETTINGS) for g in gates))
    return build(run, found)


GATES = (
    NamedGate(name="fine", min_mean=0.1),
    NamedGate(name="watched", severity="warn", min_mean=0.95),
    NamedGate(name="broken", min_mean=0.99),
)


def test_failed_gates_come_first_and_the_default_gate_stays_last_among_equals() -> None:
    lines = gate_lines(reported(BOTH, *GATES)["gate"], 80, every=False, quiet=False)
    heads = [line for line in lines if line.startswith("gate")]
    assert heads == [
        "gate broken  FAILED",
        "gate watched  FAILED (severity warn: the run does not fail)",
        "gate fine  passed, 120 scenarios",
        "gate  passed",
    ]
    place = lines.index("gate fine  passed, 120 scenarios")
    assert lines[place + 1] == "gate  passed"


def test_gates_read_well(golden: Callable[[str, str], None]) -> None:
    run = make_run(domains(0.9, 0.9), domains(0.95, 0.3))
    gates = (*GATES, NamedGate(name="domains", per_domain=True, min_mean=0.2, gain=True))
    report = reported(run, *gates)
    blocks = [gate_lines(report["gate"], 80, every=every, quiet=False) for every in (False, True)]
    told = github.notes(report, {"GITHUB_ACTIONS": "true"})
    golden("gates.txt", "\n".join([*blocks[0], "", *blocks[1], "", *told]) + "\n")
    golden("gates.md", summary(report).partition("\n\nGain ")[0] + "\n")


def test_rules_that_one_reason_kept_from_being_judged_are_told_as_one() -> None:
    whole = reported(BOTH)["gate"]
    part = {"outcome": "not_judged", "message": "only a part", "advice": ""}
    gate = {**whole, "results": [{**part, "name": "complete"}, {**part, "name": "gain"}]}
    told = gate_lines(gate, 80, every=False, quiet=False)
    assert told[1:] == ["  not checked   complete, gain: only a part"]
    assert len(gate_lines(gate, 80, every=True, quiet=False)) == 3


def test_all_gates_come_to_the_worst_and_a_warning_to_an_open_question() -> None:
    for gates, expected in ((GATES, "fail"), (GATES[:2], "inconclusive"), (GATES[:1], "pass"), ((), "pass")):
        assert overall(reported(BOTH, *gates)["gate"]) == expected


def test_a_report_made_before_there_were_named_gates_reads_as_ever() -> None:
    gate = reported(BOTH)["gate"]
    old = {key: value for key, value in gate.items() if key != "gates"}
    assert gate_lines(old, 80, every=True, quiet=False) == gate_lines(gate, 80, every=True, quiet=False)
    assert overall(old) == "pass"


def test_the_report_fits_its_schema_and_keeps_what_old_readers_read() -> None:
    report = reported(BOTH, *GATES)
    assert violations("report", report) == []
    assert report["gate"]["outcome"] == "pass"
    assert [gate["name"] for gate in report["gate"]["gates"]] == ["fine", "watched", "broken"]


HOSTILE = "x|`y`\n::error::pwned <script>@everyone \x1b[31m"


def test_hostile_text_of_a_gate_stays_text() -> None:
    report = reported(BOTH, *GATES)
    for gate in report["gate"]["gates"]:
        for result in gate["results"]:
            result |= {"name": HOSTILE, "message": HOSTILE, "advice": HOSTILE}
    page = summary(report)
    assert "<script>" not in page
    assert "@everyone" not in page.replace("\\@everyone", "")
    assert all("pwned" not in line or line.startswith("| ") for line in page.splitlines())
    lines = gate_lines(report["gate"], 80, every=True, quiet=False)
    assert not any(line.lstrip().startswith("::") or "\x1b" in line for line in lines)


GATE_LINES = st.sampled_from(
    [
        "",
        "# a gate",
        "b: {min_mean: 0.5}",
        "b: {severity: warn}",
        "b: {min_mean: 7}",
        "c: {metric: pass}",
        "a: {}",
        "b: [",
    ]
)


@reaches("gates", "an error")
@settings(max_examples=50)
@given(st.text() | GATE_LINES | st.lists(GATE_LINES, max_size=3).map("\n  ".join))
def test_whatever_is_in_the_file_it_is_gates_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("gates") / "gates.yaml"
    path.write_text(f"gates:\n  a: {{min_mean: 1}}\n  {text}", encoding="utf-8", errors="replace")
    try:
        said = load_gates(Path(path))[0].error("").args[0]
        reached("gates")
    except SettingError as error:
        reached("an error")
        said = str(error)
    assert said.startswith(f"gates: {path}:")


def test_the_page_of_a_report_shows_every_gate() -> None:
    page = html(reported(BOTH, *GATES))
    assert "<strong>Gate broken FAILED</strong>" in page
    assert "<strong>Gate watched FAILED</strong> (severity warn: the run does not fail)" in page
    assert "<strong>Gate fine passed</strong>, 120 scenarios" in page
    assert '<section class="verdict fail" aria-label="gate">' in page


def test_what_the_suite_lost_is_of_no_gate_with_tags() -> None:
    before = from_run(BOTH, "main")
    kept = tuple(replace(s, tags=("smoke",)) for s in BOTH.scenarios if s.domain == "text")
    fewer = swept(
        {id_: row for id_, row in domains(0.9, 0.9).items() if id_.startswith("text")}, scenarios=kept
    )
    assert "lost" in rule(verdict(fewer, before), "baseline").figures
    assert "lost" not in rule(verdict(fewer, before, tags=("smoke",)), "baseline").figures
