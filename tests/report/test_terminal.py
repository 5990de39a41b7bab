import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders import make_experience, make_frame, make_rollout, make_scenario
from support.jobs import ScriptedActor, make_job, suite
from support.sweeps import SETTINGS, Credits, evenly, make_result, make_run

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import CheckResult, Failure, Frame, JudgeResult, Run, Score, with_shared
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.estimate.forecast import Forecast
from pytest_tfgrpo.estimate.plan_text import plan_text
from pytest_tfgrpo.estimate.ranges import Figures, Range
from pytest_tfgrpo.gate.baseline import from_run
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.report.gates import default_text
from pytest_tfgrpo.report.markdown import summary
from pytest_tfgrpo.report.rollout import failure, rollout_text
from pytest_tfgrpo.report.terminal import ALIKE, NOTHING_MIXED, terminal
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.job import Job

Golden = Callable[[str, str], None]


def drawn(ids: list[str], passed: float, seed: int) -> dict[str, Credits]:
    rng = random.Random(seed)
    return {i: [1.0 if rng.random() < passed else rng.choice([0.0, 0.5, -1]) for _ in range(5)] for i in ids}


def learned() -> Run:
    ids = [f"count-{i}" for i in range(25)] + [f"date-{i}" for i in range(15)]
    final = drawn(ids, 0.85, 2) | {"count-3": [0, 0, 0, 0, 0], "date-1": [1, None, 1, 1, None]}
    run = make_run(drawn(ids, 0.4, 1), final, drawn([f"train-{i}" for i in range(30)], 0.5, 3))
    lessons = tuple(make_experience(n, polarity="avoid" if n % 3 == 2 else "do") for n in range(8))
    return replace(run, library=Library(experiences=lessons, hash="c" * 64))


def report(run: Run, **changes: Any) -> dict[str, Any]:
    baseline = changes.pop("baseline", None)
    verdict = judge(run, baseline=baseline, settings={**SETTINGS, **changes})
    return build(run, verdict, sections=["cache: 12 hits"], files="out/demo/runs/run1")


@pytest.mark.parametrize(("name", "verbosity"), [("quiet", -1), ("default", 0), ("verbose", 1)])
def test_a_learning_run_reads_well_at_every_verbosity(golden: Golden, name: str, verbosity: int) -> None:
    value = report(learned(), gate_max_errors=1, gate_min_mean=0.5)
    golden(f"terminal-{name}.txt", "\n".join(terminal(value, verbosity=verbosity)) + "\n")


def test_a_learning_run_reads_well_as_markdown(golden: Golden) -> None:
    golden("summary.md", summary(report(learned(), gate_max_errors=1, gate_min_mean=0.5)))


def test_a_compared_run_reads_well(golden: Golden) -> None:
    run = make_run(final=drawn([f"s{i}" for i in range(45)], 0.8, 5))
    stored = make_run(final=drawn([f"s{i}" for i in range(40)], 0.8, 4))
    value = report(run, baseline=from_run(stored, "main"))
    golden("terminal-compared.txt", "\n".join(terminal(value)) + "\n")


def test_an_interrupted_run_says_so_first() -> None:
    run = replace(make_run({"a": [1, 0]}), status="incomplete", reason="interrupted")
    assert terminal(report(run))[:2] == [
        "No result yet: the run has not ended.",
        "the run is incomplete: interrupted",
    ]


def test_a_run_of_nothing_is_rendered() -> None:
    assert terminal(report(make_run()), verbosity=-1) == [
        "gate  FAILED",
        "  FAILED        complete: the run has no phase; run it again",
        "files  out/demo/runs/run1",
    ]


def test_unknown_cost_is_a_question_mark_and_part_of_it_a_plus() -> None:
    run = make_run(final={"a": [1, 1]})
    group = run.phases[0].groups[0]

    def priced(*costs: float | None) -> str:
        rollouts = tuple(replace(r, cost_usd=c) for r, c in zip(group.rollouts, costs, strict=True))
        phase = replace(run.phases[0], groups=(replace(group, rollouts=rollouts),))
        return "\n".join(terminal(report(replace(run, phases=(phase,))), verbosity=1))

    assert "     ?  " in priced(None, None)
    assert "$0.50+" in priced(0.5, None)
    assert "$1.00 " in priced(0.5, 0.5)


