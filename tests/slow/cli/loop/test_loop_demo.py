"""`tfgrpo loop demo`: what it prints, on both buses; that two loops know the same is its own business."""

import re
import shlex
from pathlib import Path

import pytest
from support.buses import NatsPlace

from pytest_tfgrpo.cli import main
from pytest_tfgrpo.cli import parser as command_line
from pytest_tfgrpo.cli.demo.demo_library import prepare
from pytest_tfgrpo.cli.loop.demo_traffic import DAYS, OPTED_OUT, open_traffic
from pytest_tfgrpo.cli.loop.loop_demo import DemoLoop, demo
from pytest_tfgrpo.core.errors import StoreError

TASKS = 90
DECISIONS = [
    *("v2 canary, 10 %", "v2 canary, 25 %", "v2 canary, 50 %", "v2 canary, 95 %", "v2 live, 100 %"),
    *("v3 canary, 5 %", "v3 rolled back, 0 %"),
    *("v4 canary, 10 %", "v4 canary, 25 %", "v4 held, 25 %", "v4 canary, 25 %", "v4 canary, 50 %"),
    *("v4 canary, 95 %", "v4 live, 100 %"),
]
START_NS = 1_795_000_000 * 10**9


def test_the_traffic_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    first, second = ([*open_traffic(_folder(tmp_path, n), 7, 40, START_NS).requests()] for n in "ab")
    assert first == second
    assert {request.day for request in first} == set(range(DAYS))
    assert sum(request.runs for request in first) < 40, f"{OPTED_OUT} has opted out"


def _folder(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    prepare(folder, 7)
    return folder


def test_a_loop_that_is_killed_knows_what_one_that_is_not_killed_knows(tmp_path: Path) -> None:
    text = "\n".join(demo(tmp_path, tasks=TASKS))
    assert "kill -9" in text
    assert "the same figures" in text
    assert "none is kept" in text
    assert re.search(r"secrets +\d+ secrets, .*none is kept", text)


def test_what_it_learns_is_a_version_that_waits_for_a_person(tmp_path: Path) -> None:
    text = "\n".join(demo(tmp_path))
    assert "trigger    threshold_reached" in text
    before, after = map(float, re.findall(r"version    v2 .* ([0-9.]+) to ([0-9.]+)", text)[0])
    assert after > before
    assert "needs approval: no safety suite was tried" in text
    following = re.findall(r"(?:next|) {7,}tfgrpo (loop .*? --reason TEXT)", text)
    assert [command_line().parse_args(shlex.split(one)).version for one in following] == ["v2", "v2"]
    for command in following:  # what it prints can be done
        assert main([*shlex.split(command), "--config", str(tmp_path / "killed" / "loop.toml")]) == 0
    assert re.search(r"control    the same attempts with rewards shuffled .*: [0-9.]+ to [0-9.]+", text)
    assert decisions(text) == DECISIONS
    assert "would still have been missed" in text


def test_a_service_that_cannot_start_says_why_once(tmp_path: Path) -> None:
    loop = DemoLoop(tmp_path)
    loop.config.write_text("[servise]\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"loop.toml did not start: (?!tfgrpo:).*'servise'.*\S\Z"):
        loop.start()
    loop.stop()


def decisions(text: str) -> list[str]:
    """Return the decisions about versions, without their times; v3 may be found before its second step."""
    found = re.findall(r"\d+ h \d\d    (v\d [a-z ]+, \d+ %)", text)
    return [one for one in found if one != "v3 canary, 10 %"]


def test_the_bus_may_be_a_nats_server(tmp_path: Path, on_nats: NatsPlace) -> None:
    text = "\n".join(demo(tmp_path, tasks=45, bus=f"nats:{on_nats.server.url}"))
    assert "the same figures" in text
    assert "none is kept" in text
    assert decisions(text) == DECISIONS
