"""The application: who may send what, how much of it, and what is answered.

The one file that imports ``starlette``, inside functions.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.core.errors import BusError, SettingError, describe
from pytest_tfgrpo.core.events import FEEDBACK, REWARD, TRAJECTORY
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.service.answers import (
    JSON_TYPE,
    PROTOBUF_TYPE,
    HttpAnswer,
    json_answer,
    otlp_status,
)
from pytest_tfgrpo.production.service.apis import ServiceApis
from pytest_tfgrpo.production.service.bodies import RefusedRequest, too_large, unpack
from pytest_tfgrpo.production.service.ingest import ReadOtlp, take_export, take_payloads
from pytest_tfgrpo.production.service.limits import ServiceLimits, is_loopback
from pytest_tfgrpo.production.service.openapi import openapi
from pytest_tfgrpo.telemetry.traces.otlp.otlp import OtlpForm

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

PAYLOADS = MappingProxyType({"/trajectories": TRAJECTORY, "/feedback": FEEDBACK, "/rewards": REWARD})
"""The subject of each path that takes payloads."""
EXPORTS = MappingProxyType({"/v1/traces": "Spans", "/v1/logs": "LogRecords"})
"""What each path of OTLP takes."""
RETRY_AFTER_S = 1
"""What exporters wait, which drop what they could not send within ten seconds."""
_FORMS: Mapping[str, OtlpForm] = MappingProxyType(
    {PROTOBUF_TYPE: "protobuf", "application/protobuf": "protobuf", JSON_TYPE: "json"}
)
_Work: TypeAlias = Callable[[bytes], HttpAnswer]
_NO_JSON = RefusedRequest(415, f"send {JSON_TYPE}")
_Refusal: TypeAlias = Callable[[int, str], HttpAnswer]


class LoopService:
    """What the routes of the application do; for one event loop."""

    def __init__(
        self,
        intake: Intake,
        readers: Mapping[str, ReadOtlp],
        *,
        token: str,
        limits: ServiceLimits,
        roles: Callable[[], Mapping[str, str]],
        apis: ServiceApis,
        report: Callable[[str], None],
    ) -> None:
        """`readers` are by the paths of `EXPORTS`; `roles` gives their states; any thread calls `report`."""
        self._intake = intake
        self._readers = readers
        self._token = token.encode()
        self._limits = limits
        self._roles = roles
        self._training, self._metrics = apis.training, apis.metrics
        self._report = report
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="tfgrpo-ingest")
        self._held = 0
        """Bytes of the bodies that are here."""
        self._failing = False
        """Whether the intake failed when it was last used."""

    def close(self) -> None:
        """Start nothing more; what a thread has begun it ends."""
        self._pool.shutdown(cancel_futures=True)

    async def export(self, request: Request) -> Response:
        """Answer an export request of OTLP."""
        path = request.url.path
        form = _FORMS.get(_media_type(request))
        if form is None:
            refusal = RefusedRequest(415, f"send {PROTOBUF_TYPE} or {JSON_TYPE}")
            return await self._answered(request, refusal, _error)
        work = partial(take_export, self._intake, self._readers[path], form=form, items=EXPORTS[path])
        return await self._answered(request, work, partial(otlp_status, form))

    async def payloads(self, request: Request) -> Response:
        """Answer a request with payloads of one subject."""
        if _media_type(request) != JSON_TYPE:
            return await self._answered(request, _NO_JSON, _error)
        subject = PAYLOADS[request.url.path]
        work = partial(take_payloads, self._intake, subject, most=self._limits.events)
        return await self._answered(request, work, _error)

    async def start_job(self, request: Request) -> Response:
        """Answer a request to train."""
        work = self._training.start if _media_type(request) == JSON_TYPE else _NO_JSON
        return await self._answered(request, work, _error)

    async def job_queue(self, request: Request) -> Response:
        """Answer how many jobs wait."""
        return await self._answered(request, lambda _: self._training.queue(), _error)

    async def job_status(self, request: Request) -> Response:
        """Answer how a job goes."""
        job_id = request.path_params["job_id"]
        return await self._answered(request, lambda _: self._training.status(job_id), _error)

    async def cancel_job(self, request: Request) -> Response:
        """Answer a request to cancel a job."""
        job_id = request.path_params["job_id"]
        return await self._answered(request, lambda _: self._training.cancel(job_id), _error)

    async def models(self, request: Request) -> Response:
        """Answer what was made of jobs."""
        return await self._answered(request, lambda _: self._training.models(), _error)

    async def metrics(self, request: Request) -> Response:
        """Answer a scrape, from what is in memory."""
        try:
            self._admit(request)
        except RefusedRequest as refused:
            return _response(_error(refused.status, str(refused)), refused.headers)
        return _response(self._metrics())

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - it is a route
        """Answer whether all is well, to whoever reaches the service."""
        parts = {"intake": "failing" if self._failing else "ok", **self._roles()}
        well = all(state == "ok" for state in parts.values())
        return _response(json_answer(200, {"status": "ok" if well else "degraded", "parts": parts}))

    async def document(self, request: Request) -> Response:  # noqa: ARG002 - it is a route
        """Answer the OpenAPI document."""
        return _response(json_answer(200, openapi()))

    async def _answered(self, request: Request, work: _Work | RefusedRequest, refusal: _Refusal) -> Response:
        from starlette.requests import ClientDisconnect

        until = asyncio.get_running_loop().time() + self._limits.body_s
        try:
            try:
                self._admit(request)
                if isinstance(work, RefusedRequest):
                    raise work
                return _response(await self._done(request, work))
            except RefusedRequest as refused:
                await self._drain(request, until)
                return _response(refusal(refused.status, str(refused)), refused.headers)
        except ClientDisconnect:
            return _response(refusal(400, "the connection ended before the body did"))
        except Exception as error:  # noqa: BLE001 - the failure of one request is not the service's
            self._report(f"a request to {request.url.path} failed: {describe(error)}")
            return _response(refusal(500, "the service failed at this request, and reported why"))

    def _admit(self, request: Request) -> None:
        """Raise RefusedRequest for who may not send.

        Without a token only this machine may, and no page in a browser on it, which reaches the service
        under another host name.
        """
        if not self._token:
            if not is_loopback(_without_port(request.headers.get("host", "localhost"))):
                raise RefusedRequest(
                    421, "without a token the service answers to localhost alone; set a token, and send it"
                )
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(given.strip().encode(), self._token)
        if scheme.lower() != "bearer" or not known:
            headers = {"WWW-Authenticate": "Bearer"}
            raise RefusedRequest(401, "send the header Authorization: Bearer TOKEN", headers)

    async def _done(self, request: Request, work: _Work) -> HttpAnswer:
        limit = self._limits.body_bytes
        encoding = request.headers.get("content-encoding", "")
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                if _declared(request) > limit:
                    raise too_large(limit)
                async for chunk in request.stream():
                    body += chunk
                    self._held += len(chunk)
                    if len(body) > limit:
                        raise too_large(limit)
                    if self._held > self._limits.held_bytes:
                        raise _try_again("too many bodies are here at once")
            return await self._in_thread(lambda: work(unpack(bytes(body), encoding, limit)))
        except TimeoutError:
            headers = {"Connection": "close"}
            raise RefusedRequest(408, "the body did not arrive in time; send it again", headers) from None
        finally:
            self._held -= len(body)

    async def _drain(self, request: Request, until: float) -> None:
        """Read on what is left of a body, without keeping it, so that its client reads the answer."""
        left = self._limits.drained_bytes
        if _declared(request) > left or request.headers.get("expect"):
            return
        with suppress(TimeoutError, RuntimeError):  # too slow; or nothing is left
            async with asyncio.timeout_at(until):
                async for chunk in request.stream():
                    left -= len(chunk)
                    if left < 0:
                        return

    async def _in_thread(self, work: Callable[[], HttpAnswer]) -> HttpAnswer:
        """Return what `work` does in a thread; raises RefusedRequest where the bus fails or is slow."""
        future = asyncio.wrap_future(self._pool.submit(self._reported, work))
        done, _ = await asyncio.wait([future], timeout=self._limits.answer_s)
        if not done:
            self._failing = True
            future.cancel()
            raise _try_again("the events are not stored in time")
        return future.result()

    def _reported(self, work: Callable[[], HttpAnswer]) -> HttpAnswer:
        try:
            answer = work()
        except BusError as error:
            self._failing = True
            self._report(f"the bus takes no events: {describe(error)}")
            raise _try_again("the events cannot be stored now") from error
        self._failing = False
        return answer


def require_packages() -> None:
    """Raise SettingError unless the extra ``serve`` is installed."""
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise SettingError(f"{' and '.join(missing)} missing: pip install 'pytest-tfgrpo[serve]'")


def open_app(service: LoopService) -> Starlette:
    """Return the ASGI application; raises SettingError where the extra ``serve`` is missing."""
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError as error:
        raise SettingError(
            "the service needs starlette; install it with: pip install 'pytest-tfgrpo[serve]'"
        ) from error

    async def refuse(request: Request, error: Exception) -> Response:  # noqa: ARG001 - it is a handler
        assert isinstance(error, HTTPException)
        return _response(_error(error.status_code, error.detail), error.headers or {})

    routes = [Route(path, service.export, methods=["POST"]) for path in EXPORTS]
    routes += [Route(path, service.payloads, methods=["POST"]) for path in PAYLOADS]
    routes += [
        Route("/training/start", service.start_job, methods=["POST"]),
        Route("/training/queue", service.job_queue),
        Route("/training/{job_id}/status", service.job_status),
        Route("/training/{job_id}/cancel", service.cancel_job, methods=["POST"]),
        Route("/models", service.models),
        Route("/metrics", service.metrics),
    ]
    routes += [Route("/healthz", service.health), Route("/openapi.json", service.document)]
    return Starlette(routes=routes, exception_handlers={HTTPException: refuse})


def _response(answer: HttpAnswer, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(answer.body, answer.status, headers, answer.media_type)


def _error(status: int, message: str) -> HttpAnswer:
    return json_answer(status, {"error": message})


def _try_again(message: str) -> RefusedRequest:
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    return RefusedRequest(503, f"{message}; send this again later", headers)


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _declared(request: Request) -> int:
    """Return the length that a request says to have; 0 where it says nothing."""
    length = request.headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else 0


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host
