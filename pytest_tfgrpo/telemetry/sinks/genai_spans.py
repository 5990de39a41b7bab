"""Records of a run as spans, by OpenTelemetry's semantic conventions for generative AI.

https://github.com/open-telemetry/semantic-conventions-genai; what they do not name is called ``tfgrpo.*``,
except for the dimensions `tfgrpo_epoch`, `group_size`, `tool_cost_usd` and `latency_ms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from itertools import chain

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.records import Frame, Group, ModelCall, PhaseResult, Rollout, Run, Score
from pytest_tfgrpo.core.settings.learning import GROUP_SIZE
from pytest_tfgrpo.core.trace_ids import child_id, span_id, trace_id
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.telemetry.sinks.otlp import (
    CLIENT,
    AttributeValue,
    attribute,
    attributes,
    common,
    error_status,
    event_parts,
    measure,
    span,
    stamp,
)
from pytest_tfgrpo.telemetry.sinks.span_content import SpanContent

RESULT = "gen_ai.evaluation.result"
OTHER = "_OTHER"
"""The conventions' error type where there is no better one."""
UNNAMED = frozenset({"command", "python"})
"""Stand in frames for a model that the agent did not name."""
NAME_CHARS = 200
LATENCY_MAX_MS = 1e12
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
    """Return whether the agent reported this call: one that reported none has a frame of its answer alone."""
    if frame.kind == USER:
        return False
    unknown = frame.name in UNNAMED and not frame.tokens and frame.cost_usd is None
    return frame.kind == "tool" or not unknown


def _cut_short(result: PhaseResult) -> list[Rollout]:
    """Return the attempts that no group will have; others come with theirs, perhaps in a resumed run."""
    if result.status == "complete":
        return list(result.loose)
    return [rollout for rollout in result.loose if rollout.status == "cancelled"]


