"""The agent on a node of a cluster: what runs there, and knows nothing of how calls and replies travel."""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import sys
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pytest_tfgrpo.core.errors import ProviderError, RolloutFault, SettingError, describe
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.engine.executors.cluster.workspace_transfer import LeftFile, left_in, put_into
from pytest_tfgrpo.engine.executors.worker import (
    AgentTurn,
    WorkerAgent,
    WorkerReply,
    WorkerSetup,
    pickled,
)
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment, find_built
from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces, temporary_folder
from pytest_tfgrpo.sandbox.workspace import Workspace

CLOSE_S = 2.0
"""How long an agent may take to release what it holds at the end of a run."""
BUNDLE_BYTES = 2**16
"""Turns and answers travel together until they have this size; Ray copies more than 100 kB once more."""
Content: TypeAlias = Awaitable[bytes]
"""The bytes of a file, which may come from another node."""
Sent: TypeAlias = tuple[str, bytes, Mapping[str, Content] | None]
"""The id of an attempt, a pickled `NodeTurn`, and what its workspace is made of."""
Answered: TypeAlias = tuple[str, bytes, str]
"""The id of an attempt, and a pickled `NodeAnswer`, or why there is none."""
T = TypeVar("T", Sent, Answered)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFacts:
    """What a node says of itself before its first call."""

    problem: str
    """Why it cannot open the agent; empty where it has."""
    host: str
    packages: dict[str, str]
    """Versions of what is installed, by name, Python among them."""
    pid: int
    lacks: tuple[str, ...] = ()
    """Stamps of environments that are not built there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeTurn:
    """A turn, and what is in its workspace before."""

    turn: AgentTurn
    before: list[LeftFile] | None = None
    """None: the workspace has not been used yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeAnswer:
    """A reply, and what is in its workspace by then."""

    reply: bytes
    left: list[LeftFile] | None = None
    """None: the workspace was not used."""


