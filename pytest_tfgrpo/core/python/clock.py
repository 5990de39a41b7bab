"""The wall clock, as records carry it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


def utc_now(*, ago_ms: float = 0.0) -> str:
    """Return the time, or that of `ago_ms` ago, as ISO 8601 in UTC, to the millisecond."""
    now = datetime.now(UTC)
    return _utc(now - timedelta(milliseconds=ago_ms) if ago_ms else now)


def utc_time(text: object) -> str | None:
    """Return a time with a zone as `utc_now` writes it; None for what is not ISO 8601, or has no zone."""
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
        return None if time is None or time.tzinfo is None else _utc(time.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def _utc(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def elapsed_ms(started: float) -> float:
    """Return the milliseconds since `started`, a reading of ``time.perf_counter``."""
    return round((time.perf_counter() - started) * 1000, 3)
