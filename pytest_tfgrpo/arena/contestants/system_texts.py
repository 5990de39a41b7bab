"""System texts: those of the packs that a run uses, and whether a new one may stand in their place."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pytest_tfgrpo.arena.protocol import Ring
from pytest_tfgrpo.core.errors import PackError
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.suite.packs import pack_for, rewritten

MAX_CHARS = 20_000
"""Of a system text, where that of the start is no longer: every prompt carries it."""
_HEADING = re.compile(r"^[ ]{0,3}#{1,6}[ \t]+", re.MULTILINE)
"""Of a document; a lesson stands among others, and may have none."""
_BLOCK = re.compile(r"</?(?:experiences|input)\b", re.IGNORECASE)
"""Opens or closes what prompts hold beside the system text."""


class SystemTexts:
    """The system text of each pack by the pack's domain, as at the start, and what changes them."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._packs: dict[str, PromptPack] = {}
        self._domains: dict[str, set[str]] = {}
        self._known: dict[tuple[str, str], tuple[str, str] | None] = {}
        self.refusals: Counter[str] = Counter()
        """New texts that were refused, each once, by reason code."""
        for scenario in (*ring.train, *ring.dev):
            pack = pack_for(ring.packs, scenario.domain)
            self._packs[pack.domain] = pack
            self._domains.setdefault(pack.domain, set()).add(scenario.domain)
        self.start = {domain: self._packs[domain].system for domain in sorted(self._packs)}

    def place_of(self, scenario: Scenario) -> str:
        """Return the key of the text that the prompts of a scenario carry."""
        return pack_for(self._ring.packs, scenario.domain).domain

    def usable(self, texts: Mapping[str, str]) -> bool:
        """Return whether each of `texts` may be that of a pack; those that may not are counted."""
        return all(self._refusal(place, text) is None for place, text in texts.items())

    def packs(self, texts: Mapping[str, str]) -> dict[str, PromptPack]:
        """Return the packs that usable `texts` change, by domain."""
        return {
            place: rewritten(self._packs[place], text)
            for place, text in texts.items()
            if text != self.start[place]
        }

    def library(self, packs: Mapping[str, PromptPack]) -> Library:
        """Return the library of the start for changed `packs`: prompts carry lessons of their stamps."""
        stamps = {self._packs[place].stamp: pack.stamp for place, pack in packs.items()}
        lessons = (
            replace(lesson, stamp_signature=stamps.get(lesson.stamp_signature, lesson.stamp_signature))
            for lesson in self._ring.library.experiences
        )
        return of(lessons, self._ring.library.lineage)

    def _refusal(self, place: str, text: str) -> tuple[str, str] | None:
        if text == self.start[place]:
            return None
        key = (place, text)
        if key not in self._known:
            self._known[key] = self._refuse(place, text)
            if found := self._known[key]:
                self.refusals[found[0]] += 1
        return self._known[key]

    def _refuse(self, place: str, text: str) -> tuple[str, str] | None:
        """Return (code, reason) why a text cannot be that of a pack."""
        if not text.strip():
            return "empty", "it is empty"
        if len(text) > max(MAX_CHARS, len(self.start[place])):
            return "too_long", f"it has {len(text)} characters; a system text has at most {MAX_CHARS}"
        for character in text:
            if not (
                character.isprintable() or character in "\n\r\t" or unicodedata.category(character) == "Zs"
            ):
                return "control_character", f"it contains the character U+{ord(character):04X}"
        if block := _BLOCK.search(text):
            return "delimiter", f"it contains {block[0]!r}, which marks another part of the prompt"
        try:
            rewritten(self._packs[place], text)
        except PackError as error:
            return "malformed", str(error)
        refuse = self._ring.screen.refuse_text
        start = self.start[place]
        for domain in sorted(self._domains[place]):
            passes = refuse(_HEADING.sub("", start), domain, code=True) is None
            shown = text if passes else _added(text, start)
            if found := refuse(_HEADING.sub("", shown), domain, code=True):
                return found
        return None


def _added(text: str, start: str) -> str:
    """Return the lines of a text that the start has not: what its author wrote there is no reason."""
    known = {line.strip() for line in start.splitlines()}
    return "\n".join(line for line in text.splitlines() if line.strip() not in known)
