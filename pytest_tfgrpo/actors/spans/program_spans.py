"""Spans that a program sends during one rollout, for the frames that it does not print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_tfgrpo.actors.output import total_max_bytes
from pytest_tfgrpo.actors.spans.span_frames import frames_of_spans
from pytest_tfgrpo.actors.spans.span_receiver import Inbox, SpanReceiver, SpanRequest, open_receiver
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.programs.threads import call_in_daemon
from pytest_tfgrpo.telemetry.traces.registry import read_request
from pytest_tfgrpo.telemetry.traces.span_counts import UNREADABLE_SPAN, SpanCounts

if TYPE_CHECKING:
    from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, TraceSpan

PREFIX = "OTEL_EXPORTER_OTLP_"
OWN = (f"{PREFIX}ENDPOINT", f"{PREFIX}TRACES_ENDPOINT")
"""Variables of a program that has a receiver already, which stays."""

INLINE_BYTES = 200_000
"""More of a rollout is read in a thread, as the rollouts beside it go on meanwhile."""


def wants_receiver(environ: Mapping[str, str]) -> bool:
    """Return whether a program with these variables may send its spans to us."""
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    off = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return exporter in ("", "otlp") and not off and not any(environ.get(name) for name in OWN)


class ProgramSpans:
    """The spans of one rollout's program."""

    def __init__(self, call: ActorCall) -> None:
        self.unused: Counter[str] = Counter()
        """What was not used, by reason."""
        self.wanted = False
        """The program printed no frames, so that those of its spans were looked for."""
        self._made: tuple[Frame, ...] | None = None
        self._run = call.span_counts or SpanCounts()
        self._max_bytes = total_max_bytes(call.answer_max_bytes)
        self._traceparent = call.traceparent
        self._receiver: SpanReceiver | None = None
        self._inbox: Inbox | None = None

    def variables(self, environ: Mapping[str, str], *, reachable: bool) -> dict[str, str]:
        """Return what a program gets beside `environ`: a trace context, and an address for its spans.

        No address where it cannot reach ours, where it has another, or where this run's own spans go to one.
        """
        if self._traceparent is not None:
            return {"TRACEPARENT": self._traceparent()}
        if not (reachable and wants_receiver(environ)):
            return {}
        receiver = open_receiver()
        if not receiver.port:
            return {}
        self._receiver, inbox = receiver, receiver.open(self._run)
        self._inbox = inbox
        return {
            "TRACEPARENT": f"00-{inbox.trace}-{inbox.trace[:16]}-01",
            f"{PREFIX}ENDPOINT": f"http://127.0.0.1:{receiver.port}/{inbox.token}",
            f"{PREFIX}PROTOCOL": "http/protobuf" if _reads_protobuf() else "http/json",
            f"{PREFIX}COMPRESSION": "none",
        }

    async def settle(self) -> None:
        """Wait a little for what the program was just sending when it ended, and read what is large."""
        if self._inbox is not None and self._receiver is not None:
            await self._receiver.settle(self._inbox)
            if self._inbox.size > INLINE_BYTES:
                self._made = await call_in_daemon(self._frames, self._inbox, self._receiver)

    def frames(self) -> tuple[Frame, ...]:
        """Return what the spans until now amount to; later ones are not used."""
        if self._inbox is None or self._receiver is None:
            return ()
        self.wanted = self._run.wanted = True
        if self._made is None:
            self._made = self._frames(self._inbox, self._receiver)
        return self._made

    def _frames(self, inbox: Inbox, receiver: SpanReceiver) -> tuple[Frame, ...]:
        receiver.close(inbox)
        for reason in inbox.refused:
            self._count(reason)
        requests, inbox.requests = inbox.requests, []
        if not requests:
            return ()

        try:
            found = (one for request in requests for one in _read(request, self._count))
            own = (one for one in found if self._is_own(one, receiver, inbox.token))
            return frames_of_spans(own, max_bytes=self._max_bytes, count=self._count)
        except Exception:  # noqa: BLE001 - what a program sends is no fault of its answer
            self._count(UNREADABLE_SPAN)
            return ()

    def close(self) -> None:
        """Take no more."""
        if self._inbox is not None and self._receiver is not None:
            self._receiver.close(self._inbox)

    def _is_own(self, one: TraceSpan | RefusedSpan, receiver: SpanReceiver, token: str) -> bool:
        """Return whether a span is not known to be of another rollout, which is counted."""
        owner = receiver.owner(one.key[0]) if one.key is not None else None
        if owner is None or owner == token:
            return True
        self._count("other_rollout")
        return False

    def _count(self, reason: str) -> None:
        self.unused[reason] += 1
        self._run.count(reason)


def _read(request: SpanRequest, count: Callable[[str], object]) -> list[TraceSpan | RefusedSpan]:
    try:
        return read_request(request.signal, request.body, request.form)
    except SettingError:  # opentelemetry-proto is missing
        count("no_protobuf")
        return []


def _reads_protobuf() -> bool:
    try:
        return find_spec("opentelemetry.proto.collector") is not None
    except ImportError:
        return False
