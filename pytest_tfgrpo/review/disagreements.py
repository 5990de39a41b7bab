"""Marks beside the results of the checks: where the two disagree, and reviewers among themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Rollout, Run, Score
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.review.marks import Mark, Opinion

HALF = 0.5
"""Score from which an estimate counts as passed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewedAnswer:
    """One answer with what reviewers think of it and what its checks found."""

    rollout: Rollout
    scenario: Scenario
    marks: tuple[Mark, ...]
    passed: bool
    """Whether every check passed it; of an estimate, whether its score is at least a half."""

    @property
    def opinion(self) -> Opinion | None:
        """What the reviewers who are sure agree on: ``unsure`` if none is, None if they disagree."""
        sure = {mark.opinion for mark in self.marks} - {"unsure"}
        return sure.pop() if len(sure) == 1 else None if sure else "unsure"

    @property
    def is_false_pass(self) -> bool:
        """Whether the checks passed what people call wrong."""
        return self.passed and self.opinion == "wrong"

    @property
    def is_false_fail(self) -> bool:
        """Whether the checks failed what people call right."""
        return not self.passed and self.opinion == "right"


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """All marks of a run."""

    run_id: str
    answers: tuple[ReviewedAnswer, ...]
    """In the order of the run."""
    not_applied: Mapping[Mark, str]
    """Why a mark does not count."""

    @property
    def false_passes(self) -> tuple[ReviewedAnswer, ...]:
        """Answers that passed and are wrong."""
        return tuple(answer for answer in self.answers if answer.is_false_pass)

    @property
    def false_fails(self) -> tuple[ReviewedAnswer, ...]:
        """Answers that failed and are right."""
        return tuple(answer for answer in self.answers if answer.is_false_fail)

    @property
    def disputed(self) -> tuple[ReviewedAnswer, ...]:
        """Answers that some reviewers call right and others wrong."""
        return tuple(answer for answer in self.answers if answer.opinion is None)


def review(run: Run, marks: Sequence[Mark], now: Mapping[str, str]) -> Review:
    """Return what marks say of a run; `now` has the stamp of each scenario that can be read today, by id."""
    scenarios = {scenario.id: scenario for scenario in run.scenarios}
    found = {rollout.rollout_id: (rollout, score) for rollout, score in scored(run)}
    not_applied: dict[Mark, str] = {}
    of: dict[str, list[Mark]] = {}
    for mark in marks:
        reason = _against(mark, run.run_id, found, scenarios, now)
        if reason:
            not_applied[mark] = reason
        else:
            of.setdefault(mark.rollout_id, []).append(mark)
    answers = (
        ReviewedAnswer(
            rollout=rollout,
            scenario=scenarios[rollout.scenario_id],
            marks=tuple(of[id_]),
            passed=has_passed(score, scenarios[rollout.scenario_id]),
        )
        for id_, (rollout, score) in found.items()
        if id_ in of
    )
    return Review(run_id=run.run_id, answers=tuple(answers), not_applied=not_applied)


def _against(
    mark: Mark,
    run_id: str,
    found: Mapping[str, tuple[Rollout, Score]],
    scenarios: Mapping[str, Scenario],
    now: Mapping[str, str],
) -> str:
    """Return why a mark does not count; empty if it does."""
    if mark.run_id != run_id:
        return f"of run {line(mark.run_id, 60)}"
    if mark.rollout_id not in found or found[mark.rollout_id][0].scenario_id != mark.scenario_id:
        return "the run has no such answer"
    if found[mark.rollout_id][0].status == "error":
        return "an error of the run, not an answer"
    scenario = scenarios[mark.scenario_id]
    if mark.stamp != scenario.stamp:
        return "made for another version of the scenario"
    if scenario.checker is None and now.get(scenario.id) != scenario.stamp:
        return (
            "the scenario changed since the run"
            if scenario.id in now
            else "the scenario is gone since the run"
        )
    return ""


def scored(run: Run) -> list[tuple[Rollout, Score]]:
    """Return every rollout of a run that is in a group, with its score."""
    groups: list[Group] = [group for result in run.phases for group in result.with_dev]
    return [pair for group in groups for pair in zip(group.rollouts, group.scores, strict=True)]


def has_passed(score: Score, scenario: Scenario) -> bool:
    """Return whether every check passed an answer, or where there are none, its estimate says so."""
    bar = 1.0 if scenario.truth == "checks" else HALF
    return score.gt_score is not None and score.gt_score >= bar
