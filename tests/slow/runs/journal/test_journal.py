from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.runs.journal.journal import Journal


def test_two_processes_cannot_write_one_journal(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(JournalError, match="in use"):
        Journal(tmp_path / "journal.jsonl")
    first.close()
    Journal(tmp_path / "journal.jsonl").close()
