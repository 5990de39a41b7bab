"""A pattern on trial: the scripted agent with it beside the same agent without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience
from support.sweeps import make_run

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.settings import from_arguments
from pytest_tfgrpo.core.settings.runs import CONCURRENCY, LIBRARY, PATTERNS
from pytest_tfgrpo.core.wire.stamp import combined_stamp
from pytest_tfgrpo.launch.running import arun_launch
from pytest_tfgrpo.learning.library.library import load_library, of, save_library
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternBody, PatternEvidence
from pytest_tfgrpo.patterns.shelf.skill_text import skill_text
from pytest_tfgrpo.patterns.trial import trial as module
from pytest_tfgrpo.patterns.trial.skill_file import skill_overlay
from pytest_tfgrpo.patterns.trial.trial import TrialPlan, TrialRuns, run_trial, trial_scenarios
from pytest_tfgrpo.patterns.trial.verdict import verdict

AGENT = """
def solve(context):
    told = context.prompt.system
    skill = context.workspace / ".claude/skills/split-first/SKILL.md"
    if skill.is_file():
        told += skill.read_text()
        skill.write_text("changed by the agent")
    count = len(context.prompt.user.split(": ")[-1].split())
    luck = context.seed % 2
    right = "split_words" in told or (luck and "count characters" not in told)
    return {"answer": str(count + (not right))}
