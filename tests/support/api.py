"""What the tests of test_api.py share with the slow ones."""

import asyncio
from typing import Any

import pytest_tfgrpo as tfgrpo

SMALL: dict[str, Any] = {"group_size": 2, "acceptance": "off", "gate_min_mean": 0.1}


def scenario(name: str, split: str = "train", **changes: Any) -> dict[str, Any]:
    check = {"kind": "exact", "value": "3"}
    return {"id": name, "split": split, "prompt": f"How many words has {name}?", "checks": [check]} | changes


SUITE = [scenario("a"), scenario("b"), scenario("c", "eval"), scenario("d", "eval")]


class Counter:
    """An actor that is right on odd seeds; counts its calls."""

    name, identity, paid = "counter", {"version": 1}, False

    def __init__(self, delay_s: float = 0.0) -> None:
        self.calls = 0
        self.closed = False
        self._delay_s = delay_s

    async def __call__(self, call: tfgrpo.ActorCall) -> tfgrpo.Trajectory:
        self.calls += 1
        await asyncio.sleep(self._delay_s)
        return tfgrpo.Trajectory(answer="3" if call.seed % 2 else "4")

    def bound(self, call_count: int) -> dict[str, float | None]:
        return {"usd": 0.0, "tokens": 0.0}

    async def aclose(self) -> None:
        self.closed = True


class Held(Counter):
    """Answers some calls; further ones wait until the run that made them is cancelled."""

    def __init__(self, answers: int = 0) -> None:
        super().__init__()
        self._answers = answers

    async def __call__(self, call: tfgrpo.ActorCall) -> tfgrpo.Trajectory:
        if self.calls >= self._answers:
            await asyncio.Event().wait()
        return await super().__call__(call)
