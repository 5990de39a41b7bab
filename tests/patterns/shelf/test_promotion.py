"""Promotion: each reason that keeps a pattern from agents, alone and all together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.patterns.shelves import make_body, make_evidence, make_pattern, put

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.patterns.shelf import promotion
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision, move, record_trial
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus, TrialResult
from pytest_tfgrpo.patterns.shelf.pattern_file import stamped
from pytest_tfgrpo.patterns.shelf.promotion import (
    PatternJob,
    PatternReview,
    decide,
    gone_lines,
    measured,
    promotion_refusals,
)
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.shelf import Shelf

ADA = ShelfDecision(by="ada", reason="it is so")
NAME = "read-rows-at-once"
JOB = PatternJob(
    job=make_evidence().job, status="validated", commit="2" * 40, diff_sha256="4" * 64, tests_seen_by=("ada",)
)
REVIEW = PatternReview(screens=PatternScreens(), job=JOB)


def tried(pattern: Pattern, outcome: Any) -> Pattern:
    trial = TrialResult(
        outcome=outcome, gain=0.1, low=0.0, high=0.2, scenarios=24, families=12, pattern_stamp=pattern.stamp
    )
    return replace(pattern, trial=trial)


def shelf_with_tried(root: Path, *outcomes: Any) -> Shelf:
    """Return a shelf with a candidate that was tried, each time with another outcome."""
    shelf = put(root, make_pattern())
    for outcome in outcomes:
        trial = tried(make_pattern(), outcome).trial
        assert trial is not None
        record_trial(shelf, NAME, trial)
    return shelf


def test_what_was_proven_seen_screened_and_tried_is_promoted(tmp_path: Path) -> None:
    shelf = shelf_with_tried(tmp_path, "helps")
    assert decide(shelf, NAME, "promoted", ADA, REVIEW).status is PatternStatus.ACTIVE


@pytest.mark.parametrize(
    ("pattern", "changes", "places"),
    [
        (make_pattern(), {}, ["trial"]),
        (make_pattern(), {"untested": True}, []),
        (tried(make_pattern(), "inconclusive"), {"trials": ("inconclusive",)}, []),
        (tried(make_pattern(), "helps"), {"trials": ("inconclusive",)}, ["trial"]),
        (tried(make_pattern(), "helps"), {}, ["trial"]),
        (tried(make_pattern(), "harms"), {"untested": True}, ["trial"]),
        (make_pattern(), {"untested": True, "trials": ("helps", "harms")}, ["trial"]),
        (tried(make_pattern(), "inconclusive"), {"trials": ("harms", "inconclusive")}, ["trial"]),
        (tried(make_pattern(), "helps"), {"trials": ("harms", "helps")}, []),
        (stamped(replace(tried(make_pattern(), "harms"), title="Other")), {"untested": True}, []),
        (stamped(replace(tried(make_pattern(), "helps"), title="Other")), {}, ["trial"]),
        (replace(make_pattern(), title="Edited"), {"untested": True}, ["stamp"]),
        (make_pattern(title="See @x"), {"untested": True}, ["title"]),
        (make_pattern(body=make_body(excerpt="gone = 1")), {"untested": True}, ["excerpt"]),
        (make_pattern(body=make_body(files=("../shop.py",))), {"untested": True}, ["excerpt"]),
        (make_pattern(evidence=None), {"untested": True}, ["evidence"]),
        (make_pattern(), {"untested": True, "job": None}, ["evidence"]),
        (make_pattern(), {"untested": True, "job": replace(JOB, status="validation_failed")}, ["evidence"]),
        (make_pattern(), {"untested": True, "job": replace(JOB, diff_sha256="5" * 64)}, ["evidence"]),
        (make_pattern(), {"untested": True, "job": replace(JOB, commit="5" * 40)}, ["evidence"]),
        (make_pattern(), {"untested": True, "job": replace(JOB, tests_seen_by=())}, ["tests"]),
    ],
)
def test_each_reason_against_a_promotion(
    tmp_path: Path, pattern: Pattern, changes: dict[str, Any], places: list[str]
) -> None:
    if pattern.body.files == ("shop.py",):
        put(tmp_path, pattern)
    (tmp_path / "shop.py").write_text(make_body().excerpt)
    found = promotion_refusals(tmp_path, pattern, replace(REVIEW, **changes))
    assert [line.partition(":")[0] for line in found] == places


def test_all_reasons_are_said_at_once_and_nothing_moves(tmp_path: Path) -> None:
    shelf = put(tmp_path, make_pattern(title="See @x", evidence=None))
    (tmp_path / "shop.py").write_text("")
    review = replace(REVIEW, agents={"bot"})
    with pytest.raises(PatternError) as caught:
        decide(shelf, NAME, "promoted", replace(ADA, by="bot"), review)
    said = str(caught.value).splitlines()
    assert [line.split()[0] for line in said[1:]] == ["'bot'", "evidence:", "title:", "excerpt:", "trial:"]
    assert shelf.find(NAME).status is PatternStatus.CANDIDATE
    assert shelf.log.entries() == []


@pytest.mark.parametrize("event", ["rejected", "promoted"])
def test_only_a_person_decides(tmp_path: Path, event: Any) -> None:
    shelf = shelf_with_tried(tmp_path, "helps")
    for agent in ("ada", "Ada ", "ADA"):
        with pytest.raises(PatternError, match="'ada' is an agent: it may comment"):
            decide(shelf, NAME, event, ADA, replace(REVIEW, agents={agent}))
    for by in ("tfgrpo", " TFGRPO "):
        with pytest.raises(PatternError, match=f"'{by}' is an agent"):
            decide(shelf, NAME, event, replace(ADA, by=by), REVIEW)
    with pytest.raises(PatternError, match=r"not among the approvers of learn\.toml: bo, cy"):
        decide(shelf, NAME, event, ADA, replace(REVIEW, approvers=("cy", "bo")))
    decide(shelf, NAME, event, ADA, replace(REVIEW, approvers=("ada",)))


def test_a_trial_that_harmed_counts_although_its_file_says_otherwise(tmp_path: Path) -> None:
    shelf = shelf_with_tried(tmp_path, "harms")
    put(tmp_path, make_pattern())  # somebody took the trial out of the file
    with pytest.raises(PatternError, match="one of this text found that it harms"):
        decide(shelf, NAME, "promoted", ADA, replace(REVIEW, untested=True))


def test_what_was_changed_while_it_was_checked_is_not_promoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = put(tmp_path, make_pattern())

    def edit(*_: object) -> list[str]:
        put(tmp_path, make_pattern(lesson="See @README.md."))
        return []

    monkeypatch.setattr(promotion, "gone_lines", edit)
    with pytest.raises(PatternError, match="was changed while it was checked"):
        decide(shelf, NAME, "promoted", ADA, replace(REVIEW, untested=True))
    assert shelf.find(NAME).status is PatternStatus.CANDIDATE
    assert shelf.entries() == []


def test_what_is_restored_passes_what_is_promoted(tmp_path: Path) -> None:
    shelf = put(tmp_path, make_pattern())
    move(shelf, NAME, "rejected", ADA)
    with pytest.raises(PatternError, match="cannot be restored:\n  trial: "):
        decide(shelf, NAME, "restored", ADA, REVIEW)
    assert decide(shelf, NAME, "restored", ADA, replace(REVIEW, untested=True)).status is PatternStatus.ACTIVE


def test_lines_that_are_gone_are_counted_and_three_of_them_named(tmp_path: Path) -> None:
    pattern = make_pattern(body=make_body(excerpt="a = 1\nb = 2\nc = 3\nd = 4"))
    (found,) = promotion_refusals(tmp_path, pattern, replace(REVIEW, untested=True))
    assert found.startswith("excerpt: 4 of its lines are no longer in its files: ")
    assert ("c = 3" in found, "d = 4" in found) == (True, False)


def test_what_a_trial_measured_is_said_with_its_interval_and_its_scenarios() -> None:
    trial = tried(make_pattern(), "harms").trial
    assert trial is not None
    assert measured(trial) == "+0.100 (+0.000 to +0.200) on 24 scenarios of 12 families"
    assert measured(replace(trial, gain=None, high=None)) == "no gain on 24 scenarios of 12 families"


def test_an_excerpt_is_looked_for_in_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.py").write_text("a = 1")
    (tmp_path / "in/link.py").symlink_to(tmp_path / "secret.py")
    (tmp_path / "in/a.py").write_text("    b = 2\n")
    body = make_body(files=("link.py", "a.py", "none.py"), excerpt="a = 1\n\nb = 2")
    assert gone_lines(tmp_path / "in", body) == ["a = 1"]
