"""Provider faults: errors that a server reports within a reply that its status calls a success."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json

BROKEN = frozenset(
    {
        *("error", "errored", "failed", "abort", "aborted", "cancelled", "canceled", "timeout", "overloaded"),
        *("network_error", "server_error", "internal_error", "internal_server_error", "upstream_error"),
        *("insufficient_system_resource", "service_unavailable", "rate_limit", "load_shed", "preempted"),
        *("engine_overloaded", "other"),
    }
)
"""Reasons to finish of a provider that gave up, as OpenRouter, DeepSeek, GLM, SGLang, Gemini write them."""
MINIMAX: Mapping[str, int] = {
    **dict.fromkeys(("1002", "1039", "1041", "2045", "2056"), 429),
    **dict.fromkeys(("1004", "2049"), 401),
    "1001": 504,
    "1008": 402,
    **dict.fromkeys(("1026", "1027"), 403),
    **dict.fromkeys(("1042", "2013"), 400),
}
"""What codes of MiniMax stand for; any other is a fault of its servers."""
STATUSES: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(words, re.IGNORECASE), status)
    for words, status in (
        (r"insufficient.?(?:quota|balance|credit)|billing|credit.?balance|quota.?exceeded", 429),
        (r"rate.?limit|too.?many.?requests|resource.?exhausted|throttl|tokens?.per.minute", 429),
        (r"overload|over.?capacity|at.capacity|unavailable|try.again|temporar|busy|loading|load.?shed", 503),
        (r"content.?(?:filter|policy|management)|moderation|flagged", 403),
        (r"unauthori[sz]ed|authenticat|api.?key|permission|forbidden|access.?denied", 401),
        (r"model.?not.?found|not_found|no such model|does not exist", 404),
        (r"time.?out|timed.out|deadline.?exceeded", 504),
        (r"invalid.?(?:request|argument|param)|bad.?request|context.?length|unsupported", 400),
        (r"server.?error|internal|upstream|bad.?gateway|provider|api_error|connection", 502),
    )
)
"""What words of an error mean as a status; the first that fits."""
WELL = frozenset({"", "0", "200", "ok", "success", "none", "null"})
"""Codes that are no error."""


class ProviderFault(ValueError):
    """An error in the body of a reply; `status` is the one that it stands for, None where nothing says so."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


def fault_in(body: Mapping[str, Json]) -> ProviderFault | None:
    """Return the error that a completion reports beside, in or instead of its choices."""
    for where, error in _errors(body):
        if _is_error(error):
            message, codes = _said(error)
            status = _status(codes, message)
            said = message or " ".join(codes) or short(error, 80)
            return ProviderFault(f"{where}: {said}" + (f" ({codes[0]})" if message and codes else ""), status)
    return None


def broken_off(choice: Mapping[str, Json]) -> ProviderFault | None:
    """Return the fault that a choice's reason to finish stands for, also the one that a router translated."""
    for key in ("finish_reason", "native_finish_reason"):
        reason = choice.get(key)
        if isinstance(reason, str) and _flat(reason) in BROKEN:
            status = _status([reason], "") or 502
            return ProviderFault(f"the provider broke off: {key} {short(reason, 40)}", status)
    return None


def _errors(body: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield where a body may hold an error, and what is there."""
    yield "error", body.get("error")
    yield "base_resp", _of_minimax(body.get("base_resp"))
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        yield "choices[0].error", choices[0].get("error")
        message = choices[0].get("message")
        if isinstance(message, dict):
            yield "message.error", message.get("error")
        return
    errors = body.get("errors")
    yield "errors", errors[0] if isinstance(errors, list) and errors else errors
    if body.get("object") == "error" or body.get("type") == "error" or _has_code(body):
        yield "error", dict(body)


def _of_minimax(value: Json) -> Json:
    """Return the error in a ``base_resp``, None where its code says that all is well."""
    code = value.get("status_code") if isinstance(value, dict) else None
    if not isinstance(code, str | int) or _flat(str(code)) in WELL:
        return None
    status = MINIMAX.get(str(code), 502)
    words = f"{'content filter: ' if status == 403 else ''}{short(value.get('status_msg'), 500)}"
    return {"code": code, "status": status, "message": words}


def _has_code(body: Mapping[str, Json]) -> bool:
    """Return whether a body without choices is an error that stands by itself."""
    words = (body.get(key) for key in ("message", "msg", "detail"))
    return "code" in body and any(isinstance(text, str) and text for text in words)


def _is_error(error: Json) -> bool:
    """Return whether a member ``error`` is one: some servers send an empty one with each reply."""
    if isinstance(error, dict):
        codes = [code for code in _codes(error) if _flat(code) not in WELL]
        return bool(codes or _message(error))
    return error is True or (isinstance(error, str) and _flat(error) not in WELL)


def _said(error: Json) -> tuple[str, list[str]]:
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else ""), []
    codes = [code for code in _codes(error) if _flat(code) not in WELL]
    message, more = _message(error), error.get("metadata")
    raw = more.get("raw") if isinstance(more, dict) else None
    if raw:
        raw = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
        message = f"{message}: {raw[:500]}" if message else raw[:500]
    return message, codes


def _message(error: Mapping[str, Json]) -> str:
    for key in ("message", "msg", "detail", "error"):
        value = error.get(key)
        if isinstance(value, str) and value and _flat(value) not in WELL:
            return value
        if isinstance(value, dict | list) and value:
            return json.dumps(value, ensure_ascii=False)[:2000]
    return ""


def _codes(error: Mapping[str, Json]) -> list[str]:
    """Return the codes of an error, numbers first: a number says more about what to do than a type."""
    found = [error.get(key) for key in ("code", "status", "status_code", "http_status", "type")]
    texts = [str(code) for code in found if isinstance(code, str) or type(code) is int]
    return sorted(texts, key=lambda code: not code.isdecimal())


def _status(codes: list[str], message: str) -> int | None:
    for code in codes:
        if code.isdecimal() and len(code) == 3 and 400 <= int(code) <= 599:
            return int(code)
    for text in (*codes, message[:2_000]):
        for words, status in STATUSES:
            if words.search(text):
                return status
    return None


def _flat(text: str) -> str:
    return text.strip().lower().replace("-", "_").replace(" ", "_")
