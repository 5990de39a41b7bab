"""``tfgrpo patterns trial``: what it prints before and after a trial, and what it keeps of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.patterns.shelves import make_pattern, put
from support.tools import tfgrpo

from pytest_tfgrpo.cli.patterns import trial
from pytest_tfgrpo.patterns.shelf.moves import write_candidate
from pytest_tfgrpo.patterns.shelf.pattern import TrialResult
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of
from pytest_tfgrpo.patterns.trial.trial import TrialPlan, TrialRuns

NAME = "read-rows-at-once"
MEASURED = "difference +0.125, 95 % interval +0.050 to +0.200, 24 scenarios of 12 families"
HELPS = TrialResult(
    outcome="helps",
    gain=0.125,
    low=0.05,
    high=0.2,
    scenarios=24,
    families=12,
    cost_usd=1.5,
    tried_at="2026-01-01",
)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {},
            [
                "the lesson was in 23 of 24 prompts",
                f"helps: {MEASURED}",
                "cost   $1.50",
            ],
        ),
        (
            {"delivery": "skill", "outcome": "inconclusive", "needed": 90, "cost_usd": None},
            [
                f"inconclusive: {MEASURED}",
                "needed about 90 scenarios, if the difference stays what it is",
                "cost   not known",
            ],
        ),
        (
            {
                "outcome": "inconclusive",
                "needed": 9,
                "why": "errors",
                "low": None,
                "gain": -0.5,
                "cost_usd": 0.0,
            },
            [
                "the lesson was in 23 of 24 prompts",
                "inconclusive: difference -0.500, too few for an interval, 24 scenarios of 12 families",
                "why    errors",
                "cost   $0.00",
            ],
        ),
        ({"needed": 90, "high": None, "delivery": "skill"}, None),
    ],
)
def test_a_trial_is_told_in_lines(changes: dict[str, Any], lines: list[str] | None) -> None:
    told = list(trial._lines(TrialRuns(replace(HELPS, **changes), 23, 24)))
    if lines is not None:
        assert told == lines
    else:
        assert told[0].startswith("helps: difference +0.125, too few for an interval")
        assert told[1] == "cost   $1.50"


@pytest.fixture
def tried(repository: Path, monkeypatch: pytest.MonkeyPatch) -> list[TrialPlan]:
    """Have trials end at once; returns their plans."""
    plans: list[TrialPlan] = []

    def run(plan: TrialPlan, environ: object, carry_out: object) -> TrialRuns:
        plans.append(plan)
        return TrialRuns(replace(HELPS, pattern_stamp=stamp_of(plan.pattern)), 0 if len(plans) > 2 else 2, 2)

    monkeypatch.setattr(trial, "run_trial", run)
    monkeypatch.setattr(trial, "trial_scenarios", lambda plan: ("s",))
    monkeypatch.setattr(trial, "new_run_id", lambda: "2026-1")
    return plans


def test_a_trial_is_kept_with_the_pattern_and_each_of_one_text_is_counted(
    repository: Path, tried: list[TrialPlan]
) -> None:
    shelf = put(repository)
    write_candidate(shelf, make_pattern())
    said = tfgrpo("patterns", "trial", NAME, "--suite", "..", "--rollouts", "2").splitlines()
    assert said[0] == f"{NAME}: 1 dev scenario, 2 rollouts each, with it and without it (a lesson in prompts)"
    assert said[1] == "the lesson was in 2 of 2 prompts"
    place = "out/shop/trials/2026-1-read-rows-at-once"
    assert said[-1] == f"wrote  {shelf.find(NAME).path.relative_to(repository)}; both runs are in ../{place}"
    assert (repository / "out" / ".gitignore").is_file()
    assert [entry["event"] for entry in shelf.entries()] == ["written", "tried"]
    kept = shelf.pattern(NAME).trial
    assert kept is not None
    assert (kept.outcome, kept.gain) == ("helps", 0.125)
    said = tfgrpo("patterns", "trial", NAME, "--suite", "..", "--delivery", "skill").splitlines()
    assert said[0].endswith(", 4 rollouts each, with it and without it (a skill in workspaces)")
    assert said[1] == "trial 2 of this text: it helps only at a level of 0.025"
    first, second = tried
    assert (first.rollouts, first.delivery, second.rollouts, second.delivery) == (2, "prompt", 4, "skill")
    assert (first.suite, first.root, first.out) == (repository, repository, repository / place)


def test_a_trial_whose_lesson_no_prompt_had_is_not_kept(repository: Path, tried: list[TrialPlan]) -> None:
    shelf = put(repository)
    write_candidate(shelf, make_pattern())
    tried.extend([None, None])  # type: ignore[list-item]
    said = tfgrpo("patterns", "trial", NAME, "--suite", "..", code=1)
    assert "see why in ../out/shop/trials/2026-1-read-rows-at-once, then try again" in said
    assert shelf.pattern(NAME).trial is None
