"""Votes: what a judge's reply decides for each criterion, and how several votes combine."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from math import fsum
from typing import TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import JudgeResult
from pytest_tfgrpo.core.scenarios import Criterion, criterion_names
from pytest_tfgrpo.core.texts.fences import fences
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.strict import unique
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.replies.thoughts import part_thoughts
from pytest_tfgrpo.scoring.judge.prompt import key_of
from pytest_tfgrpo.scoring.judge.vote_lines import REFUSAL, decided, has_vote, vote_in_lines

WHY_MAX = 240
"""Characters of a judge's words on one criterion that are kept."""
REASON_MAX = 4_000
LANGUAGES = ("", "json", "jsonc", "json5")
TICKED = re.compile(r"`\s*\{[^`]*\}\s*`")


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The decision of one vote on one criterion."""

    met: bool
    why: str


Vote: TypeAlias = tuple[Decision, ...]
"""A decision on each criterion, in the order of the rubric."""


def read_vote(text: str, count: int, judged: Callable[[], Iterable[str]] = tuple) -> Vote:
    """Return the vote on `count` criteria that a reply is; raises ValueError saying what is wrong with it.

    After thoughts, the whole reply may be the object, or be ticks or a fence around it, also one that is open
    at the end, as the object shows that it is whole. There may be words on one side
    of a fence, and a vote may stand in lines of text, unless what is `judged` has a vote, too: then these
    forms may quote that one.
    """
    parted = part_thoughts(text)
    body = parted.answer.strip(" \t\r\n\ufeff\u200b")
    blocks = fences(body)
    fence = blocks[0] if len(blocks) == 1 and blocks[0].language in LANGUAGES else None
    lines = body.count("\n")
    if fence is not None and (fence.first, fence.last) == (0, lines) and body[:1] in "`~":
        return _of_object(fence.text, count)
    if TICKED.fullmatch(body):
        return _of_object(body[1:-1], count)
    if body[:1] in ("{", "["):
        return _of_object(body, count)
    vote: Vote | None = None
    if fence is not None and fence.closed and (fence.first == 0 or fence.last == lines):
        rows = body.split("\n")
        if refusal := REFUSAL.search("\n".join(rows[: fence.first + 1] + rows[fence.last + 1 :])):
            raise ValueError(f"it is not JSON alone, and says {refusal[0]!r}")
        vote = _of_object(fence.text, count)
    elif not blocks and (said := vote_in_lines(body, count)):
        vote = tuple(Decision(met=met, why=line(why, WHY_MAX)) for met, why in said)
    if vote is None:
        raise ValueError("it is not JSON" + (", its thoughts never end" if parted.unclosed else ""))
    if any(map(has_vote, judged())):
        raise ValueError("it is not JSON alone, and may quote a vote that is in what is judged")
    return vote


def _of_object(text: str, count: int) -> Vote:
    try:
        value = json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"it is no JSON object, but {short(value)}")
    keys = [key_of(place) for place in range(count)]
    found: dict[str, Json] = {}
    for key, decision in value.items():
        own = unicodedata.normalize("NFKC", key).strip().lower()
        if own not in keys:
            raise ValueError(f"there is no criterion {short(key)}; the keys are {', '.join(keys)}")
        if own in found:
            raise ValueError(f"{own} occurs twice")
        found[own] = decision
    return tuple(_decision(key, found.get(key)) for key in keys)


def _decision(key: str, value: Json) -> Decision:
    if value is None:
        raise ValueError(f"{key} is missing")
    if isinstance(value, dict):
        named = [name for name in value if unicodedata.normalize("NFKC", name).strip().lower() == "met"]
        if len(named) > 1:
            raise ValueError(f"{key} has met twice: {short(named)}")
    given = value.get("met") if isinstance(value, dict) else value
    met = decided(given) if isinstance(given, str) else given if isinstance(given, bool) else None
    if met is None:
        raise ValueError(f"{key} must be an object with met, true or false, not {short(value)}")
    why = value.get("why", "") if isinstance(value, dict) else ""
    return Decision(met=met, why=line(why, WHY_MAX) if isinstance(why, str) else "")


def tally(rubric: Sequence[Criterion], votes: Sequence[Vote], void: Sequence[str], asked: int) -> JudgeResult:
    """Return the combined result of valid `votes`; `void` has the reasons why others are invalid.

    Without a majority of the `asked` votes there is no result.
    """
    if 2 * len(votes) <= asked:
        told = "; ".join(dict.fromkeys(void))
        reason = f"{len(votes)} of {asked} votes are valid: {told}"
        return JudgeResult(
            score=None, votes=_scores(rubric, votes), asked=asked, agreement=None, reason=reason[:REASON_MAX]
        )
    scores = _scores(rubric, votes)
    reason = "; ".join(_said(place, votes) for place in range(len(rubric)))
    return JudgeResult(
        score=fsum(scores) / len(scores),
        votes=scores,
        asked=asked,
        agreement=_agreement(votes),
        reason=reason[:REASON_MAX],
        criteria={
            name: sum(vote[place].met for vote in votes) / len(votes)
            for place, name in enumerate(criterion_names(rubric))
        },
    )


def _scores(rubric: Sequence[Criterion], votes: Sequence[Vote]) -> tuple[float, ...]:
    """Return the weighted share of criteria that each vote calls met; exactly 1 when it is all of them."""
    planned = sum(criterion.weight for criterion in rubric)
    return tuple(
        sum(criterion.weight for criterion, decision in zip(rubric, vote, strict=True) if decision.met)
        / planned
        for vote in votes
    )


def _agreement(votes: Sequence[Vote]) -> float | None:
    """Return the share of pairs of votes that decide alike, as a mean over the criteria."""
    n = len(votes)
    if n < 2:
        return None
    shares = []
    for decisions in zip(*votes, strict=True):
        met = sum(decision.met for decision in decisions)
        shares.append((met * (met - 1) + (n - met) * (n - met - 1)) / (n * (n - 1)))
    return fsum(shares) / len(shares)


def _said(place: int, votes: Sequence[Vote]) -> str:
    """Return the majority decision on a criterion, with the reason of its first vote; a tie is not met."""
    decisions = [vote[place] for vote in votes]
    met = sum(decision.met for decision in decisions)
    most = 2 * met > len(decisions)
    count = met if most else len(decisions) - met
    why = next(decision.why for decision in decisions if decision.met is most)
    return f"{key_of(place)} {'met' if most else 'not met'} ({count} of {len(decisions)}): {why}"
