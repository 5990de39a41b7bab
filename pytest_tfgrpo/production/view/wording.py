"""The task of a trajectory, and what two wordings of one task have in common."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping

from pytest_tfgrpo.core.wire.wire import Json

_PLACEHOLDER = re.compile(r"\[redacted:([a-z_]{1,40}):[0-9a-f]{6}\]")


def prompt_of(trajectory: Mapping[str, Json]) -> str:
    """Return the agent's task; empty where that was not recorded."""
    text = trajectory["task_context"].get("instructions")
    if isinstance(text, str) and text.strip():
        return text
    for turn in trajectory["turns"]:
        seen = turn.get("observation") if isinstance(turn, Mapping) else None
        if isinstance(seen, Mapping) and seen.get("type") == "user_message":
            text = seen.get("content")
            return text if isinstance(text, str) and text.strip() else ""
    return ""


def wording_of(prompt: str) -> str:
    """Return what is equal for prompts that differ in case, blanks, forms of characters, or values taken out.

    32 hexadecimal digits.
    """
    if "[redacted:" in prompt:
        prompt = _PLACEHOLDER.sub(r"[redacted:\1]", prompt)
    if not prompt.isascii():
        prompt = unicodedata.normalize("NFKC", prompt)
    plain = " ".join(prompt.casefold().split())
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=16).hexdigest()
