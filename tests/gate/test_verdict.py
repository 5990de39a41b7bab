from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.sweeps import SETTINGS, Credits, evenly, make_run, rule, swept

from pytest_tfgrpo.core.lessons import LeakedAnswer
from pytest_tfgrpo.core.records import Failure, Run
from pytest_tfgrpo.core.scenarios import Truth
from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.difference import Bar, judge_difference
from pytest_tfgrpo.gate.looks import one_look
from pytest_tfgrpo.gate.verdict import RuleResult, Verdict, judge
from pytest_tfgrpo.metrics.comparison import Tally


def verdict(run: Run, baseline: Baseline | None = None, **changes: Any) -> Verdict:
    extra = {key: changes.pop(key) for key in ("rules", "contamination") if key in changes}
    return judge(run, baseline=baseline, settings={**SETTINGS, **changes}, **extra)


def noisy(n: int, passed: float) -> dict[str, Credits]:
    """Return n scenarios of one rollout, of which the given share passed, spread evenly."""
    return {f"s{i}": [float(int((i + 1) * passed) > int(i * passed))] for i in range(n)}


GOOD = noisy(100, 0.9)


def test_a_whole_good_run_passes_and_says_what_was_not_judged() -> None:
    found = verdict(swept(GOOD))
    assert (found.outcome, found.failed) == ("pass", False)
    assert {r.name: r.outcome for r in found.results} == {
        "complete": "pass",
        "minimum mean": "skipped",
        "baseline": "skipped",
        "gain": "skipped",
        "errors": "skipped",
        "cost per success": "skipped",
        "contamination": "pass",
    }
    assert rule(found, "baseline").advice == "save one with `tfgrpo baseline save`"


# complete


@pytest.mark.parametrize("credit", [None, -1.0])
def test_a_final_sweep_without_a_single_answer_fails_closed(credit: float | None) -> None:
    found = verdict(swept({f"s{i}": [credit, credit] for i in range(12)}))
    assert found.failed
    assert "no rollout of" in rule(found, "complete").message
    assert "tfgrpo show " in str(rule(found, "complete").advice)


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("setup", "fix the set-up or tear-down of the scenario"),
        ("teardown", "fix the set-up or tear-down of the scenario"),
        ("fixture", "fix the set-up or tear-down of the scenario"),
        ("spawn", "is the actor set up?"),
        (None, "is the actor set up?"),
    ],
)
def test_a_sweep_without_answers_says_whose_part_is_to_be_mended(code: str | None, hint: str) -> None:
    failure = None if code is None else Failure(code=code, message="no luck")
    run = swept({f"s{i}": [None, None] for i in range(12)})
    phases = tuple(
        replace(
            phase,
            groups=tuple(
                replace(g, rollouts=tuple(replace(r, failure=failure) for r in g.rollouts))
                for g in phase.groups
            ),
        )
        for phase in run.phases
    )
    found = rule(verdict(replace(run, phases=phases)), "complete")
    assert found.advice.endswith(f"prints it in full; {hint}")
    assert found.message.endswith("counts; the first one" + (f": {code}, no luck" if code else ""))


@pytest.mark.parametrize(("excluded", "outcome"), [(2, "pass"), (3, "inconclusive")])
def test_scenarios_that_checkers_skipped_leave_the_question_open_when_they_are_many(
    excluded: int, outcome: str
) -> None:
    run = swept(GOOD)
    *before, last = run.phases
    ids = last.phase.scenarios[:10]
    thinned = replace(
        last,
        phase=replace(last.phase, scenarios=ids),
        groups=tuple(g for g in last.groups if g.scenario_id in ids[excluded:]),
        excluded=ids[:excluded],
    )
    found = verdict(replace(run, phases=(*before, thinned)))
    complete = rule(found, "complete")
    assert complete.outcome == outcome
    assert f"{excluded} of 10 scenarios of epoch2-eval were skipped" in complete.message
    assert complete.figures["skipped"] == list(ids[:excluded])
    strict = verdict(replace(run, phases=(*before, thinned)), gate_strict=True, gate_min_mean=0.5)
    assert rule(strict, "complete").outcome == "inconclusive"
    assert f"without {excluded} skipped scenarios" in rule(strict, "minimum mean").message


@pytest.mark.parametrize("status", ["incomplete", "aborted", "cancelled"])
def test_a_run_that_did_not_end_fails_closed(status: str) -> None:
    found = verdict(replace(swept(GOOD), status=status, reason="budget_usd of 1 is used up"))
    assert found.failed
    assert "budget_usd" in rule(found, "complete").message


