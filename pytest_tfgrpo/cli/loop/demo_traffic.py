"""The application of ``tfgrpo loop demo``: what it sends over three days, as requests of its exporter.

Nothing of the loop is in it: spans are OTLP as JSON, feedback is what its users clicked. It is the same for
the same seed, but for the days.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.demo.demo_service import POINT, DemoService, open_service
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.arms import LiveArm
from pytest_tfgrpo.production.live.config import load_live_config

if TYPE_CHECKING:
    from pytest_tfgrpo.production.live.config import ArmSpec

DAYS = 3
SESSIONS = 120
SECOND_NS = 10**9
DAY_NS = 86_400 * SECOND_NS
WRONG = 0.1
"""Share of the feedback that says the opposite of what the user saw."""
KNOWN, JUDGED = 0.5, 0.6
"""Shares of the tasks whose end the application knows by itself, and that a user judges later."""
BATCH = 12
"""Tasks whose spans one request carries."""
DOMAINS: Mapping[str, str] = MappingProxyType(
    {"calendar": "general", "notes": "research", "settings": "coding"}
)
"""Domains of the feedback loop by those of the fixtures; the others are data analysis."""
OPTED_OUT = "user-3"
"""Who wants nothing kept."""
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """What the application sends at once."""

    day: int
    """From 0."""
    path: str
    body: bytes
    runs: int = 0
    """Agent runs whose root is in it, those of who opted out left out."""
    refused: int = 0
    """Events in it that are malformed."""


@dataclass(slots=True)
class DemoTraffic:
    """Three days of an application, made from the shipped fixtures."""

    service: DemoService
    seed: int
    tasks: int
    start_ns: int
    """Nanoseconds since 1970 at which the first day starts."""
    planted: list[str] = field(default_factory=list)
    """Secrets and personal data in what was sent so far, with every user's name."""

    def requests(self) -> Iterator[DemoRequest]:
        """Yield every request in its order: each day its tasks, then what users say of them."""
        arms = _arms(self.service.folder)
        draw = random.Random(f"loop demo {self.seed}")
        popular = [(1 + place) ** -0.4 for place in range(len(self.service.scenarios))]
        numbers = draw.choices(range(len(self.service.scenarios)), popular, k=self.tasks)
        self.planted += [f"user-{user}" for user in range(SESSIONS // 3)]
        for day in range(DAYS):
            tasks = [
                self._task(draw, arms, n, self.service.scenarios[numbers[n]])
                for n in range(self.tasks * day // DAYS, self.tasks * (day + 1) // DAYS)
            ]
            for first in range(0, len(tasks), BATCH):
                batch = tasks[first : first + BATCH]
                runs = sum(not task.opted_out for task in batch)
                yield DemoRequest(day, "/v1/traces", _export([s for t in batch for s in t.spans]), runs)
            yield from _malformed(day)
            said = [task.feedback for task in tasks if task.feedback and not task.opted_out]
            yield DemoRequest(day, "/feedback", json.dumps(said).encode())

    def _task(
        self, draw: random.Random, arms: Mapping[str, ArmSpec], n: int, scenario: Scenario
    ) -> _ServedTask:
        day = n * DAYS // self.tasks
        session = n * SESSIONS // self.tasks
        user = f"user-{session // 3}"
        version = "learned" if day == DAYS - 1 and session % 2 else "bare"
        answer, frames, score = self.service.solve(_arm(arms[version], scenario), scenario, n)
        at = self.start_ns + n * (DAYS * DAY_NS // self.tasks)
        trace, solved = f"{draw.getrandbits(128) | 1:032x}", score >= 1.0
        attributes: dict[str, Json] = {
            "session.id": f"chat-{session}",
            "user.id": user,
            "tfgrpo.task_id": scenario.id,
            "tfgrpo.task_key": scenario.id,
            "tfgrpo.domain": DOMAINS.get(scenario.domain, "data_analysis"),
            "tfgrpo.policy_version": version,
            "gen_ai.agent.name": agent_of(scenario.domain),
        }
        if draw.random() < KNOWN:
            attributes["tfgrpo.task_status"] = "completed_successfully" if solved else "failed"
        prompt = scenario.prompt + self._secret(draw, n)
        spans = _spans(draw, trace, at, attributes, prompt, answer, frames)
        run = spans[1]["spanId"]
        said = _feedback(draw, derived_id("trajectory", trace, run), f"chat-{session}", at, solved)
        return _ServedTask(spans=spans, feedback=said, opted_out=user == OPTED_OUT)

    def _secret(self, draw: random.Random, n: int) -> str:
        """Return what a user should not have written, now and then."""
        letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
        key = "sk-" + "proj-" + "".join(draw.choices(letters, k=48))
        mail = f"{draw.choice(['ada', 'grace', 'edsger'])}.{n}@mail-{n}.example.org"
        phone = f"+49 30 {draw.randrange(10**7, 10**8)}"
        for every, text, value in (
            (9, f" My key is {key}.", key),
            (7, f" Write to {mail}.", mail),
            (11, f" Call me on {phone}.", phone),
        ):
            if n % every == 0:
                self.planted.append(value)
                return text
        return ""


@dataclass(frozen=True, slots=True)
class _ServedTask:
    spans: list[dict[str, Json]]
    feedback: dict[str, Json]
    opted_out: bool


def agent_of(domain: str) -> str:
    """Return the name of the agent that the application has for a domain of the fixtures."""
    return f"{domain} helper"


def open_traffic(folder: Path, seed: int, tasks: int, start_ns: int) -> DemoTraffic:
    """Return the traffic of an application whose libraries `prepare` wrote into `folder`."""
    service = open_service(folder, seed, splits=("train",))
    return DemoTraffic(service=service, seed=seed, tasks=tasks, start_ns=start_ns)


def _arms(folder: Path) -> Mapping[str, ArmSpec]:
    return load_live_config(folder / "live.toml", {}, {}).points[POINT].arms


def _arm(spec: ArmSpec, scenario: Scenario) -> LiveArm:
    return LiveArm(spec, 1.0, scenario.domain, lambda *_: None)


def _spans(
    draw: random.Random,
    trace: str,
    at: int,
    attributes: Mapping[str, Json],
    prompt: str,
    answer: str,
    frames: Sequence[Frame],
) -> list[dict[str, Json]]:
    """Return the spans of one task as OTLP has them: request, agent, then its calls."""
    ids = [f"{draw.getrandbits(64) | 1:016x}" for _ in range(len(frames) + 2)]
    asked = [{"role": "user", "parts": [{"type": "text", "content": prompt}]}]
    replied = [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
    end = at + (len(frames) + 2) * SECOND_NS
    agent = {
        **attributes,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(replied),
    }
    found = [
        _span(trace, ids[0], "", "POST /chat", (at, end), {"http.route": "/chat"}),
        _span(trace, ids[1], ids[0], f"invoke_agent {attributes['gen_ai.agent.name']}", (at, end), agent),
    ]
    for place, frame in enumerate(frames):
        times = (at + (place + 1) * SECOND_NS, at + (place + 2) * SECOND_NS)
        own: dict[str, Json] = {"session.id": attributes["session.id"]}
        if frame.kind == "tool":
            own |= {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": frame.name,
                "gen_ai.tool.call.arguments": json.dumps(frame.input or {}),
                "gen_ai.tool.call.result": str(frame.output or ""),
            }
        else:
            own |= {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": frame.name,
                "gen_ai.usage.input_tokens": frame.tokens,
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps(replied),
            }
        found.append(_span(trace, ids[place + 2], ids[1], frame.name, times, own, frame.error))
    return found


def _span(
    trace: str,
    span: str,
    parent: str,
    name: str,
    times: tuple[int, int],
    attributes: Mapping[str, Json],
    error: str | None = None,
) -> dict[str, Json]:
    return {
        "traceId": trace,
        "spanId": span,
        "parentSpanId": parent,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(times[0]),
        "endTimeUnixNano": str(times[1]),
        "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        "status": {} if error is None else {"code": 2, "message": error},
    }


def _value(value: Json) -> dict[str, Json]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def _export(spans: list[dict[str, Json]]) -> bytes:
    """Return an export request; spans of an exporter come with children first."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "demo"}}]}
    scope = {"scope": {"name": "demo"}, "spans": spans[::-1]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}).encode()


def _feedback(draw: random.Random, trajectory: str, session: str, at: int, solved: bool) -> dict[str, Json]:
    """Return what the user says later; empty where that is nothing."""
    judged, wrong, kind = draw.random() < JUDGED, draw.random() < WRONG, draw.random()
    good = solved is not wrong
    if not judged:
        return {}
    said: dict[str, Json] = {"type": "thumbs_up" if good else "thumbs_down"}
    if kind < 0.3:
        said = {"type": "rating", "rating": 5 if good else 1}
    elif kind < 0.4 and not good:
        said = {"type": "correction", "text": "that is not what I asked for"}
    return {
        "feedback_id": derived_id("demo feedback", trajectory),
        "trajectory_id": trajectory,
        "session_id": session,
        "timestamp": _time(at + 3600 * SECOND_NS),
        **said,
    }


def _time(at_ns: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at_ns / SECOND_NS, UTC).isoformat(timespec="milliseconds")


def _malformed(day: int) -> Iterator[DemoRequest]:
    """Yield events that nobody can use, of four kinds."""
    name = derived_id("demo malformed", str(day))
    said = {"feedback_id": name, "trajectory_id": name, "timestamp": "2026-01-01T00:00:00Z"}
    texts = (
        json.dumps({**said, "type": "applause"}),
        json.dumps({**said, "type": "score", "component": "style", "score": float("nan")}),
    )
    for text in texts:
        yield DemoRequest(day, "/feedback", text.encode(), refused=1)
    reward = {
        "reward_id": name,
        "trajectory_id": name,
        "session_id": "chat-0",
        "timestamp": "2026-01-01T00:00:00Z",
        "reward_components": {"style": {"score": 0.5, "weight": 1.0, "source": "judge"}},
        "total_reward": 0.9,
        "reward_type": "dense",
    }
    yield DemoRequest(day, "/rewards", json.dumps(reward).encode(), refused=1)
