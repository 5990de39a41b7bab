"""JSON values from outside made fit to keep: finite numbers, whole characters, texts of a bounded length.

What cannot be encoded or stored everywhere (half a surrogate pair, NUL) becomes U+FFFD; a text beyond the
limit loses its middle, and says so.
"""

from __future__ import annotations

import math
import re
from typing import Protocol

from pytest_tfgrpo.core.texts.text import joined
from pytest_tfgrpo.core.wire.wire import Json

LONGEST = 65_536
"""Bytes of UTF-8 of one text."""
DEEPEST = 64
"""Levels of objects and lists within each other."""
_LONGEST_KEY = 1024
"""Bytes of UTF-8 of the name of a value."""
_SHORT_KEY = 64
"""Characters of a name that cannot become longer than 1,024 bytes by what is taken out of it."""
_SLACK = 4096
"""Characters beyond a cut that are searched for secrets: half of one has no known shape."""
_MARK = 64
"""Bytes that the note of a cut may take."""
_LARGEST = 1 << 1023
_LONG_NUMBER = 10**11
"""An integer from which on it may be the number of a card or a telephone."""
_UNFIT = re.compile("[\x00\ud800-\udfff]")

FitPath = tuple[str | int, ...]


class ValueScrubber(Protocol):
    """What takes secrets and personal data out of texts."""

    def text(self, text: str) -> str:
        """Return `text` without them."""
        ...

    def value(self, key: str, text: str) -> str:
        """Return the text that stands under `key`, without them: a key such as ``password`` counts."""
        ...

    def names(self, key: str) -> bool:
        """Return whether what stands under `key` is taken out where it is a number."""
        ...


class UnfitError(ValueError):
    """A JSON value that cannot be kept; `finite` is false where a number is the reason."""

    def __init__(self, path: FitPath, message: str, *, finite: bool = True) -> None:
        super().__init__(message)
        self.path = path
        self.finite = finite


def fit(value: Json, scrubber: ValueScrubber | None = None, *, key: str = "") -> Json:
    """Return a copy of `value`, which stands under `key`, that is fit to keep, with secrets taken out.

    Raises UnfitError for a number that is not finite, for more than 64 levels, and for what is not JSON.
    """
    return _fit(value, scrubber, key, 0)


def fit_text(text: str, scrubber: ValueScrubber | None = None, key: str = "", longest: int = LONGEST) -> str:
    """Return `text` fit to keep, of at most `longest` bytes of UTF-8."""
    if not text.isascii() or "\x00" in text:
        text = _UNFIT.sub("\ufffd", text)
    size = len(text) if text.isascii() else len(text.encode())
    if size <= longest:
        if scrubber is None:
            return text
        text = scrubber.value(key, text) if key else scrubber.text(text)
        size = len(text) if text.isascii() else len(text.encode())
        if size <= longest:
            return text
        scrubber = None
    per_byte = len(text) / size
    head, tail = int((longest - _MARK) * per_byte * 2 / 3), int((longest - _MARK) * per_byte / 3)
    while True:
        ends = (_start(text, head, scrubber), _end(text, tail, scrubber))
        whole = joined(ends[0], len(text) - head - tail, ends[1])
        if (size := len(whole.encode())) <= longest:
            return whole
        head, tail = int(head * longest / size * 0.99), int(tail * longest / size * 0.99)


def _start(text: str, length: int, scrubber: ValueScrubber | None) -> str:
    if scrubber is None:
        return text[:length]
    shown = scrubber.text(text[: length + _SLACK])
    return shown[: max(0, len(shown) - _SLACK)][:length]


def _end(text: str, length: int, scrubber: ValueScrubber | None) -> str:
    if scrubber is None:
        return text[len(text) - length :]
    shown = scrubber.text(text[max(0, len(text) - length - _SLACK) :])[_SLACK:]
    return shown[max(0, len(shown) - length) :]


def _fit(value: Json, scrubber: ValueScrubber | None, key: str, depth: int) -> Json:
    cls = value.__class__
    if cls is str:
        if value.isascii() and len(value) <= LONGEST and "\x00" not in value:
            if scrubber is None:
                return value
            shown = scrubber.value(key, value) if key else scrubber.text(value)
            if len(shown) <= LONGEST and shown.isascii():
                return shown
        return fit_text(value, scrubber, key)
    if value is None or cls is bool:
        return value
    if cls is dict or cls is list:
        if depth >= DEEPEST:
            raise UnfitError((), f"has more than {DEEPEST} levels")
        if cls is dict:
            return _fit_object(value, scrubber, depth + 1)
        return _fit_list(value, scrubber, key, depth + 1)
    if cls is float and not math.isfinite(value):
        raise UnfitError((), f"{value!r} is not a number of JSON", finite=False)
    if cls is int:
        return _fit_integer(value, scrubber, key)
    if cls is float:
        return value
    raise UnfitError((), f"a {cls.__name__} is not a value of JSON")


def _fit_integer(value: int, scrubber: ValueScrubber | None, key: str) -> Json:
    if not -_LARGEST < value < _LARGEST:
        raise UnfitError((), "the number is too large", finite=False)
    if scrubber is None or (abs(value) < _LONG_NUMBER and not (key and scrubber.names(key))):
        return value
    plain = str(value)
    shown = scrubber.value(key, plain)
    return value if shown == plain else shown


def _fit_list(values: list[Json], scrubber: ValueScrubber | None, key: str, depth: int) -> Json:
    found: list[Json] = []
    try:
        for item in values:
            found.append(_fit(item, scrubber, key, depth))
    except UnfitError as error:
        error.path = (len(found), *error.path)
        raise
    return found


def _fit_object(values: dict[Json, Json], scrubber: ValueScrubber | None, depth: int) -> Json:
    found: dict[str, Json] = {}
    for name, item in values.items():
        if name.__class__ is not str:
            raise UnfitError((), f"the key {name!r:.100} is not a text")
        if not name.isascii() or len(name) > _SHORT_KEY or "\x00" in name:
            plain = fit_text(name, scrubber, longest=_LONGEST_KEY)
        else:
            plain = name if scrubber is None else scrubber.text(name)
        try:
            found[plain] = _fit(item, scrubber, name, depth)
        except UnfitError as error:
            error.path = (plain, *error.path)
            raise
    return found
