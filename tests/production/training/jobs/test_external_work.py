"""An external trainer: what it prints is checked, relayed, or refused and counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.feedback.training import FakeStarter, payload, request

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.training.jobs import external_work
from pytest_tfgrpo.production.training.jobs.external_work import ExternalWork
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.storage.kept_states import KeptState

DONE = {"status": "completed", "artifacts": {"final_checkpoint": "s3://models/final.pt"}}
RUNS = {"status": "running", "progress": {"percent_complete": 40.0}, "metrics": {"current": {"loss": 0.5}}}


class Trainer:
    """A job in the hands of a trainer that a test speaks for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, FakeStarter()
        self.command: tuple[str, ...] = ("train", "--fast")
        self.work = self.open()

    def open(self) -> ExternalWork:
        at: KeptState[Any] = KeptState(derived_id("job", "one"), "running", "one", 1)
        job = TrainingJob(
            request=request(algorithm="ppo"), order=1, event_id="", at=at, status={}, cut={},
            started="2026-01-01T12:00:00.000Z", spent_usd=0.0, ran_s=0.0, stopping=False,
        )  # fmt: skip
        return ExternalWork(job, self.folder, self.command, self.started, LoopScrubber(b"k" * 32))

    def say(self, *lines: Any) -> None:
        with (self.folder / "output.log").open("a") as log:
            for one in lines:
                log.write((one if isinstance(one, str) else json.dumps(one)) + "\n")


@pytest.fixture
def trainer(tmp_path: Path) -> Trainer:
    return Trainer(tmp_path)


def test_the_command_gets_the_path_of_the_request(trainer: Trainer) -> None:
    (process,) = trainer.started.made
    assert process.command[:2] == ["train", "--fast"]
    assert json.loads(Path(process.command[2]).read_text()) == payload(algorithm="ppo")


def test_its_status_lines_are_relayed_and_its_checkpoint_is_the_result(trainer: Trainer) -> None:
    trainer.say("loading", RUNS, "50 %|##", {**DONE, "metadata": {"cuda_version": "12.1"}})
    assert trainer.work.look() is None
    assert trainer.work.parts()["progress"] == {"percent_complete": 40.0}
    assert "artifacts" not in trainer.work.parts()
    trainer.started.made[0].end(0)
    outcome = trainer.work.look()
    assert outcome is not None
    assert (outcome.trigger, outcome.parts["artifacts"]) == ("finish", DONE["artifacts"])
    assert outcome.parts["metrics"] == {"current": {"loss": 0.5}}
    assert outcome.parts["metadata"] == {"cuda_version": "12.1"}


