"""How many bytes an answer may have above the usual limit."""

from __future__ import annotations

TOKEN_BYTES, MOST_BYTES = 512, 64_000_000
"""Of one token with its log-probability, or alone in a stream; of all of an answer."""


def bytes_of_tokens(count: int) -> int:
    """Return what an answer of `count` tokens may need where the server writes on each."""
    return min(TOKEN_BYTES * count, MOST_BYTES)
