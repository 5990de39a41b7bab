"""Whole runs for tests: a few scenarios, a baseline sweep, a training epoch and a final sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_tfgrpo.core.lessons import Library, Operation, Revision
from pytest_tfgrpo.core.records import (
    CheckResult,
    Failure,
    Group,
    Mode,
    Phase,
    PhaseResult,
    Rollout,
    Run,
    Score,
)
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import TABLE
from pytest_tfgrpo.gate.named_gates import NamedVerdict
from pytest_tfgrpo.gate.verdict import RuleResult, Verdict
from pytest_tfgrpo.metrics import significance
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.scoring.rewarders.scoring import group_of, score
from support.builders import make_experience, make_rollout, make_scenario

SETTINGS: Mapping[str, Any] = {setting.name: setting.default for setting in TABLE} | {"actor": "offline"}
Credits = Sequence[float | None]


def make_result(
    credited: Mapping[str, Credits],
    *,
    epoch: int = 1,
    mode: Mode = "eval",
    scenarios: Sequence[Scenario] = (),
    run_id: str = "run1",
    **changes: Any,
) -> PhaseResult:
    """Return a phase with one group per scenario id in `credited`; None makes an error, -1 a timeout."""
    known = {s.id: s for s in scenarios}
    groups = [
        _group(known.get(id_) or make_scenario(id_), row, epoch, mode, run_id)
        for id_, row in credited.items()
    ]
    phase = Phase(
        epoch=epoch,
        mode=mode,
        temperature=0.7 if mode == "train" else 0.3,
        rollouts=max((len(row) for row in credited.values()), default=1),
        scenarios=tuple(credited),
    )
    fields: dict[str, Any] = {"status": "complete", "library_hash": "b" * 64}
    return PhaseResult(phase=phase, groups=tuple(groups), **fields | changes)


def _group(scenario: Scenario, credited: Credits, epoch: int, mode: Mode, run_id: str) -> Group:
    rollouts = [_rollout(scenario, i, credit, epoch, mode, run_id) for i, credit in enumerate(credited)]
    return group_of(rollouts, score(rollouts, {scenario.id: scenario}), scenario)


def _rollout(
    scenario: Scenario, index: int, credit: float | None, epoch: int, mode: Mode, run_id: str
) -> Rollout:
    changes: dict[str, Any] = {
        "scenario_id": scenario.id,
        "epoch": epoch,
        "mode": mode,
        "run_id": run_id,
        "group_id": f"{run_id}.e{epoch}.{scenario.id}",
        "temperature": 0.7 if mode == "train" else 0.3,
        "latency_ms": 10.0 * (index + 1),
        "cost_usd": 0.001,
        "tokens": 100 + index,
    }
    if credit is None:
        changes |= {"failure": Failure(code="provider", message="503 from the provider"), "answer": ""}
    elif credit < 0:
        changes |= {"failure": Failure(code="timeout", message="no answer in 2 s"), "status": "failed"}
        changes |= {"answer": "", "checks": (CheckResult(kind="exact", weight=1.0, credit=0.0),)}
    elif credit < 1:
        reason = "expected '3', got '4'"
        changes |= {"checks": (CheckResult(kind="exact", weight=1.0, credit=credit, reason=reason),)}
        changes |= {"answer": "4"}
    return make_rollout(index, credit, **changes)


def make_run(
    baseline: Mapping[str, Credits] | None = None,
    final: Mapping[str, Credits] | None = None,
    train: Mapping[str, Credits] | None = None,
    **changes: Any,
) -> Run:
    """Return a run of the phases that are given; ids that start with ``date`` are of the domain `dates`."""
    run_id = changes.get("run_id", "run1")
    ids = dict.fromkeys([*(baseline or {}), *(train or {}), *(final or {})])
    scenarios = changes.pop("scenarios", None) or tuple(
        make_scenario(
            id_,
            domain="dates" if id_.startswith("date") else "text",
            split="train" if id_ in (train or {}) else "eval",
            prompt=f"How many words are in 'a b {id_}'?",
            stamp=f"{n:064x}",
        )
        for n, id_ in enumerate(ids)
    )
    library = Library(hash="c" * 64, experiences=(make_experience(1), make_experience(2, polarity="avoid")))
    revision = Revision(
        epoch=1,
        library=library,
        applied=tuple(Operation(kind="add", experience=e) for e in library.experiences),
        lesson_groups=1,
        informative_groups=1,
    )
    phases = []
    if baseline is not None:
        before = make_result(baseline, epoch=0, mode="baseline", scenarios=scenarios, run_id=run_id)
        phases.append(replace(before, phase=replace(before.phase, concurrent=True)))
    if train is not None:
        phases.append(make_result(train, mode="train", scenarios=scenarios, run_id=run_id, revision=revision))
    if final is not None:
        carried = ("b" if baseline is None else "c") * 64
        phases.append(make_result(final, epoch=2, scenarios=scenarios, run_id=run_id, library_hash=carried))
    fields: dict[str, Any] = {
        "run_id": run_id,
        "task_id": "demo",
        "status": "complete",
        "started_at": "2026-01-31T12:00:00.000Z",
        "finished_at": "2026-01-31T12:00:30.000Z",
        "settings": SETTINGS,
        "stamps": {"actor": "1" * 64, "packs": "2" * 64, "scenarios": "3" * 64},
        "versions": {"pytest-tfgrpo": "0.1.0"},
        "scenarios": scenarios,
        "phases": tuple(phases),
        "library_start": Library(hash="b" * 64),
        "library": library if train is not None else Library(hash="b" * 64),
    }
    return Run(**fields | changes)


def evenly(n: int, credited: Credits, prefix: str = "s") -> dict[str, Credits]:
    """Return `n` scenarios that all score `credited`."""
    return {f"{prefix}{i}": credited for i in range(n)}


def with_placebo(run: Run, credited: Mapping[str, Credits]) -> Run:
    """Return a run that a placebo sweep ran in too."""
    result = make_result(credited, epoch=-2, mode="placebo", scenarios=run.scenarios, library_hash="d" * 64)
    result = replace(result, phase=replace(result.phase, concurrent=True))
    return replace(run, phases=(result, *run.phases))


def swept(final: Mapping[str, Credits], **changes: Any) -> Run:
    """Return a run with this final sweep."""
    return make_run(final=final, **changes)


def rule(found: Verdict | NamedVerdict, name: str) -> RuleResult:
    """Return the result of a rule of the gate."""
    return next(result for result in found.results if result.name == name)


def rated(run: Run, ratings: Mapping[str, Credits], name: str = "politeness", why: str = "") -> Run:
    """Return the run with the scores of an additional rewarder in every phase; errors have none."""

    def one(score: Score, value: float | None) -> Score:
        if score.gt_score is None:
            return replace(score, extra={**score.extra, name: None})
        evidence = {**score.evidence, name: why} if why else score.evidence
        return replace(score, extra={**score.extra, name: value}, evidence=evidence)

    def of(group: Group) -> Group:
        row = [*ratings.get(group.scenario_id, ()), *([None] * len(group.scores))]
        return replace(group, scores=tuple(map(one, group.scores, row)))

    phases = (replace(result, groups=tuple(map(of, result.groups))) for result in run.phases)
    return replace(run, phases=tuple(phases))


def in_domains(gains: dict[str, list[int]]) -> Run:
    """Return a run whose scenarios went from 0, 1 or 2 of 4 rollouts up or down by `gains`, in domains."""
    rows = [(f"{name}-{i}", name, gain) for name, own in gains.items() for i, gain in enumerate(own)]
    before = {id_: [1.0] * 2 + [0.0] * 2 for id_, _, _ in rows}
    after = {id_: [1.0] * (2 + gain) + [0.0] * (2 - gain) for id_, _, gain in rows}
    run = make_run(before, after)
    domain = {id_: name for id_, name, _ in rows}
    return replace(run, scenarios=tuple(replace(s, domain=domain[s.id]) for s in run.scenarios))


def claims_of_chance(runs: int) -> int:
    """Return in how many runs, in which nothing but chance differs, one of 8 domains claims a change."""
    rng = np.random.default_rng(1)
    run = in_domains(dict.fromkeys("abcdefgh", [0] * 12))
    before = Sweeps(run).rows_before
    false = 0
    for _ in range(runs):
        gains = rng.choice([-1, 0, 1], len(before))
        after = {
            id_: replace(row, sum=row.sum + gain, sum_sq=row.sum_sq + gain)
            for (id_, row), gain in zip(before.items(), gains, strict=True)
        }
        false += any(row["claim"] for row in significance.domains(run, before, after))
    return false
