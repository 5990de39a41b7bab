"""Secrets in texts: found by well-known token shapes, by the name before them, or by their entropy.

Every pattern is linear in the length of the text. Digests in hex (stamps, commit ids) are not secrets.
Escapes of JSON, HTML and URLs hide nothing: texts are searched as they stand and unescaped.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

MARK = "[redacted:"
"""Start of what takes the place of a secret."""


class _Rule(NamedTuple):
    kind: str
    hints: tuple[str, ...]
    """Every text that the pattern fits contains one of them; where case does not count, in lower case."""
    pattern: str
    """Its group `secret` is taken out."""
    folded: bool = False
    """Case does not count."""


_CERTAIN = r"""(?<![A-Za-z0-9])
    (?: passw(?:or)?d | passphrase | pwd | secret(?:[_-]?(?:key|access[_-]?key))? | api[_-]?key
      | access[_-]?key | private[_-]?key | client[_-]?secret | (?:auth|access|refresh|bearer)[_-]?token )
    """
_LIKELY = r"(?<![A-Za-z0-9]) (?: token | authorization | credentials? )"
_VALUE = r"""
    ["']? \s{0,4} [:=] \s{0,4} ["']? (?: (?:bearer|basic)\s{1,4} )? (?!\[redacted:)
    """

RULES = MappingProxyType(
    {
        "private key": _Rule(
            "private_key",
            ("-----BEGIN ",),
            r"(?P<secret> -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----"
            r"  (?:[A-Za-z0-9+/=\s]*+ -----END\ [A-Z ]{0,30}KEY-----)? )",
        ),
        "password in a URL": _Rule(
            "url_password",
            ("://",),
            r":// (?!\[redacted:) (?P<secret> [^\s/:@]{1,128}+ : [^\s/@]{1,256}+ )(?=@)",
        ),
        "sk-": _Rule("api_key", ("sk-",), r"(?<![A-Za-z0-9])(?P<secret> sk-[A-Za-z0-9_-]{16,}+ )"),
        "sk_live": _Rule(
            "api_key",
            ("k_live_", "k_test_"),
            r"(?<![A-Za-z0-9])(?P<secret> [sr]k_(?:live|test)_[A-Za-z0-9]{10,}+ )",
        ),
        "AIza": _Rule("api_key", ("AIza",), r"(?<![A-Za-z0-9])(?P<secret> AIza[A-Za-z0-9_-]{30,}+ )"),
        "hf_": _Rule("api_key", ("hf_",), r"(?<![A-Za-z0-9])(?P<secret> hf_[A-Za-z0-9]{20,}+ )"),
        "gsk_": _Rule("api_key", ("gsk_",), r"(?<![A-Za-z0-9])(?P<secret> gsk_[A-Za-z0-9]{20,}+ )"),
        "npm_": _Rule("api_key", ("npm_",), r"(?<![A-Za-z0-9])(?P<secret> npm_[A-Za-z0-9]{30,}+ )"),
        "pypi-": _Rule("api_key", ("pypi-",), r"(?<![A-Za-z0-9])(?P<secret> pypi-[A-Za-z0-9_-]{30,}+ )"),
        "SG.": _Rule(
            "api_key",
            ("SG.",),
            r"(?<![A-Za-z0-9])(?P<secret> SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+ )",
        ),
        "gh_": _Rule(
            "git_token",
            ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
            r"(?<![A-Za-z0-9])(?P<secret> gh[pousr]_[A-Za-z0-9]{20,}+ )",
        ),
        "github_pat": _Rule(
            "git_token", ("github_pat_",), r"(?<![A-Za-z0-9])(?P<secret> github_pat_[A-Za-z0-9_]{20,}+ )"
        ),
        "glpat": _Rule("git_token", ("glpat-",), r"(?<![A-Za-z0-9])(?P<secret> glpat-[A-Za-z0-9_-]{16,}+ )"),
        "xox": _Rule("chat_token", ("xox",), r"(?<![A-Za-z0-9])(?P<secret> xox[abeprs]-[A-Za-z0-9-]{10,}+ )"),
        "AKIA": _Rule(
            "cloud_key",
            ("AKIA", "ASIA", "AGPA", "AROA"),
            r"(?<![A-Za-z0-9])(?P<secret> (?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9]) )",
        ),
        "JWT": _Rule(
            "jwt",
            ("eyJ",),
            r"(?<![A-Za-z0-9])"
            r"(?P<secret> eyJ[A-Za-z0-9_-]{8,2048}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)? )",
        ),
        "name of a secret": _Rule(
            "named",
            ("passw", "passphrase", "pwd", "secret", "key", "token"),
            rf"""{_CERTAIN}{_VALUE}(?P<secret> [^\s"',;]{{4,}}+ )""",
            folded=True,
        ),
        "name of what may be one": _Rule(
            "named",
            ("token", "authorization", "credential"),
            rf"""{_LIKELY}{_VALUE}(?P<secret> (?![^\W\d_]++(?:[\s"',;]|\Z)) [^\s"',;]{{4,}}+ )""",
            folded=True,
        ),
        "Bearer": _Rule("named", ("Bearer",), r"\bBearer\s{1,4}(?P<secret> [A-Za-z0-9._~+/-]{12,}+=*+ )"),
        "Basic": _Rule("named", ("Basic",), r"\bBasic\s{1,4}(?P<secret> [A-Za-z0-9._~+/-]{12,}+=*+ )"),
        "entropy": _Rule("entropy", ("",), r"(?P<secret> [A-Za-z0-9+/]{20,}+=*+ )"),
    }
)
"""What counts as a secret. A rule costs next to nothing where its hints are not."""

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
_LONG = 20
"""Characters from which a run may be a secret by its entropy alone."""

