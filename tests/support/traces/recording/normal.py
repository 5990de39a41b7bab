"""Spans without what differs from recording to recording: ids, times, ports, paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_DROPPED = re.compile(
    r"^(code\.|thread\.|process\.|telemetry\.|host\.|exception\.stacktrace|llm\.tools\.|tool\.parameters"
    r"|gen_ai\.tool\.definitions|server\.|logfire\.json_schema)"
)
"""Attributes of the machine, and descriptions of tools."""
_START_NS, _TICK_NS = 1_767_225_600_000_000_000, 1_000_000
"""Time of the first event, 2026-01-01, and between two that follow each other."""
_RANDOM = re.compile(
    r"(?<![0-9a-zA-Z.])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-zA-Z])"
    r"|(?<![0-9a-zA-Z.])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{16,64}(?![0-9a-zA-Z])"
)
_TRACEBACK = re.compile(r"(Traceback \(most recent call last\):\n)((?:[ \t]+.*\n|\n)+)")
_REWRITES = (
    (re.compile(r"127\.0\.0\.1:\d+|localhost:\d+"), "127.0.0.1:8000"),
    (re.compile(r"0x[0-9a-f]{6,}"), "0x1"),
    (re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(\.\d+)?"), r"2026-01-01\g<1>00:00:00"),
    (re.compile(r"(/[\w.@+-]+)+(?=/(site-packages|lib/python3[\d.]*|tests)/)"), "/path"),
    (re.compile(r"(['\"]duration['\"]: ?|took )\d+\.\d+"), r"\g<1>0.01"),
    (re.compile(r"\b1[789]\d{8}\.\d+"), "1767225600.0"),
    (re.compile(r"\b1[789]\d{8}(\d{3})?\b"), r"1767225600\g<1>"),
)


def normal_spans(lines: Iterable[str], folders: Iterable[Path]) -> list[str]:
    """Return OTLP lines as they would be at another time, in another place.

    `folders` are places of this machine, which no text may name. Times keep their order alone.
    """
    texts = list(lines)
    for at, folder in enumerate(folders):
        texts = [text.replace(str(folder), f"/path-{at}") for text in texts]
    documents = [json.loads(text) for text in texts]
    spans = [span for document in documents for span in _spans(document)]
    times = sorted({int(at) for span in spans for at in _times(span)})
    ticks = {at: str(_START_NS + place * _TICK_NS) for place, at in enumerate(times)}
    ids: dict[str, str] = {}
    for span in sorted(spans, key=lambda span: int(span["startTimeUnixNano"])):
        _number(ids, span["traceId"], len(set(ids.values())) + 1)
        _number(ids, span["spanId"], len(set(ids.values())) + 1)
    for span in spans:
        for key in ("startTimeUnixNano", "endTimeUnixNano"):
            span[key] = ticks[int(span[key])]
        span["attributes"] = _kept(span["attributes"])
        for event in span["events"]:
            event["timeUnixNano"] = ticks[int(event["timeUnixNano"])]
            event["attributes"] = _kept(event["attributes"])
        if not span["events"]:
            del span["events"]
    return [json.dumps(_rewritten(document, ids), ensure_ascii=False) + "\n" for document in documents]


def _number(ids: dict[str, str], found: str, number: int) -> None:
    ids.setdefault(found, f"{number:0{len(found)}x}")


def _spans(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    return (
        span for one in document["resourceSpans"] for scope in one["scopeSpans"] for span in scope["spans"]
    )


def _times(span: dict[str, Any]) -> list[str]:
    events = [event["timeUnixNano"] for event in span["events"]]
    return [span["startTimeUnixNano"], span["endTimeUnixNano"], *events]


def _kept(attributes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [one for one in attributes if not _DROPPED.match(one["key"])]
    for one in kept:
        if "doubleValue" in one["value"] and one["key"].endswith(("duration", "time", "latency")):
            one["value"]["doubleValue"] = 0.01
        if one["key"] == "llm.invocation_parameters":
            given = json.loads(one["value"]["stringValue"])
            given.pop("tools", None)
            one["value"]["stringValue"] = json.dumps(given)
    return kept


def _rewritten(item: Any, ids: dict[str, str]) -> Any:
    match item:
        case str():
            return _text(item, ids)
        case list():
            return [_rewritten(one, ids) for one in item]
        case dict():
            return {
                key: one if key.endswith("UnixNano") else _rewritten(one, ids) for key, one in item.items()
            }
    return item


def _text(text: str, ids: dict[str, str]) -> str:
    if text in ids:
        return ids[text]
    text = _TRACEBACK.sub(_without_frames, text)
    for pattern, instead in _REWRITES:
        text = pattern.sub(instead, text)
    return _RANDOM.sub(lambda found: _numbered(found[0], ids), text)


def _without_frames(found: re.Match[str]) -> str:
    """Return a traceback with its last frame alone."""
    frames = re.split(r"^(?=  File )", found[2], flags=re.MULTILINE)
    return found[1] + frames[-1]


def _numbered(found: str, ids: dict[str, str]) -> str:
    if found not in ids:
        number = f"{len(ids) + 1:032x}"
        digits = number[-len(found.replace("-", "")) :].rjust(len(found.replace("-", "")), "0")
        parts = iter(digits)
        ids[found] = "".join(char if char == "-" else next(parts) for char in found)
        ids.setdefault(ids[found], ids[found])
    return ids[found]
