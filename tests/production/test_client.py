"""The client never blocks, never raises, and loses nothing without counting it."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from support.abandoned import abandon, repeat_among_collections
from support.loop_replies import ScriptedService, scripted_service

from pytest_tfgrpo.core.events import FEEDBACK, check_event, derived_id, wrap
from pytest_tfgrpo.production import client as client_module
from pytest_tfgrpo.production import client_link, client_queue, client_sender
from pytest_tfgrpo.production.client import LoopClient, trajectory_id_of

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3303"


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as found:
        yield found


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(client_sender, "_LINGER_S", 0.01)
    monkeypatch.setattr(client_sender, "_FIRST_PAUSE_S", 0.01)


def nobody() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


def test_events_arrive_as_the_schema_has_them_over_one_connection(service):
    with LoopClient(service.url + "/loop/", "secret") as client:
        assert client.trajectory({"trajectory_id": ID})
        assert client.feedback(
            ID, "rating", rating=4, text="\ud800é", expected=[1], session_id="s", metadata={"a": 1}
        )
        assert client.feedback(
            ID, "score", component="tone", score=0.5, source="judge", timestamp="2026-01-01T00:00:00Z"
        )
        with pytest.raises(TypeError, match="unexpected keyword argument 'rate'"):
            client.feedback(ID, "rating", rate=4)  # type: ignore[call-arg]
        assert client.flush(100)
    (path, (trajectory,)), (other, feedback) = service.requests
    assert (path, other) == ("/loop/trajectories", "/loop/feedback")
    assert trajectory == {"trajectory_id": ID}
    for one in feedback:
        check_event(wrap(FEEDBACK, one)).encode()  # type: ignore[union-attr]
    assert len({one["feedback_id"] for one in feedback}) == 2
    assert feedback[0]["timestamp"] > feedback[1]["timestamp"] == "2026-01-01T00:00:00Z"
    assert {found["Authorization"] for found in service.headers} == {"Bearer secret"}
    counts = client.counts()
    assert (counts.sent, counts.waiting, counts.dropped, counts.last_error) == (3, 0, 0, "")


def test_what_the_service_refuses_is_counted_and_logged_once(service, caplog):
    refusal = {"accepted": 1, "opted_out": 0, "refused": [{"index": 0, "code": "schema", "pointer": "/data"}]}
    service.replies = [
        (200, refusal), (422, refusal | {"accepted": 0}), (300, {"error": "moved"}), (401, {"error": "no"})
    ]  # fmt: skip
    with LoopClient(service.url) as client:
        for _ in range(4):
            client.feedback(ID, "thumbs_up")
            client.flush(100)
    counts = client.counts()
    assert (counts.sent, counts.refused) == (0, 4)
    assert "401" in counts.last_error
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_one_bad_event_does_not_take_its_batch_along(service):
    service.open.clear()
    service.poison = {"n": 5}
    with LoopClient(service.url) as client:
        client.feedback(ID, "thumbs_up")  # its request keeps the others together
        for n in range(9):
            client.trajectory({"n": n})
        service.open.set()
        assert client.flush(100)
    sent = [one["n"] for one in service.taken if "n" in one]
    assert sorted(sent) == [0, 1, 2, 3, 4, 6, 7, 8]
    assert (client.counts().sent, client.counts().refused) == (9, 1)


@pytest.mark.parametrize(
    ("events", "size", "sizes"),
    [(4, 1000, [4, 4, 1]), (9, 1000, [9]), (9, 20, [2, 2, 2, 2, 1]), (9, 1, [1] * 9)],
)
def test_a_request_has_so_many_events_and_bytes_at_most(service, monkeypatch, events, size, sizes):
    monkeypatch.setattr(client_queue, "_BATCH_EVENTS", events)
    monkeypatch.setattr(client_queue, "_BATCH_BYTES", size)
    service.open.clear()
    with LoopClient(service.url) as client:
        client.feedback(ID, "thumbs_up")  # its request lets the others gather
        for n in range(9):
            client.trajectory({"n": n})
        service.open.set()
        assert client.flush(100)
    assert [len(sent) for path, sent in service.requests if path.endswith("trajectories")] == sizes


def test_a_full_queue_drops_and_counts_and_the_end_is_bounded():
    with LoopClient(nobody(), capacity=100, exit_s=0.1) as client:
        kept = [client.feedback(ID, "thumbs_up") for _ in range(300)]
    assert 100 <= sum(kept) <= 200
    counts = client.counts()
    assert (counts.sent, counts.waiting, counts.dropped) == (0, 0, 300)
    assert "cannot be reached" in counts.last_error
    assert not client.feedback(ID, "thumbs_up")


def test_the_queue_is_bounded_in_bytes_too():
    with LoopClient(nobody(), capacity_bytes=10_000, exit_s=0) as client:
        assert not client.trajectory({"text": "x" * 10_001})
        assert client.trajectory({"text": "x" * 9_000})


def test_an_event_may_have_as_many_bytes_as_are_sent_and_of_unknown_details_the_first_is_named(monkeypatch):
    with LoopClient(nobody(), exit_s=0) as client:
        size = len(client_module._encode({"text": "x"}))
        monkeypatch.setattr(client_module, "_EVENT_BYTES", size)
        assert client.trajectory({"text": "x"})
        assert not client.trajectory({"text": "xy"})
        assert client.counts().last_error == f"an event has {size + 1} bytes; at most {size} are sent"
        unknown: Any = {"zeta": 1, "alpha": 2, "text": "t"}
        with pytest.raises(TypeError, match="unexpected keyword argument 'alpha'"):
            client.feedback(ID, "comment", **unknown)


@pytest.mark.parametrize("token", ["", " ", "a\nb", "é", "\x7f"])
def test_a_token_that_no_header_can_hold_is_an_error_at_once(token):
    with pytest.raises(ValueError, match="token: has characters that no HTTP header can hold, or is empty"):
        LoopClient("http://127.0.0.1:9", token)


def test_what_cannot_be_json_is_counted_and_never_raises(service):
    class Hostile:
        def __str__(self) -> str:
            raise OSError("no text")

    loop: list[object] = []
    loop.append(loop)
    deep: list[object] = []
    for _ in range(200_000):
        deep = [deep]
    with LoopClient(service.url) as client:
        for value in (float("nan"), Hostile(), loop, deep, {("a",): 1}, "x" * 9_000_000):
            assert not client.trajectory({"value": value})
        assert client.trajectory({"value": os})
    assert (client.counts().invalid, client.counts().sent) == (6, 1)


def test_a_connection_that_the_service_closed_is_opened_anew():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=serve)
        thread.start()
        with LoopClient(url) as client:
            for _ in range(2):
                client.feedback(ID, "thumbs_up")
                assert client.flush(100)
        thread.join()
    assert (client.counts().sent, client.counts().last_error) == (2, "")


def test_many_threads_share_a_client(service):
    with LoopClient(service.url) as client:
        threads = [
            threading.Thread(target=lambda: [client.feedback(ID, "thumbs_up") for _ in range(200)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.flush(100)
    assert len({one["feedback_id"] for one in service.taken}) == 1600 == client.counts().sent


def test_the_handler_of_a_signal_may_call_it(service):
    with LoopClient(service.url) as client:
        before = signal.signal(signal.SIGALRM, lambda *_: client.feedback(ID, "thumbs_down"))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0005)
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                client.feedback(ID, "thumbs_up")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert client.flush(100)
    assert {one["type"] for one in service.taken} == {"thumbs_up", "thumbs_down"}


def test_feedback_that_garbage_collection_gives_is_counted_once():
    client = LoopClient(nobody(), capacity=1000, exit_s=0)

    def step() -> None:
        abandon(lambda: lambda: client.feedback(ID, "abandonment"))
        client.feedback(ID, "thumbs_up")
        client.counts()

    repeat_among_collections(step, times=300, places=15)
    assert client.counts().waiting == 600
    client.close(0)
    assert client.counts().dropped + client.counts().waiting == 600


def test_feedback_given_while_the_thread_is_made_starts_no_second_one(service, monkeypatch):
    made: list[threading.Thread] = []

    class Slow(threading.Thread):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made.append(self)
            if len(made) == 1:  # as garbage collection may
                client.feedback(ID, "abandonment")

    monkeypatch.setattr(threading, "Thread", Slow)
    with LoopClient(service.url) as client:
        client.feedback(ID, "thumbs_up")
        assert client.flush(20)
    assert {one["type"] for one in service.taken} == {"abandonment", "thumbs_up"}
    assert [thread.ident is not None for thread in made if thread.name == "tfgrpo-loop-client"].count(
        True
    ) == 1


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("127.0.0.1:8126", None, "is not that of a service"),
        ("ftp://a", None, "is not that of a service"),
        ("http://", None, "is not that of a service"),
        ("http://user:pw@a", None, "has credentials in it"),
        ("http://a:x", None, "could not be cast"),
        ("http://a", "a\nb", "no HTTP header"),
    ],
)
def test_a_url_or_token_that_cannot_be_one_is_an_error_at_once(url, token, message):
    with pytest.raises(ValueError, match=message) as caught:
        LoopClient(url, token)
    assert "pw" not in str(caught.value)


def test_the_id_of_a_trajectory_is_what_the_service_makes_of_the_trace():
    trace, agent = "AB" * 16, "cd" * 8
    assert trajectory_id_of(trace, agent) == derived_id("trajectory", "ab" * 16, agent)
    assert trajectory_id_of(trace) == derived_id("trajectory", "ab" * 16, "")


@pytest.mark.parametrize(
    ("said", "after", "refused", "wait_s"),
    [
        (b'{"refused": 2}', "7", 2, 7.0),
        (b'{"refused": [{"at": 0}, {"at": 1}]}', "", 2, None),
        (b'{"refused": -1}', "1.5", 0, None),
        (b'{"refused": "x"}', "-1", 0, None),
        (b"[1]", "9" * 10, 0, None),
        (b"no json", "999999", 0, client_link._LONGEST_RETRY_AFTER_S),
        (b"[" * 100_000, "0", 0, 0.0),
    ],
)
def test_any_answer_of_a_server_is_read(said: bytes, after: str, refused: int, wait_s: float | None) -> None:
    response: Any = SimpleNamespace(status=429, headers={"Retry-After": after} if after else {})
    found = client_link._answer(response, said)
    assert (found.status, found.refused, found.retry_after_s) == (429, refused, wait_s)
    assert found.error.startswith("answered 429: ")
