"""Rollouts of a journal that do not stay in memory."""

from pathlib import Path

import pytest
from support.jobs import ScriptedActor, make_job, run_job, three_or_not

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import JOURNAL, run_folder
from pytest_tfgrpo.runs.journal import rollouts_on_file
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents, read_log


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    folder = run_folder(tmp_path, "demo", "run1")
    run_job(make_job(ScriptedActor(three_or_not), tmp_path), folder)
    return folder


@pytest.fixture
def unheld(finished: Path, monkeypatch: pytest.MonkeyPatch) -> JournalContents:
    monkeypatch.setattr(rollouts_on_file, "HELD", 0)
    return read_log(finished)


def test_they_are_the_same_as_those_in_memory(
    finished: Path, unheld: JournalContents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    held = read_log(finished).rollouts
    assert len(unheld.rollouts) == len(held) > 0
    assert dict(unheld.rollouts) == dict(held)
    forgotten = next(iter(held))
    assert unheld.forget(forgotten) == held[forgotten]
    assert forgotten not in unheld.rollouts


def test_a_journal_that_changes_under_its_reader_is_found_out(
    finished: Path, unheld: JournalContents
) -> None:
    (finished / JOURNAL).write_bytes((finished / JOURNAL).read_bytes().replace(b'"rollout"', b'"rolluot"'))
    with pytest.raises(JournalError, match="it has changed since it was read"):
        list(unheld.rollouts.values())
    (finished / JOURNAL).unlink()
    with pytest.raises(JournalError, match="cannot read the journal"):
        list(unheld.rollouts.values())
