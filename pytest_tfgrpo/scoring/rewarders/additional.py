"""Additional rewarders: their names, and what they return as columns of scores with the reasons for them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from pytest_tfgrpo.core.errors import RewarderError, SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import cut
from pytest_tfgrpo.numerics.arrays import Floats, np
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import RewardBatch, Rewarder
from pytest_tfgrpo.scoring.rewarders.judge import JudgeRewarder

TAKEN = ("gt_score", "reward", "relative_rank", "advantage")
"""Names of scores that every rollout has."""
SOURCES = ("check", "extra", "judge", "test")
"""First parts of the names of other metrics."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A dot separates the name of a rewarder from that of one of its parts."""
MAX_PARTS = 50
MAX_EVIDENCE = 500
"""Characters kept of what a rewarder says of one score."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreColumns:
    """The scores of one rewarder for a batch of N rollouts."""

    own_N: Floats
    """Its scores, which its weight adds to the reward; NaN: none."""
    parts: Mapping[int, Mapping[str, float | None]] = field(default_factory=dict)
    """Scores of its parts, by rollout and full name; None: no score."""
    reasons: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """What it says of scores, by rollout and name."""


def require_rewarders(rewarders: Sequence[Rewarder]) -> None:
    """Raise SettingError unless each rewarder has a name of its own that can be shown, and a fit weight."""
    seen = set(TAKEN)
    for rewarder in rewarders:
        for attribute in ("name", "weight", "__call__"):
            if not hasattr(rewarder, attribute):
                raise SettingError(f"rewarder {short(rewarder)} has no attribute {attribute!r}; add it")
        name, weight = rewarder.name, rewarder.weight
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise SettingError(
                f"the name of a rewarder must be 1 to 64 letters, digits, '_' and '-', not {short(name)}, "
                "as it names a metric in files, gates and reports"
            )
        if name in TAKEN:
            raise SettingError(
                f"the rewarder name {name!r} belongs to a metric of every rollout; rename yours"
            )
        if name in SOURCES and not isinstance(rewarder, JudgeRewarder):
            raise SettingError(
                f"the rewarder name {name!r} begins the names of other metrics ({name}.*); rename yours"
            )
        if name in seen:
            raise SettingError(f"two rewarders are called {name!r}; rename one")
        if not isinstance(weight, int | float) or not 0 <= weight <= sys.float_info.max:
            raise SettingError(
                f"rewarder {name!r} has weight {short(weight)}; it must be a finite number >= 0"
            )
        seen.add(name)


def columns_of(rewarder: Rewarder, batch: RewardBatch) -> ScoreColumns:
    """Return the scores of a rewarder for a batch; raises RewarderError when it breaks its contract."""
    n = len(batch.rollouts)
    try:
        result = rewarder(batch)
        told = isinstance(result, list | tuple) and any(isinstance(x, tuple | Mapping) for x in result)
        own_N = None if told else np.array(result, dtype=np.float64)
    except Exception as error:
        raise RewarderError(
            f"rewarder {rewarder.name!r} raised {type(error).__name__}: {error}; it must return {n} results, "
            "each a number in [0, 1], a pair of number and reason, or a mapping of names to those; "
            "NaN for no score"
        ) from error
    shape = (len(result),) if own_N is None else own_N.shape
    if shape != batch.gt_N.shape:
        raise RewarderError(
            f"rewarder {rewarder.name!r} returned scores of shape {shape}; "
            f"it must return one per rollout, shape {batch.gt_N.shape}"
        )
    if own_N is None:
        return _told(rewarder, batch, result)
    own_N[~batch.scored_N] = np.nan
    bad = np.flatnonzero((own_N < 0) | (own_N > 1))
    if bad.size:
        raise _out_of_range(rewarder.name, float(own_N[bad[0]]), batch, int(bad[0]))
    return ScoreColumns(own_N=own_N)


def _told(rewarder: Rewarder, batch: RewardBatch, result: Sequence[Any]) -> ScoreColumns:
    """Return the columns of results with reasons or parts."""
    name = rewarder.name
    own = [math.nan] * len(result)
    parts: dict[int, dict[str, float | None]] = {}
    reasons: dict[int, dict[str, str]] = {}
    for n, (item, scored) in enumerate(zip(result, batch.scored_N.tolist(), strict=True)):
        if not scored:
            continue
        if isinstance(item, Mapping):
            parts[n], why = _parts(name, item, batch, n)
            known = [value for value in parts[n].values() if value is not None]
            own[n] = math.fsum(known) / len(known) if known else math.nan
            if why:
                reasons[n] = why
            continue
        own[n] = _score(name, item, batch, n)
        if isinstance(item, tuple) and item[1]:
            reasons[n] = {name: _kept(item[1])}
    return ScoreColumns(own_N=np.array(own, dtype=np.float64), parts=parts, reasons=reasons)


def _parts(
    rewarder: str, item: Mapping[Any, Any], batch: RewardBatch, n: int
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the scores of the parts of one result, and the reasons for them, by full name."""
    if len(item) > MAX_PARTS:
        raise RewarderError(
            f"rewarder {rewarder!r} names {len(item)} scores of one rollout; at most {MAX_PARTS} are allowed"
        )
    scores: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for part, one in item.items():
        name = _part_name(rewarder, part) if isinstance(part, str) else None
        if name is None:
            raise RewarderError(
                f"rewarder {rewarder!r} names a score {short(part)}; a name is 1 to 64 letters, digits, "
                "'_' and '-'"
            )
        value = _score(name, one, batch, n)
        scores[name] = None if value != value else value
        if isinstance(one, tuple) and one[1]:
            reasons[name] = _kept(one[1])
    return scores, reasons


@lru_cache(maxsize=1024)
def _part_name(rewarder: str, part: str) -> str | None:
    """Return the full name of a part; None for one that is unfit. The same ones come with each rollout."""
    return f"{rewarder}.{part}" if NAME.fullmatch(part) else None


def _kept(text: str) -> str:
    """Return what is kept of a reason; many rollouts get the same words."""
    return _without_secrets(text) if len(text) <= MAX_EVIDENCE else cut(redact(text), MAX_EVIDENCE)


@lru_cache(maxsize=512)
def _without_secrets(text: str) -> str:
    return cut(redact(text), MAX_EVIDENCE)


def _score(name: str, item: object, batch: RewardBatch, n: int) -> float:
    """Return the score of one result, a number or a pair of number and reason; NaN for no score."""
    value = item
    if type(item) is float and 0.0 <= item <= 1.0:
        return item
    if isinstance(item, tuple):
        if len(item) != 2 or not isinstance(item[1], str):
            raise RewarderError(
                f"rewarder {name!r} returned {short(item)} for rollout {batch.rollouts[n].rollout_id!r}; "
                "a result with a reason is (number, text)"
            )
        value = item[0]
        if type(value) is float and 0.0 <= value <= 1.0:
            return value
    if value is None:
        return math.nan
    try:
        score = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise RewarderError(
            f"rewarder {name!r} returned {short(value)} for rollout {batch.rollouts[n].rollout_id!r}; "
            "a score is a number in [0, 1], NaN for no score"
        ) from None
    if score < 0 or score > 1:
        raise _out_of_range(name, score, batch, n)
    return score


def _out_of_range(name: str, value: float, batch: RewardBatch, n: int) -> RewarderError:
    return RewarderError(
        f"rewarder {name!r} returned {value!r} for rollout {batch.rollouts[n].rollout_id!r}; "
        "scores must lie in [0, 1], NaN for no score"
    )
