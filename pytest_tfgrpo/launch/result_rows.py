"""The rollouts of a run as flat rows, all with the same columns, as data frames take them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

from pytest_tfgrpo.core.records import PhaseResult, Rollout, Run, Score
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.metrics.values import criteria_of, derived
from pytest_tfgrpo.privacy.redact import redact

ResultRow: TypeAlias = dict[str, str | int | float | bool | None]


def rows_of(run: Run, agent: str) -> list[ResultRow]:
    """Return a row for each rollout of a run, in the order of its phases; `agent` is whose run it is."""
    scenarios, criteria = {s.id: s for s in run.scenarios}, criteria_of(run)
    found = []
    for result in run.phases:
        for rollout, score in _rollouts(result):
            scenario = scenarios.get(rollout.scenario_id)
            metrics = {} if score is None else dict(score.extra)
            metrics |= {
                name: value
                for name, (value, _) in derived(rollout, criteria.get(rollout.scenario_id, ())).items()
            }
            found.append((_row(agent, result, scenario, rollout, score), metrics))
    names = sorted({name for _, metrics in found for name in metrics})
    return [row | {_column(name, row): metrics.get(name) for name in names} for row, metrics in found]


def _column(name: str, row: ResultRow) -> str:
    """Return the column of a metric: a rewarder may be called as one that each row has."""
    return f"metric.{name}" if name in row else name


def _rollouts(result: PhaseResult) -> Iterator[tuple[Rollout, Score | None]]:
    """Yield the rollouts of a phase with their scores, at last those that nothing scored."""
    for group in chain(result.groups, result.dev):
        yield from zip(group.rollouts, group.scores, strict=True)
    for rollout in result.loose:
        yield rollout, None


def _row(
    agent: str, result: PhaseResult, scenario: Scenario | None, rollout: Rollout, score: Score | None
) -> ResultRow:
    gt, failure = (None if score is None else score.gt_score), rollout.failure
    return {
        "agent": agent,
        "scenario": rollout.scenario_id,
        "split": None if scenario is None else scenario.split,
        "domain": None if scenario is None else scenario.domain,
        "tags": "" if scenario is None else ", ".join(scenario.tags),
        "prompt": None if scenario is None else scenario.prompt,
        "phase": result.phase.label,
        "epoch": rollout.epoch,
        "rollout": rollout.index,
        "status": rollout.status,
        "answer": redact(rollout.answer),
        "passed": None if gt is None else gt >= 1.0,
        "score": gt,
        "reward": None if score is None else score.reward,
        "reason": redact("; ".join(check.reason for check in rollout.checks if check.reason)),
        "error": None if failure is None else f"{failure.code}: {redact(failure.message)}",
        "latency_ms": rollout.latency_ms,
        "tokens": rollout.tokens,
        "cost_usd": rollout.cost_usd,
        "lessons": len(rollout.experiences),
        "rollout_id": rollout.rollout_id,
        "run_id": rollout.run_id,
    }