def served(n: int) -> Run:
    """Return a run of 12 scenarios, where answers of the final sweep serve the baseline sweep in `n`."""
    alone = make_run({f"s{i}": [1, 0] for i in range(n, 12)}, evenly(12, [1, 0]))
    before, after = alone.phases
    before = replace(before, phase=replace(before.phase, scenarios=after.phase.scenarios))
    groups = tuple(replace(g, shared=g.scenario_id in [f"s{i}" for i in range(n)]) for g in after.groups)
    return replace(alone, phases=with_shared([before, replace(after, groups=groups)]))


def test_answers_that_serve_both_sweeps_stand_beside_those_of_the_baseline_sweep() -> None:
    for n, told in ((3, "18 + 6"), (12, "0 + 24")):
        for verbosity in (0, 1):
            lines = terminal(report(served(n)), verbosity=verbosity)
            (row,) = [line for line in lines if re.match("baseline .*0.500", line)]
            assert f" {told} " in row
            assert sum(line.startswith("N + M: ") for line in lines) == 1
        assert f"| 0 (baseline) | {told} |" in summary(report(served(n)))
    assert not any(line.startswith("N + M: ") for line in terminal(report(served(0))))


def test_epochs_whose_kinds_of_task_gave_no_lesson_are_one_warning() -> None:
    notes = [f"epoch{n}: {ALIKE}{n + 3}" for n in (1, 2)]
    value = report(learned()) | {"warnings": [*notes, "epoch1: another", "epoch2: another"]}
    value["library"] = {**value["library"], "lesson_groups": 0}
    together = [f"warning: epoch1, epoch2: {ALIKE}4, 5", "warning: epoch1, epoch2: another"]
    assert warnings(terminal(value)) == together
    value["library"]["lesson_groups"] = 3
    assert warnings(terminal(value)) == together[1:]
    assert warnings(terminal(value, verbosity=1)) == [f"warning: {text}" for text in value["warnings"]]


def test_an_epoch_without_mixed_groups_is_told_unless_no_epoch_had_one() -> None:
    value = report(learned()) | {"warnings": [f"epoch2: {NOTHING_MIXED}"]}
    value["library"] = {**value["library"], "groups": 6, "informative_groups": 3}
    assert warnings(terminal(value)) == [f"warning: epoch2: {NOTHING_MIXED}"]
    value["library"]["informative_groups"] = 0
    assert warnings(terminal(value)) == []


@pytest.mark.parametrize(("when", "shown"), [("early", True), ("concurrent", False)])
def test_a_control_that_ran_before_training_is_told_always_and_one_beside_it_in_full_alone(
    when: str, shown: bool
) -> None:
    value = report(learned())
    value["gain"] = {**value["gain"], "control": {"asked": when, "shared": 0, "drift": None}}
    short, full = (" ".join(" ".join(terminal(value, verbosity=n)).split()) for n in (0, 1))
    assert ("; control ran" in short) is shown
    assert "; control ran" in full


def test_a_long_lesson_is_one_line_and_whole_in_the_full_report() -> None:
    lesson = make_experience(1, summary32=f"Count {'each word ' * 12}once.")
    value = report(replace(learned(), library=Library(experiences=(lesson,), hash="c" * 64)))
    short, full = terminal(value), terminal(value, verbosity=1)
    assert sum("each word" in line for line in short) == 1
    assert lesson.summary32 in " ".join(" ".join(full).split())


def warnings(lines: list[str]) -> list[str]:
    """Return the warnings among lines, each unwrapped."""
    text = "\n".join(lines).replace("\n  ", " ")
    return [" ".join(line.split()) for line in text.split("\n") if line.startswith("warning: ")]


def test_sweeps_without_a_common_score_have_no_gain_to_tell() -> None:
    value = report(make_run({"a": [None]}, {"a": [1]}), gate_strict=True)
    shown = terminal(value)
    assert "gain  no scenario has a score in both sweeps" in shown
    assert "gate  FAILED" in shown


