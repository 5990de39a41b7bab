"""The commands for recordings: which finished runs are recorded, and what is said of the others."""

from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario
from support.journals import group_events, make_training_group, write_run
from support.recordings import ACTOR
from support.tools import tfgrpo

from pytest_tfgrpo.core.scenarios import Check

FILE = "recording.jsonl"
EXACT = Check(kind="exact", params={"value": "3"})
FILES = Check(kind="file", params={})
OTHER = Check(kind="of_a_plugin", params={})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the one run of a project that is the current folder."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ntfgrpo_task_id = demo\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out" / "demo" / "runs" / "run1"


def make_run(folder: Path, *checks: Check, status: str | None = "complete", **changes: Any) -> None:
    settings = {"seed": 0, "max_tokens": 10, "record": changes.pop("record", None)}
    scenario = make_scenario(checks=checks, **changes)
    group = make_training_group([1, 0], scenario)
    events = group_events(group) if status == "complete" else group_events(group)[:1]
    stamps, who = {"packs": "p"}, {"actor": ACTOR}
    write_run(folder, events, [scenario], status=status, settings=settings, stamps=stamps, identities=who)


@pytest.mark.parametrize(
    ("checks", "changes"),
    [((EXACT,), {}), ((), {}), ((FILES,), {"record": FILE}), ((), {"record": FILE, "checker": "m:f"})],
    ids=["reads-no-files", "no-checks", "kept-files", "kept-files-for-a-function"],
)
def test_a_run_is_recorded_later_if_nothing_needs_files_that_it_did_not_keep(
    checks: tuple[Check, ...], changes: Any, folder: Path
) -> None:
    make_run(folder, *checks, **changes)
    assert tfgrpo("record", "add", FILE) == f"recorded 2 rollouts and 0 model calls in {FILE} (2 new)\n"


@pytest.mark.parametrize(
    ("checks", "changes"),
    [((EXACT, FILES), {}), ((OTHER,), {}), ((EXACT,), {"checker": "m:f"})],
    ids=["files", "unknown-kind", "function"],
)
def test_a_run_whose_checks_may_read_files_is_refused(
    checks: tuple[Check, ...], changes: Any, folder: Path
) -> None:
    make_run(folder, *checks, **changes)
    said = tfgrpo("record", "add", FILE, code=1)
    assert "run1 was made without --tfgrpo-record" in said
    assert "'count-words'" in said
    assert not Path(FILE).exists()


def test_of_a_run_that_was_killed_its_single_rollouts_are_recorded_too(folder: Path) -> None:
    make_run(folder, EXACT, status=None)
    assert tfgrpo("record", "add", FILE).startswith("recorded 1 rollout and")


def test_a_folder_is_no_recording(folder: Path) -> None:
    make_run(folder, EXACT)
    Path(FILE).mkdir()
    assert f"record: {FILE} is a folder; name a file" in tfgrpo("record", "add", FILE, code=1)


def test_a_sound_recording_is_ok_and_a_bad_one_is_told_by_line(folder: Path) -> None:
    make_run(folder, EXACT)
    tfgrpo("record", "add", FILE)
    assert tfgrpo("record", "verify", FILE) == f"ok  {FILE}\n"
    header, one, other = Path(FILE).read_text().splitlines(keepends=True)
    Path(FILE).write_text(header + other + one)
    assert f"{FILE}:3: out of order" in tfgrpo("record", "verify", FILE, code=1)
