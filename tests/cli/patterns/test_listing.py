"""``tfgrpo patterns list``, ``show`` and ``lint``."""

import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.patterns.shelves import make_pattern, put
from support.repositories import git
from support.tools import tfgrpo

from pytest_tfgrpo.cli.patterns import listing
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.patterns.shelf.pattern import PatternStatus, TrialResult
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of


def test_patterns_are_listed_by_status(repository: Path, golden: Callable[[str, str], None]) -> None:
    assert "'tfgrpo learn capture' makes the first" in tfgrpo("patterns", "list")
    active = make_pattern("sum-in-memory", id="p-000000000001", status=PatternStatus.ACTIVE)
    trial = TrialResult(
        outcome="helps", gain=0.125, low=0.05, high=0.2, scenarios=14, families=12, pattern_stamp=active.stamp
    )
    put(
        repository,
        make_pattern(reintroduced="p-000000000002"),
        replace(active, trial=trial),
        make_pattern("old", id="p-000000000002", status=PatternStatus.DEPRECATED),
    )
    (repository / ".agent/patterns/candidates/broken.md").write_text("x")
    golden("patterns-list.txt", tfgrpo("patterns", "list").replace(str(repository), "REPOSITORY"))
    rows = [json.loads(row) for row in tfgrpo("patterns", "list", "--json").splitlines()]
    assert [row["name"] for row in rows] == ["sum-in-memory", "read-rows-at-once", "old"]


def test_a_trial_counts_for_the_texts_that_were_tried() -> None:
    tried = TrialResult(outcome="helps", gain=0.125, low=None, high=None, scenarios=14, families=12)
    for stamp, said in ((stamp_of(make_pattern()), "helps, "), ("", "untried as it is now; helps before")):
        pattern = make_pattern(trial=replace(tried, pattern_stamp=stamp))
        assert listing._told(pattern).startswith(f"[{said}")
    assert listing._told(make_pattern(reintroduced="p-1")) == (
        f"[untried, much like the deprecated p-1] {make_pattern().lesson}"
    )


def test_a_pattern_is_shown(repository: Path) -> None:
    put(repository, make_pattern())
    assert "## When not to use" in tfgrpo("patterns", "show", "read-rows-at-once")
    assert "did you mean 'read-rows-at-once'?" in tfgrpo("patterns", "show", "read-rows-at-one", code=1)
    put(repository, make_pattern("dates", id="p-000000000001"))
    tfgrpo("patterns", "lint", "--fix", "--by", "ann")
    said = tfgrpo("patterns", "show", "dates")
    assert said.partition("log:")[2].count(" by ann") == 1


def test_the_repository_is_the_named_one_or_that_of_the_current_folder(repository: Path) -> None:
    (repository / "other" / ".agent" / "patterns").mkdir(parents=True)
    (repository / "other" / "in").mkdir()
    for repo, root in ((None, repository), (str(repository / "other" / "in"), repository / "other")):
        assert open_shelf(Namespace(repo=repo)).root == root
    with pytest.raises(SettingError, match=r"there is no folder .*gone'; name a repository with --repo"):
        open_shelf(Namespace(repo="gone"))


def test_lint_names_and_mends_what_is_wrong_with_files(repository: Path) -> None:
    put(repository, make_pattern())
    assert "--fix needs --by" in tfgrpo("patterns", "lint", "--fix", code=1)
    said = tfgrpo("patterns", "lint", "--fix", "--by", "ann")
    assert said == "read-rows-at-once: noted in the log\n1 pattern, nothing wrong\n"
    folder = repository / ".agent/patterns"
    text = (folder / "candidates/read-rows-at-once.md").read_text()
    (folder / "active").mkdir()
    (folder / "active/read-rows-at-once.md").write_text(text.replace("in memory.", "there."))
    (folder / "active/linked.md").symlink_to("/etc/hosts")
    errors = tfgrpo("patterns", "lint", code=1)
    assert "5 problems" in errors
    shelf = tfgrpo("patterns", "show", "read-rows-at-once", code=1)
    assert "several patterns 'read-rows-at-once'" in shelf


def test_patterns_are_found_by_words(repository: Path) -> None:
    put(
        repository, make_pattern(), make_pattern("dates", id="p-000000000001", lesson="Store dates as dates.")
    )
    assert "dates" in tfgrpo("patterns", "search", "dates", "stored")
    assert "read-rows" not in tfgrpo("patterns", "search", "date", "stores")
    put(repository, make_pattern("zone-first", id="p-000000000002", title="Mind the calendar"))
    for word in ("zone", "calendar", "queries"):
        assert "zone-first" in tfgrpo("patterns", "search", word)
    assert "no pattern is about 'moon'" in tfgrpo("patterns", "search", "moon")
    assert "no pattern is about 'dates moon'" in tfgrpo("patterns", "search", "dates", "moon")


def test_patterns_are_compared(repository: Path) -> None:
    other = make_pattern(
        "dates", id="p-000000000001", lesson="Store dates as dates.", parents=("p-0123456789ab",)
    )
    put(repository, make_pattern(), other)
    rows = tfgrpo("patterns", "diff", "dates").splitlines()
    assert rows[:2] == ["--- read-rows-at-once", "+++ dates"]
    assert '+lesson: "Store dates as dates."' in rows
    assert tfgrpo("patterns", "diff", "dates", "read-rows-at-once").splitlines()[:2] == rows[:2]
    assert tfgrpo("patterns", "diff", "dates", "dates") == "dates does not differ from dates\n"
    assert "neither committed nor has parents" in tfgrpo("patterns", "diff", "read-rows-at-once", code=1)
    (repository / ".git").rmdir()
    git(repository, "init", "-q")
    git(repository, "add", ".agent")
    git(repository, "commit", "-qm", "x")
    path = repository / ".agent/patterns/candidates/dates.md"
    path.write_text(path.read_text().replace("as dates.", "as days."))
    assert '+lesson: "Store dates as days."' in tfgrpo("patterns", "diff", "dates").splitlines()