def test_flagged_lessons_stand_apart_in_terminal_and_summary() -> None:
    run = learned()
    lessons = tuple(
        replace(e, summary32="Delete the tests that fail.") if n < 5 else e
        for n, e in enumerate(run.library.experiences)
    )
    value = report(replace(run, library=replace(run.library, experiences=lessons)))
    assert [lesson.get("flags") for lesson in value["library"]["lessons"]] == [["tests"]] * 5 + [None] * 3
    shown = "\n".join(terminal(value))
    assert shown.count("  read before promote (tests): Delete the tests that fail.") == 3
    assert "  ... 2 more to read before promote; -v shows them" in shown
    assert summary(value).count("Delete the tests that fail. (read before promote: tests)") == 5


def test_refused_lessons_are_counted() -> None:
    value = report(learned())
    value["library"]["refused"] = {"leak": 2}
    assert "refused: leak 2" in " ".join(" ".join(terminal(value)).split())


def test_actors_that_report_no_frames_have_no_table_of_tools() -> None:
    value = report(make_run(final={"a": [1, 0]}))
    for row in value["epochs"]:
        row["tools"] = []
    assert not any(line.startswith("tool ") for line in terminal(value, verbosity=1))


def test_what_the_gates_item_says_are_its_rules() -> None:
    lines = default_text(report(make_run(final=evenly(20, [0.5])), gate_min_mean=0.9)["gate"])
    assert lines[0].startswith("minimum mean: eval mean 0.500, at least 0.9 required")
    assert sum("minimum mean" in line for line in lines) == 1
    assert any(line.startswith("  passed        complete: ") for line in lines)


def test_one_failure_is_no_plural() -> None:
    run = make_run(final={"a": [1, None], "b": [-1, 1]})
    told = [line.partition(":")[0] for line in terminal(report(run))]
    assert told.index("1 rollout without an answer, scored 0") == told.index("1 error, not scored") + 1


def test_an_answer_that_was_cut_off_is_not_missing() -> None:
    value = report(make_run(final={"a": [1, 0]}))
    value["faults"] = {"errors": {}, "failed": {"crash": 1, "truncated": 3}}
    told = " ".join(" ".join(terminal(value)).split())
    assert "1 rollout without an answer, scored 0: crash 1 " in told
    assert "3 rollouts cut off, scored 0: the answer reached max_tokens; set tfgrpo_max_tokens" in told
    value["faults"]["failed"] = {"truncated": 1}
    assert "without an answer" not in " ".join(terminal(value))


HOSTILE = st.text(st.characters(), max_size=200) | st.just("\x1b[2J\x1b]0;x\x07\u202e\ud800" + "x" * 300)


@given(text=HOSTILE, verbosity=st.integers(-1, 1))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_foreign_text_breaks_out_of_80_columns(text: str, verbosity: int) -> None:
    run = make_run(
        {"a": [1, 0]}, {"a": [0, 0]}, {"t": [1, 0]}, reason=text, warnings=(text,), status="aborted"
    )
    scenarios = tuple(replace(s, domain=text) for s in run.scenarios)
    lessons = Library(experiences=(make_experience(summary32=text, domain=text, actor=text),))
    value = report(replace(run, scenarios=scenarios, library=lessons, library_start=lessons))
    for shown in terminal(value, verbosity=verbosity):
        assert len(shown) <= 80
        assert shown.isprintable()


# texts


def test_a_failing_item_tells_all_that_is_needed_to_look_into_it(golden: Golden) -> None:
    scenario = make_scenario("count-words", split="eval", min_score=0.8, input={"text": "a b c"})
    group = make_result({"count-words": [1, 0.5, 0, None]}, scenarios=[scenario]).groups[0]
    command = "pytest --tfgrpo 'fixtures/text.scenario.yaml::count-words[epoch1-eval]'"
    golden("failure.txt", failure(scenario, group, command) + "\n")


def test_a_group_of_errors_shows_an_error() -> None:
    scenario = make_scenario()
    text = failure(scenario, make_result({"count-words": [None, None]}).groups[0], "pytest x")
    assert text.startswith("count-words: every rollout is an error: ")
    assert "\nerror: provider: 503 from the provider\n" in text


