"""`tfgrpo loop demo`: what it prints, on both buses; that two loops know the same is its own business."""

import re
import shlex
from collections.abc import Generator
from pathlib import Path

import pytest
from support.buses import NatsPlace
from support.loop_stories import read_aloud

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


def shown(given: Generator[str, None, str]) -> tuple[str, str]:
    """Return what the demo prints, and its page as one reads it."""
    lines = list[str]()
    while True:
        try:
            lines.append(next(given))
        except StopIteration as ended:
            return "\n".join(lines), read_aloud(ended.value)


def test_what_it_learns_is_a_version_that_waits_for_a_person(tmp_path: Path) -> None:
    text, page = shown(demo(tmp_path))
    check_learned(text, tmp_path)
    assert decisions(text) == DECISIONS
    assert "would still have been missed" in text
    assert max(map(len, text.splitlines())) <= 80
    for version in ("v2 live 20", "v3 rolled back 20", "v4 live 20"):
        assert f"\n{version}" in page
    assert "emergency override grace: override: a customer waits for it" in page


def check_learned(text: str, folder: Path) -> None:
    """Check what the demo says of its training job, and that the commands that it prints can be done."""
    assert "trigger    threshold_reached" in text
    before, after = map(float, re.findall(r"version    v2 .* ([0-9.]+) to ([0-9.]+)", text)[0])
    assert after > before
    assert "needs approval: no safety suite was tried" in text
    following = re.findall(r"(?m)^(?:next:| {5}) tfgrpo (loop .*? --reason TEXT)$", text)
    assert [command_line().parse_args(shlex.split(one)).version for one in following] == ["v2", "v2"]
    for command in following:
        assert main([*shlex.split(command), "--config", str(folder / "killed" / "loop.toml")]) == 0
    assert re.search(r"control    the same attempts, rewards shuffled .*: [0-9.]+ to [0-9.]+", text)


def test_a_service_that_cannot_start_says_why_once(tmp_path: Path) -> None:
    loop = DemoLoop(tmp_path)
    loop.config.write_text("[servise]\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"loop.toml did not start: (?!tfgrpo:).*'servise'.*\S\Z"):
        loop.start()
    loop.stop()


def decisions(text: str) -> list[str]:
    """Return the decisions about versions, without their times; the bad one may be found before its second
    step."""
    found = re.findall(r"\d+ h \d\d    (v\d [a-z ]+, \d+ %)", text)
    bad = {one[:2] for one in found if "rolled back" in one}
    return [one for one in found if one[:2] not in bad or "10 %" not in one]


def test_the_bus_may_be_a_nats_server(tmp_path: Path, on_nats: NatsPlace) -> None:
    text, page = shown(demo(tmp_path, bus=f"nats:{on_nats.server.url}"))
    assert "the same figures" in text
    assert "none is kept" in text
    check_learned(text, tmp_path)
    assert decisions(text) == [f"v{int(one[1]) + 1}{one[2:]}" for one in DECISIONS], "v2 is what it learned"
    assert re.search(r"\nv2: (\d+) lessons, \1 new\n", page)
    assert "\nv4 rolled back 20" in page