"""
TEXTS = [" ".join(["word"] * (2 + n % 3) + [name]) for n, name in enumerate("abcdefghijklmn")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "trial_agent.py").write_text(AGENT)
    rows = [
        f"dev-{n},dev,How many words: {text},{len(text.split())},kind {n}" for n, text in enumerate(TEXTS)
    ]
    rows += ["eval-1,eval,How many words are there: one,1,kind e"]
    (tmp_path / "words.scenarios.csv").write_text("\n".join(["id,split,prompt,answer,family", *rows]) + "\n")
    return tmp_path


def pattern(lesson: str = "Count the words with split_words.", **changes: Any) -> Pattern:
    body = PatternBody(problem="", solution="", rationale="", when_not="")
    known = {
        "id": "p-1",
        "name": "split-first",
        "title": "Split",
        "domain": "general",
        "description": "Split.",
    }
    return replace(Pattern(**known, lesson=lesson, body=body), **changes)  # type: ignore[arg-type]


def plan(project: Path, tried: Pattern, **changes: Any) -> TrialPlan:
    settings = from_arguments({"actor": "python:trial_agent:solve"}, learning=False)
    known = {"root": project, "settings": settings, "suite": Path("words.scenarios.csv"), "rollouts": 4}
    return TrialPlan(pattern=tried, out=project / "out" / "trial", **{**known, **changes})


def tried(project: Path, lesson: str, **changes: Any) -> TrialRuns:
    return run_trial(plan(project, pattern(lesson), **changes), {}, arun_launch)


@pytest.mark.parametrize(
    ("lesson", "outcome"),
    [
        ("Count the words with split_words.", "helps"),
        ("To count the words, count characters.", "harms"),
        ("Count the words with care.", "inconclusive"),
    ],
)
def test_a_lesson_that_helps_one_that_harms_and_an_idle_one_are_told_apart(
    project: Path, lesson: str, outcome: str
) -> None:
    found = tried(project, lesson)
    assert (found.result.outcome, found.carried, found.rollouts) == (outcome, 56, 56)
    assert (found.result.families, found.result.delivery) == (14, "prompt")
    assert (found.result.needed is None) == (outcome != "inconclusive")


def test_a_skill_lies_in_the_workspace_of_one_agent_and_is_never_graded(project: Path) -> None:
    found = tried(project, "Count the words with split_words.", delivery="skill")
    assert (found.result.outcome, found.result.delivery) == ("helps", "skill")
    assert found.carried == found.rollouts


def test_a_trial_is_of_one_agent(project: Path) -> None:
    both = from_arguments({"actor": "a = python:trial_agent:solve\nb = offline"}, learning=False)
    with pytest.raises(SettingError, match=r"lists 2; name one .* TFGRPO_ACTOR=python:trial_agent:solve"):
        run_trial(plan(project, pattern(), settings=both), {}, arun_launch)


@pytest.mark.parametrize("delivery", ["prompt", "skill"])
@pytest.mark.parametrize(("concurrency", "each"), [(5, 2), (1, 1), ("auto", "auto")])
def test_the_two_runs_differ_in_the_pattern_alone_and_share_what_you_allow(
    project: Path, delivery: Any, concurrency: Any, each: Any
) -> None:
    lessons = make_experience(1, id="kept"), make_experience(2, id="own", run_id="p-1")
    save_library(project / "old.json", of(lessons))
    settings = from_arguments({"actor": "python:trial_agent:solve"}, learning=False).with_values(
        baseline="main", limit=3, record="x", concurrency=concurrency, library="old.json",
        gates="strict", gate_min_mean=0.5,
    )  # fmt: skip
    seen: list[Any] = []

    async def carry_out(launch: Any) -> Any:
        library = load_library(Path(LIBRARY.of(launch.settings)))
        seen.append((launch.settings, {lesson.id for lesson in library.experiences}))
        raise SettingError("enough")

    with pytest.raises(SettingError, match="enough"):
        run_trial(plan(project, pattern(), settings=settings, delivery=delivery), {}, carry_out)
    (without, before), (with_it, after) = seen
    assert [Path(LIBRARY.of(one)).stem for one in (without, with_it)] == ["without", "with"]
    assert (before, after >= before, len(after)) == ({"kept"}, True, 2 if delivery == "prompt" else 1)
    for one, task in ((without, "without"), (with_it, "with")):
        assert (CONCURRENCY.of(one), PATTERNS.of(one), one.eval_rollouts) == (each, "none", 4)
        unset = ("baseline", "limit", "record", "gates", "gate_min_mean")
        assert {one.values.get(name) for name in unset} == {None}
        assert (one.values["out"], one.values["task_id"]) == (str(project / "out" / "trial"), task)


def test_a_lesson_that_no_prompt_carried_shows_nothing(project: Path) -> None:
    found = tried(project, "Be kind to animals.")
    assert (found.result.outcome, found.result.why) == ("inconclusive", "no prompt carried the lesson")


def test_the_pattern_is_not_tried_on_what_it_was_written_from_nor_on_the_eval_split(project: Path) -> None:
    evidence = PatternEvidence(
        job="j", scenario="dev-3", scenario_stamp="", commit="", tarball_sha256="", diff_sha256=""
    )
    text = (project / "words.scenarios.csv").read_text().replace("kind 5", "kind 3")
    (project / "words.scenarios.csv").write_text(text)
    kept = [scenario.id for scenario in trial_scenarios(plan(project, pattern(evidence=evidence)))]
    assert kept == [f"dev-{n}" for n in range(14) if n not in (3, 5)]


def test_a_suite_that_cannot_try_a_pattern_is_refused_before_any_call(project: Path) -> None:
    with pytest.raises(SettingError, match="its domain is 'dates'"):
        trial_scenarios(plan(project, pattern(domain="dates")))
    text = (project / "words.scenarios.csv").read_text().replace(",dev,", ",eval,")
    (project / "words.scenarios.csv").write_text(text)
    with pytest.raises(SettingError, match="has no dev scenarios"):
        trial_scenarios(plan(project, pattern()))


def test_an_active_pattern_is_not_in_the_prompts_of_the_agent_without_it(project: Path) -> None:
    front = "id: p-1\nname: split-first\ndomain: general\npolarity: do\n"
    active = project / "shelf" / "active" / "split-first.md"
    active.parent.mkdir(parents=True)
    active.write_text(f"---\n{front}lesson: Count the words with split_words.\n---\n")
    settings = from_arguments({"actor": "python:trial_agent:solve", "patterns": "shelf"}, learning=False)
    assert tried(project, "Count the words with split_words.", settings=settings).result.outcome == "helps"


def test_nine_families_settle_nothing_and_ten_do() -> None:
    scores = {f"s{n}": [0.0] for n in range(10)}
    without, ten = make_run(None, scores), make_run(None, {id_: [1.0] for id_ in scores}, run_id="other")
    assert verdict(without, ten).outcome == "helps"
    fewer = [replace(s, family="same") if s.id in ("s0", "s1") else s for s in without.scenarios]
    nine = verdict(replace(without, scenarios=tuple(fewer)), replace(ten, scenarios=tuple(fewer)))
    assert (nine.outcome, nine.families, nine.why) == (
        "inconclusive",
        9,
        "9 of the 10 families that are needed",
    )


def test_who_tries_again_until_it_helps_needs_more_to_show_it() -> None:
    before = {f"s{n}": [0.0] for n in range(10)}
    after = {**before, **{f"s{n}": [1.0] for n in range(6)}}
    runs = make_run(None, before), make_run(None, after, run_id="other")
    assert [verdict(*runs, looks=looks).outcome for looks in (1, 2)] == ["helps", "inconclusive"]
    worse = [verdict(*runs[::-1], looks=looks).outcome for looks in (1, 2)]
    assert worse == ["harms", "harms"]


def carried_out(project: Path, tried: Pattern, runs: Mapping[str, Any], **changes: Any) -> TrialRuns:
    """Try a pattern where the two runs come out like these, by task."""

    async def carry_out(launch: Any) -> Any:
        return SimpleNamespace(run=runs[launch.settings.values["task_id"]])

    return run_trial(plan(project, tried, **changes), {}, carry_out)


def runs_of(after: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    before = {id_: [0.0] for id_ in after}
    return {"without": make_run(None, before), "with": make_run(None, after, run_id="other")}


def test_a_result_says_what_was_tried_when_and_on_what(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "utc_now", lambda: "noon")
    known = pattern(stamp="5" * 64)
    runs = runs_of({f"s{n}": [float(n < 6)] for n in range(10)})
    looks: list[int] = [1, 2]
    once = carried_out(project, known, runs, delivery="skill", looks=lambda: looks[0]).result
    assert (once.outcome, once.tried_at, once.pattern_stamp) == ("helps", "noon", "5" * 64)
    assert once.suite == combined_stamp({one.stamp for one in trial_scenarios(plan(project, known))})
    assert carried_out(project, known, runs, delivery="skill", looks=lambda: looks[1]).result.outcome == (
        "inconclusive"
    )


def test_rollouts_that_ended_with_an_error_carried_nothing(project: Path) -> None:
    runs = runs_of({f"s{n}": [None if n < 4 else 1.0] for n in range(10)})
    found = carried_out(project, pattern(), runs, delivery="skill")
    assert (found.carried, found.rollouts) == (6, 10)


def test_a_verdict_has_the_interval_around_its_gain_and_the_cost_of_both_runs() -> None:
    runs = runs_of({f"s{n}": [float(n < 6)] for n in range(10)})
    found = verdict(runs["without"], runs["with"])
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.6 < found.high
    assert (found.gain, found.scenarios, found.cost_usd) == (0.6, 10, pytest.approx(0.02))


def test_both_agents_have_the_other_active_patterns_and_one_has_that_on_trial(project: Path) -> None:
    active = project / "shelf" / "active" / "other.md"
    active.parent.mkdir(parents=True)
    front = "id: p-2\nname: other\ndomain: general\npolarity: do\nlesson: Mind the gap."
    active.write_text(f"---\n{front}\n---\n")
    settings = from_arguments({"actor": "python:trial_agent:solve", "patterns": "shelf"}, learning=False)
    seen: list[Any] = []

    async def carry_out(launch: Any) -> Any:
        library = load_library(Path(LIBRARY.of(launch.settings)))
        seen.append({(lesson.summary32, lesson.polarity) for lesson in library.experiences})
        raise SettingError("enough")

    with pytest.raises(SettingError, match="enough"):
        run_trial(plan(project, pattern("Guess.", polarity="avoid"), settings=settings), {}, carry_out)
    other = ("Mind the gap.", "do")
    assert seen == [{other}, {other, ("Guess.", "avoid")}]


def test_a_skill_is_tried_on_scenarios_of_other_domains_too(project: Path) -> None:
    assert len(trial_scenarios(plan(project, pattern(domain="dates"), delivery="skill"))) == 14


def test_a_skill_lies_where_each_of_the_coding_agents_looks(tmp_path: Path) -> None:
    found = skill_overlay(pattern(), tmp_path)
    folders = (".agents/skills", ".claude/skills")
    assert [one.name for one in found] == [f"{folder}/split-first/SKILL.md" for folder in folders]
    assert {one.path.read_text() for one in found} == {skill_text(pattern())}
