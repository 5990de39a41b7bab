"""Where the secrets of a text stand: tokens of a known shape, values with a telling name, random runs.

Every search is linear in the length of the text. What one character class shows is searched in bytes, one
for each character, so that a pattern is tried only where it can fit.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from pytest_tfgrpo.privacy.byte_runs import RANDOM, FoundSpan, compiled, one_byte, runs
from pytest_tfgrpo.privacy.secret_rules import LIKELY, NAME, RULES, SecretRule

# -- one byte for each character


_TOKEN = bytes(b"w"[0] if (chr(c).isalnum() and c < 128) or chr(c) in "_.-" else 32 for c in range(256))
_SHORT = 15
"""Characters that every token has at least, dots included."""
_LONG = 20
"""Characters from which a run may be a secret by its entropy alone."""


class _Plan(NamedTuple):
    """The rules, by how they are searched; all but the heads are compiled where a text needs them."""

    heads: re.Pattern[str] | None
    """How tokens start."""
    tokens: Mapping[str, tuple[tuple[str, str], ...]]
    """Kinds and patterns, by that start."""
    hinted: tuple[tuple[tuple[str, ...], str, str], ...]
    names: Mapping[str, str]
    sentences: tuple[str, ...]
    entropy: bool


@lru_cache(maxsize=4)
def _plan(rules: tuple[tuple[str, SecretRule], ...]) -> _Plan:
    """Sort the rules at their first use: few starts need them."""
    tokens: dict[str, list[tuple[str, str]]] = {}
    for _, rule in rules:
        for head in rule.hints if rule.way == "token" else ():
            tokens.setdefault(head, []).append((rule.kind, rule.pattern))
    longest = sorted(tokens, key=len, reverse=True)
    return _Plan(
        heads=re.compile("|".join(map(re.escape, longest))) if tokens else None,
        tokens={head: tuple(found) for head, found in tokens.items()},
        hinted=tuple((rule.hints, rule.kind, rule.pattern) for _, rule in rules if rule.way == "hinted"),
        names={name: rule.pattern for name, rule in rules if rule.way == "name"},
        sentences=tuple(rule.pattern for _, rule in rules if rule.way == "sentence"),
        entropy=any(rule.way == "entropy" for _, rule in rules),
    )


_latest: tuple[Mapping[str, SecretRule], _Plan] | None = None


def secrets_of(text: str) -> Iterator[FoundSpan]:
    """Yield where secrets stand in `text`, in no order and with overlaps."""
    plan = _plan_of(RULES)
    plain = one_byte(text)
    for hints, kind, pattern in plan.hinted:
        for hint in hints:  # any() with a generator takes three times as long
            if hint in text:
                for match in compiled(pattern, re.VERBOSE).finditer(text):
                    yield (*match.span("secret"), kind)
                break
    if plan.heads is not None and len(text) >= _SHORT:
        yield from _tokens(text, plain, plan.heads, plan.tokens)
    lowered = plain.lower()
    if plan.names:
        yield from _named(text, lowered, plan.names)
    for start, end in _near_passwords(lowered) if plan.sentences else ():
        for pattern in plan.sentences:
            for match in compiled(pattern, re.VERBOSE).finditer(text, start, end):
                yield (*match.span("secret"), "named")
    if plan.entropy and len(text) >= _LONG:
        yield from _random(text, plain)


def _plan_of(rules: Mapping[str, SecretRule]) -> _Plan:
    global _latest
    if _latest is None or _latest[0] is not rules:
        _latest = (rules, _plan(tuple(rules.items())))
    return _latest[1]


def _tokens(
    text: str,
    plain: bytes,
    heads: re.Pattern[str],
    tokens: Mapping[str, tuple[tuple[str, str], ...]],
) -> Iterator[FoundSpan]:
    for start, end in runs(plain.translate(_TOKEN), _SHORT):
        done = start
        for head in heads.finditer(text, start, end):
            at = head.start()
            if at >= done and (at == start or not plain[at - 1 : at].isalnum()):
                for kind, pattern in tokens[head[0]]:
                    if match := compiled(pattern).match(text, at, end):
                        done = match.end()
                        yield at, done, kind


# -- values with a telling name

_WORDS: Mapping[bytes, tuple[bytes, ...]] = MappingProxyType(
    {
        b"passw": (b"",),
        b"passphrase": (b"",),
        b"pwd": (b"",),
        b"secret": (b"", b"client"),
        b"key": (b"api", b"access", b"private", b"account", b"signing", b"encryption"),
        b"token": (b"", b"auth", b"access", b"refresh", b"bearer", b"session"),
        b"authorization": (b"",),
        b"credential": (b"",),
    }
)
"""Words that the names of secrets contain, and what stands before each within the name."""
_BEFORE = 12
_NAMED = re.VERBOSE | re.IGNORECASE
_OPTION = re.compile(r"--[A-Za-z-]{0,24}\Z")
"""What stands before the name in an option of a command."""


def _named(text: str, lowered: bytes, patterns: Mapping[str, str]) -> Iterator[FoundSpan]:
    if not (b":" in lowered or b"=" in lowered or b"--" in lowered):
        return
    for word, starts in _WORDS.items():
        at = lowered.find(word)
        if at < 0:
            continue
        done = dict.fromkeys(patterns, 0)
        while at >= 0:
            for start in _name_starts(text, lowered, at, starts):
                for name, pattern in patterns.items():
                    if start < done[name]:  # in what was found, which may go on to the end
                        continue
                    match = compiled(pattern, _NAMED).match(text, start)
                    if match and (name != "option" or _OPTION.search(text, max(0, start - 26), start)):
                        group = "quoted" if match.groupdict().get("quoted") else "secret"
                        done[name] = match.end(group)
                        yield (*match.span(group), "named")
            at = lowered.find(word, at + len(word))


def _name_starts(text: str, lowered: bytes, at: int, starts: tuple[bytes, ...]) -> Iterator[int]:
    """Yield where a name may start whose word stands at a place: after no letter, or as ``camelCase``."""
    for before in starts:
        start = at
        if before:
            head = lowered[max(0, at - _BEFORE) : at]
            if head.endswith((b"_", b"-")):
                head = head[:-1]
                start -= 1
            if not head.endswith(before):
                continue
            start -= len(before)
        if (
            start == 0
            or not lowered[start - 1 : start].isalnum()
            or (text[start].isupper() and text[start - 1].islower())
        ):
            yield start


_PASSWORDS = (
    *(b"passw", b"passcode", b"passphrase", b"pwd", b"kennwort", b"contrase", b"de passe", b"senha"),
    b" pin",
)
"""What sentences call a password, in Latin-1."""
_SENTENCE = (160, 400)
"""Characters before and after such a word that may say it."""


def _near_passwords(lowered: bytes) -> list[tuple[int, int]]:
    """Return where sentences with passwords may stand, in order, without overlaps."""
    places = []
    for word in _PASSWORDS:
        at = lowered.find(word)
        while at >= 0:
            places.append(at)
            at = lowered.find(word, at + len(word))
    found: list[tuple[int, int]] = []
    for at in sorted(places):
        start, end = max(0, at - _SENTENCE[0]), min(len(lowered), at + _SENTENCE[1])
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


_TELLING = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=[a-z])(?=[A-Z])|\A){NAME}\Z", re.VERBOSE | re.IGNORECASE)
_MAY_TELL = re.compile(rf"(?<![A-Za-z0-9]){LIKELY}\Z", re.VERBOSE | re.IGNORECASE)


@lru_cache(maxsize=4096)
def telling(key: str) -> Literal["", "likely", "certain"]:
    """Return whether what stands under `key`, in an object or a form, is a secret."""
    return _telling(key[-40:])


@lru_cache(maxsize=4096)
def _telling(end: str) -> Literal["", "likely", "certain"]:
    if _TELLING.search(end):
        return "certain"
    return "likely" if _MAY_TELL.search(end) else ""


# -- random runs

_HEX = re.compile(r"[0-9a-fA-F]+")
_PARTS = re.compile(r"[A-Z]?[a-z]++|[A-Z]++|[0-9]++")
_MIN_BITS = 3.5
"""Shannon entropy per character below which a long run is no secret."""
_MIN_PARTS = 0.3
"""Words, capitals and numbers per character: random text has about 0.5, camel case and paths 0.25 or less."""
_DIGESTS = ("sha256-", "sha384-", "sha512-", "SHA256:")
"""What stands before a digest in base64."""
_IN_PATH = re.compile(r"(?:^|[\s=:,;\"'(\[])[.~]?/[\w./~-]*[._~-]$")
"""What stands before a run in the middle of a path: ``/tmp/tmp.``."""
_PATH = 1024
"""Characters of a path that are looked at."""
_PICTURES = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "Qk0", "PHN2Zy", "PD94bWwg", "JVBERi0", "AAAAIGZ0eX")
"""Starts of pictures and documents in base64: PNG, JPEG, GIF, WebP, BMP, SVG, XML, PDF, AVIF."""
_PICTURE_FROM = 60
"""Characters of base64 from which it may be a picture."""
_BREAK = re.compile(r"(?:\s|\\[nr]?){1,12}")
"""What stands between two lines of one picture; of an escaped one the letter is a part of the next run."""


def _random(text: str, plain: bytes) -> Iterator[FoundSpan]:
    picture = -1  # where the picture ends that the last run was a part of
    for start, end in runs(plain.translate(RANDOM), _LONG):
        goes_on = picture >= 0 and start - picture <= 12 and _BREAK.fullmatch(text, picture, start)
        if goes_on or _starts_picture(text, start, end):
            picture = end
        elif _is_random(text, start, end):
            last = end
            while last < len(text) and text[last] == "=":
                last += 1
            yield start, last, "entropy"


def _starts_picture(text: str, start: int, end: int) -> bool:
    if text.endswith(";base64,", 0, start) and text.rfind("data:", max(0, start - 80), start) >= 0:
        return True
    return end - start >= _PICTURE_FROM and text.startswith(_PICTURES, start)


def _is_random(text: str, start: int, end: int) -> bool:
    if text.startswith(_DIGESTS, max(0, start - 7)) and start >= 7:
        return False
    run = text[start:end]
    if _HEX.fullmatch(run) or run.isalpha() or len(_PARTS.findall(run)) < _MIN_PARTS * len(run):
        return False
    if max(map(len, run.split("/"))) < _LONG and (
        run[0] == "/" or _IN_PATH.search(text, max(0, start - _PATH), start)
    ):
        return False  # the path of a file
    counts = Counter(run)
    return -sum(n / len(run) * math.log2(n / len(run)) for n in counts.values()) >= _MIN_BITS
