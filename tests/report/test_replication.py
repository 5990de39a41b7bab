"""Learning runs of several seeds together: over common scenarios, doubted for all readings and looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.sweeps import make_run

from pytest_tfgrpo.metrics.comparison import Comparison
from pytest_tfgrpo.numerics.stats import paired_interval
from pytest_tfgrpo.report.replication import SeedResult, replication, replication_lines, what_differs
from pytest_tfgrpo.report.replication import seed_result as read_result


def comparison(gains: Mapping[str, float]) -> Comparison:
    """Return sweeps that gain so much at each scenario, whose family is its name up to the dot."""
    families = tuple(id_.partition(".")[0] for id_ in gains)
    before, after = [0.0] * len(gains), list(gains.values())
    return Comparison(
        ids=tuple(gains),
        before_K=tuple(before),
        after_K=tuple(after),
        families_K=families,
        difference=paired_interval(before, after, families),
    )


def seed_result(
    seed: int, gains: Mapping[str, float], as_zero: Mapping[str, float] | None = None
) -> SeedResult:
    return SeedResult(
        seed=seed,
        run_id=f"run-{seed}",
        library="l",
        split="eval",
        variants=frozenset({"start", f"end-{seed}"}),
        method=(("epochs", 3), ("stamp of actor", "a")),
        known=comparison(gains),
        as_zero=comparison(gains if as_zero is None else as_zero),
    )


def gains(gain: float, number: int = 12, *, spread: float = 0.01) -> dict[str, float]:
    return {f"f{n}": gain + spread * (n % 3 - 1) for n in range(number)}


THREE = [seed_result(n, gains(0.3 + n / 100)) for n in range(3)]


def test_a_run_shows_its_gain_and_what_it_has_in_common_with_other_seeds() -> None:
    stamps = {"eval": "e", "actor": "a", "settings": "s"}
    run = make_run({"a": [0.0, None], "b": [0.0]}, {"a": [1.0, 1.0], "b": [0.0]}, stamps=stamps)
    found = read_result(run)
    assert found is not None
    assert (found.seed, found.run_id, found.library, found.split) == (0, run.run_id, run.library.hash, "e")
    assert (found.known.difference.mean, found.known.ids) == (0.5, ("a", "b"))
    method = dict(found.method)
    assert method.keys() >= {"stamp of actor", "stamp of eval", "temperature_eval"}
    assert not method.keys() & {"seed", "stamp of settings"}
    other = read_result(replace(run, settings={**run.settings, "seed": 7}))
    assert other is not None
    assert (other.seed, what_differs(found, other)) == (7, "")
    changed = read_result(replace(run, settings={**run.settings, "temperature_eval": 0.9}))
    assert changed is not None
    assert what_differs(found, changed) == "temperature_eval"


def test_a_run_that_has_only_one_sweep_shows_nothing() -> None:
    assert read_result(make_run(final={"a": [1.0]})) is None


def side(results: list[SeedResult], looks: dict[str, tuple[str, ...]] | None = None) -> Any:
    return replication(results, looks or {})["claim"]["side"]


def text(results: list[SeedResult]) -> str:
    return " ".join(" ".join(replication_lines(replication(results, {}))).split())


def test_a_gain_of_every_seed_is_claimed_of_the_method() -> None:
    value = replication(THREE, {})
    assert value["gain"]["difference"] == pytest.approx(0.31)
    assert value["claim"] == {"looks": 1, "level": 0.05, "side": "better"}
    assert value["errors_as_zero"] is None
    assert "does better (level 0.05, 1 look at this eval split)" in text(THREE)
    assert "over 3 seeds x 12 scenarios" in text(THREE)
    assert side([seed_result(n, gains(-0.3)) for n in range(3)]) == "worse"
    assert side([seed_result(n, gains(0.0)) for n in range(3)]) is None


def test_two_seeds_claim_nothing_and_one_has_no_spread() -> None:
    value = replication(THREE[:2], {})
    assert (value["gain"]["ci95"], value["claim"]["side"]) == (None, None)
    assert "no interval: it takes 3 seeds" in text(THREE[:2])
    assert replication(THREE[:1], {})["gain"]["seed_std"] is None


def test_other_variants_that_looked_at_the_split_divide_the_level_and_own_ones_do_not() -> None:
    looks = {"eval": ("end-0", "end-1", "other", "start", "third"), "another": ("x", "y")}
    assert replication(THREE, looks)["claim"] == {
        "looks": 3,
        "level": pytest.approx(0.05 / 3),
        "side": "better",
    }


def test_a_claim_that_one_look_allows_may_be_too_much_for_many() -> None:
    weak = [seed_result(n, gains(0.04, spread=0.06)) for n in range(3)]
    assert side(weak) == "better"
    assert side(weak, {"eval": tuple(f"v{n}" for n in range(40))}) is None


def test_only_scenarios_with_a_gain_under_every_seed_count() -> None:
    fewer = seed_result(2, gains(0.32, 10))
    gain = replication([*THREE[:2], fewer], {})["gain"]
    assert (gain["n"], gain["families"], gain["just_these"]) == (10, 10, False)


def test_families_count_once_and_few_of_them_speak_of_just_these() -> None:
    related = {f"f{n % 4}.{n}": 0.3 for n in range(12)}
    value = replication([seed_result(n, related) for n in range(3)], {})
    assert (value["gain"]["n"], value["gain"]["families"], value["gain"]["just_these"]) == (12, 4, True)
    assert "does better" in text([seed_result(n, related) for n in range(3)])
    assert "just these 12 scenarios" in text([seed_result(n, related) for n in range(3)])


def test_errors_as_0_are_a_second_reading_and_a_claim_needs_both() -> None:
    doubtful = [seed_result(n, gains(0.3), gains(0.0)) for n in range(3)]
    value = replication(doubtful, {})
    assert value["claim"]["side"] is None
    assert value["errors_as_zero"]["difference"] == pytest.approx(0.0)
    assert "with errors as 0: +0.000" in text(doubtful)
    assert "nothing yet about this method" in text(doubtful)


def test_runs_of_one_method_differ_in_nothing_but_the_seed() -> None:
    other = replace(THREE[1], method=(("epochs", 4), ("stamp of judge", "j")))
    assert what_differs(THREE[0], THREE[1]) == ""
    assert what_differs(THREE[0], other) == "epochs, stamp of actor, stamp of judge"
