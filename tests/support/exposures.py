"""Exposures for tests: groups of one lesson or several, with rewards that depend on them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from pytest_tfgrpo.core.lessons import Exposure


def make_exposure(n: int = 0, **changes: Any) -> Exposure:
    fields: dict[str, Any] = {
        "run_id": "run1",
        "epoch": 1,
        "scenario": f"{n:064x}",
        "domain": "text",
        "series": "series1",
        "propensity": 0.8,
        "reward": 0.5,
        "errors": 0,
        "included": (),
        "left_out": (),
    }
    return Exposure(**fields | changes)


def make_exposures(
    effects: Mapping[str, float], *, groups: int = 400, seed: int = 0, base: float = 0.6, **changes: Any
) -> list[Exposure]:
    """Return groups that were offered every lesson in `effects`, each solving by its lessons' effects."""
    rng = random.Random(seed)
    rows = []
    for n in range(groups):
        included = tuple(key for key in effects if rng.random() < 0.8)
        rate = base + sum(effects[key] for key in included)
        reward = sum(rng.random() < rate for _ in range(2)) / 2
        rows.append(
            make_exposure(
                n % 100,
                epoch=1 + n // 100,
                reward=reward,
                included=included,
                left_out=tuple(key for key in effects if key not in included),
                **changes,
            )
        )
    return rows
