"""The transcript of an event stream: model turns and tool calls in order, and their total cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from pytest_tfgrpo.actors.events.stream import events_of
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Frame, Usage
from pytest_tfgrpo.core.wire.wire import Json, to_wire

ProgramFault = TypeVar("ProgramFault", AgentFailure, ProviderError)
UNFINISHED = "the stream does not say how it ended"


@dataclass(kw_only=True, slots=True)
class Step:
    """A frame in the making."""

    kind: Literal["model", "tool"]
    name: str
    input: Json = None
    texts: list[str] = field(default_factory=list)
    error: str | None = None
    usage: Usage | None = None
    finish: str = ""
    around: Step | None = None
    """The tool use in which it happened."""


class TranscriptBuilder:
    """The steps so far; totals reported at the end are distributed so that the sum over frames is right."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.events = 0
        self.unknown = 0
        """Events of a type that the reader does not know."""
        self._steps: list[Step] = []
        self._turns: dict[str, Step] = {}
        self._tools: dict[str, Step] = {}
        self._uses: dict[str, Step] = {}
        """All of tools, also those that ended."""
        self._around: Step | None = None
        self._usage: Usage | None = None
        self._cost_usd: float | None = None
        self._latency_ms = 0.0

    def read(self, stdout: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events of a stream, counted; raises AgentFailure (``garbage``) where it is broken."""
        try:
            for event in events_of(stdout):
                self.events += 1
                yield event
        except AgentFailure as broken:
            raise self.fault(AgentFailure, str(broken), broken.code) from None

    def within(self, id_: str) -> None:
        """Take what follows as done within the tool use called `id_`; empty: within none."""
        self._around = self._uses.get(id_)

    def turn(self, id_: str, model: str) -> Step:
        """Return the model turn called `id_`; an empty id is a new one each time."""
        if id_ and id_ in self._turns:
            return self._turns[id_]
        step = Step(kind="model", name=model or self.program, around=self._around)
        self._steps.append(step)
        self._turns[id_] = step
        return step

    def tool(self, id_: str, name: str, sent: Json) -> Step:
        """Return the new tool use called `id_`, unfinished until `end` is called."""
        step = Step(kind="tool", name=name or "tool", input=sent, error=UNFINISHED, around=self._around)
        self._steps.append(step)
        self._tools[id_] = self._uses[id_] = step
        return step

    def end(self, id_: str, output: str, error: str | None) -> None:
        """Give the tool use called `id_` its result; an unknown one is ignored."""
        step = self._tools.pop(id_, None)
        if step is not None:
            step.texts, step.error = [output], error

    def unfinished(self, id_: str) -> Step | None:
        """Return the tool use called `id_` that has no result yet."""
        return self._tools.get(id_)

    def close(self, usage: Usage | None, cost_usd: float | None, latency_ms: float = 0.0) -> None:
        """Take the totals of the closing event; they hold for the whole stream up to here."""
        self._usage, self._cost_usd, self._latency_ms = usage, cost_usd, latency_ms

    def answer(self, text: str) -> dict[str, Any]:
        """Return the value for `read_trajectory`."""
        if all(step.kind == "tool" for step in self._steps):
            self.turn("", "").texts.append(text)
        return {"answer": text, "frames": [to_wire(frame) for frame in self.frames()]}

    def fault(self, kind: type[ProgramFault], message: str, code: str) -> ProgramFault:
        """Return the exception for a stream without a usable answer, with the frames that there are."""
        return kind(message, code, frames=self.frames())

    def unclosed(self, last: str, trouble: str | None) -> AgentFailure | ProviderError:
        """Return the exception for a stream without its closing event `last`.

        `trouble` is the reason code of a provider's fault in the stream, if any. A program that printed no
        event was not set up correctly, which is not the agent's fault.
        """
        known = self.events - self.unknown
        if not known:
            return self.fault(ProviderError, f"the program printed no {self.program} event", "spawn")
        told = f"the stream ended without the event {last!r} after {known} events"
        if self.unknown:
            told += f" and {self.unknown} of unknown types"
        if trouble:
            return self.fault(ProviderError, told, trouble)
        return self.fault(AgentFailure, told, "no_answer")

    def frames(self) -> tuple[Frame, ...]:
        """Return the steps as frames; the last turn carries what no other accounts for."""
        turns = [step for step in self._steps if step.kind == "model"]
        if not turns and (self._usage or self._cost_usd):
            turns = [self.turn("", "")]
        closing = turns[-1] if turns else None
        rest = _rest(self._usage, [turn.usage for turn in turns[:-1]])
        told = self._usage is None or rest is not None
        frames = []
        places = {id(step): number for number, step in enumerate(self._steps)}
        for number, step in enumerate(self._steps):
            usage = step.usage if told else None
            if step is closing and self._usage is not None:
                usage = rest or self._usage
            inside = 0 if step.around is None else number - places[id(step.around)]
            frames.append(replace(self._frame(step, usage, step is closing), inside=inside))
        return tuple(frames)

    def _frame(self, step: Step, usage: Usage | None, is_closing: bool) -> Frame:
        shared = None if self._cost_usd is None else 0.0
        return Frame(
            kind=step.kind,
            name=step.name,
            input=step.input,
            output="\n".join(step.texts),
            tokens=usage.total if usage else 0,
            cost_usd=0.0 if step.kind == "tool" else self._cost_usd if is_closing else shared,
            latency_ms=self._latency_ms if is_closing else 0.0,
            error=step.error,
            usage=usage,
            finish=step.finish,
        )


def _rest(total: Usage | None, parts: list[Usage | None]) -> Usage | None:
    """Return what `total` has beyond `parts`; None without a total, or where the parts have more."""
    if total is None:
        return None
    known = [part for part in parts if part is not None]
    prompt = total.prompt - sum(part.prompt for part in known)
    completion = total.completion - sum(part.completion for part in known)
    reasoning = total.reasoning - sum(part.reasoning for part in known)
    cached = total.cached - sum(part.cached for part in known)
    if min(prompt, completion, reasoning, cached) < 0:
        return None
    return Usage(prompt=prompt, completion=completion, reasoning=reasoning, cached=cached)
