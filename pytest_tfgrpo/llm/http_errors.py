"""HTTP errors: whose fault a server's status is, and whether to retry."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from pytest_tfgrpo.llm.response import Malformed, complaint_of, parse_body
from pytest_tfgrpo.llm.transport import Reply

AGAIN = frozenset({408, 409, 425, 429})
"""Besides 5xx: statuses after which the same request may succeed."""
CODES = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "not_found",
    405: "not_found",
    408: "server",
    409: "server",
    425: "server",
    429: "rate_limit",
}
FILTERED = re.compile(r"content.?(?:filter|policy|management)|moderation|flagged", re.IGNORECASE)
USED_UP = re.compile(r"insufficient_quota|billing|credit balance", re.IGNORECASE)
FORM = re.compile(r"response_format|json[ _]schema|json_object|grammar|structured", re.IGNORECASE)
HINTS = (
    (re.compile(r"max_completion_tokens"), "max_tokens_field: max_completion_tokens"),
    (re.compile(r"temperature"), "temperature: false"),
    (re.compile(r"response_format|json[ _]schema", re.IGNORECASE), "structured: json_object or none"),
    (re.compile(r"\bseed\b"), "seed: false"),
    (re.compile(r"logprobs"), "logprobs: off"),
    (re.compile(r"system role|role.{0,20}system|alternate", re.IGNORECASE), "system_role: user"),
)
"""Words of a server that refuses a part of the protocol, and the line of an endpoint that leaves it out."""


class HttpRefusal(NamedTuple):
    """Why a server gave no completion."""

    code: str
    """Of the ModelError."""
    message: str
    again: bool
    """The same request may succeed later."""
    lasting: bool
    """Every request will be refused."""
    form: bool = False
    """It may be the demand for a form of the answer that the server refuses."""


def read_refusal(reply: Reply) -> HttpRefusal:
    """Return what a reply that is no success means."""
    words, code = _words(reply)
    status = reply.status
    message = f"HTTP {status}" + (f": {words}" if words else "")
    if 300 <= status < 400:
        target = f" to {reply.location}" if reply.location else ""
        return HttpRefusal("not_found", f"HTTP {status}: redirected{target}; set base_url to it", False, True)
    if FILTERED.search(code) or (status in (400, 403) and FILTERED.search(words)):
        return HttpRefusal("content_filter", message, False, False)
    if status == 429 and USED_UP.search(f"{code} {words}"):
        return HttpRefusal("rate_limit", message, False, True)
    if status in AGAIN or status >= 500:
        return HttpRefusal(CODES.get(status, "server"), message, True, False, form=status in (500, 501))
    hint = ""
    if status in (400, 422):
        hint = next((f"; try '{line}' for this endpoint" for said, line in HINTS if said.search(words)), "")
    elif status in (404, 405):
        hint = "; check the name of the model, and the base URL, which usually ends in /v1"
    return HttpRefusal(
        CODES.get(status, "rejected"),
        message + hint,
        False,
        status in (401, 402, 403, 404, 405),
        form=status in (400, 422) and FORM.search(words) is not None,
    )


def _words(reply: Reply) -> tuple[str, str]:
    try:
        words, code = complaint_of(parse_body(reply.body))
    except Malformed:
        words, code = "", ""
    if not words:
        words = re.sub(r"<[^<>]{0,500}>", " ", reply.body[:2000].decode("utf-8", "replace"))
    return words, code


def retry_after_s(value: str, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for (a number, or an HTTP date); None: nothing."""
    if re.fullmatch(r"\s*[0-9]{1,9}(?:\.[0-9]{1,9})?\s*", value):
        return float(value)
    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
