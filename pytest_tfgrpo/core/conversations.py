"""Conversations: the turns of a rollout, read from its frames, which say who spoke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pytest_tfgrpo.core.python.dataclass import dataclass

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Frame

USER: Literal["user"] = "user"
"""Kind of the frames that hold what the user says."""
SHOWN_MAX, SAID_MAX = 24_000, 20_000
"""Characters of an answer that a simulated user reads, and of a message that it may say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One message of the user and what the agent made of it."""

    number: int
    """From 1."""
    user: str
    answer: str
    """The agent's answer to it; empty where the rollout ended without."""
    frames: tuple[Frame, ...]
    """The agent's calls in this turn."""


def without_repeats(frames: Sequence[Frame]) -> Iterator[Frame]:
    """Yield frames for a reader: where the step before shows the answer, the user's frame does not."""
    before: Frame | None = None
    for frame in frames:
        repeats = frame.kind == USER and before is not None and before.output == frame.input
        yield replace(frame, input=None) if repeats else frame
        before = frame


def turns_of(frames: Sequence[Frame], answer: str) -> tuple[Turn, ...]:
    """Return the turns of a rollout, whose last answer is `answer`; none where it was no conversation."""
    starts = [place for place, frame in enumerate(frames) if frame.kind == USER]
    if not starts:
        return ()
    found = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(frames)], strict=True), 1):
        said = answer if end == len(frames) else frames[end].input
        found.append(
            Turn(
                number=number,
                user=frames[start].output,
                answer=said if isinstance(said, str) else "",
                frames=tuple(frames[start + 1 : end]),
            )
        )
    return tuple(found)
