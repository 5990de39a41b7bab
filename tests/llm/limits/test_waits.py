"""How long a server asks to wait, however it says so."""

from datetime import UTC, datetime

import pytest

from pytest_tfgrpo.llm.limits.waits import span_s, wait_s

NOW = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("12", 12.0),
        (" 1.5 ", 1.5),
        ("2s", 2.0),
        ("20 seconds", 20.0),
        ("6ms", 0.006),
        ("120 ms", 0.12),
        ("500 milliseconds", 0.5),
        ("1m30s", 90.0),
        ("1m 30.5s", 90.5),
        ("6m0s", 360.0),
        ("1h2m3.5s", 3723.5),
        ("2 minutes", 120.0),
        ("1d", 86400.0),
        ("1792567700", 20.0),
        ("1792567700000", 20.0),
        ("1000000000", 0.0),
        ("2026-10-21T07:28:10Z", 10.0),
        ("2026-10-21T09:28:10+02:00", 10.0),
        ("Wed, 21 Oct 2026 07:28:10 GMT", 10.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("Wed, 21 Oct 2026 09:28:10 +0200", 10.0),
        ("Wed, 21 Oct 2026 07:28:10", 10.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("NaN", None),
        ("1e400", None),
        ("12 months", None),
        ("9" * 5000, None),
        ("1m" * 5000 + "x", None),
        ("Wed, 99 Oct 99999999 07:28:10 GMT", None),
    ],
)
def test_a_span_a_date_or_a_time_is_read(value: str, seconds: float | None) -> None:
    assert span_s(value, now=NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached: limit 30000, used 29000. Please try again in 1.998s.", 1.998),
        ("Please try again in 1m30.5s. Visit the docs.", 90.5),
        ("Please try again in 6ms.", 0.006),
        ("Please retry after 20 seconds", 20.0),
        ("You exceeded your quota. Please retry in 34.07s.", 34.07),
        ("Please wait 30 seconds and try again", 30.0),
        ("Try again later; your 20s of audio were too long", 0.0),
        ("try again" + " " * 100_000 + "20s", 0.0),
        ("It took 20s", 0.0),
    ],
)
def test_a_sentence_may_say_it(words: str, seconds: float) -> None:
    assert wait_s({}, None, words) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "34s"}]}}, 34.0),
        ({"error": {"metadata": {"headers": {"Retry-After": "7"}}}}, 7.0),
        ({"retry_after": 2.5}, 2.5),
        ({"error": {"retry_after_ms": 1500}}, 1.5),
        ({"error": "Model is loading", "estimated_time": 20.5}, 20.5),
        ({"retryDelay": None, "retry_after": {"seconds": 3}}, 0.0),
        ([], 0.0),
    ],
)
def test_a_member_of_the_body_may_say_it(body: object, seconds: float) -> None:
    assert wait_s({}, body, "") == pytest.approx(seconds)


LIMITS = {"x-ratelimit-reset-requests": "120ms", "x-ratelimit-reset-tokens": "6m0s"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"x-ms-retry-after-ms": "2000", "retry-after": "9"}, 2.0),
        ({"x-retry-after": "3", **LIMITS}, 3.0),
        ({"retry-after": "9", **LIMITS}, 9.0),
        (LIMITS, 0.12),
        ({**LIMITS, "x-ratelimit-remaining-requests": "5", "x-ratelimit-remaining-tokens": "0"}, 360.0),
        ({**LIMITS, "x-ratelimit-remaining-requests": "0", "x-ratelimit-remaining-tokens": "0"}, 360.0),
        ({"ratelimit-reset": "4"}, 4.0),
        ({"ratelimit": '"default";r=0;t=3'}, 3.0),
        ({"ratelimit": '"burst";r=5;t=9, "daily"; r=0; t=60'}, 60.0),
        ({"ratelimit": '"burst";r=0;t=9, "daily"; r=0; t=60'}, 60.0),
        ({"ratelimit": '"default";r=5;t=3'}, 0.0),
        ({"anthropic-ratelimit-tokens-reset": "1970-01-01T00:00:00Z"}, 0.0),
        ({"x-ratelimit-reset": "never"}, 0.0),
        ({}, 0.0),
    ],
)
def test_headers_say_it_the_most_exact_one_first(headers: dict[str, str], seconds: float) -> None:
    assert wait_s(headers, None, "") == pytest.approx(seconds)


def test_a_header_counts_before_the_body_and_the_body_before_a_reset() -> None:
    body = {"retry_after": 3}
    assert wait_s({"retry-after": "2"}, body, "try again in 9s") == 2.0
    assert wait_s(LIMITS, body, "try again in 9s") == 3.0
    assert wait_s(LIMITS, None, "try again in 9s") == 9.0
