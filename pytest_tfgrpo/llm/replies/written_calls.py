"""Written calls: calls of tools that a model wrote into its text, and its server did not read."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.protocol import ToolCall

MAX_CALLS = 256
NAME = r"[A-Za-z_][\w.-]{0,63}"
TAG = r"(?:tool_?calls?|function_?calls?)"
BLOCK = re.compile(rf"<\|?{TAG}\|?>(.*?)(?:</{TAG}>|<\|/{TAG}\|>|<{TAG}\|>|\Z|(?=<\|?{TAG}\|?>))", re.DOTALL)
"""Hermes, Qwen, GLM, Granite."""
FUNCTION = re.compile(rf"<function=[\"']?({NAME})[\"']?>(.*?)(?:</function>|\Z|(?=<function=))", re.DOTALL)
"""Qwen3-Coder, and Llama with custom tools."""
INVOKE = re.compile(rf"<invoke name=[\"']?({NAME})[\"']?>(.*?)(?:</invoke>|\Z|(?=<invoke name=))", re.DOTALL)
ARGUMENT = re.compile(rf"<parameter name=[\"']?({NAME})[\"']?(?:\s+string=[\"'](true|false)[\"'])?>")
"""DeepSeek 3.2, which says what is text, and MiniMax."""
PREFIX = re.compile(r"[<‹](/?)(?:[|｜]DSML[|｜]|minimax:)")
"""What these two put before their tags."""
PARAMETER = re.compile(rf"<parameter=[\"']?({NAME})[\"']?>"), "</parameter>"
PAIR = re.compile(r"<arg_key>([^<]{0,200})</arg_key>\s*<arg_value>"), "</arg_value>"
"""How an argument begins, with its name, and ends."""
SPECIAL = re.compile(
    rf"<[|｜]tool[_▁]call[_▁]begin[|｜]>(?:function<｜tool▁sep｜>)?\s*(?:functions\.)?({NAME})(?::\d+)?\s*"
    r"(?:<\|tool_call_argument_begin\|>|<｜tool▁sep｜>|\n```json)((?:(?!<[|｜]tool[_▁]call[_▁]begin).)*?)"
    r"(?:```\s*)?<[|｜]tool[_▁]call[_▁]end[|｜]>",
    re.DOTALL,
)
"""Kimi and DeepSeek."""
CHANNEL = re.compile(
    rf"<\|channel\|>[^<]{{0,200}}? to=(?:functions\.)?({NAME})[^<]{{0,200}}(?:<\|constrain\|>[^<]{{0,50}})?"
    r"<\|message\|>"
    r"(.*?)(?=<\||\Z)",
    re.DOTALL,
)
"""gpt-oss."""
MISTRAL = re.compile(rf"\s*({NAME})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(\{{.*\}})\s*", re.DOTALL)
"""What follows each ``[TOOL_CALLS]`` of newer models."""
LISTED = re.compile(
    r"(?:\[TOOL_CALLS\]|<\|python_tag\|>|functools(?=\[)|<\|action_start\|>\s*<\|plugin\|>)\s*(.*)", re.DOTALL
)
"""Older models of Mistral, Llama, Phi-4 and InternLM."""
START = re.compile(
    rf"<\|?{TAG}\|?>|<function=|<[|｜]tool[_▁]calls?[_▁](?:section[_▁])?begin[|｜]>|\[TOOL_CALLS\]|<\|python_tag\|>"
    r"|<\|channel\|>[^<]* to=|[<‹](?:[|｜]DSML[|｜]|minimax:)|<\|action_start\|>|(?:^|(?<=\n))functools\["
)
"""How calls begin."""
LEFT = re.compile(r"(?:\s|</?[|｜]?[\w▁:.]{1,40}[|｜]?>)*")
"""Tags around calls, which say nothing more."""
SHAPE = frozenset({"name", "arguments", "parameters", "args", "id", "type"})


class WrittenCalls(NamedTuple):
    """A text without the calls in it."""

    text: str
    calls: tuple[ToolCall, ...] = ()


def read_written_calls(text: str, tools: Collection[str]) -> WrittenCalls:
    """Return the calls that `text` ends with; all of it as text where there are none, or more follows.

    Only of a model that was offered `tools`, by name: to any other, such a text is an answer.
    """
    if not tools:
        return WrittenCalls(text)
    start = START.search(text)
    if start is None:
        bare = list(_of_json(text, tools)) if text.lstrip().startswith(("{", "[")) else []
        return WrittenCalls("", _numbered(bare)) if bare else WrittenCalls(text)
    if text[: start.start()].count("`") % 2:
        return WrittenCalls(text)
    found = _calls(text[start.start() :])
    if not found or len(found) > MAX_CALLS:
        return WrittenCalls(text)
    return WrittenCalls(text[: start.start()].strip(), _numbered(found))


def begins_call(text: str) -> bool:
    """Return whether a text begins as a call does."""
    return START.match(text.lstrip()) is not None


def _numbered(found: list[tuple[str, str]]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(id=f"call_{n}", name=name, arguments=given) for n, (name, given) in enumerate(found)
    )


def _calls(text: str) -> list[tuple[str, str]]:
    """Return names and arguments of the calls that a text consists of; none where it holds anything else."""
    text = PREFIX.sub(r"<\1", text)
    named = [MISTRAL.fullmatch(piece) for piece in text.split("[TOOL_CALLS]")[1:]]
    if named and text.startswith("[TOOL_CALLS]") and all(named):
        return [(call[1], call[2]) for call in named if call is not None]
    for pattern in (SPECIAL, CHANNEL):
        found = pattern.findall(text)
        if found and LEFT.fullmatch(pattern.sub("", text)):
            return [(name, given.strip()) for name, given in found]
    listed = LISTED.fullmatch(text.strip())
    if listed:
        return list(_of_json(listed[1].removesuffix("<|action_end|>"), None))
    pattern = BLOCK if BLOCK.match(text) else FUNCTION
    if not LEFT.fullmatch(pattern.sub("", text)):
        return []
    calls = []
    for block in pattern.finditer(text):
        within = list(_of_block(block[0] if pattern is FUNCTION else block[1]))
        if not within:
            return []
        calls += within
    return calls


def _of_block(text: str) -> Iterator[tuple[str, str]]:
    """Yield the calls in one block."""
    functions = FUNCTION.findall(text)
    if functions:
        for name, body in functions:
            pairs = list(_pairs(body, *PARAMETER))
            yield name, (_object(pairs) if pairs or not body.strip() else body.strip())
        return
    invoked = INVOKE.findall(text)
    if invoked:
        yield from ((name, _parameters(body)) for name, body in invoked)
        return
    name = text.partition("<arg_key>")[0].strip()
    if re.fullmatch(NAME, name):
        yield name, _object(list(_pairs(text, *PAIR)))
        return
    calls = list(_of_json(text, None))
    named = None if calls else re.search(rf'"name"\s*:\s*"({NAME})"', text[:1000])
    if named:  # broken arguments are for the tool to refuse, as those of a call that the server has read
        calls = [(named[1], text.strip())]
    yield from calls


def _pairs(text: str, begins: re.Pattern[str], end: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of arguments, in a time that grows with the text."""
    at = 0
    while (found := begins.search(text, at)) and (close := text.find(end, found.end())) >= 0:
        yield found[1], text[found.end() : close]
        at = close + len(end)


