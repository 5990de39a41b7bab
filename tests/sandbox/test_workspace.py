import errno
import pickle
import shutil
import stat
from pathlib import Path

import pytest
from support.projects_in_archives import write_archive

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.scenarios import Attachment, WorkspaceArchive
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.sandbox.changes import changes_in
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.workspace import Workspace, behind_links


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


def test_nobody_else_can_enter_it(tmp_path: Path) -> None:
    assert stat.S_IMODE(Workspace(tmp_path / "r0").path.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "done", ["removed", "a file", "a link", "another folder", "unreadable", "left alone"]
)
def test_checks_find_the_folder_or_an_empty_one_whatever_the_agent_did_to_it(
    tmp_path: Path, done: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "solution.txt").touch()
    workspace = Workspace(tmp_path / "r0")
    (workspace.path / "own.txt").touch()
    if done == "unreadable":
        workspace.path.chmod(0)
    elif done != "left alone":
        shutil.rmtree(workspace.path)
    if done == "a file":
        workspace.path.touch()
    elif done == "a link":
        workspace.path.symlink_to(elsewhere)
    elif done == "another folder":
        elsewhere.rename(workspace.path)
    workspace.secure()
    kept = {"unreadable": ["own.txt"], "left alone": ["own.txt"], "another folder": ["solution.txt"]}
    assert sorted(path.name for path in workspace.path.iterdir()) == kept.get(done, [])
    assert stat.S_IMODE(workspace.path.lstat().st_mode) & 0o700 == 0o700
    assert done == "another folder" or (elsewhere / "solution.txt").exists()


@pytest.fixture
def archive(tmp_path: Path) -> WorkspaceArchive:
    link = ArchiveEntry(name="tables", link="data")
    return write_archive(tmp_path / "suite" / "a.tar.gz", {"data/x.csv": "1", "tables": link})


