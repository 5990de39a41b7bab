"""The live store under kills, of several processes, and cut at every write: nothing is lost or used twice."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.campaign import Campaign
from support.live_events import RULES, Reporter, runs, until

from pytest_tfgrpo.production.live.intake.collector import Collector
from pytest_tfgrpo.production.live.records import LiveStatus
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store

pytestmark = [pytest.mark.faults, pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")]
TRIAL = 6
"""Runs of a process that is killed."""


def whole(store: LiveStore) -> None:
    """Check all that holds of a store at any time."""
    rollouts = list(store.rollouts())
    assert [rollout.sequence for rollout in rollouts] == list(range(1, len(rollouts) + 1))
    updates = store.updates()
    assert [update.number for update in updates] == list(range(1, len(updates) + 1))
    used = [id_ for update in updates for id_ in update.used]
    assert len(used) == len(set(used)), "used twice"
    uses = {id_: update.number for update in updates for id_ in update.used}
    assert {rollout.id: rollout.used_in for rollout in rollouts if rollout.used_in} == uses
    number, document = store.selector() or (0, {"learned": 0})
    assert (number, document) == (len(updates), {"learned": len(used)}), "report, selector and use are one"
    for rollout in rollouts:
        decisions = [span for span in store.spans(rollout.id) if span.name == "live.agent.decision"]
        ended = rollout.status is not LiveStatus.RUNNING
        assert len(decisions) == ended == (rollout.trace is not None) == (rollout.ended_at is not None)
        *earlier, last = store.attempts(rollout.id)
        assert (last.number, last.status) == (rollout.attempt, rollout.status)
        assert all(attempt.status is LiveStatus.FAILED for attempt in earlier)


def forked(work: Callable[[], None]) -> int:
    """Run `work` in a child process; return its id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def trial(path: Path, names: list[str], told: int, kill_at: int | None) -> int:
    """Report runs one by one and tell which are durable; die at a write. Return how many there were."""
    store = open_live_store(path, "shop")
    count = [0]

    def step(statement: str) -> None:
        count[0] += statement.startswith(("BEGIN", "INSERT", "UPDATE", "COMMIT"))
        if count[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    store._db.set_trace_callback(step)
    collector = Collector(store, RULES, interval=2, limit=4)
    for name in names:
        one = Reporter(name)
        for event in [*one.whole()[:-1], one.event("safety", blocked=False)]:
            collector.put(event)
        collector.flush()
        collector.put(one.end())
        collector.flush()
        os.write(told, f"{name}\n".encode())
    collector.close()
    store.close()
    return count[0]


@pytest.fixture(scope="module")
def writes(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return how many writes the trial takes."""
    return trial(
        tmp_path_factory.mktemp("trial") / "live.db", list("abcdefghijkl"), os.open(os.devnull, 1), None
    )


@pytest.mark.timeout(600)
def test_a_process_killed_at_any_write_lost_nothing_that_was_durable(
    writes: int, tmp_path: Path, campaign: Campaign
) -> None:
    assert writes > 100
    points, killed = campaign.sample(range(1, writes + 1), 8), 0
    for point in points:
        path = tmp_path / f"{point}.db"
        durable: list[str] = []
        known: dict[str, str] = {}
        for attempt, kill_at in enumerate((point, 1 + (writes - point) // 2, None)):
            names = [f"{attempt}-{n}" for n in range(TRIAL)]
            ours, theirs = os.pipe()
            child = forked(lambda p=path, n=names, t=theirs, k=kill_at: trial(p, n, t, k) and None)
            os.close(theirs)
            with os.fdopen(ours) as told:
                durable += told.read().split()
            status = os.waitpid(child, 0)[1]
            assert os.WIFSIGNALED(status) or status == 0, f"{point}: {status}"
            killed += os.WIFSIGNALED(status)
            store = open_live_store(path, "shop")
            whole(store)
            ids = {rollout.run: rollout.id for rollout in store.rollouts()}
            assert known.items() <= ids.items(), "renumbered"
            known = ids
            ended = {rollout.run for rollout in store.rollouts(status=LiveStatus.SUCCEEDED)}
            assert set(durable) <= ended, "lost"
            assert not store.refusals()
            store.close()
        store = open_live_store(path, "shop")
        orphans = store.counts()["running"]
        assert store.expire(time.time() + 1, rules=RULES, now=time.time() + 1) == orphans <= 2
        whole(store)
        store.close()
    assert killed >= len(points), "a second process is killed as well"


def dump(store: LiveStore) -> list[object]:
    tables = ("rollouts", "attempts", "spans", "updates", "selectors", "gate", "refusals")
    return [store._db.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


def steps(store: LiveStore) -> Iterator[None]:
    """Change a store in every way there is, one transaction at a time."""
    stray = [Reporter("nobody").turn()]
    for n in range(6):
        store.write(runs(f"{n}-a", f"{n}-b"), rules=RULES, now=float(n))
        yield
        store.write([Reporter(f"{n}-c").start(), *stray], rules=RULES, now=float(n))
        yield
        store.update(RULES.update, limit=8, outcome_wait_s=0.0, now=float(n), due=2)
        yield
        store.change_gate(partial(replace, last_error=f"error {n}"), now=float(n))
        yield
    store.expire(3.0, rules=RULES, now=7200.0)
    yield


def test_a_write_that_a_kill_cuts_short_leaves_the_store_as_it_was_before_or_after(
    tmp_path: Path, campaign: Campaign
) -> None:
    path = tmp_path / "live.db"
    log = Path(f"{path}-wal")
    store = open_live_store(path, "shop")
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store._db.execute("PRAGMA wal_autocheckpoint = 0")
    states = [(log.stat().st_size, dump(store))]
    for _ in steps(store):
        states.append((log.stat().st_size, dump(store)))
    base, frames = path.read_bytes(), log.read_bytes()
    store.close()
    sizes = [size for size, _ in states]
    assert sizes == sorted(set(sizes)), "each step is a transaction"
    assert sizes[-1] == len(frames)
    page = 4096 + 24
    cuts = [32 + n * page + part for n in range((len(frames) - 32) // page) for part in (0, 17, 2000)]
    for cut in campaign.sample([*cuts, len(frames)], 40):
        copy = tmp_path / "cut" / "live.db"
        copy.parent.mkdir()
        copy.write_bytes(base)
        Path(f"{copy}-wal").write_bytes(frames[:cut])
        found = open_live_store(copy, "shop")
        assert dump(found) == [state for size, state in states if size <= cut][-1]
        whole(found)
        found.close()
        shutil.rmtree(copy.parent)


def serve(path: Path, name: str, count: int) -> None:
    store = open_live_store(path, "shop")
    collector = Collector(store, RULES, interval=8, limit=16)
    for n in range(count):
        for event in runs(f"{name}-{n}", reply=f"reply {n}"):
            assert collector.put(event)
        if n % 20 == 0:
            time.sleep(0.01)
    assert collector.flush(100)
    collector.close()
    store.close()


def test_four_processes_share_a_store(tmp_path: Path, campaign: Campaign) -> None:
    path, count = tmp_path / "live.db", campaign.count(50, 200)
    children = [forked(lambda n=name: serve(path, n, count)) for name in "abcd"]
    codes = [os.waitpid(child, 0)[1] for child in children]
    assert codes == [0] * 4
    store = open_live_store(path, "shop")
    whole(store)
    assert store.counts()["succeeded"] == 4 * count
    assert {rollout.run for rollout in store.rollouts()} == {f"{c}-{n}" for c in "abcd" for n in range(count)}
    assert store.refusals() == {}
    assert store.gate().state == "pass"
    collector = Collector(store, RULES, interval=1, limit=64)
    until(lambda: store.counts()["used"] == 4 * count)
    collector.close()
    whole(store)
    store.close()