def _parameters(body: str) -> str:
    """Return the arguments of a call with tags ``<parameter name=...>``; one that is marked so is a text."""
    given: dict[str, Json] = {}
    at = 0
    while (found := ARGUMENT.search(body, at)) and (close := body.find("</parameter>", found.end())) >= 0:
        value = body[found.end() : close]
        given[found[1]] = value if found[2] == "true" else _meant(value)
        at = close
    return json.dumps(given, ensure_ascii=False)


def _of_json(text: str, tools: Collection[str] | None) -> Iterator[tuple[str, str]]:
    """Yield calls that are JSON, one or a list; where `tools` are given only if each is of one of them."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    calls = value if isinstance(value, list) else [value]
    shaped = [call.get("function", call) if isinstance(call, dict) else None for call in calls]
    if all(_is_call(call, tools) for call in shaped):
        for call in filter(None, shaped):
            given: Json = next((call[key] for key in ("arguments", "parameters", "args") if key in call), {})
            yield call["name"], given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _is_call(call: Json, tools: Collection[str] | None) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return False
    if tools is None:
        return True
    return (
        call["name"] in tools
        and call.keys() <= SHAPE
        and bool(call.keys() & {"arguments", "parameters", "args"})
    )


def _object(pairs: list[tuple[str, str]]) -> str:
    """Return arguments that were written as texts, each as JSON where it is some."""
    return json.dumps({key.strip(): _meant(value) for key, value in pairs}, ensure_ascii=False)


def _meant(value: str) -> Json:
    """Return the JSON that a text is, else the text."""
    text = value.strip("\n") if "\n" in value else value.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
