"""The gate as an item of pytest: what it compares with, what it says, and what turns a run red."""

import pytest
from support.frozen import Frozen
from support.plugin.gate import said, save_imperfect
from support.project import Project


@pytest.fixture
def imperfect(frozen: Frozen) -> Project:
    """A project whose agent fails 2 of 60 scenarios, as it did when the baseline was saved."""
    return frozen(save_imperfect)


def test_an_imperfect_agent_whose_gate_passes_is_green_in_plain_mode(imperfect: Project) -> None:
    result = imperfect.run("--tfgrpo-out=out", "-rb", "--tfgrpo-gate-strict=true")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 59, "below": 2, "warnings": 1}
    low = "2 of 60 eval scenarios below min_score = 1: suite-eval3 0.000, suite-eval7 0.000"
    listed = "BELOW *suite-eval3 - score 0.000 is below min_score = 1; the gate decides"
    result.stdout.fnmatch_lines(["gate  passed", low, "*= a gate decides =*", listed])
    assert [row["scenario"] for row in imperfect.report()["low"]] == ["suite-eval3", "suite-eval7"]
    result = imperfect.run("-q")
    result.stdout.fnmatch_lines(["gate  passed", low])


def save_two_files(project: Project) -> None:
    project.scenarios("easy", train=0, sweep=10).scenarios("hard", train=0, sweep=10)
    for name in ("easy", "hard"):
        (project.root / name).mkdir()
        (project.root / f"{name}.scenario.json").rename(project.root / name / "suite.scenario.json")
    assert project.run("--tfgrpo-out=out").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    project.ini(actor="python:agent:right", baseline="main", gate_margin=0.2)


@pytest.fixture
def two_files(frozen: Frozen) -> Project:
    """A project whose baseline has the scenarios of two folders."""
    return frozen(save_two_files)


def test_what_the_suite_lost_fails_the_gate_until_the_baseline_is_saved_again(two_files: Project) -> None:
    (two_files.root / "hard" / "suite.scenario.json").unlink()
    result = two_files.run("--tfgrpo-out=out", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = " ".join(" ".join(result.outlines).split())
    assert (
        "FAILED baseline: 10 scenarios (hard-eval0, hard-eval1, hard-eval2, hard-eval3, hard-eval4, ...)"
        in said
    )
    assert "no longer in the eval split" in said
    assert "then save the baseline again with `tfgrpo baseline save main`" in said
    assert two_files.run("easy").ret == pytest.ExitCode.TESTS_FAILED  # nowhere else either
    assert two_files.cli("baseline", "save", "main") == 0
    assert two_files.run("--tfgrpo-gate-alarm=0.35").ret == 0


def test_a_path_to_a_part_of_the_suite_is_not_judged_and_one_to_all_of_it_is(
    two_files: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = "part of the suite was selected: easy-eval0, "
    for args in (["hard"], ["hard/suite.scenario.json"]):
        result = two_files.run(*args)
        result.stdout.fnmatch_lines(["gate  inconclusive*"])
        assert part in said(result)
        assert two_files.run(*args, "--tfgrpo-gate-strict=true").ret == 1
    for whole in (["easy", "hard"], ["."], [str(two_files.root)]):
        two_files.run(*whole).stdout.fnmatch_lines(["gate  passed"])
    monkeypatch.chdir(two_files.root / "hard")
    assert part in said(two_files.run())


def test_across_workers_a_part_of_the_suite_is_told_from_all_of_it(two_files: Project) -> None:
    ini = (two_files.root / "pytest.ini").read_text()
    (two_files.root / "pytest.ini").write_text(ini + "testpaths = easy\n")
    two_files.plugins("xdist")
    result = two_files.run("-n", "1")
    assert "10 scenarios (hard-eval0" in said(result)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    two_files.run("-n", "1", "easy").stdout.fnmatch_lines(["gate  inconclusive*"])


def test_a_baseline_without_any_eval_scenario_left_fails(two_files: Project) -> None:
    two_files.write("unit/test_unit.py", "def test_it(): pass\n")
    for path in two_files.root.glob("*/suite.scenario.json"):
        path.write_text(path.read_text().replace('"eval"', '"train"'))
    for args in ([], ["--tfgrpo", "--tfgrpo-baseline-sweep=off"]):
        result = two_files.run(*args)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        assert "no eval s" in said(result)
        assert "FAILED pytest.ini::gate" in said(result)
    for path in two_files.root.glob("*/suite.scenario.json"):
        path.unlink()
    result = two_files.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*no eval scenario was collected to compare with the 20 of the baseline 'main'*"]
    )
    two_files.run("--tfgrpo-baseline=none").assert_outcomes(passed=1)


def test_tests_that_are_no_scenarios_run_without_the_gate(two_files: Project) -> None:
    two_files.write("unit/test_unit.py", "def test_it(): pass\n")
    two_files.run("unit").assert_outcomes(passed=1)
    ini = (two_files.root / "pytest.ini").read_text()
    (two_files.root / "pytest.ini").write_text(ini + "testpaths = unit\n")
    two_files.run().assert_outcomes(passed=1)
    two_files.plugins("xdist").run("-n", "1").assert_outcomes(passed=1)


def test_verbosity_is_respected(project: Project) -> None:
    project.ini(actor="python:agent:learner", group_size=4).scenarios(train=12, sweep=12)
    quiet = project.learn("-q").stdout.str()
    usual = project.learn().stdout.str()
    verbose = project.learn("-v").stdout.str()
    assert "gate  passed" in quiet
    assert "gt mean" not in quiet
    assert "gt mean" in usual
    assert "mean latency" not in usual
    assert "mean latency" in verbose
    section = usual.partition(" tfgrpo ===")[2].splitlines()[1:]
    assert max(map(len, (line for line in section if not line.startswith("file")))) <= 80
    assert "\x1b" not in usual
