"""The text of a failing item and of a whole rollout."""

from dataclasses import replace

from support.builders import make_rollout, make_scenario
from support.sweeps import make_run

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.records import CheckResult, Frame, JudgeResult, Score
from pytest_tfgrpo.report import rollout as texts


def test_a_failing_item_shows_the_worst_rollout_and_the_score_that_is_needed() -> None:
    run = make_run(None, {"a": [1, None, 0.25, 0.5]})
    (group,), (scenario,) = run.phases[0].groups, run.scenarios
    found = texts.failure(replace(scenario, source="s.yaml:3"), group, "pytest -k a")
    lines = found.splitlines()
    assert lines[0] == "a: gt_score 0.583, at least 1 required"
    assert lines[1:3] == ["scenario: s.yaml:3", "rollouts: 1.000, error, 0.250, 0.500"]
    assert f"rollout {group.rollouts[2].rollout_id}, seed {group.rollouts[2].seed}, temperature 0.3" in lines
    assert lines[-2:] == [
        "run it again: pytest -k a",
        f"see it in full: tfgrpo show {group.rollouts[2].rollout_id}",
    ]
    bare = texts.failure(replace(scenario, min_score=0.75), group, "x", least=0.9, recorded=False)
    assert bare.startswith("a: gt_score 0.583, at least 0.75 required")
    assert bare.endswith("run it again: x")
    assert "at least 0.9 required" in texts.failure(scenario, group, "x", least=0.9)
    assert texts.reason(scenario, group).endswith(" (mean 0.583 of 4 rollouts)")
    assert texts.reason(scenario, group).startswith("exact: expected '3', got '4'")
    one = make_run(None, {"a": [0.25]}).phases[0].groups[0]
    assert texts.reason(scenario, one) == "exact: expected '3', got '4'"
    none = make_run(None, {"a": [None, None]}).phases[0].groups[0]
    assert texts.failure(scenario, none, "x").startswith(
        "a: every rollout is an error: provider: 503 from the provider\n"
    )
    assert texts.reason(scenario, none) == "provider: 503 from the provider (mean - of 2 rollouts)"
    assert texts.failure_again(scenario, none, "b\x1b") == (
        "a: every rollout is an error: provider: 503 from the provider\n"
        f"the same as b\\x1b; see it in full: tfgrpo show {none.rollouts[0].rollout_id}"
    )
    assert texts.fault(one.rollouts[0]) == ""


def test_a_whole_rollout_has_its_scores_lessons_frames_and_every_check() -> None:
    checks = (
        CheckResult(kind="exact", weight=1.0, credit=0.0, reason="no\nmore"),
        CheckResult(kind="json", weight=1.0, credit=0.5),
        CheckResult(kind="words", weight=1.0, credit=1.0),
    )
    frame = Frame(kind="tool", name="search", input={"q": "ä"}, output="found", error="late", extra={"k": 1})
    rollout = make_rollout(
        1,
        0.5,
        checks=checks,
        frames=(frame,),
        experiences=("e1", "e2"),
        extra={"x": "y"},
        opinion=JudgeResult(
            score=0.5, votes=(), asked=3, agreement=0.25, criteria={"tone": 0.5}, reason="so so"
        ),
    )
    score = Score(
        rollout_id=rollout.rollout_id,
        gt_score=0.5,
        reward=0.25,
        relative_rank=0.1,
        advantage=None,
        advantage_reason="alone",
        extra={"style": 0.75, "judge": 0.5},
        evidence={"style": "one\ntwo"},
    )
    text = texts.rollout_text(rollout, score, make_scenario("a", prompt="How many?", input=[1]))
    lines = text.splitlines()
    assert "gt_score 0.500, reward 0.250, relative rank 0.100, advantage - (alone)" in lines
    assert [n for n in lines if n.startswith("  style")] == ["  style 0.750: one"]
    assert "    two" in lines
    assert "  judge 0.500" not in lines, "the judge has its own line"
    assert "  judge.tone 0.500" in lines
    assert "lessons in its prompt: e1, e2" in lines
    assert lines[lines.index("prompt:") + 1] == "  How many?"
    assert "judge 0.500: 0 of 3 votes, agreement 0.250" in lines
    assert [lines[n] for n in range(lines.index("checks:"), len(lines))] == [
        "checks:",
        "  exact failed: no",
        "    more",
        "  json credit 0.50",
        "  words passed",
    ]
    for part in ("  input:", "  output:", "  error:", "  extra:"):
        assert part in lines
    asked = replace(rollout, frames=(Frame(kind=USER, name="script", output="hello"),))
    talk = texts.rollout_text(asked, None, make_scenario("a", prompt="How many?"))
    assert "prompt:" not in talk.splitlines()
    assert "1. user:" in talk
    other = texts.rollout_text(
        replace(rollout, frames=(Frame(kind=USER, name="m", output="hi", input="ans"),))
    )
    assert "1. user (m):" in other
    assert "in short" not in other
