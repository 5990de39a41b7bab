"""The project as the command line finds it, which must be the one that pytest finds."""

from pathlib import Path

import pytest
from support.cli.project import write

from pytest_tfgrpo.cli import project as project_module
from pytest_tfgrpo.cli.demo_folder import demo_folder
from pytest_tfgrpo.cli.page_file import write as write_page
from pytest_tfgrpo.cli.project import cd_to, open_project, parse_ini
from pytest_tfgrpo.core.errors import JournalError, SettingError
from pytest_tfgrpo.core.keys.setting_parsers import default_task_id


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="pytest 9 introduced these")
@pytest.mark.parametrize("name", ["pytest.toml", ".pytest.toml"])
def test_a_file_of_pytest_9_comes_first(tmp_path: Path, name: str) -> None:
    write(tmp_path, "pytest.ini", name)
    assert open_project(tmp_path, {}, {}).out == tmp_path / f"from-{name}"


def test_the_native_table_of_pytest_9_is_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest]\ntfgrpo_out = "native"\ntfgrpo_seed = 7\n')
    project = open_project(tmp_path, {}, {})
    assert (project.out.name, project.settings["seed"]) == ("native", 7)


def test_an_empty_pytest_ini_counts_and_a_foreign_pyproject_does_not(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml")
    below = tmp_path / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert open_project(below, {}, {}).root == tmp_path
    (below / "pytest.ini").write_text("")
    assert open_project(below, {}, {}).root == below


def test_flags_beat_the_environment_which_beats_the_ini_file(tmp_path: Path) -> None:
    write(tmp_path, "pytest.ini")
    assert open_project(tmp_path, {"out": "flag"}, {"TFGRPO_OUT": "env"}).out.name == "flag"
    assert open_project(tmp_path, {}, {"TFGRPO_OUT": "env"}).out.name == "env"


def test_without_an_ini_file_the_folder_is_the_root_and_out_the_output(tmp_path: Path) -> None:
    project = open_project(tmp_path, {}, {})
    assert (project.root, project.out) == (tmp_path, tmp_path / "out")
    assert project.task_id == tmp_path.name


@pytest.mark.parametrize(
    ("name", "task_id"),
    [("demo", "demo"), ("my demo!", "my-demo-"), ("..x", "x"), ("日本", "suite"), ("a" * 99, "a" * 64)],
)
def test_the_task_is_named_after_the_root_folder(name: str, task_id: str) -> None:
    assert default_task_id(name) == task_id


def test_a_malformed_ini_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest")
    with pytest.raises(SettingError, match=r"pyproject.toml: cannot be read"):
        open_project(tmp_path, {}, {})


def test_an_unknown_key_is_an_error_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntfgrpo_sead = 1\nother_key = 2\n")
    with pytest.raises(SettingError) as error:
        open_project(tmp_path, {}, {})
    assert str(error.value) == (
        f"{tmp_path}/pytest.ini: unknown ini key 'tfgrpo_sead'; did you mean 'tfgrpo_seed'?"
    )


@pytest.mark.parametrize(
    ("flags", "command"),
    [
        ({}, "pytest --tfgrpo --tfgrpo-resume='a b'"),
        ({"out": "my out"}, "pytest --tfgrpo '--tfgrpo-out=my out' --tfgrpo-resume='a b'"),
        ({"task_id": "demo"}, "pytest --tfgrpo --tfgrpo-task-id=demo --tfgrpo-resume='a b'"),
    ],
)
def test_the_command_that_finishes_a_run_has_the_flags_that_find_it(
    tmp_path: Path, flags: dict[str, str], command: str
) -> None:
    assert open_project(tmp_path, flags, {"TFGRPO_SEED": "3"}).resume("a b") == command


@pytest.mark.parametrize(
    ("name", "text", "seed", "section"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\ntfgrpo_seed = 7", "7", "tool.pytest.ini_options"),
        ("pyproject.toml", "[tool.pytest]\ntfgrpo_seed = 7", "7", "tool.pytest"),
        (
            "pyproject.toml",
            '[tool.pytest]\ntfgrpo_seed = 7\n[tool.pytest.ini_options]\na = "b"',
            "7",
            "tool.pytest",
        ),
        ("pyproject.toml", "[tool.other]\ntfgrpo_seed = 7", None, ""),
        ("pyproject.toml", "tool = 7", None, ""),
        ("pytest.toml", "[pytest]\ntfgrpo_seed = 7", "7", "pytest"),
        ("pytest.toml", "", "", "pytest"),
        (".pytest.ini", "", "", "pytest"),
        ("tox.ini", "[pytest]\ntfgrpo_seed = 7", "7", "pytest"),
        ("tox.ini", "[tox]\ntfgrpo_seed = 7", None, ""),
        ("setup.cfg", "[tool:pytest]\ntfgrpo_seed = 7 %", "7 %", "tool:pytest"),
        ("setup.cfg", "[pytest]\ntfgrpo_seed = 7", None, ""),
    ],
)
def test_each_file_has_the_section_that_pytest_reads(
    name: str, text: str, seed: str | None, section: str
) -> None:
    found = parse_ini(Path(name), text)
    if seed is None:
        assert found is None
    else:
        assert found is not None
        assert (str(found.keys.get("tfgrpo_seed", "")), found.section) == (seed, section)


def test_a_command_in_a_folder_goes_there_first_unless_it_is_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my suite").mkdir()
    monkeypatch.chdir(tmp_path / "my suite")
    assert cd_to(Path()) == cd_to(Path("../my suite")) == ""
    assert cd_to(tmp_path / "my suite" / ".." / "my suite") == ""
    monkeypatch.chdir(tmp_path)
    assert cd_to(Path("my suite")) == "cd 'my suite' && "


def test_without_an_ini_file_the_root_is_that_of_the_nearest_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert open_project(tmp_path / "deep" / "er", {}, {}).root == tmp_path


@pytest.mark.parametrize("text", ["[pytest]\nxfail_strict\ntfgrpo_out = a\ntfgrpo_out = b%s\n"])
def test_an_ini_file_is_read_as_leniently_as_pytest_reads_it(text: str, tmp_path: Path) -> None:
    ini = parse_ini(tmp_path / "tox.ini", text)
    assert ini is not None
    assert (ini.keys["tfgrpo_out"], ini.keys["xfail_strict"]) == ("b%s", None)


def test_an_ini_file_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_bytes(b"[pytest]\n# \xff\n")
    with pytest.raises(SettingError, match=r"pytest\.ini: cannot be read: 'utf-8' codec"):
        open_project(tmp_path, {}, {})


def test_names_of_the_projects_own_folders_are_not_taken_for_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[str] = []
    monkeypatch.setattr(project_module, "let_pass", lambda *names: passed.extend(names))
    open_project(tmp_path, {"out": "results", "task_id": "mine"}, {})
    assert passed == [str(tmp_path), str(tmp_path / "results"), "mine"]


def test_a_page_is_no_folder_and_another_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise JournalError("no space left")

    monkeypatch.chdir(tmp_path)
    with pytest.raises(JournalError, match=r"^no space left; name another place with --html FILE$"):
        write_page(tmp_path / "page.html", full)
    with pytest.raises(JournalError, match=r"^cannot write the page .*: it is a folder; name a file with"):
        write_page(tmp_path, full)
    assert write_page(tmp_path / "sub" / "page.html", lambda: None) == "page   sub/page.html"


def test_a_demonstration_works_in_a_new_folder_alone(tmp_path: Path) -> None:
    with demo_folder(str(tmp_path / "deep" / "new")) as folder:
        assert folder == tmp_path / "deep" / "new"
        (folder / "a").touch()
    with pytest.raises(SettingError, match=r"new is not empty; name a new folder$"), demo_folder(str(folder)):
        raise AssertionError("it works in a folder that holds something")
    with demo_folder(None) as folder:
        assert list(folder.iterdir()) == []
    assert not folder.exists()