def test_a_project_is_laid_before_the_attachments(
    tmp_path: Path, attachment: Attachment, archive: WorkspaceArchive
) -> None:
    folder = Workspace(tmp_path / "r0", (attachment,), archive=archive).path
    assert (folder / "data" / "x.csv").read_text() == "1"
    assert (folder / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"
    # no attachment is written through a link of the project
    assert (folder / "tables" / "data.csv").read_text() == "a,b\n"
    assert not (folder / "data" / "data.csv").exists()


def test_two_workspaces_of_one_project_share_nothing(tmp_path: Path, archive: WorkspaceArchive) -> None:
    one, other = (Workspace(tmp_path / name, archive=archive).path for name in ("one", "other"))
    for path in [path for path in one.rglob("*") if path.is_file() and not path.is_symlink()]:
        path.write_bytes(b"damaged by an agent")
    assert (other / "data" / "x.csv").read_text() == "1"
    assert (Workspace(tmp_path / "third", archive=archive).path / "data" / "x.csv").read_text() == "1"
    assert b"damaged" not in b"".join(p.read_bytes() for p in (other / ".git").rglob("*") if p.is_file())


def test_on_a_full_disk_no_half_project_stays(
    tmp_path: Path, archive: WorkspaceArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path / "r0", archive=archive)

    def fill(_base: object, folder: Path, *_: object) -> None:
        (folder / "half").write_text("x")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pytest_tfgrpo.sandbox.workspace.lay_base", fill)
        with pytest.raises(ProviderError, match="No space left on device"):
            _ = workspace.path
    assert not (tmp_path / "r0").exists()
    assert sorted(path.name for path in workspace.path.iterdir()) == [".git", "data", "tables"]


def test_an_attempt_never_sees_a_project_that_a_killed_one_left(
    tmp_path: Path, archive: WorkspaceArchive
) -> None:
    (tmp_path / "r0" / "data").mkdir(parents=True)
    (tmp_path / "r0" / "data" / "x.csv").write_text("hal")
    (tmp_path / "r0" / "left").touch()
    folder = Workspace(tmp_path / "r0", archive=archive).path
    assert (folder / "data" / "x.csv").read_text() == "1"
    assert not (folder / "left").exists()


def overlay(tmp_path: Path, name: str) -> Attachment:
    source = tmp_path / "SKILL.md"
    source.write_text("help")
    return Attachment(name=name, path=source, sha256="0" * 64, overlay=True)


def test_an_overlay_is_gone_before_anything_is_graded_and_what_it_covered_is_back(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "base.tar.gz", {"skills/a/SKILL.md": "the project's"})
    both = (overlay(tmp_path, "skills/a/SKILL.md"), overlay(tmp_path, "skills/b/SKILL.md"))
    workspace = Workspace(tmp_path / "r0", both, archive=archive)
    assert (workspace.path / "skills/a/SKILL.md").read_text() == "help"
    (workspace.path / "skills/b/SKILL.md").write_text("changed by the agent")
    (workspace.path / "skills/b/own.md").write_text("the agent's")
    workspace.withdraw()
    assert (workspace.path / "skills/a/SKILL.md").read_text() == "the project's"
    assert [change.name for change in changes_in(workspace) or ()] == ["skills/b/own.md"]


@pytest.mark.parametrize(
    "links",
    [
        {".claude/skills": "../.agents/skills"},
        {".claude": ".agents"},
        {".claude/skills/a/SKILL.md": "../../../own.md"},
        {".claude/skills": "../x", "x": ".agents/skills"},
        {".agents/skills": "../.claude/skills", ".claude/skills": "../.agents/skills"},
    ],
)
def test_an_overlay_leaves_the_links_of_a_project(tmp_path: Path, links: dict[str, str]) -> None:
    own = "the project's"
    files: dict[str, str | ArchiveEntry] = {".agents/b.md": own, "own.md": own}
    files |= {name: ArchiveEntry(name=name, data=b"", link=target) for name, target in links.items()}
    archive = write_archive(tmp_path / "base.tar.gz", files)
    names = (".agents/skills/a/SKILL.md", ".claude/skills/a/SKILL.md")
    workspace = Workspace(tmp_path / "r0", tuple(overlay(tmp_path, name) for name in names), archive=archive)
    assert [(workspace.path / name).read_text() for name in names] == ["help", "help"]
    circle = ".agents/skills" in links
    workspace.withdraw()
    assert [change.name for change in changes_in(workspace) or ()] == (sorted(links) if circle else [])


def test_an_overlay_is_taken_out_of_no_other_place(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "a").mkdir(parents=True)
    (elsewhere / "a" / "SKILL.md").write_text("somebody's")
    workspace = Workspace(tmp_path / "r0", (overlay(tmp_path, "skills/a/SKILL.md"),))
    shutil.rmtree(workspace.path / "skills")
    (workspace.path / "skills").symlink_to(elsewhere)
    workspace.withdraw()
    assert (elsewhere / "a" / "SKILL.md").read_text() == "somebody's"


def test_what_an_overlay_covered_comes_back_with_its_right_to_run(tmp_path: Path) -> None:
    run = ArchiveEntry(name="help/run", data=b"#!/bin/sh\n", executable=True)
    archive = write_archive(tmp_path / "base.tar.gz", {"help/run": run})
    workspace = Workspace(tmp_path / "r0", (overlay(tmp_path, "help/run"),), archive=archive)
    assert (workspace.path / "help" / "run").read_text() == "help"
    workspace.withdraw()
    assert (workspace.path / "help" / "run").read_bytes() == run.data
    assert (workspace.path / "help" / "run").stat().st_mode & 0o100
    assert changes_in(workspace) == ()


@pytest.mark.parametrize(("over", "made_again"), [(True, False), (False, True)])
def test_a_folder_that_was_given_away_is_made_again_unless_its_rollout_is_over(
    tmp_path: Path, over: bool, made_again: bool
) -> None:
    workspace = Workspace(tmp_path / "r0")
    (workspace.path / "old").touch()
    workspace.forget(over=over)
    assert not workspace.made
    if made_again:
        assert list(workspace.path.iterdir()) == []
        return
    with pytest.raises(ProviderError, match="is removed: its rollout is over"):
        _ = workspace.path


def test_links_of_an_environment_lie_in_the_project_and_git_ignores_them(
    tmp_path: Path, archive: WorkspaceArchive
) -> None:
    modules = tmp_path / "built" / "node_modules"
    environment = BuiltEnvironment(
        stamp="s",
        folder=tmp_path / "built",
        python=None,
        programs=(),
        imports=(),
        variables={},
        links={"node_modules": modules},
        readable=(),
    )
    workspace = Workspace(tmp_path / "r0", archive=archive, environment=environment)
    assert (workspace.path / "node_modules").readlink() == modules
    assert (workspace.path / ".git" / "info" / "exclude").read_text() == "/node_modules\n"
    assert changes_in(workspace) == ()


def test_a_used_workspace_keeps_its_folder_in_another_process(
    tmp_path: Path, attachment: Attachment, archive: WorkspaceArchive
) -> None:
    for name, given in (("plain", None), ("project", archive)):
        workspace = Workspace(tmp_path / name, (attachment,), archive=given)
        fresh = pickle.loads(pickle.dumps(workspace))
        assert not fresh.made
        (workspace.path / "own.txt").touch()
        other = pickle.loads(pickle.dumps(workspace))
        assert other.made
        assert (other.path / "own.txt").exists()
        assert (other.attachments, other.archive) == ((attachment,), given)


def test_links_of_a_project_are_followed_as_far_as_they_lead_within_it() -> None:
    links = {"a": "b", "b": "c", "c/d": "../e", "out": "..", "root": "/etc"}
    base = {name: ArchiveEntry(name=name, link=target) for name, target in links.items()}
    assert behind_links("a/d/x", base) == "e/x"
    assert behind_links("e/x", base) == "e/x"
    assert behind_links("out/x", base) == "out/x"
    assert behind_links("root/x", base) == "root/x"
    chain = {f"l{n}": ArchiveEntry(name=f"l{n}", link=f"l{n + 1}") for n in range(60)}
    assert behind_links("l21", chain) == "l60"
    assert behind_links("l0", chain) == "l0", "after 40 links it may be a circle"


def test_attachments_of_a_project_overwrite_its_files(tmp_path: Path, attachment: Attachment) -> None:
    archive = write_archive(tmp_path / "a.tar.gz", {"tables/data.csv": "the project's"})
    workspace = Workspace(tmp_path / "r0", (attachment,), archive=archive)
    assert (workspace.path / "tables" / "data.csv").read_text() == "a,b\n"
    assert changes_in(workspace) == (), "an attachment is given, not changed"
    (workspace.path / "tables" / "data.csv").write_text("the project's")
    assert [change.name for change in changes_in(workspace) or ()] == ["tables/data.csv"]
