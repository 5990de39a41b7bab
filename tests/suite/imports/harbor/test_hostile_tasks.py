"""Tasks that mean harm: nothing is read outside of them, written elsewhere than beside the suite, or run."""

import json
import os
import tomllib

import pytest
from support.harbor import (
    exported,
    import_tasks,
    other_files,
    read_tasks,
    scenarios_in,
    write_suite,
    write_task,
)

from pytest_tfgrpo.core.wire.toml_text import toml_table
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack
from pytest_tfgrpo.sandbox.programs.environments import Environment, to_file
from pytest_tfgrpo.suite.imports import imported
from pytest_tfgrpo.suite.imports.harbor import task_folder


@pytest.fixture
def task(tmp_path):
    """A task of ours."""
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    return tmp_path / "tasks" / "one"


def edit(task, change) -> None:
    """Write the ``task.toml`` of a task of ours anew."""
    value = tomllib.loads((task / "task.toml").read_text())
    change(value["metadata"]["tfgrpo"])
    rows = [row for key, part in value.items() if isinstance(part, dict) for row in toml_table(key, part)]
    (task / "task.toml").write_text("\n".join(rows) + "\n")


def refusal(*folders) -> str:
    """Return why the only task is not imported."""
    found = read_tasks(*folders)
    assert found.scenarios == []
    ((_, why),) = found.refused
    return why


@pytest.mark.parametrize(
    "name",
    [
        *("instruction.md", "task.toml", "environment", "environment/workspace.tar.gz", "tests"),
        *("tests/hidden.tar.gz", "solution/reference.tar.gz", "solution"),
    ],
)
def test_a_link_in_place_of_a_file_or_folder_is_not_followed(tmp_path, task, name):
    (task / name).rename(tmp_path / "moved")
    (task / name).symlink_to(tmp_path / "moved")
    assert "links" in refusal(task)


def test_a_link_in_place_of_a_task_is_not_followed(tmp_path, task):
    (tmp_path / "tasks" / "two").symlink_to("one")
    found = read_tasks(tmp_path / "tasks")
    assert found.refused == [("two", "it is a link; name its folder itself")]
    assert [scenario["id"] for scenario in found.scenarios] == ["one"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "src/../../x"])
def test_a_link_of_a_foreign_task_that_leads_out_is_refused(tmp_path, target):
    folder = write_task(tmp_path / "task", {})
    (folder / "environment" / "src" / "out").symlink_to(target)
    assert "leads out of the tree" in refusal(folder)


def test_a_link_of_tests_leads_out_of_them_though_not_out_of_the_workspace(tmp_path):
    folder = write_task(tmp_path / "task", {})
    (folder / "tests" / "other.py").symlink_to("../src/sums.py")
    assert refusal(folder) == "tests/: the link 'other.py' leads out of the tree, to '../src/sums.py'"


def test_a_link_of_a_foreign_task_that_stays_is_kept(tmp_path):
    folder = write_task(tmp_path / "task", {})
    (folder / "environment" / "src" / "same.py").symlink_to("sums.py")
    assert len(read_tasks(folder).scenarios) == 1


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    folder = write_task(tmp_path / "task", {"instruction.md": None})
    os.mkfifo(folder / "instruction.md")
    assert refusal(folder) == "'instruction.md' is not a regular file"


def test_a_name_with_control_characters_is_refused_and_shown_harmless(tmp_path):
    folder = write_task(tmp_path / "bad\x1b[31m\nname", {"environment/a\x07.txt": ""})
    found = read_tasks(folder)
    (told,) = found.report()
    assert told.startswith("not imported: bad")
    assert told.isprintable()
    assert "must be a plain relative path" in told


def test_a_task_with_an_odd_name_gets_a_plain_id_which_is_told(tmp_path):
    found = import_tasks(tmp_path / "suite", write_task(tmp_path / "\x1b my task..", {}))
    assert list(scenarios_in(tmp_path / "suite")) == ["my-task"]
    assert "names of tasks that cannot be ids, or that another one has" in found.left_out


