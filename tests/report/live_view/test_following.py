"""A run that goes on, followed through its journal."""

import gc
import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.browser_runs import HOSTILE
from support.intake import KEY
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import JOURNAL, run_folder
from pytest_tfgrpo.metrics.epochs import per_epoch
from pytest_tfgrpo.report.live_view.following import JournalFollower
from pytest_tfgrpo.report.live_view.run_figures import FAILURES
from pytest_tfgrpo.runs.journal.journal import Event, encode, read
from pytest_tfgrpo.runs.journal.journal_contents import load_run
from pytest_tfgrpo.runs.schedule import MIN_DEV

NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a run that learned, with a dev split and a concurrent baseline sweep."""
    place = tmp_path_factory.mktemp("run")
    folder = run_folder(place, "demo", "run1")
    scenarios = [replace(s, split="dev") if n < MIN_DEV else s for n, s in enumerate(suite(MIN_DEV + 8, 10))]
    run_job(make_job(ScriptedActor(three_or_not), place, scenarios=scenarios), folder)
    return folder / JOURNAL


@pytest.fixture
def growing(ended: Path, tmp_path: Path) -> Path:
    """A journal that has nothing but the start of the run."""
    path = tmp_path / JOURNAL
    path.write_bytes(lines_of(ended)[0])
    return path


def lines_of(journal: Path) -> list[bytes]:
    return journal.read_bytes().splitlines(keepends=True)


def followed(journal: Path) -> JournalFollower:
    follower = JournalFollower(journal)
    assert not follower.read()
    return follower


def with_rollout(journal: Path, **changes: Any) -> bytes:
    """Return the first rollout's line with other values."""
    line = next(line for line in lines_of(journal) if b'"event":"rollout"' in line)
    event = json.loads(line)
    return encode(event["n"], "rollout", event["data"] | changes)


def test_what_is_shown_at_the_end_is_what_the_report_says(ended: Path) -> None:
    run = load_run(ended.parent)
    state = followed(ended).state(NOW)
    rows = {row["label"]: row for row in state["phases"]}
    reported = per_epoch(run)["epochs"]
    assert list(rows) == ["epoch1", "epoch1-dev", "epoch2", "epoch2-dev", "baseline", "epoch3-eval"]
    for result, told in zip(run.phases, reported, strict=True):
        row = rows[result.phase.label]
        assert (row["done"], row["errors"]) == (told["rollouts"], told["errors"])
        if "dev" in told:
            dev = rows[f"{row['label']}-dev"]
            assert (dev["done"], dev["scored"]) == (told["dev"]["rollouts"], told["dev"]["groups"])
        assert row["mean"] == pytest.approx(told["gt_score"]["mean"])
        assert row["scored"] == told["gt_score"]["n"]
        assert row["usd"] == pytest.approx(told["cost_usd"]["sum"])
        assert row["status"] == "complete"
        if result.revision is not None:
            assert row["lessons"] == told["experiences"]["in_force"]
    assert state["learned"] == sum(len(r.revision.applied) for r in run.phases if r.revision)
    assert state["finish"] == "complete"
    assert state["read"] == 1.0


@given(st.data())
def test_a_journal_followed_in_any_pieces_gives_the_same_figures(ended: Path, data: st.DataObject) -> None:
    whole = ended.read_bytes()
    places = data.draw(st.lists(st.integers(0, len(whole)), max_size=12), label="pieces end at")
    path = ended.with_name("pieces.jsonl")
    path.write_bytes(b"")
    follower = JournalFollower(path)
    with path.open("ab") as file:
        for start, end in zip([0, *sorted(places)], [*sorted(places), len(whole)], strict=True):
            file.write(whole[start:end])
            file.flush()
            while follower.read(0.002):
                pass
    assert follower.state(NOW) == followed(ended).state(NOW)


