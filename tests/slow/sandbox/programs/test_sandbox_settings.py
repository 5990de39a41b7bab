"""Settings of the sandbox: which paths may be listed, and what a program needs besides."""

import sys
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario
from support.sweeps import SETTINGS
from support.tools import require_tool

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.sandbox.programs.sandbox_settings import require_apart, require_sandbox

ELSEWHERE = Path("/tmp-of-others")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a suite, an output folder and a link to it."""
    root = tmp_path / "home" / "project"
    for folder in ("suite", "results", "cache"):
        (root / folder).mkdir(parents=True)
    (root / "suite" / "a.scenario.yaml").write_text("{}")
    (tmp_path / "link").symlink_to(root)
    return root


def opened(root: Path, **settings: str) -> Any:
    require_tool("bwrap")
    values: Any = {"sandbox": "bwrap", "out": "results", **settings}
    return open_actor(f"command:'{sys.executable}'", root=root, settings=values)


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        (".", "is the project"),
        ("..", "holds the project"),
        ("/", "holds the project"),
        ("../../link", "is the project"),
        ("results", "is the output folder"),
        ("results/p", "lies in the output folder"),
        ("cache, results", "is the output folder"),
        ("nowhere", "make it, or remove it from the list"),
    ],
)
def test_a_writable_path_that_is_or_holds_what_decides_is_refused(
    project: Path, listed: str, reason: str
) -> None:
    (project / "results" / "p").mkdir()
    with pytest.raises(SettingError, match=f"^sandbox_writable: .*{reason}"):
        opened(project, sandbox_writable=listed)


def test_a_readable_path_that_holds_the_suite_is_allowed_with_a_warning(project: Path) -> None:
    suite = [make_scenario("a", source="suite/a.scenario.yaml:1")]
    settings: Any = {"sandbox": "bwrap", "sandbox_readable": "cache, suite"}
    *_, warning = require_apart(settings, project, suite, ELSEWHERE)
    assert "/suite lets the agent read answers, as it is or holds" in warning
    assert opened(project, sandbox_readable="suite")


def test_a_readable_path_must_exist(project: Path) -> None:
    with pytest.raises(SettingError, match=r"sandbox_readable: there is no '.*/nowhere'; make it"):
        opened(project, sandbox_readable="~, nowhere")


def test_the_identity_tells_sandboxes_apart(project: Path) -> None:
    plain = opened(project).identity
    assert plain["sandbox"] == "bwrap"
    assert opened(project, sandbox_network="none").identity == plain
    for name, value in (
        ("readable", "cache"),
        ("writable", "cache"),
        ("env", "KEY"),
        ("network", "host"),
    ):
        changed = opened(project, **{f"sandbox_{name}": value}).identity
        assert changed == {**plain, f"sandbox_{name}": value}


def test_limits_need_a_sandbox_and_a_user_whose_processes_the_kernel_limits(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingError, match="a limit needs a sandbox"):
        require_sandbox({**SETTINGS, "sandbox_limits": "memory=1GB"})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(SettingError, match="limits no processes of root"):
        opened(project, sandbox_limits="processes=64")
