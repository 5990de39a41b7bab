"""``tfgrpo patterns stats`` and ``escaped``."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from support.patterns.jobs import manifest, queue_with
from support.patterns.shelves import make_evidence, make_pattern, put
from support.repositories import git
from support.tools import tfgrpo

from pytest_tfgrpo.patterns.jobs.queue import WorkOutcome
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision, move, write_candidate

NAME = "read-rows-at-once"
ADA = ShelfDecision(by="ada", reason="it is so")


def test_figures_of_nothing(golden: Callable[[str, str], None]) -> None:
    golden("patterns-stats-empty.txt", tfgrpo("patterns", "stats"))
    found = json.loads(tfgrpo("patterns", "stats", "--json"))
    assert list(found) == [
        "schema",
        "jobs",
        "review",
        "regressions",
        "hygiene",
        "patterns",
        "trials",
        "reuse",
    ]
    assert found["jobs"]["pass_rate"] is None


def test_figures_of_jobs_and_patterns(repository: Path, golden: Callable[[str, str], None]) -> None:
    shelf = put(repository)
    write_candidate(shelf, make_pattern())
    write_candidate(shelf, make_pattern("other", evidence=make_evidence(job="2")))
    move(shelf, NAME, "promoted", ADA)
    with queue_with(repository / "out/shop/learning", manifest(0), manifest(1)) as queue:
        queue.take("w1")
        queue.finish(manifest(0).job_id, "w1", WorkOutcome(trigger="prove", scenario="one"))
    journal = repository / "out/shop/runs/RUN-1/journal.jsonl"
    journal.parent.mkdir(parents=True)
    lesson = {"task_id": "patterns", "run_id": shelf.pattern(NAME).id}
    journal.write_text(json.dumps({"data": {"library": {"experiences": [lesson]}}}))
    said = re.sub(r"latency \d+ s", "latency 0 s", tfgrpo("patterns", "stats"))
    golden("patterns-stats.txt", said)


def test_a_regression_is_noted(repository: Path) -> None:
    (repository / ".git").rmdir()
    git(repository, "init", "-q")
    shelf = put(repository, make_pattern())
    git(repository, "add", ".agent")
    git(repository, "commit", "-qm", "x")
    commit = git(repository, "rev-parse", "HEAD")
    move(shelf, NAME, "promoted", ADA)
    said = tfgrpo("patterns", "escaped", NAME, "--commit", "HEAD", "--by", "ann", "--reason", "wrong totals")
    assert said.splitlines() == [
        f"noted  {NAME}  {commit[:12]}",
        f"  it is in force: 'tfgrpo patterns deprecate {NAME}' takes it from agents",
    ]
    assert "already known" in tfgrpo("patterns", "escaped", NAME, "--commit", commit, "--by", "bo")
    assert tfgrpo("patterns", "escaped", "--by", "ann") == "no change of a pattern was reverted\n"
    assert "or neither" in tfgrpo("patterns", "escaped", NAME, "--by", "ann", code=1)
    assert "1 escaped" in tfgrpo("patterns", "stats")
    assert [one["reason"] for one in shelf.entries() if one["event"] == "escaped"] == ["wrong totals"]
    move(shelf, NAME, "deprecated", ADA)
    said = tfgrpo("patterns", "escaped", NAME, "--commit", commit, "--by", "bo")
    assert said == f"already known  {NAME}  {commit[:12]}\n"


def test_a_page_has_the_figures_and_what_lies_on_the_shelf_and_nothing_of_a_pattern_is_markup(
    repository: Path, golden: Callable[[str, str], None]
) -> None:
    shelf = put(repository, make_pattern())
    (shelf.folder / "active").mkdir()
    (shelf.folder / "active" / "<b>.md").write_text("<script>alert(1)</script>")
    file = repository / "stats.html"
    said = tfgrpo("patterns", "stats", "--html", str(file))
    assert said.splitlines()[-1].endswith("stats.html")
    page = file.read_text()
    assert page.count("<script>") == 1
    body = page[page.index("<body>") : page.index("<script>")]
    golden("patterns-stats-page.txt", body.replace(str(repository), "REPOSITORY"))
