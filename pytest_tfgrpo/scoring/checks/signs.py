"""Signs: how a text is compared where one text has several spellings that nobody can tell apart."""

from __future__ import annotations

import re
import unicodedata

ESC, CSI = "\x1b", "\x9b"
ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])|\x9b(?:[0-?]+[ -/]*[@-~]|[HJKm])"
)
"""Sequences that colour a terminal, move its cursor, set its title or a link."""
BLANKS = str.maketrans(dict.fromkeys("\u00a0\u202f\u2007", " "))
"""Blanks that differ from a plain one only in where a line may end."""
LOOKS = {"'": "‘’‚′`´", '"': "“”„«»″", "-": "‐‑‒–—−"}
FORMED = re.compile(f"[{''.join(LOOKS.values())}]")
SIGNED = re.compile(f"[{re.escape(''.join((*LOOKS, *LOOKS.values())))}]")


def without_colours(text: str) -> str:
    """Return `text` without the escape sequences of terminals."""
    return ESCAPES.sub("", text) if ESC in text or CSI in text else text


def as_spelled(text: str, wanted: str) -> str:
    """Return `text` in the spelling of Unicode in which `wanted` is compared: composed, blanks plain.

    A `wanted` text that itself has a special blank wants that one.
    """
    return text if text.isascii() else with_blanks(unicodedata.normalize("NFC", text), wanted)


def with_blanks(text: str, wanted: str) -> str:
    """Return a composed text with plain blanks, unless `wanted` has special ones."""
    if "\u00a0" not in text and "\u202f" not in text and "\u2007" not in text:
        return text
    return text.translate(BLANKS) if wanted.translate(BLANKS) == wanted else text


def composed(text: str) -> str:
    """Return a text in the one spelling of Unicode in which texts are compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_composed(text: str) -> bool:
    """Return whether a text is in that spelling."""
    return text.isascii() or unicodedata.is_normalized("NFC", text)


def hint(wanted: str, text: str) -> str:
    """Return what to say where `text` has `wanted` except for typographic signs; empty where it has not."""
    if (text.isascii() and wanted.isascii()) or not SIGNED.search(wanted):
        return ""
    if not (FORMED.search(text) or FORMED.search(wanted)):
        return ""
    one, other = _unformed(composed(wanted)), _unformed(as_spelled(text, ""))
    return "; they differ only in the form of quotation marks, apostrophes or dashes" if one in other else ""


def _unformed(text: str) -> str:
    for plain, forms in LOOKS.items():
        for form in forms:
            text = text.replace(form, plain)
    return text
