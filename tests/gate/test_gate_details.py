"""Details of the gate, each by a direct call: keys, limits, the second of several, files of gates."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario
from support.sweeps import SETTINGS, evenly, make_run, rated, rule, swept, with_placebo

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.named_scores import MetricScale
from pytest_tfgrpo.core.records import Reference, Run
from pytest_tfgrpo.gate import looks, sample_size
from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.by_domain import _with_n, restricted
from pytest_tfgrpo.gate.config import NamedGate, load_gates, require_selections, resolve_metrics
from pytest_tfgrpo.gate.difference import Bar, judge_difference
from pytest_tfgrpo.gate.early_stop import _deciding
from pytest_tfgrpo.gate.named_gates import OpenGate, has_rules, judge_named
from pytest_tfgrpo.gate.pooling import pooled
from pytest_tfgrpo.gate.result import MIN_SCENARIOS, RuleResult
from pytest_tfgrpo.gate.sequential import WatchedBar, open_watch, watch_for
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.suite.families import sweeps_of


@pytest.mark.parametrize(
    ("fields", "compares"),
    [
        ({}, True),
        ({"baseline": "none"}, True),
        ({"metric": "tone"}, False),
        ({"metric": "tone", "margin": 0.1}, True),
        ({"metric": "tone", "alarm": 0.1}, True),
        ({"metric": "tone", "baseline": "main"}, True),
        ({"metric": "tone", "baseline": "none", "margin": 0.1}, False),
    ],
)
def test_a_gate_of_a_metric_compares_where_it_says_with_what(fields: dict[str, Any], compares: bool) -> None:
    assert NamedGate(name="g", **fields).compares is compares


@pytest.mark.parametrize(
    ("fields", "settings", "learning", "found"),
    [
        ({}, {}, True, False),
        ({"gain": True}, {}, True, True),
        ({"gain": True}, {}, False, False),
        ({"gain": True, "max_errors": 0}, {}, False, True),
        ({"min_mean": 0.0}, {}, False, True),
        ({"max_cost_per_success_usd": 0.0}, {}, False, True),
        ({}, {"baseline": "main"}, False, True),
        ({"baseline": "none"}, {"baseline": "main"}, False, False),
    ],
)
def test_a_gate_has_something_to_judge_or_not(
    fields: dict[str, Any], settings: dict[str, Any], learning: bool, found: bool
) -> None:
    assert has_rules(NamedGate(name="g", **fields), {**SETTINGS, **settings}, learning=learning) is found


def test_a_domain_or_tag_that_no_eval_scenario_has_is_named_with_the_nearest() -> None:
    known = [
        make_scenario("a", domain="dates", tags=("slow",), split="eval"),
        make_scenario("t", domain="texts", split="train"),
    ]
    require_selections([NamedGate(name="g", domains=("dates",), tags=("slow",))], known)
    with pytest.raises(SettingError, match="#/gates/g/domains: no eval scenario has the domain 'date'; did"):
        require_selections([NamedGate(name="f"), NamedGate(name="g", domains=("dates", "date"))], known)
    with pytest.raises(SettingError, match="#/gates/g/domains: no eval scenario has the domain 'texts'"):
        require_selections([NamedGate(name="g", domains=("texts",))], known)
    with pytest.raises(SettingError, match="#/gates/g/tags: no eval scenario has the tag 'slo'"):
        require_selections([NamedGate(name="g", tags=("slo",))], known)


@pytest.mark.parametrize(("name", "fits"), [("a" * 64, True), ("a" * 65, False), ("a b", False)])
def test_a_gate_is_named_as_an_item_can_be(tmp_path: Path, name: str, fits: bool) -> None:
    file = tmp_path / "gates.yaml"
    file.write_text(f"gates:\n  first: {{min_mean: 0.5}}\n  {name}: {{min_mean: 0.5}}\n")
    if fits:
        assert [gate.name for gate in load_gates(file)] == ["first", name]
    else:
        with pytest.raises(SettingError, match=r"gates.yaml:3: #/gates/a.*must be 1 to 64 letters"):
            load_gates(file)


def test_what_is_wrong_with_a_gate_is_placed_at_the_line_of_its_key(tmp_path: Path) -> None:
    file = tmp_path / "gates.yaml"
    file.write_text("gates:\n  one: {min_mean: 1}\n  two:\n    min_mean: 1\n    tags: [slow]\n")
    one, two = load_gates(file)
    told = [two.error("x", "tags"), two.error("x"), two.error("x", "domains"), one.error("x", "min_mean")]
    assert [str(error).removeprefix(f"gates: {file}:") for error in told] == [
        "5: #/gates/two/tags: x",
        "3: #/gates/two: x",
        "3: #/gates/two/domains: x",
        "2: #/gates/one/min_mean: x",
    ]
    assert str(NamedGate(name="g").error("x")).startswith("gates: :1: #/gates/g: ")
    file.write_text("gates:\n  one: {metric: tone}\n  two: {metric: tone}\n")
    with pytest.raises(SettingError) as refusal:
        load_gates(file)
    assert [text.split(": ")[2] for text in str(refusal.value).splitlines()] == [
        "#/gates/one/metric",
        "#/gates/two/metric",
    ]


def test_names_of_metrics_are_completed_by_what_the_eval_split_has() -> None:
    tested = make_scenario("t", checks=(), checker="t.py::test_t", split="eval")
    plain = make_scenario("p", split="eval")

    def named(metric: str, *scenarios: Any, rewarders: tuple[str, ...] = ("style",)) -> str | None:
        gate = NamedGate(name="g", metric=metric, min_mean=0.5)
        return resolve_metrics([gate], rewarders, scenarios, judged=False)[0].metric

    assert named("tone", tested) == "test.tone"
    assert named("test", tested) == "check.test"
    assert named("check.test", tested) == "check.test"
    assert named("style", plain) == "style"
    assert named("style.wit", plain) == "style.wit"
    assert named("extra.sure", plain) == "extra.sure"
    for metric in ("tone", "test.tone", "test", "other.wit"):
        with pytest.raises(SettingError, match="nothing in this run reports the metric"):
            named(metric, plain)
    with pytest.raises(SettingError, match="nothing in this run"):
        named("tone", replace(tested, split="train"))
    with pytest.raises(SettingError, match="#/gates/g/metric: nothing in this run"):
        named("gt_score.x", plain)


def test_the_shares_of_the_looks_are_the_level_and_few_unchanged_builds_may_be_red() -> None:
    assert sum(looks.SHARES) == pytest.approx(1.0)
    assert looks.TIMES == (1, 2, 4)
    assert (looks.ALPHA, sample_size.MOST_RED) == (0.025, 0.04)


@pytest.mark.parametrize(
    ("changes", "planned"),
    [
        ({}, (2, 4, 8)),
        ({"partial_selection": True}, (2,)),
        ({"scenarios": (make_scenario("s0", split="eval", checker="t.py::t"),)}, (2,)),
        ({"scenarios": (make_scenario("s0", split="train", checker="t.py::t"),)}, (2, 4, 8)),
        ({"settings": {**SETTINGS, "gate_extend": True, "gate_sequential": True}}, (2,)),
        ({"settings": {**SETTINGS, "gate_extend": False}}, (2,)),
    ],
)
def test_more_looks_are_planned_where_more_rollouts_of_the_same_scenarios_can_be_had(
    changes: dict[str, Any], planned: tuple[int, ...]
) -> None:
    run = make_run(None, evenly(12, [1, 0]), settings={**SETTINGS, "gate_extend": True})
    assert looks.planned_rollouts(replace(run, **changes), 2, stored=True) == planned
    assert looks.planned_rollouts(replace(run, **changes), 2, stored=False) == (2,)


@pytest.mark.parametrize(("n", "outcome"), [(15, "pass"), (16, "inconclusive")])
def test_four_of_five_scenarios_in_common_are_enough(n: int, outcome: str) -> None:
    before = sweeps_of(swept(evenly(12, [0.0, 0.0]))).rows_after
    after = looks.one_look(sweeps_of(swept(evenly(n, [1.0, 1.0]))).rows_after)
    assert judge_difference("x", before, after, Bar(margin=0.05)).outcome == outcome


def test_a_part_of_a_run_keeps_shared_and_skipped_scenarios_of_its_own_alone() -> None:
    run = make_run(evenly(2, [1]) | {"date0": [1]}, evenly(2, [1]) | {"date0": [1]})
    before, after = run.phases
    after = replace(after, excluded=("s1", "date0"), settled=("s0", "date0"), shared=after.groups)
    part = restricted(replace(run, phases=(before, after)), lambda s: s.domain == "dates").phases[1]
    assert (part.excluded, part.settled, part.phase.scenarios) == (("date0",), ("date0",), ("date0",))
    assert [g.scenario_id for g in (*part.shared, *part.groups)] == ["date0", "date0"]


def tallied(n: int, after: float = 0.5) -> tuple[Any, Any]:
    before, later = (sweeps_of(swept(evenly(n, [x, 1.0]))).rows_after for x in (1.0, after))
    return before, later


@pytest.mark.parametrize(
    ("figures", "advised"),
    [
        ({"answer": "open", "n": 5, "share": 0.8}, True),
        ({"answer": "unseen", "n": MIN_SCENARIOS - 1, "share": 1.0}, True),
        ({"answer": "open", "n": MIN_SCENARIOS, "share": 1.0}, False),
        ({"answer": "open", "n": 5, "share": 0.79}, False),
        ({"answer": "worse", "n": 5, "share": 1.0}, False),
        ({}, False),
    ],
)
def test_a_domain_of_too_few_scenarios_says_how_many_would_do(figures: dict[str, Any], advised: bool) -> None:
    found = _with_n(RuleResult(name="gain", outcome="fail", message="", figures=figures), tallied(5), 0.05)
    assert ("5 scenarios are too few: about 17 eval" in found.advice) is (advised and figures["n"] == 5)
    assert found.figures.get("settled_by", 0) >= (MIN_SCENARIOS if advised else 0)
    assert ("settled_by" in found.figures) is advised
    lost = _with_n(
        RuleResult(name="gain", outcome="fail", message="", figures=figures), tallied(5, 0.0), 0.05
    )
    assert lost.figures.get("settled_by") == (MIN_SCENARIOS if advised else None), (
        "no number settles such a drop"
    )


def test_a_comparison_with_the_reference_needs_a_gate_that_runs_one() -> None:
    reference = Reference(
        name="old", kind="library", stamp="e" * 64, library=Library(hash="d" * 64), packs=()
    )
    run = replace(make_run(evenly(12, [1, 1]), evenly(12, [0, 0]), {"t": [1]}), reference=reference)
    gate = NamedGate(name="g", gain=True, max_errors=0)
    closed, opened = (judge_named(run, OpenGate(gate, None, live), SETTINGS) for live in (False, True))
    assert rule(closed, "gain").outcome == "fail"
    assert [one.name for one in closed.results] == ["complete", "gain", "errors"]
    assert rule(opened, "gain").message == "the baseline sweep is that of the reference"
    assert rule(opened, "baseline").outcome == "fail"


def test_a_placebo_reference_without_any_group_is_not_judged() -> None:
    reference = Reference(name="p", kind="placebo", stamp="e" * 64, library=Library(hash="d" * 64), packs=())
    run = replace(make_run({}, evenly(12, [1, 1])), reference=reference)
    found = rule(judge(run, baseline=None, settings=SETTINGS), "baseline")
    assert (found.outcome, found.message[:20]) == ("not_judged", "placebo not possible")
    other = replace(run, reference=replace(reference, kind="library"))
    assert rule(judge(other, baseline=None, settings=SETTINGS), "baseline").outcome == "fail"
    whole = replace(make_run(evenly(12, [1, 1]), evenly(12, [1, 1])), reference=reference)
    assert rule(judge(whole, baseline=None, settings=SETTINGS), "baseline").outcome != "not_judged"


def test_a_reference_is_compared_with_a_final_sweep_that_ended_alone() -> None:
    library = Library(hash="d" * 64)
    reference = Reference(name="old", kind="library", stamp="e" * 64, library=library, packs=())
    run = replace(make_run(evenly(12, [1, 1]), evenly(12, [1, 1])), reference=reference)
    before, after = run.phases
    for changed, told in (
        ({"phases": (before, replace(after, status="cancelled"))}, "the final sweep did not end"),
        ({"phases": (before,)}, "the run has no final sweep"),
        ({"phases": (after,)}, "the run has no sweep of the reference"),
        ({"partial_selection": True}, "only part of the suite was selected"),
    ):
        found = rule(judge(replace(run, **changed), baseline=None, settings=SETTINGS), "baseline")
        assert (found.outcome, found.message) == ("not_judged", told)


NO_CONTROL = "the run has no baseline sweep"
NOTHING_LEARNED = "no train scenario, so nothing was learned and one sweep is enough"


def swept_at(epoch: int) -> Run:
    run = make_run(None, evenly(12, [1, 1]))
    return replace(run, phases=(replace(run.phases[0], phase=replace(run.phases[0].phase, epoch=epoch)),))


@pytest.mark.parametrize(
    ("run", "outcome", "message", "advice"),
    [
        (
            make_run(train={"t": [1, 0]}),
            "not_judged",
            "no eval scenario, so nothing was measured",
            "set split: eval for some scenarios",
        ),
        (
            make_run(train={"t": [1, 0]}, partial_selection=True),
            "skipped",
            NO_CONTROL,
            "",
        ),
        (make_run(train={"t": [1, 0]}, status="incomplete"), "skipped", NO_CONTROL, ""),
        (
            make_run(None, evenly(12, [1, 1]), {"t": [1, 0]}),
            "skipped",
            NO_CONTROL,
            "",
        ),
        (swept_at(2), "skipped", NOTHING_LEARNED, "set split: train for some scenarios"),
        (swept_at(1), "skipped", NO_CONTROL, ""),
    ],
    ids=["no eval", "no eval of a part", "no eval yet", "no control", "no train", "plain"],
)
def test_a_run_without_a_baseline_sweep_says_what_is_missing_to_see_a_gain(
    run: Run, outcome: str, message: str, advice: str
) -> None:
    found = rule(judge(run, baseline=None, settings=SETTINGS), "gain")
    assert (found.outcome, found.message, found.advice) == (outcome, message, advice)


def test_a_gate_that_breaks_fails_by_its_name() -> None:
    run: Any = replace(swept(evenly(12, [1, 1])), phases=(None,))
    found = judge_named(run, OpenGate(NamedGate(name="g", min_mean=0.5)), SETTINGS)
    (result,) = found.results
    assert (found.outcome, result.name, result.outcome) == ("fail", "gate", "fail")
    assert result.message.startswith("the rule raised AttributeError: ")


SOLVED = [1.0, 1.0]


@pytest.mark.parametrize(
    ("final", "placebo", "outcome", "start"),
    [
        (0, 20, "fail", "worse than placebo: gain over no lessons +0.000, over placebo "),
        (20, 20, "inconclusive", "any text does this: gain over no lessons +1.000, over placebo "),
        (10, 5, "inconclusive", "not shown better than placebo: gain over no lessons +0.500, over placebo "),
        (2, 2, "pass", "gain over no lessons +0.100, over placebo "),
    ],
)
def test_a_gain_is_compared_with_what_any_text_does(
    final: int, placebo: int, outcome: str, start: str
) -> None:
    rows = [{**evenly(20, [0.0, 0.0]), **evenly(solved, SOLVED)} for solved in (final, placebo)]
    run = with_placebo(make_run(evenly(20, [0, 0]), rows[0], {"t": [1, 0]}), rows[1])
    found = rule(judge(run, baseline=None, settings=SETTINGS), "placebo")
    assert (found.outcome, found.message[: len(start)]) == (outcome, start)
    assert bool(found.advice) is (outcome != "pass")
    named = judge_named(run, OpenGate(NamedGate(name="g", gain=True)), SETTINGS)
    assert rule(named, "placebo") == found


def with_finish(run: Run, day: int, run_id: str) -> Run:
    return replace(run, run_id=run_id, finished_at=f"2026-02-{day:02d}T00:00:00.000Z")


def polite(day: int, scores: list[float | None], scale: MetricScale | None = None) -> Baseline:
    run = rated(swept({f"s{n}": [*one, None] for n, one in enumerate(([1.0], [0.0]))}), {"s0": scores})
    found = from_run(with_finish(run, day, f"run{day}"), "main")
    return replace(found, metrics={"politeness": scale}) if scale else found


def test_pooled_tallies_add_errors_and_metrics_of_one_scale() -> None:
    one, two = polite(1, [0.5, None]), polite(2, [1.0, None])
    row = pooled(two, [one]).scenarios["s0"]
    assert (row.n, row.errors, row.sum) == (2, 2, 2.0)
    assert row.metrics["politeness"] == (2.0, 1.5, 1.25)
    bare = replace(one, scenarios={id_: replace(row, metrics={}) for id_, row in one.scenarios.items()})
    assert pooled(two, [bare]).scenarios["s0"].metrics["politeness"] == (1.0, 1.0, 1.0)
    other = polite(1, [0.5, None], MetricScale(unit="points", most=10.0))
    assert pooled(two, [other]).scenarios["s0"].metrics["politeness"] == (1.0, 1.0, 1.0)


def test_of_two_readings_the_worse_one_decides_what_a_watched_rule_says() -> None:
    class Reading:
        def __init__(self, finding: str) -> None:
            self.finding = finding

    class Rule:
        def __init__(self, *findings: str) -> None:
            self.readings = [Reading(finding) for finding in findings]

    for findings, worst in (
        (("pass", "fail"), "fail"),
        (("open", "pass"), "open"),
        (("fail", "open"), "fail"),
    ):
        found: Any = _deciding(Rule(*findings))  # type: ignore[arg-type]
        assert found.finding == worst


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({}, ""),
        ({"gate_max_errors": 3}, "gate_max_errors can only be checked at the end"),
        (
            {"gate_max_cost_per_success_usd": 1.0},
            "gate_max_cost_per_success_usd can only be checked at the end",
        ),
        ({"gate_max_errors": 3, "gate_max_cost_per_success_usd": 1.0}, "gate_max_errors can only"),
    ],
)
def test_a_limit_that_holds_at_the_end_alone_keeps_a_watch_open(changes: dict[str, Any], needs: str) -> None:
    run = make_run(None, evenly(12, [1, 0]))
    watch = open_watch(
        settings={**SETTINGS, "gate_min_mean": 0.25, **changes},
        scenarios=run.scenarios,
        phase=run.phases[0].phase,
        library="b" * 64,
        earlier=None,
        baseline=None,
        against=False,
        stamps={},
    )
    assert watch is not None
    assert watch.needs_end.startswith(needs)
    assert bool(watch.needs_end) is bool(needs)
    (only,) = watch.rules
    assert (only.name, only.bar) == ("minimum mean", WatchedBar(at=0.25, difference=False))


def test_a_sweep_is_watched_in_the_final_phase_of_a_whole_suite_alone() -> None:
    run = make_run(evenly(12, [1, 0]), evenly(12, [1, 0]), settings={**SETTINGS, "gate_sequential": True})
    first, last = (result.phase for result in run.phases)
    assert watch_for(run)(last, run.phases[:1], "c" * 64) is not None
    assert watch_for(run)(first, (), "c" * 64) is None
    assert watch_for(run, foreign_rules=True)(last, run.phases[:1], "c" * 64) is None
    assert watch_for(replace(run, partial_selection=True))(last, run.phases[:1], "c" * 64) is None
    off = replace(run, settings=SETTINGS)
    assert watch_for(off)(last, run.phases[:1], "c" * 64) is None
    assert watch_for(run)(last, run.phases[:1], run.phases[0].library_hash) is None, (
        "one library on both sides"
    )


def test_a_recording_that_is_gone_differs_by_an_unknown_digest(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text("x")
    base = replace(from_run(swept({"a": [1]}), "main"), recordings={"r.jsonl": "0" * 64})
    assert "(SHA-256 000000000000, now 2d711642b726)" in base.other_recording("r.jsonl", file)
    assert base.other_recording("another", file) == ""
    file.unlink()
    assert "now unknown)" in base.other_recording("r.jsonl", file)


def test_more_placebo_than_control_is_told_of_the_gain() -> None:
    run = with_placebo(make_run(evenly(20, [0, 0]), evenly(20, [1, 1]), {"t": [1, 0]}), evenly(20, [0, 0]))
    found = rule(judge(run, baseline=None, settings=SETTINGS), "placebo")
    assert found.outcome == "pass"
    assert found.message.startswith("gain over no lessons +1.000, over placebo ")
    assert found.advice == ""
    assert found.figures["difference"] == pytest.approx(1.0)
    half = replace(run, phases=(*run.phases[:-1], replace(run.phases[-1], status="cancelled")))
    assert rule(judge(half, baseline=None, settings=SETTINGS), "placebo").outcome == "not_judged"


def test_a_sweep_that_ended_between_two_looks_says_how_far_it_was_to_go() -> None:
    settings = {**SETTINGS, "eval_rollouts": 2, "gate_extend": True}
    run = make_run(None, evenly(3, [1, 0, 1, 0]) | {"s9": [1, 0]}, settings=settings)
    final = replace(run.phases[0], status="cancelled", reason="interrupted")
    run = replace(run, phases=(replace(final, phase=replace(final.phase, rollouts=4)),))
    base = from_run(swept(evenly(3, [1, 0]) | {"s9": [1, 0]}), "main")
    found = rule(judge(run, baseline=base, settings=settings), "complete")
    assert found.outcome == "fail"
    assert found.message.endswith(
        "is cancelled, 3 of 4 groups are complete, because 2 rollouts of each did not decide the gate and it "
        "needed 4: interrupted"
    )
