"""The command ``tfgrpo learn capture`` and the call `capture_work`."""

import json
from pathlib import Path

import pytest
from support.repositories import Repository, git
from support.tools import tfgrpo

import pytest_tfgrpo


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with unfinished work, whose folder ``b`` is the current one."""
    repository = Repository(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n", "b/c.py": "y = 1\n"})
    git(repository.folder, "reset", "-q", "--hard", "main")
    (repository.folder / "a.py").write_text("x = 2\n")
    monkeypatch.chdir(repository.folder / "b")
    monkeypatch.setenv("HOME", str(tmp_path))
    return repository.folder


def test_the_command_captures_from_any_folder(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Make x 2.")
    (tmp_path / "history.jsonl").write_text('{"command": "pytest -q", "exit_code": 0}\n')
    said = tfgrpo(
        *("learn", "capture", "--approver", "ann", "--tests-by", "agent"),
        *("--prompt", str(tmp_path / "prompt.md"), "--history", str(tmp_path / "history.jsonl")),
    )
    (folder,) = (shop / "out" / "shop" / "learning").glob("*-*")
    assert said.startswith(f"captured  {folder.name}: 1 changed file")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["captured"]["tests_by"] == "agent"
    assert json.loads((folder / "history.jsonl").read_text())["command"] == "pytest -q"
    assert git(shop, "status", "--short", "--untracked-files=all") == "M a.py"


def test_what_is_not_captured_says_why(shop: Path) -> None:
    (shop / "key.py").write_text('TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"\n')
    assert "key.py:1: git_token" in tfgrpo("learn", "capture", "--approver", "ann", code=1)
    (shop / "key.py").unlink()
    git(shop, "checkout", "-q", "--", ".")
    assert tfgrpo("learn", "capture", "--approver", "ann") == "skipped  nothing has changed\n"
    assert "'gone.md' cannot be read" in tfgrpo(
        "learn", "capture", "--approver", "a", "--prompt", "gone.md", code=1
    )


def test_the_call_takes_rows_of_a_history(shop: Path) -> None:
    job = pytest_tfgrpo.capture_work(
        "ann", shop / "b", out="results", history=[{"command": "cd b && tox", "exit_code": 1}], task_id="t"
    )
    assert job is not None
    row = json.loads((shop / "results" / "t" / "learning" / job.job_id / "history.jsonl").read_text())
    assert (row["command"], row["cwd"], row["exit_code"]) == ("tox", "b", 1)
    told = tfgrpo("learn", "status", "--out", "results", "--task-id", "t")
    assert told.startswith(f"{job.job_id[:8]}  queued")
    assert "no jobs in " in tfgrpo("learn", "status", "--out", "results", "--task-id", "other")
