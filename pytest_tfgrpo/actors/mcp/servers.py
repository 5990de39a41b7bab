"""The servers of an actor: their tools as listed before a run, and the sessions of its rollouts."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue

from pytest_tfgrpo.actors.mcp.sdk import require_sdk
from pytest_tfgrpo.actors.mcp.server_program import CLOSE_S
from pytest_tfgrpo.actors.mcp.server_session import ServerSession
from pytest_tfgrpo.actors.mcp.server_spec import ServerSpec
from pytest_tfgrpo.actors.mcp.server_tool import ServerTool, stamps_of
from pytest_tfgrpo.core.errors import ActorError, ProviderError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.python.threads import start_thread
from pytest_tfgrpo.core.wire.wire import Json

LIST_S = 60.0
"""How long a server may take to list its tools before a run: the first start of some downloads them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedServer:
    """A server, and what it lists."""

    spec: ServerSpec
    tools: tuple[ServerTool, ...]
    stamps: Mapping[str, str]

    @property
    def identity(self) -> dict[str, Json]:
        """What makes it, with its tools, the same in another run."""
        return {**self.spec.identity, "tools": dict(self.stamps)}


def list_servers(specs: Sequence[ServerSpec]) -> list[ListedServer]:
    """Start each server, and return what it lists; raises ActorError."""
    if not specs:
        return []
    require_sdk(specs[0])
    done: SimpleQueue[list[list[ServerTool] | BaseException] | BaseException] = SimpleQueue()

    def work() -> None:  # on a thread, as an event loop may run here
        try:
            done.put(asyncio.run(_listed(specs)))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.put(error)

    start_thread(work, "tfgrpo-mcp")
    found = done.get()
    if isinstance(found, BaseException):
        raise found
    made = []
    for spec, tools in zip(specs, found, strict=True):
        if isinstance(tools, ProviderError):
            raise ActorError(str(tools)) from tools
        if isinstance(tools, BaseException):
            raise tools
        made.append(ListedServer(spec=spec, tools=tuple(tools), stamps=stamps_of(tools)))
    return made


async def _listed(specs: Sequence[ServerSpec]) -> list[list[ServerTool] | BaseException]:
    return await asyncio.gather(*map(_tools_of, specs), return_exceptions=True)


async def _tools_of(spec: ServerSpec) -> list[ServerTool]:
    with tempfile.TemporaryDirectory(prefix="tfgrpo-mcp-", ignore_cleanup_errors=True) as folder:
        session = ServerSession(spec, spec.folder if spec.shared else Path(folder))
        try:
            return await session.tools(LIST_S)
        finally:
            await session.close()


class Servers:
    """The servers of an actor; used on the event loop of its calls."""

    def __init__(self, listed: Sequence[ListedServer]) -> None:
        self.listed = listed
        self._shared: dict[str, ServerSession] = {}
        self._retired: list[ServerSession] = []

    def rollout(self, folder: Callable[[], Path]) -> RolloutServers:
        """Return the servers of one rollout, which are started in `folder` at the first call of a tool."""
        return RolloutServers(self, folder)

    def shared(self, server: ListedServer) -> ServerSession:
        """Return the session with a shared server; one that broke is replaced."""
        key = server.spec.text
        session = self._shared.get(key)
        if session is not None and not session.usable:
            self._retired.append(session)
            session = None
        if session is None:
            session = self._shared[key] = ServerSession(server.spec, server.spec.folder, server.stamps)
        return session

    async def aclose(self) -> None:
        """End all shared servers."""
        left = (*self._shared.values(), *self._retired)
        self._shared, self._retired = {}, []
        await asyncio.gather(*(session.close() for session in left))


class RolloutServers:
    """The servers of one rollout."""

    def __init__(self, servers: Servers, folder: Callable[[], Path]) -> None:
        self._servers = servers
        self._folder = folder
        self._own: dict[str, ServerSession] = {}

    async def call(self, server: ListedServer, name: str, /, **arguments: Json) -> str:
        """Return the result of a call as text; raises ToolFailure and ProviderError."""
        return await self._session(server).call(name, arguments)

    def _session(self, server: ListedServer) -> ServerSession:
        if server.spec.shared:
            return self._servers.shared(server)
        key = server.spec.text
        if key not in self._own:
            self._own[key] = ServerSession(server.spec, self._folder(), server.stamps)
        return self._own[key]

    async def aclose(self, grace_s: float = CLOSE_S) -> None:
        """End this rollout's own servers, within about `grace_s`."""
        left, self._own = tuple(self._own.values()), {}
        if left:
            await asyncio.gather(*(session.close(grace_s) for session in left))
