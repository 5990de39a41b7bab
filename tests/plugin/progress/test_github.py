"""What a job on GitHub Actions shows of a run."""

from pathlib import Path

import pytest
from support.project import Project

from pytest_tfgrpo.plugin.progress import github

ACTIONS = {"GITHUB_ACTIONS": "true"}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def commands(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("::")]


def test_a_failed_gate_is_an_error_with_its_rule_and_its_reason(project: Project, page: Path) -> None:
    project.scenarios(train=2, sweep=3).ini(actor="python:agent:wrong", gate_min_mean=0.5)
    result = project.learn()
    [command] = [line for line in commands(result) if line.startswith("::error")]
    assert command.startswith("::error title=tfgrpo gate::minimum mean: ")
    assert "## tfgrpo: gate failed" in page.read_text()


def test_what_got_worse_is_marked_where_it_is_written(project: Project, page: Path) -> None:
    project.scenarios(train=6, sweep=6).ini(actor="python:agent:unlearner", group_size=4)
    result = project.learn()
    worse = [line for line in commands(result) if "worse than before" in line]
    assert worse
    assert all(line.startswith("::warning file=suite.scenario.json,line=") for line in worse)
    assert "Worse than before learning:" in page.read_text()


def test_the_summary_has_means_gain_and_lessons(project: Project, page: Path) -> None:
    project.scenarios(train=6, sweep=6).ini(actor="python:agent:learner", group_size=4)
    project.learn()
    text = page.read_text()
    for part in ("| epoch | rollouts |", "Gain +", " active lesson", "| complete | passed |"):
        assert part in text


def test_runs_of_one_job_follow_each_other_on_its_page(project: Project, page: Path) -> None:
    project.scenarios()
    project.learn()
    project.learn()
    assert page.read_text().count("## tfgrpo: gate") == 2


def test_a_page_that_cannot_be_written_is_a_warning(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    result = project.scenarios().learn()
    assert result.ret == 0
    told = "*TfgrpoWarning: GITHUB_STEP_SUMMARY: cannot write the summary of the job: *"
    result.stdout.fnmatch_lines([told])


def test_elsewhere_nothing_of_it_is_there(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    result = project.scenarios().ini(actor="python:agent:wrong", gate_min_mean=0.5).learn()
    assert commands(result) == []
    assert not (tmp_path / "page.md").exists()


HOSTILE = "x%0A::error::y\r\n::stop-commands::z ##[error]pwned \x1b[31m,title=a::b"


def test_no_text_of_a_gate_can_end_its_annotation_or_start_another() -> None:
    found = {"name": HOSTILE, "outcome": "fail", "message": HOSTILE, "advice": HOSTILE, "figures": {}}
    named = {"name": "mine", "severity": "warn", "outcome": "fail", "results": [found]}
    gate = {"outcome": "fail", "results": [found], "strict": False, "gates": [named]}
    told = github.notes({"gate": gate, "scenarios": [], "regressions": []}, ACTIONS)
    assert [command.partition("::x")[0] for command in told] == [
        "::error title=tfgrpo gate",
        "::warning title=tfgrpo gate mine",
    ]
    assert all(command.isprintable() and "##[" not in command for command in told)
    assert all("%0A" not in command for command in told)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("suite/a.yaml:12", "file=suite/a.yaml,line=12,"),
        ("tests/test_a.py:7::test_it", "file=tests/test_a.py,line=7,"),
        ("suite/a.yaml", ""),
        ("suite/a.yaml:end", ""),
        (":7", ""),
    ],
)
def test_what_got_worse_is_marked_where_its_line_is_known(source: str, where: str) -> None:
    row = {"scenario": "a", "before": 1.0, "after": 0.25}
    told = github.notes(
        {"gate": None, "scenarios": [{"id": "a", "source": source}], "regressions": [row]},
        ACTIONS,
    )
    assert told == [f"::warning {where}title=tfgrpo%3A worse than before::a fell from 1.000 to 0.250"]


def test_a_plain_run_without_a_gate_leaves_the_page_alone(project: Project, page: Path) -> None:
    project.scenarios(train=0).run()
    assert not page.exists()


def judged(name: str, outcome: str, message: str = "why") -> dict[str, object]:
    return {"name": name, "outcome": outcome, "message": message, "advice": "", "figures": {}}


def test_each_rule_that_does_not_pass_is_noted_by_how_bad_it_is() -> None:
    found = [judged("a", "pass"), judged("b", "inconclusive"), judged("c", "fail"), judged("d", "not_judged")]
    named = [
        {"name": name, "severity": severity, "outcome": "fail", "results": found[2:]}
        for name, severity in (("hard", "fail"), ("soft", "warn"))
    ]
    gate = {"outcome": "fail", "results": found, "strict": False, "gates": named}
    report = {"gate": gate, "scenarios": [], "regressions": []}
    assert github.notes(report, ACTIONS) == [
        "::warning title=tfgrpo gate::b: why",
        "::error title=tfgrpo gate::c: why",
        "::warning title=tfgrpo gate::d: why",
        "::error title=tfgrpo gate hard::c: why",
        "::warning title=tfgrpo gate hard::d: why",
        "::warning title=tfgrpo gate soft::c: why",
        "::warning title=tfgrpo gate soft::d: why",
    ]
    assert github.notes(report, {"GITHUB_ACTIONS": "false"}) == []
    page = {"GITHUB_ACTIONS": "false", "GITHUB_STEP_SUMMARY": "/nowhere/page.md"}
    assert github.summarise(report, page) == []


def test_all_that_got_worse_is_marked_and_signs_of_commands_are_escaped() -> None:
    rows = [{"scenario": id_, "before": 1.0, "after": 0.5} for id_ in ("100 %", "x" * 400)]
    sources = [{"id": row["scenario"], "source": "a, b: 5%.yaml:3"} for row in rows]
    told = github.notes({"gate": None, "scenarios": sources, "regressions": rows}, ACTIONS)
    start = "::warning file=a%2C b%3A 5%25.yaml,line=3,title=tfgrpo%3A worse than before::"
    assert told[0] == f"{start}100 %25 fell from 1.000 to 0.500"
    assert told[1].startswith(f"{start}xxx")
    assert len(told[1]) == len(start) + github.SHOWN
