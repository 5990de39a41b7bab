"""Messages to and from a model, in the spellings that frameworks have for them."""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeGuard

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.turns import TraceCall

_THOUGHTS = ("reasoning", "thinking")
"""Types of the parts in which a model talks to itself."""
_TEXTS = ("text", "input_text", "output_text")
_CALLS = ("function", "tool_call", "tool_use", "function_call")
_RESULTS = ("tool_call_response", "tool_result", "tool_response", "function_call_output")
_ITEMS = ("function_call", "function_call_output", "reasoning")
_RESULT_KEYS = ("response", "result", "content", "output")
_ROLES = {"human": "user", "ai": "assistant", "user": "user", "assistant": "assistant"}
"""Roles by the names that frameworks have for them."""
_USUAL = {
    "user": ("user_msg", "task", "input", "question", "query", "prompt", "message", "user_input"),
    "assistant": ("output", "answer", "response", "final_output", "result", "content"),
}
"""Names under which frameworks keep the text of a role."""
_NAMELESS = frozenset({str, list, tuple, int, float, bool, type(None)})
_RESULT_IDS = ("id", "tool_use_id", "toolUseId", "tool_call_id", "call_id")


class ModelExchange(NamedTuple):
    """What messages say of one call of a model."""

    asked: str
    """Last text of the user."""
    answered: str
    """Text of the model."""
    thoughts: tuple[str, ...] = ()
    calls: tuple[TraceCall, ...] = ()
    """Since the last text of the user."""
    answers: int = 0
    """How many of `calls` are of the answer."""


def conversation(inputs: Iterable[Json], outputs: Iterable[Json]) -> ModelExchange:
    """Return what the messages to a model, and those of its answer, say.

    Raises TypeError, KeyError or AttributeError for messages that are no objects, or lack role or content.
    """
    asked, recent = "", list[Json]()
    for message in inputs:
        said = "" if is_item(message) or message["role"] != "user" else content(body(message))
        if said and not any(_result(part) for part in _parts(message)):
            recent = []
        else:
            recent.append(message)
        asked = said or asked
    answers = list(outputs)
    said_last = [said for message in answers if not is_item(message) and (said := content(body(message)))]
    if "".join(" ".join(said_last[:-1]).split()) == "".join("".join(said_last[-1:]).split()):
        said_last = said_last[-1:]  # a stream's parts come before the whole
    before = calls_of(recent)
    known = {call.id for call in before if call.id}
    after = [call for call in calls_of(answers) if call.id not in known]  # some write one answer over another
    thoughts = tuple(text for message in answers for text in _thoughts(message))
    return ModelExchange(asked, "\n".join(said_last), thoughts, (*before, *after), len(after))


def answers_in(found: Json) -> list[Json]:
    """Return the messages of a model's answer that is kept whole, as OpenAI's two interfaces give it."""
    several = found if isinstance(found, list) else [found]
    messages: list[Json] = []
    for one in several if all(map(is_object, several)) else ():
        messages += one["output"] if isinstance(one.get("output"), list) else ()
        choices = one["choices"] if isinstance(one.get("choices"), list) else ()
        messages += [choice["message"] for choice in choices if is_object(choice) and "message" in choice]
    return [one for one in messages if is_item(one) or (is_object(one) and "role" in one)]


def parsed(found: Json) -> Json:
    """Return what an attribute holds: structured itself, as JSON, or a plain text."""
    if isinstance(found, str) and found[:1] in ("[", "{"):
        try:
            value, end = _DECODER.raw_decode(found)
        except (ValueError, RecursionError):
            return found
        return value if end == len(found) or found[end:].isspace() else found
    return found


def _number(text: str) -> float | str:
    """Return a number, or the text of one that no event can hold."""
    number = float(text)
    return number if math.isfinite(number) else text


_DECODER = json.JSONDecoder(parse_constant=str, parse_float=_number)
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
"""Made once: a call of json with options makes one each time."""


def messages(found: Json) -> list[Json]:
    """Return the messages that an attribute holds; none of a text that was cut short."""
    several = parsed(found)
    return [] if several is None or isinstance(several, str) else list(several)


