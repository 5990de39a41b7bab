"""The commands ``tfgrpo loop candidates ...``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from support.cuts import Cutter
from support.loop_events import feedback, publish
from support.tools import tfgrpo

from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.scenario_files import load_scenarios


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a loop, and what is right at two tasks."""
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    with closing(open_bus("embedded:loop-bus.db")) as bus:
        publish(bus, Cutter.attempt("a", 0.25), Cutter.attempt("b", 0.75, prompt="And\x1b[2J the\nother?"))
        publish(bus, [feedback("l", "label", "a", text="gold", expected="shipped")])
        publish(bus, [feedback("c", "correction", "b", text="not that one\x1b[2J")])
    return tmp_path


def test_candidates_are_listed_shown_and_accepted(project: Path) -> None:
    head, first, second, last = tfgrpo("loop", "candidates", "list").splitlines()
    assert head.split() == ["id", "users", "reward", "check", "domain", "task"]
    id_, *row = first.split(maxsplit=5)
    assert row == ["1", "0.25", "check", "general", "Where is order 17?"]
    assert second.split(maxsplit=5)[3:] == ["rubric", "general", "And\\x1b[2J the..."]
    assert max(map(len, (head, first, second))) <= 80
    assert last == f"next: tfgrpo loop candidates show {id_}"
    assert "1 more; list them with --most 2" in tfgrpo("loop", "candidates", "list", "--most", "1")
    shown = tfgrpo("loop", "candidates", "show", id_)
    other = second.split()[0]
    assert "\x1b" not in tfgrpo("loop", "candidates", "show", other)
    told = tfgrpo("loop", "candidates", "accept", id_, other, id_, "--to", "suite")
    assert told == f"wrote  suite/{id_}.scenario.yaml\nwrote  suite/{other}.scenario.yaml\n"
    path = project / "suite" / f"{id_}.scenario.yaml"
    assert path.read_text() == shown
    (found,) = load_scenarios(path, root=project, kinds=KINDS)
    assert (found.id, found.prompt, found.split) == (id_, "Where is order 17?", "train")
    again = tfgrpo("loop", "candidates", "accept", id_, "--to", "suite", code=1)
    assert f"suite/{id_}.scenario.yaml exists, and is left as it is" in again


def test_an_unknown_id_writes_nothing(project: Path) -> None:
    told = tfgrpo("loop", "candidates", "accept", "production-0", "--to", "suite", code=1)
    assert "there is no candidate 'production-0'" in told
    assert not (project / "suite").exists()


def test_a_loop_without_such_feedback_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    open_bus("embedded:loop-bus.db").close()
    assert "no candidates: no feedback of type label" in tfgrpo("loop", "candidates", "list")
