"""The bubblewrap sandbox of the command actor."""

import sys
from pathlib import Path

import pytest

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import ActorError

BWRAP = {"sandbox": "bwrap"}


def test_without_bubblewrap_the_actor_does_not_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ActorError, match="apt-get install bubblewrap"):
        open_actor(f"command:'{sys.executable}'", root=tmp_path, settings=BWRAP)
