"""Responses: a server's completion, read strictly; everything in it is hostile until checked."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.sampled import LogProbKind, Sampled, checked
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.strict import finite, unique
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.protocol import Finish, ToolCall
from pytest_tfgrpo.llm.replies.provider_faults import broken_off, fault_in
from pytest_tfgrpo.llm.replies.thoughts import ThoughtTags, part_thoughts
from pytest_tfgrpo.llm.replies.written_calls import MAX_CALLS, read_written_calls

"""More tool calls in one answer are no answer."""
FINISHES: Mapping[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "end_turn", "stop_sequence", "complete"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length", "max_length"), "length"),
    **dict.fromkeys(("token_limit", "context_length", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "tool_calls"),
    **dict.fromkeys(
        ("content_filter", "content_filtered", "safety", "recitation", "blocklist"), "content_filter"
    ),
    **dict.fromkeys(
        ("prohibited_content", "spii", "image_safety", "sensitive", "moderation"), "content_filter"
    ),
    "guardrail_intervened": "content_filter",
    "refusal": "refusal",
}
"""What reasons to finish mean, in lower case; any other counts as stop, and explains an empty answer."""
THINKING = ("reasoning_content", "reasoning", "thinking", "thought", "reasoning_details", "thinking_blocks")
"""Members of a message that hold thoughts."""
THOUGHT_TEXTS = ("text", "thinking", "reasoning", "content", "summary", "reasoning_content")
THOUGHT_PARTS = frozenset(
    {"thinking", "reasoning", "reasoning_text", "reasoning_content", "thought", "redacted_thinking"}
)
SPOILED = frozenset({"malformed_function_call", "unexpected_tool_call", "malformed_response"})
"""Reasons to finish of a model that failed at a call: what it wrote before is no answer."""
MAX_DEPTH = 5


_DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_float=finite, parse_constant=finite)
_LENIENT = json.JSONDecoder(object_pairs_hook=unique)
"""Also reads NaN and infinities, which no part of a completion takes for a number."""
TOKEN_ID = "token_id:"
"""Before the id that stands in a token's place, where a server is set so."""


class Malformed(ValueError):
    """An answer that is no completion."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RawCompletion:
    """A completion as the server wrote it."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish: Finish
    model: str
    thoughts: str = ""
    """What the model thought before it answered, where the server says it."""
    why_empty: str = ""
    """What is known of why there is neither text nor a call."""


def parse_body(body: bytes, *, lenient: bool = False) -> Mapping[str, Json]:
    """Return the JSON object that a body is, if `lenient` with numbers that are none; raises Malformed."""
    try:
        value = (_LENIENT if lenient else _DECODER).decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise Malformed("not JSON: nested too deeply") from None
    except ValueError as error:
        raise Malformed(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Malformed(f"{short(value, 40)} is not an object")
    return value


def read_answer(
    body: Mapping[str, Json], tags: ThoughtTags = True, tools: Collection[str] = ()
) -> RawCompletion:
    """Return the first choice of a completion, its thoughts apart; raises Malformed, and ProviderFault.

    A model that was offered `tools` may have written its calls as text.
    """
    fault = fault_in(body)
    if fault is not None:
        raise fault
    choices = body.get("choices")
    if not isinstance(choices, list):
        raise Malformed(f"no choices{_complaint(body)}")
    if not choices:
        raise Malformed("empty choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise Malformed(f"choices[0] has no message{_complaint(choice)}")
    reason = choice.get("finish_reason")
    if (broken := broken_off(choice)) is not None:
        raise broken
    calls = _tool_calls(message)
    text, thoughts, unclosed = _said(message, tags)
    if not calls:
        text, thoughts, calls = _written(text, thoughts, unclosed, tools)
    spoiled = "" if calls else _spoiled(choice)
    if spoiled:
        spoiled, text = spoiled + (f" after {short(text, 80)}" if text.strip() else ""), ""
    refusal = message.get("refusal")
    finish = _finish(reason, calls)
    if isinstance(refusal, str) and refusal:
        text, finish = text or _sound(refusal), "refusal"
    model = body.get("model")
    return RawCompletion(
        text=text,
        tool_calls=calls,
        finish=finish,
        model=_sound(model[:200]) if isinstance(model, str) else "",
        thoughts=thoughts,
        why_empty="" if calls or text.strip() else spoiled or _why_empty(choice, thoughts, unclosed),
    )


def _said(message: Mapping[str, Json], tags: ThoughtTags) -> tuple[str, str, str]:
    """Return text and thoughts of a message, and the tag of thoughts that never end."""
    content = message.get("content")
    parted = part_thoughts(_text(content), tags)
    found = [_thought(message.get(key), MAX_DEPTH) for key in THINKING]
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, dict) and part.get("type") in THOUGHT_PARTS)
        found += [_thought(part, MAX_DEPTH) for part in parts]
    apart = [_sound(thought.strip()) for thought in dict.fromkeys([*found, parted.thoughts])]
    return parted.answer, "\n\n".join(thought for thought in dict.fromkeys(apart) if thought), parted.unclosed


