"""Signs: how a text is compared where one text has several spellings that nobody can tell apart."""

from __future__ import annotations

import re
import unicodedata

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""Sequences that colour a terminal, move its cursor, set its title or a link."""
BLANKS = str.maketrans(dict.fromkeys("\u00a0\u202f\u2007", " "))
"""Blanks that differ from a plain one only in where a line may end."""
LOOKS = str.maketrans(
    {**dict.fromkeys("‘’‚′`´", "'"), **dict.fromkeys("“”„«»″", '"'), **dict.fromkeys("‐‑‒–—−", "-")}
)
SPECIAL = re.compile("[\\u00a0\\u202f\\u2007]")
FORMED = re.compile("[‘’‚′´“”„«»″‐‑‒–—−]")
ESC = "\x1b"


def without_colours(text: str) -> str:
    """Return `text` without the escape sequences of terminals."""
    return ESCAPES.sub("", text) if ESC in text else text


def as_spelled(text: str, wanted: str) -> str:
    """Return `text` in the spelling of Unicode in which `wanted` is compared: composed, blanks plain.

    A `wanted` text that itself has a special blank wants that one.
    """
    if text.isascii():
        return text
    spelled = composed(text)
    if not SPECIAL.search(spelled):
        return spelled
    return spelled.translate(BLANKS) if wanted.translate(BLANKS) == wanted else spelled


def composed(text: str) -> str:
    """Return a text in the one spelling of Unicode in which texts are compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def hint(wanted: str, text: str) -> str:
    """Return what to say where two texts differ in typographic signs alone; empty where in more."""
    if (text.isascii() and wanted.isascii()) or not (FORMED.search(text) or FORMED.search(wanted)):
        return ""
    one, other = composed(wanted).translate(LOOKS), as_spelled(text, "").translate(LOOKS)
    return "; they differ only in the form of quotation marks, apostrophes or dashes" if one in other else ""
