"""How long a run waits for a server that does not answer."""

import asyncio
from types import SimpleNamespace

import pytest

from pytest_tfgrpo.llm.limits import patience


@pytest.mark.parametrize(
    ("back_at", "result", "waits"),
    [
        (0.0, 0, []),
        (3.0, 2, [1.0, 2.0]),
        (None, None, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 29.0]),
        (120.0, 8, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 29.0]),
    ],
)
def test_waits_double_to_a_limit_and_take_no_more_than_all_the_time_together(
    back_at: float | None, result: int | None, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FIRST_S", 1.0), ("MOST_S", 30.0), ("TOTAL_S", 120.0)):
        monkeypatch.setattr(patience, name, value)
    slept: list[float] = []
    notices: list[int] = []

    async def sleep(seconds: float) -> None:
        assert seconds > 0
        slept.append(seconds)

    clock = SimpleNamespace(time=lambda: sum(slept))
    monkeypatch.setattr(patience, "asyncio", SimpleNamespace(sleep=sleep, get_running_loop=lambda: clock))

    async def answers() -> bool:
        return back_at is not None and sum(slept) >= back_at

    assert asyncio.run(patience.outwait(answers, lambda: notices.append(len(slept)))) == result
    assert slept == waits
    assert notices == [0] * bool(waits)
