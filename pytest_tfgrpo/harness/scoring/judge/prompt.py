"""The prompt of a judge: a packaged, stamped template, filled in one pass with fenced data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from pytest_tfgrpo.core.conversations import Turn, turns_of
from pytest_tfgrpo.core.records import Frame, Rollout
from pytest_tfgrpo.core.scenarios import Criterion, Scenario
from pytest_tfgrpo.core.stamp import stamp
from pytest_tfgrpo.core.text import cut, line
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.llm.protocol import Message
from pytest_tfgrpo.llm.templates import fill, mark_for

PARTS = ("system", "question", "repair")
TEXT_MAX = 24_000
"""Characters of the task, and of the answer, that a judge is shown."""
STEPS_MAX = 40
INPUT_MAX, OUTPUT_MAX = 300, 600
"""Characters of what a tool was given, and of what it gave back."""
TURN_MAX = 4_000
"""Characters of one message of a conversation."""
REPLY_MAX = 4_000
"""Characters of a malformed vote that its repair shows."""


@cache
def templates() -> Mapping[str, str]:
    """Return the packaged texts by name."""
    folder = files("pytest_tfgrpo.harness.scoring.judge").joinpath("prompts")
    return {name: folder.joinpath(f"{name}.md").read_text("utf-8").strip() for name in PARTS}


def template_stamp() -> str:
    """Return the stamp of the texts, a part of the judge's identity."""
    return stamp(dict(templates()))


def question(scenario: Scenario, rollout: Rollout) -> tuple[Message, ...]:
    """Return the messages that ask the judge about `rollout`; equal attempts give equal messages.

    They hold the task, the criteria, the steps and the answer; never what the scenario's checks expect.
    All attempts at one scenario are asked about alike up to their steps, so that a server can cache that: the
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
    if turns := turns_of(rollout.frames, rollout.answer):
        return {
            "task": cut(_task(scenario), TEXT_MAX),
            "criteria": _criteria(scenario.rubric),
            "steps": cut("\n".join(_said(turns)), 2 * TEXT_MAX),
            "answer": cut(rollout.answer, TEXT_MAX),
        }
    return {
        "task": cut(_task(scenario), TEXT_MAX),
        "criteria": _criteria(scenario.rubric),
        "steps": "\n".join(_steps(rollout.frames)) or "none",
        "answer": cut(rollout.answer, TEXT_MAX),
    }


def repair(asked: Sequence[Message], reply: str, error: str, count: int) -> tuple[Message, ...]:
    """Return the messages that ask once more after a malformed vote on `count` criteria."""
    again = fill(templates()["repair"], {"error": error, "shape": _shape(count)})
    return (
        *asked,
        Message(role="assistant", content=cut(reply, REPLY_MAX) or "(nothing)"),  # some servers refuse ""
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


def _task(scenario: Scenario) -> str:
    data = [] if scenario.input is None else [json.dumps(scenario.input, ensure_ascii=False, indent=1)]
    attached = [f"attached: {attachment.name}" for attachment in scenario.attachments]
    return "\n".join([*([scenario.prompt] if scenario.prompt else []), *data, *attached])


def _criteria(rubric: Sequence[Criterion]) -> str:
    return "\n".join(f"{key_of(place)}: {criterion.text}" for place, criterion in enumerate(rubric))


def _said(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield a conversation: what the user and the agent said, with the tool calls between."""
    for turn in turns:
        yield f"user: {cut(turn.user, TURN_MAX)}"
        yield from _steps(turn.frames)
        if turn is not turns[-1]:
            yield f"agent: {cut(turn.answer, TURN_MAX)}"
    yield "agent: see the answer"


def _steps(frames: Sequence[Frame]) -> Iterator[str]:
    """Yield the tool calls, a line each; of many, those in the middle are left out."""
    calls = [frame for frame in frames if frame.kind == "tool"]
    left_out = max(0, len(calls) - STEPS_MAX)
    head = STEPS_MAX // 2 if left_out else len(calls)
    for n, frame in enumerate(calls, 1):
        if head < n <= head + left_out:
            if n == head + 1:
                yield f"[{left_out} steps are left out here]"
            continue
        given = "" if frame.input is None else line(json.dumps(frame.input, ensure_ascii=False), INPUT_MAX)
        came = f"error: {line(frame.error, OUTPUT_MAX)}" if frame.error else line(frame.output, OUTPUT_MAX)
        yield f"{n}. {line(frame.name, 80)}({given}) -> {came}"
