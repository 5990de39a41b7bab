"""What takes secrets and personal data out of what comes in, before anything of it is durable.

Users become pseudonyms. What identifies a session, a task or an agent stays as it is where there is nothing
to hide in it, and is replaced as a whole where there is: 24 bits of a placeholder would join strangers.
"""

from __future__ import annotations

import hmac
import json
import math
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Literal

from pytest_tfgrpo.core.texts.text import cut
from pytest_tfgrpo.core.wire.fitting import LONGEST, UnfitError, fit, fit_text
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import Redactor
from pytest_tfgrpo.privacy.secret_shapes import telling
from pytest_tfgrpo.production.door.user_names import UserNames, may_name, names_user, user_kind
from pytest_tfgrpo.telemetry.traces.dialects.dialects import is_scrubbed

LONGEST_ATTRIBUTE = 262_144
"""Bytes of UTF-8 of an attribute that holds JSON."""
SHORTEST_KEY = 16
"""Bytes of the key that pseudonyms and placeholders are made with."""
_REMEMBERED = 4_000_000
"""Characters of attributes that are remembered: instructions come again with every span."""
_DIGITS = 32
_BITS = 1023
"""Of the largest whole number that is kept."""
_OPAQUE = re.compile(r"id-[0-9a-f]{32}")
_USER_REF = re.compile(r"u-[0-9a-f]{32}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[.-]")
_IDENTITIES = re.compile(
    r"(?:.*_)?(?:session|conversation|thread|trajectory|feedback|reward|agent|task)_(?:id|key)"
    r"|(?:.*_)?(?:policy_version|lessons)"
)
_IDS = re.compile(r"(?:\A|_)ids?\Z")
"""Of calls, answers and the like: opaque, and no secrets though they look random."""
LEAF_BYTES = (16_384, 4_096, 1_024, 256)
"""What texts within JSON are cut to, one after the other, until the whole fits."""

_SESSIONS = re.compile(r"(?:session|conversation)[_.]?id\Z", re.IGNORECASE)
_RAW_CHARS = 1_000_000
"""Of a text that cannot be read, which are looked at."""
_PAIR = re.compile(r'"([^"\\]{1,100})"\s{0,8}:\s{0,8}(?:"([^"\\]{1,256})"|([0-9]{1,20}))')
"""A name and its value in what is not quite JSON."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

KeyKind = Literal["", "id", "identity"]


class LoopScrubber:
    """A redactor that also knows users and identities by their names; may be shared by threads."""

    def __init__(self, key: bytes, *, addresses: bool = False, user_attributes: Iterable[str] = ()) -> None:
        """IP `addresses` are taken out too where that is said, and `user_attributes` name users too.

        Raises ValueError for a short key.
        """
        if len(key) < SHORTEST_KEY:
            raise ValueError(
                f"the key of the pseudonyms has {len(key)} bytes; it needs {SHORTEST_KEY} or more"
            )
        self._key = key
        self.users = UserNames(user_attributes)
        self._redactor = Redactor(key, addresses=addresses)
        self._known: dict[tuple[str, str], str] = {}
        self._size = 0

    def text(self, text: str) -> str:
        """Return `text` without secrets and personal data."""
        return self._redactor.text(text)

    def value(self, key: str, text: str) -> str:
        """Return the text that stands under `key`: a user's pseudonym, an identity, or what is left of it."""
        if (users := self.users.kind(key)) and names_user(text, users):
            return self.user_ref(text) if text.strip() and not is_scrubbed(text) else text
        kind = _kind(key)
        if kind == "identity" or (kind == "id" and may_name(text)):
            return self.identity(text)
        if text[:1] in ("{", "[") and self.users.may_be_in(text) and (found := self._json(key, text)):
            return found
        return self._redactor.value(key, text)

    def names(self, key: str) -> bool:
        """Return whether what stands under `key` is taken out where it is a number."""
        return self.users.kind(key) == "user" or self._redactor.names(key)

    def identity(self, text: str) -> str:
        """Return an identity as it is, or ``id-`` and 32 hex digits where something in it is taken out."""
        if _UUID.fullmatch(text) or self._redactor.text(text) == text:
            return text
        return self.opaque(text)

    def opaque(self, text: str) -> str:
        """Return what takes the place of an identity; that of an opaque one is itself."""
        return text if _OPAQUE.fullmatch(text) else f"id-{self.ref('identity', text)}"

    def user_ref(self, user: str) -> str:
        """Return the pseudonym of a user, ``u-`` and 32 hex digits; that of a pseudonym is itself."""
        user = user.strip()
        return user if _USER_REF.fullmatch(user) else f"u-{self.ref('user', user)}"

    def session_ref(self, session: str) -> str:
        """Return what stands for a session, or for its identity: ``s-`` and 32 hexadecimal digits."""
        return f"s-{self.ref('session', self.opaque(session.strip()))}"

    def ref(self, what: str, value: str) -> str:
        """Return 32 hexadecimal digits that depend on the value, its kind and the key (HMAC-SHA256)."""
        message = f"{what}\0{value}".encode("utf-8", "replace")
        return hmac.digest(self._key, message, "sha256").hex()[:_DIGITS]

    def attribute(self, key: str, value: Json) -> Json:
        """Return an attribute of a span, fit to keep; of one that holds JSON, text by text.

        Raises UnfitError for more than 64 levels, and for what is not JSON.
        """
        if value.__class__ is not str:
            return self._fitted(key, value)
        if value[:1] not in ("{", "["):
            return fit_text(self.users.without_pairs(key, value, self.user_ref), self, key)
        known = self._known.get((key, value))
        if known is None:
            known = self._json(key, value)
            known = known or fit_text(self.users.without_pairs(key, value, self.user_ref), self, key)
            self._remember(key, value, known)
        return known

    def attributes(self, table: Mapping[str, Json]) -> dict[str, Json]:
        """Return attributes without secrets and personal data; raises UnfitError."""
        return {fit_text(key, self): self.attribute(key, value) for key, value in table.items()}

    def document(self, value: Json | bytes, longest: int = LONGEST_ATTRIBUTE) -> str:
        """Return what is no valid payload as a text of at most `longest` bytes, redacted."""
        if value.__class__ is bytes:
            raw = value.decode("utf-8", "replace")
            try:
                value = json.loads(raw)
            except (ValueError, RecursionError):
                return self._raw(raw, longest)
        try:
            return fit_text(_dumped(self._fitted("", value)), longest=longest)
        except (ValueError, RecursionError) as error:
            return f"a {value.__class__.__name__} that cannot be kept: {error}"[:1000]

    def named(self, raw: bytes) -> tuple[list[str], list[str]]:
        """Return the sessions and users that are named in what is not quite JSON."""
        sessions, users = [], []
        for key, quoted, number in _PAIR.findall(cut(raw.decode("utf-8", "replace"), _RAW_CHARS)):
            if self.users.kind(key):
                users.append(quoted or number)
            elif _SESSIONS.search(key):
                sessions.append(quoted or number)
        return sessions, users

    def _raw(self, text: str, longest: int) -> str:
        def hidden(pair: re.Match[str]) -> str:
            key, quoted, number = pair.groups()
            if self.users.kind(key) != "user" and _kind(key) != "identity":
                return pair[0]
            return f'"{key}": "{self.value(key, quoted or number)}"'

        return fit_text(_PAIR.sub(hidden, cut(text, _RAW_CHARS)), self, longest=min(longest, LONGEST))

    def _json(self, key: str, text: str) -> str:
        """Return JSON text by text; empty for what is none, or cannot be kept."""
        try:
            return _shortened(self._fitted(key, json.loads(text)))
        except (ValueError, RecursionError):  # UnfitError is a ValueError
            return ""

    def _fitted(self, key: str, value: Json) -> Json:
        value = self.with_refs(key, value)
        try:
            return fit(value, self, key=key)
        except UnfitError as error:
            if error.finite:
                raise
            return fit(_finite(value), self, key=key)

    def with_refs(self, key: str, value: Json) -> Json:
        """Return a value that stands under `key` with pseudonyms for the users that only a path names."""
        if not any(self.users.by_path(key, value)):
            return value
        value = deepcopy(value)
        for place, name, user in self.users.by_path(key, value):
            place[name] = self.user_ref(user)
        return value

    def _remember(self, key: str, text: str, known: str) -> None:
        if len(text) > LONGEST:
            return
        if self._size > _REMEMBERED:
            self._known, self._size = {}, 0
        self._known[key, text] = known
        self._size += len(text)


