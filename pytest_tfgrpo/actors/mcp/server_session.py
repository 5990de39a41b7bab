"""A session with a server: opened, kept and closed by a task of its own, as the SDK demands it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.actors.mcp.sdk import call_tool, connected, list_tools
from pytest_tfgrpo.actors.mcp.server_program import CLOSE_S, ServerProgram
from pytest_tfgrpo.actors.mcp.server_spec import ServerSpec
from pytest_tfgrpo.actors.mcp.server_tool import ServerTool, difference, stamps_of
from pytest_tfgrpo.core.errors import ProviderError, ToolFailure, describe
from pytest_tfgrpo.core.wire.wire import Json

if TYPE_CHECKING:
    from mcp import Client

START_S = 30.0
CALL_S = 55.0
"""Less than any tool may take, so that its message names the server."""
STOP_S = 3.0
"""How long a session may take to end that was cancelled; its process has ended by then."""
CODE = "mcp"


class ServerSession:
    """One session; whatever is wrong with its server is a ProviderError that names it."""

    def __init__(self, spec: ServerSpec, folder: Path, known: Mapping[str, str] | None = None) -> None:
        """Begin to open it in `folder`; `known` are the stamps of the tools that it must list."""
        self._spec = spec
        self._folder = folder
        self._known = known
        self._program = ServerProgram()
        self._opened: asyncio.Future[tuple[Client, list[ServerTool]] | ProviderError]
        self._opened = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._broken = False
        self._task = asyncio.create_task(self._live())

    @property
    def usable(self) -> bool:
        """Whether another call may work."""
        return not (self._broken or self._task.done() or self._program.ended)

    async def tools(self, limit_s: float = START_S) -> list[ServerTool]:
        """Return what the server lists; raises ProviderError."""
        return (await self._ready(limit_s))[1]

    async def call(self, name: str, arguments: Mapping[str, Json]) -> str:
        """Return the result of a call as text; raises ToolFailure and ProviderError."""
        client, _ = await self._ready(START_S)
        try:
            async with asyncio.timeout(CALL_S) as limit:
                return await call_tool(client, name, arguments)
        except ToolFailure:
            raise
        except Exception as error:  # whatever a server, its network or the SDK comes up with
            if isinstance(error, TimeoutError) and limit.expired():
                raise ToolFailure(
                    f"the MCP server {self._spec.text!r} did not answer {name!r} within {CALL_S:g} s"
                ) from error
            self._broken = True
            await self._program.settle()
            raise self._fault(f"broke in a call of {name!r}", error) from error

    async def close(self, grace_s: float = CLOSE_S) -> None:
        """End the session and the process; after `grace_s` they are killed."""
        self._stop.set()
        if grace_s > 0:
            await asyncio.wait([self._task], timeout=grace_s)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=STOP_S)

    async def _ready(self, limit_s: float) -> tuple[Client, list[ServerTool]]:
        await asyncio.wait([self._opened], timeout=limit_s)
        if not self._opened.done():
            self._broken = True
            self._task.cancel()
            raise self._fault(f"did not list its tools within {limit_s:g} s")
        opened = self._opened.result()
        if isinstance(opened, ProviderError):
            raise ProviderError(str(opened), CODE)
        return opened

    async def _live(self) -> None:
        spec, program = self._spec, self._program
        try:
            if not spec.url:
                await program.start(spec.command(self._folder), self._folder, spec.variables)
            async with connected(spec, program) as client:
                tools = await list_tools(client)
                if self._known is not None and (other := difference(self._known, stamps_of(tools))):
                    raise ValueError(f"it lists other tools than before ({other})")
                self._opened.set_result((client, tools))
                await self._stop.wait()
        except Exception as error:  # noqa: BLE001 - whatever a server, its network or the SDK comes up with
            self._broken = True
            await program.settle()
            if not self._opened.done():
                self._opened.set_result(self._fault("cannot be used", error))
        finally:
            if not self._opened.done():
                self._opened.set_result(self._fault("was stopped before it was ready"))
            await program.end(0.0 if hurried() else CLOSE_S)

    def _fault(self, what: str, error: BaseException | None = None) -> ProviderError:
        reasons = [] if error is None else [_reason(error)]
        reasons += [self._program.trouble] if self._program.trouble else []
        why = f": {'; '.join(reasons)}" if reasons else ""
        return ProviderError(f"the MCP server {self._spec.text!r} {what}{why}", CODE)


def hurried() -> bool:
    """Return whether the present task was cancelled, so that it has no time to be polite."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reason(error: BaseException) -> str:
    """Return what went wrong; of a group, what went wrong first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) if type(error) is ValueError or type(error).__name__ == "MCPError" else describe(error)
