"""What the rules of the gate say where one of several counts: skipped ones, the first, another control."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience
from support.sweeps import SETTINGS, Credits, evenly, make_run, rule, swept, with_placebo

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Failure, Group, Reference, Run
from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.difference import Bar, judge_difference, share_level
from pytest_tfgrpo.gate.looks import ALPHA, Look
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.gate.rules import save_again
from pytest_tfgrpo.gate.verdict import Verdict, judge, planned_looks
from pytest_tfgrpo.metrics.comparison import Tally
from pytest_tfgrpo.suite.families import sweeps_of


def verdict(run: Run, baseline: Baseline | None = None, rules: Any = (), **changes: Any) -> Verdict:
    return judge(run, baseline=baseline, settings={**run.settings, **changes}, rules=rules)


# complete


@pytest.mark.parametrize(
    ("skipped", "settled", "outcome", "said"),
    [
        (
            1,
            0,
            "pass",
            "1 of 10 scenarios of epoch2-eval was skipped by their test function (s0), with 2 rol",
        ),
        (
            2,
            0,
            "pass",
            "2 of 10 scenarios of epoch2-eval were skipped by their test function (s0, s1), with 4",
        ),
        (2, 1, "inconclusive", "2 of 9 scenarios of epoch2-eval were skipped"),
    ],
)
def test_skipped_scenarios_are_a_part_of_those_that_were_to_run(
    skipped: int, settled: int, outcome: str, said: str
) -> None:
    run = swept(evenly(10, [1.0, 1.0]))
    sweep, ids = run.phases[0], run.phases[0].phase.scenarios
    groups = sweep.groups[skipped + settled :]
    left = replace(sweep, groups=groups, excluded=ids[:skipped], settled=ids[skipped : skipped + settled])
    found = rule(verdict(replace(run, phases=(left,))), "complete")
    assert found.outcome == outcome
    assert found.message.startswith(f"1 of 1 phases ended; {said}")
    assert found.figures == {"skipped": [*ids[:skipped]], "of": 10 - settled}
    strict = rule(verdict(replace(run, phases=(left,)), gate_strict=True), "complete")
    assert strict.outcome == "inconclusive"


def test_the_first_rollout_of_the_first_scenario_stands_for_a_sweep_without_answers() -> None:
    run = swept(evenly(3, [None, None]))
    traceback = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nOSError: no \x1bdisk'

    def failed(group: Group) -> Group:
        failure = Failure(code="spawn", message=traceback if group.scenario_id == "s0" else "another")
        return replace(group, rollouts=tuple(replace(r, failure=failure) for r in group.rollouts))

    groups = tuple(map(failed, run.phases[0].groups))
    found = rule(verdict(replace(run, phases=(replace(run.phases[0], groups=groups),))), "complete")
    assert found.message == (
        "no rollout of epoch2-eval has an answer that counts; the first one: spawn, OSError: no \\x1bdisk"
    )
    assert found.advice.startswith(f"`tfgrpo show {groups[0].rollouts[0].rollout_id}` prints it")


@pytest.mark.parametrize(
    ("concurrent", "said"), [(True, ", because 2 rollouts of each"), (False, ": cut \\x1b")]
)
def test_a_control_beside_a_sweep_that_goes_on_says_how_far_it_was_to_go(concurrent: bool, said: str) -> None:
    settings = {**SETTINGS, "eval_rollouts": 2, "gate_extend": True}
    before: dict[str, Credits] = {**evenly(3, [1, 0, 1, 0]), "s3": [1, 0]}
    run = make_run(before, evenly(4, [1, 0, 1, 0]), settings=settings)
    control, final = run.phases
    phase = replace(control.phase, concurrent=concurrent)
    cut = replace(control, phase=phase, status="cancelled", reason="cut \x1b")
    found = rule(verdict(replace(run, phases=(cut, final)), from_run(run, "main")), "complete")
    done = 3 if concurrent else 4
    assert found.message.startswith(f"baseline is cancelled, {done} of 4 groups are complete{said}")
    assert found.message.endswith(": cut \\x1b")


def test_words_of_others_cannot_write_to_the_terminal() -> None:
    partial = replace(
        swept(evenly(3, [1])), partial_selection=True, preflight={"partial": "-k \x1b[2J" + "x" * 400}
    )
    found = rule(verdict(partial), "complete").message
    assert found.startswith("only part of the suite was selected: -k \\x1b[2J")
    assert len(found) < 350
    stored = replace(from_run(swept(evenly(3, [1])), "main"), name="a\x1b[2J")
    assert save_again(stored) == "save the baseline again with `tfgrpo baseline save a\\x1b[2J`"
    same = against("\x1b[2J", library="b")
    assert rule(verdict(same), "baseline").message.startswith("the reference library \\x1b[2J (eeee")
    other = against("\x1b[2J", library="d")
    assert "; reference library \\x1b[2J (eeee" in rule(verdict(other), "baseline").message


# a reference, a control and a placebo


def against(name: str, *, library: str) -> Run:
    """Return a run with the sweep of a reference; library ``b`` is that of the final sweep."""
    reference = Reference(
        name=name, kind="library", stamp="e" * 64, library=Library(hash=library * 64), packs=()
    )
    run = replace(make_run(evenly(12, [0, 1]), evenly(12, [1, 1])), reference=reference)
    before, after = run.phases
    return replace(
        run, phases=(replace(before, library_hash=library * 64), replace(after, library_hash="b" * 64))
    )


def test_a_reference_of_other_packs_is_compared_though_its_library_is_the_same() -> None:
    run = against("old", library="b")
    assert rule(verdict(run), "baseline").message.endswith("is what the run itself uses")
    packs: Any = (SimpleNamespace(stamp="5" * 64),)
    assert run.reference is not None
    for changes in ({"reference": replace(run.reference, packs=packs)}, {"packs": packs}):
        changed: Any = replace(run, **changes)
        assert rule(verdict(changed), "baseline").figures["difference"] == 0.5
    both: Any = replace(run, reference=replace(run.reference, packs=packs), packs=packs)
    assert rule(verdict(both), "baseline").message.endswith("is what the run itself uses")


@pytest.mark.parametrize(("n", "said"), [(1, "1 scenario has the same"), (2, "2 scenarios have the same")])
def test_answers_that_both_sides_of_a_reference_share_are_told(n: int, said: str) -> None:
    run = against("old", library="d")
    before, after = run.phases
    shared = replace(before, groups=before.groups[n:], shared=after.groups[:n])
    message = rule(verdict(replace(run, phases=(shared, after))), "baseline").message
    assert message.endswith(f"pair by pair in this run, where {said} prompt and share the answers")
    assert "share the answers" not in rule(verdict(run), "baseline").message


def test_a_stored_baseline_is_the_same_at_every_look_whatever_control_the_run_has() -> None:
    settings = {**SETTINGS, "eval_rollouts": 2, "gate_extend": True}
    stored = from_run(swept(evenly(12, [1, 0])), "main")
    final = evenly(12, [1, 0, 1, 1])
    with_control = make_run(evenly(12, [0, 0, 0, 0]), final, settings=settings)
    found, alone = (
        rule(verdict(run, stored), "baseline").figures
        for run in (with_control, make_run(None, final, settings=settings))
    )
    assert found["looks"] == [2, 4]
    assert {**found, "p_holm": None} == {**alone, "p_holm": None}


def test_a_placebo_says_what_its_gain_is_over_and_why_it_shows_nothing() -> None:
    run = with_placebo(make_run(evenly(20, [0, 0]), evenly(20, [1, 1]), {"t": [1, 0]}), evenly(20, [0, 0]))
    begun = replace(run, library_start=Library(hash="b" * 64, experiences=(make_experience(1),)))
    told = rule(verdict(begun), "placebo").message
    assert told.startswith("gain over the lessons at the start +1.000, over placebo ")
    empty = replace(run.phases[0], groups=(), phase=replace(run.phases[0].phase, scenarios=()))
    found = rule(verdict(replace(run, phases=(empty, *run.phases[1:]))), "placebo")
    assert (found.outcome, found.message) == (
        "inconclusive",
        "no prompt of the final sweep carried a lesson",
    )


# errors, rules of plugins, looks


def test_a_rollout_that_ran_out_of_time_is_no_error_of_the_sweep() -> None:
    run = swept({**evenly(5, [1, 1]), "s5": [-1, None]})
    found = rule(verdict(run, gate_max_errors=1), "errors")
    assert (found.outcome, found.figures) == ("pass", {"errors": 1, "limit": 1})


def test_a_rule_of_a_plugin_keeps_a_sweep_whole_and_is_called_like_its_class_without_a_name() -> None:
    class Latency:
        def judge(self, *_: object) -> Any:
            raise OSError("no figures")

    settings = {**SETTINGS, "gate_sequential": True}
    run = make_run(None, evenly(60, [1.0, 1.0]), settings=settings)
    stored = from_run(make_run(None, evenly(60, [1.0, 1.0])), "main")
    bare, ruled = verdict(run, stored), verdict(run, stored, [Latency()])
    assert (bare.obstacle, ruled.obstacle) == ("", "rules of plugins need the whole sweep")
    assert "sequential" in rule(bare, "baseline").figures
    assert "sequential" not in rule(ruled, "baseline").figures
    assert rule(ruled, "Latency").message == "the rule raised OSError: no figures"


def test_looks_of_a_sweep_without_a_number_of_rollouts_begin_with_one() -> None:
    run = make_run(None, evenly(2, [1]), settings={**SETTINGS, "gate_extend": True, "eval_rollouts": None})
    assert planned_looks(run, from_run(run, "main"), []) == (1, 2, 4)


# a difference


def tallied(n: int, credited: Credits) -> dict[str, Tally]:
    return dict(sweeps_of(swept(evenly(n, credited))).rows_after)


@pytest.mark.parametrize(("n", "answer"), [(9, "open"), (10, "not worse")])
def test_ten_scenarios_are_enough_for_a_pass(n: int, answer: str) -> None:
    found = judge_difference("gain", tallied(n, [0.0]), [Look(tallied(n, [1.0]))], Bar(margin=0.05))
    assert found.figures["answer"] == answer


def test_each_look_is_compared_with_the_control_of_its_own() -> None:
    first, last = (tallied(12, row) for row in ([0.0], [1.0, 1.0]))
    control, whole = (tallied(12, row) for row in ([0.0], [1.0, 1.0]))
    level, bar = ALPHA / 2, Bar(margin=0.05)
    looks = [Look(first, level, 1, control), Look(last, level, 2)]
    found = judge_difference("gain", whole, looks, bar)
    same = judge_difference("gain", whole, looks[1:], bar)
    assert found.figures["bounds"] == same.figures["bounds"]
    assert found.figures["p_worse"] == same.figures["p_worse"] == 1.0
    assert (found.figures["looks"], same.figures["looks"]) == ([1, 2], [2])


def test_without_a_scenario_in_common_no_bounds_are_known() -> None:
    after = {"other": tallied(1, [1.0])["s0"]}
    found = judge_difference("baseline", tallied(1, [1.0]), [Look(after)], Bar(margin=0.05))
    assert found.figures["bounds"] is None
    assert found.advice == (
        "only 0% of the scenarios are in both; save a new baseline or run the same scenarios"
    )


def test_few_scenarios_of_which_some_are_in_both_are_first_to_be_made_the_same() -> None:
    before, after = tallied(3, [1.0, 0.0]), tallied(9, [1.0, 0.0])
    found = judge_difference("baseline", before, [Look(after)], Bar(margin=0.05))
    assert found.advice.startswith("only 33% of the scenarios are in both; ")


def test_bounds_by_rollouts_count_errors_where_they_are_read_as_0_alone() -> None:
    before, bar = tallied(3, [1.0, 0.0]), Bar(margin=0.05)
    plain, failed = (
        judge_difference("gain", before, [Look(tallied(3, row))], bar).figures
        for row in ([1.0, 0.0], [1.0, 0.0, None])
    )
    assert failed["bounds"] == plain["bounds"]
    assert failed["errors_as_zero"]["bounds"] != plain["bounds"]


def test_a_look_with_a_part_of_the_level_has_wider_bounds() -> None:
    before = {**tallied(30, [0.0]), **tallied(15, [1.0])}
    after = {**tallied(30, [0.0]), **tallied(10, [1.0]), "s29": tallied(1, [1.0])["s0"]}
    wide, narrow = (
        judge_difference("gain", before, [Look(after, level)], Bar(margin=0.05)).figures["bounds"]
        for level in (ALPHA / 10, ALPHA)
    )
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_drift_makes_no_drop_of_a_gain() -> None:
    before = {**tallied(30, [0.0]), **tallied(10, [1.0])}
    after = {**tallied(30, [0.0]), **tallied(15, [1.0])}
    plain, drifted = (
        judge_difference("gain", before, [Look(after)], Bar(margin=0.05, drift=drift)).figures["p_worse"]
        for drift in (0.0, 0.1)
    )
    assert 0.5 < plain == drifted


def test_the_reading_that_decides_has_the_size_that_would_settle_it() -> None:
    before = {**tallied(100, [1.0, 1.0]), **tallied(3, [0.0, 0.0])}
    after = {**tallied(100, [1.0, 1.0]), **tallied(8, [1.0, None]), **tallied(3, [1.0, 0.0])}
    found = judge_difference("gain", before, [Look(after)], Bar(margin=0.05))
    size = found.figures["errors_as_zero"]["settled_by"]
    assert "settled_by" not in found.figures
    assert (found.outcome, size) == ("inconclusive", 356)
    assert found.advice.startswith(f"about {size} eval scenarios")


def worse(p: float, **figures: Any) -> RuleResult:
    known = {"answer": "worse", "p_worse": p, "errors_as_zero": None, "bounds": [-0.2, -0.01]}
    return RuleResult(
        name="gain",
        outcome="fail",
        message="worse: by .1",
        figures={**known, "alarm": 1.0, "margin": 0.05, **figures},
    )


@pytest.mark.parametrize(
    ("p", "figures", "outcome", "answer"),
    [
        (ALPHA, {}, "inconclusive", "open"),
        (0.99 * ALPHA, {}, "fail", "worse"),
        (0.1, {"bounds": [-1.0, -0.01]}, "inconclusive", "open"),
        (0.1, {"alarm": 0.2}, "fail", "unseen"),
        (0.1, {"alarm": 0.21}, "inconclusive", "open"),
    ],
)
def test_a_drop_that_may_be_chance_is_open_or_unseen_by_its_bounds(
    p: float, figures: dict[str, Any], outcome: str, answer: str
) -> None:
    (found,) = share_level([worse(p, errors_as_zero={}, **figures)])
    assert (found.outcome, found.figures["answer"]) == (outcome, answer)


def test_a_drop_that_is_certain_is_one_of_the_comparisons() -> None:
    sure, likely = share_level([worse(0.0), worse(0.9 * ALPHA)])
    assert (sure.figures["p_holm"], likely.figures["p_holm"]) == (0.0, 0.9 * ALPHA)
    assert [found.outcome for found in (sure, likely)] == ["fail", "fail"]
    one, other = share_level([worse(0.9 * ALPHA), worse(0.9 * ALPHA)])
    assert [found.outcome for found in (one, other)] == ["inconclusive", "inconclusive"]