def body(message: Json) -> Json:
    """Return the parts or the content of a message; raises KeyError where it has neither, nor a call."""
    if "parts" in message:
        return message["parts"]
    return message.get("content") if "tool_calls" in message else message["content"]


def is_object(found: Json) -> TypeGuard[Mapping[str, Json]]:
    """Return whether a value has names; asked often, and the type of most others says no at once."""
    kind = found.__class__
    return kind is dict or (kind not in _NAMELESS and isinstance(found, Mapping))


def is_item(message: Json) -> bool:
    """Return whether a call or a result stands where a message would, as OpenAI's responses have them."""
    return is_object(message) and "role" not in message and message.get("type") in _ITEMS


def content(found: Json) -> str:
    """Return the text of a message: its own, or that of its parts."""
    if isinstance(found, str):
        return found.strip()
    if is_object(found):  # the message of an older event, or a single part
        return content(found["content"]) if "content" in found else _part(found)
    if isinstance(found, Iterable):
        return "\n".join(filter(None, map(_part, found))).strip()
    return "" if found is None else json.dumps(found)


def calls_of(found: Iterable[Json]) -> list[TraceCall]:
    """Return the calls of tools that messages name, each with its result if that is among them."""
    calls: list[TraceCall] = []
    waiting: defaultdict[str, deque[int]] = defaultdict(deque)
    for message in found:
        for part in _parts(message):
            if (call := _call(part)) is not None:
                waiting[call.id].append(len(calls))
                calls.append(call)
            elif (result := _result(part)) is not None:
                asked = result.id or next((id_ for id_, some in waiting.items() if some), "")
                if waiting[asked]:
                    at = waiting[asked].popleft()
                    calls[at] = calls[at]._replace(result=result.result, failed=result.failed)
                else:  # the call is in no message here
                    calls.append(result)
    return calls


def arguments(found: Json) -> str:
    """Return the arguments of a call as JSON with sorted names, or the plain text that they are; empty where
    there are none."""
    value = parsed(found)
    if value is None or isinstance(value, str):
        return value or ""
    return _SORTED.encode(value)


def text(found: Json) -> str:
    """Return a text, and nothing for another type."""
    return found if isinstance(found, str) else ""


def _part(part: Json) -> str:
    """Return the text of a part, by whatever name it has; calls and files have none."""
    if isinstance(part, str):
        return part
    if part.get("type", "text") not in _TEXTS:
        return ""
    return text(part.get("content", part.get("text")))


def _thoughts(message: Json) -> Iterator[str]:
    if is_object(message) and (said := text(message.get("reasoning_content"))):
        yield said
    for part in _parts(message):
        if part.get("type") in _THOUGHTS:
            said = next((text(part[key]) for key in ("content", "text", "thinking") if key in part), "")
            if said.strip():
                yield said.strip()


