"""Workspaces on their way to a node and back."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.engine.executors.cluster import workspace_transfer
from pytest_tfgrpo.engine.executors.cluster.workspace_transfer import left_in, put_into
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.sandbox.workspace import Workspace

NAMES = st.sampled_from(["a", "b/c", "b/d", "e/f/g"])
FILES = st.dictionaries(NAMES, st.tuples(st.binary(max_size=20), st.booleans()))


def filled(path: Path, files: dict[str, tuple[bytes, bool]]) -> Workspace:
    workspace = Workspace(path)
    for name, (data, executable) in files.items():
        target = workspace.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755 if executable else 0o644)
    if not workspace.made:
        workspace.make()
    return workspace


@given(before=FILES, after=FILES)
def test_what_an_agent_left_on_its_node_is_there_afterwards(
    before: dict[str, tuple[bytes, bool]],
    after: dict[str, tuple[bytes, bool]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("transfer")
    here, there = filled(folder / "here", before), filled(folder / "there", after)
    put_into(here, left_in(there), left_in(here))
    assert sorted(left_in(here)) == sorted(left_in(there))


def test_pipes_and_links_that_leave_the_workspace_stay_on_the_node(tmp_path: Path) -> None:
    workspace = filled(tmp_path / "there", {"a": (b"1", False)})
    os.mkfifo(workspace.path / "pipe")
    (workspace.path / "out").symlink_to("/etc/passwd")
    (workspace.path / "in").symlink_to("a")
    assert {name for name, _ in left_in(workspace)} == {"a", "in"}


def test_too_much_is_the_agents_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_transfer, "MAX_BYTES", 10)
    for name, files in {
        "one": {"a": (b"x" * 11, False)},
        "sum": {"a": (b"x" * 6, False), "b": (b"y" * 6, False)},
    }.items():
        with pytest.raises(AgentFailure, match=r"cannot be brought back|too much to bring back"):
            left_in(filled(tmp_path / name, files))


@pytest.mark.parametrize(
    "entry",
    [
        ("../escaped", ArchiveEntry(name="../escaped", data=b"x")),
        ("/tmp/escaped", ArchiveEntry(name="/tmp/escaped", data=b"x")),
        ("link", ArchiveEntry(name="link", link="../../escaped")),
    ],
)
def test_what_a_node_sends_is_written_into_the_workspace_only(
    entry: tuple[str, ArchiveEntry], tmp_path: Path
) -> None:
    with pytest.raises(ProviderError, match="cannot write to the workspace"):
        put_into(filled(tmp_path / "here", {}), [entry])
