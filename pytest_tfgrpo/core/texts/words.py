"""Words of short texts: what a task or a lesson is about, for lexical comparison."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_]{2,40}")

_FUNCTION_WORDS = """
a about above after again all also am an and any are aren as at be because been before being below both
but by can cannot could did do does doing don done down during each either else every few for from
further get give given gives had has have having he her here him his how however if in into is isn it its
itself just last least let like make may me might more most much must my need needs no nor not now of off
on once one only onto or other our out over own per please put same say says shall she should show so
some such tell than that the their them then there these they this those three through to too two under
until up upon us very via want was we well were what when where whether which while who whom whose why
will with within without would you your
"""
_SCAFFOLDING = """
answer answered answers attempt attempts avoid fail failed fails find finally first follow following next
question questions result results return returns second start step steps task tasks use used uses using
"""
STOP = frozenset((_FUNCTION_WORDS + _SCAFFOLDING).split())
"""Words that carry no information about the subject of a task or lesson."""


def words(text: str) -> list[str]:
    """Return the runs of two to forty letters in `text`, lower-cased, in order; ``count_items`` gives two."""
    return _WORD.findall(text.casefold())


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a lower-case word by English suffixes: ``sort`` for ``sorts`` and ``sorting``."""
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def content(text: str) -> frozenset[str]:
    """Return the stems of the content words of `text`: all but function words and scaffolding."""
    return frozenset(stem(word) for word in words(text) if word not in STOP)
