"""The thread of an engine."""

from pytest_tfgrpo.launch.engine_thread import LoopThread


def test_an_engine_that_goes_on_keeps_no_process_alive() -> None:
    assert LoopThread()._thread.daemon
