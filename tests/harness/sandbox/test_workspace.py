from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.scenarios import Attachment
from pytest_tfgrpo.harness.sandbox.workspace import Workspace, work_folder


@pytest.fixture
def attachment(tmp_path: Path) -> Attachment:
    source = tmp_path / "data.csv"
    source.write_text("a,b\n")
    return Attachment(name="tables/data.csv", path=source, sha256="0" * 64)


def test_the_folder_is_made_when_first_asked_for_with_the_attachments(
    tmp_path: Path, attachment: Attachment
) -> None:
    workspace = Workspace(tmp_path / "work" / "r0", (attachment,))
    assert not (tmp_path / "work").exists()
    assert (workspace.path / "tables" / "data.csv").read_text() == "a,b\n"
    workspace.remove()
    assert not (tmp_path / "work" / "r0").exists()


def test_an_attempt_never_sees_what_a_killed_one_left(tmp_path: Path, attachment: Attachment) -> None:
    stale = tmp_path / "r0" / "answer.txt"
    stale.parent.mkdir()
    stale.write_text("half an answer")
    assert not (Workspace(tmp_path / "r0", (attachment,)).path / "answer.txt").exists()


def test_a_finished_attempt_is_judged_in_its_folder_as_it_left_it(
    tmp_path: Path, attachment: Attachment
) -> None:
    changed = tmp_path / "r0" / "tables" / "data.csv"
    changed.parent.mkdir(parents=True)
    changed.write_text("edited by the agent\n")
    workspace = Workspace(tmp_path / "r0", (attachment,), left=True)
    assert (workspace.path / "tables" / "data.csv").read_text() == "edited by the agent\n"


def test_a_folder_that_cannot_be_made_is_our_fault_not_the_agents(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProviderError, match=r"cannot make the workspace"):
        _ = Workspace(tmp_path / "file" / "r0").path


def test_a_temporary_work_folder_is_removed_and_a_given_one_is_left(tmp_path: Path) -> None:
    with work_folder(None) as made:
        (made / "x").touch()
    assert not made.exists()
    with work_folder(tmp_path) as given:
        assert given == tmp_path
    assert tmp_path.is_dir()
