"""The commands ``tfgrpo loop ...``."""

from pathlib import Path

import pytest
from support.tools import tfgrpo


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that ``tfgrpo loop init`` was run in."""
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    return tmp_path


def test_init_keeps_what_exists_and_the_key_always(project: Path) -> None:
    key = (project / "loop.key").read_text()
    assert "loop.toml exists; overwrite it with --force" in tfgrpo("loop", "init", code=1)
    assert "kept   loop.key" in tfgrpo("loop", "init", "--force")
    assert (project / "loop.key").read_text() == key


def test_config_says_where_each_value_comes_from(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFGRPO_LOOP_SERVICE_PORT", "4400")
    (project / "loop.toml").write_text("[assembler]\nidle_s = 5\n")
    rows = {row.split()[0]: row.split(maxsplit=2)[1:] for row in tfgrpo("loop", "config").splitlines()}
    assert rows["service.port"] == ["4400", "environment TFGRPO_LOOP_SERVICE_PORT"]
    assert rows["assembler.idle_s"] == ["5", "loop.toml"]
    assert rows["view.path"] == ["loop-view.db", "default"]
