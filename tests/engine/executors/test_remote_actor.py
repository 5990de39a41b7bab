"""The stand-in's side of a conversation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.executors import asked

from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.engine.executors.remote_actor import RemoteSession, _taken
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts


class Workers:
    """Has one worker, which keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str | None]] = []
        self.leased = 0

    @asynccontextmanager
    async def lease(self) -> AsyncIterator["Workers"]:
        self.leased += 1
        yield self
        self.leased -= 1

    async def ask(self, turn: AgentTurn) -> WorkerReply:
        self.told.append((turn.id, turn.message))
        return WorkerReply(trajectory=Trajectory(answer=str(turn.message)))

    async def end(self, id_: str) -> None:
        self.told.append((id_, None))


def test_all_turns_of_a_conversation_are_one_session_of_one_worker(tmp_path: Path) -> None:
    workers = Workers()

    async def talk() -> None:
        session = RemoteSession(asked("one", tmp_path), workers)
        for message in ("one", "two"):
            assert (await session.answer(message)).answer == message
            assert workers.leased == 1
        await session.aclose()

    asyncio.run(talk())
    assert [message for _, message in workers.told] == ["one", "two", None]
    assert len({id_ for id_, _ in workers.told}) == 1
    assert workers.leased == 0


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("found", [False, True])
def test_spans_that_workers_did_not_use_are_counted_with_those_of_the_run(
    tmp_path: Path, before: bool, found: bool
) -> None:
    counts = SpanCounts()
    counts.wanted = before
    counts.count("late", 2)
    call = replace(asked("one", tmp_path), span_counts=counts)
    reply = WorkerReply(trajectory=Trajectory(answer="a"), unused={"late": 3, "foreign": 1}, wanted=found)
    assert _taken(reply, call).answer == "a"
    assert (counts.counted, counts.wanted) == ({"late": 5, "foreign": 1}, before or found)
    assert _taken(reply, replace(call, span_counts=None)).answer == "a"


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        (WorkerReply(fault=ProviderError("away", "connection")), ProviderError),
        (WorkerReply(), asyncio.CancelledError),
        (WorkerReply(trajectory="text"), AgentFailure),  # type: ignore[arg-type]
    ],
)
def test_a_reply_without_a_trajectory_is_its_fault_or_an_end(
    tmp_path: Path, reply: WorkerReply, raised: type[BaseException]
) -> None:
    with pytest.raises(raised):
        _taken(reply, asked("one", tmp_path))