class SpanWriter:
    """Makes the spans of one run."""

    def __init__(self, run_id: str, *, agent: str, provider: str, content: SpanContent) -> None:
        """`agent` is the actor's spec, `provider` that of the models it reports."""
        self._run_id = run_id
        self._trace = trace_id(run_id)
        self._root = span_id("run", run_id)
        self._agent = redact(agent)
        provided = attribute("gen_ai.provider.name", provider)
        self._chat = attribute("gen_ai.operation.name", "chat") + provided
        self._invoke = attribute("gen_ai.operation.name", "invoke_agent") + provided
        self._invoke += attribute("gen_ai.agent.name", self._agent)
        self._invocation = f"invoke_agent {self._agent}"
        self._content = content

    def spans(self, record: Group | PhaseResult | Run, at_ns: int) -> list[bytes]:
        """Return the spans of a record that came at a time, in nanoseconds since 1970."""
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
            "group_size": GROUP_SIZE.of(run.settings),
            "tool_cost_usd": _tool_cost(
                r for result in run.phases for g in result.groups for r in g.rollouts
            ),
            "latency_ms": (end_ns - start_ns) / 1e6,
        }
        failed = b"" if run.status == "complete" else self._error(run.status, run.reason)
        return span(self._trace, self._root, b"", "tfgrpo.run", start_ns, end_ns, attributes(values), failed)

    def _epoch(self, result: PhaseResult, at_ns: int) -> Iterator[bytes]:
        phase = result.phase
        made = chain((r.started_at for r in _rollouts(result)), (c.started_at for c in result.calls))
        start_ns = min((_time_ns(at) for at in made if at), default=at_ns)
        applied = 0 if result.revision is None else len(result.revision.applied)
        values: dict[str, AttributeValue | None] = {
            "tfgrpo_epoch": phase.epoch,
            "group_size": phase.rollouts,
            "tfgrpo.mode": phase.mode,
            "tfgrpo.phase": phase.label,
            "tfgrpo.status": result.status,
            "tfgrpo.groups": len(result.groups),
            "tfgrpo.library": result.library_hash,
            "tfgrpo.lessons_changed": applied if phase.trains else None,
            "gen_ai.request.temperature": float(phase.temperature),
            "tool_cost_usd": _tool_cost(_rollouts(result)),
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
            yield from self._rollout(rollout, None, begun, own, shared, _start_ns(rollout, at_ns))

    def _group(self, group: Group, at_ns: int) -> Iterator[bytes]:
        own = span_id("group", group.group_id)
        shared = self._dimensions(group.epoch, len(group.rollouts), group.mode, group.scenario_id)
        first_ns = at_ns
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            start_ns = _start_ns(rollout, at_ns)
            first_ns = min(first_ns, start_ns)
            identity = span_id("rollout", rollout.rollout_id)
            yield from self._rollout(rollout, score, identity, own, shared, start_ns)
        values: dict[str, AttributeValue | None] = {
            "tfgrpo.domain": group.domain,
            "tfgrpo.gt_score": group.gt_mean,
            "tfgrpo.informative": group.informative,
            "tool_cost_usd": _tool_cost(group.rollouts),
            "latency_ms": (at_ns - first_ns) / 1e6,
        }
        parent = self._id_of_epoch(group.epoch)
        yield span(self._trace, own, parent, "tfgrpo.group", first_ns, at_ns, shared, attributes(values))

    def _rollout(
        self, rollout: Rollout, score: Score | None, own: bytes, parent: bytes, shared: bytes, start_ns: int
    ) -> list[bytes]:
        """Return the spans of the calls of a rollout, and its own."""
        end_ns = _end_ns(start_ns, rollout.latency_ms)
        shared += attribute("gen_ai.conversation.id", rollout.rollout_id)
        found = self._calls(rollout.frames, own, start_ns, end_ns, shared) if rollout.frames else []
        advantage = None if score is None else score.advantage
        rest = [
            shared,
            self._invoke,
            _figures(rollout.temperature, rollout.index, rollout.status, rollout.tokens, advantage),
            measure("latency_ms", rollout.latency_ms),
        ]
        if rollout.cost_usd is not None:
            rest.append(measure("tfgrpo.cost_usd", rollout.cost_usd))
        if found and (cost_usd := _tool_cost((rollout,))) is not None:
            rest.append(measure("tool_cost_usd", cost_usd))
        if self._content.on:
            rest += self._content.of_rollout(rollout)
        if score is not None:
            end = stamp(end_ns)
            for before, after in self._results(rollout, score):
                rest += (before, end, after)
        if rollout.status != "ok":
            failure = rollout.failure
            rest.append(self._error(failure.code if failure else OTHER, failure.message if failure else ""))
        found.append(span(self._trace, own, parent, self._invocation, start_ns, end_ns, *rest))
        return found

    def _calls(
        self, frames: Iterable[Frame], own: bytes, start_ns: int, end_ns: int, shared: bytes
    ) -> list[bytes]:
        """Return the spans of what a rollout called, one call after the other where it has no times."""
        found = []
        next_ns = start_ns
        for place, frame in enumerate(frames):
            if not _is_reported(frame):
                continue
            began_ns = next_ns
            if frame.started_at:
                told_ns = _time_ns(frame.started_at)
                if start_ns - SLACK_NS <= told_ns <= end_ns + SLACK_NS:  # else it was recorded elsewhere
                    began_ns = max(told_ns, start_ns)
            next_ns = _end_ns(began_ns, frame.latency_ms)
            make = self._tool if frame.kind == "tool" else self._model
            found.append(make(frame, child_id(own, place), own, began_ns, next_ns, shared))
        return found

    def _model(
        self, frame: Frame, own: bytes, parent: bytes, start_ns: int, end_ns: int, shared: bytes
    ) -> bytes:
        model = "" if frame.name in UNNAMED else frame.name[:NAME_CHARS]
        rest = [shared, self._chat, measure("latency_ms", frame.latency_ms), _used(frame)]
        if model:
            rest.append(common("gen_ai.request.model", model, str))
        if isinstance(answered := frame.extra.get("response_model"), str) and answered:
            rest.append(common("gen_ai.response.model", answered[:NAME_CHARS], str))
        if self._content.on:
            rest += self._content.of_call(frame.input, frame.output, frame.finish)
        if frame.error is not None:
            rest.append(self._error(OTHER, frame.error))
        name = f"chat {model}" if model else "chat"
        return span(self._trace, own, parent, name, start_ns, end_ns, *rest, kind=CLIENT)

    def _tool(
        self, frame: Frame, own: bytes, parent: bytes, start_ns: int, end_ns: int, shared: bytes
    ) -> bytes:
        tool = frame.name[:NAME_CHARS]
        used = _tool_call(tool, frame.tokens, frame.cost_usd)
        rest = [shared, used, measure("latency_ms", frame.latency_ms)]
        if self._content.on:
            rest += self._content.of_tool(frame)
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
        rest = [attributes(values), _used(call)]
        if self._content.on:
            rest += self._content.of_call(call.prompt, call.answer, call.finish)
        if call.error is not None:
            code, _, message = call.error.partition(": ")
            rest.append(self._error(code, message))
        end_ns = _end_ns(start_ns, call.latency_ms)
        own = span_id("call", f"{self._run_id} {call.key}")
        return span(self._trace, own, parent, f"chat {model}", start_ns, end_ns, *rest, kind=CLIENT)

    def _results(self, rollout: Rollout, score: Score) -> Iterator[tuple[bytes, bytes]]:
        """Yield the scores of a rollout as parts of events; why they are what they are is content."""
        missed = judged = ""
        if self._content.on:
            reasons = "; ".join(f"{c.kind}: {c.reason}" for c in rollout.checks if not c.passed)
            missed = self._content.text(reasons)
            judged = self._content.text(rollout.opinion.reason if rollout.opinion is not None else "")
        if score.gt_score is None:
            yield _unscored(rollout.failure.code if rollout.failure is not None else OTHER)
        else:
            label = "pass" if score.gt_score >= 1.0 else "fail"
            yield _result("gt_score", float(score.gt_score), label, missed)
        if score.relative_rank is not None:
            yield _result("relative_rank", float(score.relative_rank))
        for name, value in score.extra.items():
            if value is not None:
                why = self._content.text(score.evidence.get(name, ""))
                yield _result(name, float(value), "", judged if name == "judge" else why)

    def _error(self, code: str, message: str) -> bytes:
        """Return type and status of an error; its message is content, as agents write it."""
        return common("error.type", code, str) + error_status(self._content.text(message))

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


@lru_cache(maxsize=4096)
def _result(name: str, value: float, label: str = "", why: str = "") -> tuple[bytes, bytes]:
    """Return a score as parts of an event."""
    values: dict[str, AttributeValue] = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": value,
    }
    told = {"gen_ai.evaluation.score.label": label, "gen_ai.evaluation.explanation": why}
    return event_parts(RESULT, values | {key: text for key, text in told.items() if text})


