"""MCP servers that are programs or speak HTTP: what they get, and how they break."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.mcp_program import program
from support.model_actor import Bench, script, wants
from support.tools import require_module

from pytest_tfgrpo.actors.mcp import server_program, server_session, servers
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.records import Failure
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt


@pytest.fixture(autouse=True)
def _environment(bench: Bench) -> None:
    require_module("mcp")
    bench.environ = {**os.environ, "OPENAI_API_KEY": "of-the-suite", "SHOP_TOKEN": "t-123"}


def running(mark: str) -> dict[int, str]:
    """Return the command lines of processes that name `mark`, by their ids."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue
        if mark in line and int(folder.name) != os.getpid():
            found[int(folder.name)] = line
    return found


def nothing_left(bench: Bench) -> bool:
    end = time.monotonic() + 5
    while found := running(str(bench.root / "mcp_server.py")):
        if time.monotonic() > end:
            raise AssertionError(found)
        time.sleep(0.05)
    return True


def say(bench: Bench, mode: str, *words: str, prefix: str = "mcp:") -> AttemptResult:
    spec = f"{prefix}{program(bench.root, mode, *words)}"
    said = bench.ask(script(wants(("say", '{"text": "hi"}')), "3"), settings={"tools": spec})
    assert nothing_left(bench)
    return said


def failure(said: AttemptResult) -> Failure:
    assert said.status == "error", said
    assert said.failure is not None
    assert said.failure.code == "mcp"
    return said.failure


def test_a_server_sees_no_key_of_the_suite_and_runs_in_the_workspace(bench: Bench) -> None:
    assert say(bench, "good", "{workspace}", prefix="mcp:TOKEN=$SHOP_TOKEN ").answer == "3"
    told = json.loads(bench.told()[0])
    allowed = {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER", "LOGNAME", "TOKEN"}
    assert told["env"].keys() <= allowed | {"__CF_USER_TEXT_ENCODING"}
    assert told["env"]["TOKEN"] == "t-123"
    assert "of-the-suite" not in bench.told()[0]
    (argument,) = told["argv"]
    assert Path(argument) == Path(told["cwd"]) != bench.root


def test_a_shared_server_keeps_its_state_and_starts_again_once_it_died(bench: Bench) -> None:
    actor = bench.actor(
        script(*[turn for _ in range(3) for turn in (wants(("say", "{}")), "3")]),
        tools=f"mcp-shared:{program(bench.root, 'good')}",
    )

    async def thrice() -> list[int]:
        calls = []
        for _ in range(3):
            await attempt(actor, bench.make_call())
            calls.append(json.loads(bench.told()[-1])["calls"])
            if len(calls) == 2:
                (server,) = running(str(bench.root / "mcp_server.py"))
                os.kill(server, signal.SIGKILL)
                await asyncio.sleep(0.5)
        await actor.aclose()
        return calls

    assert asyncio.run(thrice()) == [1, 2, 1]
    assert nothing_left(bench)


@pytest.mark.parametrize("mode", ["child", "stubborn"])
def test_nothing_of_a_server_is_left_behind(bench: Bench, mode: str) -> None:
    seconds = f"98765{os.getpid()}"
    assert say(bench, mode, seconds).answer == "3"
    assert running(f"sleep {seconds}") == {}


def test_a_greeting_on_stdout_is_passed_over(bench: Bench) -> None:
    assert say(bench, "noise").answer == "3"
    assert json.loads(bench.told()[0])["calls"] == 1


def test_a_server_that_dies_in_a_call_is_named_with_what_it_said(bench: Bench) -> None:
    message = failure(say(bench, "die")).message
    assert "die' broke in a call of 'say': " in message
    assert "its process ended with exit code 9; stderr: out of memory" in message


def test_a_result_that_is_none_is_an_error_of_the_server(bench: Bench) -> None:
    assert "mad' broke in a call of 'say': " in failure(say(bench, "mad")).message


def test_an_answer_that_cannot_be_read_ends_the_session_at_once(bench: Bench) -> None:
    message = failure(say(bench, "unreadable")).message
    assert "unreadable' broke in a call of 'say': " in message
    assert 'it printed what is no message on stdout: \'{"jsonrpc":' in message


def test_megabytes_are_cut_and_endless_messages_are_an_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert say(bench, "megabytes", "3000000").answer == "3"
    assert bench.told()[0].endswith("[cut: 3000000 characters in all]")
    monkeypatch.setattr(server_program, "MESSAGE_MAX_BYTES", 1_000_000)
    message = failure(say(bench, "megabytes", "3000000")).message
    assert "it printed more than 1000000 bytes at once" in message


def test_a_call_that_hangs_goes_to_the_model(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_session, "CALL_S", 0.5)
    assert say(bench, "hang").answer == "3"
    assert "hang' did not answer 'say' within 0.5 s" in bench.told()[0]


def test_the_time_limit_of_a_rollout_ends_its_servers(bench: Bench) -> None:
    spec = f"mcp:{program(bench.root, 'hang')}"
    said = bench.ask(script(wants(("say", "{}")), "3"), settings={"tools": spec}, timeout_s=3.0)
    assert (said.status, said.failure and said.failure.code) == ("failed", "timeout")
    assert nothing_left(bench)


def test_a_list_that_grows_from_start_to_start_is_an_error(bench: Bench) -> None:
    message = failure(say(bench, "changing", str(bench.root / "starts"))).message
    assert "it lists other tools than before (new: tool1)" in message


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("mute", "did not list its tools within 2 s"),
        ("chatter", "it printed what is no message on stdout: 'xxx"),
    ],
)
def test_a_server_that_never_gets_ready_is_named_before_the_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, mode: str, reason: str
) -> None:
    monkeypatch.setattr(servers, "LIST_S", 2.0)
    with pytest.raises(ActorError) as caught:
        bench.actor(tools=f"mcp:{program(bench.root, mode)}")
    assert reason in str(caught.value)
    assert nothing_left(bench)


