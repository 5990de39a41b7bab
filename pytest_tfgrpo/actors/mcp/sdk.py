"""The official SDK of the Model Context Protocol: the one place that imports it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.actors.mcp.server_program import MESSAGE_MAX_BYTES, ServerProgram
from pytest_tfgrpo.actors.mcp.server_spec import ServerSpec
from pytest_tfgrpo.actors.mcp.server_tool import ServerTool
from pytest_tfgrpo.core.errors import ActorError, ToolFailure
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.server.url import parse_address

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp.types import CallToolResult, ContentBlock

TOOLS_MAX = 1000
CONNECT_S, READ_S = 30.0, 300.0


def require_sdk(spec: ServerSpec) -> None:
    """Raise ActorError where the SDK is not installed."""
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise ActorError(
            f"'tools={spec.text}' needs the MCP SDK: pip install 'pytest-tfgrpo[mcp]' ({error})"
        ) from error


@asynccontextmanager
async def connected(spec: ServerSpec, program: ServerProgram) -> AsyncIterator[Client]:
    """Open a session with a server, whose `program` has been started unless it is at a URL.

    It must be closed by the task that opened it.
    """
    from mcp import Client

    async with Client(transport_to(spec, program), cache=None) as client:
        yield client


def transport_to(spec: ServerSpec, program: ServerProgram) -> Transport:
    """Return what carries the messages of a session."""
    return _http_streams(spec.url, spec.variables) if spec.url else _program_streams(program)


async def list_tools(client: Client) -> list[ServerTool]:
    """Return all tools of a server, in its order; raises ValueError where there are too many."""
    found: list[ServerTool] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += [
            ServerTool(
                name=tool.name,
                description=tool.description or "",
                parameters={key: value for key, value in tool.input_schema.items() if key != "$schema"},
            )
            for tool in page.tools
        ]
        if len(found) > TOOLS_MAX or (page.next_cursor is not None and page.next_cursor == cursor):
            raise ValueError(f"it lists more than {TOOLS_MAX} tools")
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


async def call_tool(client: Client, name: str, arguments: Mapping[str, Json]) -> str:
    """Return the result of a call as text.

    Raises ToolFailure with what the server says of its failure; any other exception means that the server
    cannot be used.
    """
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    try:
        result = await client.call_tool(name, dict(arguments))
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise
        raise ToolFailure(error.message) from error
    text = _text_of(result)
    if result.is_error:
        raise ToolFailure(text or "the tool failed, and did not say why")
    return text


def _text_of(result: CallToolResult) -> str:
    """Return the text of a result; its data only where there is no text, which should say the same."""
    parts = [_shown(block) for block in result.content]
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _shown(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "image" or block.type == "audio":
        return f"[{block.type}: {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
    if block.type == "resource_link":
        return f"[resource: {block.uri}]"
    text = getattr(block.resource, "text", None)
    return f"[resource: {block.resource.uri}]" if text is None else str(text)


@asynccontextmanager
async def _program_streams(program: ServerProgram) -> AsyncIterator[Any]:
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_client, to_server = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with to_client:  # its end is that of the session
            async for line in program.lines():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    program.ignore(line)
                    if b'"jsonrpc"' in line and b'"result"' in line:
                        return  # an answer that nobody can read, for which a call would wait in vain
                else:
                    await to_client.send(SessionMessage(message))

    async def write() -> None:
        async for sent in to_server:
            text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            await program.send(text.encode())

    pumps = [asyncio.create_task(read()), asyncio.create_task(write())]
    try:
        yield from_server, from_client
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for stream in (to_client, from_server, from_client, to_server):
            await stream.aclose()


@asynccontextmanager
async def _http_streams(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def limited(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("a compressed answer, which was not asked for")
        response.stream = _Limited(response.stream)

    class _Limited(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > MESSAGE_MAX_BYTES:
                    raise httpx2.ReadError(f"an answer of more than {MESSAGE_MAX_BYTES} bytes")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    client = httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
        follow_redirects=False,
        trust_env=not parse_address(url).loopback,
        event_hooks={"response": [limited]},
    )
    async with client, streamable_http_client(url, http_client=client) as streams:
        yield streams
