"""An agent whose chance at a task is known: its own, and the gain that its prompt names."""

from __future__ import annotations

import random
import re
from typing import Any

from pytest_tfgrpo.core.wire.stamp import seed_of

RIGHT, WRONG = "right", "wrong"
CLAUSE = "In the {place} depot each parcel adds {percent} per cent by {maker}."
"""A lesson, or a line of a system text, that names a gain in the tasks of one place."""
_CLAUSE = re.compile(r"In the (\w+) depot each parcel adds (\d+) per cent by (\w+)")
_TASK = re.compile(r"parcel (\d+) of family (\d+) in the (\w+) depot of world (\d+)")


async def solve(context: Any) -> str:
    """Toss a coin that depends on the seed and on each word of the prompt."""
    prompt = context.prompt
    return RIGHT if _share(context.seed, str(prompt)) < chance(prompt.system, prompt.user) else WRONG


solve.paid = False  # type: ignore[attr-defined]


async def paid(context: Any) -> dict[str, Any]:
    """Answer as `solve` does, for a cent."""
    return {"answer": await solve(context), "model": "scripted", "tokens": 10, "cost_usd": 0.01}


def chance(system: str, user: str) -> float:
    """Return the chance of a prompt; a family gains half as much as the clause says to half as much again."""
    parcel, family, place, world = _TASK.search(user).groups()  # type: ignore[union-attr]
    gains = [
        int(percent) / 100 * (0.5 + _share(world, family, maker))
        for at, percent, maker in _CLAUSE.findall(f"{system}\n{user}")
        if at == place
    ]
    return 0.1 + 0.4 * _share(world, parcel) + max(gains, default=0.0)


def _share(*parts: Any) -> float:
    return random.Random(seed_of(*parts)).random()
