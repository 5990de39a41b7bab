"""Replication: what learning runs that differ only in their seed say together of the method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.settings import shaping
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.texts.text import few, interval, number, plural, scenarios_of, table, wrapped
from pytest_tfgrpo.metrics.comparison import Comparison, Sweeps, compare
from pytest_tfgrpo.metrics.looks import Looks, final_variant, variant_of
from pytest_tfgrpo.metrics.significance import ALPHA, Claim
from pytest_tfgrpo.numerics.replication import MIN_SEEDS, TwoWay, two_way_interval
from pytest_tfgrpo.suite.families import sweeps_of

SCHEMA = "tfgrpo.replication/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedResult:
    """What one run shows."""

    seed: int
    run_id: str
    library: str
    """Hash of the library that it learned."""
    split: str
    """Stamp of its eval split."""
    variants: frozenset[str]
    """What its sweeps of the eval split evaluated: the library at its start and at its end."""
    method: tuple[tuple[str, Any], ...]
    """What runs must share to be one method."""
    known: Comparison
    as_zero: Comparison
    """The same with errors as 0."""


def seed_result(run: Run) -> SeedResult | None:
    """Return what a run shows; None without a sweep before and after learning."""
    sweeps: Sweeps = sweeps_of(run)
    before, after = sweeps.before, sweeps.after
    if before is None or after is None:
        return None
    variants = {variant_of(run, before.library_hash), final_variant(run) or ""}
    settings = {name: run.settings.get(name) for name in shaping("prompts", "answers") if name != "seed"}
    stamps = {f"stamp of {name}": value for name, value in run.stamps.items() if name != "settings"}
    return SeedResult(
        seed=SEED.of(run.settings),
        run_id=run.run_id,
        library=run.library.hash,
        split=run.stamps.get("eval", ""),
        variants=frozenset(variants),
        method=tuple((settings | stamps).items()),
        known=compare(sweeps.rows_before, sweeps.rows_after),
        as_zero=compare(sweeps.rows_before, sweeps.rows_after, errors_as_zero=True),
    )


def what_differs(one: SeedResult, other: SeedResult) -> str:
    """Return which settings and inputs of two runs differ besides the seed; empty when none do."""
    a, b = dict(one.method), dict(other.method)
    return few([name for name in sorted(a.keys() | b.keys()) if a.get(name) != b.get(name)])


def replication(results: Sequence[SeedResult], looks: Looks) -> dict[str, Any]:
    """Return the gain of the method over the scenarios that all `results` have, as ``replication.json``.

    It is claimed at 0.05 / k, where k counts this replication and the variants in `looks` that are not its
    own.
    """
    own = frozenset[str]().union(*(result.variants for result in results))
    k = 1 + len(set(looks.get(results[0].split, ())) - own)
    readings = [[result.known for result in results], [result.as_zero for result in results]]
    found = [_over_seeds(reading, 0.95) for reading in readings]
    sides = (
        {_side(_over_seeds(reading, 1 - ALPHA / k)) for reading in readings} if len(results) > 1 else {None}
    )
    errors = any(
        a != b for a, b in zip(*([c.differences_K for c in reading] for reading in readings), strict=True)
    )
    return {
        "schema": SCHEMA,
        "seeds": [_row(result) for result in results],
        "gain": _figures(readings[0], found[0]),
        "errors_as_zero": _figures(readings[1], found[1]) if errors else None,
        "claim": {"looks": k, "level": ALPHA / k, "side": sides.pop() if len(sides) == 1 else None},
    }


def _common(reading: Sequence[Comparison]) -> list[str]:
    """Return the ids of the scenarios that have a gain under every seed, in order."""
    everywhere = set.intersection(*(set(compared.ids) for compared in reading))
    return [id_ for id_ in reading[0].ids if id_ in everywhere]


def _over_seeds(reading: Sequence[Comparison], level: float) -> TwoWay:
    ids = _common(reading)
    rows = [dict(zip(compared.ids, compared.differences_K, strict=True)) for compared in reading]
    family_of = dict(zip(reading[0].ids, reading[0].families_K, strict=True))
    gains_SK = [[row[id_] for id_ in ids] for row in rows]
    return two_way_interval(gains_SK, [family_of[id_] for id_ in ids], level=level)


def _side(found: TwoWay) -> Claim | None:
    if found.low is None or found.high is None:
        return None
    return "better" if found.low > 0 else "worse" if found.high < 0 else None


def _figures(reading: Sequence[Comparison], found: TwoWay) -> dict[str, Any]:
    ids = _common(reading)
    family_of = dict(zip(reading[0].ids, reading[0].families_K, strict=True))
    return {
        "n": len(ids),
        "families": len({family_of[id_] for id_ in ids}),
        "just_these": found.just_these,
        "difference": found.mean,
        "ci95": None if found.low is None else [found.low, found.high],
        "seed_std": None if found.seed_std != found.seed_std else found.seed_std,
    }


def _row(result: SeedResult) -> dict[str, Any]:
    difference = result.known.difference
    return {
        "seed": result.seed,
        "run_id": result.run_id,
        "library": result.library,
        "difference": difference.mean,
        "ci95": difference.ci95,
    }


def replication_lines(value: dict[str, Any], width: int = 80) -> list[str]:
    """Return a replication for the terminal: a row for each seed, and what they say together."""
    rows = [
        [str(row["seed"]), row["run_id"], f"{row['difference']:+.3f}", interval(row["ci95"], "+.3f")]
        for row in value["seeds"]
    ]
    shown = table(["seed", "run", "gain", "95 % interval of this library"], rows, left=2)
    return [*shown, "", *wrapped(_gain(value), width, hanging="      "), *_claim(value, width)]


def _gain(value: dict[str, Any]) -> str:
    gain, seeds = value["gain"], len(value["seeds"])
    counted = f"{plural(seeds, 'seed')} x {scenarios_of(gain['n'], gain['families'], gain['just_these'])}"
    if gain["ci95"] is None:
        why = f"it takes {MIN_SEEDS} seeds" if seeds < MIN_SEEDS else "too few scenarios"
        return f"gain  {gain['difference']:+.3f}, {counted}; no interval: {why}"
    text = f"gain  {gain['difference']:+.3f}, 95 % interval {interval(gain['ci95'], '+.3f')}, over {counted}"
    text += f"; seeds alone differ by a standard deviation of {number(gain['seed_std'])}"
    zero = value["errors_as_zero"]
    if zero is not None:
        text += f"; with errors as 0: {zero['difference']:+.3f}, {interval(zero['ci95'], '+.3f')}"
    return text


def _claim(value: dict[str, Any], width: int) -> list[str]:
    claim, gain = value["claim"], value["gain"]
    suite = f"just these {gain['n']} scenarios" if gain["just_these"] else "this suite"
    of = f"(level {claim['level']:.3g}, {plural(claim['looks'], 'look')} at this eval split)"
    if gain["ci95"] is None:
        text = "nothing about the method: each gain above speaks of its own library"
    elif claim["side"] is None:
        text = f"nothing yet about this method on {suite} {of}"
    else:
        text = f"this method on {suite} does {claim['side']} {of}"
    return wrapped(f"claim  {text}", width, hanging="       ")
