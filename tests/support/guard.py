"""The rule of the default tier: what a test outside ``tests/slow/`` may start, wait for and compute."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
SLOW = TESTS / "slow"
BUDGET = TESTS / "budget.tsv"
MOST_RUNS = 4
"""Inner pytest runs of one test."""
MOST_SLEEP_S = 0.05
POLL_S = 0.01
"""A sleep of at most this counts nothing: how many there are until something happens is up to the machine."""
CPU_WARN_S, CPU_FAIL_S = 0.5, 6.0
"""Processor seconds of one test that are noted, and those that fail it on a processor of the usual pace.

Those of a table are of one of its rows, on average.
A shared processor takes five times as long for moments that are over when its pace is measured.
"""
PACE, PACE_S = 2_000_000, 0.03
"""So many numbers are added in so many seconds by a processor of the usual pace."""
RUNS = "inner_runs"
CPU = "cpu_s"
FORKS = ("os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn")


@dataclass
class Counts:
    """What was seen since the last reset, on any thread; sleeps on the main one alone."""

    runs: int = 0
    sleep_s: float = 0.0
    children: list[str] = field(default_factory=list)
    shared_cpu_s: float = 0.0
    """Of fixtures that other tests use too."""
    shared_runs: int = 0


_counts = Counts()


@contextmanager
def shared() -> Iterator[None]:
    """Count what goes on within as what many tests share: whichever comes first does it."""
    runs, cpu_s = _counts.runs, time.process_time()
    try:
        yield
    finally:
        _counts.shared_runs += _counts.runs - runs
        _counts.shared_cpu_s += time.process_time() - cpu_s


class Guard:
    """Counts what each test does, and fails a test of the default tier that breaks the rule."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._runs: Counter[str] = Counter()
        self._dear: list[tuple[float, str]] = []
        self._deselected = False
        self._watch()

    def _watch(self) -> None:
        process, main = os.getpid(), threading.main_thread()
        sleep, inline_run = time.sleep, pytest.Pytester.inline_run

        def heard(event: str, args: tuple[Any, ...]) -> None:
            if event == "subprocess.Popen" and os.getpid() == process:
                argv = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
                program = Path(os.fsdecode(args[0] or argv[0])).name
                if program != "git":
                    _counts.children.append(program)
            elif event in FORKS and os.getpid() == process:
                _counts.children.append(event)

        def slept(seconds: float, /) -> None:
            if seconds > POLL_S and threading.current_thread() is main:
                _counts.sleep_s += seconds
            sleep(seconds)

        def ran(*args: Any, **options: Any) -> Any:
            _counts.runs += 1
            return inline_run(*args, **options)

        if threading.gettrace() is None:  # see `start_thread` of the package
            sys.addaudithook(heard)
        time.sleep = slept  # type: ignore[assignment]
        pytest.Pytester.inline_run = ran  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Count what many tests share apart."""
        if fixturedef.scope == "function":
            return (yield)
        with shared():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None]:
        global _counts
        _counts = Counts()
        self._began_s = time.process_time()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        yield
        counts = _counts
        rows = len(getattr(item, "rows", [item]))
        cpu_s = (time.process_time() - self._began_s - counts.shared_cpu_s) / rows
        item.user_properties += [(RUNS, counts.runs - counts.shared_runs), (CPU, round(cpu_s, 3))]
        if not item.path.is_relative_to(SLOW):
            if counts.children:
                end_children()
            # coverage and more examples take time of their own
            longer = item.config.pluginmanager.hasplugin("_cov") or item.config.getoption("faults", False)
            broken = broken_rules(counts, 0.0 if longer else cpu_s)
            if broken:
                where = (SLOW / item.path.relative_to(TESTS)).relative_to(TESTS.parent)
                pytest.fail(f"{item.nodeid} {', '.join(broken)}: it belongs in {where}", pytrace=False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up, also what workers report."""
        if report.when == "teardown":
            found = dict(report.user_properties)
            self._runs[room(report.nodeid)] += int(str(found.get(RUNS, 0)))
            cpu_s = float(str(found.get(CPU, 0)))
            if cpu_s > CPU_WARN_S and not report.nodeid.startswith("tests/slow/"):
                self._dear.append((cpu_s, report.nodeid))

    def pytest_deselected(self) -> None:
        self._deselected = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._over(session.config) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._over(terminalreporter.config):
            terminalreporter.line(f"ERROR {line}", red=True)
        for cpu_s, test in sorted(self._dear, reverse=True)[:10]:
            terminalreporter.line(f"over {CPU_WARN_S} s of processor time: {cpu_s:.1f} s  {test}")

    def _over(self, config: pytest.Config) -> Sequence[str]:
        """Return the folders that a whole run of the default tier shows over their budgets."""
        whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not self._deselected
        if not whole or hasattr(config, "workerinput") or config.option.collectonly:
            return []
        return over_budget(self._runs, read_budget())


def end_children() -> None:
    """Kill what a test left running: the next one that uses such a process starts it, and is named."""
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def slowness() -> float:
    """Return how many times longer than usual the processor takes; others on the machine may share it."""
    took = []
    for _ in range(3):
        began = time.process_time()
        sum(range(PACE))
        took.append(time.process_time() - began)
    return max(1.0, min(took) / PACE_S)


def broken_rules(counts: Counts, cpu_s: float) -> list[str]:
    """Return what a test did that no test of the default tier does."""
    broken = []
    if counts.children:
        broken.append(f"starts a process ({', '.join(sorted(set(counts.children)))})")
    if counts.sleep_s > MOST_SLEEP_S:
        broken.append(f"sleeps {counts.sleep_s:.2f} s")
    if counts.runs - counts.shared_runs > MOST_RUNS:
        broken.append(f"runs pytest {counts.runs - counts.shared_runs} times")
    if cpu_s > CPU_FAIL_S and cpu_s > CPU_FAIL_S * slowness():
        broken.append(f"takes {cpu_s:.1f} s of processor time")
    return broken


def room(nodeid: str) -> str:
    """Return the folder whose budget a test uses."""
    return "/".join(Path(nodeid.partition("::")[0]).parent.parts[1:2]) or "."


def read_budget() -> dict[str, int]:
    """Return the inner runs of each folder that has some."""
    rows = BUDGET.read_text(encoding="utf-8").splitlines()
    cells = [row.split("\t") for row in rows if row and not row.startswith("#")]
    return {name: int(runs) for name, runs in cells}


def over_budget(runs: Counter[str], budget: dict[str, int]) -> list[str]:
    """Return a line for each folder with more inner runs than its budget; without a row that is none."""
    return [
        f"tests/{name}: {count} inner pytest runs, {budget.get(name, 0)} allowed by {BUDGET.name}"
        for name, count in sorted(runs.items())
        if count > budget.get(name, 0)
    ]