def test_only_what_is_new_is_read(ended: Path, growing: Path) -> None:
    rows = lines_of(ended)
    follower = followed(growing)
    with growing.open("r+b") as file:
        file.seek(len(rows[0]) // 2)
        file.write(b"?")  # who reads it again finds it damaged
        file.seek(0, os.SEEK_END)
        file.write(rows[1])
    follower.read()
    assert follower.events == 2


def test_a_line_that_is_not_yet_whole_waits(ended: Path, growing: Path) -> None:
    follower, line = followed(growing), lines_of(ended)[1]
    for part, events in ((line[:30], 1), (line[30:-1], 1), (line[-1:], 2)):
        with growing.open("ab") as file:
            file.write(part)
        follower.read()
        assert follower.events == events


@pytest.mark.parametrize("number", [1, 3])
def test_a_line_out_of_its_order_is_refused(ended: Path, growing: Path, number: int) -> None:
    event = json.loads(lines_of(ended)[1])
    follower = followed(growing)
    with growing.open("ab") as file:
        file.write(encode(number, event["event"], event["data"]))
    with pytest.raises(JournalError, match=f"its number n is {number}: lines are missing or moved"):
        follower.read()


@pytest.mark.parametrize("in_place", [False, True])
def test_another_journal_in_its_place_is_read_from_its_start(
    ended: Path, growing: Path, in_place: bool
) -> None:
    rows = lines_of(ended)
    growing.write_bytes(b"".join(rows[:9]))
    follower = followed(growing)
    assert follower.events == 9
    if not in_place:
        growing.unlink()
    start = json.loads(rows[0])["data"] | {"task_id": "another"}
    growing.write_bytes(encode(1, "run", start) + b"".join(rows[1:12]))
    follower.read()
    state = follower.state(NOW)
    assert (state["task_id"], state["events"], state["generation"]) == ("another", 12, 1)


def test_a_run_that_goes_on_after_a_kill_is_followed_over_it(ended: Path, tmp_path: Path) -> None:
    rows = lines_of(ended)
    at = next(n for n, row in enumerate(rows) if b'"event":"phase"' in row) + 3
    path = tmp_path / JOURNAL
    path.write_bytes(b"".join([*rows[:at], rows[at][:50]]))
    follower = followed(path)
    again = [encode(at + 1, "resume", {"versions": {}})]
    for n, row in enumerate(rows[at - 1 :], at + 2):  # the last rollout is made again
        event = json.loads(row)
        again.append(encode(n, event["event"], event["data"]))
    path.write_bytes(b"".join([*rows[:at], *again]))
    follower.read()
    whole, resumed = followed(ended).state(NOW), follower.state(NOW)
    assert resumed["generation"] == 0
    assert [r["done"] for r in resumed["phases"]] == [r["done"] for r in whole["phases"]]
    assert [r["mean"] for r in resumed["phases"]] == [r["mean"] for r in whole["phases"]]
    assert resumed["finish"] == "complete"


@pytest.mark.parametrize("damage", [b"x" * 60 + b"\n", b"{}\n", b"\n"])
def test_a_damaged_line_is_named(ended: Path, growing: Path, damage: bytes) -> None:
    with growing.open("ab") as file:
        file.write(damage)
    follower = JournalFollower(growing)
    with pytest.raises(JournalError, match=f"{JOURNAL}:2: this line of the journal cannot be relied on"):
        follower.read()
    assert follower.state(NOW)["run_id"] == "run1"  # what was read before it stays


def test_an_event_that_does_not_fit_the_run_is_named(ended: Path, growing: Path) -> None:
    with growing.open("ab") as file:
        file.write(with_rollout(ended, scenario_id="of another suite"))
    with pytest.raises(JournalError, match=f"{JOURNAL}:2: event 'rollout' cannot be read"):
        JournalFollower(growing).read()


def test_a_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    path.write_bytes(encode(1, "run", {"schema": "tfgrpo.journal/0"}))
    with pytest.raises(JournalError, match="use the version of pytest-tfgrpo that wrote it"):
        JournalFollower(path).read()


def test_the_time_left_follows_the_pace_and_grows_while_nothing_comes(ended: Path, growing: Path) -> None:
    run = followed(growing).run
    assert run is not None
    assert run.pace(NOW) == (None, None)
    rows = [json.loads(row) for row in lines_of(ended) if b'"event":"rollout"' in row][:11]
    follower = JournalFollower(growing)
    follower.read()
    assert follower.run is not None
    for second, row in enumerate(rows):
        row["at"] = f"2026-01-01T00:00:{second:02}Z"
        follower.run.take(event_of(row | {"data": row["data"] | {"latency_ms": 4000.0}}))
    left = sum(phase.left for phase in follower.run.phases)
    end = 1_767_225_610.0
    assert follower.run.pace(end) == (pytest.approx(left), pytest.approx(4.0))
    later, _ = follower.run.pace(end + 10)
    assert later == pytest.approx(2 * left)


def event_of(row: dict[str, Any]) -> Event:
    return Event(n=row["n"], event=row["event"], data=row["data"], at=row["at"])


def test_memory_follows_the_plan_and_not_the_events(ended: Path) -> None:
    events = [event for event in read(ended) if event.event in ("rollout", "group", "call")]
    run = followed(ended).run
    assert run is not None

    def taken(times: int) -> int:
        for _ in range(times):
            for event in events:
                run.take(event)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first = taken(2)
        assert taken(20) - first < 30_000  # what 20 times some 500 events take is millions
    finally:
        tracemalloc.stop()


def test_failures_have_a_bound_and_hostile_text_is_made_plain(ended: Path, growing: Path) -> None:
    failure = {"code": "crash", "message": f"\x1b[31m{KEY} {HOSTILE}" + "x" * 5000}
    line = json.loads(with_rollout(ended, status="failed", failure=failure))
    with growing.open("ab") as file:
        for n in range(2, 2 + 3 * FAILURES):
            file.write(encode(n, "rollout", line["data"]))
    state = followed(growing).state(NOW)
    assert (len(state["failures"]), state["failed"]) == (FAILURES, 3 * FAILURES)
    text = state["failures"][0]["text"]
    assert text.isprintable()
    assert KEY not in text
    assert len(text) <= 300