def test_a_phase_without_all_its_groups_fails_closed() -> None:
    run = swept(GOOD)
    short = replace(run.phases[0], groups=run.phases[0].groups[:-1])
    found = verdict(replace(run, phases=(short,)))
    assert rule(found, "complete").message == "epoch2-eval is complete, 99 of 100 groups are complete"
    assert found.failed


def test_a_scenario_that_its_test_function_skipped_is_not_missing() -> None:
    run = swept(GOOD)
    short = replace(run.phases[0], groups=run.phases[0].groups[:-1], excluded=("s99",))
    assert verdict(replace(run, phases=(short,))).outcome == "pass"


def test_a_run_without_phases_fails_closed() -> None:
    assert verdict(make_run()).failed


def test_without_a_final_sweep_nothing_about_it_is_judged() -> None:
    run = make_run(train={"t": [1, 0]})
    found = verdict(run, from_run(swept(GOOD), "x"), gate_min_mean=0.1, gate_max_errors=0)
    names = ("minimum mean", "baseline", "errors")
    assert [rule(found, name).outcome for name in names] == ["not_judged", "fail", "not_judged"]
    assert "no eval sweep to compare with the baseline of 100 scenarios" in rule(found, "baseline").message
    assert verdict(run, gate_min_mean=0.1, gate_max_errors=0).outcome == "inconclusive"
    cut = replace(run, status="incomplete")
    assert rule(verdict(cut, from_run(swept(GOOD), "x")), "baseline").outcome == "not_judged"


def test_a_part_of_the_suite_never_passes() -> None:
    run = replace(make_run(GOOD, GOOD), partial_selection=True)
    found = verdict(run, from_run(swept(GOOD), "x"), gate_min_mean=0.1)
    judged = {r.name: r.outcome for r in found.results}
    assert [judged[n] for n in ("complete", "minimum mean", "baseline", "gain")] == ["not_judged"] * 4
    watched = verdict(run, gate_sequential=True)
    assert (found.obstacle, watched.obstacle) == ("", "only part of the suite was selected")
    assert found.outcome == "inconclusive"


# minimum mean


@pytest.mark.parametrize(("minimum", "outcome"), [(0.9, "pass"), (0.91, "fail")])
def test_the_eval_mean_must_reach_its_minimum(minimum: float, outcome: str) -> None:
    found = verdict(swept(GOOD), gate_min_mean=minimum)
    assert found.outcome == rule(found, "minimum mean").outcome == outcome


def test_a_minimum_must_also_hold_with_errors_as_0() -> None:
    found = verdict(swept(evenly(20, [1, 1, 1, None])), gate_min_mean=0.8)
    result = rule(found, "minimum mean")
    assert (result.outcome, result.message) == (
        "fail",
        "eval mean 1.000, at least 0.8 required; 0.750 with errors as 0",
    )


def test_a_sweep_of_errors_only_misses_any_minimum() -> None:
    assert rule(verdict(swept(evenly(9, [None])), gate_min_mean=0.01), "minimum mean").outcome == "fail"


# baseline and gain (decision 21a)


def regression(before: Mapping[str, Credits], after: Mapping[str, Credits], **changes: Any) -> RuleResult:
    return rule(verdict(swept(after), from_run(swept(before), "x"), **changes), "baseline")


def test_a_lower_bound_above_the_margin_passes() -> None:
    assert regression(noisy(100, 0.5), GOOD).outcome == "pass"
    assert regression(GOOD, GOOD).outcome == "pass"


def test_a_small_certain_drop_within_the_margin_passes() -> None:
    before, after = evenly(100, [0.5]), {**evenly(100, [0.5]), **evenly(5, [0.4])}
    assert regression(before, after).outcome == "pass"


def test_an_upper_bound_below_0_fails() -> None:
    result = regression(GOOD, noisy(100, 0.6))
    assert (result.outcome, result.advice) == ("fail", "look at the largest regressions in the report")
    assert result.figures["ci95"][1] < 0


def test_between_them_it_is_inconclusive_and_says_what_would_settle_it() -> None:
    after = {**noisy(50, 0.9), **evenly(3, [0.0]), "s9": [1.0]}
    result = regression(noisy(50, 0.9), after)
    assert result.outcome == "inconclusive"
    assert (
        result.advice == f"about {result.figures['settled_by']} eval scenarios would be enough in 4 of 5 runs"
    )
    assert result.figures["settled_by"] > 50