class NodeWorker:
    """Opens the agent once, and answers several calls at once."""

    def __init__(self) -> None:
        """Nothing is opened before `open`."""
        self._root = Path.cwd()
        self._agent: WorkerAgent | None = None
        self._workspaces: RunWorkspaces
        self._environments: dict[str, BuiltEnvironment] = {}
        self._open: dict[str, Workspace] = {}
        self._tasks: dict[str, asyncio.Task[WorkerReply]] = {}
        self._files: dict[str, asyncio.Task[Path]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._answered: list[Answered] = []
        """What nobody has collected yet."""
        self._has_answered = asyncio.Event()

    async def open(self, data: bytes, run: str, paths: Sequence[str], suites: Mapping[str, str]) -> NodeFacts:
        """Open the agent, and find the environments of the run.

        `paths` are folders of the project to look for modules in, below the root; `suites` those of suites,
        by the stamp of an environment that is described there.
        """
        problem = ""
        lacks: tuple[str, ...] = ()
        try:
            sys.path[:0] = [path for path in (str(self._root / one) for one in paths) if path not in sys.path]
            setup: WorkerSetup = pickle.loads(data)
            self._agent = WorkerAgent(replace(setup, root=self._root))
            folder = temporary_folder(self._root, None)
            self._workspaces = RunWorkspaces(f"{run}-{os.getpid()}", folder)
            lacks = tuple(stamp for stamp, suite in suites.items() if not self._has(stamp, suite))
        except BaseException as error:  # noqa: BLE001 - an agent's module may raise anything
            problem = describe(error)
        return NodeFacts(
            problem=problem,
            host=platform.node(),
            packages=installed(),
            pid=os.getpid(),
            lacks=lacks,
        )

    def _has(self, stamp: str, suite: str) -> bool:
        """Return whether an environment is built on this node; raises ScenarioError, as `find_built` does."""
        try:
            self._environments[stamp] = find_built(self._root / suite, stamp)
        except SettingError:
            return False
        return True

    async def begin(self, turns: Sequence[Sent]) -> None:
        """Let the agent answer turns, whose answers `collect` returns."""
        for sent in turns:
            task = asyncio.create_task(self._answer_one(*sent))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def collect(self) -> list[Answered]:
        """Return answers, once there are any, each of them once."""
        await self._has_answered.wait()
        found = first_bundle(self._answered)
        if not self._answered:
            self._has_answered.clear()
        return found

    async def _answer_one(self, id_: str, data: bytes, files: Mapping[str, Content] | None) -> None:
        try:
            answer, why = await self._answer(data, files), ""
        except BaseException as error:  # noqa: BLE001 - whatever it is, its rollout waits to hear of it
            answer, why = b"", describe(error)
        self._answered.append((id_, answer, why))
        self._has_answered.set()

    async def _answer(self, data: bytes, files: Mapping[str, Content] | None) -> bytes:
        """Return what the agent answers.

        What travels is bytes, which take Ray a third of the driver's time that objects take.
        """
        assert self._agent is not None
        asked: NodeTurn = pickle.loads(data)
        turn = asked.turn
        try:
            workspace = self._open.get(turn.id)
            if workspace is None:
                workspace = self._open[turn.id] = await self._workspace(turn, asked.before, files or {})
            call: ActorCall = replace(turn.call, workspace=workspace)
            task = asyncio.ensure_future(self._agent.answer(replace(turn, call=call)))
            self._tasks[turn.id] = task
            reply = await task
            left = await asyncio.to_thread(left_in, workspace) if workspace.made else None
        except asyncio.CancelledError:
            reply, left = WorkerReply(), None
        except RolloutFault as fault:
            reply, left = WorkerReply(fault=fault), None
        finally:
            self._tasks.pop(turn.id, None)
            if turn.message is None:
                await self.end(turn.id)
        return pickle.dumps(NodeAnswer(reply=pickled(reply, turn), left=left))

    async def ping(self) -> None:
        """Show that this process runs."""

    async def cancel(self, id_: str) -> None:
        """Cancel what is being answered."""
        if (task := self._tasks.get(id_)) is not None:
            task.cancel()

    async def end(self, id_: str) -> None:
        """End the conversation of an attempt, and remove its workspace."""
        assert self._agent is not None
        await self._agent.end(id_)
        if (workspace := self._open.pop(id_, None)) is not None and workspace.made:
            await asyncio.to_thread(self._workspaces.discard, workspace)

    async def close(self) -> None:
        """Release what agents hold, and remove their workspaces; threads of an agent may still go on."""
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_S):
                for task in tuple(self._tasks.values()):
                    task.cancel()
                if self._agent is not None:
                    await self._agent.aclose()
                    await asyncio.to_thread(self._workspaces.close, keep=False)

    async def _workspace(
        self, turn: AgentTurn, before: list[LeftFile] | None, files: Mapping[str, Content]
    ) -> Workspace:
        """Return a workspace on this node; raises ProviderError."""
        asked = turn.call.workspace
        wanted, archive = asked.environment, asked.archive
        built = None if wanted is None else self._environments[wanted.stamp]
        if archive is not None:
            archive = replace(archive, path=await self._file(archive.sha256, files))
        attachments = [replace(one, path=await self._file(one.sha256, files)) for one in asked.attachments]
        workspace = self._workspaces.new(turn.id, tuple(attachments), archive, built)
        if archive is not None or before is not None:
            await asyncio.to_thread(workspace.make)
        if before:
            await asyncio.to_thread(put_into, workspace, before)
        return workspace

    async def _file(self, sha256: str, files: Mapping[str, Content]) -> Path:
        """Return a file of this node with the content that a stamp names, which comes here once."""
        if sha256 not in self._files:
            self._files[sha256] = asyncio.ensure_future(self._fetch(sha256, files))
        try:
            return await asyncio.shield(self._files[sha256])
        except ProviderError:
            self._files.pop(sha256, None)
            raise

    async def _fetch(self, sha256: str, files: Mapping[str, Content]) -> Path:
        content: Any = await files[sha256]
        if stamp_bytes(content) != sha256:
            raise ProviderError("a file changed after its scenario was read", "workspace")
        path = self._workspaces.new(f"file-{sha256[-40:]}", ()).path / "content"
        path.write_bytes(content)
        return path


def first_bundle(items: list[T]) -> list[T]:
    """Take from a list what travels together next: as much as `BUNDLE_BYTES`, and one item at least."""
    count, size = 0, 0
    while count < len(items) and size < BUNDLE_BYTES:
        size += len(items[count][1])
        count += 1
    found = items[:count]
    del items[:count]
    return found


def installed() -> dict[str, str]:
    """Return the versions of Python and all installed packages by name."""
    found = ((one.metadata["Name"], one.version) for one in distributions())
    packages = {name.lower().replace("_", "-"): version for name, version in found if name}
    return {**packages, "python": platform.python_version()}
