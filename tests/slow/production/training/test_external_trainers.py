"""External trainers as processes that hang, lie and flood."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.feedback.training import request

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.training.jobs import external_work
from pytest_tfgrpo.production.training.jobs.external_work import ExternalWork
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.process import ProcessStarter, find_process
from pytest_tfgrpo.production.training.jobs.status import JobOutcome
from pytest_tfgrpo.storage.kept_states import KeptState

HANGS = """
import signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print('{"status": "running", "progress": {"percent_complete": 1.0}}', flush=True)
time.sleep(600)
"""
FLOODS = """
line = "x" * 1000
while True:
    print(line)
"""
OTHER = {"training_job_id": derived_id("job", "two"), "status": "completed"}
LIES = {
    "done, with nothing to show": 'print(\'{"status": "completed"}\')',
    "another's job": f"import json; print(json.dumps({OTHER!r}))",
    "done, and then it breaks": (
        'print(\'{"status": "completed", "artifacts": {"final_checkpoint": "x"}}\'); raise SystemExit(3)'
    ),
    "nothing at all": "pass",
}


def start(folder: Path, program: str) -> ExternalWork:
    at: KeptState[Any] = KeptState(derived_id("job", "one"), "running", "one", 1)
    job = TrainingJob(
        request=request(algorithm="ppo"), order=1, event_id="", at=at, status={}, cut={},
        started="2026-01-01T12:00:00.000Z", spent_usd=0.0, ran_s=0.0, stopping=False,
    )  # fmt: skip
    command = (sys.executable, "-c", program)
    return ExternalWork(job, folder, command, ProcessStarter(dict(os.environ)), LoopScrubber(b"k" * 32))


def ended(work: ExternalWork) -> JobOutcome:
    until = time.monotonic() + 100
    while (outcome := work.look()) is None:
        assert time.monotonic() < until
        time.sleep(0.05)
    return outcome


def test_one_that_hangs_and_ignores_signals_is_killed(tmp_path: Path) -> None:
    work = start(tmp_path, HANGS)
    until = time.monotonic() + 100
    while not work.parts().get("progress") and time.monotonic() < until:
        assert work.look() is None
        time.sleep(0.05)
    assert work.parts()["progress"] == {"percent_complete": 1.0}
    work.interrupt()
    time.sleep(0.5)
    assert work.look() is None
    work.kill()
    assert ended(work).trigger == "cancel"
    assert find_process(tmp_path) is None


def test_one_that_floods_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_work, "MOST_BYTES", 1 << 20)
    outcome = ended(start(tmp_path, FLOODS))
    assert outcome.trigger == "fail"
    assert "the trainer printed more than 1,048,576 bytes, and was ended" in json.dumps(outcome.parts)
    assert find_process(tmp_path) is None


@pytest.mark.parametrize("lie", LIES)
def test_one_that_lies_fails_the_job(tmp_path: Path, lie: str) -> None:
    outcome = ended(start(tmp_path, LIES[lie]))
    assert outcome.trigger == "fail", outcome.parts
    assert outcome.parts["error"]["message"]
    assert "artifacts" not in outcome.parts
