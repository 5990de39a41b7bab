"""``tfgrpo harvest --issues --statement``: what is wrong is said before any test runs."""

from pathlib import Path

import pytest
from support.repositories import Repository
from support.tools import tfgrpo


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Repository(tmp_path / "shop").commit({"a.py": "1\n"})
    monkeypatch.chdir(tmp_path)
    return tmp_path


ARGUMENTS = ("harvest", "--repo", "shop", "--from-git", "main", "--into", "suite")


def test_a_bad_file_of_issues_is_named_with_its_line(project: Path) -> None:
    (project / "issues.jsonl").write_text('{"number": 1}\n{"title": "x"}\n')
    said = tfgrpo(*ARGUMENTS, "--issues", "issues.jsonl", code=1)
    assert "issues.jsonl:2: number is None" in said
    assert not (project / "suite").exists()
