"""The folder of a run's workspaces: where it is, who may use it again, and that it goes."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.sandbox.run_workspaces import (
    CORRUPTIONS,
    RUN,
)

from pytest_tfgrpo.core.errors import ProviderError, SettingError
from pytest_tfgrpo.sandbox import run_workspaces
from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces, temporary_folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run."""
    folder = tmp_path / "out" / "demo" / "runs" / RUN
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_it_is_private_named_after_the_run_and_gone_at_its_end(temporary: Path) -> None:
    workspaces = RunWorkspaces(RUN, temporary)
    assert list(temporary.iterdir()) == []
    workspace = workspaces.new("r0", ())
    (workspace.path / "file").touch()
    (folder,) = temporary.iterdir()
    assert workspace.path == folder / "r0"
    assert folder.name.startswith(f"tfgrpo-workspaces-{RUN}.")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert workspaces.close(keep=True) == ""
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("files", [0, 1, 8, 9, 100])
@pytest.mark.parametrize("below", [False, True])
def test_a_workspace_is_removed_while_the_run_goes_on(temporary: Path, files: int, below: bool) -> None:
    workspaces = RunWorkspaces(RUN, temporary)
    first, second = workspaces.new("r0", ()), workspaces.new("r1", ())
    (second.path / "file").touch()
    folder = first.path.parent
    if below:
        (first.path / "below").mkdir()
    for n in range(files):
        (first.path / str(n)).touch()
    workspaces.discard(first)
    assert not first.made
    wait_until(lambda: [path.name for path in folder.iterdir()] == ["r1"])
    with pytest.raises(ProviderError, match="its rollout is over"):
        _ = first.path  # an agent that is still there
    workspaces.close(keep=False)


def test_a_rollout_that_is_made_again_starts_with_an_empty_workspace(temporary: Path) -> None:
    workspaces = RunWorkspaces(RUN, temporary)
    workspace = workspaces.new("r0", ())
    for n in range(50):
        (workspace.path / str(n)).touch()
        workspaces.renew(workspace)
        assert not workspace.made
        assert list(workspace.path.iterdir()) == []
    workspaces.close(keep=False)