def _thought(value: Json, depth: int) -> str:
    """Return the text of thoughts: a text, an object that has it, or a list of either."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and depth:
        return "".join(_thought(part, depth - 1) for part in value)
    if isinstance(value, dict) and depth:
        return next((said for key in THOUGHT_TEXTS if (said := _thought(value.get(key), depth - 1))), "")
    return ""


def _written(
    text: str, thoughts: str, unclosed: str, tools: Collection[str]
) -> tuple[str, str, tuple[ToolCall, ...]]:
    """Return text, thoughts and calls, where the model has written its calls as text.

    A call ends thoughts that are still open.
    """
    if unclosed:
        thoughts_left, calls = read_written_calls(thoughts, tools)
        return (text, thoughts_left, calls) if calls else (text, thoughts, ())
    text_left, calls = read_written_calls(text, tools)
    return text_left, thoughts, calls


def _why_empty(choice: Mapping[str, Json], thoughts: str, unclosed: str) -> str:
    if unclosed:
        return f"its thoughts begin with {unclosed} and never end"
    if thoughts:
        return "it returned thoughts alone"
    reasons = [choice.get("native_finish_reason"), choice.get("finish_reason")]
    named = [reason for reason in reasons if isinstance(reason, str) and _flat(reason) not in FINISHES]
    return f"finish_reason {short(named[0], 40)}" if named else ""


def _spoiled(choice: Mapping[str, Json]) -> str:
    """Return the reason to finish of a model that failed at a call; empty for any other."""
    reasons = (choice.get("finish_reason"), choice.get("native_finish_reason"))
    named = (reason for reason in reasons if isinstance(reason, str) and _flat(reason) in SPOILED)
    return next((f"finish_reason {short(reason, 40)}" for reason in named), "")


def _flat(reason: str) -> str:
    return reason.strip().lower().replace("-", "_")


def _finish(reason: Json, calls: tuple[ToolCall, ...]) -> Finish:
    """Return why the model stopped; servers that say ``stop`` after tool calls mean tool calls."""
    if reason is None:
        finish: Finish = "stop"
    elif isinstance(reason, str):
        finish = FINISHES.get(_flat(reason), "stop")
    else:
        raise Malformed(f"finish_reason {short(reason, 40)}")
    if calls and finish == "stop":
        return "tool_calls"
    return "stop" if finish == "tool_calls" and not calls else finish


def _text(content: Json) -> str:
    """Return the text of a message's content: a text, a list of parts, or null."""
    if content is None:
        return ""
    if isinstance(content, str):
        return _sound(content)
    if isinstance(content, list):
        return _sound("".join(_parts(content)))
    raise Malformed(f"content {short(content, 40)} is neither text nor a list of parts")


def _parts(content: list[Json]) -> Iterator[str]:
    for part in content:
        if not isinstance(part, dict):
            raise Malformed(f"content part {short(part, 40)} is not an object")
        kind = part.get("type")
        if kind in ("text", "output_text"):
            text = part.get("text")
            if not isinstance(text, str):
                raise Malformed(f"content part with text {short(text, 40)}")
            yield text
        elif kind == "refusal" and isinstance(part.get("refusal"), str):
            yield part["refusal"]


