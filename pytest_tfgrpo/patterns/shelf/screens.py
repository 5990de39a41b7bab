"""Screens: which texts of a pattern no agent may read, each with why.

They are those of lessons, and what coding agents expand or run when they load a skill or a memory file: a
command between backticks behind ``!``, arguments, files named behind ``@``. They may do so within fences,
too, so that an excerpt may hold no more than a decorator, which no file is called like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.learning.library.screen import Screen
from pytest_tfgrpo.patterns.shelf.pattern import Pattern
from pytest_tfgrpo.patterns.shelf.pattern_file import LESSON_WORDS, SECTIONS, PatternFault
from pytest_tfgrpo.suite.contamination.answers import Answers
from pytest_tfgrpo.suite.contamination.spelling import bare
from pytest_tfgrpo.suite.packs import pack_for

EXCERPT = "excerpt"
_EXPANDED = (
    (re.compile(r"!\s*`|`{3,}\s*!"), "which agents run as a command when they load it"),
    (re.compile(r"\$\{?(?:ARGUMENTS|CLAUDE)\w*|\$\{?[0-9]"), "which agents fill with the words of a user"),
    (re.compile(r"<!-{1,2}|-{2}>"), "a comment that people do not see where the file is rendered"),
)
_MENTION = re.compile(r"(?<![\w.+-])@(?=[\w./~\\\"'*{-])")
_DECORATOR = re.compile(r"[ \t]*@[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(.*|[ \t]*(?:#.*)?)")
_FILES = re.compile(
    r"@[\w.]*\.(?:md|mdc|txt|json|jsonl|ya?ml|toml|ini|cfg|conf|env|lock|log|csv|xml|html?|pem|key|crt|py|pyi|[cm]?js"
    r"|jsx|tsx?|sh|sql|go|rs|rb|java|db)(?![\w.])",
    re.IGNORECASE,
)


def _no_answers(_scenario: Scenario) -> tuple[str, ...]:
    return ()


class PatternScreens:
    """Judges patterns against the train and dev scenarios of a suite, if one is given."""

    def __init__(
        self,
        scenarios: Iterable[Scenario] = (),
        answers: Answers = _no_answers,
        packs: Mapping[str, PromptPack] | None = None,
    ) -> None:
        """`packs` maps domains to packs, whose addresses a pattern may name."""
        self._scenarios = tuple(scenario for scenario in scenarios if scenario.split != "eval")
        self._answers = answers
        self._packs = packs or {}
        self._screens: dict[str, Screen] = {}

    def refusals(self, pattern: Pattern) -> list[PatternFault]:
        """Return what no agent may read in a pattern, by field."""
        return [
            PatternFault(place=place, message=why)
            for place, text in _texts(pattern)
            if (why := self.refuse(text, pattern.domain, code=place == EXCERPT))
        ]

    def refuse(self, text: str, domain: str, *, code: bool = False) -> str:
        """Return why agents must not read a text; "" if they may."""
        for reading in dict.fromkeys((text, bare(text))):
            if why := _expanded(reading, code=code):
                return why
        found = self._screen(domain).refuse_text(text, domain, code=code)
        return found[1] if found else ""

    def _screen(self, domain: str) -> Screen:
        if domain not in self._screens:
            packs = {domain: pack_for(self._packs, domain)}
            self._screens[domain] = Screen(
                self._scenarios, answers=self._answers, packs=packs, max_words=LESSON_WORDS
            )
        return self._screens[domain]


def _texts(pattern: Pattern) -> Iterator[tuple[str, str]]:
    for name in ("title", "domain", "lesson", "description"):
        yield name, getattr(pattern, name)
    yield "tags", " ".join(pattern.tags)
    for heading, name in SECTIONS.items():
        yield heading, getattr(pattern.body, name)
    yield EXCERPT, pattern.body.excerpt
    yield from (("files", path) for path in pattern.body.files)


def _expanded(text: str, *, code: bool) -> str:
    for found, what in _EXPANDED:
        if match := found.search(text):
            return f"it contains {match[0]!r}, {what}"
    rows: Sequence[str] = [row for row in text.split("\n") if not (code and _is_decorator(row))]
    for row in rows:
        if match := _MENTION.search(row):
            return f"it contains {row[match.start() : match.start() + 20]!r}, by which agents load a file"
    return ""


def _is_decorator(row: str) -> bool:
    """Return whether a line of code is a decorator whose name is no usual file, and that names none."""
    return (
        bool(_DECORATOR.fullmatch(row)) and not _FILES.match(row.strip()) and len(_MENTION.findall(row)) == 1
    )
