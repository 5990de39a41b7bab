"""Servers in the file of an MCP client, such as ``.mcp.json``: how to write them in the setting ``tools``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import find_secret

FILES = (".mcp.json", "mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")
MAX_BYTES = 1_000_000


def in_client_file(root: Path, name: str) -> str:
    """Return a hint that has the spec of a server as a client's file in `root` has it; empty for none.

    `name` is that of a server, or of a file, whose first server is meant then. Variables and headers of the
    server are named without their values.
    """
    for file in FILES if name not in FILES else (name,):
        servers = _servers(root / file)
        meant = next(iter(servers), "") if name == file else name
        if spec := _spec(servers.get(meant)):
            return f"; {file} has the server {meant!r}: write tools={spec}"
    return "; write mcp:COMMAND or mcp:URL for an MCP server" if name.endswith(".json") else ""


def _servers(path: Path) -> Mapping[str, Json]:
    try:
        data = json.loads(path.read_text("utf-8")) if path.stat().st_size <= MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    found = data.get("mcpServers", data.get("servers")) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}


def _spec(server: Json) -> str:
    """Return a server as the setting has it; empty where it cannot, or where it holds a secret."""
    if not isinstance(server, dict):
        return ""
    named = server.get("env") or server.get("headers") or {}
    variables = (
        [f"{key}=${key.upper().replace('-', '_')}" for key in named] if isinstance(named, dict) else []
    )
    words = [server.get("url") or server.get("command"), *(server.get("args") or ())]
    if not all(isinstance(word, str) and word for word in words):
        return ""
    command = " ".join(shlex.quote(word) for word in words)
    spec = f"mcp:{' '.join([*variables, command])}"
    return "" if find_secret(command) is not None or not spec.isprintable() else spec
