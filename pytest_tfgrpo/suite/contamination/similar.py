"""Similar texts: pairs that share most of their rare word sequences, found without comparing all pairs.

Lee et al. 2021, "Deduplicating Training Data Makes Language Models Better", find near-duplicates by shingles
likewise. Suites of tasks differ from crawled text in one thing: many tasks share their instructions on
purpose. A sequence that many texts have is such an instruction and says nothing of a pair.

Axes: ``_P`` runs over postings (a sequence in a text), ``_C`` over pairs of texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_tfgrpo.numerics.arrays import np

if TYPE_CHECKING:
    import numpy.typing as npt

LENGTH = 3
"""Words of a sequence. Wording variants of one question share 3 words in a row in 1 of 200 pairs."""
COMMON = 8
"""Texts beyond which a sequence is an instruction that tasks share."""
MIN_SHARED = 5
"""Minimum sequences for a comparison of two texts."""
MIN_JACCARD = 0.6
MIN_CONTAINED = 0.8
"""Of the shorter text: the longer one is that with something added."""
MIN_CONTAINED_SHARED = 8
_PAIRS = 4_000_000
"""Most pairs counted; sequences that more texts share are left out first."""

Places: TypeAlias = "npt.NDArray[np.int64]"
Hashes: TypeAlias = "npt.NDArray[np.uint64]"
_BASE = 0x9E3779B97F4A7C15


class Pair(NamedTuple):
    """Two texts by their place, the first before the second."""

    first: int
    second: int
    similarity: float
    """The larger of the Jaccard index of their sequences, and the share of the shorter text in the longer."""


def similar(texts: Sequence[Sequence[str]], sides: Sequence[int] | None = None) -> Iterator[Pair]:
    """Yield the similar pairs of `texts`, lists of words that all differ; most similar first.

    `sides` are bits: a pair is looked at when one text has a side that the other one lacks, or both have
    several; None looks at all pairs.
    """
    text_P, hash_P = _postings(texts)
    known_P = _rare(hash_P)
    text_P, hash_P = text_P[known_P], hash_P[known_P]
    size = np.bincount(text_P, minlength=len(texts)).astype(np.int64)
    first_C, second_C, shared_C = _shared(
        text_P, hash_P, len(texts), None if sides is None else np.asarray(sides, dtype=np.int64)
    )
    smaller_C = np.minimum(size[first_C], size[second_C])
    jaccard_C = shared_C / (size[first_C] + size[second_C] - shared_C)
    contained_C = shared_C / smaller_C
    same_C = (jaccard_C >= MIN_JACCARD) & (shared_C >= MIN_SHARED)
    added_C = (contained_C >= MIN_CONTAINED) & (shared_C >= MIN_CONTAINED_SHARED)
    similarity_C = np.maximum(jaccard_C, np.where(added_C, contained_C, 0.0))
    chosen = np.flatnonzero(same_C | added_C)
    for i in chosen[np.lexsort((second_C[chosen], first_C[chosen], -similarity_C[chosen]))]:
        yield Pair(int(first_C[i]), int(second_C[i]), float(similarity_C[i]))


def _postings(texts: Sequence[Sequence[str]]) -> tuple[Places, Hashes]:
    """Return text and hash of every sequence of each text, once per text, sorted by hash and text."""
    ids: dict[str, int] = {}
    word_of = np.fromiter(
        (ids.setdefault(word, len(ids)) for text in texts for word in text), dtype=np.uint64
    )
    lengths = np.fromiter((len(text) for text in texts), dtype=np.int64, count=len(texts))
    if word_of.size < LENGTH:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    mixed = _mixed(word_of + np.uint64(1))
    hashes = mixed[: mixed.size - LENGTH + 1].copy()
    for offset in range(1, LENGTH):
        hashes = _mixed(hashes * np.uint64(_BASE) + mixed[offset : mixed.size - LENGTH + 1 + offset])
    text_of = np.repeat(np.arange(len(texts), dtype=np.int64), lengths)
    within = text_of[: hashes.size] == text_of[LENGTH - 1 :]
    text_P, hash_P = text_of[: hashes.size][within], hashes[within]
    order = np.lexsort((text_P, hash_P))
    text_P, hash_P = text_P[order], hash_P[order]
    new_P = np.ones(text_P.size, dtype=bool)
    new_P[1:] = (text_P[1:] != text_P[:-1]) | (hash_P[1:] != hash_P[:-1])
    return text_P[new_P], hash_P[new_P]


def _mixed(x: Hashes) -> Hashes:
    """Return the finaliser of SplitMix64: Steele, Lea and Flood 2014."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _runs(hash_P: Hashes) -> tuple[Places, Places]:
    """Return start and length of each run of equal hashes."""
    starts = np.flatnonzero(np.r_[True, hash_P[1:] != hash_P[:-1]]) if hash_P.size else np.empty(0, np.int64)
    return starts, np.diff(np.r_[starts, hash_P.size])


def _rare(hash_P: Hashes) -> npt.NDArray[np.bool_]:
    """Return which postings are of a sequence that at most COMMON texts have."""
    _, lengths = _runs(hash_P)
    limit = next(k for k in range(COMMON, 0, -1) if k == 1 or _pairs_below(lengths, k) <= _PAIRS)
    return np.repeat(lengths <= limit, lengths)


def _pairs_below(lengths: Places, limit: int) -> int:
    known = lengths[lengths <= limit]
    return int((known * (known - 1) // 2).sum())


def _shared(text_P: Places, hash_P: Hashes, n: int, sides: Places | None) -> tuple[Places, Places, Places]:
    """Return the pairs across sides that share a sequence, and how many they share."""
    starts, lengths = _runs(hash_P)
    pairs = [np.empty(0, dtype=np.int64)]
    for i in range(COMMON):
        for j in range(i + 1, COMMON):
            at = starts[lengths > j]
            first, second = text_P[at + i], text_P[at + j]
            if sides is not None:
                both = sides[first] | sides[second]
                across = (both & (both - 1)) != 0
                first, second = first[across], second[across]
            pairs.append(first * n + second)
    key_C, shared_C = np.unique(np.concatenate(pairs), return_counts=True)
    return key_C // max(n, 1), key_C % max(n, 1), shared_C
