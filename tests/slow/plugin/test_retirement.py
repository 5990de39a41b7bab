"""Retirement as a user meets it: a committed library with a lesson that harms, until runs show that."""

import pytest
from support.frozen import Frozen
from support.plugin.retirement import HARMFUL, HARMLESS, SETTINGS, begin, texts
from support.project import Project
from support.tools import tfgrpo


@pytest.fixture
def begun(frozen: Frozen) -> Project:
    """Return a project whose committed library does harm, after a first run that cannot show it yet."""
    return frozen(begin)


def test_a_lesson_that_harms_is_retired_once_enough_groups_of_several_runs_show_it(begun: Project) -> None:
    first = {v["text"]: v for v in begun.report()["attribution"]["lessons"]}
    assert first[HARMFUL]["left_out"] < 30
    assert first[HARMFUL]["verdict"] == "not_estimable"
    assert set(texts(begun)) == {HARMFUL, HARMLESS}

    result = begun.pages().ini(**SETTINGS, sample_size=60, seed=1).learn()
    report = begun.report()
    second = {v["text"]: v for v in report["attribution"]["lessons"]}
    assert report["attribution"]["earlier_groups"] == 40
    assert (second[HARMFUL]["verdict"], second[HARMFUL]["in_force"]) == ("harmful", False)
    assert second[HARMFUL]["ci95"][1] < 0
    assert (second[HARMLESS]["verdict"], second[HARMLESS]["in_force"]) == ("unclear", True)
    assert texts(begun) == [HARMLESS]
    fates = {row["text"]: row["fate"] for row in report["acceptance"]["epochs"][0]["lessons"]}
    assert fates[HARMFUL] == "removed"
    assert report["gain"]["difference"] > 0.5
    result.stdout.fnmatch_lines(["lessons' effect  1 harmful, 1 unclear; *"])
    assert "harmful and retired: 1" in " ".join(result.stdout.str().split())
    page = (begun.runs()[-1] / "report.html").read_text()
    assert "harmful: effect -0." in page

    assert HARMFUL not in tfgrpo("experiences")
    told = " ".join(tfgrpo("experiences", "--all").split())
    assert HARMFUL in told
    assert "not active: removed in epoch 1 of run" in told
    assert "harmful: effect -0." in told


def test_what_a_run_removed_is_named_by_its_id_alone_where_its_journal_is_lost(begun: Project) -> None:
    begun.ini(**SETTINGS, sample_size=60, seed=1).learn("-q")
    (begun.runs()[-1] / "journal.jsonl").write_text("rubbish\n")
    told = " ".join(tfgrpo("experiences", "--all").split())
    assert HARMLESS in told
    assert HARMFUL not in told
