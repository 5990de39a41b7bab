"""Which tool a phrase means: by identifier, by the words of its name, or by those of its description."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pytest_tfgrpo.actors.offline.measures import UNIT_NAMES
from pytest_tfgrpo.actors.offline.tools.registry import BY_NAME, TOOLS
from pytest_tfgrpo.core.texts.words import content, stem

LIKE_DESCRIPTION = 0.6
"""Cosine of a phrase with a tool's words from which the phrase may mean that tool."""
SHARE_SAID = 0.5
"""Share of a phrase's weight, words of no tool included, from which the words of a tool mean that tool."""
CLEARLY = 0.05
"""By how much the cosine with the best tool exceeds the second best, else the phrase means none."""

_ARTICLES = frozenset({"a", "an", "the", "all", "its", "their", "each", "every", "of", "out"})


class Mention(NamedTuple):
    """A tool that tokens ``start:end`` of a text mean."""

    start: int
    end: int
    tool: str


def mentions(tokens: Sequence[str]) -> list[Mention]:
    """Return the tools that lower-case `tokens` name, by identifier or by the words of the name, in order."""
    found: list[Mention] = []
    place = 0
    while place < len(tokens):
        named = _named_at(tokens, place)
        if named is not None:
            found.append(named)
        place = named.end if named is not None else place + 1
    return found


def _named_at(tokens: Sequence[str], place: int) -> Mention | None:
    if tokens[place] in BY_NAME:
        return Mention(place, place + 1, tokens[place])
    for parts, name in _NAMES.get(stem(tokens[place]), ()):
        end = place
        for part in parts:
            while end > place and end < len(tokens) and tokens[end] in _ARTICLES:
                end += 1
            if end >= len(tokens) or stem(tokens[end]) != part:
                break
            end += 1
        else:
            return Mention(place, end, name)
    return None


def _names() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Return the stems of each name, by their first one, the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name in BY_NAME:
        parts = tuple(stem(word) for word in name.split("_"))
        found.setdefault(parts[0], []).append((parts, name))
    for rivals in found.values():
        rivals.sort(key=lambda rival: -len(rival[0]))
    return found


_NAMES = _names()


def described(phrase: str, *, strict: bool) -> str | None:
    """Return the tool that `phrase` clearly has words of, or None.

    The phrase is like the whole description or, if not `strict`, half of it is words that hardly another tool
    has: "the median". Words that many tools have do not do, "a number" alone means no tool; nor does the verb
    of a description, "keep".
    """
    said = content(phrase)
    likeness = similarities(said)
    best, second = sorted(range(len(TOOLS)), key=lambda i: (-likeness[i], i))[:2]
    common = said & _TERMS[best]
    shared = math.fsum(_WEIGHT[term] for term in common)
    if shared < _ONE_TOOL - 1e-9 or likeness[best] - likeness[second] < CLEARLY:
        return None
    whole = math.fsum(_WEIGHT.get(term, _ONE_TOOL) for term in said)
    short = not strict and common != {_VERBS[best]} and shared >= SHARE_SAID * whole - 1e-9
    return TOOLS[best].name if short or likeness[best] >= LIKE_DESCRIPTION else None


def is_telling(word: str) -> bool:
    """Return whether `word` is one by which tools differ."""
    return not content(word).isdisjoint(_WEIGHT)


def commonness(term: str) -> int:
    """Return how many tools have the stem `term` in name or description, and one more for a unit's name."""
    return _SPREAD[term] + (term in _UNITS)


_TERMS = [content(f"{tool.name} {tool.description}") for tool in TOOLS]
_VERBS = [stem(tool.description.split()[0].casefold()) for tool in TOOLS]
_SPREAD = Counter(term for terms in _TERMS for term in terms)
_WEIGHT = {term: math.log(1 + len(TOOLS) / count) for term, count in _SPREAD.items()}
_ONE_TOOL = math.log(1 + len(TOOLS))
"""Weight of a stem that only one tool has."""
_NORM = [math.sqrt(sum(_WEIGHT[term] ** 2 for term in terms)) for terms in _TERMS]
_UNITS = frozenset(map(stem, UNIT_NAMES))
_HAVING = {term: [i for i, terms in enumerate(_TERMS) if term in terms] for term in _SPREAD}


@lru_cache(maxsize=4096)
def similarities(words: frozenset[str]) -> tuple[float, ...]:
    """Return the cosine of the stems `words` with those of each tool, rare ones weighing more."""
    dots = [0.0] * len(TOOLS)
    known = [term for term in words if term in _WEIGHT]
    for term in known:
        for i in _HAVING[term]:
            dots[i] += _WEIGHT[term] ** 2
    norm = math.sqrt(math.fsum(_WEIGHT[term] ** 2 for term in known)) or 1.0
    return tuple(dot / (norm * own) for dot, own in zip(dots, _NORM, strict=True))
