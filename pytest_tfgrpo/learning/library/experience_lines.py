"""Lines of the lesson store: their form, and when one is refused (decisions 14, 15, 17).

A line is a JSON object with the keys of the record in snake_case. What the store itself writes is in one
canonical form, which a single pattern checks whole; any other valid spelling of a record is read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from pytest_tfgrpo.core.lessons import Experience, Reward, Support, Tombstone, ToolStat
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire

MAX_WORDS = 32
MAX_CHARS = 600
"""Of a new lesson: its words alone would not bound it."""
MAX_NUMBER = 1e15

StoredRecord: TypeAlias = Experience | Tombstone

_ID = r"[A-Za-z0-9._-]{1,128}"
_STAMP = r"[0-9a-f]{64}"
_TIME = r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00))?"
_TEXT = r'[ !#-\[\]-~]*+(?:\\(?:["\\/bfnrt]|u[0-9a-f]{4})[ !#-\[\]-~]*+)*+'
_WHOLE = r"(?:0|[1-9]\d{0,14}|10{15})"
_REAL = r"(?:-0\.0|(?:0|[1-9]\d{0,14})(?:\.\d{1,22})?(?:e-\d{1,3})?|10{15}\.0)"
_STAT = rf'\{{"tool":"{_TEXT}","tokens":{_WHOLE},"latency_ms":{_REAL},"cost_usd":(?:{_REAL}|null)\}}'
_EXPERIENCE = (
    rf'\{{"id":"({_ID})","run_id":"{_TEXT}","task_id":"{_TEXT}","domain":"({_TEXT})",'
    rf'"prompt_pack_id":"{_TEXT}","epoch":{_WHOLE},"group_id":"{_TEXT}","summary32":"({_TEXT})",'
    rf'"polarity":"(?:do|avoid)","reward":\{{"(?:gt_score|total_reward)":({_REAL}),"relative_rank":({_REAL})\}},'
    rf'"support":\{{"groups":{_WHOLE},"rollouts":{_WHOLE}\}},"tool_stats":\[(?:{_STAT}(?:,{_STAT})*+)?\],'
    rf'"stamp_signature":"{_STAMP}","actor":"{_TEXT}","parents":\[(?:"{_ID}"(?:,"{_ID}")*+)?\],'
    rf'"created_at":"{_TIME}","manifest_path":"{_TEXT}"\}}'
)
_IS_ID = re.compile(_ID)
_IS_STAMP = re.compile(_STAMP)
_IS_TIME = re.compile(_TIME)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def encode(record: StoredRecord) -> bytes:
    """Return the line of `record`, without the line end; raises ValueError on a non-finite number."""
    value = to_wire(record)
    if isinstance(record, Tombstone):
        value = {"tombstone": True, **value}
    try:
        return _ENCODER.encode(value).encode("ascii")
    except ValueError:
        check(record)  # names the number that is not finite
        raise


@cache
def _experience() -> re.Pattern[bytes]:
    """Return the pattern of a line as `encode` writes it; compiling it takes 8 ms, and few starts need it."""
    return re.compile(_EXPERIENCE.encode())


def read_line(line: bytes) -> str | Tombstone:
    """Return the id of the experience on a line, or its tombstone; raises ValueError saying what is wrong."""
    match = _experience().fullmatch(line)
    if match is None:
        record = _parse(line)
        if isinstance(record, Tombstone):
            return record
        match = _experience().fullmatch(encode(record))
        if match is None:
            raise ValueError("not an experience: a number or an identifier is out of range")
    id_, domain, summary, reward, relative_rank = match.groups()
    words = len((json.loads(b'"%b"' % summary) if b"\\" in summary else summary).split())
    if not (domain and float(reward) <= 1 and float(relative_rank) <= 1 and 1 <= words <= MAX_WORDS):
        check(load(line))
    return id_.decode()


def read_record(data: Json) -> StoredRecord:
    """Return the record that the JSON object `data` describes.

    Raises ValueError on an unknown or missing key, a wrong type, a non-finite or negative number, a lesson
    over the word cap and a record without stamp.
    """
    if isinstance(data, Mapping) and "tombstone" in data:
        if data["tombstone"] is not True:
            raise ValueError(f"tombstone: expected true, got {data['tombstone']!r}")
        tombstone = from_wire(Tombstone, {k: v for k, v in data.items() if k != "tombstone"})
        check(tombstone)
        return tombstone
    experience = from_wire(Experience, data)
    check(experience)
    return experience


def check(record: StoredRecord, max_words: int = MAX_WORDS) -> None:
    """Raise ValueError saying why `record` must not be stored, if it must not (decision 14)."""
    if not _IS_ID.fullmatch(record.id):
        raise ValueError(f"id {record.id!r} must match {_ID}")
    if not _IS_TIME.fullmatch(record.created_at):
        raise ValueError(
            f"created_at {record.created_at!r} must be ISO 8601 in UTC, such as 2026-01-31T12:00:00Z"
        )
    if isinstance(record, Tombstone):
        numbers: dict[str, float] = {"epoch": record.epoch}
    else:
        _check_lesson(record, max_words)
        numbers = _numbers(record)
    for name, number in numbers.items():
        if not 0 <= number <= MAX_NUMBER:  # also false for NaN
            raise ValueError(f"{name} must be finite and between 0 and {MAX_NUMBER:g}, not {number!r}")


def load(line: bytes) -> Experience:
    """Return the experience of a line that `read_line` accepted."""
    data = json.loads(line)
    data["reward"] = Reward(**{name: float(value) for name, value in data["reward"].items()})
    data["support"] = Support(**data["support"])
    data["tool_stats"] = tuple(_stat(**stat) for stat in data["tool_stats"])
    data["parents"] = tuple(data.get("parents", ()))
    return Experience(**data)


def _stat(tool: str, tokens: int, latency_ms: float, cost_usd: float | None) -> ToolStat:
    cost = None if cost_usd is None else float(cost_usd)
    return ToolStat(tool=tool, tokens=tokens, latency_ms=float(latency_ms), cost_usd=cost)


def _parse(line: bytes) -> StoredRecord:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    try:
        return read_record(data)
    except OverflowError as error:
        raise ValueError(f"a number is out of range: {error}") from None


def _check_lesson(record: Experience, max_words: int) -> None:
    count = len(record.summary32.split())
    if not 1 <= count <= max_words:
        raise ValueError(f"summary32 has {count} words; a lesson has 1 to {max_words}")
    if not _IS_STAMP.fullmatch(record.stamp_signature):
        raise ValueError(f"stamp_signature {record.stamp_signature!r} is not the stamp of a prompt pack")
    if not record.domain:
        raise ValueError("domain must not be empty")
    if record.polarity not in ("do", "avoid"):
        raise ValueError(f"polarity must be do or avoid, not {record.polarity!r}")
    for parent in record.parents:
        if not _IS_ID.fullmatch(parent):
            raise ValueError(f"parent id {parent!r} must match {_ID}")
    reward = record.reward
    for name, value in ((reward.quantity, reward.value), ("relative_rank", reward.relative_rank)):
        if not 0 <= value <= 1:
            raise ValueError(f"reward: {name} must lie between 0 and 1, not {value!r}")


def _numbers(record: Experience) -> dict[str, float]:
    numbers: dict[str, float] = {
        "epoch": record.epoch,
        "support: groups": record.support.groups,
        "support: rollouts": record.support.rollouts,
    }
    for stat in record.tool_stats:
        numbers[f"tool_stats: tokens of {stat.tool!r}"] = stat.tokens
        numbers[f"tool_stats: latency_ms of {stat.tool!r}"] = stat.latency_ms
        if stat.cost_usd is not None:
            numbers[f"tool_stats: cost_usd of {stat.tool!r}"] = stat.cost_usd
    return numbers
