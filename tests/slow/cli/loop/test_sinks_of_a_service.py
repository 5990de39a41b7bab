"""Sinks of ``tfgrpo loop serve``: a dead or silent ClickHouse harms nothing, and forget says so."""

import gzip
import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loop_process import Served
from support.otlp_spans import agent, line
from support.tools import tfgrpo

USER = "bob.ross@example.com"


def run(number: int, user: str) -> dict[str, object]:
    attributes = {
        "user.id": user, "session.id": f"of-{user[:3]}", "tfgrpo.task_status": "completed_successfully",
    }  # fmt: skip
    return agent(number, trace=f"{number:032x}", attributes=attributes)


@pytest.fixture(params=["dead", "silent"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://loop:secret-word@127.0.0.1:{listener.getsockname()[1]}"
        if request.param == "silent":
            yield url
    if request.param == "dead":
        yield url


@pytest.fixture
def served(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    sinks = f"[warehouse]\nurl = '{server}'\n[archive]\nfolder = 'kept'\n[logs]\npath = 'loop.log'\n"
    Path("loop.toml").write_text(f"[service]\nport = 0\n[evaluator]\nlease_s = 1\n{sinks}")
    running = Served()
    yield running
    running.stop(signal.SIGKILL)


def archived() -> list[str]:
    return [
        line
        for path in Path("kept").glob("*.gz")
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
    ]


def until(count: int) -> None:
    end = time.monotonic() + 60
    while len(archived()) != count:
        assert time.monotonic() < end, archived()
        time.sleep(0.1)


def test_all_else_goes_on_and_forget_says_that_the_warehouse_waits(served: Served) -> None:
    time.sleep(2)  # the log begins with what comes
    served.post("/v1/traces", line(run(1, USER), run(2, "dave")))
    until(4)  # two trajectories, two rewards
    assert len(Path("loop.log").read_text().splitlines()) == 4
    end = time.monotonic() + 60
    while not json.loads(tfgrpo("loop", "status", "--json"))["sinks"]["warehouse"]["error"]:
        assert time.monotonic() < end
        time.sleep(0.2)
    forgot = tfgrpo("loop", "forget", "--user", USER, code=1)
    assert "warehouse still has rows of u-" in forgot
    assert "a service removes them once it can" in forgot
    assert "archive" not in forgot.partition("tfgrpo:")[2]
    assert len(archived()) == 2
    status = json.loads(tfgrpo("loop", "status", "--json"))["sinks"]
    assert (status["warehouse"]["to_forget"], status["archive"]["to_forget"]) == (1, 0)
    out, err = served.stop()
    assert (out, served.code) == ("stopped    what was accepted is on the bus\n", 0)
    assert "the warehouse failed, and tries again: StoreError: warehouse 127.0.0.1:" in err
    assert "secret-word" not in err + forgot
