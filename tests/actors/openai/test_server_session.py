"""Sessions with MCP servers: what went wrong, and whether another call may work."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.actors.mcp import server_spec
from pytest_tfgrpo.actors.mcp.server_session import ServerSession, _reason
from pytest_tfgrpo.core.errors import ActorError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(2, "No such file"), "No such file"),
        (ValueError("bad reply"), "bad reply"),
        (RuntimeError("lost"), "RuntimeError: lost"),
        (
            ExceptionGroup("all", [ExceptionGroup("some", [ValueError("first")]), OSError(2, "second")]),
            "first",
        ),
    ],
)
def test_what_went_wrong_first_is_said_in_its_own_words(error: BaseException, reason: str) -> None:
    assert _reason(error) == reason


@pytest.mark.parametrize("broken", [None, "_broken", "_task", "_program"])
def test_a_session_is_usable_until_it_breaks_or_its_server_ends(broken: str | None) -> None:
    session: Any = SimpleNamespace(
        _broken=broken == "_broken",
        _task=SimpleNamespace(done=lambda: broken == "_task"),
        _program=SimpleNamespace(ended=broken == "_program"),
    )
    usable: Any = ServerSession.usable
    assert usable.fget(session) is (broken is None)


def test_a_single_word_that_names_a_server_of_another_client_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_spec, "in_client_file", lambda root, word: f"; {word} is in .mcp.json")
    with pytest.raises(ActorError, match=r"^'mcp:none' names no program; none is in \.mcp\.json$"):
        server_spec._located(["none"], tmp_path, "mcp:none", {"PATH": ""})
    with pytest.raises(ActorError) as caught:
        server_spec._located(["none", "none"], tmp_path, "mcp:none none", {"PATH": ""})
    assert "client" not in str(caught.value)
    assert ".mcp.json" not in str(caught.value)
