"""Rollouts whose fixtures come first: what is made, made again, and what is said of it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.engine.observers import LostRollout
from pytest_tfgrpo.engine.phases.in_turn import InTurn


@dataclass(frozen=True)
class Slot:
    rollout_id: str
    question: Any
    actor: Any = None


SLOT: Any = Slot("r", SimpleNamespace(scenario=SimpleNamespace(id="s")))

LOST = ["agent r", "make one 1", "forget away", "undo r", "again r", "lost r", "agent r"]


@pytest.mark.parametrize(
    ("agents", "passing", "outcomes", "told"),
    [
        ([None], [True], [], ["agent r"]),
        (["one"], [False], [], ["agent r"]),
        (["one"], [True], ["ok"], ["agent r", "make one 1", "holds ok s"]),
        (
            ["one", "two"], [True, True], ["away", "ok"],
            [*LOST, "make two 1", "holds ok s"],
        ),
        (
            ["one", "two"], [True, True], ["away", "away"],
            [*LOST, "make two 1", "holds away s"],
        ),
        (
            ["one", None], [True, True], ["away"],
            LOST,
        ),
        (
            ["one", "two"], [True, False], ["away"],
            LOST,
        ),
    ],
)  # fmt: skip
def test_an_attempt_is_made_once_or_twice_and_its_item_is_never_held_back(
    agents: list[str | None], passing: list[bool], outcomes: list[str], told: list[str]
) -> None:
    said: list[str] = []
    coming, allowed, ends = iter(agents), iter(passing), iter(outcomes)
    flying = 0

    async def agent_of(id_: str) -> str | None:
        said.append(f"agent {id_}")
        return next(coming)

    async def may_pass() -> bool:
        return next(allowed)

    @contextmanager
    def attempting() -> Any:
        nonlocal flying
        flying += 1
        yield
        flying -= 1

    async def make(slot: Any) -> Any:
        said.append(f"make {slot.actor} {flying}")
        end = next(ends)
        return SimpleNamespace(outcome=end, rollout=end)

    async def undo(slot: Any) -> None:
        said.append(f"undo {slot.rollout_id}")

    def observe(record: LostRollout) -> None:
        said.append(f"lost {record.rollout_id}")

    breaker = SimpleNamespace(
        passing=may_pass,
        attempting=attempting,
        is_worth_another=lambda outcome: outcome == "away",
        first=SimpleNamespace(holds=lambda outcome, id_: said.append(f"holds {outcome} {id_}")),
    )
    again = SimpleNamespace(of=agent_of, await_again=lambda id_: said.append(f"again {id_}"))
    context: Any = SimpleNamespace(breaker=breaker, tests=SimpleNamespace(agents=again), observe=observe)
    attempts: Any = SimpleNamespace(make=make, undo=undo)
    ledger: Any = SimpleNamespace(forget=lambda rollout: said.append(f"forget {rollout}"))
    found = asyncio.run(InTurn(context, attempts, ledger).make(SLOT))
    assert said == told
    last = told[-1].split()
    assert (None if found is None else found.outcome) == (last[1] if last[0] == "holds" else None)