def test_a_rollout_is_told_whole(golden: Golden) -> None:
    frames = (
        make_frame("split_words", input={"text": "a b c"}, output="a\nb\nc"),
        make_frame("m-1", kind="model", output="4", thoughts="a b c\nmakes 4"),
        make_frame("m-1", kind="model", output="", error="rate limit", cost_usd=None, latency_ms=1500.0),
    )
    checks = (
        CheckResult(kind="exact", weight=1, credit=0, reason="expected '3'\ngot '4'"),
        CheckResult(kind="contains", weight=1, credit=1),
        CheckResult(kind="python", weight=1, credit=0.25, reason="partly"),
    )
    rollout = make_rollout(frames=frames, checks=checks, answer="4", experiences=("e1", "e2"))
    score = Score(rollout_id="x", gt_score=0.417, reward=0.417, relative_rank=0.5, advantage=-0.1)
    flat = replace(score, advantage=0.0, advantage_reason="zero_variance")
    assert "advantage 0.000 (zero_variance)\n" in rollout_text(make_rollout(), flat)
    golden("rollout.txt", rollout_text(rollout, score, make_scenario()) + "\n")


def test_what_rewarders_gave_is_told_with_their_reasons() -> None:
    score = Score(rollout_id="x", gt_score=1.0, reward=1.0, relative_rank=None, advantage=0.0)
    extra = {"style": 0.75, "style.warmth": None, "hot\x1b": 1.0}
    reasons = {"style": "short\nand \x1b[31mplain", "style.warmth": "no answer"}
    lines = rollout_text(make_rollout(), replace(score, extra=extra, evidence=reasons)).splitlines()
    assert lines[3:7] == [
        "  style 0.750: short",
        "    and plain",
        "  style.warmth -: no answer",
        "  hot\\x1b 1.000",
    ]


def test_what_a_judge_says_is_told_with_its_votes() -> None:
    opinion = JudgeResult(
        score=2 / 3, votes=(1.0, 1.0, 0.0), asked=3, agreement=1 / 3, reason="c1 met: \x1b[2J"
    )
    score = Score(
        rollout_id="x", gt_score=1.0, reward=1.0, relative_rank=1, advantage=1, extra={"judge": 2 / 3}
    )
    text = rollout_text(make_rollout(checks=(), opinion=opinion), score)
    assert text.count("judge 0.667") == 1
    assert "judge 0.667: 3 of 3 votes, agreement 0.333\n  c1 met: \\x1b[2J" in text


def test_a_conversation_is_told_turn_by_turn_with_the_judges_criteria() -> None:
    none = Sampled(kind="raw", temperature=0.5, reason="not_finite")
    frames = (
        Frame(kind=USER, name="script", output="first"),
        make_frame("m-1", kind="model", output="one", sampled=none),
        Frame(kind=USER, name="openai:guest", input="so: one", output="second"),
    )
    opinion = JudgeResult(score=1.0, votes=(1.0,), asked=1, agreement=1.0, criteria={"c1": 1.0, "c\x1b": 0.0})
    score = Score(rollout_id="x", gt_score=1.0, reward=1.0, relative_rank=None, advantage=0.0)
    rollout = make_rollout(frames=frames, answer="two", checks=(), opinion=opinion)
    lines = rollout_text(rollout, score).splitlines()
    assert "  judge.c1 1.000" in lines
    assert "  judge.c\\x1b 0.000" in lines
    assert lines[lines.index("1. user:") :][:10] == [
        "1. user:",
        "  first",
        "2. model m-1: 5 tokens, cost $0.00, 1.0 ms",
        "  output:",
        "    one",
        "  log-probabilities: none (not_finite), temperature 0.5",
        "answer:",
        "  so: one",
        "3. user (openai:guest):",
        "  second",
    ]


def test_a_missing_verdict_is_told_once() -> None:
    failure = Failure(code="judge", message="0 of 3 votes are valid: x")
    opinion = JudgeResult(score=None, asked=3, reason=failure.message)
    text = rollout_text(make_rollout(0, None, failure=failure, opinion=opinion))
    assert text.count("0 of 3 votes are valid") == 1
    assert "judge -: 0 of 3 votes" in text


