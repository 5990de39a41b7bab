"""The prompt of a judge: a packaged, stamped template, filled in one pass with fenced data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from pytest_tfgrpo.core.conversations import Turn, turns_of
from pytest_tfgrpo.core.records import Frame, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.voices import as_json, fitted, legible, named, quoted, said
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.protocol import Message
from pytest_tfgrpo.llm.templates import fill, mark_for
from pytest_tfgrpo.privacy.redact import redact

PARTS = ("system", "question", "repair")
TEXT_MAX = 24_000
"""Characters of the task, and of the answer, that a judge is shown."""
STEPS_MAX = 40
INPUT_MAX, OUTPUT_MAX = 300, 600
"""Characters of a tool's input, and of its output."""
TURN_MAX = 4_000
"""Characters of one message of a conversation."""
TURNS_MAX = 100
REPLY_MAX = 4_000
"""Characters of a malformed vote that its repair shows."""


@cache
def templates() -> Mapping[str, str]:
    """Return the packaged texts by name."""
    folder = files("pytest_tfgrpo.scoring.judge").joinpath("prompts")
    return {name: folder.joinpath(f"{name}.md").read_text("utf-8").strip() for name in PARTS}


def template_stamp() -> str:
    """Return the stamp of the texts, a part of the judge's identity."""
    return stamp(dict(templates()))


def question(scenario: Scenario, rollout: Rollout) -> tuple[Message, ...]:
    """Return the messages to the judge about `rollout`; equal attempts give equal messages.

    They hold the task, the criteria, the steps and the answer; never what the scenario's checks expect.
    Messages on all attempts at one scenario are alike up to their steps, so that a server can cache that: the
    mark comes from what they share, and is another one only where a part contains it.
    """
    data = shown(scenario, rollout)
    mark = mark_for([data["task"], data["criteria"]], data.values())
    values = {**data, "mark": mark, "shape": _shape(len(scenario.rubric))}
    return (
        Message(role="system", content=templates()["system"]),
        Message(role="user", content=fill(templates()["question"], values)),
    )


def shown(scenario: Scenario, rollout: Rollout) -> dict[str, str]:
    """Return what a judge, or a person in its place, is shown: task, criteria, steps and answer."""
    turns = turns_of(rollout.frames, rollout.answer)
    steps = (
        fitted(lambda share: "\n".join(_said(turns, share)), 2 * TEXT_MAX)
        if turns
        else "\n".join(_steps(rollout.frames)) or "none"
    )
    return {
        "task": "\n".join(_task(scenario)),
        "criteria": "\n".join(said(f"{key_of(n)}:", one.text) for n, one in enumerate(scenario.rubric)),
        "steps": steps,
        "answer": legible(rollout.answer, TEXT_MAX),
    }


def repair(asked: Sequence[Message], reply: str, error: str, count: int) -> tuple[Message, ...]:
    """Return the messages of a repeated request after a malformed vote on `count` criteria."""
    again = fill(templates()["repair"], {"error": error, "shape": _shape(count)})
    return (
        *asked,
        Message(role="assistant", content=legible(reply, REPLY_MAX) or "(nothing)"),  # some servers refuse ""
        Message(role="user", content=again),
    )


def key_of(place: int) -> str:
    """Return the key of the criterion at `place`, from 0."""
    return f"c{place + 1}"


def vote_schema(count: int) -> dict[str, Json]:
    """Return the JSON Schema of a vote on `count` criteria: fit for servers that enforce a strict one."""
    decision = {
        "type": "object",
        "additionalProperties": False,
        "required": ["why", "met"],
        "properties": {"why": {"type": "string"}, "met": {"type": "boolean"}},
    }
    keys = [key_of(place) for place in range(count)]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": keys,
        "properties": dict.fromkeys(keys, decision),
    }


def _shape(count: int) -> str:
    rows = ",\n".join(f'  "{key_of(place)}": {{"why": "...", "met": ...}}' for place in range(count))
    return f"{{\n{rows}\n}}"


def _task(scenario: Scenario) -> Iterator[str]:
    """Yield the prompt, the data and the names of the files; prompt and data share the room."""
    data = "" if scenario.input is None else json.dumps(scenario.input, ensure_ascii=False, indent=1)
    half = TEXT_MAX // 2
    if scenario.prompt:
        yield said("prompt:", scenario.prompt, TEXT_MAX - min(len(data), half))
    if data:
        yield said("input:", data, TEXT_MAX - min(len(scenario.prompt), half))
    yield from (f"attached: {named(attachment.name)}" for attachment in scenario.attachments)


def _said(turns: Sequence[Turn], share: float) -> Iterator[str]:
    """Yield a conversation, its texts shortened to a share: user and agent, with the tool calls between."""
    kept = max(4, int(TURNS_MAX * share))
    left_out = max(0, len(turns) - kept)
    limit = int(TURN_MAX * share)
    for n, turn in enumerate(turns):
        if kept // 2 <= n < kept // 2 + left_out:
            if n == kept // 2:
                yield f"({left_out} turns are left out here)"
            continue
        yield said("user:", turn.user, limit)
        yield from _steps(turn.frames, share)
        if turn is not turns[-1]:
            yield said("agent:", turn.answer, limit)
    yield "(what the agent said last is the answer)"


def _steps(frames: Sequence[Frame], share: float = 1) -> Iterator[str]:
    """Yield the tool calls, a line each; of many, those in the middle are left out."""
    calls = [frame for frame in frames if frame.kind == "tool"]
    most = max(2, int(STEPS_MAX * share))
    left_out = max(0, len(calls) - most)
    head = most // 2 if left_out else len(calls)
    for n, frame in enumerate(calls, 1):
        if head < n <= head + left_out:
            if n == head + 1:
                yield f"({left_out} steps are left out here)"
            continue
        given = "" if frame.input is None else as_json(frame.input, int(INPUT_MAX * share), redact)
        came = quoted(frame.error or frame.output, int(OUTPUT_MAX * share), redact)
        yield f"{n}. {named(frame.name, redact)}({given}) -> {'error: ' if frame.error else ''}{came}"
