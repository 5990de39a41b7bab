"""The tfgrpo command, on a project that has learned."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.tools import run_pytest, tfgrpo

from pytest_tfgrpo import cli


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project made by ``tfgrpo init`` that has run once."""
    folder = tmp_path_factory.mktemp("learned")
    assert cli.main(["init", str(folder)]) == 0
    ini = folder / "pyproject.toml"
    ini.write_text(ini.read_text() + 'tfgrpo_task_id = "demo"\ntfgrpo_library = "library.json"\n')
    (folder / "library.json").write_text(EMPTY_LIBRARY)
    done = run_pytest(folder, "--tfgrpo")
    assert done.returncode == 0, done.stdout
    return folder


EMPTY_LIBRARY = """{"schema": "tfgrpo.library/1", "lineage": [], "experiences": [],
"hash": "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"}"""


@pytest.fixture
def project(learned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project that has learned, as the working folder."""
    folder = tmp_path / "copy"
    shutil.copytree(learned, folder)
    monkeypatch.chdir(folder)
    return folder


def run_id(project: Path) -> str:
    (folder,) = (project / "out" / "demo" / "runs").iterdir()
    return folder.name


def test_a_reader_that_leaves_early_is_no_bug(project: Path) -> None:
    program = [sys.executable, "-c", "import sys; from pytest_tfgrpo.cli import main; sys.exit(main())"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run([*program, "report"], stdout=closed, stderr=subprocess.PIPE, timeout=100)
    assert (done.returncode, done.stderr) == (1, b"")


def test_runs_are_listed_with_what_they_came_to(project: Path) -> None:
    shutil.copytree(f"out/demo/runs/{run_id(project)}", "out/demo/runs/29990101T000000-killed")
    Path("out/demo/runs/29990101T000000-killed/report.json").unlink()
    out = tfgrpo("runs")
    head, run, killed, advice = out.splitlines()
    assert head.split() == ["run", "status", "gate", "eval", "mean", "gain", "cost"]
    assert re.fullmatch(r"\S+ +complete +(pass|inconclusive) +[01]\.\d{3} +[+-][01]\.\d{3} +\$0\.00", run)
    assert killed.split() == ["29990101T000000-killed", "killed", "-", "-", "-", "-"]
    assert advice.endswith("pytest --tfgrpo --tfgrpo-resume=29990101T000000-killed")


def test_the_report_is_what_pytest_printed(project: Path) -> None:
    done = run_pytest(project, "--tfgrpo", "-q", "--tfgrpo-task-id", "again")
    section = done.stdout.partition(" tfgrpo ===")[2].partition("\n")[2]
    out = tfgrpo("report", "latest", "-q", "--task-id", "again")
    shown = re.sub(r"(?m)^warning: .*\n(?:  .*\n)*", "", out.rpartition("page ")[0])
    assert section.startswith(shown)  # pytest shows warnings itself


def test_show_prefers_the_latest_run(project: Path) -> None:
    assert run_pytest(project, "--tfgrpo", "-k", "roll").returncode == 0
    latest = max(path.name for path in Path("out/demo/runs").iterdir())
    assert tfgrpo("show", "e1.roll-1.r0").startswith(f"rollout {latest}.e1")
    assert latest not in tfgrpo("show", "e1.swing-1.r0")


@pytest.mark.parametrize("wanted", ["e9.roll-1.r0", "", "1.roll-1.r0"])
def test_an_unknown_rollout_is_an_error(project: Path, wanted: str) -> None:
    err = tfgrpo("show", wanted, code=1)
    assert f"no rollout or scenario {wanted!r} in any run of task 'demo'" in err


def test_a_baseline_is_saved_shown_and_compared_with(project: Path) -> None:
    out = tfgrpo("baseline", "save", "main")
    assert f"wrote {project / 'baselines' / 'main.json'}" in out
    shown = tfgrpo("baseline", "show", "main")
    assert shown.splitlines()[:3] == out.splitlines()[:3]
    assert "roll-4" in shown
    done = run_pytest(project, "--tfgrpo", "--tfgrpo-baseline", "main", "--tfgrpo-gate-alarm=1")
    assert done.returncode == 0
    assert "no baseline is set" not in done.stdout


def test_a_bad_setting_is_an_expected_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFGRPO_GROUP_SIZE", "1")
    err = tfgrpo("runs", code=1)
    assert err == "tfgrpo: group_size must be an integer >= 2, not '1' (environment TFGRPO_GROUP_SIZE)\n"
