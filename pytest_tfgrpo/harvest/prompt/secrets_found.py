"""Secrets in what a harvest would write: named by place, line and kind, never by what they are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from pytest_tfgrpo.privacy.redact import secret_spans
from pytest_tfgrpo.sandbox.archives import ArchiveEntry

FILE_MAX = 5_000_000
"""Bytes of a file that is searched; what is longer is searched up to there."""
LINE_MAX = 20_000
MOST = 20
"""Secrets of one file that are named."""
CERTAIN = frozenset({"private_key", "api_key", "git_token", "chat_token", "cloud_key"})
"""Kinds that are known by their shape."""
_PLACEHOLDER = re.compile(
    r"(?i)x{4,}|\*{3,}|\.\.\.|<|>|\$|\{|%|example|dummy|fake|changeme|placeholder|redacted|sample|your[_-]|test|secret"
    r"|passw|hunter2|foo|bar|abc|123"
)
_HINTS = re.compile(
    rb"AKIA|ASIA|AGPA|AROA|sk-|k_live_|k_test_|AIza|hf_|gsk_|npm_|pypi-|SG\.|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-"
    rb"|eyJ|-----BEGIN |://[^\s/:@]{1,128}:|(?i:passw|pwd|passphrase|secret|key|token|credential|authorization)"
    rb"[^\n\"'`]{0,40}[\"'`][^\n\"'`]{0,40}[\"'`]?[^\n\"'`]{0,20}[\"'`]?[^\"'`\s]{12}"
)
"""What a line has that may hold a secret: few do, and all of `redact` is slow over a whole repository."""
_LITERAL = re.compile(r"""["'`]([^"'`\s]{12,200})["'`]""")


class SecretSearch:
    """Finds secrets in files; what it has seen once it does not search again."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[tuple[int, str, bytes], ...]] = {}

    def added(self, before: Mapping[str, ArchiveEntry], after: Mapping[str, ArchiveEntry]) -> tuple[str, ...]:
        """Return the secrets on lines that `after` has and `before` has not: ``a.py:3: cloud_key``."""
        found = []
        for path, entry in sorted(after.items()):
            old = before.get(path)
            if old is None or old.data != entry.data:
                known = set() if old is None else set(old.data.split(b"\n"))
                rows = self._rows(entry.data)
                found += [f"{path!a}"[1:-1] + f":{n}: {kind}" for n, kind, row in rows if row not in known]
        return tuple(found)

    def _rows(self, data: bytes) -> tuple[tuple[int, str, bytes], ...]:
        digest = hashlib.sha256(data).digest()
        if digest not in self._seen:
            searched = b"\0" not in data[:8000] or b"-----BEGIN " in data
            self._seen[digest] = tuple(_search(data[:FILE_MAX]))[:MOST] if searched else ()
        return self._seen[digest]


def secrets_in_text(text: str) -> tuple[str, ...]:
    """Return the secrets of a text: ``line 3: git_token``."""
    return tuple(f"line {n}: {kind}" for n, kind, _ in _search(text.encode("utf-8", "replace")))[:MOST]


def _search(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield line number, kind and line of each secret, one a line."""
    end, n = -1, 1
    for hint in _HINTS.finditer(data):
        if hint.start() < end:
            continue
        start = data.rfind(b"\n", 0, hint.start()) + 1
        n += data.count(b"\n", max(end, 0), start)
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        row = data[start:end].decode("utf-8", "replace")[:LINE_MAX]
        for first, last, kind in secret_spans(row):
            if _counts(row, row[first:last], kind):
                yield n, kind, data[start:end]
                break


def _counts(row: str, secret: str, kind: str) -> bool:
    """Return whether a find is a secret where code is full of the words password, token and key."""
    if kind in CERTAIN:
        return kind == "private_key" or not re.search(r"(?i)x{6,}|example|\*{3,}", secret)
    if kind in ("named", "jwt"):
        return any(
            secret.strip("\"'`") in value[1] and _is_random(value[1]) for value in _LITERAL.finditer(row)
        ) or (secret.startswith("eyJ") and len(secret) > 60)  # a JSON Web Token, whatever names it
    if kind == "url_password":
        return _is_random(secret.partition(":")[2])
    return False  # high entropy alone: digests, vectors of tests and pictures have it, too


def _is_random(value: str) -> bool:
    """Return whether a value looks made by chance: long, of several kinds, and no placeholder."""
    kinds = sum(bool(re.search(pattern, value)) for pattern in ("[a-z]", "[A-Z]", "[0-9]"))
    return len(value) >= 12 and kinds >= 2 and len(set(value)) >= 8 and not _PLACEHOLDER.search(value)
