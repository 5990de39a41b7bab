"""A version as it is served: the texts that it adds to a prompt, chosen for a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.learning.library.retrieval import select
from pytest_tfgrpo.suite.packs import pack_for
from pytest_tfgrpo.suite.prompt import merge_experiences

MOST_CHOSEN = 500
"""Choices that a version remembers."""
_LONGEST_TASK = 10_000
"""Characters of a task by which lessons are chosen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedPrompt:
    """What a version adds to the prompt of a conversation."""

    parts: tuple[str, ...] = ()
    """The texts of the pack, then the lessons as a block of data."""
    lessons: tuple[str, ...] = ()
    """Ids of the lessons in it."""
    place: Literal["system", "user"] = "system"
    """Where its pack has them."""


NOTHING = ServedPrompt()


class ServedVersion:
    """The texts of a version; threads may share it."""

    def __init__(self, name: str, packs: Sequence[PromptPack], lessons: Sequence[Experience]) -> None:
        """Raise ValueError where these add nothing that can be served."""
        self.name, self.packs, self.lessons = name, tuple(packs), tuple(lessons)
        self._by_domain = {pack.domain: pack for pack in packs}
        domains = {lesson.domain for lesson in lessons} or self._by_domain.keys()
        self._only = next(iter(domains)) if len(domains) == 1 else ""
        self._chosen: dict[tuple[str, str], ServedPrompt] = {}
        for domain in self._by_domain:
            self._choose("", domain)  # a damaged file is to be found here, not by a request

    def prompt(self, task: str, domain: str = "") -> ServedPrompt:
        """Return what it adds for a task; a version of several domains adds nothing where none is named."""
        key = task[:_LONGEST_TASK], domain
        found = self._chosen.get(key)
        if found is None:
            if len(self._chosen) >= MOST_CHOSEN:
                self._chosen = {}
            found = self._chosen[key] = self._choose(*key)
        return found

    def fixed_prompt(self, domain: str = "") -> ServedPrompt | None:
        """Return what it adds to any task, with its best lessons; None where it has no such domain."""
        found = self._choose("", domain, by_task=False)
        return None if found is NOTHING and self.packs else found

    def _choose(self, task: str, domain: str, *, by_task: bool = True) -> ServedPrompt:
        domain = domain or self._only
        if not domain:
            return NOTHING
        pack = pack_for(self._by_domain, domain)
        if pack.domain not in self._by_domain:
            return NOTHING  # the version was not tried in this domain
        if not by_task:
            pack = replace(pack, retrieval="top")
        picked = select(
            self.lessons, pack=pack, domain=domain, prompt=task, limit=pack.experience_slots
        ).picked
        block = merge_experiences(replace(pack, system="", inject=()), picked)
        texts = (*(text.strip() for text in (pack.system, *pack.inject)), block)
        lessons = tuple(one.id for one in picked)
        return ServedPrompt(parts=tuple(filter(None, texts)), lessons=lessons, place=pack.place)