@lru_cache(maxsize=4096)
def _kind(key: str) -> KeyKind:
    name = _WORDS.sub("_", key[-100:]).lower()
    if user_kind(key):
        return ""
    if _IDENTITIES.fullmatch(name):
        return "identity"
    return "id" if _IDS.search(name) and not telling(key) else ""


def is_identity(key: str) -> bool:
    """Return whether what stands under `key` identifies a session, a task or the like."""
    return _kind(key) == "identity"


def _finite(value: Json) -> Json:
    """Return a value whose numbers are fit to keep: others, which OTLP allows, become texts."""
    if value.__class__ is float and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value.__class__ is int and value.bit_length() > _BITS:
        return "Infinity" if value > 0 else "-Infinity"
    if value.__class__ is list:
        return [_finite(one) for one in value]
    if value.__class__ is dict:
        return {key: _finite(one) for key, one in value.items()}
    return value


def _shortened(value: Json) -> str:
    """Return JSON of at most `LONGEST_ATTRIBUTE` bytes: long texts lose their middle, then lists do."""
    text = _dumped(value)
    for longest in LEAF_BYTES:
        if _size(text) <= LONGEST_ATTRIBUTE:
            return text
        value = cut_texts(value, longest)
        text = _dumped(value)
    while _size(text) > LONGEST_ATTRIBUTE and value.__class__ is list and len(value) > 2:
        head, tail = len(value) // 6, len(value) // 3
        value = value[:head] + value[-tail:]
        text = _dumped(value)
    return fit_text(text, longest=LONGEST_ATTRIBUTE)


def cut_texts(value: Json, longest: int) -> Json:
    """Return a value whose texts have at most `longest` bytes each."""
    if value.__class__ is str:
        return fit_text(value, longest=longest)
    if value.__class__ is list:
        return [cut_texts(one, longest) for one in value]
    if value.__class__ is dict:
        return {key: cut_texts(one, longest) for key, one in value.items()}
    return value


def _dumped(value: Json) -> str:
    return _ENCODER.encode(value)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
