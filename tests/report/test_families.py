"""Families in reports: how many there are, how alike they gain, and what untaught families gain."""

from dataclasses import replace

import pytest
from support.report.families import learned, report_of, told

from pytest_tfgrpo.report.blocks.families import FAMILIES, FamiliesBlock


def test_the_gain_of_families_that_training_has_stands_apart_from_that_of_others() -> None:
    found = report_of(learned(40, 5, 20))["families"]
    assert (found["scenarios"], found["families"], found["effective"]) == (200, 40, 40.0)
    seen, unseen = found["seen"], found["unseen"]
    assert seen is not None
    assert unseen is not None
    assert (seen["families"], seen["difference"], unseen["families"]) == (20, pytest.approx(0.375), 20)
    assert unseen["difference"] == 0
    assert seen["ci95"] is not None
    assert unseen["ci95"] is not None
    assert 0 < seen["ci95"][0] < 0.375 < seen["ci95"][1]
    assert found["icc"] == pytest.approx(0.527, abs=0.001)


def test_that_training_has_all_families_or_none_is_said() -> None:
    assert "training has them all, so the gain says nothing of other families" in told(learned(24, 2, 24))
    assert "training has none of them" in told(learned(24, 2, 0))


def test_a_suite_without_families_says_nothing_of_them() -> None:
    run = learned(0, 0, 0, without=30)
    assert "families" not in report_of(run)
    assert "families" not in told(run)


@pytest.mark.parametrize(
    ("families", "each", "warned"),
    [
        (20, 3, ""),
        (19, 3, "its interval may be too narrow"),
        (7, 5, "its interval is not one of tasks like these"),
    ],
)
def test_few_families_of_many_scenarios_are_warned_of(families: int, each: int, warned: str) -> None:
    found = [w for w in report_of(learned(families, each, 5))["warnings"] if "the gain rests on" in w]
    assert [warned in w for w in found] == [True] * bool(warned)


def test_families_of_very_different_sizes_count_as_few() -> None:
    found: FamiliesBlock = {
        **{"scenarios": 100, "families": 10, "effective": 5.0, "icc": None, "seen": None, "unseen": None}
    }
    (warned,) = FAMILIES.warnings(found)
    assert "10 families (5 of equal size): below 20 its interval is not one of tasks like these" in warned


def test_few_scenarios_that_are_their_own_families_are_no_news() -> None:
    run = learned(0, 0, 0, without=12)
    assert not [w for w in report_of(run)["warnings"] if "families" in w]


def test_domains_of_few_families_are_known_to_speak_of_just_their_scenarios() -> None:
    legend = "with fewer than 8 families, the interval of a domain is of just these scenarios"
    for families, shown in ((7, True), (8, False)):
        run = learned(2 * families, 3, 5)
        domain = {s.id: "dates" if int(s.id[1:].split("-")[0]) < families else "text" for s in run.scenarios}
        found = replace(run, scenarios=tuple(replace(s, domain=domain[s.id]) for s in run.scenarios))
        assert (legend in told(found)) is shown
