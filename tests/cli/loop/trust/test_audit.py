"""The commands ``tfgrpo loop audit ...``, and which commands the audit keeps."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.loop_events import publish, trajectory
from support.tools import tfgrpo

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT
from pytest_tfgrpo.storage.event_store import BusEvent


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bus]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "ada")
    tfgrpo("loop", "init")
    found = open_bus("embedded:loop-bus.db")
    publish(found, [trajectory("a"), trajectory("b", user="u-" + "0" * 32)])
    yield found
    found.close()


def listed(*more: str) -> list[tuple[str, str, str]]:
    """Return who did what."""
    found = [
        json.loads(one)["record"] for one in tfgrpo("loop", "audit", "list", "--json", *more).splitlines()
    ]
    return [(one.get("actor", ""), one["action"], one["what"]) for one in found]


def test_what_people_read_write_out_and_leave_out_is_kept_without_whom(bus: Bus) -> None:
    assert tfgrpo("loop", "audit", "list") == "none\n"
    tfgrpo("loop", "show", derived_id("a"))
    tfgrpo("loop", "show", derived_id("b"))
    tfgrpo("loop", "evidence", "--to", "evidence.jsonl", "--min-reward", "0.5")
    tfgrpo("loop", "candidates", "list")
    tfgrpo("loop", "candidates", "accept", "nobody", "--to", "suite", code=1)
    tfgrpo("loop", "opt-out", "add", "--user", "alice@example.org")
    tfgrpo("loop", "opt-out", "remove", "--user", "alice@example.org")
    assert listed() == [
        ("ada", "read", "trajectory"),
        ("ada", "read", "trajectory"),
        ("ada", "export", "evidence"),
        ("ada", "read", "candidates"),
        ("ada", "export", "candidates"),
        ("ada", "opt_out_added", "user"),
        ("ada", "opt_out_removed", "user"),
    ]
    assert listed("--last", "2") == listed()[-2:]
    assert listed("--trajectory", derived_id("a").upper()) == [("ada", "read", "trajectory")]
    kept = b"".join(one.data for one in bus.replay("RL_AUDIT"))
    assert b"alice" not in kept
    assert derived_id("a").encode() not in kept
    assert b'"min_reward":0.5' in kept
    said = tfgrpo("loop", "audit", "list").splitlines()
    assert said[0].split() == ["time", "(UTC)", "who", "did", "what"]
    assert re.fullmatch(r"1  [0-9-]+T[0-9:]{8}  ada  read +trajectory [0-9a-f]{8}", said[1])


def test_the_start_of_an_id_lists_who_read_a_trajectory_and_never_nobody_by_mistake(bus: Bus) -> None:
    tfgrpo("loop", "show", derived_id("a"))
    read = [("ada", "read", "trajectory")]
    assert listed("--trajectory", derived_id("a")[:8]) == read
    assert "stands for no trajectory on the bus" in tfgrpo(
        "loop", "audit", "list", "--trajectory", "zz", code=1
    )
    assert "stands for several trajectories" in tfgrpo("loop", "audit", "list", "--trajectory", "", code=1)
    bus.delete("RL_TRAJECTORIES", [one.id for one in bus.replay("RL_TRAJECTORIES")])
    Path("loop-view.db").unlink()
    assert listed("--trajectory", derived_id("a")) == read, "also of one that is gone"
    assert listed("--trajectory", f" {derived_id('a').upper()} ") == read


def test_a_reason_is_below_its_record_and_all_fits_a_terminal(bus: Bus) -> None:
    value = {"actor": "a" * 30, "action": "deployment_roll_back", "what": "v3", "reason": "word " * 40}
    bus.publish(
        [
            BusEvent(
                id=derived_id("x"),
                subject=AUDIT_SUBJECT,
                time="2026-01-01T12:00:00.000Z",
                data=json.dumps(value).encode(),
            )
        ]
    )
    head, row, *reason = tfgrpo("loop", "audit", "list").splitlines()
    assert row.endswith("deployment_roll_back  v3")
    assert " ".join(reason).split() == ["word"] * 40
    assert max(map(len, (head, row, *reason))) <= 80


def test_verify_prints_the_head_and_names_the_first_record_that_was_changed(bus: Bus) -> None:
    assert tfgrpo("loop", "audit", "verify") == "audit      no record yet\n"
    for name in "aab":
        tfgrpo("loop", "show", derived_id(name))
    said = tfgrpo("loop", "audit", "verify").splitlines()
    assert said[:2] == [
        "audit      3 records, from 1 to 3",
        "chain      whole; only --anchor shows whether its end was cut off",
    ]
    head = said[2].removeprefix("head       ")
    tfgrpo("loop", "show", derived_id("a"))
    said = tfgrpo("loop", "audit", "verify", "--anchor", head).splitlines()
    assert said[1] == "chain      whole, and the record of the anchor is in it"
    assert "must be a head such as" in tfgrpo("loop", "audit", "verify", "--anchor", "4:x", code=1)
    records = list(bus.replay("RL_AUDIT"))
    with closing(sqlite3.connect("loop-bus.db")) as file, file:  # as somebody would who may write the file
        query = "SELECT first, body FROM stream_rl_audit WHERE first = 2"
        ((first, body),) = file.execute(query.replace("stream_rl_audit", table_of(file))).fetchall()
        file.execute(
            f"UPDATE {table_of(file)} SET body = ? WHERE first = ?", (body.replace(b'"ada"', b'"eve"'), first)
        )
    error = tfgrpo("loop", "audit", "verify", code=1)
    assert f"is broken: audit record 2 ({records[1].id}, {records[1].time}) is not the one" in error


@pytest.mark.parametrize(
    "change",
    ["head = 'x'", "head = '[1, 2, 3]'", "head = '5'", "body = 'text'", "ids = x'00'", "count = 0"],
)
def test_a_record_that_is_no_longer_one_is_named_and_is_no_bug_of_ours(bus: Bus, change: str) -> None:
    for _ in range(3):
        tfgrpo("loop", "show", derived_id("a"))
    with closing(sqlite3.connect("loop-bus.db")) as file, file:
        file.execute(f"UPDATE {table_of(file)} SET {change} WHERE first = 2")
    assert "of RL_AUDIT were changed by another program" in tfgrpo("loop", "audit", "verify", code=1)


def test_an_end_that_was_cut_off_shows_by_an_anchor_alone(bus: Bus) -> None:
    for _ in range(2):
        tfgrpo("loop", "show", derived_id("a"))
    head = tfgrpo("loop", "audit", "verify").splitlines()[-1].split()[1]
    for gone, first in (
        (2, "record 2 is missing though"),
        (1, "record 1 is missing, like all up to 2, though"),
    ):
        with closing(sqlite3.connect("loop-bus.db")) as file, file:
            file.execute(f"DELETE FROM {table_of(file)} WHERE first = ?", (gone,))
        tfgrpo("loop", "audit", "verify")
        said = tfgrpo("loop", "audit", "verify", "--anchor", head, code=1)
        assert f"{first} the anchor names 2" in said


def table_of(file: sqlite3.Connection) -> str:
    """Return the table of the audit."""
    names = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return next(name for name in names if "audit" in name.lower())


def test_an_anchor_older_than_what_is_kept_says_so(bus: Bus) -> None:
    tfgrpo("loop", "show", derived_id("a"))
    old = tfgrpo("loop", "audit", "verify").splitlines()[-1].split()[1]
    for _ in range(2):
        tfgrpo("loop", "show", derived_id("a"))
    bus.delete("RL_AUDIT", [next(iter(bus.replay("RL_AUDIT"))).id])
    assert "1 older ones are gone" in tfgrpo("loop", "audit", "verify")
    assert "record of the anchor, 1, is older than those that are kept" in tfgrpo(
        "loop", "audit", "verify", "--anchor", old, code=1
    )
