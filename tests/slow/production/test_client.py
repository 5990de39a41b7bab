"""The client never blocks, never raises, and loses nothing without counting it."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.loop_replies import ScriptedService, scripted_service

from pytest_tfgrpo.production import client_sender
from pytest_tfgrpo.production.client import LoopClient

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3303"


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as found:
        yield found


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(client_sender, "_LINGER_S", 0.01)
    monkeypatch.setattr(client_sender, "_FIRST_PAUSE_S", 0.01)


def test_a_service_that_fails_for_a_while_loses_nothing(service):
    service.replies = [(503, {}), (429, {}), (500, {}), (502, {})]
    with LoopClient(service.url) as client:
        client.feedback(ID, "thumbs_up")
        assert client.flush(100)
    assert (client.counts().sent, len(service.taken)) == (1, 1)


def test_a_batch_that_always_fails_is_given_up(service):
    service.replies = [(500, {})] * 5
    with LoopClient(service.url) as client:
        client.feedback(ID, "thumbs_up")
        assert client.flush(100)
        client.feedback(ID, "thumbs_down")
    counts = client.counts()
    assert (counts.sent, counts.refused) == (1, 1)


PROGRAM = """
import os, sys, threading
from pytest_tfgrpo.production.client import LoopClient
client = LoopClient(sys.argv[1], exit_s=100)
client.feedback("{id}", "thumbs_up", text="parent")
if os.fork() == 0:
    assert client.counts().waiting == 0
    client.feedback("{id}", "thumbs_up", text="child")
    client.close(100)
    os._exit(0)
os.wait()
client.feedback("{id}", "thumbs_up", text="end")
outside = {{name.split(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)
assert {{name for name in outside if not name.startswith(("_", "site"))}} == {{"pytest_tfgrpo"}}, outside
"""


def test_a_fork_sends_once_what_each_process_queued_and_the_end_waits_for_it(service):
    program = PROGRAM.format(id=ID)
    subprocess.run(
        [sys.executable, "-S", "-W", "ignore", "-c", program, service.url],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert sorted(one["text"] for one in service.taken) == ["child", "end", "parent"]
    assert len({one["feedback_id"] for one in service.taken}) == 3
