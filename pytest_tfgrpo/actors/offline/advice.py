"""Advice: which tools a sentence of plain English recommends, and which it warns of.

It is a reader of a few patterns of negation, not of English: it scans tokens once, and where it is in doubt
between "use it" and "do not", it takes the second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from pytest_tfgrpo.actors.offline.matching import Mention, described, is_telling, mentions
from pytest_tfgrpo.core.texts.words import content

MAX_TOKENS = 200
"""Most words and signs of a lesson that are read."""
MAX_PARTS = 4
"""Most parts of a clause between commas that together describe one tool."""
_TOKEN = re.compile(r"\w+(?:'\w+)?|[.,;:!?]")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


OPENERS = _set("for when whenever where if on in to with given once tasks questions")
"""First words of a clause that says what a lesson is about."""
VERBS = _set("use using uses used call calling try apply prefer choose go run start begin")
"""Words before what a task wants."""
_NOT = _set(
    "not never no cannot nor neither none rarely seldom hardly dont doesnt didnt cant wont shouldnt mustnt"
)
_SHUN = _set(
    "avoid avoids avoided avoiding skip skips skipping omit omits omitting forget forgets neglect refrain "
    "stop leave clear away ignore exclude forbid ban without except unlike"
)
"""Words that negate what follows, and undo a negation before them: "never forget", "not without"."""
ADVISES = VERBS | _NOT | _SHUN
"""Words with which advice begins."""
_SHORT = frozenset({"without", "except", "unlike"})
"""Those that reach no further than the next comma."""
_FLAWED = _set(
    "fail fails failed failing wrong useless worse worst harmful harms bad mistake mistaken misleading "
    "misleads avoided forbidden banned prohibited unhelpful poor"
)
"""Words that condemn the tool named before them."""
_PRAISE = _set("work works help helps needed right useful")
"""Words that condemn it behind a negation: "never works"."""
_AUXILIARY = _set("is are was were do does did can could should must may will would")
_RELATIVE = _set("that which who whose where")
_AGAINST = frozenset({"over", "than", "replace", "drop"})
"""Words that negate a tool right behind them: "prefer this over that"."""
_MERELY = frozenset({"only", "just", "merely", "simply"})
_STOPS = frozenset(".;!?")
_ARTICLES = frozenset({"the", "a", "an"})
_TURNS = _set("but however when if because since although though while otherwise yet")


_FORM = _set("answer answers answering reply respond")
"""Words of a clause about the form of the answer: "answer with JSON alone" means no tool."""
_JOINTS = _STOPS | _NOT | _SHUN | VERBS | _TURNS | {"then", "instead", "rather", "than", "over", "or"}
"""Tokens between clauses of which each may describe a tool."""


class Advice(NamedTuple):
    """What a text says about tools."""

    do: tuple[str, ...]
    """Tools to use, in the order in which the text names them."""
    avoid: tuple[str, ...]
    """Tools not to use."""
    rest: frozenset[str]
    """Stems of the content words outside the tools."""


def tokens_of(text: str) -> list[str]:
    """Return the first words and signs of `text` in lower case."""
    found = _TOKEN.finditer(text.casefold().replace("’", "'"))
    return [match[0] for match in islice(found, MAX_TOKENS)]


def read_advice(tokens: Sequence[str], *, warning: bool) -> Advice:
    """Return what `tokens` advise; a `warning` that negates nothing itself warns of all that it names."""
    found = _all_mentions(tokens)
    negative = _Scan(tokens, found).negative()
    if warning and not any(negative):
        negative = [True] * len(found)
    avoid = tuple(dict.fromkeys(m.tool for m, no in zip(found, negative, strict=True) if no))
    do = dict.fromkeys(m.tool for m, no in zip(found, negative, strict=True) if not no)
    inside = {place for m in found for place in range(m.start, m.end)}
    rest = content(" ".join(token for place, token in enumerate(tokens) if place not in inside))
    return Advice(tuple(tool for tool in do if tool not in avoid), avoid, rest)


def _all_mentions(tokens: Sequence[str]) -> list[Mention]:
    """Return the tools that `tokens` name and, in clauses that name none, those that they describe."""
    found = mentions(tokens)
    named = {place for m in found for place in range(m.start, m.end)}
    start = 0
    for end in range(len(tokens) + 1):
        if end == len(tokens) or tokens[end] in _JOINTS:
            clause = set(tokens[start:end])
            if not (named & set(range(start, end)) or clause & _FORM or clause <= _PRAISE):
                found += _described(tokens, start, end, strict=bool(named))
            start = end + 1
    return sorted(found)


def _described(tokens: Sequence[str], start: int, end: int, *, strict: bool) -> list[Mention]:
    """Return the tools that the parts of a clause between commas describe, the longest runs first."""
    edges = [start, *(i + 1 for i in range(start, end) if tokens[i] in ",:"), end]
    found: list[Mention] = []
    first = 0
    while first < len(edges) - 1:
        for last in range(min(first + MAX_PARTS, len(edges) - 1), first, -1):
            tool = described(" ".join(tokens[edges[first] : edges[last]]), strict=strict)
            if tool is not None:
                telling = [i for i in range(edges[first], edges[last]) if is_telling(tokens[i])]
                found.append(Mention(telling[0], _end(tokens, telling[-1] + 1, edges[last]), tool))
                first = last - 1
                break
        first += 1
    return found


def _end(tokens: Sequence[str], start: int, end: int) -> int:
    """Return where the words that belong to a description end: before a predicate, "is wrong"."""
    rest = (i for i in range(start, end) if tokens[i] in _AUXILIARY | _FLAWED)
    return next(rest, end)


class _Scan:
    """One pass over tokens, which finds the mentions that a negation reaches."""

    def __init__(self, tokens: Sequence[str], found: Sequence[Mention]) -> None:
        self._tokens = tokens
        self._found = found
        self._negative = [False] * len(found)
        self._on = False
        """Whether what follows is negated."""
        self._short = False
        """Whether that ends at the next comma."""
        self._fresh = False
        """Whether neither a comma nor a tool came since the negation."""
        self._firm = False
        """Whether it was set off by a comma, "never, ever, use": no verb ends it."""
        self._recent: list[int] = []
        """Mentions since the last comma, "then" or end of a clause: a condemnation behind them is theirs."""
        self._condemned = False

    def negative(self) -> list[bool]:
        """Return for each mention whether the text says not to use it."""
        starts = {m.start: i for i, m in enumerate(self._found)}
        place = 0
        while place < len(self._tokens):
            if place in starts:
                self._mention(starts[place])
                place = self._found[starts[place]].end
            else:
                self._token(place)
                place += 1
        self._close()
        return self._negative

    def _mention(self, which: int) -> None:
        if self._condemned:  # "split_words, not count_items": the negation was for what follows
            self._condemned = False
            self._recent = []
        behind = self._found[which].start - 1
        while behind >= 0 and self._tokens[behind] in _ARTICLES:
            behind -= 1
        self._negative[which] = self._on or (behind >= 0 and self._tokens[behind] in _AGAINST)
        self._recent.append(which)
        self._fresh = False

    def _close(self) -> None:
        """End the reach of what stands behind a tool."""
        if self._condemned:
            for which in self._recent:
                self._negative[which] = True
        self._recent = []
        self._condemned = False

    def _token(self, place: int) -> None:
        token = self._tokens[place]
        after = self._tokens[place + 1] if place + 1 < len(self._tokens) else ""
        if token in _STOPS or token in _TURNS or (token == "instead" and after != "of"):
            self._close()
            self._on = self._short = self._fresh = self._firm = False
        elif token in {",", ":", "then"}:
            self._close()
            self._firm |= self._fresh and self._tokens[place - 1] in _NOT
            if self._short:
                self._on = self._short = False
            self._fresh = False
        elif (token, after) in {("instead", "of"), ("rather", "than")}:
            self._on, self._short, self._fresh = not self._on, True, False
        elif token in VERBS:
            self._verb(place)
        elif token in _FLAWED and self._recent:
            self._condemned = not self._condemned
        elif token in _FLAWED and not self._on:
            self._on = self._fresh = True
        elif token in _SHUN:
            self._on = not (self._on and self._fresh)
            self._short, self._fresh = token in _SHORT, True
        elif (token in _NOT or token.endswith("n't")) and after not in _MERELY:
            self._deny(place)

    def _deny(self, place: int) -> None:
        """Negate what follows and, when it stands right behind a tool, that tool unless another follows."""
        direct = any(m.start == place + 1 for m in self._found)
        self._on, self._short, self._fresh = True, direct and place > 0, True
        if self._recent and self._denies_behind(place):
            self._condemned = self._short = True

    def _denies_behind(self, place: int) -> bool:
        """Return whether the negation at `place` is the predicate of the last tool: "it should not"."""
        between = self._tokens[self._found[self._recent[-1]].end : place]
        praised = not _PRAISE.isdisjoint(self._tokens[place + 1 : place + 2])
        should = bool(between) and between[-1] in _AUXILIARY and _RELATIVE.isdisjoint(between)
        return len(between) <= 1 or praised or should

    def _verb(self, place: int) -> None:
        """Let a verb behind a tool, a comma or "and" start over: "do not use this, use that"."""
        before = self._tokens[place - 1] if place else "."
        ended = any(m.end == place for m in self._found)
        if not self._firm and (ended or (before in {",", "and", "then"} and not self._fresh)):
            self._close()
            self._on = self._short = False
