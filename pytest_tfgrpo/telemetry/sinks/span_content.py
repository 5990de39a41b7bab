"""The content of spans: prompts, answers, arguments and reasons, redacted, where it is switched on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache

from pytest_tfgrpo.core.records import Frame, Rollout
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.telemetry.sinks.otlp import attribute


class SpanContent:
    """Makes the attributes of spans that have content."""

    def __init__(self, *, on: bool, text_max: int | None) -> None:
        """A text has `text_max` characters at most; None: no limit."""
        self.on = on
        self._text_max = text_max
        self._prompts: dict[str, Prompt] = {}

    def keep(self, rollout_id: str, prompt: Prompt) -> None:
        """Keep the prompt of a rollout until its span is made."""
        if self.on:
            self._prompts[rollout_id] = prompt

    def text(self, text: str) -> str:
        """Return a text as it may be sent: empty, or redacted."""
        return _redacted_text(text)[: self._text_max] if self.on else ""

    def of_rollout(self, rollout: Rollout) -> Iterator[bytes]:
        """Yield the prompt of a rollout and its answer."""
        prompt = self._prompts.pop(rollout.rollout_id, None)
        if prompt is not None:
            if prompt.system:
                instructions = [{"type": "text", "content": self.text(prompt.system)}]
                yield attribute("gen_ai.system_instructions", json.dumps(instructions))
            yield self._message("gen_ai.input.messages", "user", prompt.user)
        if rollout.answer:
            yield self._message("gen_ai.output.messages", "assistant", rollout.answer, "stop")

    def of_call(self, asked: Json, answer: str, finish: str) -> Iterator[bytes]:
        """Yield the messages to a model, as far as they are known, and its answer."""
        if asked is not None:
            text = asked if isinstance(asked, str) else json.dumps(_redacted(asked))
            yield self._message("gen_ai.input.messages", "user", text)
        if answer:
            yield self._message("gen_ai.output.messages", "assistant", answer, finish or "stop")

    def of_tool(self, frame: Frame) -> Iterator[bytes]:
        """Yield arguments and result of a tool's call."""
        yield attribute("gen_ai.tool.call.arguments", json.dumps(_redacted(frame.input))[: self._text_max])
        yield attribute("gen_ai.tool.call.result", self.text(frame.output))

    def _message(self, key: str, role: str, text: str, finish: str = "") -> bytes:
        message: dict[str, Json] = {"role": role, "parts": [{"type": "text", "content": self.text(text)}]}
        return attribute(key, json.dumps([message | ({"finish_reason": finish} if finish else {})]))


@lru_cache(maxsize=64)
def _redacted_text(text: str) -> str:
    """Return a redacted text; the rollouts of a group share their prompt."""
    return redact(text)


def _redacted(value: Json) -> Json:
    """Return JSON with its texts redacted, also those whose key says that they are secret."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _redacted_item(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item) for item in value]
    return value


def _redacted_item(key: str, value: Json) -> Json:
    if not isinstance(value, str):
        return _redacted(value)
    before = f"{key}: "
    return redact(before + value).removeprefix(before)
