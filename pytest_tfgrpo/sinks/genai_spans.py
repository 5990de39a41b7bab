"""Records of a run as spans, by OpenTelemetry's semantic conventions for generative AI.

https://github.com/open-telemetry/semantic-conventions-genai; what they do not name is called ``tfgrpo.*``,
but for the dimensions `tfgrpo_epoch`, `group_size`, `tool_cost_usd` and `latency_ms`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypeAlias

from pytest_tfgrpo.core.records import Frame, Group, ModelCall, PhaseResult, Rollout, Run, Score
from pytest_tfgrpo.core.redact import redact
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.core.trace_ids import span_id, trace_id
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.sinks.otlp import (
    CLIENT,
    AttributeValue,
    attribute,
    attributes,
    common,
    error_status,
    event,
    event_body,
    span,
)

Finished: TypeAlias = tuple[int, Group | PhaseResult | Run]
"""A record, and when it was told, in nanoseconds since 1970."""
RESULT = "gen_ai.evaluation.result"
OTHER = "_OTHER"
"""The conventions' error type where there is no better one."""
UNNAMED = frozenset({"command", "python"})
"""Stand in frames for a model that the agent did not name."""
NAME_CHARS = 200
SLACK_NS = 2_000_000
"""Times of records are cut to milliseconds."""


def span_count(record: Group | PhaseResult | Run) -> int:
    """Return how many spans a record becomes."""
    if isinstance(record, Group):
        return 1 + _rollout_spans(record.rollouts)
    if isinstance(record, PhaseResult):
        return 1 + len(record.calls) + _rollout_spans(_cut_short(record))
    return 1


def _rollout_spans(rollouts: Iterable[Rollout]) -> int:
    return sum(1 + sum(map(_is_reported, rollout.frames)) for rollout in rollouts)


def _is_reported(frame: Frame) -> bool:
    """Return whether the agent told of this call: one that told of none has a frame of its answer alone."""
    unknown = frame.name in UNNAMED and not frame.tokens and frame.cost_usd is None
    return frame.kind == "tool" or not unknown


def _cut_short(result: PhaseResult) -> list[Rollout]:
    """Return the attempts that no group will have; others come with theirs, perhaps in a resumed run."""
    if result.status == "complete":
        return list(result.loose)
    return [rollout for rollout in result.loose if rollout.status == "cancelled"]


