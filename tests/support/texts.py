"""Texts that begin alike."""

from itertools import takewhile


def common_start(*texts: str) -> str:
    """Return the longest start that all `texts` share."""
    first = texts[0]
    same = takewhile(lambda n: all(text[n : n + 1] == first[n] for text in texts), range(len(first)))
    return first[: sum(1 for _ in same)]
