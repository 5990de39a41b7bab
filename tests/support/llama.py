"""A real server of the chat-completions protocol: llama.cpp's, with a tiny random model made here."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

KEY = "sk-tiny-7Wq2ZpL9vB4xN6mK"
CONTEXT = 16_384
"""Tokens that a conversation may have; a token of the model is a byte."""
START_S = 100.0
SEED = 20_26
WIDTH, HEADS, FEED_FORWARD = 32, 4, 64


class Llama(NamedTuple):
    """A server that runs."""

    base_url: str
    log: Path


def require_llama() -> None:
    """Skip the tests without the server's packages, or fail under ``CI_REQUIRE_TOOLS=1``."""
    missing = [n for n in ("llama_cpp", "gguf", "uvicorn", "fastapi") if importlib.util.find_spec(n) is None]
    if missing:
        reason = (
            f"NOT TESTED: no {', '.join(missing)} here; pip install '.[test-server]' builds it in minutes"
        )
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail(reason + ", and CI_REQUIRE_TOOLS=1 demands it")
        pytest.skip(reason)


def write_model(path: Path) -> None:
    """Write a llama of one layer with random weights, whose vocabulary is the bytes."""
    from gguf import GGUFWriter, TokenType

    chance = np.random.default_rng(SEED)
    printable = ["▁", *(chr(code) for code in range(33, 127))]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *printable]
    kinds = [TokenType.UNKNOWN, *[TokenType.CONTROL] * 2, *[TokenType.BYTE] * 256]
    kinds += [TokenType.NORMAL] * len(printable)
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    def weights(*shape: int, scale: float = 0.3) -> NDArray[np.float32]:
        return (chance.standard_normal(shape) * scale).astype(np.float32)

    ones, output = np.ones(WIDTH, np.float32), weights(len(tokens), WIDTH, scale=0.5)
    output[3:259] *= 0.1  # few bytes that are no character
    output[2] *= 2  # an end that comes soon, where it comes
    tensors = {"token_embd": weights(len(tokens), WIDTH, scale=1.0), "output_norm": ones, "output": output}
    layer = {"attn_norm": ones, "ffn_norm": ones}
    layer |= {f"attn_{name}": weights(WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
    layer |= {f"ffn_{name}": weights(FEED_FORWARD, WIDTH) for name in ("gate", "up")}
    layer |= {"ffn_down": weights(WIDTH, FEED_FORWARD)}
    for name, values in (tensors | {f"blk.0.{name}": values for name, values in layer.items()}).items():
        writer.add_tensor(f"{name}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextmanager
def running(folder: Path) -> Iterator[Llama]:
    """Run a server of the models ``tiny`` and, with tools, ``tiny-tools``; it asks for KEY."""
    model, log = folder / "tiny.gguf", folder / "server.log"
    write_model(model)
    common = {"model": str(model), "n_ctx": CONTEXT, "n_threads": 1, "n_threads_batch": 1, "verbose": False}
    formats = {"tiny": "chatml", "tiny-tools": "chatml-function-calling"}
    models = [{**common, "model_alias": alias, "chat_format": name} for alias, name in formats.items()]
    config = folder / "server.json"
    config.write_text(json.dumps({"host": "127.0.0.1", "port": 0, "api_key": KEY, "models": models}))
    command = [sys.executable, "-m", "llama_cpp.server", "--config_file", str(config)]
    quiet = {"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=os.environ | quiet
        )
    try:
        yield Llama(_address(server, log), log)
    finally:
        server.terminate()
        try:
            server.wait(100)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    """Return the base URL of a server once it listens."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        if found := re.search(r"running on (http://127\.0\.0\.1:\d+)", log.read_text(errors="replace")):
            return f"{found[1]}/v1"
        time.sleep(0.02)
    pytest.fail(f"the server did not start (exit code {server.poll()}):\n{log.read_text(errors='replace')}")