def test_equal_results_of_few_scenarios_leave_room_for_doubt() -> None:
    result = regression(noisy(40, 0.9), noisy(40, 0.9))
    assert (result.outcome, result.figures["settled_by"]) == ("inconclusive", 77)
    assert regression(noisy(77, 0.9), noisy(77, 0.9)).outcome == "pass"


def test_the_margin_is_a_setting() -> None:
    assert regression(noisy(40, 0.9), noisy(40, 0.9), gate_margin=0.1).outcome == "pass"


def test_fewer_than_10_scenarios_never_pass_and_fail_when_all_fell() -> None:
    assert regression(evenly(9, [1]), evenly(9, [0])).figures["answer"] == "worse"
    better = regression(evenly(9, [0]), evenly(9, [1]))
    assert (better.outcome, better.advice) == ("inconclusive", "compare at least 10 eval scenarios")
    assert regression(evenly(9, [1]), evenly(9, [1])).figures["answer"] == "unseen"


@pytest.mark.parametrize(("common", "outcome"), [(79, "inconclusive"), (80, "pass")])
def test_an_intersection_under_80_percent_is_inconclusive(common: int, outcome: str) -> None:
    after = {**noisy(common, 0.9), **evenly(100 - common, [1], "new")}
    result = regression(noisy(common, 0.9), after)
    assert result.outcome == outcome
    assert f"made with other scenarios ({common} in common)" in result.message


def test_a_scenario_that_the_suite_has_lost_fails_until_the_baseline_is_saved_again() -> None:
    base = from_run(swept(GOOD), "main")
    run = swept({id_: row for id_, row in GOOD.items() if id_ not in ("s4", "s7")})
    result = rule(verdict(run, base), "baseline")
    assert (result.outcome, result.figures["lost"]) == ("fail", ["s4", "s7"])
    assert result.message.startswith("2 scenarios (s4, s7) of the baseline are no longer in the eval split; ")
    assert result.advice.endswith("then save the baseline again with `tfgrpo baseline save main`")
    assert rule(verdict(run, from_run(run, "main")), "baseline").outcome == "pass"
    partial = verdict(replace(run, partial_selection=True), base)
    assert rule(partial, "baseline").outcome == "not_judged"


def test_a_scenario_that_trains_now_is_lost_to_the_eval_split() -> None:
    run = swept(GOOD)
    moved = tuple(replace(s, split="train") if s.id == "s4" else s for s in run.scenarios)
    groups = tuple(g for g in run.phases[0].groups if g.scenario_id != "s4")
    rest = replace(
        run.phases[0],
        groups=groups,
        phase=replace(run.phases[0].phase, scenarios=tuple(g.scenario_id for g in groups)),
    )
    result = rule(verdict(replace(run, scenarios=moved, phases=(rest,)), from_run(run, "x")), "baseline")
    assert (result.outcome, result.figures["lost"]) == ("fail", ["s4"])


def test_a_scenario_that_was_skipped_is_not_lost() -> None:
    run = swept(GOOD)
    phase = replace(
        run.phases[0], excluded=("s4",), groups=run.phases[0].groups[:4] + run.phases[0].groups[5:]
    )
    result = rule(verdict(replace(run, phases=(phase,)), from_run(run, "x")), "baseline")
    assert "lost" not in result.figures


def test_a_changed_task_is_another_scenario_and_leaves_a_pass_open() -> None:
    run = swept(GOOD)
    changed = tuple(replace(s, stamp="f" * 64) if s.id == "s1" else s for s in run.scenarios)
    found = verdict(replace(run, scenarios=changed), from_run(run, "x"))
    result = rule(found, "baseline")
    assert (result.outcome, found.failed) == ("inconclusive", False)
    assert "99 in common" in result.message
    assert result.message.endswith("scenario s1 not compared, because the task changed")
    assert verdict(replace(run, scenarios=changed), from_run(run, "x"), gate_strict=True).failed


def test_an_unsigned_baseline_is_named_and_open_under_gate_strict() -> None:
    run = swept(GOOD)
    base = replace(from_run(run, "x"), unsigned=True)
    result = rule(verdict(run, base), "baseline")
    assert (result.outcome, "the baseline was not signed (its file has no hash" in result.message) == (
        "pass",
        True,
    )
    strict = verdict(run, base, gate_strict=True)
    assert (rule(strict, "baseline").outcome, strict.failed) == ("inconclusive", True)
    assert (
        "save the baseline again with `tfgrpo baseline save x`, which signs it"
        in rule(strict, "baseline").advice
    )
    worse = verdict(swept(noisy(100, 0.6)), base, gate_strict=True)
    assert rule(worse, "baseline").outcome == "fail"


