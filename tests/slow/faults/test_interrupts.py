"""Runs interrupted twice, at any time: no false record is kept, and the next command finishes."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support.attacks import KINDS, Attacked, attacked, differences, journal_of, outcome
from support.campaign import Campaign
from support.forks import Forks
from support.project import Project

pytestmark = pytest.mark.faults
GAPS_S = (0.0, 0.0005, 0.002, 0.01, 0.03, 0.1, 0.3)


def interrupt_twice(one: Attacked, at: int, late_s: float, gap_s: float) -> None:
    """Interrupt a run after `at` events and `late_s`, and again after `gap_s`; then finish it."""
    pid = one.forks.start(one.root, "--tfgrpo", KILL_MARK=str(one.mark))
    deadline = time.monotonic() + 100
    while len(journal_of(one.root)) < at and time.monotonic() < deadline and is_running(pid):
        time.sleep(0.001)
    time.sleep(late_s)
    for pause_s in (gap_s, 0.0):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        time.sleep(pause_s)
    code = one.forks.wait()
    output = (one.root / "output.txt").read_text(errors="replace")
    trace = output.partition("Traceback")[2]  # of pytest itself while it tidied up, or of xdist's own loop
    theirs = trace and ("/pytest_tfgrpo/" not in trace or "xdist/dsession.py" in trace)
    ends = (one.code, pytest.ExitCode.INTERRUPTED, -signal.SIGINT)
    assert code in ends or (theirs and code in (1, 3)), f"exit {code}: {output[-900:]}"
    lines = journal_of(one.root)
    ended = [line["data"]["status"] for line in lines if line["event"] == "finish"]
    assert ended in ([], ["cancelled"], ["complete"]), ended
    assert all("did not run" not in str(line["data"]) for line in lines if line["event"] == "judgement")
    one.finish()
    left = differences(without_cost(outcome(one.root)), without_cost(one.expected))
    assert not left, left


def is_running(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody has waited for has."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def without_cost(value: object) -> object:
    """Return an outcome without costs: what was cut short, and paid for, is in the bill."""
    if isinstance(value, dict):
        return {key: without_cost(one) for key, one in value.items() if "cost" not in key and key != "tokens"}
    return [without_cost(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", KINDS)
def test_two_interrupts_at_any_time_leave_nothing_false(
    kind: str, project: Project, forks: Forks, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    if kind not in campaign.sample(sorted(KINDS), 1):
        pytest.skip("not in the sample")
    for one in attacked(kind, project, forks, monkeypatch):
        draw = campaign.random("interrupts", kind)
        for _ in range(campaign.count(2, 25)):
            at, late_s, gap_s = draw.randint(0, one.counted["event"]), draw.random() / 50, draw.choice(GAPS_S)
            told = f"two interrupts after {at} events and {late_s:.4f} s, {gap_s} s apart"
            one.survive(told, partial(interrupt_twice, one, at, late_s, gap_s))
        one.conclude()
