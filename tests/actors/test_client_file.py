"""Files of MCP clients: the spec that the setting tools has for a server of theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.actors.mcp.client_file import in_client_file
from pytest_tfgrpo.actors.mcp.server_spec import parse_server
from pytest_tfgrpo.actors.openai.toolbox import open_toolbox
from pytest_tfgrpo.core.errors import ActorError

SHOP = {"command": "python", "args": ["my server.py"], "env": {"API_KEY": "hunter2"}}
SECRET = "sk-proj-" + "a1B2" * 10


def written(folder: Path, server: Any, file: str = ".mcp.json", key: str = "mcpServers") -> Path:
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps({key: {"shop": server}}))
    return folder


@pytest.mark.parametrize("entry", ["mcp:shop", "mcp:.mcp.json", ".mcp.json"])
def test_a_server_of_a_client_is_answered_by_its_spec_without_values(tmp_path: Path, entry: str) -> None:
    written(tmp_path, SHOP)
    with pytest.raises(ActorError, match="'shop': write tools=mcp:API_KEY=") as caught:
        open_toolbox(entry, tmp_path, {})
    assert str(caught.value).endswith("mcp:API_KEY=$API_KEY python 'my server.py'")
    assert "hunter2" not in str(caught.value)


def test_other_files_of_clients_are_read_too(tmp_path: Path) -> None:
    written(tmp_path, {"url": "https://a.example/mcp"}, ".vscode/mcp.json", "servers")
    assert in_client_file(tmp_path, "shop").endswith(".vscode/mcp.json has the server 'shop': write "
                                                     "tools=mcp:https://a.example/mcp")  # fmt: skip


@pytest.mark.parametrize("server", [None, [], {}, {"command": 3}, {"command": "x", "args": [SECRET]}])
def test_what_is_no_server_or_holds_a_secret_gives_no_hint(tmp_path: Path, server: Any) -> None:
    assert in_client_file(written(tmp_path, server), "shop") == ""
    (tmp_path / ".mcp.json").write_text("{")
    assert "write mcp:COMMAND" in in_client_file(tmp_path, ".mcp.json")


@pytest.mark.parametrize(
    ("entry", "said"),
    [("tools.py", "tools=tools"), ("python:tools", "tools=tools"), ("python:a.b:TOOLS", "tools=a.b:TOOLS")],
)
def test_a_file_or_a_kind_of_actor_is_answered_by_the_module(tmp_path: Path, entry: str, said: str) -> None:
    with pytest.raises(ActorError, match=f"is no Python module; write {said}$"):
        open_toolbox(entry, tmp_path, {})


def test_two_servers_on_a_line_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="names several servers; write each on a line of its own"):
        parse_server("mcp:python a.py,mcp:python b.py", tmp_path, {})
