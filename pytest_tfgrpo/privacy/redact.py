"""Secrets and personal data in texts, replaced by what kind they are.

Secrets are found by well-known token shapes, by the name before them, or by their entropy; digests in hex
(stamps, commit ids), pictures and paths are none. Personal data is taken out where it is asked for: e-mail
addresses, telephone numbers, payment cards, IBANs, and IP addresses. Escapes of JSON, HTML and URLs hide
nothing: texts are searched as they stand and unescaped, and base64 is read.

Not covered: names and postal addresses, dates of birth, national identity numbers, telephone numbers that
are digits alone without a ``+`` or a word such as ``phone`` before them, passwords of fewer than four
characters, in a sentence those that are letters alone unless it says ``my password is``, and whatever is
encoded otherwise, encrypted or in pictures.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Iterator

from pytest_tfgrpo.privacy.base64_texts import base64_texts
from pytest_tfgrpo.privacy.personal import is_phone, personal_of
from pytest_tfgrpo.privacy.secret_shapes import secrets_of, telling
from pytest_tfgrpo.privacy.unescape import unescaped

MARK = "[redacted:"
"""Start of what takes the place of a secret."""
_PLACEHOLDER = re.compile(r"\[redacted:[a-z_]{1,40}(:[0-9a-f]{6})?\]")
_ROUNDS = 3
"""Escapes within escapes that are undone."""
_PASSES = 64
"""Taking one secret out can show another: of values that touch, each pass may take one."""
_DIGITS = 6
"""Hexadecimal digits of a keyed placeholder."""
_SHORTEST = 6
"""Characters below which a text has nothing in it that is looked for."""
_SHORTEST_SECRET = 4
"""Characters below which the value of a telling name is none."""
_REMEMBERED = 8_000_000
"""Characters of texts that a redactor remembers: a message comes again in every span of its conversation."""


_SOME_NUMBER = "5550100"

_own: dict[str, re.Pattern[str]] = {}
"""Names that pass, and where each stands whole."""
_SHORTEST_NAME = 8
"""Characters below which a name passes like any other text: it could be a part of anything."""
_MOST_NAMES = 16
"""Names that pass at a time, the latest ones: each text is searched for them."""

_Place = tuple[int, int, str, str]
"""Start, end, kind, and the value without escapes."""


def let_pass(*names: str) -> None:
    """Let names of this process's own work pass from now on: folders, task, run, which look random at times.

    They pass where they stand whole; what stands beside them is searched as before. One that has the shape
    of a known token never passes.
    """
    for name in names:
        if len(name) >= _SHORTEST_NAME and all(kind == "entropy" for *_, kind in secret_spans(name)):
            _own.pop(name, None)
            _own[name] = re.compile(rf"(?<![\w+=.-]){re.escape(name)}(?![\w+=-])")
    while len(_own) > _MOST_NAMES:
        del _own[next(iter(_own))]


def _without_own(text: str) -> str:
    """Return `text` with dots in the place of the names that pass."""
    for name, whole in _own.items():
        if name in text:
            text = whole.sub(lambda match: "." * len(match[0]), text)
    return text


def redact(text: str) -> str:
    """Return `text` with every secret replaced by ``[redacted:<kind>]``; personal data stays."""
    return _PLAIN.redacted(text)[0]


def find_secret(text: str) -> str | None:
    """Return the kind of the first secret in `text`, or None; never the secret itself."""
    found = _PLAIN.places(text)
    return found[0][2] if found else None


def secret_spans(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and kind of each secret in `text`, in order, without overlaps."""
    return [(start, end, kind) for start, end, kind, _ in _PLAIN.places(text)]


