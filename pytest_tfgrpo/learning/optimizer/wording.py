"""Wording: which words distinguish a kind of task, and the text of a lesson about it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.words import STOP, content, stem, words
from pytest_tfgrpo.core.wire.wire import leaves

AROUND = 6
"""Words of a lesson beside its topics and advice: "If a task is about ... or"."""
MAX_TERMS = 8
MIN_SHARE_OF_BEST = 0.6
"""A term is used if it is at least this share as distinctive as the best one."""

_QUOTED = re.compile(
    r'```.*?```|`[^`]*`|"[^"]*"|“[^”]*”|«[^»]*»|(?<!\w)\'[^\'\n]*\'(?!\w)|<input\b.*?</input>', re.DOTALL
)
_ADVICE = r"((?:use|call|answer|avoid) [^\n]{1,400}?)\.?"
_LESSON = re.compile(rf"If a task is about ((?:[^\s,:]+, )*[^\s,:]+ or [^\s,:]+|[^\s,:]+), {_ADVICE}")
_BY_HAND = re.compile(rf"If a task is about ([^:\n]{{1,400}}?), {_ADVICE}")
"""People write several words between two commas, and a comma before "or"."""
_OLD_LESSON = re.compile(r"For tasks about ([^:]{1,400}): ([^\n]{1,400}?)\.?")
"""What earlier versions wrote."""
_BETWEEN = re.compile(r", | or ")
_BETWEEN_BY_HAND = re.compile(r",? or |, ")
_ROLES = frozenset({"system", "assistant", "user", "human", "developer"})
"""Words that look like a role marker before a colon."""


class Parsed(NamedTuple):
    """A lesson of the form that `phrase` writes."""

    terms: tuple[str, ...]
    advice: str


class Topic(NamedTuple):
    """What a kind of task is about."""

    terms: Sequence[str]
    """Its `key_terms`, best first."""
    shares: Mapping[str, float]
    """The share of its prompts that contain each stem."""

    @property
    def head(self) -> str:
        """Stem of its most distinctive word; empty when it has none."""
        return stem(self.terms[0]) if self.terms else ""

    def has(self, terms: Iterable[str]) -> bool:
        """Return whether one of `terms` stands in half of its prompts, or in as many as its best term."""
        enough = min(0.5, self.shares[self.head])
        return any(self.shares.get(stem(term), 0.0) >= enough for term in terms)


def wording(prompt: str) -> str:
    """Return `prompt` without what it quotes: data, not the kind of task."""
    return _QUOTED.sub(" ", prompt[:20_000])


def shares(prompts: Sequence[str]) -> dict[str, float]:
    """Return for each content stem the share of `prompts` that contain it."""
    counts: Counter[str] = Counter()
    for prompt in prompts:
        counts.update(content(prompt))
    return {term: count / len(prompts) for term, count in counts.items()}


def key_terms(
    prompts: Sequence[str],
    own: Mapping[str, float],
    others: Iterable[Mapping[str, float]],
    barred: frozenset[str],
) -> list[str]:
    """Return the words that distinguish tasks with these `prompts` from `others`, best first.

    `own` and `others` are `shares`; words in `barred` (answers, for example) are left out.
    """
    rivals = list(others)

    def worth(term: str) -> float:
        elsewhere = sum(rival.get(term, 0.0) for rival in rivals)
        return own[term] * math.log((2 + len(rivals)) / (1 + elsewhere))

    ranked = sorted(((worth(term), term) for term in own), key=lambda item: (-item[0], item[1]))
    spoken = _surface_forms(prompts)
    named: list[str] = []
    for value, term in ranked:
        word = spoken[term]
        if word in barred or word in _ROLES or len(word) > 24:
            continue
        if len(named) == MAX_TERMS or value < MIN_SHARE_OF_BEST * ranked[0][0]:
            break
        named.append(word)
    return named


def _surface_forms(prompts: Sequence[str]) -> dict[str, str]:
    counts = Counter(word for prompt in prompts for word in words(prompt) if word not in STOP)
    forms: dict[str, str] = {}
    for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        forms.setdefault(stem(word), word)
    return forms


def joined(topics: Sequence[Topic], kept: Iterable[str], room: int) -> list[str]:
    """Return the words for several topics, `kept` ones first: one a topic, and more while there is room."""
    terms = list({stem(term): term for term in kept}.values())
    many = len(topics) > MAX_TERMS
    missing = [topic for topic in topics if topic.terms and not topic.has(terms)]
    while missing:
        # Where they are many, the word for most topics that have none yet; of equals the most distinctive.
        words_left = dict.fromkeys(t for topic in missing for t in topic.terms[: None if many else 1])
        terms.append(max(words_left, key=lambda term: sum(topic.has([term]) for topic in missing)))
        missing = [topic for topic in missing if not topic.has(terms)]
    for topic in topics:
        more = max(0, min(MAX_TERMS, room) - len(terms))
        terms += [term for term in topic.terms if term not in terms][:more]
    return terms


def room_for(advice: str, max_words: int) -> int:
    """Return how many words on the kind of task fit into a lesson of `max_words`; below 1, none."""
    room = max_words - AROUND - len(advice.split())
    return room or 1  # one topic needs no "or"


def phrase(terms: Sequence[str], advice: str) -> str:
    """Return the lesson: small models follow a condition far better than a heading (docs/learning.md)."""
    *others, last = terms
    return f"If a task is about {', '.join(others)}{' or ' if others else ''}{last}, {advice}."


def parse(lesson: str) -> Parsed | None:
    """Return the parts of a lesson that `phrase` wrote, or a person in its form; else None."""
    between = _BETWEEN
    match = _LESSON.fullmatch(lesson) or _OLD_LESSON.fullmatch(lesson)
    if match is None:
        match, between = _BY_HAND.fullmatch(lesson), _BETWEEN_BY_HAND
    return Parsed(tuple(between.split(match[1])), match[2]) if match else None


def one_word_answers(scenarios: Iterable[Scenario]) -> frozenset[str]:
    """Return the words that are, alone, a text in the checks of one of `scenarios`."""
    found = (leaf for s in scenarios for check in s.checks for leaf in leaves(check.params))
    texts = (leaf for leaf in found if isinstance(leaf, str))
    return frozenset(folded for text in texts if words(folded := text.strip().casefold()) == [folded])
