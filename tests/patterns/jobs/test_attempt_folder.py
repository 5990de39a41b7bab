"""The folder of an attempt: nothing is seen of it until it is published, the scenario last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_tfgrpo.patterns.jobs import attempt_folder as module
from pytest_tfgrpo.patterns.jobs.attempt_folder import AttemptFolder, attempt_folder


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for name in ("manifest.json", "diff.patch", "logs/1-error.txt", "a/old.txt", ".attempt-lost/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("diff.patch")
    return tmp_path


@pytest.fixture
def attempt(job: Path) -> Iterator[AttemptFolder]:
    with attempt_folder(job, "w1") as made:
        yield made


def test_it_begins_with_the_files_of_the_job_but_manifest_and_logs(attempt: AttemptFolder, job: Path) -> None:
    names = {path.relative_to(attempt.path).as_posix() for path in attempt.path.rglob("*")}
    assert names == {"diff.patch", "a", "a/old.txt", "logs"}
    assert (attempt.path / "diff.patch").samefile(job / "diff.patch")
    assert not (job / ".attempt-lost").exists()
    (attempt.path / "logs/2-error.txt").write_text("new")
    attempt.publish()
    assert sorted(path.name for path in (job / "logs").iterdir()) == ["1-error.txt", "2-error.txt"]
    assert (job / "manifest.json").read_text() == "manifest.json"


def test_what_was_written_moves_with_the_scenario_last_and_what_is_gone_goes(
    attempt: AttemptFolder, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved, synced = list[str](), list[Path]()
    really = Path.replace

    def replace(self: Path, target: Path) -> Path:
        moved.append(target.relative_to(job).as_posix())
        return really(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(module, "sync_folder", synced.append)
    for name in ("a.scenario.yaml", "archives/a.tar.gz", "z.json"):
        (attempt.path / name).parent.mkdir(exist_ok=True)
        (attempt.path / name).write_text(name)
    (attempt.path / "a/old.txt").unlink()
    attempt.publish()
    assert moved == ["archives/a.tar.gz", "z.json", "a.scenario.yaml"]
    assert {*synced} == {job, job / "archives"}
    assert (job / "diff.patch").read_text() == "diff.patch"
    assert not (job / "a/old.txt").exists()


def test_without_links_files_are_copied(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", fails)
    with pytest.raises(ZeroDivisionError), attempt_folder(job, "w2") as attempt:  # noqa: PT012
        assert (attempt.path / "diff.patch").read_text() == "diff.patch"
        assert not (attempt.path / "diff.patch").samefile(job / "diff.patch")
        raise ZeroDivisionError
    assert list(job.glob(".attempt-*")) == []
