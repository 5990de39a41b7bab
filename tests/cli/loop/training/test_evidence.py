"""The command ``tfgrpo loop evidence``."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from support.cuts import Cutter
from support.loop_events import publish
from support.tools import tfgrpo

from pytest_tfgrpo.production.bus.registry import open_bus


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a loop, and three attempts at each of two tasks."""
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    with closing(open_bus("embedded:loop-bus.db")) as bus:
        for n in range(6):
            publish(bus, Cutter.attempt(f"a{n}", [0.1, 0.5, 0.9][n % 3], prompt=f"Task {n // 3}"))
    return tmp_path


def test_a_file_is_written_for_its_owner_with_what_was_left_out_and_what_to_do_next(project: Path) -> None:
    (project / "loop.toml").write_text("[training.domains]\nsupport-bot = 'orders'\n")
    told = tfgrpo("loop", "evidence", "--to", "it's.jsonl", "--sample-size", "3", "--seed", "7")
    assert "kept       3 attempts at 1 task\n" in told
    assert "left out   3 not_drawn: the sample is full" in told
    assert "next: pytest --tfgrpo --tfgrpo-evidence 'it'\"'\"'s.jsonl'\n" in told
    first, second = map(json.loads, (project / "it's.jsonl").read_text().splitlines())
    assert (first["sample_size"], first["seed"], second["domain"]) == (3, 7, "orders")
    assert (project / "it's.jsonl").stat().st_mode & 0o077 == 0
    assert "it's.jsonl exists; name another file" in tfgrpo("loop", "evidence", "--to", "it's.jsonl", code=1)


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--since", "2025-12-09", "other_date"),
        ("--since", "2025-12-08T13:05:30.251+01:00", "other_date"),
        ("--min-reward", "0.95", "low_reward"),
    ],
)
def test_nothing_that_fits_is_said_and_leaves_no_file(project: Path, option, value, reason) -> None:
    told = tfgrpo("loop", "evidence", "--to", "e.jsonl", option, value)
    assert f"left out   6 {reason}: " in told
    assert "wrote      nothing" in told
    assert not (project / "e.jsonl").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--since", "soon"), ("--min-reward", "2"), ("--min-reward", "nan"), ("--min-reward", "x")],
)
def test_an_option_that_is_none_says_what_it_must_be(project: Path, option: str, value: str) -> None:
    assert f"must be a {'date' if option == '--since' else 'number'}" in tfgrpo(
        "loop", "evidence", "--to", "e.jsonl", option, value, code=2
    )


def test_a_folder_that_is_not_there_is_named(project: Path) -> None:
    assert "cannot write no/e.jsonl" in tfgrpo("loop", "evidence", "--to", "no/e.jsonl", code=1)
