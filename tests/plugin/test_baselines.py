"""``tfgrpo baseline compare``: between names, files and runs, and what its exit code says."""

import pytest
from support.frozen import Frozen
from support.project import Project
from support.tools import tfgrpo


def save_two(project: Project) -> None:
    project.scenarios(train=0, sweep=12).ini(actor="python:agent:right", baseline_sweep="off")
    for name, actor in (("good", "right"), ("bad", "wrong")):
        project.learn("--tfgrpo-actor", f"python:agent:{actor}")
        assert project.cli("baseline", "save", name) == 0


@pytest.fixture
def two(frozen: Frozen) -> Project:
    """A project with the baselines ``good`` and ``bad``, the latter of the latest run."""
    return frozen(save_two)


def test_a_regression_is_told_and_only_a_gate_fails_on_it(two: Project) -> None:
    said = tfgrpo("baseline", "compare", "good", "bad")
    assert "difference  -1.000 (from 1.000 to 0.000)" in said
    assert "result  FAILED; margin 0.05" in said
    assert "bad is worse than good" in tfgrpo("baseline", "compare", "good", "bad", "--gate", code=1)
    assert two.cli("baseline", "compare", "bad", "good", "--gate") == 0


def test_a_drop_that_cannot_be_seen_fails_a_gate_and_is_not_called_worse(two: Project) -> None:
    assert "result  FAILED; cannot see a drop of 0.15" in tfgrpo("baseline", "compare", "good", "good")
    said = tfgrpo("baseline", "compare", "good", "good", "--gate", code=1)
    assert "a drop of 0.15 from good to good cannot be excluded" in said


def test_an_open_question_fails_only_where_strict(two: Project) -> None:
    two.ini(gate_alarm=1)
    assert "result  inconclusive" in tfgrpo("baseline", "compare", "good", "good", "--gate")
    assert "it is inconclusive whether" in tfgrpo(
        "baseline", "compare", "good", "good", "--gate", "--strict", code=1
    )
    assert two.cli("baseline", "compare", "good", "good", "--strict", "--margin", "0.5") == 0


def test_files_and_runs_are_compared_like_names(two: Project) -> None:
    run = two.runs()[-1].name
    for b in ("bad", "baselines/bad.json", run, run[-6:], "latest"):
        assert two.cli("baseline", "compare", "good", b, "--gate") == 1, b


def test_what_is_not_there_is_named(two: Project) -> None:
    for argv, said in (
        (("good", "nope"), "'nope' is neither a baseline"),
        (("nope.json", "good"), "nope.json: there is no such baseline"),
        (("good", "../../etc/passwd"), "is neither a baseline"),
    ):
        assert said in tfgrpo("baseline", "compare", *argv, code=1)


@pytest.mark.parametrize("margin", ["2", "-0.1", "x", "nan"])
def test_a_margin_is_a_share(project: Project, margin: str) -> None:
    said = tfgrpo("baseline", "compare", "good", "bad", "--margin", margin, code=2)
    assert "must be a number between 0 and 1" in said


def test_a_run_at_another_temperature_is_not_judged_and_the_gate_says_what_to_do(two: Project) -> None:
    two.ini(actor="python:agent:wrong", baseline="good", temperature_eval=0.9)
    result = two.learn()
    assert result.ret == 0
    said = " ".join(" ".join(result.outlines).split())
    assert "not checked baseline: the baseline was made at temperature 0.3, the sweep at 0.9" in said
    assert two.cli("baseline", "compare", "good", "latest", "--strict") == 1


def test_none_leaves_the_baseline_of_the_ini_file_out(two: Project) -> None:
    two.ini(actor="python:agent:wrong", baseline="good", gate_max_errors=0)
    assert two.learn().ret == pytest.ExitCode.TESTS_FAILED
    assert two.learn("--tfgrpo-baseline=none").ret == 0
    (rule,) = [one for one in two.report()["gate"]["results"] if one["name"] == "baseline"]
    assert (rule["outcome"], rule["message"]) == ("skipped", "no baseline is set")
