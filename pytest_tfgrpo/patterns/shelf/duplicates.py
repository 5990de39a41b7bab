"""Near-duplicates: patterns of a shelf that say much the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus
from pytest_tfgrpo.suite.contamination.similar import similar
from pytest_tfgrpo.suite.contamination.words import words


class NearPattern(NamedTuple):
    """A pattern that is much like another."""

    pattern: Pattern
    similarity: float
    """In (0, 1]: the share of word sequences that they have in common."""


def near(pattern: Pattern, others: Sequence[Pattern]) -> list[NearPattern]:
    """Return the patterns of `others` that are much like one, the nearest first."""
    texts = [_words(one) for one in (pattern, *others)]
    pairs = similar(texts, [1, *(2 for _ in others)])
    return [NearPattern(others[pair.second - 1], pair.similarity) for pair in pairs if pair.first == 0]


def with_relations(pattern: Pattern, others: Sequence[Pattern]) -> Pattern:
    """Return a pattern that names those it is much like: as parents, a deprecated one as reintroduced."""
    found = near(pattern, others)
    gone = [one.pattern.id for one in found if one.pattern.status is PatternStatus.DEPRECATED]
    kept = [one.pattern.id for one in found if one.pattern.status is not PatternStatus.DEPRECATED]
    return replace(
        pattern, parents=tuple(dict.fromkeys((*pattern.parents, *kept))), reintroduced=(*gone, "")[0]
    )


def _words(pattern: Pattern) -> list[str]:
    body = pattern.body
    return words("\n".join((pattern.lesson, pattern.description, body.problem, body.solution)))
