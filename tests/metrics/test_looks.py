"""Looks: variants that an eval split has seen, and what they leave of a claim."""

from dataclasses import replace
from typing import Any

from support.sweeps import SETTINGS, evenly, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.metrics.looks import evaluations, final_variant, merged, split_stamp, variant_of
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.trust import claim
from pytest_tfgrpo.report.value import build

BETTER = {f"s{n}": [1, 1] for n in range(8)} | {f"t{n}": [0, 0] for n in range(22)}
BEFORE = {f"s{n}": [0, 0] for n in range(8)} | {f"t{n}": [0, 0] for n in range(22)}


def seen(run: Run, *variants: str) -> Run:
    return replace(run, preflight={"evaluations": {"earlier": 0, "runs": [], "variants": list(variants)}})


def looks(run: Run) -> int:
    value = evaluations(run, Sweeps(run))
    assert value is not None
    return value["looks"]


def test_a_variant_is_actor_packs_library_and_the_settings_of_answers() -> None:
    run = make_run(final=evenly(2, [1]))
    own = variant_of(run, "a")
    others = [
        variant_of(run, "b"),
        variant_of(replace(run, stamps={**run.stamps, "actor": "x"}), "a"),
        variant_of(replace(run, stamps={**run.stamps, "packs": "x"}), "a"),
        variant_of(replace(run, settings={**SETTINGS, "max_steps": 3}), "a"),
        variant_of(replace(run, settings={**SETTINGS, "temperature_eval": 1.0}), "a"),
    ]
    assert len({own, *others}) == 6
    same = replace(run, settings={**SETTINGS, "seed": 7, "eval_rollouts": 9, "epochs": 5}, run_id="other")
    assert variant_of(same, "a") == own


def test_a_repeat_of_one_build_is_no_further_look() -> None:
    run = make_run(final=evenly(2, [1]))
    own = final_variant(run)
    assert own is not None
    assert (looks(seen(run)), looks(seen(run, own))) == (1, 1)
    assert (looks(seen(run, "other")), looks(seen(run, own, "other", "third"))) == (2, 3)


def test_a_run_without_a_final_sweep_is_no_look_of_its_own() -> None:
    assert looks(seen(make_run(evenly(2, [1])), "other", "third")) == 2


def test_the_library_that_a_gain_is_measured_against_is_no_look() -> None:
    run = make_run(evenly(2, [0]), evenly(2, [1]))
    start = variant_of(run, "b" * 64)
    assert looks(seen(run, start)) == 1
    assert looks(seen(run, start, "other")) == 2


def test_a_run_that_wrote_no_variants_counts_its_earlier_runs() -> None:
    run = make_run(final=evenly(2, [1]))
    assert looks(replace(run, preflight={"evaluations": {"earlier": 3, "runs": []}})) == 4
    assert evaluations(run, Sweeps(run)) is None


def test_the_variant_of_a_run_is_that_of_its_last_sweep() -> None:
    run = make_run(final=evenly(2, [1]))
    again = replace(run.phases[-1], library_hash="e" * 64)
    assert final_variant(replace(run, phases=(*run.phases, again))) == variant_of(run, "e" * 64)


def test_a_run_that_evaluates_only_what_it_is_measured_against_is_one_look() -> None:
    run = make_run(evenly(2, [0]), evenly(2, [1]))
    same = replace(run.phases[-1], library_hash=run.phases[0].library_hash)
    assert looks(seen(replace(run, phases=(run.phases[0], same)))) == 1


def test_the_stamp_of_a_split_is_that_of_its_tasks_in_any_order_each_once() -> None:
    assert split_stamp(["b", "a", "b"]) == split_stamp(["a", "b"]) != split_stamp(["a"])


def test_looks_of_several_files_are_merged_by_split() -> None:
    assert merged({"x": ("b", "a")}, {}, {"x": ("c", "a"), "w": ("d",)}) == {
        "w": ("d",),
        "x": ("a", "b", "c"),
    }


def report(run: Run) -> Any:
    value = build(run, None)
    assert violations("report", value) == []
    return value


def test_a_gain_is_claimed_of_this_library_and_not_of_the_method() -> None:
    value = report(seen(make_run(BEFORE, BETTER)))
    known = {"looks": 1, "level": 0.05, "p": 0, "side": "better", "equal_within": None}
    assert value["gain"]["claim"] | {"p": 0} == known
    assert claim(value).startswith("this library does better: p 0.00")
    assert claim(value).endswith(
        " (below 0.05 is needed); tfgrpo replicate tests the method; no placebo was run"
    )
    assert "shown  this library does better" in "\n".join(terminal(value, verbosity=1))
    assert "shown  " not in "\n".join(terminal(value))


def test_after_many_looks_the_same_gain_is_no_claim_and_a_fresh_split_is_advised() -> None:
    value = report(seen(make_run(BEFORE, BETTER), *(f"v{n}" for n in range(9))))
    assert (value["gain"]["claim"]["looks"], value["gain"]["claim"]["side"]) == (10, None)
    assert value["gain"]["ci95"][0] > 0
    assert "nothing yet about this library" in claim(value)
    assert claim(value).endswith(
        "(below 0.005 is needed after 10 variants on this eval split, and an interval beside 0); a fresh "
        "split allows 0.05"
    )
    assert "10 variants, this one included," in " ".join(" ".join(terminal(value)).split())


def test_domains_share_the_level() -> None:
    dates = {f"date{n}": [0, 0] for n in range(10)}
    gained = {f"date{n}": [1, 1] if n < 8 else [0, 0] for n in range(10)}
    run = make_run(BEFORE | dates, BEFORE | gained)
    assert [row["claim"] for row in report(seen(run))["domains"]] == ["better", None]
    few = report(seen(run, *(f"v{n}" for n in range(9))))
    assert [row["claim"] for row in few["domains"]] == [None, None]
    assert "open: within chance (Holm's p of 0.005 or more)" in "\n".join(terminal(few, verbosity=1))
