"""Secrets in texts: found by well-known token shapes, by the name before them, or by their entropy.

Every pattern is linear in the length of the text. Digests in hex (stamps, commit ids) are not secrets.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache

_SHAPES = r"""
      (?P<private_key> -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----
        (?:[A-Za-z0-9+/=\s]*+ -----END\ [A-Z ]{0,30}KEY-----)? )
    | (?P<url_password> (?<=://) [^\s/:@]{1,128}+ : [^\s/@]{1,256}+ (?=@) )
    | (?<![A-Za-z0-9]) (?:
        (?P<api_key> sk-[A-Za-z0-9_-]{16,}+ | [sr]k_(?:live|test)_[A-Za-z0-9]{10,}+ | AIza[A-Za-z0-9_-]{30,}+
          | hf_[A-Za-z0-9]{20,}+ | gsk_[A-Za-z0-9]{20,}+ | npm_[A-Za-z0-9]{30,}+ | pypi-[A-Za-z0-9_-]{30,}+
          | SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+ )
      | (?P<git_token> gh[pousr]_[A-Za-z0-9]{20,}+ | github_pat_[A-Za-z0-9_]{20,}+
          | glpat-[A-Za-z0-9_-]{16,}+ )
      | (?P<chat_token> xox[abeprs]-[A-Za-z0-9-]{10,}+ )
      | (?P<cloud_key> (?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9]) )
      | (?P<jwt> eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)? )
      )
    """
_NAMED = r"""
    (?<![A-Za-z0-9])
    (?: [A-Za-z0-9]{1,32}[_-] ){0,4}
    (?: (?P<certain> passw(?:or)?d | passphrase | pwd | secret(?:[_-]?(?:key|access[_-]?key))? | api[_-]?key
          | access[_-]?key | private[_-]?key | client[_-]?secret | (?:auth|access|refresh|bearer)[_-]?token )
      | (?P<likely> token | authorization | credentials? ) )
    ["']? \s{0,4} [:=] \s{0,4} ["']? (?: (?:bearer|basic)\s{1,4} )?
    (?P<value> [^\s"',;]{4,}+ )
    """
_BEARER = re.compile(r"\b(?:Bearer|Basic)\s{1,4}(?P<value>[A-Za-z0-9._~+/-]{12,}+=*+)")
_RUN = re.compile(r"[A-Za-z0-9+/]{20,}+=*+")
_HEX = re.compile(r"[0-9a-fA-F]+")
_PARTS = re.compile(r"[A-Z]?[a-z]++|[A-Z]++|[0-9]++")
_MIN_BITS = 3.5
"""Shannon entropy per character below which a long run is no secret."""
_MIN_PARTS = 0.3
"""Words, capitals and numbers per character: random text has about 0.5, camel case and paths 0.25 or less."""


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return shapes and names; compiling them takes 5 ms, and few starts need them."""
    return re.compile(_SHAPES, re.VERBOSE), re.compile(_NAMED, re.VERBOSE | re.IGNORECASE)


def redact(text: str) -> str:
    """Return `text` with every secret replaced by ``[redacted:<kind>]``."""
    pieces, done = [], 0
    for start, end, kind in _secrets(text):
        pieces += [text[done:start], f"[redacted:{kind}]"]
        done = end
    return "".join([*pieces, text[done:]])


def find_secret(text: str) -> str | None:
    """Return the kind of the first secret in `text`, or None; never the secret itself."""
    found = _secrets(text)
    return found[0][2] if found else None


def _secrets(text: str) -> list[tuple[int, int, str]]:
    """Return (start, end, kind) of the secrets in `text`, in order, without overlaps."""
    shapes, named = _patterns()
    found = [(*m.span(), str(m.lastgroup)) for m in shapes.finditer(text)]
    found += [
        (*m.span("value"), "named")
        for m in named.finditer(text)
        if (m["certain"] or not m["value"].isalpha()) and not m["value"].startswith("[redacted:")
    ]
    found += [(*m.span("value"), "named") for m in _BEARER.finditer(text)]
    found += [(*m.span(), "entropy") for m in _RUN.finditer(text) if _is_random(m[0])]
    disjoint: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(found, key=lambda f: (f[0], -f[1])):
        if not disjoint or start >= disjoint[-1][1]:
            disjoint.append((start, end, kind))
    return disjoint


def _is_random(run: str) -> bool:
    if _HEX.fullmatch(run) or run.isalpha() or len(_PARTS.findall(run)) < _MIN_PARTS * len(run):
        return False
    counts = Counter(run)
    return -sum(n / len(run) * math.log2(n / len(run)) for n in counts.values()) >= _MIN_BITS
