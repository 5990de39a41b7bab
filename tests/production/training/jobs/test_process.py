"""Who looks after the process of a job."""

import fcntl
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.production.training.jobs.process import (
    KEEPER,
    LOCK,
    FoundProcess,
    StartedProcess,
    find_process,
    is_held,
    is_left,
    start_or_find,
)


def test_a_process_lives_while_its_lock_is_held_and_is_of_who_found_it_last(tmp_path: Path) -> None:
    assert not is_held(tmp_path)
    with (tmp_path / LOCK).open("w") as lock:
        assert find_process(tmp_path) is None
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = find_process(tmp_path)
        assert first is not None
        assert not first.is_taken()
        assert not is_left(first)
        second = FoundProcess(tmp_path)
        assert (first.is_taken(), second.is_taken()) == (True, False)
        assert is_left(first)
        started: Any = StartedProcess(None, tmp_path)  # type: ignore[arg-type]
        assert started.is_taken()
        (tmp_path / KEEPER).unlink()
        assert not any(one.is_taken() for one in (first, second, started))
    assert second.ended()
    assert is_left(second)
    assert is_left(None)


def test_a_process_that_another_service_started_just_now_is_found(tmp_path: Path) -> None:
    def refuse(command: Any, folder: Path, *, cwd: Path) -> Any:
        raise BlockingIOError("it is held")

    with pytest.raises(BlockingIOError):
        start_or_find(refuse, ["x"], tmp_path, cwd=tmp_path)
    with (tmp_path / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert isinstance(start_or_find(refuse, ["x"], tmp_path, cwd=tmp_path), FoundProcess)