_ENTITIES = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "sol": "/", "plus": "+", "equals": "=",
    "colon": ":", "lowbar": "_", "period": ".", "hyphen": "-", "dash": "-", "commat": "@",
}  # fmt: skip
_ESCAPE = re.compile(
    r"(?<!\\)\\++(?:(?P<sign>[/\"'])|u00(?P<u>[2-7][0-9a-fA-F])|x(?P<x>[2-7][0-9a-fA-F])|(?P<blank>[nrt]))"
    r"|&\#(?:0{0,8}(?P<dec>[0-9]{2,3})|[xX]0{0,8}(?P<hex>[2-7][0-9a-fA-F]))(?:;|(?![0-9a-fA-F;]))"
    rf"|&(?P<entity>{'|'.join(_ENTITIES)});"
    r"|%(?P<percent>[2-7][0-9a-fA-F])"
)
_ROUNDS = 3
"""Escapes within escapes that are undone."""
_PASSES = 4
"""Taking one secret out can show another."""

Span: TypeAlias = tuple[int, int]


class Unescaped:
    """A text without escapes, whose spans can be found in the text as it stands."""

    __slots__ = ("_at", "_spans", "text")

    def __init__(self, text: str) -> None:
        self._at: list[int] = []
        self._spans: list[Span] = []
        pieces, done, length = [], 0, 0
        for match in _ESCAPE.finditer(text):
            start, end = match.span()
            pieces += [text[done:start], _character(match)]
            length += start - done + 1
            self._at.append(length - 1)
            self._spans.append((start, end))
            done = end
        self.text = "".join([*pieces, text[done:]])

    def span(self, start: int, end: int) -> Span:
        """Return where the characters from `start` to before `end` stand in the text with its escapes."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> Span:
        n = bisect_right(self._at, at) - 1
        if n < 0:
            return at, at + 1
        after = at - self._at[n]
        return self._spans[n] if after == 0 else (self._spans[n][1] + after - 1, self._spans[n][1] + after)


def unescaped(text: str) -> Unescaped | None:
    """Return `text` with the escapes of JSON, HTML and URLs undone; None where it has none."""
    if "\\" in text or "&" in text or "%" in text:
        return Unescaped(text) if _ESCAPE.search(text) else None
    return None


def _character(match: re.Match[str]) -> str:
    if match["sign"]:
        return match["sign"]
    if match["blank"]:
        return " "
    if match["entity"]:
        return _ENTITIES[match["entity"]]
    if match["dec"]:
        return chr(int(match["dec"]))
    return chr(int(match["u"] or match["x"] or match["hex"] or match["percent"], 16))


def redact(text: str) -> str:
    """Return `text` with every secret replaced by ``[redacted:<kind>]``."""
    for _ in range(_PASSES):
        pieces, done = [], 0
        for start, end, kind in _secrets(text):
            pieces += [text[done:start], f"{MARK}{kind}]"]
            done = end
        if not pieces:
            break
        text = "".join([*pieces, text[done:]])
    return text


def find_secret(text: str) -> str | None:
    """Return the kind of the first secret in `text`, or None; never the secret itself."""
    found = _secrets(text)
    return found[0][2] if found else None


def secret_spans(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and kind of each secret in `text`, in order, without overlaps."""
    return _secrets(text)


def _secrets(text: str) -> list[tuple[int, int, str]]:
    """Return (start, end, kind) of the secrets in `text`, in order, without overlaps."""
    disjoint: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(_found(text, _ROUNDS), key=lambda f: (f[0], -f[1])):
        if not disjoint or start >= disjoint[-1][1]:
            disjoint.append((start, end, kind))
    return disjoint


def _found(text: str, rounds: int) -> Iterator[tuple[int, int, str]]:
    lowered = text.lower()
    for name, rule in RULES.items():
        known = lowered if rule.folded else text
        for hint in rule.hints:  # any() with a generator takes three times as long
            if hint in known:
                break
        else:
            continue
        for match in _compiled(rule).finditer(text):
            if name != "entropy" or _is_random(match):
                yield (*match.span("secret"), rule.kind)
    inner = unescaped(text) if rounds else None
    if inner is not None:
        for start, end, kind in _found(inner.text, rounds - 1):
            yield (*inner.span(start, end), kind)


@cache
def _compiled(rule: _Rule) -> re.Pattern[str]:
    """Return the pattern of a rule; compiling them all takes 5 ms, and few starts need them."""
    return re.compile(rule.pattern, re.VERBOSE | (re.IGNORECASE if rule.folded else 0))


def _is_random(match: re.Match[str]) -> bool:
    run = match[0]
    if match.string[max(0, match.start() - 7) : match.start()] in _DIGESTS:
        return False
    if _HEX.fullmatch(run) or run.isalpha() or len(_PARTS.findall(run)) < _MIN_PARTS * len(run):
        return False
    if max(map(len, run.split("/"))) < _LONG and (
        run[0] == "/" or _IN_PATH.search(match.string, max(0, match.start() - _PATH), match.start())
    ):
        return False  # the path of a file
    counts = Counter(run)
    return -sum(n / len(run) * math.log2(n / len(run)) for n in counts.values()) >= _MIN_BITS
