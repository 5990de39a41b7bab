"""Messages: a rollout as a conversation, as chat templates take it.

A message has all keys, null where they do not apply, and arguments of a tool are JSON text: a loader that
guesses the type of a column finds one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_tfgrpo.core.conversations import turns_of
from pytest_tfgrpo.core.records import Frame, Rollout
from pytest_tfgrpo.core.sampled import MISSING, Sampled, why_no_ratio
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.request_body import MALFORMED


class RolloutMessages(NamedTuple):
    """What a rollout adds to its prompt."""

    messages: list[Json]
    sampled: list[Sampled] | None
    """Of each message of the assistant, in order; None where one has no tokens that a trainer can use."""
    reason: str
    """Why `sampled` is None, or has no log-probabilities; else empty."""


class _Turn(NamedTuple):
    """One message of the assistant, and the results of the tools that it calls."""

    text: str
    tools: list[Frame]
    sampled: Sampled | None


def prompt_messages(prompt: Prompt) -> list[Json]:
    """Return the messages of a prompt."""
    system = [_message("system", prompt.system)] if prompt.system else []
    return [*system, _message("user", prompt.user)]


def completion_of(rollout: Rollout) -> RolloutMessages:
    """Return what an actor said and did: its frames, and at last its answer.

    Tools called after a model's turn belong to it; before any model's turn each has a turn of its own. Where
    not all log-probabilities can serve as old ones of a ratio, there are none, and ids of all tokens or none:
    a trainer computes the old ones of an attempt again from these.
    """
    turns, messages = list[_Turn](), list[Json]()
    for said, frames, answer in _parts(rollout):
        if said is not None:
            messages.append(_message("user", said))
        for turn in _with_answer([turn for turn in _turns(frames) if turn.text or turn.tools], answer):
            turns.append(turn)
            messages += _messages(turn, len(turns))
    reason = next(filter(None, (why_no_ratio(turn.sampled) for turn in turns)), "" if turns else MISSING)
    sampled = [turn.sampled for turn in turns if turn.sampled is not None]
    if not reason:
        return RolloutMessages(messages, sampled, "")
    if sampled and len(sampled) == len(turns) and all(one.token_ids is not None for one in sampled):
        return RolloutMessages(messages, [replace(one, logprobs=None) for one in sampled], reason)
    return RolloutMessages(messages, None, reason)


def _parts(rollout: Rollout) -> Iterator[tuple[str | None, Sequence[Frame], str]]:
    """Yield what the user said, calls and answer of each turn; the first message is in the prompt."""
    talk = turns_of(rollout.frames, rollout.answer)
    if not talk:
        yield None, rollout.frames, rollout.answer
    for turn in talk:
        yield turn.user if turn.number > 1 else None, turn.frames, turn.answer


def _turns(frames: Sequence[Frame]) -> Iterator[_Turn]:
    model: _Turn | None = None
    for frame in frames:
        if frame.kind == "model":
            if model is not None:
                yield model
            model = _Turn(frame.output, [], frame.sampled)
        elif model is not None:
            model.tools.append(frame)
        else:
            yield _Turn("", [frame], None)
    if model is not None:
        yield model


def _with_answer(turns: list[_Turn], answer: str) -> list[_Turn]:
    """Return turns that end with the answer; it replaces the text of a last turn that does not say it."""
    closing = _Turn(answer, [], None)
    if not answer:
        return turns
    if not turns or turns[-1].tools:
        return [*turns, closing]
    said = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", turns[-1].text)
    return turns if said else [*turns[:-1], closing]


def _messages(turn: _Turn, n: int) -> Iterator[Json]:
    ids = [f"call_{n}_{place}" for place in range(1, len(turn.tools) + 1)]
    calls = [
        {"id": id_, "type": "function", "function": {"name": frame.name, "arguments": _arguments(frame)}}
        for id_, frame in zip(ids, turn.tools, strict=True)
    ]
    yield _message("assistant", turn.text, tool_calls=calls or None)
    for id_, frame in zip(ids, turn.tools, strict=True):
        text = frame.output if frame.error is None else f"error: {frame.error}"
        yield _message("tool", text, tool_call_id=id_, name=frame.name)


def _arguments(frame: Frame) -> str:
    given = {} if frame.input is None else frame.input
    return json.dumps(given if isinstance(given, dict) else {MALFORMED: given}, ensure_ascii=False)


def _message(role: str, content: str, **more: Json) -> dict[str, Json]:
    empty: dict[str, Json] = {"tool_calls": None, "tool_call_id": None, "name": None}
    return {"role": role, "content": content, **empty, **more}
