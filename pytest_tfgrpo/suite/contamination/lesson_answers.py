"""Answers of scenarios in lessons, however they are spelled (decision 21)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.words import STOP
from pytest_tfgrpo.suite.contamination.answers import (
    MIN_ANSWER_CHARACTERS,
    AnswerIndex,
    Answers,
    spellings,
)
from pytest_tfgrpo.suite.contamination.readings import all_leet, readings, rotated, without_leet
from pytest_tfgrpo.suite.contamination.spelling import REVERSED, decimal, fold, number_of, values
from pytest_tfgrpo.suite.contamination.spoken import spoken
from pytest_tfgrpo.suite.contamination.words import SPACELESS

LABEL_TASKS = 3
"""An answer of so many tasks is a label, such as a class or a yes, which packs and lessons may name."""
LISTED = 3
"""Short answers of different tasks that give them away where they are half of a lesson's different words."""
MANY = 5
"""Short answers that do so in any company."""
WITHIN = 8
"""Characters of several words, or with digits, from which an answer is found within longer words too."""
DIGITS = 5
"""Digits from which dates and the like are found without their separators."""
ROTATED = 7
"""Letters from which an answer is also looked for with its letters rotated: short words are others' codes."""
MOST_WORDS = 6
SPREAD = 6
"""Words that may stand between those of an answer that comes in another order, or with others between."""
READ = 20_000
"""Characters of a lesson that are read."""

_PREFIX = 16
_TOKEN = re.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+")
_SAID = re.compile(r"[0-9]+(?:[.,][0-9]+)*|[^\W\d_]+")
_MARKER = re.compile(r"(?<![\w.,])[0-9]{1,2}[.)]\s")
"""What numbers a list."""


class FoundAnswer(NamedTuple):
    """An answer that a text contains."""

    scenario: str
    """Id."""
    answer: str
    """In its usual spelling."""


class _Sought(NamedTuple):
    letters: str
    """Letters and digits alone."""
    found: FoundAnswer


def labels(scenarios: Iterable[Scenario], answers: Answers) -> frozenset[str]:
    """Return the keys of the answers that three tasks or more have; equal tasks count once."""
    owners = Counter(
        key for _, key in {((s.stamp, s.wording), key_of(a)) for s in scenarios for a in answers(s)}
    )
    return frozenset(key for key, count in owners.items() if count >= LABEL_TASKS)


def key_of(answer: str) -> str:
    """Return what all spellings of an answer have in common: its value, or its letters and digits."""
    folded = fold(answer)
    return next(iter(number_of(folded)), "") or _letters_of(folded) or " ".join(folded.split())


