"""Settings of the sandbox: which paths may be listed, and what a program needs besides."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.scenarios import Attachment, WorkspaceArchive
from pytest_tfgrpo.sandbox.programs import sandbox_settings
from pytest_tfgrpo.sandbox.programs.bubblewrap import Sandbox
from pytest_tfgrpo.sandbox.programs.programs import needed
from pytest_tfgrpo.sandbox.programs.sandbox_settings import open_sandbox, require_apart, require_sandbox

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


def test_a_writable_path_that_holds_a_scenario_or_an_attachment_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = [make_scenario("a", source="suite/a.scenario.yaml:1")]
    settings: Any = {"sandbox": "bwrap", "sandbox_writable": "suite"}
    with pytest.raises(SettingError, match=r"holds '.*a\.scenario\.yaml' of the suite.*list a folder of the"):
        require_apart(settings, project, suite, ELSEWHERE)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert require_apart(settings | {"sandbox_writable": "cache"}, project, suite, ELSEWHERE) == []
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert (
        "runs as root"
        in require_apart(settings | {"sandbox_writable": "cache"}, project, suite, ELSEWHERE)[0]
    )
    assert require_apart(settings | {"sandbox": "none"}, project, suite, ELSEWHERE) == []


def test_a_writable_path_that_holds_the_workspaces_of_other_rollouts_is_refused(project: Path) -> None:
    settings: Any = {"sandbox": "bwrap", "sandbox_writable": "cache"}
    with pytest.raises(SettingError, match="holds the workspaces of all rollouts"):
        require_apart(settings, project, [], project / "cache" / "tmp")


@pytest.mark.parametrize(
    ("shown", "held"),
    [
        (".", ""),
        ("suite/..", ""),
        ("..", ""),
        ("results", "results"),
        ("suite", "suite/a.scenario.yaml"),
        ("suite/a.scenario.yaml", "suite/a.scenario.yaml"),
        ("cache", None),
        ("results/old", None),
    ],
)
def test_a_readable_path_that_holds_answers_is_warned_of(
    project: Path, shown: str, held: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (project / "results" / "old").mkdir()
    suite = [make_scenario("a", source="suite/a.scenario.yaml:1")]
    for root in (project, project.parent.parent / "link"):
        settings: Any = {"sandbox": "bwrap", "sandbox_readable": shown, "out": "results"}
        warnings = require_apart(settings, root, suite, ELSEWHERE)
        assert len(warnings) == (held is not None)
        if held is not None:
            assert f"as it is or holds {project / held};" in warnings[0]


def test_the_real_project_is_answers_where_pytest_runs_in_a_link_to_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    settings: Any = {"sandbox": "bwrap", "sandbox_readable": f"{project}, {project}/real", "out": "linked"}
    (project / "real").mkdir()
    (project / "linked").symlink_to(project / "real")
    one, two = require_apart(settings, project.parent.parent / "link", [], ELSEWHERE)
    assert f"holds {project};" in one
    assert f"holds {project}/real;" in two


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".", "is the project"),
        ("..", "holds the project"),
        ("results", "is the output folder"),
        ("results/old", "lies in the output folder"),
        ("elsewhere", "there is no "),
        ("cache", None),
    ],
)
def test_what_an_agent_may_write_to_is_neither_the_project_nor_its_output(
    project: Path, path: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_settings, "open_bwrap", lambda: "bwrap")
    (project / "results" / "old").mkdir()
    (project / "out").symlink_to(project / "results")
    for root in (project, project.parent.parent / "link"):
        settings: Any = {"sandbox": "bwrap", "sandbox_writable": str(project / path)}
        if said is not None:
            with pytest.raises(SettingError, match=f"{path}' {said}|{said}"):
                open_sandbox(settings, root, ["/bin/true"], "")
            continue
        sandbox, identity = open_sandbox(settings, root, ["/bin/true"], "")
        assert sandbox is not None
        assert set(sandbox.writable) == {project / path}
        assert sandbox.hidden == (root, root / "out")
        assert identity == settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sandbox_limits": "processes=9"}, "a limit needs a sandbox"),
        ({"sandbox_network": "loopback"}, "reaches every address, not only loopback"),
        ({"sandbox_network": "none"}, None),
        ({"sandbox_network": "loopback", "sandbox_limits": "processes=9", "sandbox": "bwrap"}, None),
    ],
)
def test_a_setting_that_only_a_sandbox_can_keep_needs_one(settings: Any, said: str | None) -> None:
    if said is None:
        require_sandbox(settings)
        assert open_sandbox({}, ELSEWHERE, [], "") == (None, {"sandbox": "none"})
        return
    with pytest.raises(SettingError, match=said):
        require_sandbox(settings)


@pytest.mark.parametrize("shown", ["suite/references", "suite/references/a.tar.gz", "suite/provenance"])
def test_what_lies_beside_the_archive_of_a_workspace_is_answers_too(project: Path, shown: str) -> None:
    for name in ("archives", "references", "provenance"):
        (project / "suite" / name).mkdir()
        (project / "suite" / name / "a.tar.gz").touch()
    path = project / "suite" / "archives" / "a.tar.gz"
    archive = WorkspaceArchive(archive="archives/a.tar.gz", path=path, sha256="0" * 64)
    suite = [make_scenario("a", source="suite/a.scenario.yaml:1", workspace=archive)]
    settings: Any = {"sandbox": "bwrap", "sandbox_readable": shown}
    *_, warning = require_apart(settings, project, suite, ELSEWHERE)
    assert f"/{shown} lets the agent read answers" in warning
    with pytest.raises(SettingError, match=f"{shown}' holds .* of the suite"):
        require_apart({"sandbox": "bwrap", "sandbox_writable": shown}, project, suite, ELSEWHERE)


def test_a_project_in_a_system_folder_is_hidden_there() -> None:
    sandbox = Sandbox(
        bwrap="bwrap", hidden=(Path("/usr/share"), Path("/var")), readable=(Path("/usr/share/doc"),)
    )
    mounts = " ".join(sandbox.argv(["true"], None))
    assert "--tmpfs /usr/share --ro-bind /usr/share/doc /usr/share/doc" in mounts
    assert "--tmpfs /var" not in mounts
    listed = " ".join(replace(sandbox, readable=(Path("/usr/share"),)).argv(["true"], None))
    assert "--tmpfs /usr/share" not in listed


def test_a_read_only_program_in_a_writable_folder_stays_so(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.touch()
    mounts = " ".join(Sandbox(bwrap="bwrap", readable=(program,), writable=(tmp_path,)).argv(["true"], None))
    assert f"--bind {tmp_path} {tmp_path} --ro-bind {program} {program}" in mounts


def test_a_program_brings_its_interpreter_links_and_modules(tmp_path: Path) -> None:
    for name in (
        "nvm/bin/node",
        "nvm/lib/node_modules/tool/cli.js",
        "venv/bin/x",
        "python/lib/python3.12/os.py",
        "other/lib/python3.12/os.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/usr/bin/env -S node --flag\n" if name.endswith(".js") else "")
        path.chmod(0o755)
    (tmp_path / "nvm/bin/tool").symlink_to("../lib/node_modules/tool/cli.js")
    (tmp_path / "python/bin").mkdir()
    (tmp_path / "venv/pyvenv.cfg").write_text(
        f"home = {tmp_path}/python/bin\nexecutable = {tmp_path}/other/bin\nhome = other/bin\n"
    )
    (tmp_path / "venv/notes.txt").write_text("")

    def shown(*argv: str, root: str = "project") -> set[str]:
        paths = needed([str(tmp_path / argv[0]), *argv[1:]], f"{tmp_path}/nvm/bin", tmp_path / root)
        return {str(path.relative_to(tmp_path)) for path in paths if path.is_relative_to(tmp_path)}

    node = {"nvm/bin/tool", "nvm/lib/node_modules", "nvm/lib/node_modules/tool/cli.js", "nvm/bin/node"}
    assert shown("nvm/bin/tool") == node
    venv = {"venv/bin/x", "venv", "python"}
    assert shown("venv/bin/x", "word", f"{tmp_path}/nvm/bin") == venv
    assert shown("venv/bin/x", f"{tmp_path}/venv/notes.txt") == venv | {"venv/notes.txt"}
    parts = {"venv/bin/x", "venv/bin", "venv/pyvenv.cfg", "python"}
    assert shown("venv/bin/x", root="venv") == parts


def test_what_is_listed_is_shown_as_it_is_and_where_it_leads_within_limits(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "shown").symlink_to(project / "cache")
    monkeypatch.setattr(sandbox_settings, "open_bwrap", lambda: "bwrap")
    monkeypatch.setattr(sandbox_settings.shutil, "which", lambda name, path: f"/usr/bin/{name}")
    settings = {
        "sandbox": "bwrap",
        "out": "results",
        "sandbox_readable": "shown",
        "sandbox_limits": "memory=2GB, file_size=5",
    }
    box, identity = open_sandbox(settings, project, ["/bin/sh"], "/bin")
    assert box is not None
    assert {project / "shown", project / "cache"} <= set(box.readable)
    assert box.hidden == (project, project / "results")
    assert box.limited[0] == "/usr/bin/prlimit"
    assert set(box.limited[1:-1]) == {"--data=2000000000:2000000000", "--fsize=5:5"}
    assert identity == {
        "sandbox": "bwrap",
        "sandbox_readable": "shown",
        "sandbox_limits": "memory=2GB, file_size=5",
    }


def test_a_limit_of_processes_does_not_hold_for_root_and_needs_prlimit(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_settings, "open_bwrap", lambda: "bwrap")
    monkeypatch.setattr(sandbox_settings.shutil, "which", lambda name, path: f"/usr/bin/{name}")
    settings = {"sandbox": "bwrap", "sandbox_limits": "processes=9"}
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(SettingError, match=r"limits no processes of root; .* --pids-limit"):
        open_sandbox(settings, project, ["/bin/sh"], "/bin")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    box, _ = open_sandbox(settings, project, ["/bin/sh"], "/bin")
    assert box is not None
    assert box.limited == ("/usr/bin/prlimit", "--nproc=9:9", "--")
    monkeypatch.setattr(sandbox_settings.shutil, "which", lambda name, path: None)
    with pytest.raises(SettingError, match="needs prlimit, which is not installed; install util-linux"):
        open_sandbox(settings, project, ["/bin/sh"], "/bin")


def test_a_listed_path_may_begin_with_the_home_of_the_user(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_settings, "open_bwrap", lambda: "bwrap")
    monkeypatch.setenv("HOME", str(project.parent))
    (project.parent / "models").mkdir()
    settings = {"sandbox": "bwrap", "sandbox_readable": "~/models", "sandbox_writable": "cache"}
    box, _ = open_sandbox(settings, project, ["/bin/sh"], "/bin")
    assert box is not None
    assert project.parent / "models" in box.readable
    assert set(box.writable) == {project / "cache"}
    with pytest.raises(SettingError, match=r"sandbox_readable: there is no '.*/none'; make it, or remove it"):
        open_sandbox(settings | {"sandbox_readable": "~/none"}, project, ["/bin/sh"], "/bin")


def test_attachments_and_archives_of_scenarios_are_answers_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for name in ("data/a.csv", "fixes/archives/a.tar.gz", "fixes/archives/b.tar.gz"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    attached = Attachment(name="a.csv", path=project / "data" / "a.csv", sha256="0" * 64)
    archive = WorkspaceArchive(
        archive="archives/a.tar.gz", path=project / "fixes/archives/a.tar.gz", sha256="0" * 64
    )
    source = "suite/a.scenario.yaml:1"
    for scenario, place in (
        (make_scenario("a", source=source, attachments=(attached,)), "data"),
        (make_scenario("a", source=source, workspace=archive), "fixes/archives/b.tar.gz"),
    ):
        settings: Any = {"sandbox": "bwrap", "sandbox_writable": place}
        with pytest.raises(SettingError, match=rf"{place}' holds '.*' of the suite"):
            require_apart(settings, project, [scenario], ELSEWHERE)
        shown: Any = {"sandbox": "bwrap", "sandbox_readable": place}
        assert len(require_apart(shown, project, [scenario], ELSEWHERE)) == 1


def test_the_folder_of_all_workspaces_itself_may_not_be_written_to_and_one_beside_it_may(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    settings: Any = {"sandbox": "bwrap", "sandbox_writable": "cache"}
    with pytest.raises(SettingError, match="holds the workspaces of all rollouts"):
        require_apart(settings, project, [], project / "cache")
    assert require_apart(settings, project, [], project) == []
