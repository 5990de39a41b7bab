"""Canaries: tests of random names beside those of a project, which show whether the runner was changed."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome

VOWELS, CONSONANTS = "aeiou", "bdfklmnprstv"


@dataclass(frozen=True, kw_only=True, slots=True)
class Canary:
    """The tests of one file."""

    path: str
    """Where it is written, relative to the tree."""
    text: str
    pairs: tuple[tuple[str, str], ...]
    """Words in the names of two tests each: one that must pass, one that must fail."""


def random_word() -> str:
    """Return a word that no program can know beforehand, of the shape of a person's."""
    return "".join(secrets.choice(CONSONANTS) + secrets.choice(VOWELS) for _ in range(6))


def judged(canaries: Iterable[Canary], outcomes: Mapping[str, CaseOutcome]) -> str:
    """Return what is wrong with the outcomes of canaries, nothing if they are as they must be.

    One that must fail never passes. Of one pair at least both end as they must: the others may lie where the
    project's own fixtures do not let any test run. Where nothing passed there is nothing to doubt.
    """
    ended = {
        word: outcome
        for canary in canaries
        for pair in canary.pairs
        for word in pair
        for id_, outcome in outcomes.items()
        if id_.startswith(canary.path) and word in id_
    }
    pairs = [pair for canary in canaries for pair in canary.pairs]
    if any(ended.get(fails) is CaseOutcome.PASSED for _, fails in pairs):
        return "a test that must fail passed"
    as_they_must = any(
        ended.get(passes) is CaseOutcome.PASSED and ended.get(fails) is CaseOutcome.FAILED
        for passes, fails in pairs
    )
    if as_they_must or CaseOutcome.PASSED not in outcomes.values():
        return ""
    return "no test that must pass passed beside one that must fail"
