"""Answers of scenarios, found in other texts as whole tokens (decision 21)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.suite.contamination.spelling import bare

MIN_ANSWER_CHARACTERS = 4

Answers = Callable[[Scenario], Collection[str]]
"""Returns the texts that must not leak from a scenario."""

_WORD = re.compile(r"[^\W_]+")


class SoughtAnswer(NamedTuple):
    """An answer as it is looked for."""

    n: int
    """Place among the answers, in order of the scenarios."""
    text: str
    scenario: Scenario


class AnswerIndex:
    """Answers by normalised text, with the scenario each comes from.

    An answer is looked for only in texts that have the rarest of its words, so that a search costs what the
    text has words, not what the suite has answers.
    """

    def __init__(self, scenarios: Iterable[Scenario], answers: Answers, tools: Collection[str] = ()) -> None:
        """Names in `tools`, and those of the scenarios' own tools, are no answers."""
        found: dict[str, Scenario] = {}
        exempt = {spelling for tool in tools for spelling in spellings(tool)}
        for scenario in scenarios:
            exempt.update(spelling for tool in scenario.tools or () for spelling in spellings(tool))
            for answer in answers(scenario):
                for text in spellings(answer):
                    if len(text) >= MIN_ANSWER_CHARACTERS:
                        found.setdefault(text, scenario)
        known = [SoughtAnswer(n, text, s) for n, (text, s) in enumerate(found.items()) if text not in exempt]
        parts = {answer.text: set(_WORD.findall(answer.text)) for answer in known}
        often = Counter(word for own in parts.values() for word in own)
        self._by_word: dict[str, list[SoughtAnswer]] = {}
        self._wordless: list[SoughtAnswer] = []
        for sought in known:
            rarest = min(parts[sought.text], key=lambda word: (often[word], word), default=None)
            place = self._wordless if rarest is None else self._by_word.setdefault(rarest, [])
            place.append(sought)

    def find(self, text: str) -> str | None:
        """Return the id of the first scenario of which `text` has an answer as a whole token, or None."""
        found = next(self.matches(text), None)
        return found.scenario.id if found is not None else None

    def matches(self, text: str) -> Iterator[SoughtAnswer]:
        """Yield the answers that `text` contains as whole tokens, in order."""
        plain, *other = spellings(text)
        wanted = [*self._wordless]
        for word in set(_WORD.findall(plain)) & self._by_word.keys():
            wanted += self._by_word[word]
        for answer in sorted(wanted):
            # A single word must stand as it is: names of tools are made of words.
            for known in (plain, *other) if " " in answer.text else (plain,):
                if answer.text in known and _whole(answer.text).search(known):
                    yield answer
                    break


def _whole(answer: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?<!\d[.,]){re.escape(answer)}(?!\w|[.,]\d)")


def spellings(text: str) -> tuple[str, ...]:
    """Return the plain text and, where it has letters, its words alone, which punctuation cannot hide."""
    plain = " ".join(bare(text).casefold().split())
    words = " ".join(_WORD.findall(plain))
    return (plain, words) if words != plain and re.search(r"[^\W\d_]", words) else (plain,)


def expected_answers(kinds: Mapping[str, CheckKind], scenario: Scenario) -> tuple[str, ...]:
    """Return the texts that must not leak from `scenario` into a lesson (decision 21)."""
    return tuple(text for check in scenario.checks for text in kinds[check.kind].expected(check))


def tool_names(groups: Iterable[Group]) -> set[str]:
    """Return the names of the tools that were called: a tool's name is never a leaked answer.

    A name called in one scenario alone does not count, or an actor could smuggle an answer as a tool; nor do
    names in attempts made elsewhere.
    """
    first: dict[str, str] = {}
    """The scenario that each name was called in first."""
    common: set[str] = set()
    for group in (group for group in groups if group.mode != "evidence"):
        for name in {f.name for r in group.rollouts for f in r.frames if f.kind == "tool"}:
            if first.setdefault(name, group.scenario_id) != group.scenario_id:
                common.add(name)
    return common
