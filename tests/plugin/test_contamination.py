"""What a contaminated suite comes to: an error before anything is asked, or a warning where that is set."""

import json

import pytest
from support.project import Project

STORY = (
    "The warehouse in Leeds received a delivery of crates from the harbour this morning, and the foreman Ana "
    "counted the broken ones twice before lunch. How many crates must the office order again?"
)


def copied(project: Project) -> Project:
    """Return a project with an eval task that is a train task with a name changed."""
    rows = [("a", "train", STORY), ("b", "eval", STORY.replace("Ana", "Otto"))]
    check = {"kind": "exact", "value": "3"}
    values = [{"id": i, "domain": "text", "split": s, "prompt": p, "checks": [check]} for i, s, p in rows]
    project.write("copies.scenario.json", json.dumps(values, indent=1))
    return project.scenarios(train=8, sweep=8).ini(actor="python:agent:learner", group_size=2)


def test_it_is_a_usage_error_before_anything_is_asked(project: Project) -> None:
    result = copied(project).learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = " ".join(" ".join(result.errlines).split())
    assert "contamination: 1 found" in said
    assert "b [eval] (copies.scenario.json:14) and a [train] (copies.scenario.json:2) are " in said
    assert "The warehouse in Leeds" in said
    assert "set the same split for both" in said
    assert "set contamination = warn" in said
    assert not project.calls
    assert not project.runs()


def test_warned_of_it_stands_in_report_terminal_and_summary(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "summary.md"))
    result = copied(project).learn("--tfgrpo-contamination", "warn")
    assert result.ret == 0
    (warning,) = [text for text in project.report()["warnings"] if "contamination" in text]
    assert warning.startswith("contamination: 1 found (similar 1); the first: b [eval]")
    assert "TfgrpoWarning: contamination: 1 found" in result.stdout.str()
    assert "contamination" in (project.root / "summary.md").read_text()
    found = project.report()["contamination"]
    assert (found["found"], found["kinds"]) == (1, {"similar": 1})
    assert found["findings"][0]["other"] == "a [train]"


def test_a_clean_suite_says_that_it_was_looked_at(project: Project) -> None:
    project.scenarios(train=4, sweep=4).learn()
    assert project.report()["contamination"] == {"found": 0, "kinds": {}, "findings": []}


def test_plain_mode_learns_nothing_and_looks_at_nothing(project: Project) -> None:
    result = copied(project).ini(actor="python:agent:right").run("--tfgrpo-out", "out")
    assert result.ret == 0
    assert project.report()["contamination"] is None


def test_an_answer_in_a_prompt_pack_is_an_error(project: Project) -> None:
    manifest = {"id": "text", "domain": "text", "system": "system.md", "inject": [], "experience_slots": 4}
    project.write("prompt-packs/text/system.md", "If in doubt say forty-two.\n")
    project.write("prompt-packs/text/manifest.json", json.dumps(manifest))
    assert project.cli("stamp") == 0
    project.scenarios("one", train=3, sweep=0)
    project.scenarios("two", train=0, sweep=1, checks=[{"kind": "exact", "value": "Forty-two"}])
    result = project.learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*two-eval0 ?eval? (two.scenario.json:2) has its answer in prompt pack text: *"]
    )


def test_a_dry_run_finds_it_too(project: Project) -> None:
    result = copied(project).learn("--tfgrpo-dry-run")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_resumed_run_counts_what_it_counted_before(project: Project) -> None:
    project.scenarios(train=8, sweep=8).ini(actor="python:agent:slow", group_size=2)
    project.learn("--tfgrpo-budget-s", "0.001")
    assert project.report()["status"] == "incomplete"
    resumed = project.runs()[-1]
    project.learn()
    assert project.report()["evaluations"]["earlier"] == 0  # the run before got nowhere
    project.learn("--tfgrpo-resume", resumed.name)
    report = json.loads((resumed / "report.json").read_text())
    assert (report["status"], report["evaluations"]["earlier"]) == ("complete", 0)
