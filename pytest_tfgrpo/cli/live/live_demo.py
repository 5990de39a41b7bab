"""The command ``tfgrpo live demo``: a selector learns in front of you; then its store fails and is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_tfgrpo.cli.demo.demo_library import prepare
from pytest_tfgrpo.cli.demo.demo_service import POINT, DemoService, Served, open_service
from pytest_tfgrpo.cli.demo_folder import demo_folder
from pytest_tfgrpo.cli.live.arguments import TASKS
from pytest_tfgrpo.cli.live.open_live import open_live
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.texts.text import interval, table
from pytest_tfgrpo.production.live.config import load_live_config
from pytest_tfgrpo.production.live.loop import open_loop
from pytest_tfgrpo.production.live.records import LiveStatus
from pytest_tfgrpo.production.live.report import (
    difference_lines,
    policies_of,
    probabilities_of,
    stored_selector,
)
from pytest_tfgrpo.production.live.selection.evaluate import evaluate, target_policy
from pytest_tfgrpo.production.live.selection.guard import reset
from pytest_tfgrpo.production.live.selection.selector import SelectorState
from pytest_tfgrpo.production.live.session import Live
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store
from pytest_tfgrpo.production.live.store.store_schema import open_store_file

STEP, TOGETHER = 100, 16
WHILE_HELD, AFTER_RESET, BATCH, BATCHES = 40, 20, 20, 4
"""Tasks served while the gate holds, after its reset, and by a process that is killed."""
FAILURES = 3
PATIENCE_S = 30.0
"""How long the demo waits for what takes milliseconds on a machine that is not busy."""
CHILD = "from pytest_tfgrpo.cli.live.live_demo import serve_until_killed as s; s({!r}, {}, {})"


class FailingStore(LiveStore):
    """A store whose writes fail as often as the demo sets."""

    failures: int = 0
    """Writes that are still to fail."""

    def write(self, *arguments: Any, **named: Any) -> Any:
        """Write a batch, or raise StoreError."""
        if self.failures:
            self.failures -= 1
            raise StoreError("injected by the demo: the disk is full")
        return super().write(*arguments, **named)


def demo_command(arguments: Arguments) -> Iterator[str]:
    """Watch a selector learn offline; then its store fails and is killed."""
    with demo_folder(arguments.into) as folder:
        yield from demo(folder, arguments.tasks, arguments.seed, shuffled=arguments.shuffle_rewards)


def demo(folder: Path, tasks: int = TASKS, seed: int = 0, *, shuffled: bool = False) -> Iterator[str]:
    """Yield what happens while the offline agent serves tasks with three arms, in an empty folder.

    Raises StoreError where the store loses something, which no failure and no kill may make it do.
    """
    started = time.perf_counter()
    lessons = prepare(folder, seed)
    yield f"learned    {lessons} lessons, by a run over the train tasks; `misled` names wrong tools in them"
    yield f"serving    {tasks} other tasks, on 8 threads; what learns is the selector, never the agent"
    service = open_service(folder, seed, shuffled=shuffled)
    live, store = open_failing(folder)
    with live:
        yield from serve(service, live, store, tasks)
        yield ""
        yield from _fail(service, live, store, tasks)
    yield from _kill(service, tasks + WHILE_HELD + AFTER_RESET)
    yield f"done in {time.perf_counter() - started:.1f} s"


def serve(service: DemoService, live: Live, store: LiveStore, tasks: int) -> Iterator[str]:
    """Serve tasks, and yield how the selector learns and what it came to."""
    served: list[Served] = []
    yield from _serve(service, live, tasks, served)
    yield ""
    yield from _learned(service, live, store, served)


def open_failing(folder: Path) -> tuple[Live, FailingStore]:
    """Return what `open_live` does, over a store that can be made to fail."""
    config = load_live_config(folder / "live.toml", {}, {})
    path, namespace = config.store, config.settings.namespace
    store = FailingStore(open_store_file(path, namespace), path, namespace)
    return Live(config, open_loop(config, lambda *_: store)), store


def _serve(service: DemoService, live: Live, tasks: int, served: list[Served]) -> Iterator[str]:
    rows = [["tasks", "mean score", "bare", "learned", "misled", "selector"]]
    for start in range(0, tasks, STEP):
        batch: list[Served] = []
        for first in range(start, min(start + STEP, tasks), TOGETHER):
            batch += service.serve_all(live, range(first, min(first + TOGETHER, start + STEP, tasks)))
            live.flush(PATIENCE_S)  # else this agent, which takes milliseconds, outruns its updates
        served += batch
        arms = Counter(one.arm for one in batch)
        shares = [f"{arms[arm] / len(batch):.2f}" for arm in ("bare", "learned", "misled")]
        mean = f"{fmean(one.score for one in batch):.3f}"
        rows.append([str(len(served)), mean, *shares, str(live.status()["selector"])])
        lines = table(rows[0], rows[1:], left=0)
        yield from lines if start == 0 else lines[-1:]


def _learned(service: DemoService, live: Live, store: LiveStore, served: Sequence[Served]) -> Iterator[str]:
    """Yield what the selector came to, and whether what it says of the arms is so."""
    selector = stored_selector(store)
    control = {one.run for one in store.rollouts() if one.control}
    chosen = [one for one in served if f"task-{one.n}" not in control]
    arms = sorted(live.config.points[POINT].arms)
    rows = []
    for domain, probabilities in sorted(probabilities_of(selector).get(POINT, {}).items()):
        scores = [one.score for one in chosen if one.domain == domain]
        rows.append([domain, *(f"{probabilities[arm]:.2f}" for arm in arms), f"{fmean(scores):.3f}"])
    yield from table(["domain", *arms, "mean score"], rows)
    truth = service.truth(live.config.points[POINT].arms, [one.n for one in served])
    yield ""
    yield from _values(store, selector, truth)
    last = fmean(one.score for one in chosen[-100:])
    yield f"last 100 of the selector's runs: mean score {last:.3f}; best arm {max(truth.values()):.3f}"


def _values(store: LiveStore, selector: SelectorState, truth: Mapping[str, float]) -> Iterator[str]:
    """Yield what runs under the selector say of it and of each arm, beside what is true of the arm."""
    rollouts, rows = list(store.rollouts()), []
    policies = policies_of(store, POINT, selector.points[POINT].arms)
    for arm, true in sorted(truth.items()):
        policy = target_policy(f"arm:{arm}", selector.points[POINT], policies)
        found = evaluate(
            rollouts, policy, selector, POINT, policy=arm, quantity="score", numbered=policies
        ).dr
        bounds = "-" if found.low is None or found.high is None else interval((found.low, found.high))
        value = "not estimable" if found.value is None else f"{found.value:.3f}"
        cells = [value, bounds, f"{found.ess:.0f}"]
        rows.append([arm, *cells, f"{true:.3f}"])
    yield from table(["arm", "off-policy score", "95 % interval", "effective runs", "true score"], rows)
    yield from (row for row in difference_lines(rollouts) if row.startswith("score"))


def _fail(service: DemoService, live: Live, store: FailingStore, first: int) -> Iterator[str]:
    """Make the store fail until the gate holds, serve meanwhile, and reset it as a person does."""
    before = dict(store.counts())
    store.failures = FAILURES
    service.serve(live, first)
    _wait("the gate to hold", lambda: store.gate().state == "hold")
    held = list(service.serve_all(live, range(first + 1, first + WHILE_HELD)))
    live.flush(PATIENCE_S)
    if any(one.arm != "bare" for one in held) or sum(store.counts().values()) != sum(before.values()):
        raise StoreError("the gate holds, and runs were collected or took another arm than the default")
    yield f"failures   {FAILURES} writes failed, the gate holds; {len(held)} runs took the default arm"
    store.change_gate(
        lambda state: reset(state, "demo", "the disk has room again", time.time()), now=time.time()
    )
    _wait("the reset", lambda: live.status()["gate"]["state"] == "pass")
    again = list(service.serve_all(live, range(first + WHILE_HELD, first + WHILE_HELD + AFTER_RESET)))
    live.flush(PATIENCE_S)
    collected = store.counts()["succeeded"] - before["succeeded"]
    if collected != len(again):
        raise StoreError(f"{len(again)} runs after the reset, and {collected} of them in the store")
    yield f"reset      by a person, with a reason: {collected} runs collected again"


def _kill(service: DemoService, first: int) -> Iterator[str]:
    """Kill a process that serves, with ``kill -9``, and compare the store with what was durable before."""
    program = CHILD.format(str(service.folder), service.seed, first)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(BATCHES):
            if not child.stdout.readline():
                raise StoreError("the process that serves ended by itself")
        before = _ended(service.folder)
        os.kill(child.pid, signal.SIGKILL)
    with open_live(service.folder / "live.toml") as live:
        list(service.serve_all(live, range(first + 10_000, first + 10_000 + BATCH)))
        live.flush(PATIENCE_S)
    after = _ended(service.folder)
    lost = sum(key not in after for key in before)
    renumbered = sum(after.get(key, id_) != id_ for key, id_ in before.items())
    twice = _used_twice(service.folder)
    yield (
        f"kill -9    of a process that served: {len(before)} runs were durable; {lost} lost, "
        f"{twice} used twice, {renumbered} renumbered"
    )
    if lost or twice or renumbered or len(before) < BATCHES * BATCH:
        raise StoreError("the store lost, repeated or renumbered what was durable")


def serve_until_killed(folder: str, seed: int, first: int) -> None:
    """Serve tasks for ever, and print a line after each batch that is durable."""
    service = open_service(Path(folder), seed)
    live = open_live(Path(folder) / "live.toml")
    while live.flush(PATIENCE_S):
        list(service.serve_all(live, range(first, first + BATCH)))
        first += BATCH
        if live.flush(PATIENCE_S):
            print("durable", flush=True)


def _ended(folder: Path) -> dict[str, str]:
    """Return the ids of the runs that ended, by key."""
    with closing(_stored(folder)) as store:
        return {one.run: one.id for one in store.rollouts() if one.status is not LiveStatus.RUNNING}


def _used_twice(folder: Path) -> int:
    """Return how many runs two updates used, or another one than they say."""
    with closing(_stored(folder)) as store:
        used = Counter(id_ for update in store.updates() for id_ in update.used)
        said = {one.id for one in store.rollouts() if one.used_in is not None}
    return sum(count > 1 for count in used.values()) + len(used.keys() ^ said)


def _stored(folder: Path) -> LiveStore:
    config = load_live_config(folder / "live.toml", {}, {})
    return open_live_store(config.store, config.settings.namespace)


def _wait(what: str, seen: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not seen():
        if time.monotonic() > until:
            raise StoreError(f"waited {PATIENCE_S:g} s for {what}")
        time.sleep(0.01)