def test_another_actor_or_pack_is_said() -> None:
    baseline = replace(
        from_run(swept(GOOD), "x"),
        actor="command:./old\x1b[2J",
        stamps={"actor": "9", "packs": "9", "scenarios": "9"},
    )
    result = rule(verdict(swept(GOOD), baseline), "baseline")
    assert result.message.endswith(
        "the baseline was made with another actor (command:./old\\x1b[2J), made with other prompt packs"
    )
    assert result.outcome == "pass"


def test_the_actor_in_use_is_not_another_one_for_its_configuration() -> None:
    run = swept(GOOD)
    baseline = replace(from_run(run, "x"), stamps={"actor": "9"})
    message = rule(verdict(run, baseline), "baseline").message
    assert message.endswith("the baseline was made with another version or configuration of the actor")
    assert "another actor" not in message


def test_a_baseline_of_another_temperature_is_not_compared() -> None:
    baseline = replace(from_run(swept(noisy(100, 0.2)), "x"), temperature=1.0)
    found = verdict(swept(GOOD), baseline)
    result = rule(found, "baseline")
    assert (found.outcome, result.outcome) == ("inconclusive", "not_judged")
    assert result.message == "the baseline was made at temperature 1, the sweep at 0.3"
    assert result.advice
    assert verdict(swept(GOOD), baseline, gate_strict=True).failed


def judged(name: str, truth: Truth) -> Run:
    run = swept(GOOD, identities={"judge": {"name": name, "identity": {"votes": 3}}})
    return replace(run, scenarios=tuple(replace(s, truth=truth) for s in run.scenarios))


def test_a_baseline_of_another_judge_is_not_compared_where_the_judge_is_the_measure() -> None:
    cases: tuple[tuple[Truth, bool], ...] = (("judge", False), ("checks", True))
    for truth, alike in cases:
        stored = from_run(judged("openai:x", truth), "x")
        same, other = (
            rule(verdict(judged(name, truth), stored), "baseline") for name in ("openai:x", "openai:y")
        )
        assert same.outcome == "pass"
        assert other.outcome == ("pass" if alike else "not_judged")
        assert ("scored by another judge" in other.message) is not alike


def test_a_comparison_must_hold_with_errors_excluded_and_with_errors_as_0() -> None:
    before, after = evenly(100, [1, 1]), evenly(100, [1, None])
    result = regression(before, after)
    assert (result.outcome, result.figures["difference"]) == ("fail", 0)
    assert result.figures["errors_as_zero"]["difference"] == -0.5
    assert "; with errors as 0: -0.500 " in result.message
    bounds = "{:+.3f} to {:+.3f}".format(*result.figures["errors_as_zero"]["bounds"])
    assert f"; all scenarios differ alike; each bound by itself {bounds};" in result.message
    hidden = regression(evenly(100, [1, None]), evenly(100, [0.5, 0.5]))
    assert (hidden.outcome, hidden.figures["errors_as_zero"]["difference"]) == ("fail", 0)


def test_learning_that_made_things_worse_fails() -> None:
    found = verdict(make_run(GOOD, noisy(100, 0.6)))
    assert (rule(found, "gain").outcome, found.outcome) == ("fail", "fail")
    assert rule(verdict(make_run(noisy(100, 0.3), GOOD)), "gain").outcome == "pass"


def test_sweeps_with_the_same_library_are_not_compared() -> None:
    run = make_run(GOOD, GOOD)
    same = replace(run.phases[1], library_hash=run.phases[0].library_hash)
    found = verdict(replace(run, phases=(run.phases[0], same)))
    assert (rule(found, "gain").outcome, found.outcome) == ("skipped", "pass")


# errors and cost


@pytest.mark.parametrize(("limit", "outcome"), [(1, "fail"), (2, "pass")])
def test_errors_of_the_final_sweep_are_limited(limit: int, outcome: str) -> None:
    run = make_run(final={**GOOD, "s1": [1, None, None]})
    assert rule(verdict(run, gate_max_errors=limit), "errors").outcome == outcome


@pytest.mark.parametrize(("limit", "outcome"), [(0.002, "pass"), (0.001, "fail")])
def test_the_cost_of_a_success_is_limited(limit: float, outcome: str) -> None:
    found = verdict(swept(evenly(10, [1, 0])), gate_max_cost_per_success_usd=limit)
    result = rule(found, "cost per success")
    assert (result.outcome, result.figures["cost_per_success_usd"]) == (outcome, pytest.approx(0.002))


