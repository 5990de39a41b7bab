"""The table of actors."""

from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.harness.actors.registry import open_actor


def test_an_unknown_actor_is_refused_with_the_names_known(tmp_path: Path) -> None:
    with pytest.raises(
        ActorError, match=r"unknown actor 'ofline' in 'ofline:x'; known: command, offline, openai, python, re"
    ):
        open_actor("ofline:x", root=tmp_path, settings={})


def test_offline_takes_no_argument(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="takes no argument, not 'fast'"):
        open_actor("offline:fast", root=tmp_path, settings={})


def test_a_sandbox_that_a_python_actor_would_ignore_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="sandbox=bwrap cannot isolate a python actor"):
        open_actor("python:json:dumps", root=tmp_path, settings={"sandbox": "bwrap"})