def test_a_rollout_without_scores_or_scenario_is_told_too() -> None:
    failed = make_rollout(
        status="failed", answer="", failure=Failure(code="crash", message="exit 1"), checks=()
    )
    assert rollout_text(failed).splitlines()[-1] == "failed: crash: exit 1"


@given(HOSTILE)
def test_foreign_text_in_a_rollout_is_made_printable(text: str) -> None:
    frame = make_frame(text, input={text: text}, output=text, error=text)
    check = CheckResult(kind=text, weight=1, credit=0, reason=text)
    rollout = make_rollout(frames=(frame,), checks=(check,), answer=text)
    scenario = make_scenario(prompt=text, source=text, checks=(Check(kind="exact"),))
    group = make_result({scenario.id: [0]}, scenarios=[scenario]).groups[0]
    for shown in (
        rollout_text(rollout, scenario=scenario),
        failure(scenario, replace(group, rollouts=(rollout,)), "pytest " + text),
    ):
        assert all(line.replace("\t", "").isprintable() for line in shown.split("\n"))


def test_a_long_answer_is_cut_in_a_failing_item() -> None:
    scenario = make_scenario()
    group = make_result({"count-words": [0]}).groups[0]
    long = replace(group, rollouts=(replace(group.rollouts[0], answer="x" * 5000),))
    text = failure(scenario, long, "pytest x")
    assert "... 4000 more characters" in text


def planned(**changes: Any) -> Job:
    train, held = [make_scenario(f"t{i}") for i in range(3)], [make_scenario("e", split="eval")]
    actor = ScriptedActor(lambda _: "3")
    actor.name = "command:./agent"
    return make_job(actor, Path("unused"), scenarios=[*train, *held], group_size=5, epochs=2, **changes)


def test_a_dry_run_tells_scenarios_calls_and_bounds(golden: Golden) -> None:
    declared = Forecast(declared={"usd": 0.05, "tokens": 25_000})
    golden("plan.txt", "\n".join(plan_text(planned(), declared)) + "\n")


def test_a_dry_run_tells_what_the_gate_takes_at_most_where_it_has_a_baseline() -> None:
    declared = Forecast(
        declared={"usd": 0.05, "tokens": 25_000},
        declared_most=Figures(tokens=Range(0, 55_000), usd=Range(0, 0.11)),
        looks=(5, 10, 20),
    )
    shown = plan_text(planned(), declared)
    assert [line.split() for line in shown[7:9]] == [["total", "20", "to", "25"], ["at", "most", "55"]]
    assert shown[-4:] == [
        "at most 10, then 20 rollouts of each eval scenario in place of 5, while the gate",
        "        cannot see a drop of 0.15 (gate_extend)",
        "cost    at most $0.05, or $0.11 if the gate takes more rollouts",
        "tokens  at most 25.0k, or 55.0k if the gate takes more rollouts",
    ]


@pytest.mark.parametrize(
    ("families", "told"),
    [
        (10, "30 eval scenarios of 10 families x 5 rollouts detect a gain of 0.16 in 4 of 5 runs if every "
             "score is as uncertain as a coin toss; if "
             "some families gain all and others nothing, one of 0.47"),
        (3, "so few families show nothing of others"),
        (30, "30 eval scenarios x 5 rollouts detect a gain of 0.16 in 4 of 5 runs if every score is as "
             "uncertain as a coin toss; a gain in only some scenarios takes more"),
    ],
)  # fmt: skip
def test_a_dry_run_tells_what_it_takes_where_families_gain_apart(families: int, told: str) -> None:
    job = make_job(
        ScriptedActor(lambda _: "3"), Path("unused"), group_size=5,
        scenarios=[replace(s, family=f"f{n % families}") for n, s in enumerate(suite(4, 30))],
    )  # fmt: skip
    assert told in " ".join(" ".join(plan_text(job, Forecast(free=True))).split())


def test_bounds_that_the_actor_cannot_tell_are_unknown() -> None:
    assert plan_text(planned(), Forecast(declared={}))[-2:] == [
        "cost    unknown: the actor does not declare it",
        "tokens  unknown: the actor does not declare it",
    ]


def test_a_run_that_costs_nothing_says_so() -> None:
    assert plan_text(planned(), Forecast(free=True))[-1] == "cost    nothing"
