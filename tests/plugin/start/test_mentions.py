"""When a start of pytest declares the options of this plugin, and what it says where they came to nothing."""

import os
from types import SimpleNamespace
from typing import Any

import pytest
from support.project import Project

import pytest_tfgrpo.plugin as plugin
from pytest_tfgrpo.core.settings import TABLE, resolve
from pytest_tfgrpo.plugin import configured
from pytest_tfgrpo.plugin.start import unset_options
from pytest_tfgrpo.plugin.start.options import SETTINGS


@pytest.mark.parametrize(
    ("word", "may"),
    [
        ("", False),
        ("tests", False),
        ("--tfgrpo", True),
        ("--tfgrpo-seed=1", True),
        ("x --tfgrpo", True),
        ("--tfgroup", True),
        ("tfgrpo", False),
        ("tfgrpo_seed=1", True),
        ("@flags", True),
        ("a@flags", False),
        ("--help", True),
        ("--helper", False),
        ("-h", True),
        ("-vh", True),
        ("-v", False),
        ("-", False),
        ("--show", False),
        ("h", False),
    ],
)
def test_a_word_may_set_something_or_ask_for_help(word: str, may: bool) -> None:
    assert plugin._may_set(word) is may


def test_the_names_of_a_start_that_sets_none_are_those_of_all_settings() -> None:
    assert sorted(unset_options.NAMES) == sorted(setting.name for setting in TABLE)


CONFTEST = """
def pytest_configure(config):
    found = [config.getoption(f"--tfgrpo-{name}") for name in ("out", "group-size", "resume")]
    found += [config.getoption("tfgrpo_out"), config.getini("tfgrpo_seed")]
    assert found == [None] * 5
    assert (config.getoption("--tfgrpo"), config.getoption("--tfgrpo-dry-run")) == (False, False)
    assert not config.pluginmanager.hasplugin("tfgrpo-configured")
"""


def test_a_conftest_reads_flags_and_keys_that_nobody_sets(project: Project) -> None:
    project.conftest(CONFTEST).write("test_x.py", "def test_a(): pass\n")
    (project.root / "pytest.ini").write_text("[pytest]\n")
    project.run().assert_outcomes(passed=1)


def test_a_variable_that_a_conftest_sets_counts_though_flags_were_not_declared(project: Project) -> None:
    project.conftest("import os\nos.environ['TFGRPO_SEED'] = 'x'\n")
    (project.root / "pytest.ini").write_text("[pytest]\n")
    result = project.run()
    os.environ.pop("TFGRPO_SEED")
    result.stderr.fnmatch_lines(["ERROR: seed must be an integer >= 0, not 'x' (environment TFGRPO_SEED)"])


def test_a_flag_that_comes_too_late_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(project.root)
    early = "def pytest_load_initial_conftests(args): args.append('--tfgrpo-out=x')\n"
    project.write("early.py", early).write("pytest.ini", "[pytest]\n").plugins("early")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --tfgrpo-out comes after pytest has looked for flags; *"])


class Start(SimpleNamespace):
    """A configuration as it is when a start begins."""

    def __init__(self, args: Any = (), addopts: Any = (), ini: Any = None, **options: Any) -> None:
        super().__init__(
            option=SimpleNamespace(**options),
            inipath=ini if ini is None else SimpleNamespace(read_bytes=lambda: ini),
            invocation_params=SimpleNamespace(args=args),
        )
        self._addopts = addopts

    def getini(self, name: str) -> Any:
        assert name == "addopts"
        if isinstance(self._addopts, type):
            raise self._addopts
        return self._addopts


@pytest.mark.parametrize(
    ("config", "environ", "mentioned"),
    [
        (Start(), {}, False),
        (Start(["tests", "-v"], ["-q"], b"[pytest]\naddopts = tfgrpo"), {"PYTEST_ADDOPTS": "-x"}, False),
        (Start(["--tfgrpo"]), {}, True),
        (Start([], ["--tfgrpo"]), {}, True),
        (Start([], [], b"[pytest]\ntfgrpo_actor = x"), {}, True),
        (Start([], [], b"[pytest]\ntfgrpo-actor = x"), {}, True),
        (Start([], [], b"dependencies = ['pytest-tfgrpo']\n[tool.pytest.ini_options]"), {}, False),
        (Start(), {"PYTEST_ADDOPTS": "-x --tfgrpo"}, True),
        (Start(), {"TFGRPO_SEED": "1"}, True),
        (Start(), {"FEATURE_TFGRPO_GROUP": "0"}, True),
        (Start(), {"_ARGCOMPLETE": "1"}, True),
        (Start(tfgrpo=False, tfgrpo_out=None, tfgrpo_dry_run=False), {}, False),
        (Start(tfgrpo=False, tfgrpo_out="out"), {}, True),
        (Start(tfgrpo=True, tfgrpo_out=None), {}, True),
        (Start([], ValueError), {}, True),
        (Start([], AttributeError), {}, True),
    ],
)
def test_a_start_that_mentions_nothing_declares_nothing(
    config: Any, environ: dict[str, str], mentioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", environ)
    assert plugin._is_mentioned(config) is mentioned


TOLD = (
    "tfgrpo: no scenario was collected (looked for *.scenario.yaml, *.scenario.json, *.scenarios.jsonl, "
    "*.scenarios.csv and the `tfgrpo` marker, outside the output folder)"
)


@pytest.mark.parametrize(
    ("learning", "has_session", "status", "told"),
    [
        (True, False, pytest.ExitCode.OK, True),
        (True, False, pytest.ExitCode.TESTS_FAILED, True),
        (True, False, pytest.ExitCode.NO_TESTS_COLLECTED, True),
        (True, False, pytest.ExitCode.INTERRUPTED, False),
        (True, False, pytest.ExitCode.USAGE_ERROR, False),
        (True, True, pytest.ExitCode.OK, False),
        (False, False, pytest.ExitCode.OK, False),
    ],
)
def test_a_run_that_was_asked_for_and_found_no_scenario_is_told(
    learning: bool, has_session: bool, status: int, told: bool
) -> None:
    lines: list[str] = []
    config: Any = SimpleNamespace(
        stash=pytest.Stash(), pluginmanager=SimpleNamespace(hasplugin={"tfgrpo-session": has_session}.get)
    )
    config.stash[SETTINGS] = resolve({}, {}, {}, learning_flag=learning)
    reporter: Any = SimpleNamespace(write_line=lines.append)
    configured.pytest_terminal_summary(reporter, status, config)
    assert lines == [TOLD] * told