def test_what_was_said_of_its_rows_stays_in_the_status(trainer: Trainer) -> None:
    (trainer.folder / "rows.json").write_text('{"said": ["rollouts.jsonl: 2 rows"]}')
    trainer.say({**DONE, "metadata": {"cuda_version": "12.1"}})
    trainer.started.made[0].end(0)
    outcome = trainer.work.look()
    assert outcome is not None
    assert outcome.parts["metadata"] == {"cuda_version": "12.1", "rows": ["rollouts.jsonl: 2 rows"]}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"status": "completed"}, "artifacts"),
        ({"status": "queued"}, "/status"),
        ({**RUNS, "training_job_id": derived_id("another")}, "/training_job_id"),
        ({**RUNS, "more": 1}, "more"),
        ('{"status": ', "Expecting"),
        ('{"a":' * 9000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_status_of_this_job_is_refused_and_counted(
    trainer: Trainer, line: Any, why: str
) -> None:
    trainer.say(RUNS, line)
    assert trainer.work.look() is None
    assert trainer.work.parts()["metadata"]["refused_lines"] == 1
    assert why in trainer.work.parts()["metadata"]["first_refused"]
    assert trainer.work.parts()["progress"] == RUNS["progress"]


@pytest.mark.parametrize(
    ("said", "code", "message", "wanted"),
    [
        ([RUNS], 0, "its last status was not", "UNKNOWN"),
        ([DONE], 3, "said 'completed'", "UNKNOWN"),
        (["50 %|##"], 0, "its last status was not", "INFRA"),
    ],
)
def test_a_trainer_that_lies_or_breaks_fails_the_job(
    trainer: Trainer, said: list[Any], code: int, message: str, wanted: str
) -> None:
    trainer.say(*said, "Traceback: mail anna@example.com")
    trainer.started.made[0].end(code)
    outcome = trainer.work.look()
    assert outcome is not None
    error = outcome.parts["error"]
    assert (outcome.trigger, error["code"]) == ("fail", wanted)
    assert message in error["message"]
    assert "anna@" not in error["traceback"]


def test_a_trainer_that_is_killed_is_started_again_twice(trainer: Trainer) -> None:
    for death in range(3):
        assert len(trainer.started.made) == death + 1
        assert trainer.work.look() is None
        trainer.say(RUNS)
        trainer.started.made[-1].end(-9)
        outcome = trainer.work.look()
        assert (outcome is None) == (death < 2)
    assert outcome is not None
    assert (outcome.trigger, outcome.parts["error"]["code"]) == ("fail", "OOM")
    assert "ended with code -9" in outcome.parts["error"]["message"]


def test_a_trainer_that_is_killed_once_its_work_is_done_has_done_it(trainer: Trainer) -> None:
    trainer.say(DONE)
    trainer.started.made[0].end(-9)
    outcome = trainer.work.look()
    assert outcome is not None
    assert (outcome.trigger, outcome.parts["artifacts"]) == ("finish", DONE["artifacts"])


def test_a_trainer_says_itself_why_it_failed(trainer: Trainer) -> None:
    trainer.say({"status": "failed", "error": {"code": "OOM", "message": "80 GB"}})
    trainer.started.made[0].end(1)
    outcome = trainer.work.look()
    assert outcome is not None
    assert outcome.parts["error"] == {"code": "OOM", "message": "80 GB"}


def test_a_flood_ends_the_trainer(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_work, "MOST_BYTES", 1000)
    trainer.say("x" * 2000)
    outcome = trainer.work.look()
    assert outcome is not None
    assert (outcome.trigger, outcome.parts["error"]["code"]) == ("fail", "INFRA")
    assert trainer.started.made[0].signals == ["kill"]


def test_a_line_without_end_is_not_kept_whole(trainer: Trainer) -> None:
    with (trainer.folder / "output.log").open("a") as log:
        log.write("{" + "x" * 300_000)
    trainer.work.look()
    trainer.say("", DONE)
    trainer.started.made[0].end(0)
    outcome = trainer.work.look()
    assert outcome is not None
    assert outcome.trigger == "finish"


def test_a_cancelled_trainer_is_no_failure(trainer: Trainer) -> None:
    trainer.say(RUNS)
    trainer.work.interrupt()
    outcome = trainer.work.look()
    assert outcome is not None
    assert outcome.trigger == "cancel"


def test_one_that_ended_while_nobody_looked_is_not_started_again(trainer: Trainer) -> None:
    trainer.say(DONE)
    outcome = trainer.open().look()
    assert outcome is not None
    assert (outcome.trigger, len(trainer.started.made)) == ("finish", 1)


def test_one_that_died_is_started_again(trainer: Trainer) -> None:
    trainer.say(RUNS)
    trainer.open()
    assert len(trainer.started.made) == 2


def test_without_a_command_it_is_said_what_to_do(trainer: Trainer) -> None:
    trainer.command = ()
    with pytest.raises(SettingError, match=r"no service here trains by 'ppo'; set \[training\] command"):
        trainer.open()


@pytest.mark.parametrize(
    ("said", "code", "trigger", "says"),
    [
        (DONE, 1, "fail", "the trainer said 'completed' and ended with code 1"),
        (DONE, None, "finish", ""),
        (RUNS, None, "fail", "the trainer is gone, and its last status was not 'completed'"),
    ],
)
def test_how_a_trainer_ended_whose_code_may_be_unknown(
    trainer: Trainer, said: Any, code: int | None, trigger: str, says: str
) -> None:
    trainer.say(said)
    trainer.started.made[0].end(code)
    outcome = trainer.work.look()
    assert outcome is not None
    assert (outcome.trigger, outcome.parts.get("error", {}).get("message", "")) == (trigger, says)
    assert len(trainer.started.made) == 1


def test_what_a_trainer_says_that_is_no_status_is_in_why_it_failed(trainer: Trainer) -> None:
    trainer.say({"status": "queued"}, {"status": "queued", "more": 1}, "{")
    trainer.started.made[0].end(2)
    outcome = trainer.work.look()
    assert outcome is not None
    message = outcome.parts["error"]["message"]
    assert "it printed 3 lines that are no status, the first: /status: 'queued' is not for a" in message
