"""The offline agent: steps through tools until it finishes; learns only through the text of its prompt."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import asdict, replace

from pytest_tfgrpo.actors.offline.lessons import lessons_in
from pytest_tfgrpo.actors.offline.policy import FINISH, Policy, choose
from pytest_tfgrpo.actors.offline.task_view import TaskView, first_value, open_brief, wording_of
from pytest_tfgrpo.actors.offline.tools.registry import TOOLS, OfflineTool
from pytest_tfgrpo.actors.offline.values import ToolError, Value, kind_of, render
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Frame, Trajectory
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import Actor, ActorCall

VERSION = 2
FRAME_CHARS = 2_000
"""Most characters of a tool's output that its frame keeps."""


class OfflineActor:
    """A frozen agent over real tools; free, and equal for equal seeds and prompts."""

    name = "offline"
    paid = False

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
        catalogue = [[tool.name, tool.description, list(tool.takes)] for tool in TOOLS]
        self.identity: Mapping[str, Json] = {
            "actor": "offline",
            "version": VERSION,
            "tools": stamp(catalogue),
            "policy": stamp(asdict(self._policy)),
        }

    converses = True

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once, in about a millisecond."""
        return self.play(call)[0]

    def open_session(self, call: ActorCall) -> OfflineSession:
        """Return a conversation: each message is a task, or goes on with the last result."""
        return OfflineSession(self, call)

    def play(self, call: ActorCall, before: Value | None = None) -> tuple[Trajectory, Value]:
        """Return what a task comes to, as text and as value.

        The result `before` it is worked on where the task has no data of its own.
        """
        started = time.perf_counter()
        brief = open_brief(call.task, call.workspace)
        value = first_value(call.task, brief)
        if before is not None and not brief.has_data():
            value = before
        words = content(wording_of(brief.text))
        later = self._policy.prior(words, frozenset())
        first = self._policy.prior(words, content(brief.sight()))
        hints = self._policy.hints(lessons_in(call.prompt.system or call.prompt.user), words)
        chance = random.Random(call.seed)
        allowed = call.task.tools
        left = [i for i, tool in enumerate(TOOLS) if allowed is None or tool.name in allowed]
        frames: list[Frame] = []
        done: list[str] = []
        for _ in range(self._policy.max_steps):
            kind = kind_of(value)
            fitting = [i for i in left if kind in TOOLS[i].takes]
            logits = self._policy.logits(later if done else first, fitting, kind, done, hints)
            step = choose(logits, call.temperature, chance)
            if step == FINISH:
                break
            place = next(i for i in fitting if TOOLS[i].name == step)
            left.remove(place)  # neither a tool that worked nor one that could not apply is tried again
            frame, value = _use(TOOLS[place], value, brief)
            frames.append(frame)
            if frame.error is None:
                done.append(step)
        answer = render(value)
        took_ms = (time.perf_counter() - started) * 1000
        frames.append(
            Frame(
                kind="model",
                name="offline",
                output=FINISH,
                tokens=_word_count(call.prompt.system, call.prompt.user, answer),
                cost_usd=0.0,
                latency_ms=took_ms - sum(frame.latency_ms for frame in frames),
                started_at=utc_now(ago_ms=took_ms),
            )
        )
        return Trajectory(answer=answer, frames=tuple(frames)), value

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - free, however often
        """Return that calls are free; how many words they handle depends on the data."""
        return {"usd": 0.0, "tokens": None}

    async def aclose(self) -> None:
        """Hold nothing."""


class OfflineSession:
    """Remembers the result of the last turn."""

    def __init__(self, actor: OfflineActor, call: ActorCall) -> None:
        self._actor = actor
        self._call = call
        self._value: Value | None = None

    async def answer(self, message: str) -> Trajectory:
        """Take the message as a task."""
        call = self._call
        if self._value is not None:
            task = replace(call.task, prompt=message, input=None)
            told = call.prompt.system or call.prompt.user
            call = replace(call, task=task, prompt=Prompt(system=told, user=message))
        trajectory, self._value = self._actor.play(call, self._value)
        return trajectory

    async def aclose(self) -> None:
        """Hold nothing."""


def _use(tool: OfflineTool, value: Value, brief: TaskView) -> tuple[Frame, Value]:
    """Return the frame of one call and the value after it: the same one when the tool could not apply."""
    started = time.perf_counter()
    arguments: Mapping[str, Json] = {}
    error = None
    result = value
    try:
        arguments, result = tool.call(value, brief)
        kind_of(result)
        output = render(result)
    except ToolError as problem:
        result, output, error = value, "", str(problem)
    took_ms = (time.perf_counter() - started) * 1000
    frame = Frame(
        kind="tool",
        name=tool.name,
        input=dict(arguments),
        output=output[:FRAME_CHARS],
        tokens=_word_count(render(value), render(dict(arguments)) if arguments else "", output),
        cost_usd=0.0,
        latency_ms=took_ms,
        error=error,
        started_at=utc_now(ago_ms=took_ms),
    )
    return frame, result


def _word_count(*texts: str) -> int:
    return sum(len(text.split()) for text in texts)


def open_offline() -> Actor:
    """Return the offline actor."""
    return OfflineActor()
