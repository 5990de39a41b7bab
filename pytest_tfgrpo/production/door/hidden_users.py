"""Users taken out wherever their ids stand, not only where a name says that it is a user.

Not covered: ids that are words, and users within the ids of sessions and the like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.door.scrubber import LoopScrubber, is_identity

_SHORTEST = 6
"""Characters of an id from which it is looked for in texts."""
_FEW = 8
"""Users up to which each is looked for in every text."""
_WORD = re.compile(r"[\w-]+")


class UserHider:
    """A scrubber that knows whom something is about; an id that is a word stays in texts."""

    def __init__(self, scrubber: LoopScrubber, users: Iterable[str]) -> None:
        self._scrubber = scrubber
        refs = {user: scrubber.user_ref(user) for user in sorted(users, key=len, reverse=True)}
        self._refs = {user: ref for user, ref in refs.items() if ref != user and _is_telling(user)}
        self._by_word: dict[str, list[str]] = {}
        """Users by the first word of their ids, which stands in a text as a whole word where they do."""
        for user in self._refs if len(self._refs) > _FEW else ():
            self._by_word.setdefault(_WORD.findall(user)[0], []).append(user)

    def text(self, text: str) -> str:
        """Return `text` without secrets, personal data and the users' ids."""
        return self.without(self._scrubber.text(text))

    def value(self, key: str, text: str) -> str:
        """Return the text that stands under `key`, without these."""
        return self.hidden(key, self._scrubber.value(key, text))

    def names(self, key: str) -> bool:
        """Return whether what stands under `key` is taken out where it is a number."""
        return self._scrubber.names(key)

    def hidden(self, key: str, text: str) -> str:
        """Return a text under `key` without users; an identity stays, so that what it joins is found."""
        return text if is_identity(key) else self.without(text)

    def without(self, text: str) -> str:
        """Return a text with pseudonyms in the place of the users' ids."""
        for user in self._perhaps_in(text):
            if user in text:
                text = re.sub(rf"(?<![\w-]){re.escape(user)}(?![\w-])", self._refs[user], text)
        return text

    def _perhaps_in(self, text: str) -> Iterable[str]:
        """Return the users that a text may name, the longest first: a trace may have thousands."""
        if not self._by_word:
            return self._refs
        words = self._by_word.keys() & set(_WORD.findall(text))
        found = [user for word in words for user in self._by_word[word]]
        return sorted(found, key=lambda user: (-len(user), user))

    def document(self, text: str) -> str:
        """Return a text that may be JSON, without the users' ids."""
        if not any(user in text for user in self._perhaps_in(text)):
            return text
        try:
            return json.dumps(self.attribute("", json.loads(text)), ensure_ascii=False, separators=(",", ":"))
        except (ValueError, RecursionError):
            return self.without(text)

    def attribute(self, key: str, value: Json) -> Json:
        """Return an attribute that was scrubbed, without the users' ids."""
        if not self._refs:
            return value
        if value.__class__ is str:
            return self.hidden(key, value)
        if value.__class__ is list:
            return [self.attribute(key, one) for one in value]
        if value.__class__ is dict:
            return {self.without(name): self.attribute(name, one) for name, one in value.items()}
        return value


def _is_telling(user: str) -> bool:
    """Return whether a user's id is no word, so that it can be looked for."""
    return len(user) >= _SHORTEST and not user.isalpha() and _WORD.search(user) is not None
