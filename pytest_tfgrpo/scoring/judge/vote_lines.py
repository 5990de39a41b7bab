"""Vote lines: a vote that a judge wrote as lines of text, in place of the requested object."""

from __future__ import annotations

import re
import unicodedata

YES = ("met", "true", "yes", "pass", "passed", "fulfilled", "satisfied")
NO = ("not met", "unmet", "false", "no", "fail", "failed", "not fulfilled", "not satisfied")
WORD = "|".join(sorted((*YES, *NO), key=len, reverse=True))
END = r"(?=\s*$|\s*[.,;:!)\]}]|\s+[-–—(])"
"""What follows a decision: nothing, or a sign before its reason; `met or not` and `met/unmet` are none."""
KEYED = re.compile(
    rf"(?:[-•]\s*)?(?:criterion\s+)?\(?c?(\d{{1,3}})\)?\s*[:=.)–—-]\s*\(?({WORD}){END}\W*(.*)", re.IGNORECASE
)
"""A line like ``c1: not met - it names no city``."""
KEY = re.compile(r"(?:[-•]\s*)?(?:criterion\s+\d|\(?c\d{1,3}\)?\s*[:=])", re.IGNORECASE)
"""The beginning of a line that is about a criterion."""
LABELLED = re.compile(
    r"(?:(?:the|my|final|overall)\s+)*(?:vote|verdict|answer|decision|result|judge?ment|conclusion)"
    rf"\s*(?:is\s*)?[:=]?\s*(?:\\boxed\{{)?\(?({WORD}){END}\W*(.*)",
    re.IGNORECASE,
)
"""A line like ``Final verdict: (met).``, for the only criterion."""
BARE = re.compile(rf"(?:\\boxed\{{(?:\\text\{{)?)?\(?({WORD})[\s.!)}}]*", re.IGNORECASE)
REFUSAL = re.compile(
    r"\b(?:I|we)\b[^.!?\n]{0,40}?\b(?:can(?:not|['’]t| not)|unable to|not able to)"
    r"\s+(?:\w+\s+){0,2}?(?:judge|assess|evaluate|decide|vote|grade|rate|score)\b"
    r"|\bI\s+(?:\w+\s+)?(?:refuse|decline|abstain)\b|\bI have no vote\b",
    re.IGNORECASE,
)
"""Words of a judge that does not vote: a vote beside them is an example of the form."""
MARKUP = str.maketrans("", "", '*_`#|"$')
OBJECT = re.compile(r"[\"']met[\"']\s*:", re.IGNORECASE)
MAX_LINES = 1_000


def decided(word: str) -> bool | None:
    """Return the decision that a word is, None where it is none."""
    plain = " ".join(unicodedata.normalize("NFKC", word).lower().split()).rstrip(".!")
    return True if plain in YES else False if plain in NO else None


def vote_in_lines(text: str, count: int) -> list[tuple[bool, str]] | None:
    """Return decision and reason on each of `count` criteria, in order; None where there is no such vote.

    Raises ValueError for two decisions on one criterion, for one that is left out, and for one that is none.
    """
    lines = _lines(text)
    found: dict[int, tuple[bool, str]] = {}
    for line in lines:
        keyed = KEYED.fullmatch(line)
        if keyed is None:
            if KEY.match(line):
                raise ValueError(f"it is not JSON, and {line[:80]!r} is no decision: met or not met")
            continue
        place, met = int(keyed[1]), bool(decided(keyed[2]))
        if not 1 <= place <= count:
            raise ValueError(f"it is not JSON, and there is no criterion c{place}")
        if place in found and found[place][0] is not met:
            raise ValueError(f"it is not JSON, and decides c{place} twice, and differently")
        found.setdefault(place, (met, keyed[3]))
    if found and len(found) < count:
        missing = next(place for place in range(1, count + 1) if place not in found)
        raise ValueError(f"it is not JSON, and c{missing} is missing")
    if found:
        return [found[place] for place in range(1, count + 1)]
    return _only(lines) if count == 1 else None


def _only(lines: list[str]) -> list[tuple[bool, str]] | None:
    """Return the decision on the only criterion: the whole reply, or what the lines with a label say."""
    bare = BARE.fullmatch(lines[0]) if len(lines) == 1 else None
    if bare is not None:
        return [(bool(decided(bare[1])), "")]
    said = [
        (bool(decided(labelled[1])), labelled[2]) for line in lines if (labelled := LABELLED.fullmatch(line))
    ]
    if len({met for met, _ in said}) > 1:
        raise ValueError("it is not JSON, and decides twice, and differently")
    return said[:1] or None


def has_vote(text: str) -> bool:
    """Return whether a text holds what could be quoted as a vote."""
    return OBJECT.search(text) is not None or any(
        KEYED.fullmatch(line) or LABELLED.fullmatch(line) or KEY.match(line) for line in _lines(text)
    )


def _lines(text: str) -> list[str]:
    """Return the lines of a text without markup, in plain letters; quoted ones are left out."""
    rows = text.split("\n", MAX_LINES)[:MAX_LINES]
    plain = (unicodedata.normalize("NFKC", row[:2_000]).translate(MARKUP).strip() for row in rows)
    return [line for line in plain if line and not line.startswith(">")]
