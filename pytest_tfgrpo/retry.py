"""When a client sends a request again: the statuses that pass by themselves, and the waits in between."""

from __future__ import annotations

AGAIN = frozenset({408, 425, 429})
"""Below 500: timed out, too early, too many (RFC 9110 15.5.9, RFC 8470 5.2, RFC 6585 4)."""
MODEL = AGAIN | {409}
"""Of model servers, which answer 409 where two requests met; their own clients send such a request again."""
OTLP = frozenset({429, 502, 503, 504})
"""All after which OTLP lets a client send again (opentelemetry.io/docs/specs/otlp, "Failures")."""
NOT_ITS_FAULT = AGAIN | OTLP
"""Nobody could take the request, whatever it holds; another status from 500 on may come of what it holds."""
BUSY = frozenset({429, 503, 529})
"""The server has too much to do: send it less. 529 is that of Anthropic's."""

FIRST_S, MOST_S = 0.5, 30.0


def may_pass(status: int, again: frozenset[int] = AGAIN) -> bool:
    """Return whether the same request may succeed later: from 500 on, and where `again` has the status."""
    return status >= 500 or status in again


def backoff_s(before: int, first_s: float = FIRST_S, most_s: float = MOST_S) -> float:
    """Return how long to wait: `first_s`, doubled for each wait `before`, up to `most_s`."""
    return min(most_s, first_s * 2.0 ** min(before, 60))