def test_a_program_that_ends_at_once_is_named_with_its_words(bench: Bench) -> None:
    with pytest.raises(ActorError, match=r"its process ended with exit code 2; stderr: .*no_such_file"):
        bench.actor(tools=f"mcp:{sys.executable} no_such_file.py")


@contextmanager
def http_server(seen: list[dict[str, str]]) -> Iterator[str]:
    """Serve a tool over streamable HTTP; `seen` gets the headers of each request."""
    import socket
    import threading

    import uvicorn
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("http")

    @server.tool()
    async def say(text: str = "") -> str:
        """Say it."""
        if text == "big":
            return "x" * 3_000_000
        return text or "nothing"

    app = server.streamable_http_app()

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await app(scope, receive, send)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # who comes before the thread is ready waits
        running = uvicorn.Server(uvicorn.Config(noted, log_level="error", lifespan="on"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True
            thread.join()


def test_a_server_at_a_url_gets_the_headers_that_are_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_module("uvicorn")
    seen: list[dict[str, str]] = []
    turns = script(wants(("say", '{"text": "hi"}'), ("say", '{"text": "big"}')), "3")
    with http_server(seen) as url:
        spec = f"mcp:Authorization='Bearer $SHOP_TOKEN' {url}"
        assert bench.ask(turns, settings={"tools": spec}).answer == "3"
        assert bench.told()[0] == "hi"
        assert bench.told()[1].endswith("[cut: 3000000 characters in all]")
        assert {headers["authorization"] for headers in seen} == {"Bearer t-123"}
        assert "of-the-suite" not in str(seen)
        monkeypatch.setattr("pytest_tfgrpo.actors.mcp.sdk.MESSAGE_MAX_BYTES", 1_000_000)
        said = bench.ask(script(wants(("say", '{"text": "big"}')), "3"), settings={"tools": spec})
        assert "broke in a call of 'say'" in failure(said).message
    with pytest.raises(ActorError, match="cannot be used"):
        bench.actor(tools=spec)