def _unscored(code: str) -> tuple[bytes, bytes]:
    return event_parts(RESULT, {"gen_ai.evaluation.name": "gt_score", "error.type": code})


def _used(call: Frame | ModelCall) -> bytes:
    """Return tokens, cost and ending of a model call, as far as they are known."""
    usage, cost = call.usage, call.cost_usd
    if usage is None:
        return _counts(None, None, 0, 0, call.tokens, call.finish) + _cost("tfgrpo.cost_usd", cost)
    counted = (usage.prompt, usage.completion, usage.reasoning, usage.cached)
    return _counts(*counted, call.tokens, call.finish) + _cost("tfgrpo.cost_usd", cost)


@lru_cache(maxsize=4096)
def _counts(
    prompt: int | None, completion: int | None, reasoning: int, cached: int, tokens: int, finish: str
) -> bytes:
    values: dict[str, AttributeValue | None] = {
        "gen_ai.usage.input_tokens": prompt,
        "gen_ai.usage.output_tokens": completion,
        "gen_ai.usage.reasoning.output_tokens": reasoning or None,
        "gen_ai.usage.cache_read.input_tokens": cached or None,
        "gen_ai.response.finish_reasons": (finish,) if finish else None,
        "tfgrpo.tokens": tokens or None,
    }
    return attributes(values)


@lru_cache(maxsize=4096)
def _tool_call(tool: str, tokens: int, cost_usd: float | None) -> bytes:
    values: dict[str, AttributeValue | None] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "tfgrpo.tokens": tokens or None,
        "tool_cost_usd": None if cost_usd is None else float(cost_usd),
    }
    return attributes(values)


@lru_cache(maxsize=4096)
def _figures(temperature: float, index: int, status: str, tokens: int, advantage: float | None) -> bytes:
    values: dict[str, AttributeValue | None] = {
        "gen_ai.request.temperature": float(temperature),
        "tfgrpo.index": index,
        "tfgrpo.status": status,
        "tfgrpo.tokens": tokens,
        "tfgrpo.advantage": None if advantage is None else float(advantage),
    }
    return attributes(values)


def _cost(key: str, cost_usd: float | None) -> bytes:
    return b"" if cost_usd is None else measure(key, cost_usd)


def _rollouts(result: PhaseResult) -> Iterator[Rollout]:
    """Yield the rollouts of a phase, which may be too many to hold."""
    for group in result.with_dev:
        yield from group.rollouts
    yield from result.loose


def _tool_cost(rollouts: Iterable[Rollout]) -> float | None:
    """Return the known cost of the tools; None where no call's is known."""
    costs = [f.cost_usd for r in rollouts for f in r.frames if f.kind == "tool" and f.cost_usd is not None]
    return float(sum(costs)) if costs else None


def _start_ns(rollout: Rollout, at_ns: int) -> int:
    """Return when a rollout began; where no time is on file, its latency before `at_ns`."""
    return _time_ns(rollout.started_at) if rollout.started_at else at_ns - round(rollout.latency_ms * 1e6)


def _end_ns(start_ns: int, latency_ms: float) -> int:
    """Return the end of what took so long; an agent may have made that up."""
    return start_ns + int(min(latency_ms, LATENCY_MAX_MS) * 1e6)


@lru_cache(maxsize=1024)
def _time_ns(text: str) -> int:
    """Return an ISO 8601 time in nanoseconds since 1970, to the millisecond."""
    return round(datetime.fromisoformat(text).timestamp() * 1e3) * 1_000_000
