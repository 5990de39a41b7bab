"""What is done with the body of a request, in a thread: read, pass through the door, answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.service.answers import (
    HttpAnswer,
    json_answer,
    otlp_answer,
    otlp_status,
)
from pytest_tfgrpo.production.service.bodies import RefusedRequest
from pytest_tfgrpo.telemetry.traces.otlp.otlp import UNDECODABLE, OtlpForm
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, TraceSpan

MOST_REFUSED = 1000
"""Spans of one request that become dead letters; the others are only counted."""
_SHOWN = 5
"""Reasons that an answer names."""


class ReadOtlp(Protocol):
    """Reads an export request."""

    def __call__(self, body: bytes, *, form: OtlpForm, place: str) -> list[TraceSpan | RefusedSpan]: ...


def take_export(intake: Intake, read: ReadOtlp, body: bytes, *, form: OtlpForm, items: str) -> HttpAnswer:
    """Take an OTLP export request and return the answer; `items` is ``Spans`` or ``LogRecords``."""
    found = read(body, form=form, place="otlp")
    refused = [one for one in found if isinstance(one, RefusedSpan)]
    if len(refused) > MOST_REFUSED:
        kept = set(map(id, refused[:MOST_REFUSED]))
        found = [one for one in found if isinstance(one, TraceSpan) or id(one) in kept]
    taken = intake.spans(found)
    if refused and refused[0].reason in UNDECODABLE:
        return otlp_status(form, 400, f"the body is no export request of OTLP: {refused[0].reason.value}")
    rejected = len(taken.refused) + max(0, len(refused) - MOST_REFUSED)
    reasons = list(dict.fromkeys(one.message for one in taken.refused.values()))
    return otlp_answer(form, items, rejected, "; ".join(reasons[:_SHOWN]))


def take_payloads(intake: Intake, subject: str, body: bytes, *, most: int) -> HttpAnswer:
    """Take one payload, or an array of at most `most`, and return the answer; raises RefusedRequest.

    An array is answered with 200 whatever of it is refused: a client that sends it again because of another
    status would send again what is stored.
    """
    found, failure = _payloads(body)
    if len(found) > most:
        raise RefusedRequest(413, f"the array has {len(found):,} payloads; send {most:,} at once at most")
    taken = intake.payloads(subject, found)
    refused = [
        {"index": index, "code": str(one.fault), "pointer": one.pointer, "message": one.message}
        for index, one in taken.refused.items()
    ]
    value = {"accepted": taken.accepted, "opted_out": taken.opted_out, "refused": refused}
    return json_answer(failure if refused else 200, value)


def _payloads(body: bytes) -> tuple[Sequence[Json | bytes], int]:
    """Return the payloads of a body, or the body where it is no JSON, and the status if one is refused."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return [body], 400
    return (value, 200) if isinstance(value, list) else ([value], 422)
