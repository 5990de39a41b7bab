"""The command actor: programs in several languages, well-behaved and not."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.actors.command.command import _inherited
from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult

Ask = Callable[..., AttemptResult]
Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write an executable script into the root folder; return the spec that runs it."""

    def write(body: str, interpreter: str = "/bin/sh", name: str = "agent") -> str:
        path = tmp_path / name
        path.write_text(f"#!{interpreter}\n{textwrap.dedent(body)}")
        path.chmod(0o755)
        return f"command:./{name}"

    return write


def failure(outcome: AttemptResult) -> tuple[str, str, str]:
    assert outcome.failure is not None
    return outcome.status, outcome.failure.code, outcome.failure.message


def test_what_a_program_will_cost_is_unknown(script: Script, tmp_path: Path) -> None:
    actor = open_actor(script("echo 3"), root=tmp_path, settings={})
    assert actor.bound(3) == {"usd": None, "tokens": None}


def test_a_task_that_cannot_be_written_is_not_the_agents_fault(
    ask: Ask, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    assert failure(ask(script("echo 3")))[:2] == ("error", "spawn")


def test_an_agent_inherits_nothing_that_belongs_to_the_test_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook of git has GIT_DIR: with it the agent's git would write into the repository that is tested."""
    own = (
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "PYTEST_ADDOPTS",
        "TFGRPO_SEED",
        "FEATURE_TFGRPO_GROUP",
        "PWD",
        "OLDPWD",
    )
    for name in ("SOME_PROVIDER_KEY", *own):
        monkeypatch.setenv(name, "x")
    found = _inherited()
    assert {"SOME_PROVIDER_KEY", "PATH"} <= found.keys()
    assert not found.keys() & {*own, "PYTEST_CURRENT_TEST"}


def test_identity_changes_with_the_program(script: Script, tmp_path: Path) -> None:
    def identity(body: str, arguments: str = "") -> Any:
        return open_actor(script(body) + arguments, root=tmp_path, settings={}).identity

    one = identity("echo 1")
    assert identity("echo 1") == one
    assert identity("echo 2") != one
    assert identity("echo 1", " --fast") != one


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("command:", "names no program"),
        ("command:./agent 'x", "is not a command line: No closing quotation"),
        ("command:no-such-program-here", "there is no program 'no-such-program-here' on PATH; install it"),
        ("command:plain.txt", "write ./plain.txt"),
        ("command:./missing", "there is no program"),
        ("command:./plain.txt", "is not executable; run chmod +x ./plain.txt"),
        ("command:./", "there is no program"),
    ],
)
def test_a_wrong_spec_is_refused_before_anything_is_paid(spec: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("x")
    with pytest.raises(ActorError) as caught:
        open_actor(spec, root=tmp_path, settings={})
    assert reason in str(caught.value)
