"""Learned effects: what earlier runs found of how much lessons do, which a library file keeps beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.lessons import LearnedEffects, Library
from pytest_tfgrpo.core.settings.agents import JUDGE_WEIGHT
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json, from_wire
from pytest_tfgrpo.numerics.effect_model import EffectPrior, EffectSpread

if TYPE_CHECKING:
    from pytest_tfgrpo.numerics.effect_model import EffectPrior

MOST_KEPT = 50
"""Latest runs that a library remembers."""
DIGITS = 16
DECIMALS = 6


def read_effects(path: Path, data: Json) -> tuple[LearnedEffects, ...]:
    """Return what the library file at `path` says of lessons in general; raises StoreError."""
    try:
        found = from_wire(tuple[LearnedEffects, ...], data)
        for number, known in enumerate(found):
            for mean, spread, weight in (known.on_topic, known.elsewhere):
                if not (abs(mean) < 100 and 0 < spread < 100 and 0 <= weight < 1e6):
                    raise ValueError(f"{number}: {mean!r}, spread {spread!r}, from {weight!r} lessons")
    except ValueError as error:
        raise StoreError(f"{path}: /effects: {error}; remove them, and tfgrpo learns them again") from None
    return found


def with_effects_of(library: Library, path: Path) -> Library:
    """Return `library` with what the latest run of the task learned of lessons, where it knows nothing of it.

    That lies in the library file that a run writes at `path`; one that cannot be read says nothing.
    """
    if library.effects:
        return library
    try:
        return replace(library, effects=read_effects(path, json.loads(read_plain(path)).get("effects", [])))
    except (OSError, ValueError, AttributeError, RecursionError, StoreError):
        return library


def measure_of_effects(
    stamps: Mapping[str, str], identities: Mapping[str, Json], settings: Mapping[str, object]
) -> str:
    """Return the stamp of what lessons' effects depend on: actor, judge, prompt packs and optimizer."""
    others = [identities.get("judge"), JUDGE_WEIGHT.recorded(settings), identities.get("optimizer")]
    return stamp([stamps.get("actor"), stamps.get("packs"), *others])[:DIGITS]


def prior_for(library: Library, *, series: str, measure: str) -> EffectPrior | None:
    """Return what runs of the same `measure` learned before the first one with the draws of `series`.

    So an equal run, or a replay, starts from what the run started from that it repeats.
    """
    found: EffectPrior | None = None
    for known in library.effects:
        if known.measure != measure:
            continue
        if known.series == series:
            break
        on, elsewhere = (
            EffectSpread(mean=mean, sd=sd, weight=weight)
            for mean, sd, weight in (known.on_topic, known.elsewhere)
        )
        found = EffectPrior(on_topic=on, elsewhere=elsewhere)
    return found


def with_effects(library: Library, prior: EffectPrior, *, run_id: str, series: str, measure: str) -> Library:
    """Return `library` with what a run has learned so far in the place of what it learned before."""
    if any((k.series, k.measure) == (series, measure) and k.run_id != run_id for k in library.effects):
        return library  # an equal run has said it
    new = LearnedEffects(
        run_id=run_id,
        series=series,
        measure=measure,
        on_topic=_figures(prior.on_topic.mean, prior.on_topic.sd, prior.on_topic.weight),
        elsewhere=_figures(prior.elsewhere.mean, prior.elsewhere.sd, prior.elsewhere.weight),
    )
    others = [k for k in library.effects if (k.run_id, k.measure) != (run_id, measure)]
    return replace(library, effects=(*others, new)[-MOST_KEPT:])


def _figures(mean: float, sd: float, weight: float) -> tuple[float, float, float]:
    return round(mean, DECIMALS), round(sd, DECIMALS), round(weight, DECIMALS)
