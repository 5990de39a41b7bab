"""The file of a recording, where several processes write it."""

import multiprocessing
from pathlib import Path

from support.recordings import record_five

from pytest_tfgrpo.recording.file import Recording


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=record_five, args=(path, 10 * n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(Recording.open(path).lines) == 15
