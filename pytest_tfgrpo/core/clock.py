"""The wall clock, as records carry it."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> str:
    """Return the time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def elapsed_ms(started: float) -> float:
    """Return the milliseconds since `started`, a reading of ``time.perf_counter``."""
    return round((time.perf_counter() - started) * 1000, 3)
