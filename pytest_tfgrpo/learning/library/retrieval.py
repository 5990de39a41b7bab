"""Retrieval: which lessons of a library a prompt carries, and why the others are left out (decision 16)."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.texts.words import content

DOMINANCE_FACTOR = 0.5
"""What each earlier pick from the same source group costs a candidate."""
MIN_RELEVANCE = 0.02
"""Below it a lesson shares nothing of substance with the prompt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval:
    """What was picked, in order of preference, and what was not."""

    picked: tuple[Experience, ...]
    left_out: tuple[tuple[str, str], ...]
    """(id, reason) of every other candidate."""
    stamp_mismatches: int
    """Candidates learned under another prompt pack (decision 13)."""


def select(
    candidates: Sequence[Experience], *, pack: PromptPack, domain: str, prompt: str, limit: int
) -> Retrieval:
    """Return at most `limit` of `candidates` for a scenario's `prompt`, by the policy of `pack`."""
    if not candidates:
        return Retrieval(picked=(), left_out=(), stamp_mismatches=0)
    left_out: list[tuple[str, str]] = []
    able: list[tuple[float, Experience]] = []
    mismatches = 0
    for experience in candidates:
        raw = raw_score(experience, pack.weights)
        if experience.domain != domain:
            left_out.append((experience.id, f"its domain is {experience.domain!r}"))
        elif experience.stamp_signature != pack.stamp:
            mismatches += 1
            left_out.append((experience.id, f"its stamp is not that of prompt pack {pack.id!r}"))
        elif raw < pack.min_reward:
            left_out.append((experience.id, f"raw score {raw:.3g} is below min_reward {pack.min_reward:g}"))
        else:
            able.append((raw, experience))
    if pack.retrieval == "relevant":
        able, irrelevant = weigh_by_relevance(able, prompt)
        left_out += [(e.id, "it shares no content word with the prompt") for e in irrelevant]
    picked = pick(able, limit)
    if len(picked) < len(able):
        chosen = {id(e) for e in picked}
        left_out += [(e.id, "no slot left") for _, e in able if id(e) not in chosen]
    return Retrieval(picked=picked, left_out=tuple(left_out), stamp_mismatches=mismatches)


def raw_score(experience: Experience, weights: tuple[float, float]) -> float:
    """Return ``w1*gt_score + w2*relative_rank``; total_reward stands in where a lesson has that."""
    return weights[0] * experience.reward.value + weights[1] * experience.reward.relative_rank


def recency(created_at: str) -> str:
    """Return a text that orders ISO 8601 times in UTC, with or without a fraction of a second."""
    return created_at.removesuffix("Z").removesuffix("+00:00")


def pick(scored: Iterable[tuple[float, Experience]], limit: int) -> tuple[Experience, ...]:
    """Return the greedy choice of at most `limit`, each earlier pick from a source group halving a score.

    Ties go to the newest, then by text, then by id: ids contain the run's id, and equal runs must pick alike.
    """
    # Scores only ever fall, so a stale entry that comes up is put back at its present score.
    order = sorted(scored, key=lambda s: (s[1].summary32, s[1].id))
    order.sort(key=lambda s: recency(s[1].created_at), reverse=True)
    heap = [(-score, place, 0) for place, (score, _) in enumerate(order)]
    heapq.heapify(heap)
    taken: Counter[str] = Counter()
    picked: list[Experience] = []
    while heap and len(picked) < limit:
        _, place, seen = heap[0]
        score, experience = order[place]
        earlier = taken[experience.group_id]
        if earlier == seen:
            heapq.heappop(heap)
            picked.append(experience)
            taken[experience.group_id] += 1
        else:
            heapq.heapreplace(heap, (-score * DOMINANCE_FACTOR**earlier, place, earlier))
    return tuple(picked)


def weigh_by_relevance(
    scored: Sequence[tuple[float, Experience]], prompt: str
) -> tuple[list[tuple[float, Experience]], list[Experience]]:
    """Return the scored experiences that bear on `prompt`, times their relevance to it, and the others.

    Relevance is the cosine, in [0, 1], between the content words of lesson and prompt, each word weighted by
    how few of the lessons contain it: what all lessons share distinguishes none of them.
    """
    corpus = _corpus(tuple(e.summary32 for _, e in scored))
    relevances = corpus.relevances(content(prompt))
    able, irrelevant = [], []
    for (score, experience), relevance in zip(scored, relevances, strict=True):
        if relevance < MIN_RELEVANCE:
            irrelevant.append(experience)
        else:
            able.append((score * relevance, experience))
    return able, irrelevant


def relevances(texts: tuple[str, ...], prompt: str) -> tuple[float, ...]:
    """Return how much each lesson, by its text, bears on `prompt`: cosines in [0, 1]."""
    return tuple(_corpus(texts).relevances(content(prompt)))


class _Corpus:
    """The lessons that compete for a prompt, as weighted bags of words."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._terms = [content(text) for text in texts]
        document_count: Counter[str] = Counter()
        for terms in self._terms:
            document_count.update(terms)
        self._weight = {t: math.log((len(texts) + 1) / n) for t, n in document_count.items()}
        self._norm = [math.sqrt(self._total(terms)) for terms in self._terms]

    def relevances(self, prompt: frozenset[str]) -> Iterator[float]:
        known = prompt & self._weight.keys()
        prompt_norm = math.sqrt(self._total(known))
        for terms, norm in zip(self._terms, self._norm, strict=True):
            shared = terms & known
            yield self._total(shared) / (norm * prompt_norm) if shared else 0.0

    def _total(self, terms: Iterable[str]) -> float:
        # Sets of texts iterate in another order in every process: fsum makes the sum exact all the same.
        return math.fsum(map(self._weight.__getitem__, terms))


@lru_cache(maxsize=64)
def _corpus(texts: tuple[str, ...]) -> _Corpus:
    return _Corpus(texts)
