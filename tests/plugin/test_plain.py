"""Plain mode: pytest without --tfgrpo."""

from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.preparing import refusal
from support.project import Project, item_names

from pytest_tfgrpo import plugin
from pytest_tfgrpo.launch.engine_thread import EngineThread

WITNESS = """
import pytest

seen = {}

def note(nodeid, what):
    seen.setdefault(nodeid, []).append(what)

def pytest_runtest_logstart(nodeid): note(nodeid, "start")
def pytest_runtest_setup(item): note(item.nodeid, "setup")
def pytest_runtest_call(item): note(item.nodeid, "call")
def pytest_runtest_teardown(item): note(item.nodeid, "teardown")
def pytest_runtest_logreport(report):
    note(report.nodeid, (report.when, report.outcome, report.duration >= 0, report.start <= report.stop))
def pytest_runtest_logfinish(nodeid): note(nodeid, "finish")
def pytest_terminal_summary(terminalreporter):
    items = list(seen.values())
    same = all(events == items[0] for events in items)
    terminalreporter.write_line(f"witness: {len(items)} items, {len(items[0])} events, same: {same}")
"""


def test_each_eval_scenario_runs_once_and_train_scenarios_are_deselected(project: Project) -> None:
    result = project.scenarios(train=3, sweep=2).run()
    result.assert_outcomes(passed=2, deselected=3)
    assert sorted(project.calls) == ["suite-eval0", "suite-eval1"]


def test_nothing_is_written_unless_out_is_set(project: Project) -> None:
    project.scenarios().run()
    assert not (project.root / "out").exists()
    project.run("--tfgrpo-out", "out")
    assert (project.runs()[-1] / "report.json").is_file()


def test_a_scenario_fails_below_full_score_and_says_how_to_run_it_again(project: Project) -> None:
    result = project.scenarios().ini(actor="python:agent:wrong").run()
    result.assert_outcomes(failed=2, deselected=2)
    result.stdout.fnmatch_lines(
        ["*suite-eval0*", "*How many words*", "*seed*", "*exact*", "*pytest *suite-eval0*"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_what_is_not_on_file_is_not_offered_to_be_shown(project: Project) -> None:
    project.scenarios(train=0, sweep=1).ini(actor="python:agent:wrong")
    project.run().stdout.no_fnmatch_line("*tfgrpo show*")
    project.run("--tfgrpo-out", "out").stdout.fnmatch_lines(["see it in full: tfgrpo show *.suite-eval0.r0"])


def test_min_score_is_the_bar_where_a_scenario_sets_it(project: Project) -> None:
    result = project.scenarios(min_score=0.0).ini(actor="python:agent:wrong").run()
    result.assert_outcomes(passed=2, deselected=2)


def test_an_error_of_the_provider_fails_the_item(project: Project) -> None:
    result = project.scenarios().ini(actor="python:agent:provider").run()
    result.assert_outcomes(failed=2, deselected=2)
    result.stdout.fnmatch_lines(["*503 from the provider*"])


def test_a_file_of_another_name_is_answered_with_that_of_a_scenario_file(tmp_path: Path) -> None:
    (tmp_path / "first.yaml").touch()
    config: Any = SimpleNamespace(
        args=[f"{tmp_path}/first.yaml::a"], pluginmanager=SimpleNamespace(hasplugin=lambda _: False)
    )
    collection = plugin.pytest_collection(SimpleNamespace(config=config))  # type: ignore[arg-type]
    next(collection)
    with pytest.raises(pytest.UsageError, match="not found") as refused:
        collection.throw(pytest.UsageError("not found"))
    assert refused.value.args == ("not found", "a file of scenarios is named like first.scenario.yaml")


def test_without_an_actor_a_selected_scenario_is_a_usage_error_that_shows_the_setting(
    project: Project,
) -> None:
    result = project.scenarios().ini().run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no actor is configured*tfgrpo_actor*"])
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("actor", "message"),
    [
        ("ofline", "*unknown actor 'ofline'; known: *; did you mean 'offline'[?] (ini key tfgrpo_actor)*"),
        ("python:agnt:solve", "*no module 'agnt'*(ini key tfgrpo_actor)*"),
        ("command:./agent", "*no program*agent (ini key tfgrpo_actor)*"),
    ],
)
def test_an_actor_that_cannot_be_opened_is_a_usage_error_that_names_its_source(
    project: Project, actor: str, message: str
) -> None:
    assert fnmatch(refusal(project.scenarios().ini(actor=actor)), message)


def test_an_actor_that_costs_money_needs_leave_to_run(project: Project) -> None:
    project.scenarios().ini(actor="python:agent:paid")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*costs money*tfgrpo_allow_paid*"])
    project.ini(actor="python:agent:paid", allow_paid="true").run().assert_outcomes(passed=2, deselected=2)


def test_other_tests_are_left_alone_and_run_first(project: Project) -> None:
    project.scenarios().write("test_x.py", "def test_a(): pass\ndef test_b(): pass\n")
    result = project.run("-v")
    assert item_names(result)[:2] == ["test_x.py::test_a", "test_x.py::test_b"]
    result.assert_outcomes(passed=4, deselected=2)


def test_without_scenarios_no_session_is_made(project: Project) -> None:
    project.write(
        "test_x.py",
        "def test_a(pytestconfig):\n    assert not pytestconfig.pluginmanager.hasplugin('tfgrpo-session')\n",
    )
    project.run().assert_outcomes(passed=1)


def test_a_set_gate_rule_adds_the_gate(project: Project) -> None:
    project.scenarios(min_score=0.0).ini(actor="python:agent:wrong")
    result = project.run("--tfgrpo-gate-min-mean", "0.5")
    result.assert_outcomes(passed=2, failed=1, deselected=2)
    result.stdout.fnmatch_lines(["*minimum*"])


def test_selecting_only_train_scenarios_runs_nothing_and_needs_no_actor(project: Project) -> None:
    result = project.scenarios(sweep=0).ini().run()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        ["only train and dev scenarios are selected; they run only with --tfgrpo; *split: eval*"]
    )


