"""The proxy with a server, a model server and OpenAI's client: what passes, what fails, what is collected."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any, Self, cast

import pytest
from support.assemblers import Clock, assembler, drain, rest
from support.buses import EmbeddedPlace
from support.model_upstream import WORDS, ModelUpstream
from support.serving import LIVE, REFUND, Known, state_of

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.serving import upstream as upstreams
from pytest_tfgrpo.production.serving.collector import ChatCollector
from pytest_tfgrpo.production.serving.follow import ServingFollower
from pytest_tfgrpo.production.serving.proxy import LARGEST_READ
from pytest_tfgrpo.production.serving.run_proxy import run_proxy
from pytest_tfgrpo.production.serving.settings import ProxySettings

openai: Any = pytest.importorskip("openai")
ASKED: Any = {"role": "user", "content": "May I get a refund?"}
TOOLS: Any = [{"type": "function", "function": {"name": "orders", "parameters": {"type": "object"}}}]
SESSION = {"x-session-id": "chat-17"}


class Follower(Known):
    """Knows v2 from the start."""

    def start(self) -> None:
        """Nothing is to be followed."""

    close = start


class Running(AbstractContextManager["Running"]):
    """The proxy in a thread, on a free port."""

    def __init__(self, upstream: str, collector: ChatCollector | None = None) -> None:
        self._settings = ProxySettings(upstream=upstream, host="127.0.0.1", port=0, collect=False)
        self._collector = collector
        self._stop, self._ready = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.url = ""

    def _run(self) -> None:
        follower = cast(ServingFollower, Follower(state_of(LIVE, REFUND)))
        run_proxy(self._settings, follower, self._collector, ready=self._note, stop=self._stop)

    def _note(self, url: str) -> None:
        self.url = url
        self._ready.set()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def client(self, **options: Any) -> Any:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="sk-of-the-caller", max_retries=0, **options)

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=30)


@pytest.fixture
def upstream() -> Iterator[ModelUpstream]:
    with ModelUpstream() as running:
        yield running


@pytest.fixture
def proxy(upstream: ModelUpstream) -> Iterator[Running]:
    with Running(upstream.url) as running:
        yield running


def test_the_official_client_gets_its_answer_and_the_model_the_texts(
    proxy: Running, upstream: ModelUpstream
) -> None:
    with proxy.client() as client:
        raw = client.chat.completions.with_raw_response.create(
            model="words", messages=[ASKED], tools=TOOLS, extra_headers=SESSION, extra_body={"unknown": [1]}
        )
        said = raw.parse().choices[0].message.content
    assert (said, raw.headers["x-tfgrpo-policy"], raw.headers["x-request-id"]) == ("".join(WORDS), "v2", "r1")
    path, headers, _ = upstream.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer sk-of-the-caller"
    assert headers["host"] == upstream.url.removeprefix("http://").removesuffix("/v1")
    assert REFUND in upstream.sent["messages"][0]["content"]
    assert (upstream.sent["messages"][1], upstream.sent["tools"], upstream.sent["unknown"]) == (
        ASKED,
        TOOLS,
        [1],
    )


def test_a_stream_arrives_word_by_word(proxy: Running) -> None:
    with (
        proxy.client() as client,
        client.chat.completions.create(model="words", messages=[ASKED], stream=True) as stream,
    ):
        assert [part.choices[0].delta.content for part in stream] == list(WORDS)


def test_a_refusal_passes_with_its_headers(proxy: Running) -> None:
    with proxy.client() as client, pytest.raises(openai.RateLimitError, match="slow down") as refused:
        client.chat.completions.create(model="busy", messages=[ASKED])
    assert refused.value.response.headers["retry-after"] == "7"


def test_other_routes_and_bodies_that_are_no_json_pass(proxy: Running, upstream: ModelUpstream) -> None:
    connection = proxy.connection()
    connection.request("GET", "/v1/models/a%2Fb?limit=2", headers={"X-Any": "1", "X-Odd": "é".encode()})
    listed = connection.getresponse()
    assert listed.read()
    assert [name.lower() for name, _ in listed.getheaders()] == [
        "date", "content-type", "x-request-id", "content-length"
    ]  # fmt: skip
    assert upstream.requests[0][0] == "/v1/models/a%2Fb?limit=2"
    assert upstream.requests[0][1]["x-any"] == "1"
    assert upstream.requests[0][1]["x-odd"].encode("latin-1") == "é".encode()
    connection.request("POST", "/v1/chat/completions", b"no json")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (400, b'{"error": {"message": "that is no JSON"}}')
    connection.close()


def test_what_stands_behind_a_chunked_body_is_no_header_of_the_request(
    proxy: Running, upstream: ModelUpstream
) -> None:
    body = json.dumps({"model": "words", "messages": [ASKED]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    chunks = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nX-Behind: 1\r\n\r\n" % (len(body), body)
    with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), timeout=30) as client:
        client.sendall(head + chunks)
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
    assert "x-behind" not in upstream.requests[0][1]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_streams_through(proxy: Running, upstream: ModelUpstream, chunked: bool) -> None:
    body = b'{"model": "words", "messages": [], "x": "' + b"y" * LARGEST_READ + b'"}'
    connection = proxy.connection()
    parts = iter([body[:1000], body[1000:]]) if chunked else body
    connection.request("POST", "/v1/chat/completions", parts, encode_chunked=chunked, headers={"x-a": "1"} | (
        {"transfer-encoding": "chunked"} if chunked else {}))  # fmt: skip
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["id"]) == (200, "c1")
    assert upstream.requests[0][2] == body
    connection.close()


def test_a_cut_stream_is_an_error_of_the_client_too(proxy: Running) -> None:
    connection = proxy.connection()
    body = json.dumps({"model": "cut", "messages": [ASKED], "stream": True})
    connection.request("POST", "/v1/chat/completions", body)
    answer = connection.getresponse()
    assert answer.status == 200
    with pytest.raises(http.client.IncompleteRead):
        answer.read()
    connection.close()
    with proxy.client() as client, pytest.raises(openai.APIConnectionError):
        list(client.chat.completions.create(model="cut", messages=[ASKED], stream=True))


def test_an_upstream_that_is_away_is_a_502_and_one_that_is_silent_a_504(
    upstream: ModelUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Running("http://127.0.0.1:1/v1") as away, away.client() as client:
        with pytest.raises(openai.InternalServerError) as failed:
            client.chat.completions.create(model="words", messages=[ASKED])
        assert (failed.value.status_code, failed.value.code) == (502, "upstream_unreachable")
    monkeypatch.setattr(upstreams, "SILENT_S", 0.3)
    with Running(upstream.url) as silent, silent.client() as client:
        with pytest.raises(openai.InternalServerError) as failed:
            client.chat.completions.create(model="hang", messages=[ASKED])
        assert (failed.value.status_code, failed.value.code) == (504, "upstream_timeout")


def test_a_client_that_leaves_a_stream_closes_that_of_the_upstream(
    proxy: Running, upstream: ModelUpstream
) -> None:
    connection = proxy.connection()
    body = json.dumps({"model": "hang", "messages": [ASKED], "stream": True})
    connection.request("POST", "/v1/chat/completions", body)
    answer = connection.getresponse()
    assert answer.readline().startswith(b"data: ")
    answer.close()
    connection.close()
    assert upstream.left.wait(10)


@pytest.fixture
def bus(embedded: EmbeddedPlace, clock: Clock) -> Bus:
    return embedded.open()


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_with_tools_becomes_one_trajectory_whoever_leaves(
    upstream: ModelUpstream, bus: Bus, clock: Clock, intake: Intake, stream: bool
) -> None:
    collector = ChatCollector(lambda: intake, print)
    with Running(upstream.url, collector) as proxy, proxy.client(default_headers=SESSION) as client:
        messages: list[Any] = [ASKED]
        raw = client.chat.completions.with_raw_response.create(
            model="tools", messages=messages, tools=TOOLS, stream=stream
        )
        list(cast(Any, raw.parse())) if stream else raw.parse()
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "orders", "arguments": '{"late": true}'},
        }
        messages += [{"role": "assistant", "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": "call_1", "content": "Order 17"}]
        again = client.chat.completions.create(model="tools", messages=messages, tools=TOOLS, stream=stream)
        list(cast(Any, again)) if stream else again
        with suppress(openai.APITimeoutError):
            client.chat.completions.create(model="hang", messages=[ASKED], timeout=0.3)
        until(lambda: collector.published == 3)
    worker = assembler(bus, clock)
    drain(worker)
    rest(worker, clock)
    found = [json.loads(event.data) for event in bus.replay("RL_TRAJECTORIES")]
    assert [one["outcome"]["task_status"] for one in found] == ["unknown", "failed"]
    assert [one["metadata"]["policy_version"] for one in found] == ["v2", "v2"]
    assert found[0]["trajectory_id"] == raw.headers["x-tfgrpo-trajectory"]
    assert [turn["action"]["type"] for turn in found[0]["turns"]] == ["tool_call", "response"]
    assert found[1]["turns"][0]["result"]["error"] == "the client left before the answer"
