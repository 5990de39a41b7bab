"""The thread of an engine."""

from pathlib import Path
from typing import Any

import pytest
from support.jobs import ScriptedActor, make_job, three_or_not

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.observers import EngineFailed
from pytest_tfgrpo.launch import engine_thread
from pytest_tfgrpo.launch.engine_thread import EngineThread, LoopThread


def test_an_engine_that_goes_on_keeps_no_process_alive() -> None:
    host = LoopThread()
    host.start()
    assert host._thread is not None
    assert host._thread.daemon
    assert host.join()


def test_an_engine_that_cannot_begin_tells_its_caller_and_breaks_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine(job: Any, **options: Any) -> Engine:
        if job.run_id == "bad":
            raise JournalError("the disk is full")
        return Engine(job, **options)

    monkeypatch.setattr(engine_thread, "Engine", engine)
    host, told = LoopThread(), dict[str, list[object]]()
    for run_id in ("bad", "good"):
        job = make_job(ScriptedActor(three_or_not), tmp_path, job_run_id=run_id)
        EngineThread(job, folder=None, deliver=told.setdefault(run_id, []).append, host=host)
    host.start()
    assert host.join()
    (failed,) = told["bad"]
    assert isinstance(failed, EngineFailed)
    assert str(failed.error) == "the disk is full"
    assert isinstance(told["good"][-1], Run)
    assert told["good"][-1].status == "complete"


def test_what_a_run_holds_is_let_go_of_though_one_of_it_fails(tmp_path: Path) -> None:
    closed: list[str] = []

    class Closing(ScriptedActor):
        async def aclose(self) -> None:
            closed.append("actor")
            raise OSError("it was gone before")

    async def close() -> None:
        closed.append("model")

    host = LoopThread()
    job = make_job(Closing(three_or_not), tmp_path, job_closing=(close,))
    EngineThread(job, folder=None, deliver=lambda _: None, host=host)
    host.start()
    assert host.join()
    assert closed == ["actor", "model"]


def test_what_breaks_the_loop_is_told_to_every_engine_on_it() -> None:
    async def broken() -> None:
        raise OSError("no more files")

    async def idle() -> None:
        pass

    told: list[BaseException] = []
    host = LoopThread()
    host.add(broken, told.append)
    host.add(idle, told.append)
    host.start()
    assert host.join()
    assert [str(error) for error in told] == ["no more files"] * 2
