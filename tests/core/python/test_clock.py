"""Times as records carry them."""

import time

import pytest

from pytest_tfgrpo.core.python.clock import elapsed_ms, utc_now, utc_time


def test_what_has_passed_is_in_milliseconds() -> None:
    assert 1500 <= elapsed_ms(time.perf_counter() - 1.5) < 60_000


def test_a_time_ago_is_so_much_before_now() -> None:
    hour_ago, now = utc_now(ago_ms=3_600_000), utc_now()
    assert hour_ago < now
    assert hour_ago[-1] == now[-1] == "Z"
    assert len(now) == len("2026-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2026-01-01T01:00:00.1239+01:00", "2026-01-01T00:00:00.123Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T00:00:00", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("yesterday", None),
        (1, None),
        (None, None),
    ],
)
def test_a_time_with_a_zone_is_written_as_ours(text: object, found: str | None) -> None:
    assert utc_time(text) == found
