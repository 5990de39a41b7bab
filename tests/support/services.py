"""The loop's service for tests: called in process, or running in a thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Self, cast

from pytest_tfgrpo.core.events import EventFault, EventRefusal
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake, IntakeResult
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.service.answers import HttpAnswer
from pytest_tfgrpo.production.service.apis import ServiceApis
from pytest_tfgrpo.production.service.app import LoopService, open_app
from pytest_tfgrpo.production.service.limits import ListeningAddress, ServiceLimits
from pytest_tfgrpo.production.service.readers import READERS
from pytest_tfgrpo.production.service.run import run_service
from pytest_tfgrpo.production.service.training import TrainingApi
from pytest_tfgrpo.production.service.workers import LoopRole
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, TraceSpan


class FakeIntake(Intake):
    """Keeps in memory what comes; a text ``"bad"`` is a payload that it refuses."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        """`before` is called before anything is taken; it may raise, or wait."""
        self.before = before
        self.found: list[TraceSpan | RefusedSpan] = []
        self.kept: list[tuple[str, Json]] = []

    def spans(self, found: Iterable[TraceSpan | RefusedSpan]) -> IntakeResult:
        self.before()
        spans = list(found)
        self.found += spans
        bad = {index: one.reason.value for index, one in enumerate(spans) if isinstance(one, RefusedSpan)}
        return _result(len(spans), bad)

    def payloads(self, subject: str, payloads: Sequence[Json | bytes]) -> IntakeResult:
        self.before()
        bad = {
            index: "it is bad" for index, one in enumerate(payloads) if one == "bad" or isinstance(one, bytes)
        }
        self.kept += [(subject, one) for index, one in enumerate(payloads) if index not in bad]
        return _result(len(payloads), bad)


def _result(count: int, bad: Mapping[int, str]) -> IntakeResult:
    refused = {
        index: EventRefusal(fault=EventFault.SCHEMA, pointer="/data", message=message)
        for index, message in bad.items()
    }
    return IntakeResult(accepted=count - len(bad), opted_out=0, refused=refused)


def real_intake(bus: Bus) -> Intake:
    """Return an intake as a service has it."""
    scrubber = LoopScrubber(b"k" * 32)
    return Intake(bus, scrubber, OptOuts(bus, scrubber))


def service_apis(
    jobs: TrainingJobs | None, metrics: Callable[[], HttpAnswer] = lambda: HttpAnswer(200, b"")
) -> ServiceApis:
    """Return what answers the other paths; without jobs, no test sends anything to those of training."""
    return ServiceApis(TrainingApi(cast(TrainingJobs, jobs), LoopScrubber(b"k" * 32)), metrics)


@dataclass(frozen=True)
class Reply:
    """What the application answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


@dataclass
class Local:
    """The application in this process, without a server."""

    intake: Intake = field(default_factory=FakeIntake)
    token: str = ""
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    roles: Mapping[str, str] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)
    jobs: TrainingJobs | None = None
    metrics: Callable[[], HttpAnswer] = lambda: HttpAnswer(200, b"")

    def __post_init__(self) -> None:
        self.service = LoopService(
            self.intake,
            READERS,
            token=self.token,
            limits=self.limits,
            roles=lambda: self.roles,
            apis=service_apis(self.jobs, self.metrics),
            report=self.reports.append,
        )
        self.app = open_app(self.service)

    def post(
        self, path: str, body: bytes | Iterable[bytes], kind: str = "application/json", **headers: str
    ) -> Reply:
        """Send a body, in the parts that it has; a name in `headers` has _ for -."""
        return self.send(
            "POST", path, [body] if isinstance(body, bytes) else body, content_type=kind, **headers
        )

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, [b""], **headers)

    def send(self, method: str, path: str, parts: Iterable[bytes], **headers: str) -> Reply:
        return asyncio.run(self._send(method, path, parts, headers))

    async def _send(
        self, method: str, path: str, parts: Iterable[bytes], headers: Mapping[str, str]
    ) -> Reply:
        rest = iter(parts)
        sent: list[Any] = []

        async def receive() -> Any:
            await asyncio.sleep(0)
            part = next(rest, None)
            return {"type": "http.request", "body": part or b"", "more_body": part is not None}

        async def send(message: Any) -> None:
            sent.append(message)

        named = {"host": "localhost:4318"} | {name.replace("_", "-"): text for name, text in headers.items()}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), text.encode("latin-1")) for name, text in named.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 4318),
        }
        await self.app(scope, receive, send)
        heads = {name.decode(): text.decode() for name, text in sent[0]["headers"]}
        return Reply(sent[0]["status"], heads, b"".join(part.get("body", b"") for part in sent[1:]))


class ClosingBus:
    """A bus that is closed, and nothing else."""

    closed = False

    def close(self) -> None:
        self.closed = True


class Running(AbstractContextManager["Running"]):
    """The service in a thread, on a free port."""

    def __init__(
        self, intake: Intake, *, roles: Sequence[LoopRole] = (), bus: Any = None, **options: Any
    ) -> None:
        self.bus = ClosingBus() if bus is None else bus
        self.reports: list[str] = []
        self.url = ""
        self._stop, self._ready = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(intake, roles, options))

    def _run(self, intake: Intake, roles: Sequence[LoopRole], options: dict[str, Any]) -> None:
        try:
            run_service(
                bus=cast(Bus, self.bus),
                intake=intake,
                apis=service_apis(None),
                roles=roles,
                address=ListeningAddress(port=0, token=options.pop("token", "")),
                ready=self._note,
                report=self.reports.append,
                stop=self._stop,
                **options,
            )
        finally:
            self._ready.set()

    def _note(self, url: str) -> None:
        self.url = url
        self._ready.set()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(100)
        assert self.url, "the service did not start"
        return self

    def stop(self) -> None:
        """Let it drain, without waiting for that."""
        self._stop.set()

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(100)
        assert not self._thread.is_alive()
