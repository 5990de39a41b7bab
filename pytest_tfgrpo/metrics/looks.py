"""Looks: which variants an eval split has seen, of which one could have chosen the best.

If you evaluate many variants on one split and keep the best, you select on the split, and its score is too
high: Dwork et al. 2015, "The reusable holdout". A repeat of one build is no further look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NotRequired, TypeAlias, TypedDict

from pytest_tfgrpo.core.settings import shaping
from pytest_tfgrpo.core.wire.stamp import combined_stamp, stamp

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Run
    from pytest_tfgrpo.metrics.comparison import Sweeps

Looks: TypeAlias = Mapping[str, tuple[str, ...]]
"""Variants swept, by the stamp of the eval split; sorted."""
_DIGITS = 16


class Evaluations(TypedDict):
    """Earlier runs on the eval split, and how many variants it has seen with this one."""

    earlier: int
    runs: list[str]
    looks: NotRequired[int]


def variant_of(run: Run, library_hash: str) -> str:
    """Return what a sweep evaluates: actor, prompt packs, library, and the settings that shape answers."""
    answers = {name: run.settings.get(name) for name in (*shaping("answers"), "temperature_eval")}
    of = {"actor": run.stamps.get("actor"), "packs": run.stamps.get("packs"), "library": library_hash}
    return stamp({**of, "answers": answers})[:_DIGITS]


def final_variant(run: Run) -> str | None:
    """Return the variant of the last sweep of the eval split; None without one."""
    sweep = next((result for result in reversed(run.phases) if result.phase.mode == "eval"), None)
    return None if sweep is None else variant_of(run, sweep.library_hash)


def split_stamp(stamps: Iterable[str]) -> str:
    """Return the stamp of a set of tasks, whatever the scenarios are called."""
    return combined_stamp(set(stamps))


def merged(*looks: Looks) -> dict[str, tuple[str, ...]]:
    """Return all variants of all `looks`."""
    found: dict[str, set[str]] = {}
    for one in looks:
        for split, variants in one.items():
            found.setdefault(split, set()).update(variants)
    return {split: tuple(sorted(variants)) for split, variants in sorted(found.items())}


def evaluations(run: Run, sweeps: Sweeps) -> Evaluations | None:
    """Return what was known of earlier evaluations before a run, and how many looks its own is among.

    The library that its gain is measured against is no look: nobody could choose it for a gain over itself.
    """
    known = run.preflight.get("evaluations")
    if known is None:
        return None
    variants: Sequence[str] = known.get("variants", [f"run {n}" for n in range(known["earlier"])])
    own = final_variant(run)
    seen = {*variants, *([] if own is None else [own])}
    if sweeps.before is not None:
        seen -= {variant_of(run, sweeps.before.library_hash)}
    return {"earlier": known["earlier"], "runs": known["runs"], "looks": max(len(seen), 1)}
