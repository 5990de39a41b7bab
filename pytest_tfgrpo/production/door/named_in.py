"""Which sessions and users stored data names, by pseudonym."""

from __future__ import annotations

import json
import re

from pytest_tfgrpo.production.door.opt_outs import USER_REF
from pytest_tfgrpo.production.door.scrubber import LoopScrubber

_SESSION = re.compile(
    rb"(?:[sS]ession|[cC]onversation)[._]?[iI][dD]\\*\"\s{0,4}:\s{0,4}(?:"
    rb"\"(?P<plain>(?:[^\"\\]|\\.){0,2000})\""
    rb"|(?P<nested>\\{1,63})\"(?P<text>.{0,2000}?)(?<!\\)(?P=nested)\""
    rb"|(?P<number>-?[0-9]{1,40}))"
)
"""JSON within JSON has one backslash before its quotes, or three, or seven."""
_REMEMBERED = 100_000


class NamedIn:
    """Finds who is named, also in JSON within JSON and in what is not quite JSON."""

    def __init__(self, scrubber: LoopScrubber) -> None:
        self._scrubber = scrubber
        self._refs: dict[tuple[bytes, int], str] = {}

    def sessions(self, data: bytes) -> set[str]:
        """Return the pseudonyms of the sessions that stored data names."""
        if b"ession" not in data and b"onversation" not in data:
            return set()
        return {
            self._ref(match["plain"] or match["text"] or match["number"] or b"", len(match["nested"] or b""))
            for match in _SESSION.finditer(data)
        } - {""}

    def session(self, session: str) -> str:
        """Return the pseudonym of a session."""
        return self._scrubber.session_ref(session)

    def users(self, data: bytes) -> set[str]:
        """Return the pseudonyms of users that stand in stored data."""
        return {ref.decode() for ref in USER_REF.findall(data)}

    def _ref(self, written: bytes, escapes: int) -> str:
        """Return the pseudonym of a session as JSON writes it, with so many backslashes before its quotes."""
        ref = self._refs.get((written, escapes))
        if ref is None:
            if len(self._refs) >= _REMEMBERED:
                self._refs = {}
            session = _read(written.decode("utf-8", "replace"), (escapes + 1).bit_length()).strip()
            ref = self._refs[written, escapes] = self._scrubber.session_ref(session) if session else ""
        return ref


def _read(text: str, levels: int) -> str:
    """Return a text without its escapes, as far as it has that many."""
    for _ in range(levels):
        try:
            text = json.loads(f'"{text}"', strict=False)
        except ValueError:
            break
    return text