def test_two_tasks_of_one_name_both_become_scenarios_with_their_own_files(tmp_path):
    folders = [write_task(tmp_path / place / "same", {"instruction.md": place}) for place in ("a", "b")]
    (folders[1] / "environment" / "README.md").write_text("Other.\n")
    import_tasks(tmp_path / "suite", *folders)
    found = scenarios_in(tmp_path / "suite")
    assert {id_: one["prompt"] for id_, one in found.items()} == {"same": "a", "same-2": "b"}
    assert len({one["workspace"]["sha256"] for one in found.values()}) == 2


def test_two_tasks_of_ours_whose_archives_have_one_name_do_not_share_it(tmp_path):
    for place, name in (("a", "x"), ("b", "y")):
        suite = write_suite(tmp_path / place, "shop")
        scenario = json.loads((suite / "shop.scenario.json").read_text())
        (suite / "shop.scenario.json").write_text(json.dumps({**scenario, "id": name}))
    (tmp_path / "b/archives/shop.hidden.tar.gz").write_bytes(pack([ArchiveEntry(name="tests/test_b.py")]))
    exported(tmp_path / "a", tmp_path / "tasks")
    exported(tmp_path / "b", tmp_path / "tasks")
    found = import_tasks(tmp_path / "suite", tmp_path / "tasks")
    one, two = scenarios_in(tmp_path / "suite").values()
    assert one["checks"][0]["hidden"] == "archives/shop.hidden.tar.gz"
    assert two["checks"][0]["hidden"] == "archives/y.hidden.tar.gz"
    assert found.left_out["names of archives that cannot be kept"] == (1, "y")


@pytest.mark.parametrize(
    "archive",
    [
        "../x.tar.gz",
        "/x.tar.gz",
        "x.tar.gz",
        "conftest.py",
        "a/../x.tar.gz",
        ".git/x.tar.gz",
        "a/b.py",
        3,
        None,
    ],
)
def test_an_archive_is_never_written_where_it_could_do_harm(tmp_path, task, archive):
    edit(task, lambda ours: ours["scenario"].update(workspace={"archive": archive} if archive else {}))
    import_tasks(tmp_path / "back", task)
    assert set(other_files(tmp_path / "back")) == {
        *("archives/one.base.tar.gz", "archives/one.hidden.tar.gz", "references/one.tar.gz")
    }


@pytest.mark.parametrize(
    "checks",
    [
        [{"kind": "command", "run": ["touch", "x"]}],
        [{"kind": "python", "target": "os:system"}],
        [{"kind": "tests", "runner": {"name": "command", "run": ["touch", "x"]}}],
        [{"kind": "tests", "runner": "pytest"}, {"kind": "python", "target": "os:system"}],
        [],
        ["tests"],
        "tests",
    ],
)
def test_a_check_that_could_run_any_program_is_refused(task, checks):
    edit(task, lambda ours: ours["scenario"].update(checks=checks))
    assert "must have one check, of kind tests with the runner pytest" in refusal(task)


def test_a_setup_and_other_keys_are_left_out_and_told(tmp_path, task):
    more = {"setup": {"command": ["touch", "x"]}, "attachments": ["a"], "prompt": "Other.", "checker": "x"}
    edit(task, lambda ours: ours["scenario"].update(more))
    found = import_tasks(tmp_path / "back", task)
    (scenario,) = scenarios_in(tmp_path / "back").values()
    assert not {"setup", "attachments", "checker"} & scenario.keys()
    assert scenario["prompt"] == "The total of a cart is always 0."
    assert {f"`metadata.tfgrpo.scenario.{key}` of a task.toml" for key in more} == set(found.left_out)


def test_values_that_are_no_scenarios_are_told(tmp_path, task):
    edit(task, lambda ours: ours["scenario"].update(split="all"))
    found = read_tasks(task)
    with pytest.raises(ValueError, match=r"not carried over, 1 time: scenarios that are not valid: /split"):
        import_tasks(tmp_path / "back", task)
    assert len(found.scenarios) == 1


def test_another_form_is_refused(task):
    edit(task, lambda ours: ours.update(form=2))
    assert "import it with the version that wrote it" in refusal(task)


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", pack([])[:-8], pack([ArchiveEntry(name="a", data=bytes(10))])[:40]],
)
def test_a_broken_archive_is_refused(task, data):
    (task / "environment" / "workspace.tar.gz").write_bytes(data)
    assert refusal(task).startswith("environment/workspace.tar.gz: ")


