"""One tool call: its result or error becomes a frame and a message to the model."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_tfgrpo.actors.openai.context import ToolContext
from pytest_tfgrpo.core.errors import RolloutFault, ToolFailure, describe
from pytest_tfgrpo.core.python.clock import elapsed_ms, utc_now
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.protocol import ToolCall
from pytest_tfgrpo.sandbox.programs.threads import call_in_daemon
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.json_text import parse_json_line

if TYPE_CHECKING:
    from pytest_tfgrpo.actors.openai.toolbox import Tool

TOOL_TIMEOUT_S = 60.0
OUTPUT_CHARS = 50_000
"""A longer output is cut: it would go to the model again with every further call."""
ERROR_CHARS = 2_000
NAME_CHARS = 64
RAW_CHARS = 2_000
"""Characters of arguments that are no JSON, as a frame keeps them."""
LONG_CHARS = 20_000
"""Longer arguments are read on a thread: a million brackets would hold up all other rollouts."""


class _Ended(NamedTuple):
    """How a plain function ended in its thread."""

    value: Any
    error: BaseException | None


async def invoke(call: ToolCall, tools: Mapping[str, Tool], context: ToolContext) -> Frame:
    """Call a tool as the model requested.

    Raises only what ends the rollout: AgentFailure and ProviderError, when the tool does, and cancellation.
    """
    started = time.perf_counter()
    arguments: Json = clean(call.arguments[:RAW_CHARS])
    output, error = "", None
    try:
        tool = _named(call.name, tools)
        if len(call.arguments) > LONG_CHARS:
            arguments = await asyncio.to_thread(_arguments, call.arguments, tool)
        else:
            arguments = _arguments(call.arguments, tool)
        async with asyncio.timeout(TOOL_TIMEOUT_S) as limit:
            output = _text(await run_tool(tool, arguments, context))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        error = "the tool cancelled itself"
    except RolloutFault:
        raise
    except ToolFailure as caught:
        error = str(caught)
    except BaseException as caught:  # noqa: BLE001 - a tool may raise anything, SystemExit included
        over = isinstance(caught, TimeoutError) and limit.expired()
        error = f"the tool did not end within {TOOL_TIMEOUT_S:g} s" if over else describe(caught)
    return tool_frame(call, arguments, output, error, elapsed_ms(started))


def tool_frame(call: ToolCall, arguments: Json, output: str, error: str | None, latency_ms: float) -> Frame:
    """Return the frame of a tool's call."""
    return Frame(
        kind="tool",
        name=clean(call.name[:NAME_CHARS]),
        input=arguments,
        output=output,
        cost_usd=0.0,
        latency_ms=latency_ms,
        error=None if error is None else clean(error[:ERROR_CHARS]),
        started_at=utc_now(ago_ms=latency_ms),
    )


def clean(text: str) -> str:
    """Return `text` as a plain string that UTF-8 can hold: half surrogate pairs become ``?``."""
    if type(text) is str and text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _named(name: str, tools: Mapping[str, Tool]) -> Tool:
    if name not in tools:
        shown = name[:NAME_CHARS]
        raise ToolFailure(f"there is no tool {shown!r}; there are: {', '.join(tools)}{nearest(shown, tools)}")
    return tools[name]


def _arguments(text: str, tool: Tool) -> dict[str, Json]:
    """Return the arguments that a model wrote, checked; models write nothing at all for none."""
    try:
        found = parse_json_line(text, 1) if text.strip() else {}
    except Refused as error:
        raise ToolFailure(f"the arguments cannot be read: {error}") from None
    if not tool.accepts(found) and (broken := tool.misfits(found)):
        reasons = "; ".join(f"{v.pointer}: {v.message}" if v.path else v.message for v in broken)
        raise ToolFailure(f"the arguments do not fit: {reasons}")
    arguments: dict[str, Json] = found
    for name in tool.signature.whole & arguments.keys():
        arguments[name] = int(arguments[name])
    return arguments


async def run_tool(tool: Tool, arguments: Mapping[str, Json], context: ToolContext) -> Any:
    """Return what a tool returns for arguments that fit; raises what it raises."""
    leading = (context,) if tool.signature.takes_context else ()
    own = copy.deepcopy(arguments)  # the frame keeps what the model wrote, whatever the tool does to it
    ask = partial(tool.function, *leading, **own)
    if tool.is_async:
        return await ask()

    def call() -> _Ended:
        try:
            return _Ended(ask(), None)
        except BaseException as error:  # noqa: BLE001 - StopIteration and SystemExit cannot cross a future
            return _Ended(None, error)

    value, error = await call_in_daemon(call)
    if error is not None:
        raise error
    return await value if inspect.isawaitable(value) else value


def _text(value: Any) -> str:
    """Return what a tool returned as the model gets it; raises ToolFailure where JSON cannot hold it."""
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolFailure(f"the tool returned what JSON cannot hold: {error}") from None
    if len(value) > OUTPUT_CHARS:
        return clean(value[:OUTPUT_CHARS]) + f"\n[cut: {len(value)} characters in all]"
    return clean(value)