def _tool_calls(message: Mapping[str, Json]) -> tuple[ToolCall, ...]:
    calls = message.get("tool_calls")
    older = message.get("function_call")
    if not calls and isinstance(older, dict) and any(older.values()):
        calls = [{"function": older}]
    if isinstance(calls, dict):  # some servers send a lone call without a list around it
        calls = [calls] if calls else []
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise Malformed(f"tool_calls {short(calls, 40)} is not a list")
    if len(calls) > MAX_CALLS:
        raise Malformed(f"{len(calls)} tool calls")
    made: list[ToolCall] = []
    taken: set[str] = set()
    for place, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Malformed(f"tool call {short(call, 80)} names no function")
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):  # some servers send what the arguments mean, not their text
            arguments = json.dumps(arguments, ensure_ascii=False)
        name = call.get("id")
        if not isinstance(name, str) or not name or name in taken:
            name = f"call_{place}"
        taken.add(name)
        made.append(
            ToolCall(
                id=_sound(name[:200]),
                name=_sound(function["name"]),
                arguments=_sound(arguments) if isinstance(arguments, str) else "",
            )
        )
    return tuple(made)


def read_usage(body: Mapping[str, Json], most_prompt: int, most_completion: int) -> Usage | None:
    """Return the tokens that a server counted, or None when its figures are missing or cannot be true."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    if prompt is None or completion is None or reasoning is None or cached is None:
        return None
    total = usage.get("total_tokens")
    if total is not None:
        hidden = total - prompt - completion if _count(total) is not None else -1
        if hidden < 0 or (hidden and reasoning not in (0, hidden)):
            return None
        # servers that keep hidden reasoning out of completion_tokens show it in the total alone
        completion, reasoning = completion + hidden, max(reasoning, hidden)
    if cached > prompt or reasoning > completion:
        return None
    if prompt > 2 * most_prompt + 10_000 or completion > 2 * most_completion + 1_000:
        return None
    return Usage(prompt=prompt, completion=completion, reasoning=reasoning, cached=cached)


def _detail(usage: Mapping[str, Json], group: str, name: str) -> int | None:
    """Return a count that may be left out; None when it is no count."""
    details = usage.get(group)
    if details is None:
        return 0
    value = details.get(name) if isinstance(details, dict) else ""
    return 0 if value is None else _count(value)


def _count(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None


def read_sampled(
    body: Mapping[str, Json], kind: LogProbKind, temperature: float | None, usage: Usage | None
) -> Sampled:
    """Return the tokens of the first choice of a completion that can be read, as it was sampled.

    A server's own count of tokens, in `usage`, says whether some are missing.
    """
    choice = body["choices"][0]
    logprobs, token_ids = _tokens(choice.get("logprobs"))
    given = choice.get("token_ids")
    count = None if usage is None else usage.completion
    return checked(kind, temperature, logprobs, token_ids if given is None else given, count)


def _tokens(block: Json) -> tuple[Json, Json]:
    """Return log-probabilities and ids of a choice's ``logprobs``, each a list, None, or what is neither."""
    if not isinstance(block, dict):
        return block, None
    if "token_logprobs" in block:  # the older form
        return block["token_logprobs"], None
    entries = block.get("content")
    entries = block.get("refusal") if entries is None else entries
    if not isinstance(entries, list):
        return entries, None
    if not all(isinstance(entry, dict) for entry in entries):
        return entries, None
    ids = [_token_id(entry) for entry in entries]
    return [_logprob(entry) for entry in entries], None if None in ids or not ids else ids


def _logprob(entry: Mapping[str, Json]) -> Json:
    """Return the log-probability of a token; llama.cpp gives probabilities after sampling as they are."""
    probability: Json = entry.get("prob")
    if "logprob" not in entry and type(probability) in (int, float) and probability > 0:
        return math.log(probability)
    return entry.get("logprob")


def _token_id(entry: Mapping[str, Json]) -> Json:
    token = entry.get("token")
    if isinstance(token, str) and token.startswith(TOKEN_ID) and token[len(TOKEN_ID) :].isdecimal():
        return int(token[len(TOKEN_ID) :][:20])
    return entry.get("id")


def complaint_of(body: Json) -> tuple[str, str]:
    """Return message and code of the error in a body, in any of the usual shapes."""
    error: Json = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(error, str):
        return error, ""
    if not isinstance(error, dict):
        return "", ""
    message = error.get("message") or error.get("detail") or error.get("error") or ""
    if not isinstance(message, str):
        message = json.dumps(message, ensure_ascii=False)[:2000]
    codes = [error.get(key) for key in ("code", "type")]
    return message, " ".join(code for code in codes if isinstance(code, str))


def _complaint(body: Json) -> str:
    message, _ = complaint_of(body)
    return f": {message}" if message else ""


def _sound(text: str) -> str:
    """Return `text` with half surrogate pairs replaced, which no file can hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
