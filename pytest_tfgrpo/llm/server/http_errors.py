"""HTTP errors: whose fault a server's status is, and whether to retry."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.limits.waits import asked_s, wait_s
from pytest_tfgrpo.llm.replies.provider_faults import ProviderFault
from pytest_tfgrpo.llm.replies.response import Malformed, complaint_of, parse_body
from pytest_tfgrpo.llm.server.streamed import asks_for_stream
from pytest_tfgrpo.llm.server.transport import Reply
from pytest_tfgrpo.retry import MODEL, may_pass

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
USED_UP = re.compile(r"insufficient.?(?:quota|balance|credit)|billing|credit balance", re.IGNORECASE)
PASSING = re.compile(r"rate.?limit|too.?many.?requests|overloaded|resource.?exhausted", re.IGNORECASE)
"""Codes of a refusal that passes, whatever its status."""
HARD = re.compile(r"insufficient.?(?:quota|balance|credit)|credit balance", re.IGNORECASE)
"""What no wait helps against."""
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
    stream: bool = False
    """The server answers by stream alone."""
    wait_s: float = 0.0
    """How long it says to wait; 0 where it does not."""


def read_refusal(reply: Reply) -> HttpRefusal:
    """Return what a reply that is no success means."""
    value = _value(reply.body)
    words, code = _words(reply, value)
    status = reply.status
    if 300 <= status < 400:
        target = f" to {reply.location}" if reply.location else ""
        return HttpRefusal("not_found", f"HTTP {status}: redirected{target}; set base_url to it", False, True)
    if status in (400, 403) and PASSING.search(code):
        status = 429
    message = f"HTTP {reply.status}" + (f": {words}" if words else "")
    return _waiting(_refusal(status, words, code, message), reply, value, words)


def read_fault(fault: ProviderFault, reply: Reply) -> HttpRefusal:
    """Return what an error in the body of a success means: what its code would as a status."""
    words, value = str(fault), _value(reply.body)
    if fault.status is None:
        return HttpRefusal("bad_response", f"the answer is not a completion: {words}", False, False)
    message = f"HTTP {reply.status} with an error ({fault.status}) in its body: {words}"
    return _waiting(_refusal(fault.status, words, "", message), reply, value, words)


def _waiting(refusal: HttpRefusal, reply: Reply, value: Json, words: str) -> HttpRefusal:
    """Add how long the server asks to wait; a quota that is there again in a while is not used up."""
    if refusal.code == "rate_limit" and refusal.lasting and asked_s(reply.waits, value, words):
        spent = HARD.search(f"{complaint_of(value)[1]} {words}")
        refusal = refusal if spent else refusal._replace(again=True, lasting=False)
    return refusal._replace(wait_s=wait_s(reply.waits, value, words)) if refusal.again else refusal


def _refusal(status: int, words: str, code: str, message: str) -> HttpRefusal:
    """Return what a status and the words beside it mean."""
    if FILTERED.search(code) or (status in (400, 403) and FILTERED.search(words)):
        return HttpRefusal("content_filter", message, False, False)
    if status == 429 and USED_UP.search(f"{code} {words}"):
        return HttpRefusal("rate_limit", message, False, True)
    if may_pass(status, MODEL):
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
        stream=status in (400, 422) and asks_for_stream(words),
    )


def _value(body: bytes) -> Json:
    """Return the JSON of a body; an error in a list is that error, and what is no JSON is None."""
    try:
        return parse_body(body)
    except Malformed:
        pass
    try:
        value = json.loads(body) if body.lstrip().startswith(b"[") else None
    except (ValueError, RecursionError):
        return None
    return value[0] if isinstance(value, list) and value else None


def _words(reply: Reply, value: Json) -> tuple[str, str]:
    words, code = complaint_of(value)
    if not words:
        words = re.sub(r"<[^<>]{0,500}>", " ", reply.body[:2000].decode("utf-8", "replace"))
    return words, code
