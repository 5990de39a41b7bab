"""Settings as pytest reads them: flags, then environment, then ini file, then defaults."""

import sys
from pathlib import Path
from typing import Any, cast

import pytest
from support import reference
from support.preparing import prepared
from support.project import LIMITS, Project

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import default_task_id, whole
from pytest_tfgrpo.core.settings import BY_NAME, TABLE, from_arguments

SINCE_9 = pytest.mark.skipif(pytest.version_tuple < (9,), reason="pytest 9 introduced native TOML")


def test_flags_beat_the_environment_which_beats_the_ini_file_which_beats_defaults(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.scenarios(train=1, sweep=1).ini(actor="python:agent:right", seed=1, epochs=4, task_id="t")
    monkeypatch.setenv("TFGRPO_SEED", "2")
    monkeypatch.setenv("TFGRPO_GROUP_SIZE", "4")
    project.learn("--tfgrpo-seed", "3", "--tfgrpo-eval-rollouts=1")
    manifest = project.manifest()
    found = manifest["settings"]
    assert [found[name] for name in ("seed", "group_size", "epochs", "sample_size")] == [3, 4, 4, 100]
    assert manifest["origins"] == {
        "actor": "ini key tfgrpo_actor",
        "seed": "flag --tfgrpo-seed",
        "group_size": "environment TFGRPO_GROUP_SIZE",
        "eval_rollouts": "flag --tfgrpo-eval-rollouts",
        "epochs": "ini key tfgrpo_epochs",
        "task_id": "ini key tfgrpo_task_id",
        **{name: f"ini key tfgrpo_{name}" for name in LIMITS},
    }


@pytest.mark.parametrize(
    ("name", "value", "setting", "expected"),
    [
        ("TFGRPO_TRAIN_TEMP", "1.5", "temperature_train", 1.5),
        ("TFGRPO_EVAL_TEMP", "0.1", "temperature_eval", 0.1),
        ("TFGRPO_EPOCHS", "2", "epochs", 2),
        ("TFGRPO_SAMPLE_SIZE", "1", "sample_size", 1),
        ("TFGRPO_EXPERIENCE_MAX_WORDS", "8", "experience_max_words", 8),
    ],
)
def test_the_variables_of_the_source_are_settings(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, value: str, setting: str, expected: object
) -> None:
    monkeypatch.setenv(name, value)
    (launch,) = prepared(project.scenarios(train=1, sweep=1), "--tfgrpo")
    assert launch.settings[setting] == expected


@pytest.mark.parametrize("value", ["0", "false", "no", "off"])
def test_the_feature_variable_may_say_no(
    project: Project, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("FEATURE_TFGRPO_GROUP", value)
    (launch,) = prepared(project.scenarios(train=1, sweep=1))
    assert not launch.settings.learning
    assert [phase.mode for phase in launch.prepared.job.phases] == ["eval"]


def test_a_run_whose_feature_variable_says_no_is_a_plain_one(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEATURE_TFGRPO_GROUP", "0")
    project.scenarios(train=1, sweep=1).run().assert_outcomes(passed=1, deselected=1)


TYPED = """
asyncio_default_fixture_loop_scope = "function"
tfgrpo_actor = "python:agent:right"
tfgrpo_group_size = 3
tfgrpo_temperature_train = 1
tfgrpo_temperature_eval = 0.25
tfgrpo_gate_strict = false
"""


@pytest.mark.parametrize(
    ("file", "section"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]"),
        pytest.param("pyproject.toml", "[tool.pytest]", marks=SINCE_9),
        pytest.param("pytest.toml", "[pytest]", marks=SINCE_9),
    ],
)
def test_typed_toml_settings_are_read(project: Project, file: str, section: str) -> None:
    (project.root / "pytest.ini").unlink()
    project.write(file, section + TYPED).scenarios(train=1, sweep=1)
    assert project.learn().ret == 0
    found = project.manifest()["settings"]
    names = ("group_size", "temperature_train", "temperature_eval", "gate_strict")
    assert [found[name] for name in names] == [3, 1.0, 0.25, False]


@SINCE_9
@pytest.mark.parametrize("line", ['tfgrpo_group_size = "3"', "tfgrpo_actor = 3", "tfgrpo_allow_paid = 1"])
def test_a_native_value_of_another_type_is_named_with_its_file(project: Project, line: str) -> None:
    (project.root / "pytest.ini").unlink()
    result = project.write("pyproject.toml", f"[tool.pytest]\n{line}\n").run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*pyproject.toml*{line.split()[0]}*expects*"])


def folders(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.is_dir()]


def test_a_task_names_its_folder_after_the_root_unless_told_otherwise(project: Project) -> None:
    project.scenarios(train=1, sweep=1).learn()
    assert folders(project.root / "out") == [default_task_id(project.root.name)]
    project.learn("--tfgrpo-task-id", "mine", "--tfgrpo-out", "elsewhere")
    assert folders(project.root / "elsewhere") == ["mine"]


def test_one_epoch_is_a_sweep_of_its_own_with_separate_evaluation(project: Project) -> None:
    project.scenarios(train=1, sweep=1).ini(actor="python:agent:right", epochs=1)
    assert project.learn().ret == pytest.ExitCode.USAGE_ERROR
    assert project.learn("--tfgrpo-eval-mode", "separate", "--tfgrpo-baseline-sweep", "off").ret == 0
    assert [row["mode"] for row in project.report()["epochs"]] == ["train", "eval"]


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("arguments", [(), ("--strict-config",), ("-W", "error")])
def test_an_unknown_key_of_the_ini_file_is_an_error_with_its_file(
    project: Project, learning: bool, arguments: tuple[str, ...]
) -> None:
    project.ini(actor="python:agent:right", gate_min_men=0.9).write("test_x.py", "def test_x(): pass\n")
    result = project.run(*(["--tfgrpo"] if learning else []), *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == (
        f"ERROR: {project.root}/pytest.ini: unknown ini key 'tfgrpo_gate_min_men'; "
        "did you mean 'tfgrpo_gate_min_mean'?"
    )


@pytest.mark.parametrize("flag", ["--tfgrpo-grup-size=3", "--tfgrpo-group_size"])
def test_a_misspelt_flag_is_an_error_with_the_nearest_one(project: Project, flag: str) -> None:
    result = project.run(flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    wanted = f"ERROR: unknown flag {flag.partition('=')[0]!r}; did you mean '--tfgrpo-group-size'?"
    assert result.stderr.str().strip() == wanted


def test_a_flag_that_only_starts_like_ours_is_left_to_its_plugin(project: Project) -> None:
    project.conftest("def pytest_addoption(parser): parser.addoption('--tfgrpo-zzz')\n")
    project.write("test_x.py", "def test_x(): pass\n").run("--tfgrpo-zzz=1").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        pytest.param("pyproject.toml", "[tool.pytest]\n", marks=SINCE_9),
        ("tox.ini", "[pytest]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
    ],
)
def test_every_kind_of_ini_file_is_looked_through(project: Project, file: str, text: str) -> None:
    (project.root / "pytest.ini").unlink()
    value = '"x"' if file.endswith("toml") else "x"
    result = project.write(file, f"{text}tfgrpo_sead = {value}\n").run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{file}: unknown ini key 'tfgrpo_sead'; did you mean 'tfgrpo_seed'[?]"])


def test_an_unknown_key_given_by_an_option_is_an_error(project: Project) -> None:
    result = project.run("-o", "tfgrpo_xyzzy=1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown ini key 'tfgrpo_xyzzy'; remove it"])


def test_a_key_that_another_plugin_declares_is_known(project: Project) -> None:
    project.conftest("def pytest_addoption(parser):\n    parser.addini('tfgrpo_mine', 'mine')\n")
    project.write("test_x.py", "def test_x(): pass\n").ini(mine=1)
    project.run().assert_outcomes(passed=1)


def test_a_choice_has_its_nearest_name(project: Project) -> None:
    result = project.run("--tfgrpo-acceptance=saef")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*acceptance must be one of strict, safe, off, not 'saef' (flag *); did you mean 'safe'[?]"]
    )


def test_git_ignores_the_output_folder_that_a_run_makes(project: Project) -> None:
    project.scenarios(train=1, sweep=1).learn()
    assert (project.root / "out" / ".gitignore").read_text().splitlines()[-1] == "*"


def test_a_row_is_all_that_a_new_setting_needs(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = reference.settings()
    row = Setting("echo_depth", "prompts", whole(1, 9), 2, "how often a lesson is repeated", "int")
    table = (*TABLE, row)
    for module in [m for m in sys.modules.values() if vars(m).get("TABLE") is TABLE]:
        monkeypatch.setattr(module, "TABLE", table)
    monkeypatch.setitem(cast("dict[str, Setting[Any]]", BY_NAME), row.name, row)
    (described,) = set(reference.settings().splitlines()) - set(before.splitlines())
    assert "`echo_depth`" in described
    assert row.help in described
    project.scenarios(train=1, sweep=1).ini(actor="python:agent:right", echo_depth=3)
    (by_ini,) = prepared(project, "--tfgrpo")
    monkeypatch.setenv("TFGRPO_ECHO_DEPTH", "4")
    (by_variable,) = prepared(project, "--tfgrpo")
    jobs = [launch.prepared.job for launch in (by_ini, by_variable)]
    assert [row.of(job.settings) for job in jobs] == [3, 4]
    assert jobs[0].stamps["settings"] != jobs[1].stamps["settings"]
    assert row.of(from_arguments({"echo_depth": 5}, learning=True)) == 5
    refused = project.run("--tfgrpo-echo-depth=0").stderr.str()
    assert "echo_depth must be an integer between 1 and 9, not '0' (flag --tfgrpo-echo-depth)" in refused
