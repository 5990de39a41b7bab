"""Deployed versions, and what serves them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.serving.follow import ServingFollower
from pytest_tfgrpo.production.serving.last_known import ServedState
from pytest_tfgrpo.production.serving.policy import VersionChoice
from pytest_tfgrpo.production.serving.proxy import ModelAnswer, PolicyProxy
from pytest_tfgrpo.production.serving.recording import AddExchange
from pytest_tfgrpo.production.serving.served_version import ServedVersion
from pytest_tfgrpo.production.serving.upstream import UpstreamFault, UpstreamRequest
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.validation import Validation
from support.builders import make_experience, make_pack
from support.learned_runs import learned, lesson

ADA = DeployDecision(at="2026-01-01T12:00:00.000Z", by="ada", reason="it is good")
REFUND, PARCEL = "Ask for the order before a refund.", "Name the carrier of a parcel."
PASSED = Validation(
    outcome="validated",
    reasons=(),
    benchmark_scores={"text": 0.7},
    benchmark_passed=True,
    safety_checks_passed=True,
    performance_regression=False,
    holdout_reward=0.7,
    improvement_over_baseline=0.2,
    improvement_low=0.1,
)


def add_version(policies: Policies, n: int, text: str) -> str:
    """Return the name of a version with one lesson."""
    operation = Operation(kind="add", experience=lesson(n, summary32=text), groups=("g1",))
    run = learned(n, operation)
    return policies.add(
        run, job=f"job-{n}", parent="v1", validation=PASSED, dataset={}, attempts={"g1": ("t1",)}
    ).name


def deploy(bus: Bus, version: str, live: str = "v1", *, at_once: bool = False) -> Serving:
    """Start the ramp of a version, and return what is served."""
    candidate = DeployCandidate(version=version, benchmark_passed=True, safety_checks_passed=True)
    return Deployments(bus).start(candidate, DeployCandidate(version=live), ADA, at_once=at_once)


def files_of(folder: Path) -> FolderArtifacts:
    """Return where the versions of a test are."""
    return FolderArtifacts(folder / "training")


@dataclass
class Known:
    """A follower that knows what is served."""

    state: ServedState | None


def choice_of(serving: Serving | None = None, *texts: str) -> VersionChoice:
    """Return the choice among versions, of which v2 adds a pack and lessons; None: nobody knows."""
    state = None if serving is None else state_of(serving, *texts)
    return VersionChoice(cast(ServingFollower, Known(state)))


def state_of(serving: Serving, *texts: str) -> ServedState:
    """Return what is served, v2 with these lessons."""
    lessons = [make_experience(n, summary32=text) for n, text in enumerate(texts, 1)]
    versions = {"v1": ServedVersion("v1", (), ()), "v2": ServedVersion("v2", (make_pack(),), lessons)}
    return ServedState(serving=serving, versions=versions)


LIVE = Serving(live="v2", states={"v2": "live"})


@dataclass
class FakeAnswer:
    """What a model server answers; a chunk may be an error, or a call that waits."""

    chunks: Sequence[bytes | UpstreamFault] = (b"{}",)
    status: int = 200
    headers: Sequence[tuple[str, str]] = (("content-type", "application/json"),)
    ended: bool = False
    waits: bool = False
    """Whether it never comes to its end."""

    def __post_init__(self) -> None:
        self._rest = iter(self.chunks)

    async def read(self) -> bytes | None:
        chunk = next(self._rest, None)
        if chunk is None and self.waits:
            await asyncio.Event().wait()
        if isinstance(chunk, UpstreamFault):
            raise chunk
        return chunk

    async def end(self) -> None:
        for _ in range(5):  # it takes a while, in which the client may leave
            await asyncio.sleep(0)
        self.ended = True


@dataclass
class FakeUpstream:
    """A model server in this process."""

    answers: list[FakeAnswer | UpstreamFault | Callable[[], Any]] = field(default_factory=list)
    requests: list[UpstreamRequest] = field(default_factory=list)

    async def send(self, request: UpstreamRequest) -> ModelAnswer:
        if not isinstance(request.body, bytes):
            request = replace_body(request, b"".join([part async for part in request.body]))
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else FakeAnswer()
        if isinstance(answer, UpstreamFault):
            raise answer
        if callable(answer):
            await answer()
            return FakeAnswer()
        return answer

    @property
    def sent(self) -> Any:
        """The body of the last request."""
        return json.loads(cast(bytes, self.requests[-1].body))


def replace_body(request: UpstreamRequest, body: bytes) -> UpstreamRequest:
    return request._replace(body=body)


@dataclass
class ProxyReply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return dict(self.headers).get(name, "")

    @property
    def value(self) -> Any:
        return json.loads(self.body)


@dataclass
class LocalProxy:
    """The proxy in this process, without a server."""

    upstream: FakeUpstream = field(default_factory=FakeUpstream)
    choice: VersionChoice = field(default_factory=choice_of)
    add: AddExchange | None = None

    def __post_init__(self) -> None:
        self.app = PolicyProxy(self.upstream.send, self.choice, self.add, lambda: {"versions": []})

    def chat(
        self, *messages: Mapping[str, Any], headers: Mapping[str, str] = {}, **fields: Any
    ) -> ProxyReply:
        body = json.dumps({"model": "m", "messages": messages, **fields}).encode()
        return self.send("POST", "/v1/chat/completions", [body], headers)

    def send(
        self,
        method: str,
        path: str,
        parts: Iterable[bytes] = (b"",),
        headers: Mapping[str, str] = {},
        *,
        leaves: bool = False,
    ) -> ProxyReply:
        """Send a request; its client `leaves` once its body is there."""
        return asyncio.run(self._send(method, path, list(parts), headers, leaves))

    async def _send(
        self, method: str, path: str, parts: list[bytes], headers: Mapping[str, str], leaves: bool
    ) -> ProxyReply:
        sent: list[Any] = []
        over = asyncio.Event()

        async def receive() -> Any:
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            if not leaves:
                await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                over.set()

        where, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": where,
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), text.encode("latin-1")) for name, text in headers.items()],
        }
        await self.app(scope, receive, send)
        if not sent:
            return ProxyReply(0, [], b"")
        heads = [(name.decode(), text.decode()) for name, text in sent[0]["headers"]]
        return ProxyReply(sent[0]["status"], heads, b"".join(part.get("body", b"") for part in sent[1:]))
