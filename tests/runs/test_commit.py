"""The commit that a run says it was made at."""

import os
import subprocess
from pathlib import Path

import pytest
from support.tools import require_tool

from pytest_tfgrpo.runs import commit
from pytest_tfgrpo.runs.commit import commit_of


def git(folder: Path, *argv: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run([require_tool("git"), *who, *argv], cwd=folder, env=environ, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(commit, "LIMIT_S", 100.0)
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "a.txt").write_text("a")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_a_project_in_a_repository_has_its_commit(repository: Path) -> None:
    assert commit_of(repository / "suite", os.environ) == git(repository, "rev-parse", "HEAD")[:12]


def test_changes_of_tracked_files_are_marked_and_new_files_are_not(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")[:12]
    (repository / "out").write_text("new")
    assert commit_of(repository, os.environ) == head
    (repository / "suite" / "a.txt").write_text("b")
    assert commit_of(repository / "suite", os.environ) == f"{head}+dirty"


def test_without_commit_or_git_there_is_none(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert commit_of(repository, {"PATH": ""}) is None
    empty = tmp_path_factory.mktemp("empty")
    git(empty, "init", "-q")
    assert commit_of(empty, os.environ) is None
    (empty / ".git" / "HEAD").write_text("broken")
    assert commit_of(empty, os.environ) is None


@pytest.mark.parametrize("scope", ["--local", "--worktree"])
@pytest.mark.parametrize("kind", ["clean", "process"])
def test_no_filter_of_the_repository_runs(repository: Path, kind: str, scope: str) -> None:
    head = git(repository, "rev-parse", "HEAD")[:12]
    (repository / ".git" / "info" / "attributes").write_text("* filter=a=b.c\n")
    git(repository, "config", "extensions.worktreeConfig", "true")
    git(repository, "config", scope, f"filter.a=b.c.{kind}", f"touch '{repository}/started'; cat")
    git(repository, "config", scope, "filter.a=b.c.required", "true")
    (repository / "suite" / "a.txt").write_text("b")
    assert commit_of(repository, os.environ) == f"{head}+dirty"
    assert not (repository / "started").exists()


def test_git_is_not_even_started_outside_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "subprocess", None)
    assert commit_of(tmp_path, os.environ) is None


def test_neither_the_environment_nor_the_repository_chooses_what_git_looks_at_or_runs(
    repository: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    witness = tmp_path / "ran"
    git(repository, "config", "core.fsmonitor", f"touch {witness}")
    found = commit_of(repository, {**os.environ, "GIT_DIR": str(other / ".git")})
    assert found == git(repository, "rev-parse", "HEAD")[:12]
    witness.unlink(missing_ok=True)
    commit_of(repository, os.environ)
    assert not witness.exists()


def test_a_git_that_takes_too_long_is_not_waited_for(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(commit, "LIMIT_S", 0.05)
    assert commit_of(repository, {"PATH": f"{slow.parent}:{os.environ['PATH']}"}) is None
