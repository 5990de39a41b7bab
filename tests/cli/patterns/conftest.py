"""A repository for the commands of patterns."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a repository; the current folder is one in it."""
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\ntfgrpo_task_id = shop\n")
    monkeypatch.chdir(tmp_path / "src")
    return tmp_path