def test_no_success_at_all_fails_the_cost_rule() -> None:
    found = verdict(swept(evenly(10, [0])), gate_max_cost_per_success_usd=1.0)
    assert rule(found, "cost per success").outcome == "fail"


def test_an_unknown_cost_is_inconclusive() -> None:
    run = swept(GOOD)
    group = run.phases[0].groups[0]
    unknown = replace(group, rollouts=(replace(group.rollouts[0], cost_usd=None),))
    phase = replace(run.phases[0], groups=(unknown, *run.phases[0].groups[1:]))
    found = verdict(replace(run, phases=(phase,)), gate_max_cost_per_success_usd=1.0)
    assert rule(found, "cost per success").outcome == "inconclusive"


# contamination, additional rules, strictness


def test_a_lesson_with_an_eval_answer_fails_the_gate() -> None:
    leaks = [LeakedAnswer(experience_id="e1", scenario_id="capital-of-france")]
    found = verdict(swept(GOOD), contamination=leaks)
    assert found.failed
    assert "e1 (scenario capital-of-france)" in rule(found, "contamination").message


def test_a_leak_that_only_warns_leaves_the_gate_open() -> None:
    leaks = [LeakedAnswer(experience_id="e1", scenario_id="capital-of-france")]
    warn = {**SETTINGS, "contamination": "warn"}
    found = judge(swept(GOOD), baseline=None, settings=warn, contamination=leaks)
    assert rule(found, "contamination").outcome == "inconclusive"
    assert not found.failed
    assert judge(
        swept(GOOD), baseline=None, settings={**warn, "gate_strict": True}, contamination=leaks
    ).failed


@dataclass
class Extra:
    answer: Any
    name: str = "latency"

    def judge(self, run: Run, baseline: Baseline | None, settings: Mapping[str, Any]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_an_additional_rule_is_judged_with_the_others() -> None:
    slow = RuleResult(name="latency", outcome="fail", message="p95 is 12 s")
    found = verdict(swept(GOOD), rules=[Extra(slow)])
    assert found.outcome == "fail"
    assert [r for r in found.results if r.outcome == "fail"] == [slow]


@pytest.mark.parametrize(
    "answer",
    [KeyError("p95"), None, "pass", RuleResult(name="x", outcome="PASS", message="")],  # type: ignore[arg-type]
)
def test_a_broken_additional_rule_fails_the_gate(answer: Any) -> None:
    found = verdict(swept(GOOD), rules=[Extra(answer)])
    assert found.failed
    assert rule(found, "latency").message.startswith("the rule raised ")


def test_an_open_question_passes_with_a_warning_and_fails_under_gate_strict() -> None:
    run, baseline = swept(noisy(40, 0.9)), from_run(swept(noisy(40, 0.9)), "x")
    assert (verdict(run, baseline).outcome, verdict(run, baseline).failed) == ("inconclusive", False)
    strict = verdict(run, baseline, gate_strict=True)
    assert (strict.outcome, strict.failed, strict.strict) == ("fail", True, True)
    assert [r.name for r in strict.results if r.outcome == "inconclusive"] == ["baseline"]


def test_a_final_sweep_that_did_not_end_is_not_compared() -> None:
    run = swept(GOOD)
    cut = replace(run.phases[-1], status="incomplete", groups=run.phases[-1].groups[:3])
    found = verdict(
        replace(run, status="incomplete", phases=(*run.phases[:-1], cut)),
        from_run(run, "x"),
        gate_min_mean=0.1,
    )
    assert found.failed
    for name in ("minimum mean", "baseline"):
        assert rule(found, name).outcome == "not_judged"
        assert rule(found, name).message == "the final sweep did not end"


@pytest.mark.parametrize("n", [20, 24, 59, 71])
def test_where_no_scenario_differs_each_bound_by_itself_has_its_level(n: int) -> None:
    """A share of 0.15 (0.05) that breaks for good goes unseen in ``0.85^n`` (``0.95^n``) of the sweeps."""
    all_solved = {str(k): Tally(stamp="", n=1, sum=1.0, sum_sq=1.0, errors=0) for k in range(n)}
    result = judge_difference("baseline", all_solved, one_look(all_solved), Bar(margin=0.05, alarm=0.15))
    assert result.figures["answer"] == ("unseen" if 0.85**n > 0.025 else "open")
    assert result.figures["bounds"][0] == pytest.approx(-(1 - 0.025 ** (1 / n)))
    assert "no scenario differs; each bound by itself -" in result.message
