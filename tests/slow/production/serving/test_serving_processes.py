"""``tfgrpo loop proxy`` and `open_policy` as processes, while versions come and go, and the bus too."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.buses import BusPlace, NatsPlace, bytes_in
from support.model_upstream import ModelUpstream
from support.serving import ADA, REFUND, add_version, deploy, files_of
from support.tools import tfgrpo

from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.training.versions.policies import Policies

PROXY = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main(['loop', 'proxy']))"
FOLLOWS_S = 5.0
FORKED = """
import os, pytest_tfgrpo, sys
policy = pytest_tfgrpo.open_policy()
assert policy.for_session("s5").version == "v1"
print("ready", flush=True)
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.stdin.readline()
print(policy.for_session("s5", "a refund").version, flush=True)
policy.close()
os._exit(0)
"""


class Proxy:
    """The command in a process, in the current folder."""

    def __init__(self) -> None:
        away = {**os.environ, "HTTP_PROXY": "http://127.0.0.1:1"}  # not for what is on this machine
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROXY], env=away, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[1].rstrip(",")

    def chat(self, session: str) -> str:
        """Ask, and return the version that the answer names; empty for none."""
        body = json.dumps({"model": "words", "messages": [{"role": "user", "content": "A refund?"}]}).encode()
        headers = {
            "x-session-id": session,
            "authorization": "Bearer sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z",
        }
        request = urllib.request.Request(f"{self.url}/chat/completions", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.headers.get("x-tfgrpo-policy", ""))

    def health(self) -> Any:
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/healthz", timeout=60) as answer:
            return json.load(answer)

    def stop(self, number: int = signal.SIGTERM) -> tuple[str, str]:
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.process.communicate(timeout=100)


@pytest.fixture
def upstream() -> Iterator[ModelUpstream]:
    with ModelUpstream() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, place: BusPlace, upstream: ModelUpstream, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the settings for one of the buses, which is the current one."""
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    url = f"nats:{place.server.url}" if isinstance(place, NatsPlace) else f"embedded:{place.folder}/bus.db"
    text = f"[bus]\nurl = '{url}'\n[training]\nstore = 'training'\n[proxy]\nupstream = '{upstream.url}'\n"
    Path("loop.toml").write_text(text + "port = 0\ncollect = true\n")
    return tmp_path


@pytest.fixture
def proxy(folder: Path, place: BusPlace) -> Iterator[Proxy]:
    add_version(Policies(place.open(), files_of(folder)), 2, REFUND)
    running = Proxy()
    yield running
    running.stop(signal.SIGKILL)


def within(found: Callable[[], bool], seconds: float = FOLLOWS_S) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_version_is_met_within_seconds_and_the_one_before_after_a_rollback(
    proxy: Proxy, place: BusPlace, upstream: ModelUpstream, folder: Path
) -> None:
    assert proxy.chat("s5") == "v1"
    deploy(place.open(), "v2", at_once=True)
    within(lambda: proxy.health()["versions"] == ["v1", "v2"])
    met = {n: proxy.chat(f"new-{n}") for n in range(10)}
    assert "v2" in met.values()
    assert proxy.chat("s5") == "v1", "a session keeps its version"
    assert any(REFUND in body.decode() for _, _, body in upstream.requests)
    Deployments(place.open()).roll_back("v2", ADA)
    within(lambda: proxy.health()["versions"] == ["v1"])
    assert {proxy.chat(f"new-{n}") for n in met} == {"v1"}
    within(lambda: proxy.health()["collected"] == {"published": 22, "dropped": 0}, 60)
    out, errors = proxy.stop()
    assert (proxy.process.returncode, out, errors) == (0, "stopped\n", "")
    assert place.open().last("RL_SPANS") > 0
    assert not bytes_in(folder, b"sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z")


def test_a_proxy_without_its_bus_serves_what_was_served_last(
    folder: Path, place: BusPlace, upstream: ModelUpstream
) -> None:
    bus = place.open()
    add_version(Policies(bus, files_of(folder)), 2, REFUND)
    deploy(bus, "v2", at_once=True)
    Deployments(bus).advance("v2", ADA)
    first = Proxy()
    assert first.chat("s") == "v2"
    first.stop()
    gone = (
        "[bus]\nurl = 'nats:nats://127.0.0.1:1'\n"
        if isinstance(place, NatsPlace)
        else "[bus]\nurl = 'embedded:no.db'\n"
    )
    text = Path("loop.toml").read_text()
    Path("loop.toml").write_text(gone + text[text.index("[training]") :])
    second = Proxy()
    assert second.chat("s") == "v2"
    assert REFUND in upstream.requests[-1][2].decode()
    assert "what is served stays as it was" in second.stop()[1]


def test_a_forked_process_follows_too(folder: Path, place: BusPlace) -> None:
    bus = place.open()
    add_version(Policies(bus, files_of(folder)), 2, REFUND)
    running = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", FORKED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdin is not None
    assert running.stdout.readline() == "ready\n"
    deploy(bus, "v2", at_once=True)
    Deployments(bus).advance("v2", ADA)
    time.sleep(FOLLOWS_S)
    out, _ = running.communicate("now\n", timeout=60)
    assert (running.returncode, out) == (0, "v2\n")