class SpanWriter:
    """Makes the spans of one run."""

    def __init__(
        self, run_id: str, *, agent: str, provider: str, content: bool, text_max: int | None
    ) -> None:
        """`agent` is the actor's spec; with `content` prompts, answers and arguments are sent, redacted.

        A text has `text_max` characters at most; None: no limit.
        """
        self._run_id = run_id
        self._trace = trace_id(run_id)
        self._root = span_id("run", run_id)
        self._agent = redact(agent)
        self._provider = provider
        self._content = content
        self._text_max = text_max
        self.prompts: dict[str, Prompt] = {}
        """Prompts of rollouts in flight, by id; only with content."""

    def spans(self, finished: Finished) -> list[bytes]:
        """Return the spans of a record."""
        at_ns, record = finished
        if isinstance(record, Group):
            return list(self._group(record, at_ns))
        if isinstance(record, PhaseResult):
            return list(self._epoch(record, at_ns))
        return [self._run(record)]

    def _run(self, run: Run) -> bytes:
        start_ns = _time_ns(run.started_at)
        end_ns = max(_time_ns(run.finished_at), start_ns)
        values: dict[str, AttributeValue | None] = {
            "tfgrpo.run_id": run.run_id,
            "tfgrpo.task_id": run.task_id,
            "tfgrpo.status": run.status,
            "tfgrpo.scenarios": len(run.scenarios),
            "tfgrpo.library": run.library.hash,
            "gen_ai.agent.name": self._agent,
            "group_size": run.settings["group_size"],
            "tool_cost_usd": _sum(_tool_cost(g.rollouts) for result in run.phases for g in result.groups),
            "latency_ms": (end_ns - start_ns) / 1e6,
        }
        failed = b"" if run.status == "complete" else self._error(run.status, run.reason)
        return span(self._trace, self._root, b"", "tfgrpo.run", start_ns, end_ns, attributes(values), failed)

    def _epoch(self, result: PhaseResult, at_ns: int) -> Iterator[bytes]:
        phase = result.phase
        groups = (*result.groups, *result.dev)
        rollouts = [*(r for group in groups for r in group.rollouts), *result.loose]
        starts = [_time_ns(r.started_at) for r in rollouts if r.started_at]
        starts += [_time_ns(call.started_at) for call in result.calls if call.started_at]
        start_ns = min(starts, default=at_ns)
        applied = 0 if result.revision is None else len(result.revision.applied)
        values: dict[str, AttributeValue | None] = {
            "tfgrpo_epoch": phase.epoch,
            "group_size": phase.rollouts,
            "tfgrpo.mode": phase.mode,
            "tfgrpo.phase": phase.label,
            "tfgrpo.status": result.status,
            "tfgrpo.groups": len(result.groups),
            "tfgrpo.library": result.library_hash,
            "tfgrpo.lessons_changed": applied if phase.mode == "train" else None,
            "gen_ai.request.temperature": float(phase.temperature),
            "tool_cost_usd": _tool_cost(rollouts),
            "latency_ms": (at_ns - start_ns) / 1e6,
        }
        failed = b"" if result.status == "complete" else self._error(result.status, result.reason)
        own = self._id_of_epoch(phase.epoch)
        yield span(self._trace, own, self._root, "tfgrpo.epoch", start_ns, at_ns, attributes(values), failed)
        for call in result.calls:
            yield self._call(call, phase.rollouts, own, frozenset(phase.dev), at_ns)
        for rollout in _cut_short(result):
            begun = span_id("attempt", f"{rollout.rollout_id} {rollout.started_at}")
            shared = self._dimensions(phase.epoch, phase.rollouts, phase.mode, rollout.scenario_id)
            yield from self._rollout(rollout, None, begun, own, shared, at_ns)

    def _group(self, group: Group, at_ns: int) -> Iterator[bytes]:
        own = span_id("group", group.group_id)
        shared = self._dimensions(group.epoch, len(group.rollouts), group.mode, group.scenario_id)
        start_ns = at_ns
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            start_ns = min(start_ns, _start_ns(rollout, at_ns))
            identity = span_id("rollout", rollout.rollout_id)
            yield from self._rollout(rollout, score, identity, own, shared, at_ns)
        values: dict[str, AttributeValue | None] = {
            "tfgrpo.domain": group.domain,
            "tfgrpo.gt_score": group.gt_mean,
            "tfgrpo.informative": group.informative,
            "tool_cost_usd": _tool_cost(group.rollouts),
            "latency_ms": (at_ns - start_ns) / 1e6,
        }
        parent = self._id_of_epoch(group.epoch)
        yield span(self._trace, own, parent, "tfgrpo.group", start_ns, at_ns, shared, attributes(values))

    def _rollout(
        self, rollout: Rollout, score: Score | None, own: bytes, parent: bytes, shared: bytes, at_ns: int
    ) -> Iterator[bytes]:
        start_ns = _start_ns(rollout, at_ns)
        end_ns = start_ns + round(rollout.latency_ms * 1e6)
        conversation = attribute("gen_ai.conversation.id", rollout.rollout_id)
        next_ns = start_ns
        for place, frame in enumerate(rollout.frames):
            if not _is_reported(frame):
                continue
            began_ns = _time_ns(frame.started_at) if frame.started_at else next_ns
            if not start_ns - SLACK_NS <= began_ns <= end_ns + SLACK_NS:  # recorded elsewhere
                began_ns = next_ns
            began_ns = max(began_ns, start_ns)
            next_ns = began_ns + round(frame.latency_ms * 1e6)
            identity = span_id("frame", f"{own.hex()} {place}")
            make = self._tool if frame.kind == "tool" else self._model
            yield make(frame, identity, own, began_ns, next_ns, shared, conversation)
        tool_cost = _tool_cost((rollout,))
        rest = [
            shared,
            self._operation("invoke_agent"),
            common("gen_ai.agent.name", self._agent, str),
            conversation,
            common("gen_ai.request.temperature", float(rollout.temperature), float),
            common("tfgrpo.index", rollout.index, int),
            common("tfgrpo.status", rollout.status, str),
            common("tfgrpo.tokens", rollout.tokens, int),
            attribute("latency_ms", float(rollout.latency_ms)),
        ]
        if rollout.cost_usd is not None:
            rest.append(common("tfgrpo.cost_usd", float(rollout.cost_usd), float))
        if tool_cost is not None:
            rest.append(common("tool_cost_usd", tool_cost, float))
        if score is not None and score.advantage is not None:
            rest.append(common("tfgrpo.advantage", float(score.advantage), float))
        if self._content:
            rest += self._exchange(rollout)
        if score is not None:
            rest += [event(end_ns, body) for body in self._results(rollout, score)]
        if rollout.status != "ok":
            failure = rollout.failure
            rest.append(self._error(failure.code if failure else OTHER, failure.message if failure else ""))
        yield span(self._trace, own, parent, f"invoke_agent {self._agent}", start_ns, end_ns, *rest)

    def _model(
        self, frame: Frame, own: bytes, parent: bytes, start_ns: int, end_ns: int, *shared: bytes
    ) -> bytes:
        model = "" if frame.name in UNNAMED else frame.name[:NAME_CHARS]
        rest = [*shared, self._operation("chat"), *_used(frame)]
        rest.append(attribute("latency_ms", float(frame.latency_ms)))
        if model:
            rest.append(common("gen_ai.request.model", model, str))
        if frame.finish:
            rest.append(common("gen_ai.response.finish_reasons", (frame.finish,), tuple))
        if self._content:
            rest += self._messages(frame.input, frame.output, frame.finish)
        if frame.error is not None:
            rest.append(self._error(OTHER, frame.error))
        return span(self._trace, own, parent, f"chat {model}".strip(), start_ns, end_ns, *rest, kind=CLIENT)

    def _tool(
        self, frame: Frame, own: bytes, parent: bytes, start_ns: int, end_ns: int, *shared: bytes
    ) -> bytes:
        tool = frame.name[:NAME_CHARS]
        rest = [
            *shared,
            common("gen_ai.operation.name", "execute_tool", str),
            common("gen_ai.tool.name", tool, str),
            attribute("latency_ms", float(frame.latency_ms)),
        ]
        if frame.cost_usd is not None:
            rest.append(common("tool_cost_usd", float(frame.cost_usd), float))
        if frame.tokens:
            rest.append(common("tfgrpo.tokens", frame.tokens, int))
        if self._content:
            rest.append(self._text("gen_ai.tool.call.arguments", json.dumps(_redacted(frame.input))))
            rest.append(self._text("gen_ai.tool.call.result", redact(frame.output)))
        if frame.error is not None:
            rest.append(self._error(OTHER, frame.error))
        return span(self._trace, own, parent, f"execute_tool {tool}", start_ns, end_ns, *rest)

    def _call(self, call: ModelCall, group_size: int, epoch: bytes, dev: frozenset[str], at_ns: int) -> bytes:
        """Return the span of a learning or judge call; a vote on a rollout belongs to its group."""
        start_ns = _time_ns(call.started_at) if call.started_at else at_ns
        judged = call.purpose == "judge" and call.subject and call.subject not in dev
        parent = span_id("group", f"{self._run_id}.e{call.epoch}.{call.subject}") if judged else epoch
        provider, _, model = call.model.partition(":")
        model = model.partition("@")[0] or call.model
        values: dict[str, AttributeValue | None] = {
            "tfgrpo_epoch": call.epoch,
            "group_size": group_size,
            "tfgrpo.purpose": call.purpose,
            "tfgrpo.scenario_id": call.subject or None,
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.conversation.id": f"{self._run_id}.{call.key}",
            "latency_ms": float(call.latency_ms),
        }
        rest = [attributes(values), *_used(call)]
        if call.finish:
            rest.append(common("gen_ai.response.finish_reasons", (call.finish,), tuple))
        if self._content:
            rest += self._messages(call.prompt, call.answer, call.finish)
        if call.error is not None:
            code, _, message = call.error.partition(": ")
            rest.append(self._error(code, message))
        end_ns = start_ns + round(call.latency_ms * 1e6)
        own = span_id("call", f"{self._run_id} {call.key}")
        return span(self._trace, own, parent, f"chat {model}", start_ns, end_ns, *rest, kind=CLIENT)

    def _results(self, rollout: Rollout, score: Score) -> Iterator[bytes]:
        """Yield the scores of a rollout as events."""
        missed = [f"{c.kind}: {c.reason}" for c in rollout.checks if not c.passed] if self._content else []
        if score.gt_score is None:
            code = rollout.failure.code if rollout.failure is not None else OTHER
            yield self._result("gt_score", None, code)
        else:
            label = "pass" if score.gt_score >= 1.0 else "fail"
            yield self._result("gt_score", score.gt_score, label, "; ".join(missed))
        if score.relative_rank is not None:
            yield self._result("relative_rank", score.relative_rank)
        for name, value in score.extra.items():
            if value is not None:
                reason = rollout.opinion.reason if self._content and rollout.opinion else ""
                yield self._result(name, value, "", reason if name == "judge" else "")

    def _result(self, name: str, value: float | None, label: str = "", why: str = "") -> bytes:
        values: list[tuple[str, str | float]] = [("gen_ai.evaluation.name", name)]
        if value is None:
            values.append(("error.type", label))
        else:
            values.append(("gen_ai.evaluation.score.value", float(value)))
            if label:
                values.append(("gen_ai.evaluation.score.label", label))
        if why:
            values.append(("gen_ai.evaluation.explanation", self._cut(redact(why))))
        return event_body(RESULT, tuple(values))

    def _exchange(self, rollout: Rollout) -> Iterator[bytes]:
        """Yield what a rollout was asked and what it answered."""
        prompt = self.prompts.pop(rollout.rollout_id, None)
        if prompt is not None:
            if prompt.system:
                instructions = [{"type": "text", "content": self._cut(redact(prompt.system))}]
                yield attribute("gen_ai.system_instructions", json.dumps(instructions))
            yield self._message("gen_ai.input.messages", "user", prompt.user)
        if rollout.answer:
            yield self._message("gen_ai.output.messages", "assistant", rollout.answer, "stop")

    def _messages(self, asked: Json, answer: str, finish: str) -> Iterator[bytes]:
        """Yield what a model was asked, where that is known as text, and what it answered."""
        if asked is not None:
            text = asked if isinstance(asked, str) else json.dumps(_redacted(asked))
            yield self._message("gen_ai.input.messages", "user", text)
        if answer:
            yield self._message("gen_ai.output.messages", "assistant", answer, finish or "stop")

    def _message(self, key: str, role: str, text: str, finish: str = "") -> bytes:
        message: dict[str, Json] = {
            "role": role,
            "parts": [{"type": "text", "content": self._cut(redact(text))}],
        }
        return attribute(key, json.dumps([message | ({"finish_reason": finish} if finish else {})]))

    def _text(self, key: str, text: str) -> bytes:
        return attribute(key, self._cut(text))

    def _cut(self, text: str) -> str:
        return text if self._text_max is None else text[: self._text_max]

    def _error(self, code: str, message: str) -> bytes:
        """Return type and status of an error; its message is content, as agents write it."""
        told = self._cut(redact(message)) if self._content else ""
        return common("error.type", code, str) + error_status(told)

    def _operation(self, name: str) -> bytes:
        return common("gen_ai.operation.name", name, str) + common(
            "gen_ai.provider.name", self._provider, str
        )

    def _dimensions(self, epoch: int, group_size: int, mode: str, scenario_id: str) -> bytes:
        return attributes(
            {
                "tfgrpo_epoch": epoch,
                "group_size": group_size,
                "tfgrpo.mode": mode,
                "tfgrpo.scenario_id": scenario_id,
            }
        )

    def _id_of_epoch(self, epoch: int) -> bytes:
        return span_id("epoch", f"{self._run_id}.e{epoch}")


