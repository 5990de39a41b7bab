"""Results of a batch: the lines of its files, matched with the calls; hostile until checked."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.replies.response import Malformed, parse_body
from pytest_tfgrpo.llm.server.transport import Reply

UNMADE = frozenset({"batch_expired", "batch_cancelled"})
"""Error codes of calls that a batch ended without; nobody pays for them."""


@dataclass(slots=True)
class BatchResults:
    """What a batch came to."""

    replies: dict[str, Reply] = field(default_factory=dict)
    """By key of the call; the first where there are several."""
    unmade: set[str] = field(default_factory=set)
    """Keys of calls that the server says were not made; a reply that another line has counts more."""
    odd: Counter[str] = field(default_factory=Counter)
    """Lines that nobody uses, by what is wrong with them."""


def read_results(files: Iterable[bytes], keys: Collection[str]) -> BatchResults:
    """Return what the `files` of a batch say of the calls `keys`, in whatever order."""
    results = BatchResults()
    for file in files:
        for line in io.BytesIO(file):
            if line.strip():
                _take(line, keys, results)
    return results


def _take(line: bytes, keys: Collection[str], results: BatchResults) -> None:
    try:
        value = parse_body(line, lenient=True)
        key = value.get("custom_id")
        if not isinstance(key, str) or key not in keys:
            results.odd["for calls that were not in them"] += 1
            return
        reply = _reply(value)
    except (Malformed, ValueError, RecursionError):
        results.odd["not readable"] += 1
        return
    if reply is None:
        results.unmade.add(key)
    elif key in results.replies:
        results.odd["given twice"] += 1
    else:
        results.replies[key] = reply


def _reply(value: Mapping[str, Json]) -> Reply | None:
    """Return the reply that a line holds, None where the call was not made; raises ValueError."""
    response, error = value.get("response"), value.get("error")
    if isinstance(response, dict):
        status, body = response.get("status_code"), response.get("body")
        if type(status) is not int or not 100 <= status <= 599 or not isinstance(body, dict | None):
            raise ValueError("no response")
        return Reply(status, json.dumps(body or {}).encode(), False, {}, "")
    if not isinstance(error, dict):
        raise ValueError("neither response nor error")
    if error.get("code") in UNMADE:
        return None
    return Reply(500, json.dumps({"error": error}).encode(), False, {}, "")
