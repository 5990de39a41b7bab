"""Identity is content: canonical JSON, sha256 stamps, and seeds derived from identity (decisions 8, 13)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

SEED_BITS = 63
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> bytes:
    """Return the canonical JSON bytes of `value`: sorted keys, no spaces, UTF-8.

    Raises ValueError on NaN and infinities, TypeError on what JSON cannot hold.
    """
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def stamp(value: Any) -> str:
    """Return the sha256 of the canonical JSON of `value`, as 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def stamp_bytes(data: bytes) -> str:
    """Return the sha256 of raw bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def identify(*parts: str | int) -> str:
    """Return a 16-digit hex id that depends on `parts` alone; equal parts give equal ids."""
    return stamp(list(parts))[:16]


def seed_of(*parts: str | int) -> int:
    """Return a seed in [0, 2**63) that depends on `parts` alone (decision 8)."""
    return int(stamp(list(parts)), 16) >> (256 - SEED_BITS)


def combined_stamp(stamps: Iterable[str]) -> str:
    """Return one stamp for a set of stamps, independent of their order."""
    return stamp(sorted(stamps))
