"""The texts of ``tfgrpo learn hook`` in the programs that they are for."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import ROOT
from support.repositories import ENVIRONMENT, Repository
from support.tools import require_tool

from pytest_tfgrpo.patterns.capture.hooks import HOOKS

MAIN = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main())"
COMMAND = f'#!/bin/sh\nexec "{sys.executable}" -c "{MAIN}" "$@"\n'


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with ``tfgrpo`` on its path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tfgrpo").write_text(COMMAND)
    (tmp_path / "bin" / "tfgrpo").chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.defpath}"
    return {**ENVIRONMENT, "PATH": path, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a branch to merge."""
    repository = Repository(tmp_path / "shop")
    repository.commit({"a": "1\n"})
    repository.commit({"b": "1\n"}, branch="side", parents=["refs/heads/main"])
    repository.commit({"a": "2\n"})
    subprocess.run([require_tool("git"), "reset", "-q", "--hard", "main"], cwd=repository.folder, check=True)
    subprocess.run(["git", "config", "user.email", "a@b.c"], cwd=repository.folder, check=True)
    return repository.folder


def jobs(shop: Path) -> list[Path]:
    return list(shop.glob("out/*/learning/*-*-*"))


def ran(shop: Path, environ: dict[str, str], *argv: str) -> str:
    done = subprocess.run(argv, cwd=shop, env=environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_hook_of_git_captures_merges_that_are_made_here(shop: Path, environ: dict[str, str]) -> None:
    hook = shop / HOOKS["git"].path
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOKS["git"].text)
    hook.chmod(0o755)
    said = ran(shop, environ, "git", "merge", "-q", "-m", "Merge", "side")
    assert "captured  " in said
    (job,) = jobs(shop)
    assert "+++ b/b" in (job / "diff.patch").read_text()
    ran(shop, environ, "git", "branch", "next")
    ran(shop, environ, "git", "reset", "-q", "--hard", "HEAD^")
    ran(shop, environ, "git", "config", "user.email", "other@b.c")
    ran(shop, environ, "git", "merge", "-q", "next")  # a fast-forward to what somebody else merged
    assert jobs(shop) == [job]


def test_a_hook_that_cannot_capture_leaves_the_merge(shop: Path, environ: dict[str, str]) -> None:
    hook = shop / HOOKS["git"].path
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOKS["git"].text)
    hook.chmod(0o755)
    (shop / "out").write_text("in the way")
    assert "the merge stands" in ran(shop, environ, "git", "merge", "-q", "-m", "Merge", "side")
    assert ran(shop, environ, "git", "log", "-1", "--format=%s") == "Merge\n"


def test_the_job_captures_the_merges_of_a_push(shop: Path, environ: dict[str, str]) -> None:
    (script,) = [
        step["run"] for step in yaml.safe_load(HOOKS["ci"].text)["jobs"]["capture"]["steps"] if "env" in step
    ]
    before = ran(shop, environ, "git", "rev-parse", "HEAD").strip()
    ran(shop, environ, "git", "merge", "-q", "-m", "Merge", "side")
    script = script.replace("tfgrpo learn work", "true")
    ran(shop, {**environ, "BEFORE": before, "APPROVER": "ann"}, "bash", "-eo", "pipefail", "-c", script)
    assert len(jobs(shop)) == 1
    ran(shop, {**environ, "BEFORE": "0" * 40, "APPROVER": "ann"}, "bash", "-eo", "pipefail", "-c", script)
    assert len(jobs(shop)) == 2


@pytest.mark.parametrize(
    ("kind", "log"),
    [
        ("claude", ".claude/projects/{slug}/session.jsonl"),
        ("codex", ".codex/sessions/2026/01/02/rollout-1.jsonl"),
    ],
)
def test_the_newest_log_of_a_session_is_found(
    shop: Path, environ: dict[str, str], tmp_path: Path, kind: str, log: str
) -> None:
    path = tmp_path / log.format(slug=re.sub("[^A-Za-z0-9]", "-", str(shop)))
    path.parent.mkdir(parents=True)
    path.write_text("")
    found = re.search(r'--history "\$\((.*)\)"', HOOKS[kind].text)
    assert found is not None
    assert ran(shop, environ, "sh", "-c", found[1]) == f"{path}\n"