class Redactor:
    """Takes secrets and personal data out, and counts them by kind.

    With a key a placeholder is ``[redacted:<kind>:<6 hex digits>]``, equal for equal values (HMAC-SHA256).
    """

    def __init__(self, key: bytes | None = None, *, personal: bool = True, addresses: bool = False) -> None:
        """`personal` data is taken out too, and `addresses` of IP where that is said."""
        self.counts: Counter[str] = Counter()
        """What was taken out, by kind."""
        self._key = key
        self._personal = personal
        self._addresses = addresses
        self._known: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._size = 0

    def text(self, text: str) -> str:
        """Return `text` without secrets and personal data."""
        if len(text) < _SHORTEST:
            return text
        known = self._known.get(text)
        if known is None:
            known = self.redacted(text)
            self._remember(text, known)
        if known[1]:
            self.counts.update(known[1])
        return known[0]

    def value(self, key: str, text: str) -> str:
        """Return the text that stands under `key`, without secrets: a key such as ``password`` counts."""
        tells = telling(key)
        if len(text) >= _SHORTEST_SECRET and not text.startswith(MARK):
            if tells == "certain" or (tells and _may_be_secret(text)):
                return self._whole("named", text)
            if self._personal and is_phone(key, text):
                return self._whole("phone", text)
        return self.text(text)

    def names(self, key: str) -> bool:
        """Return whether what stands under `key` is taken out where it is a number."""
        return self._personal and is_phone(key, _SOME_NUMBER)

    def redacted(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return `text` without secrets and personal data, and the kinds of these, one for each."""
        kinds: list[str] = []
        for _ in range(_PASSES):
            pieces, done = [], 0
            for start, end, kind, value in self.places(text):
                pieces += [text[done:start], self._placeholder(kind, value)]
                kinds.append(kind)
                done = end
            if not pieces:
                break
            text = "".join([*pieces, text[done:]])
        return text, tuple(kinds)

    def places(self, text: str) -> list[_Place]:
        """Return what is taken out of `text`, in order, without overlaps."""
        shown = _without_own(text)
        found = list(self._found(shown, _ROUNDS))
        if not found:
            return found
        if shown != text:
            found = [
                (start, end, kind, text[start:end] if value == shown[start:end] else value)
                for start, end, kind, value in found
                if shown[start:end].strip(".")
            ]
        if MARK in text:
            found = list(_outside_placeholders(text, found))
        disjoint: list[_Place] = []
        for place in sorted(found, key=lambda f: (f[0], -f[1])):
            if not disjoint or place[0] >= disjoint[-1][1]:
                disjoint.append(place)
        return disjoint

    def _found(self, text: str, rounds: int) -> Iterator[_Place]:
        for start, end, kind in secrets_of(text):
            yield start, end, kind, text[start:end]
        if self._personal:
            for start, end, kind in personal_of(text, self._addresses):
                yield start, end, kind, text[start:end]
        for start, end, decoded in base64_texts(text) if rounds else ():
            for _, _, kind, value in self._found(decoded, rounds - 1):
                yield start, end, kind, value
                break
        inner = unescaped(text) if rounds else None
        if inner is not None:
            for start, end, kind, value in self._found(inner.text, rounds - 1):
                yield (*inner.span(start, end), kind, value)

    def _whole(self, kind: str, text: str) -> str:
        self.counts[kind] += 1
        return self._placeholder(kind, text)

    def _placeholder(self, kind: str, value: str) -> str:
        if self._key is None:
            return f"{MARK}{kind}]"
        message = f"{kind}\0{_plain(kind, value)}".encode("utf-8", "surrogatepass")
        return f"{MARK}{kind}:{hmac.digest(self._key, message, 'sha256').hex()[:_DIGITS]}]"

    def _remember(self, text: str, known: tuple[str, tuple[str, ...]]) -> None:
        self._known[text] = known
        self._size += len(text)
        if self._size > _REMEMBERED:
            self._known = {}
            self._size = 0


def _outside_placeholders(text: str, found: list[_Place]) -> Iterator[_Place]:
    """Yield places except for what begins in a placeholder: its kind may be a name of a secret."""
    ends = {n: mark.end() for mark in _PLACEHOLDER.finditer(text) for n in range(*mark.span())}
    for start, end, kind, value in found:
        inside = start
        while inside in ends:  # one placeholder may follow another
            inside = ends[inside]
        if inside == start:
            yield start, end, kind, value
        elif end - inside >= _SHORTEST_SECRET:  # it goes on behind the placeholder
            yield inside, end, kind, text[inside:end]


def _plain(kind: str, value: str) -> str:
    """Return a value as it is compared: an address in lower case, a number without separators."""
    if kind == "email":
        return value.lower()
    if kind in ("phone", "card", "iban"):
        return "".join(filter(str.isalnum, value))
    return value


def _may_be_secret(text: str) -> bool:
    """Return whether a value with a name such as ``token`` looks like a secret: a word does not."""
    return len(text) >= 8 and not text.isalpha() and not any(map(str.isspace, text))


_PLAIN = Redactor(personal=False)
