"""The command that writes dashboards and alerts."""

from pathlib import Path

from support.tools import tfgrpo

from pytest_tfgrpo.production.sinks.dashboards.files import observing_files


def test_files_are_written_and_not_overwritten_by_mistake(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "observe"
    said = tfgrpo("loop", "dashboards", str(folder))
    assert said.splitlines() == [f"wrote  {folder / name}" for name in observing_files()]
    rules = folder / "loop-alerts.yml"
    rules.write_text("mine")
    refused = tfgrpo("loop", "dashboards", str(folder), code=1)
    assert "exists; overwrite it with --force" in refused
    assert rules.read_text() == "mine"
    tfgrpo("loop", "dashboards", str(folder), "--force")
    assert rules.read_text() == observing_files()["loop-alerts.yml"]


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in tfgrpo("loop", "dashboards", str(tmp_path / "file"), code=1)