def test_a_bad_scenario_file_is_a_collection_error_for_that_file_only(project: Project) -> None:
    project.scenarios().write(
        "bad.scenario.yaml", "id: x\nprompt: hello\nchecks:\n- kind: exactly\n  value: 3\n"
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*bad.scenario.yaml:4*exactly*"])
    assert "Traceback" not in result.stdout.str()
    project.run("--continue-on-collection-errors").assert_outcomes(passed=2, errors=1, deselected=2)


def test_an_id_taken_by_another_file_is_named_with_both_places(project: Project) -> None:
    project.scenarios("a").write("b.scenario.json", (project.root / "a.scenario.json").read_text())
    result = project.run()
    result.stdout.fnmatch_lines(["*b.scenario.json:*a-train0*a.scenario.json*"])


def test_the_same_task_in_both_splits_is_an_error(project: Project) -> None:
    text = "- {id: one, split: train, prompt: same, domain: d, checks: [{kind: exact, value: x}]}\n"
    project.write("a.scenario.yaml", text + text.replace("one", "two").replace("train", "eval"))
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*set the same split for both*"])


@pytest.mark.parametrize(
    ("args", "environ", "ini", "message"),
    [
        (
            ["--tfgrpo-group-size", "1"],
            {},
            {},
            "*group_size must be an integer >= 2, not '1' (flag --tfgrpo-group-size)*",
        ),
        ([], {"TFGRPO_GROUP_SIZE": "-3"}, {}, "*group_size*'-3' (environment TFGRPO_GROUP_SIZE)*"),
        ([], {"TFGRPO_TRAIN_TEMP": "3"}, {}, "*temperature_train*between 0 and 2*TFGRPO_TRAIN_TEMP*"),
        ([], {"FEATURE_TFGRPO_GROUP": "maybe"}, {}, "*FEATURE_TFGRPO_GROUP*'maybe'*"),
        (["--tfgrpo-task-id", "../x"], {}, {}, "*task_id*'../x'*"),
        (
            [],
            {"TFGRPO_TRAIN_TEMP": "1", "TFGRPO_TEMPERATURE_TRAIN": "0.5"},
            {},
            "*TFGRPO_TEMPERATURE_TRAIN*TFGRPO_TRAIN_TEMP*contradict*",
        ),
    ],
)
def test_a_bad_setting_is_an_error_even_without_scenarios(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
    environ: dict[str, str],
    ini: dict[str, str],
    message: str,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert fnmatch(refusal(project.ini(**ini), *args), message)


def test_a_bad_variable_is_a_usage_error_even_without_scenarios(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGRPO_GROUP_SIZE", "-3")
    result = project.ini().run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*group_size*'-3' (environment TFGRPO_GROUP_SIZE)*"])
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        ({"group_size": "2.5"}, "*group_size must be an integer >= 2*2.5*ini key tfgrpo_group_size*"),
        ({"gate_strict": "perhaps"}, "*gate_strict must be one of*'perhaps'*tfgrpo_gate_strict*"),
    ],
)
def test_an_ini_value_that_pytest_cannot_convert_is_a_usage_error_with_our_rule(
    project: Project, ini: dict[str, str], message: str
) -> None:
    result = project.ini(**ini).run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_an_unknown_variable_is_an_error_once_a_scenario_is_selected(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGRPO_GROUPSIZE", "3")
    project.write("test_x.py", "def test_a(): pass\n").run().assert_outcomes(passed=1)
    result = project.scenarios().run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*TFGRPO_GROUPSIZE='3'; did you mean 'TFGRPO_GROUP_SIZE'[?]"])


def test_other_plugins_see_of_an_item_what_they_see_of_a_test_function(project: Project) -> None:
    project.scenarios(train=0, sweep=40).conftest(WITNESS)
    (project.root / "test_plain.py").write_text("def test_nothing(): pass\n")
    result = project.run("--durations=0", "-vv")
    result.assert_outcomes(passed=41)
    result.stdout.fnmatch_lines(["witness: 41 items, 8 events, same: True"])
    result.stdout.fnmatch_lines(["*s call *suite-eval39"])


def test_the_engine_is_woken_for_an_epoch_and_not_for_each_item(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int | None] = []
    really = EngineThread.open_phase

    def open_phase(self: EngineThread, epoch: int | None) -> None:
        told.append(epoch)
        really(self, epoch)

    monkeypatch.setattr(EngineThread, "open_phase", open_phase)
    project.scenarios(train=0, sweep=5).run().assert_outcomes(passed=5)
    assert len(told) == 2
    assert told[-1] is None