def _used(call: Frame | ModelCall) -> Iterator[bytes]:
    """Yield tokens and cost of a model call, as far as they are known."""
    usage = call.usage
    if usage is not None:
        yield common("gen_ai.usage.input_tokens", usage.prompt, int)
        yield common("gen_ai.usage.output_tokens", usage.completion, int)
        if usage.reasoning:
            yield common("gen_ai.usage.reasoning.output_tokens", usage.reasoning, int)
        if usage.cached:
            yield common("gen_ai.usage.cache_read.input_tokens", usage.cached, int)
    if call.tokens:
        yield common("tfgrpo.tokens", call.tokens, int)
    if call.cost_usd is not None:
        yield common("tfgrpo.cost_usd", float(call.cost_usd), float)


def _tool_cost(rollouts: Iterable[Rollout]) -> float | None:
    """Return the known cost of the tools; None where no call's is known."""
    return _sum(f.cost_usd for rollout in rollouts for f in rollout.frames if f.kind == "tool")


def _sum(costs: Iterable[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return float(sum(known)) if known else None


def _start_ns(rollout: Rollout, at_ns: int) -> int:
    """Return when a rollout began; where no time is on file, its latency before `at_ns`."""
    return _time_ns(rollout.started_at) if rollout.started_at else at_ns - round(rollout.latency_ms * 1e6)


def _time_ns(text: str) -> int:
    """Return an ISO 8601 time in nanoseconds since 1970, to the millisecond."""
    return round(datetime.fromisoformat(text).timestamp() * 1e3) * 1_000_000


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
