"""The stand-in's side of a conversation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.executors import asked

from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.engine.executors.remote_actor import RemoteSession
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply


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
