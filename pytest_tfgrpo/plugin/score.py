"""``tfgrpo.score``: partial credit from inside a marked test function."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Declared:
    """The score that the running test function has set, if any."""

    score: float | None = None
    reason: str = ""


# pytest runs one test at a time in a process, but a test may call `score` from a thread or from an event loop
# that was started before the test: a context variable would not reach there.
_running: list[Declared] = []


def score(value: float, reason: str = "") -> None:
    """Set the score of the current rollout, in [0, 1]; the last call counts, pass or fail.

    Raises ValueError for a value outside [0, 1] and RuntimeError outside a test marked with ``tfgrpo``.
    """
    if not _running:
        raise RuntimeError("score() was called outside a test function marked with `tfgrpo`")
    if not (isinstance(value, int | float) and 0 <= value <= 1):
        raise ValueError(f"a score must be a number between 0 and 1, not {value!r}")
    _running[-1].score = float(value)
    _running[-1].reason = str(reason)


def begin() -> Declared:
    """Start listening for a score."""
    declared = Declared()
    _running.append(declared)
    return declared


def end() -> None:
    """Stop listening."""
    _running.pop()
