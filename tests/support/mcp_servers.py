"""MCP servers in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import types
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams

from pytest_tfgrpo.actors.mcp.server_spec import ServerSpec

URL = "https://in.memory/mcp"
Reply = types.CallToolResult | str
ANY: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}


def said(text: str, **fields: Any) -> types.CallToolResult:
    """Return a result with a text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **fields)


class MemoryServers:
    """Servers that live in this process; each session has one of its own, made when it is opened."""

    def __init__(self) -> None:
        self.sessions: list[Mapping[str, str]] = []
        """The headers or variables of each that was opened."""
        self.tools: dict[str, Any] = {"say": ANY}
        """Schemas by name."""
        self.listed: Callable[[], list[types.Tool]] = self.all
        self.answer: Callable[[str, dict[str, Any]], Awaitable[Reply]] = self.echo

    def all(self) -> list[types.Tool]:
        return [types.Tool(name=n, description=f"It is {n}.", input_schema=s) for n, s in self.tools.items()]

    async def echo(self, name: str, arguments: dict[str, Any]) -> Reply:
        return f"{name} {json.dumps(arguments)}"

    @asynccontextmanager
    async def transport(self, spec: ServerSpec, _program: object) -> AsyncIterator[Any]:
        self.sessions.append(spec.variables)

        async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=self.listed())

        async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            reply = await self.answer(params.name, params.arguments or {})
            return said(reply) if isinstance(reply, str) else reply

        server: Server[Any] = Server("memory", on_list_tools=list_tools, on_call_tool=call_tool)
        async with create_client_server_memory_streams() as (client, (read, write)):
            running = asyncio.create_task(
                server.run(read, write, server.create_initialization_options(), raise_exceptions=False)
            )
            try:
                yield client
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
