"""Families in reports: how many there are, how alike they gain, and what untaught families gain."""

from dataclasses import replace

import pytest
from support.sweeps import evenly, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.harness.report.markdown import summary
from pytest_tfgrpo.harness.report.page.html import html
from pytest_tfgrpo.harness.report.terminal import terminal
from pytest_tfgrpo.harness.report.value import build


def learned(families: int, each: int, taught: int, *, without: int = 0) -> Run:
    """Return a run whose taught families gain .5 but in each fourth scenario, and the others nothing."""
    before = {f"e{f}-{n}": [0.5] for f in range(families) for n in range(each)} | evenly(
        without, [0.5], "own"
    )
    gains = {
        id_ for n, id_ in enumerate(before) if id_[0] == "e" and int(id_[1:].split("-")[0]) < taught and n % 4
    }
    after = {id_: [1.0 if id_ in gains else 0.5] for id_ in before}
    run = make_run(before, after, {f"t{f}-0": [1.0] for f in range(max(taught, 1))})
    family = {s.id: None if s.id[0] == "o" else f"family {s.id[1:].split('-')[0]}" for s in run.scenarios}
    if not taught:
        family["t0-0"] = None
    return replace(run, scenarios=tuple(replace(s, family=family[s.id]) for s in run.scenarios))


def report_of(run: Run) -> Report:
    return build(run, None)


def told(run: Run) -> str:
    return " ".join(" ".join(terminal(report_of(run), verbosity=1)).split())


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


def test_every_form_of_the_report_says_it() -> None:
    run = learned(40, 5, 20, without=10)
    wanted = (
        "210 scenarios of 50 families (43.7 of equal size), gains within one correlate by 0.52; seen in "
        "training +0.375 (+0.212 to +0.450), 100 scenarios of 20 families; not seen +0.000 (-0.122 to "
        "+0.122), 110 scenarios of 30 families"
    )
    assert wanted in told(run)
    report = report_of(run)
    plain = summary(report).replace("\\", "")
    assert f"- Families: {wanted}" in plain
    assert wanted in " ".join(html(report, run).split())


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