class LessonAnswers:
    """The answers that no lesson may contain: all but labels and the names of tools.

    Numbers are found by value; other answers by their letters and digits, whatever stands between them, with
    look-alikes, digits for letters, backwards, escaped or encoded; short answers where a lesson lists some.
    """

    def __init__(
        self,
        scenarios: Iterable[Scenario],
        answers: Answers,
        tools: Collection[str] = (),
        *,
        allowed: Collection[str] = (),
    ) -> None:
        """`allowed` are keys of answers that may be named; names of tools may be, too."""
        known = tuple(scenarios)
        names = {*tools, *(tool for s in known for tool in s.tools or ())}
        exempt = {*allowed, *map(key_of, names)}
        of = {s.id: tuple(a for a in answers(s) if key_of(a) not in exempt) for s in known}
        self._as_written = AnswerIndex(known, lambda s: of[s.id], names)
        self._values: dict[str, FoundAnswer] = {}
        self._short: dict[str, FoundAnswer] = {}
        self._aligned: dict[str, list[_Sought]] = {}
        self._within: dict[str, list[_Sought]] = {}
        for id_, texts in of.items():
            for text in texts:
                self._learn(fold(text), FoundAnswer(id_, spellings(text)[0]))
        self._lengths = sorted({len(prefix) for prefix in self._aligned})
        self._named = _NamedWords(known, of)

    def _learn(self, folded: str, found: FoundAnswer) -> None:
        letters, numbers = _letters_of(folded), number_of(folded)
        for number in numbers:
            if len(number) >= MIN_ANSWER_CHARACTERS:
                self._values.setdefault(number, found)
        key = numbers[0] if numbers else letters
        if key and len(key) < MIN_ANSWER_CHARACTERS:
            self._short.setdefault(key, found)
        least = DIGITS if letters.isdigit() else MIN_ANSWER_CHARACTERS
        if len(letters) < least or (numbers and letters.isdigit()):
            return
        sought = _Sought(letters, found)
        self._aligned.setdefault(letters[:_PREFIX], []).append(sought)
        if len(letters) >= WITHIN and (len(_TOKEN.findall(folded)) > 1 or not letters.isalpha()):
            self._within.setdefault(letters[:WITHIN], []).append(sought)

    def find(self, text: str) -> tuple[FoundAnswer, ...]:
        """Return an answer that `text` contains, or the short ones that it lists; else nothing."""
        text = text[:READ]
        for sought in self._as_written.matches(text):
            return (FoundAnswer(sought.scenario.id, sought.text),)
        for reading in readings(text):
            folded = fold(reading)
            for found in (*self._by_value(folded), *self._by_letters(folded), *self._scattered(folded)):
                return (found,)
        for found in self._matches(_tokens(fold(rotated(text))), least=ROTATED):
            return (found,)
        return self._listed(fold(text))

    def _by_value(self, folded: str) -> Iterator[FoundAnswer]:
        if self._values:
            for number in (*values(folded), *spoken(folded)):
                if number in self._values:
                    yield self._values[number]

    def _by_letters(self, folded: str) -> Iterator[FoundAnswer]:
        tokens = _tokens(folded)
        yield from self._matches(tokens)
        yield from self._matches([token[::-1] for token in reversed(tokens)], least=REVERSED)
        for spelled in (*all_leet(folded), *without_leet(folded)):
            yield from self._matches(_tokens(spelled))

    def _matches(self, tokens: list[str], least: int = 0) -> Iterator[FoundAnswer]:
        """Yield the answers that the tokens spell, from the start of one to the end of one."""
        text = "".join(tokens)
        ends = list(accumulate(map(len, tokens)))
        borders = set(ends)
        for start in (0, *ends[:-1]):
            for length in self._lengths:
                for letters, found in self._aligned.get(text[start : start + length], ()):
                    whole = len(letters) >= least and start + len(letters) in borders
                    if whole and text.startswith(letters, start):
                        yield found
        for start in range(len(text) - WITHIN + 1) if self._within else ():
            for letters, found in self._within.get(text[start : start + WITHIN], ()):
                if text.startswith(letters, start):
                    yield found

    def _scattered(self, folded: str) -> Iterator[FoundAnswer]:
        """Yield the answers whose words all stand near to each other, in whatever order."""
        for spelled in (folded, *without_leet(folded)):
            yield from self._named.near(_tokens(spelled))

    def _listed(self, folded: str) -> tuple[FoundAnswer, ...]:
        """Return the short answers of different tasks that a text lists; one or two stand there by chance."""
        said = [word for word in _SAID.findall(_MARKER.sub(" ", folded)) if word not in STOP]
        keys = {word if word.isalpha() else decimal(word.replace(",", "")) or "" for word in said}
        found = {key: self._short[key] for key in sorted(keys & self._short.keys())}
        tasks = {each.scenario: each for each in found.values()}
        listed = 2 * len(found) >= len(keys)
        return tuple(tasks.values()) if len(tasks) >= (LISTED if listed else MANY) else ()


def _letters_of(folded: str) -> str:
    return "".join(_tokens(folded))


def _tokens(folded: str) -> list[str]:
    """Return the words of a text without underscores, which join the name of a tool to one word."""
    return [token for word in _TOKEN.findall(folded) if (token := word.replace("_", ""))]


class _NamedWords:
    """Answers of several words, found by their words in any order.

    An answer counts that has a word which no prompt of another task has: what tasks talk about is no answer.
    """

    def __init__(self, scenarios: Iterable[Scenario], answers: Mapping[str, Collection[str]]) -> None:
        known = tuple(scenarios)
        asked = Counter(word for s in known for word in set(_tokens(fold(s.wording[:READ]))))
        own = {s.id: set(_tokens(fold(s.wording[:READ]))) for s in known}
        self._by_word: dict[str, list[tuple[frozenset[str], FoundAnswer]]] = {}
        for id_, texts in answers.items():
            for text in texts:
                words = _telling_words(text)
                rare = [word for word in words if asked[word] == (word in own[id_])]
                if rare and len(words) > 1:
                    rarest = max(rare, key=lambda word: (len(word), word))
                    entry = (words, FoundAnswer(id_, spellings(text)[0]))
                    self._by_word.setdefault(rarest, []).append(entry)

    def near(self, tokens: list[str]) -> Iterator[FoundAnswer]:
        """Yield the answers whose words stand within a few words of each other."""
        for place, token in enumerate(tokens):
            for words, found in self._by_word.get(token, ()):
                reach = len(words) + SPREAD
                if words <= set(tokens[max(0, place - reach) : place + reach + 1]):
                    yield found


def _telling_words(text: str) -> frozenset[str]:
    """Return the words of an answer that make it up; none of a text that is a whole sentence."""
    words = [word for word in _tokens(fold(text)) if word not in STOP and (len(word) > 2 or word.isdigit())]
    letters = sum(map(len, words))
    return frozenset(words) if len(words) <= MOST_WORDS and letters >= WITHIN + 2 else frozenset()
