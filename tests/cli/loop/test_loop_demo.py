"""`tfgrpo loop demo`: what it says last of the files that its commands need."""

from argparse import Namespace
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from support.loop_events import publish, trajectory

from pytest_tfgrpo.cli import parser as command_line
from pytest_tfgrpo.cli.demo_folder import demo_folder
from pytest_tfgrpo.cli.loop import loop_demo
from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.service import app


@pytest.mark.parametrize("kept", [True, False])
def test_its_last_line_says_where_its_commands_find_their_files(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_demo, "demo", demo)
    monkeypatch.chdir(tmp_path)
    into = tmp_path / "demo"
    given = Namespace(into=str(into) if kept else None, seed=0, tasks=9, bus="", html=None)
    lines = [*loop_demo.demo_command(given)]
    assert ("tfgrpo loop demo --into DIR" in lines[-1]) is not kept
    assert (str(into / "killed" / "loop.toml") in lines[-1]) is kept
    page = Path("demo/report.html" if kept else "loop-demo.html")
    assert f"page   {page}" in lines
    assert page.read_text(encoding="utf-8") == "the page"


def test_a_missing_extra_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "find_spec", lambda name: None if name == "starlette" else name)
    into = tmp_path / "demo"
    given = Namespace(into=str(into), seed=0, tasks=9, bus="", html=None)
    with pytest.raises(SettingError) as refused:
        next(loop_demo.demo_command(given))
    assert str(refused.value) == "starlette missing: pip install 'pytest-tfgrpo[serve]'"
    assert not into.exists()


def demo(*_: object) -> Generator[str, None, str]:
    yield "done"
    return "the page"


def test_a_bus_that_is_in_use_is_refused(tmp_path: Path) -> None:
    bus = f"embedded:{tmp_path / 'bus.db'}"
    with closing(open_bus(bus)) as used:
        publish(used, [trajectory("a")])
    with pytest.raises(StoreError, match="the bus has events in RL_TRAJECTORIES; name an empty one with"):
        next(loop_demo.demo(tmp_path / "demo", bus=bus))


def test_every_whole_number_is_a_seed() -> None:
    assert command_line().parse_args(["loop", "demo", "--seed", "0"]).seed == 0


def test_a_relative_folder_is_found_from_any_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with demo_folder("here") as folder:
        assert folder == tmp_path / "here"


@pytest.mark.parametrize("kept", [True, False])
def test_its_page_goes_where_html_says(kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_demo, "demo", demo)
    monkeypatch.chdir(tmp_path)
    into = str(tmp_path / "demo") if kept else None
    lines = [*loop_demo.demo_command(Namespace(into=into, seed=0, tasks=9, bus="", html="mine.html"))]
    assert "page   mine.html" in lines
    assert Path("mine.html").is_file()