def test_on_a_slow_disk_other_threads_remove_the_workspaces(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = []

    def slow(folder: Path) -> bool:
        time.sleep(0.01)
        removed.append(folder)
        shutil.rmtree(folder)
        return True

    monkeypatch.setattr(run_workspaces, "remove_few", slow)
    monkeypatch.setattr(run_workspaces, "LEFT_TO_THREADS", 3)
    workspaces = RunWorkspaces(RUN, temporary)
    used = [workspaces.new(f"r{n}", ()) for n in range(9)]
    paths = [workspace.path for workspace in used]
    for workspace in used:
        workspaces.discard(workspace)
    assert removed == paths[::4]
    wait_until(lambda: list(paths[0].parent.iterdir()) == [])
    workspaces.close(keep=False)


def test_an_interrupted_run_keeps_it_for_the_next(temporary: Path, run: Path) -> None:
    pointer = run / "workspaces.json"
    workspaces = RunWorkspaces(RUN, temporary, pointer)
    (workspaces.new("r0", ()).path / "file").touch()
    assert workspaces.close(keep=True) == ""
    again = RunWorkspaces(RUN, temporary, pointer)
    found = again.left("r0", ())
    assert found is not None
    assert (found.path / "file").exists()
    assert again.left("r1", ()) is None
    again.close(keep=False)


def test_two_processes_do_not_share_one(temporary: Path, run: Path) -> None:
    pointer = run / "workspaces.json"
    first = RunWorkspaces(RUN, temporary, pointer)
    _ = first.new("r0", ()).path
    second = RunWorkspaces(RUN, temporary, pointer)
    assert second.left("r0", ()) is None
    assert second.new("r0", ()).path.parent != first.new("r0", ()).path.parent
    second.close(keep=False)
    first.close(keep=False)


if os.geteuid() == 0:
    CORRUPTIONS["is somebody else's"] = lambda pointer, folder: os.chown(folder, 65534, 65534)
    CORRUPTIONS["is in somebody else's"] = lambda pointer, folder: os.chown(folder.parent, 65534, 65534)


def test_an_agent_that_removes_or_replaces_the_folder_of_all_does_not_end_the_run(
    temporary: Path, run: Path
) -> None:
    workspaces = RunWorkspaces(RUN, temporary)
    folder = workspaces.new("r0", ()).path.parent
    shutil.rmtree(folder)
    assert workspaces.new("r1", ()).path.is_dir()
    shutil.rmtree(folder)
    folder.symlink_to(run)
    assert workspaces.new("r2", ()).path.is_dir()
    assert not folder.is_symlink()
    assert list(run.iterdir()) == []
    folder.chmod(0o500)
    assert workspaces.new("r3", ()).path.is_dir()
    assert workspaces.close(keep=False) == ""
    assert not folder.exists()


def test_what_cannot_be_removed_is_told_once_the_run_ends(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_workspaces, "remove", lambda folder, stop: "'stuck': Device or resource busy")
    workspaces = RunWorkspaces(RUN, temporary)
    workspace = workspaces.new("r0", ())
    folder = workspace.path.parent
    workspaces.discard(workspace)
    warning = workspaces.close(keep=False)
    assert "could not be removed ('stuck': Device or resource busy)" in warning
    assert str(folder) in warning


def test_the_end_of_a_run_does_not_wait_for_a_removal_without_end(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_workspaces, "CLOSE_S", 0.2)
    workspaces = RunWorkspaces(RUN, temporary)
    workspace = workspaces.new("r0", ())
    for n in range(3_000):
        (workspace.path / str(n)).touch()
    monkeypatch.setattr(
        run_workspaces.RunWorkspaces,
        "_is_late",
        lambda self: time.sleep(0.01) or time.monotonic() > self._deadline,
    )
    workspaces.discard(workspace)
    assert "out of time" in workspaces.close(keep=False)


@pytest.mark.parametrize("inside", ["project", "output folder"])
def test_a_temporary_folder_in_the_project_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    root, out = tmp_path / "project", tmp_path / "out"
    place = (root if inside == "project" else out) / "tmp"
    place.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(run_workspaces, "TEMPORARY", (str(tmp_path / "missing"), str(outside)))
    assert temporary_folder(root, out) == outside
    monkeypatch.setattr(run_workspaces, "TEMPORARY", ())
    with pytest.raises(SettingError, match=r"set TMPDIR to a folder outside the project"):
        temporary_folder(root, out)
    link = tmp_path / "link"
    link.symlink_to(root)
    with pytest.raises(SettingError):
        temporary_folder(link if inside == "project" else root, out)


def test_a_project_that_is_the_whole_file_system_has_a_temporary_folder_all_the_same() -> None:
    assert temporary_folder(Path("/"), Path("/out")) == Path(os.path.realpath(tempfile.gettempdir()))


def test_a_new_folder_that_another_run_removes_as_a_leftover_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the making of the folder and its lock, the other run looks for what dead runs left."""
    locked, met = run_workspaces._locked, list[Path]()

    def late(folder: Path) -> int | None:
        if not met:
            met.append(folder)
            run_workspaces._sweep(temporary, lambda: False)
        return locked(folder)

    monkeypatch.setattr(run_workspaces, "_locked", late)
    workspaces = RunWorkspaces(RUN, temporary)
    assert workspaces.new("r0", ()).path.is_dir()
    assert locked(met[0]) is None
    workspaces.close(keep=False)
    assert list(temporary.iterdir()) == []


def test_a_link_or_pipe_that_an_agent_put_in_the_place_of_the_pointer_is_replaced(
    temporary: Path, run: Path, tmp_path: Path
) -> None:
    pointer, victim = run / "workspaces.json", tmp_path / "victim"
    victim.write_text("mine")
    for put in (lambda: pointer.symlink_to(victim), lambda: os.mkfifo(pointer)):
        put()
        workspaces = RunWorkspaces(RUN, temporary, pointer)
        assert workspaces.new("r0", ()).path.is_dir()
        assert pointer.is_file()
        assert not pointer.is_symlink()
        workspaces.close(keep=False)
    assert victim.read_text() == "mine"


def left_behind(temporary: Path, end: str = "-kept", run_id: str = RUN) -> Path:
    """Return a folder as a killed run leaves one."""
    folder = temporary / f"tfgrpo-workspaces-{run_id}.01234567{end}"
    folder.mkdir(mode=0o700)
    (folder / "r0").mkdir()
    (folder / "r0" / "answer.txt").touch()
    return folder


@pytest.mark.parametrize("how", [None, *CORRUPTIONS])
def test_a_pointer_is_believed_only_where_it_names_a_folder_of_the_run_itself(
    temporary: Path, run: Path, how: str | None
) -> None:
    pointer, folder = run / "workspaces.json", left_behind(temporary)
    pointer.write_text(json.dumps({"folder": str(folder)}))
    if how is not None:
        CORRUPTIONS[how](pointer, folder)
    assert run_workspaces._pointed_at(pointer, RUN) == (folder if how is None else None)


def test_a_folder_without_the_mark_of_one_that_is_kept_is_not_taken_over(temporary: Path, run: Path) -> None:
    folder = left_behind(temporary, "")
    (run / "workspaces.json").write_text(json.dumps({"folder": str(folder)}))
    assert run_workspaces._pointed_at(run / "workspaces.json", RUN) is None


def test_a_temporary_folder_of_all_is_safe_where_nobody_can_replace_what_others_have(temporary: Path) -> None:
    folder = left_behind(temporary)
    for mode, safe in ((0o700, True), (0o755, True), (0o777, False), (0o730, False), (0o1777, True)):
        temporary.chmod(mode)
        assert run_workspaces._is_ours(folder) is safe
    for mode, safe in ((0o700, True), (0o750, False), (0o701, False), (0o500, True)):
        folder.chmod(mode)
        assert run_workspaces._is_ours(folder) is safe


def test_what_dead_runs_left_goes_and_what_may_still_be_resumed_stays_for_a_week(temporary: Path) -> None:
    dead = left_behind(temporary, "", "20260101T000001-00000000")
    needed = left_behind(temporary, "-kept", "20260101T000002-00000000")
    old = left_behind(temporary, "-kept", "20260101T000003-00000000")
    used = left_behind(temporary, "", "20260101T000004-00000000")
    open_to_others = left_behind(temporary, "", "20260101T000005-00000000")
    open_to_others.chmod(0o755)
    (temporary / "mine").mkdir(mode=0o700)
    week = 7 * 86_400
    os.utime(needed, (time.time() - week + 600,) * 2)
    os.utime(old, (time.time() - week - 1,) * 2)
    lock = run_workspaces._locked(used)
    assert lock is not None
    try:
        run_workspaces._sweep(temporary, lambda: False)
    finally:
        os.close(lock)
    assert sorted(temporary.iterdir()) == sorted([needed, used, open_to_others, temporary / "mine"])
    assert not dead.exists()
    assert (needed / "r0" / "answer.txt").exists()


def test_a_run_that_could_be_resumed_keeps_nothing_unless_that_is_wanted(temporary: Path, run: Path) -> None:
    pointer = run / "workspaces.json"
    workspaces = RunWorkspaces(RUN, temporary, pointer)
    folder = workspaces.new("r0", ()).path.parent
    assert folder.name.endswith("-kept")
    assert json.loads(pointer.read_text()) == {"folder": str(folder)}
    assert workspaces.close(keep=False) == ""
    assert not pointer.exists()
    assert not folder.exists()
    assert workspaces.close(keep=True) == "", "the first call counts"


def test_what_is_gone_is_not_left(temporary: Path, run: Path) -> None:
    workspaces = RunWorkspaces(RUN, temporary, run / "workspaces.json")
    (temporary / workspaces._folder.name / "r0").mkdir(parents=True)
    assert workspaces.left("r0", ()) is None, "nobody has locked it for this run"


def test_a_project_without_an_output_folder_has_a_temporary_folder_outside(tmp_path: Path) -> None:
    assert not temporary_folder(tmp_path, None).is_relative_to(tmp_path)
