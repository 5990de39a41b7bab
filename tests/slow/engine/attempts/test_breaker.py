"""A provider that goes away: the run pauses, makes again what was lost, or ends so that it can be resumed."""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_frame
from support.engine.breaker import ENDLESS, carry_out, comparable, resumed
from support.jobs import three_or_not

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.llm.limits import patience
from pytest_tfgrpo.metrics.costs import of_run
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.runs.journal.journal_contents import load_run


@pytest.fixture(autouse=True)
def gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 0.1)


def test_a_resumed_run_that_is_killed_at_any_line_of_its_journal_is_the_same_when_resumed_again(
    tmp_path: Path,
) -> None:
    """Its journal has groups with errors, what took their place, and what both cost."""

    def dear(fails: range) -> Callable[[ActorCall], Any]:
        calls = count()

        async def answer(call: ActorCall) -> Trajectory:
            n = next(calls)
            await asyncio.sleep(0)
            frames = (make_frame("model", kind="model", tokens=10, cost_usd=0.5),)
            if n in fails:
                raise ProviderError("the connection broke", "connection", frames=frames)
            return Trajectory(answer=three_or_not(call), frames=frames)

        return answer

    whole, _, _ = carry_out(dear(range(0)), tmp_path / "whole")
    first, _, _ = carry_out(dear(range(7, ENDLESS)), tmp_path)
    journal = tmp_path / "runs" / "run1" / JOURNAL
    stopped = journal.read_bytes().splitlines(keepends=True)
    assert first.status == "incomplete"
    assert any(r.status == "error" for phase in first.phases for g in phase.groups for r in g.rollouts)
    resumed(dear(range(1, 5)), tmp_path)
    lines = journal.read_bytes().splitlines(keepends=True)
    assert any(b'"event":"abandoned"' in line for line in lines[len(stopped) :])
    for kept in range(len(stopped) + 1, len(stopped) + 24):
        journal.write_bytes(b"".join(lines[:kept]))
        last, _ = resumed(dear(range(0)), tmp_path)
        told = load_run(journal.parent)
        assert comparable(last) == comparable(told) == comparable(whole), kept
        assert of_run(told)["usd"] == of_run(last)["usd"], kept
