"""Results of arenas with effects that are known."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.arena.result import ArenaResult, Side

FAMILY = 3
"""Scenarios of a family."""


def arena_result(sides: Sequence[Side], **values: Any) -> ArenaResult:
    """Return the result of an arena with these sides; families are those of `families_of`."""
    ids = dict.fromkeys(id_ for side in sides for id_ in side.scores)
    known: dict[str, Any] = {
        "arena_id": "20261128T120000-0123abcd",
        "task_id": "tickets",
        "families": families_of(list(ids)),
        "budget_rollouts": 400,
        "budget_teacher_calls": 400,
        "margin": 0.05,
        "seed": 0,
        "actor": "python:clerk:solve",
        "teacher": "python:teacher:advise",
        "suite_hash": "5f" * 32,
        "started_at": "2026-11-28T12:00:00Z",
        "usd": 1.25,
        "sweep_rollouts": sum(len(scores) for side in sides for scores in side.scores.values()),
    }
    return ArenaResult(sides=tuple(sides), **known | values)


def families_of(ids: Sequence[str]) -> dict[str, str]:
    """Return families of three scenarios each."""
    return {id_: f"family-{place // FAMILY}" for place, id_ in enumerate(ids)}


def simulated(
    gains: Mapping[str, float],
    rng: random.Random,
    *,
    scenarios: int = 60,
    rollouts: int = 5,
    errors: float = 0.0,
) -> list[Side]:
    """Return sides whose true gains are known, on scenarios that are solved with chances of 0.1 to 0.5.

    A gain is the mean over families, each of which gains half as much to half as much again. Rollouts are
    coins: sides share the chance of a scenario, and no luck.
    """
    chances = [rng.uniform(0.1, 0.5) for _ in range(scenarios)]
    sides = []
    for name, gain in gains.items():
        shares = [rng.uniform(0.5, 1.5) * gain for _ in range(-(-scenarios // FAMILY))]
        scores = {
            f"s{place}": tuple(
                None if rng.random() < errors else float(rng.random() < chance + shares[place // FAMILY])
                for _ in range(rollouts)
            )
            for place, chance in enumerate(chances)
        }
        trained = name != "none"
        sides.append(
            Side(
                name=name,
                scores=scores,
                rollouts=400 if trained else 0,
                teacher_calls=12 if trained else 0,
                usd=0.4 if trained else 0.0,
                tokens_added=85.0 if trained else 0.0,
                wall_s=128.0 if trained else 0.0,
            )
        )
    return sides
