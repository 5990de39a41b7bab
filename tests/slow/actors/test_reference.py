"""The actor ``reference`` does what the true fix did; ``nothing`` does nothing."""

import json
from pathlib import Path

import pytest
from support.projects_in_archives import write_archive
from support.tools import run_pytest

from pytest_tfgrpo.core.scenarios import WorkspaceArchive
from pytest_tfgrpo.core.wire.stamp import stamp_bytes

CHECK = "import pathlib, shop, sys; sys.exit(shop.total() != 2 or pathlib.Path('old.py').exists())"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of one fix, made by hand."""
    base = {"shop.py": "def total():\n    return 1\n", "old.py": ""}
    archive = write_archive(tmp_path / "suite" / "archives" / "fix.base.tar.gz", base)
    write_archive(
        tmp_path / "suite" / "references" / "fix.tar.gz", {"shop.py": "def total():\n    return 2\n"}
    )
    (tmp_path / "suite" / "provenance").mkdir()
    (tmp_path / "suite" / "provenance" / "fix.json").write_text(json.dumps({"removed": ["old.py"]}))
    write_scenario(tmp_path / "suite", archive)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path / "suite"


def write_scenario(suite: Path, archive: WorkspaceArchive) -> None:
    scenario = {
        "id": "fix",
        "split": "eval",
        "prompt": "Two articles, please.",
        "workspace": {"archive": "archives/fix.base.tar.gz", "sha256": archive.sha256},
        "checks": [{"kind": "command", "run": ["python3", "-c", CHECK]}],
    }
    (suite / "fix.scenario.json").write_text(json.dumps(scenario))


def test_a_suite_scores_1_with_the_reference_and_0_with_nothing(suite: Path) -> None:
    assert run_pytest(suite.parent, "suite", "--tfgrpo-actor=reference").returncode == 0
    done = run_pytest(suite.parent, "suite", "--tfgrpo-actor=nothing")
    assert done.returncode == 1
    assert "1 failed" in done.stdout


def test_what_was_done_to_a_project_is_replayed(suite: Path) -> None:
    run_pytest(suite.parent, "suite", "--tfgrpo-actor=reference", "--tfgrpo-record=fix.jsonl")
    (suite / "references" / "fix.tar.gz").unlink()
    done = run_pytest(suite.parent, "suite", "--tfgrpo-actor=replay:fix.jsonl")
    assert done.returncode == 0, done.stdout


def test_a_missing_reference_is_a_usage_error(suite: Path) -> None:
    (suite / "references" / "fix.tar.gz").unlink()
    done = run_pytest(suite.parent, "suite", "--tfgrpo-actor=reference")
    assert done.returncode == 4
    assert "has no reference: there is no " in done.stderr


def test_a_scenario_without_a_workspace_has_no_reference(suite: Path) -> None:
    plain = {"id": "a", "split": "eval", "prompt": "p", "checks": [{"kind": "exact", "value": "1"}]}
    (suite / "a.scenario.json").write_text(json.dumps(plain))
    done = run_pytest(suite.parent, "suite", "--tfgrpo-actor=reference")
    assert done.returncode == 4
    assert "scenario 'a' (suite/a.scenario.json:1) has no workspace, and so no reference" in done.stderr


def test_a_changed_archive_is_a_usage_error(suite: Path) -> None:
    write_archive(suite / "archives" / "fix.base.tar.gz", {"shop.py": "other"})
    done = run_pytest(suite.parent, "suite", "--tfgrpo-actor=nothing")
    assert done.returncode == 2
    assert "fix.scenario.json:1: #/workspace/sha256: 'archives/fix.base.tar.gz' has the sha256" in done.stdout


def test_a_damaged_archive_is_an_error_of_ours_and_not_the_agents(suite: Path) -> None:
    (suite / "archives" / "fix.base.tar.gz").write_bytes(b"no archive")
    path = suite / "archives" / "fix.base.tar.gz"
    write_scenario(suite, WorkspaceArchive(archive=path.name, path=path, sha256=stamp_bytes(b"no archive")))
    done = run_pytest(suite.parent, "suite", "--tfgrpo-actor=nothing")
    assert done.returncode == 1
    assert "it is not a tar.gz, or damaged" in done.stdout