def _parts(message: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the parts of a message that are objects, calls and results of other spellings among them."""
    if not is_object(message):
        return
    if is_item(message):
        yield message
        return
    found = message.get("parts", message.get("content"))
    for key in ("tool_calls", "toolCalls"):
        if isinstance(several := parsed(message.get(key)), list):
            yield from (part for part in several if is_object(part))
    call = message.get("tool_call_id")
    if message.get("role") == "tool" and (call is not None or isinstance(found, str)):
        yield {"type": "tool_result", "id": call or "", "content": found}
    elif is_object(found):
        yield found
    elif isinstance(found, list | tuple):
        yield from (part for part in found if is_object(part))


def _call(part: Mapping[str, Json]) -> TraceCall | None:
    """Return the call that a part is: of the conventions, of OpenAI, of Anthropic, of Bedrock."""
    inner = next((part[key] for key in ("function", "toolUse") if is_object(part.get(key))), part)
    if part.get("type", "function") not in _CALLS and inner is part:
        return None
    given = next((inner[key] for key in ("arguments", "input") if key in inner), None)
    if not isinstance(inner.get("name"), str) or (given is None and part.get("type") is None):
        return None
    identity = part.get("call_id") or part.get("id") or inner.get("toolUseId") or inner.get("id")
    return TraceCall(text(identity), inner["name"], arguments(given))


def _result(part: Mapping[str, Json]) -> TraceCall | None:
    """Return the result that a part is, as a call of which no more is known."""
    inner = part["toolResult"] if is_object(part.get("toolResult")) else part
    if inner is part and part.get("type") not in _RESULTS:
        return None
    found = next((parsed(inner[key]) for key in _RESULT_KEYS if inner.get(key) is not None), None)
    identity = next((inner[key] for key in _RESULT_IDS if key in inner), "")
    failed = inner.get("is_error") is True or inner.get("status") == "error"
    return TraceCall(text(identity), text(inner.get("name")), "", said_by_tool(found), failed)


def said_by_tool(found: Json) -> str:
    """Return the result of a tool as a text: that of its parts, or else JSON."""
    if isinstance(found, str):
        return found.strip()
    if found is None:
        return ""
    if (message := langchain_result(found)) is not None:
        return said_by_tool(message.get("content"))
    if isinstance(found, list) and all(_is_text(part) for part in found):
        return content(found)
    if is_object(found):
        if "content" in found and found.keys() <= {"content", "role", "type"}:
            return said_by_tool(found["content"])
        if isinstance(found.get("blocks"), list):
            return content([part for part in found["blocks"] if is_object(part)])
        if found.keys() == {"id", "name", "response"}:
            return said_by_tool(found["response"])
        if found.keys() == {"result"} and isinstance(found["result"], str):
            return found["result"].strip()
    return json.dumps(found, ensure_ascii=False)


def langchain_result(found: Json) -> Mapping[str, Json] | None:
    """Return the message of a tool's result as LangChain writes it; None for what is none."""
    if is_object(found) and found.keys() == {"type", "data"} and found["type"] == "tool":
        data = found["data"]
        return data if is_object(data) and "tool_call_id" in data else None
    return None


def spoken(found: Json, role: str) -> str:
    """Return what a span says that went into it or came out of it, as a text.

    Frameworks put whole objects there: of one with messages it is the last text of the role, of one with a
    single text or one under a usual name it is that, and any other is JSON.
    """
    value = _unwrapped(given_to(parsed(found)), role)
    read = [_with_role(one) for one in value] if isinstance(value, list) else []
    several = [one for one in read if one is not None]
    if several and len(several) == len(read):
        said = [content(one.get("parts", one.get("content"))) for one in several if one["role"] == role]
        return next(filter(None, reversed(said)), "")
    if isinstance(value, str) or value is None:
        return (value or "").strip()
    return json.dumps(value, ensure_ascii=False)


def _unwrapped(value: Json, role: str) -> Json:
    """Return the messages or the text that an object is made for."""
    if not is_object(value):
        return value
    if len(value) == 1:
        (inner,) = value.values()
        return parsed(inner)
    if isinstance(value.get("messages"), list):
        return value["messages"]
    return next((value[key] for key in _USUAL[role] if isinstance(value.get(key), str)), value)


def _with_role(found: Json) -> Mapping[str, Json] | None:
    """Return a message with its role: also of LangChain, and a pair of role and text; None for another."""
    if isinstance(found, list | tuple) and len(found) == 2 and all(isinstance(one, str) for one in found):
        return {"role": _ROLES.get(found[0], found[0]), "content": found[1]}
    if not is_object(found):
        return None
    if "role" in found:
        return found
    inner = next((found[key] for key in ("kwargs", "data") if is_object(found.get(key))), found)
    role = _ROLES.get(text(inner.get("type")))
    return {"role": role, "content": inner["content"]} if role and "content" in inner else None


def json_value(found: Json) -> Json:
    """Return what stands as JSON, texts too; what is no JSON as it is."""
    try:
        return json.loads(found, parse_constant=str, parse_float=_number) if isinstance(found, str) else found
    except (ValueError, RecursionError):
        return found


def given_to(found: Json) -> Json:
    """Return the arguments of a function of the application: by name, or its only argument without one."""
    if not is_object(found):
        return found
    args, kwargs = found.get("args"), found.get("kwargs")
    if is_object(kwargs) and not args:
        return kwargs
    if "args" in found and "kwargs" in found:
        return args[0] if not kwargs and isinstance(args, list) and len(args) == 1 else found
    return found.get("inputs", found.get("outputs", found))


def _is_text(part: Json) -> bool:
    if not is_object(part):
        return False
    return part.get("type", "text") in _TEXTS and isinstance(part.get("content", part.get("text")), str)