@pytest.mark.parametrize("text", ["[", "3", '{"a": ' * 100_000])
def test_broken_provenance_is_refused(task, text):
    (task / "solution" / "provenance.json").write_text(text)
    assert refusal(task).startswith("solution/provenance.json")


def test_an_environment_that_is_none_or_has_commands_is_refused(task):
    (task / "environment" / "environment.json").write_text('{"schema": "tfgrpo.environment/1"}')
    assert refusal(task).startswith("environment/environment.json: /")
    environment = to_file(Environment(python="3.12", setup=(("touch", "x"),)))
    (task / "environment" / "environment.json").write_text(json.dumps(environment))
    assert refusal(task) == "environment/environment.json has set-up commands, which no export writes"


def test_what_somebody_changed_since_the_export_is_told(tmp_path, task):
    with (task / "task.toml").open("a") as file:
        file.write("\n[environment]\ncpus = 2\n")
    with (task / "environment" / "Dockerfile").open("a") as file:
        file.write("RUN apt-get install -y git\n")
    (task / "tests" / "more.py").write_text("")
    (task / "tests" / "protected.py").unlink()
    (task / "instruction.md").write_text("Another one.")
    found = import_tasks(tmp_path / "back", task)
    assert set(found.left_out) == {
        "`environment.cpus` of a task.toml",
        "changes of `environment/Dockerfile` since the export",
        "changes of `tests/protected.py` since the export",
        "the file `tests/more.py`, added since the export",
    }
    assert scenarios_in(tmp_path / "back")["one"]["prompt"] == "Another one."


def test_a_limit_that_somebody_changed_since_is_told(task):
    text = (task / "task.toml").read_text()
    assert "timeout_sec = 360.0\n" in text
    (task / "task.toml").write_text(text.replace("timeout_sec = 360.0", "timeout_sec = 5.0"))
    assert set(read_tasks(task).left_out) == {"`verifier.timeout_sec` of a task.toml"}
    (task / "task.toml").write_text(f"{text}\n[agent]\ntimeout_sec = 77\n")
    assert read_tasks(task).scenarios[0]["timeout_s"] == 77


def test_a_renamed_folder_is_another_scenario_with_the_same_task(tmp_path, task):
    task.rename(tmp_path / "tasks" / "two")
    import_tasks(tmp_path / "back", tmp_path / "tasks")
    assert list(scenarios_in(tmp_path / "back")) == ["two"]
    assert "references/two.tar.gz" in other_files(tmp_path / "back")


def test_files_that_are_too_large_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(task_folder, "FILES_MAX_BYTES", 2_000)
    folder = write_task(
        tmp_path / "task", {"environment/large": "x" * 1_500, "environment/more": "x" * 1_500}
    )
    assert "bytes, more than" in refusal(folder)


def test_a_text_that_is_too_large_or_none_is_refused(tmp_path):
    (write_task(tmp_path / "a", {}) / "instruction.md").write_bytes(b"x" * 1_000_001)
    (write_task(tmp_path / "b", {}) / "instruction.md").write_bytes(b"\xff")
    assert "'instruction.md' has 1000001 bytes, more than 1000000" in refusal(tmp_path / "a")
    assert refusal(tmp_path / "b") == "instruction.md is no UTF-8 text"


def test_more_files_than_one_import_holds_are_refused(tmp_path, monkeypatch, task):
    size = len((task / "environment/workspace.tar.gz").read_bytes())
    monkeypatch.setattr(imported, "FILES_MAX_BYTES", size)
    assert "import fewer at once" in refusal(task)


def test_a_folder_that_cannot_be_read_is_told(tmp_path):
    (write_task(tmp_path / "tasks" / "a", {}))
    (tmp_path / "tasks" / "b").mkdir()
    (tmp_path / "tasks" / "b" / "task.toml").mkdir()
    (tmp_path / "tasks" / "b" / "instruction.md").write_text("")
    found = read_tasks(tmp_path / "tasks")
    assert [name for name, _ in found.refused] == ["b"]
    assert len(found.scenarios) == 1
