"""``tfgrpo patterns trial``: what is not tried, and what is not kept."""

from pathlib import Path

import pytest
from support.patterns.shelves import make_pattern, put
from support.tools import tfgrpo

from pytest_tfgrpo.patterns.shelf.moves import write_candidate

NAME = "read-rows-at-once"
AGENT = "def solve(context):\n    raise RuntimeError('the provider is down')\n"


@pytest.mark.parametrize(
    ("new", "why"),
    [
        ("there.", "was changed since it was screened; first review it"),
        ("there: !`id`.", "was changed since it was screened; first review it"),
    ],
)
def test_a_text_that_was_edited_is_not_tried(repository: Path, new: str, why: str) -> None:
    shelf = put(repository)
    write_candidate(shelf, make_pattern())
    path = shelf.find(NAME).path
    path.write_text(path.read_text().replace("in memory.", new))
    assert why in tfgrpo("patterns", "trial", NAME, code=1)


def test_a_text_that_no_agent_may_read_is_not_tried(repository: Path) -> None:
    write_candidate(put(repository), make_pattern(lesson="See @README.md for rows."))
    assert "no agent may read 'read-rows-at-once': lesson: " in tfgrpo("patterns", "trial", NAME, code=1)


def test_a_trial_without_scores_is_not_kept(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = put(repository)
    write_candidate(shelf, make_pattern())
    (repository / "pytest.ini").write_text(
        "[pytest]\ntfgrpo_task_id = shop\ntfgrpo_actor = python:failing_trial_agent:solve\n"
    )
    (repository / "failing_trial_agent.py").write_text(AGENT)
    monkeypatch.syspath_prepend(repository)
    (repository / "a.scenarios.csv").write_text("id,split,domain,prompt,answer\na,dev,shop,How many?,2\n")
    said = tfgrpo("patterns", "trial", NAME, "--suite", "..", "--rollouts", "1", code=1)
    assert "no scenario was scored with the pattern and without it" in said
    assert shelf.pattern(NAME).trial is None
    assert [entry["event"] for entry in shelf.entries()] == ["written"]
