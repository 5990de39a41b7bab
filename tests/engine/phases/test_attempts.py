"""Attempts within the budget: what is reserved, given back and paid for, however they end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.engine.phases import attempts as module
from pytest_tfgrpo.engine.phases.attempts import Attempts

SLOT: Any = SimpleNamespace(rollout_id="r", actor=None, call=None, user=None, within=None)


def told_of(
    monkeypatch: pytest.MonkeyPatch, *, metered: bool, allowed: bool = True, raises: Exception | None = None
) -> list[str]:
    """Return what is told of one attempt."""
    told: list[str] = []

    async def admit() -> bool:
        told.append("admit")
        return allowed

    async def attempt(*_: object) -> str:
        return "ended"

    def around(make: Any) -> Any:
        async def within(slot: Any) -> Any:
            ended = await make(slot)
            if raises is not None:
                raise raises
            return ended

        return within

    budget = SimpleNamespace(
        exhausted="" if allowed else "spent", admit=admit, release=lambda: told.append("release"),
        spend=lambda rollout: told.append(f"spend {rollout}"),
    )  # fmt: skip
    running = SimpleNamespace(begin=lambda id_: told.append("begin"), end=lambda id_: told.append("end"))
    gauge = SimpleNamespace(attempts=running, pay=lambda rollout: told.append(f"pay {rollout}"))
    context: Any = SimpleNamespace(
        job=SimpleNamespace(actor="the run's", budget=budget, run_id="run1"), gauge=gauge,
        stages=SimpleNamespace(around=around),
        executor=SimpleNamespace(place=lambda actor: told.append(f"place {actor}")),
    )  # fmt: skip
    ledger: Any = SimpleNamespace(cancel=lambda slot, ended: told.append(f"cancel {ended}"))
    monkeypatch.setattr(module, "as_metered", lambda actor: actor if metered else None)
    monkeypatch.setattr(module, "attempt", attempt)
    monkeypatch.setattr(module, "rollout_of", lambda slot, ended, run_id: f"{ended} of {run_id}")
    attempts = Attempts(context, ledger)
    for actor in (None, "its own"):
        slot: Any = SimpleNamespace(**{**vars(SLOT), "actor": actor})
        try:
            asyncio.run(attempts.make(slot))
        except RuntimeError:
            told.append("raised")
    return told


MADE = ["begin", "end"]
PAID = ["pay ended of run1", "spend ended of run1"]


@pytest.mark.parametrize(
    ("metered", "allowed", "raises", "first"),
    [
        (False, True, None, ["admit", "place the run's", *MADE, "release", *PAID]),
        (False, False, None, ["admit"]),
        (True, True, None, ["place the run's", *MADE, "pay ended of run1"]),
        (True, False, None, []),
        (
            *(False, True, RuntimeError("it ends")),
            ["admit", "place the run's", *MADE, "release", "cancel ended", "raised"],
        ),
        (True, True, RuntimeError("it ends"), ["place the run's", *MADE, "cancel ended", "raised"]),
    ],
)
def test_a_place_in_the_budget_is_given_back_and_what_was_used_is_paid_for_once(
    monkeypatch: pytest.MonkeyPatch,
    metered: bool,
    allowed: bool,
    raises: Exception | None,
    first: list[str],
) -> None:
    second = [one.replace("the run's", "its own") for one in first]
    told = told_of(monkeypatch, metered=metered, allowed=allowed, raises=raises)
    assert told == [*first, *second]
