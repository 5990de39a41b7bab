"""Damaged journals: resuming finishes what only lacks its end, and refuses all else by file and line."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from support.attacks import RESUME, Attacked, attacked
from support.campaign import Campaign
from support.forks import Forks
from support.project import Project

pytestmark = pytest.mark.faults
Lines = list[bytes]


def cut(lines: Lines, draw: Random) -> Lines:
    whole = b"".join(lines)
    return [whole[: draw.randrange(len(lines[0]), len(whole))]]


def drop(lines: Lines, draw: Random) -> Lines:
    at = draw.randrange(len(lines) - 1)
    return lines[:at] + lines[at + 1 :]


def double(lines: Lines, draw: Random) -> Lines:
    at = draw.randrange(len(lines))
    return lines[: at + 1] + lines[at:]


def swap(lines: Lines, draw: Random) -> Lines:
    one, other = draw.sample(range(len(lines)), 2)
    moved = list(lines)
    moved[one], moved[other] = lines[other], lines[one]
    return moved


def flip(lines: Lines, draw: Random) -> Lines:
    whole = bytearray(b"".join(lines))
    whole[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
    return [bytes(whole)]


def foreign(lines: Lines, draw: Random) -> Lines:
    at = draw.randrange(1, len(lines))
    line = draw.choice(
        [b"\n", b"{}\n", b"null\n", b"\xff\xfe\n", b'{"n":%d,"event":"rollout","data":{}}\n' % at]
    )
    return [*lines[:at], line, *lines[at:]]


def huge(lines: Lines, draw: Random) -> Lines:
    at = draw.randrange(1, len(lines))
    return [*lines[:at], b"x" * (8 << 20) + b"\n", *lines[at:]]


def other_version(lines: Lines, draw: Random) -> Lines:
    header = json.loads(lines[0])
    header["data"]["schema"] = f"tfgrpo.journal/{draw.randint(2, 9)}"
    head = json.dumps({key: header[key] for key in ("n", "event", "data", "at")}).encode()[:-1]
    return [b'%s,"crc":"%08x"}\n' % (head, zlib.crc32(head)), *lines[1:]]


def empty(lines: Lines, draw: Random) -> Lines:
    return []


DAMAGES: tuple[Callable[[Lines, Random], Lines], ...] = (
    cut, drop, double, swap, flip, foreign, huge, other_version, empty,
)  # fmt: skip


def damage(one: Attacked, how: Callable[[Lines, Random], Lines], point: str, draw: Random) -> None:
    assert one.kill(point)
    (path,) = one.root.glob("out/demo/runs/*/journal.jsonl")
    damaged = b"".join(how(path.read_bytes().splitlines(keepends=True), draw))
    path.write_bytes(damaged)
    before = one.questions()
    code, output = one.run(*RESUME)
    for command in ("runs", "report"):
        assert one.project.cli(command) in (0, 1)  # 3 is a bug
    if code == one.code:
        assert how in (cut, flip), "it was not noticed"
        left = one.changes()
        assert not left, left
        return
    assert code == pytest.ExitCode.USAGE_ERROR, output
    assert one.questions() == before
    assert path.read_bytes() == damaged
    if how is empty:
        assert "no incomplete run" in output
    elif how is other_version:
        assert "use the version of pytest-tfgrpo that wrote it" in output
    else:
        assert f"{path}:" in output
        assert "restore the file, or delete the run's folder and start a new run" in output
    code, output = one.run("--tfgrpo")  # a new run is not kept from starting
    assert code == one.code, output


@pytest.mark.parametrize("how", DAMAGES, ids=lambda how: str(how.__name__))
def test_a_damaged_journal_is_finished_or_refused_by_line(
    how: Callable[[Lines, Random], Lines],
    project: Project,
    forks: Forks,
    monkeypatch: pytest.MonkeyPatch,
    campaign: Campaign,
) -> None:
    if how not in campaign.sample(DAMAGES, 1):
        pytest.skip("not in the sample")
    for one in attacked("command", project, forks, monkeypatch):
        draw = campaign.random("damage", how.__name__)
        for _ in range(campaign.count(2, 15)):
            point = f"event:{draw.randint(12, one.counted['event'] - 1)}"
            one.survive(f"{how.__name__} after {point}", partial(damage, one, how, point, draw))
        one.conclude()
