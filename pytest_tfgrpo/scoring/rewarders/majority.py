"""The majority as reward: without ground truth, an answer counts as right when most of its group gave it.

Zuo et al. 2025, "TTRL: Test-Time Reinforcement Learning". The score is an estimate: a group may agree on what
is wrong.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.scoring.checks.signs import composed, without_colours
from pytest_tfgrpo.scoring.numerals.reader import whole_number

MIN_ANSWERS = 2
"""With fewer, nobody agrees or disagrees: there is no score."""
TAIL = 20_000
"""Characters at the end of an answer that are looked at."""

_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_NUMBER = re.compile(r"-?\d{1,400}(?:\.\d{0,400})?(?:e[-+]?\d{1,3})?", re.ASCII)
"""What is compared as a number; longer ones are texts."""
_WRAPPING = "*_`$ \t"
_ENDING = ".,;:!?。*_`$ \t"


def majority_scores(rollouts: Sequence[Rollout]) -> list[float]:
    """Return the score of each rollout, in order: the rollouts of a group vote on its answer.

    The most frequent answer scores 1, every other 0; k answers that are equally frequent score 1/k each,
    which is what a random choice between them would give, and owes nothing to their order. Rollouts that
    failed or have an empty answer do not vote and score 0. NaN for errors, and where fewer than two answers
    are there.
    """
    answers = [normalised(r.answer) if r.status == "ok" else "" for r in rollouts]
    votes: dict[str, Counter[str]] = {}
    for rollout, answer in zip(rollouts, answers, strict=True):
        count = votes.setdefault(rollout.group_id, Counter())
        if answer:
            count[answer] += 1
    credited = {group_id: _credits(count) for group_id, count in votes.items()}
    return [
        _score(rollout, answer, credited[rollout.group_id])
        for rollout, answer in zip(rollouts, answers, strict=True)
    ]


def _credits(count: Counter[str]) -> dict[str, float] | None:
    """Return the score of each of the most frequent answers; None when too few were given."""
    if count.total() < MIN_ANSWERS:
        return None
    most = max(count.values())
    winners = [answer for answer, votes in count.items() if votes == most]
    return dict.fromkeys(winners, 1.0 / len(winners))


def _score(rollout: Rollout, answer: str, credited: dict[str, float] | None) -> float:
    if rollout.status == "error":
        return math.nan
    if rollout.status == "failed":
        return 0.0
    return math.nan if credited is None else credited.get(answer, 0.0)


def normalised(answer: str) -> str:
    """Return what an answer amounts to: its last ``\\boxed{...}``, else its last line that is not blank.

    Case, white space, emphasis and final punctuation are folded, and numbers are written one way
    (``1,000``, ``1 000`` and ``1000.0`` are ``1000``).
    """
    tail = composed(without_colours(answer[-TAIL:]))
    said = _last_boxed(tail)
    if said is None:
        said = next((line for line in reversed(tail.splitlines()) if line.strip(_ENDING)), "")
    bare = said.strip().lstrip(_WRAPPING).rstrip(_ENDING)
    return _canonical_number(bare) or " ".join(bare.casefold().split())


def _last_boxed(text: str) -> str | None:
    """Return what the last box that is closed holds; braces inside it nest."""
    starts = [match.end() for match in _BOXED.finditer(text)]
    if not starts:
        return None
    # Backwards from the last box, so that one that a cut answer leaves open does not hide the one before.
    limit = len(text)
    for start in reversed(starts):
        depth = 1
        for at in range(start, limit):
            depth += (text[at] == "{") - (text[at] == "}")
            if depth == 0:
                return text[start:at]
        limit = start
    return None


def _canonical_number(text: str) -> str | None:
    plain = whole_number(text)
    if plain is None or not _NUMBER.fullmatch(plain):
        return None
    value = Decimal(plain)
    if value == 0:
        return "0"
    written = f"{value:f}"  # exact, where normalize() would round
    return written.rstrip("0").rstrip(".") if "." in written else written
