"""Named gates as items of pytest: order, severity, JUnit, annotations, and misuse before anybody is asked."""

import json
from pathlib import Path

import pytest
from support.plugin.named_gates import GATES, POLITENESS, gates_of, junit
from support.preparing import refusal
from support.project import Project, item_names
from support.tools import tfgrpo


@pytest.fixture(autouse=True)
def outside_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


@pytest.fixture
def gated(project: Project) -> Project:
    """A project with two named gates and a right agent."""
    project.write("gates.yaml", GATES).scenarios(train=0, sweep=12)
    return project.ini(actor="python:agent:right", gates="gates.yaml", baseline_sweep="off")


def test_named_gates_come_in_the_order_of_their_file_before_the_default_gate(gated: Project) -> None:
    result = gated.learn("-v")
    assert item_names(result)[-3:] == [
        "pytest.ini::gate[everything]",
        "pytest.ini::gate[watched]",
        "pytest.ini::gate",
    ]
    assert result.ret == 0
    assert gates_of(gated) == {"everything": "pass", "watched": "pass"}
    result.stdout.fnmatch_lines(
        ["gate everything  passed, 12 scenarios", "gate watched  passed, 12 scenarios"]
    )


def test_a_failing_gate_turns_the_run_red_and_one_that_warns_does_not(gated: Project) -> None:
    result = gated.learn("--tfgrpo-actor", "python:agent:wrong", "-rfb", "--junitxml", "junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 13, "failed": 1, "tolerated": 1, "warnings": 1}
    result.stdout.fnmatch_lines(
        [
            "minimum mean: eval mean 0.000, at least 0.9 required; *",
            "gate everything  FAILED, as shown above",
            "gate watched  FAILED (severity warn: the run does not fail)",
            "gate  passed",
            "TOLERATED pytest.ini::gate[[]watched] - severity warn: minimum mean: eval mean 0.000*",
            "FAILED pytest.ini::gate[[]everything] - minimum mean: eval mean 0.000*",
        ]
    )
    cases = junit(gated)
    assert cases["gate[everything]"][0].find("failure") is not None
    skipped = cases["gate[watched]"][0].find("skipped")
    assert skipped is not None
    assert skipped.attrib["message"].startswith("severity warn: minimum mean: eval mean 0.000")
    assert cases["gate[watched]"][1]["tfgrpo_category"] == "tolerated"
    assert cases["gate[watched]"][1]["tfgrpo_severity"] == "warn"
    assert cases["gate[everything]"][1]["tfgrpo_gate"] == "fail"


def test_the_list_of_runs_shows_what_all_gates_came_to(gated: Project) -> None:
    gated.learn("--tfgrpo-actor", "python:agent:wrong")
    gated.write("gates.yaml", "gates: {only: {severity: warn, min_mean: 0.9}}")
    gated.learn("--tfgrpo-actor", "python:agent:wrong")
    assert [line.split()[2] for line in tfgrpo("runs").splitlines()[1:]] == ["fail", "inconclusive"]


STRICT = ("-W", "error", "-W", "default::pytest_tfgrpo.TfgrpoWarning")


@pytest.mark.parametrize("flags", [(), ("--runxfail",), STRICT, ("-o", "xfail_strict=true")])
def test_nothing_makes_a_warning_red(project: Project, flags: tuple[str, ...]) -> None:
    project.write("gates.yaml", "gates: {only: {severity: warn, min_mean: 0.9}}").scenarios(train=0, sweep=1)
    project.ini(actor="python:agent:wrong", gates="gates.yaml")
    assert project.learn(*flags).ret == 0
    assert gates_of(project) == {"only": "fail"}


@pytest.fixture
def rude(gated: Project) -> Project:
    """A project whose agent is always right and never polite, with a gate of either."""
    gates = "gates:\n  right: {min_mean: .9}\n  polite: {metric: politeness, min_mean: .5}\n"
    return gated.conftest(POLITENESS).write("gates.yaml", gates)


def test_a_gate_turns_red_on_a_metric_alone(rude: Project) -> None:
    result = rude.learn("-rf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert gates_of(rude) == {"right": "pass", "polite": "fail"}
    result.stdout.fnmatch_lines(
        [
            "minimum politeness: politeness 0.300, at least 0.5 required; lowest: 0.300 by r0",
            "  of suite-eval0, no please",
            "gate polite  FAILED, as shown above",
            "gate  passed",
            "FAILED pytest.ini::gate[[]polite]*",
        ]
    )
    (last,) = [row for row in rude.report()["epochs"] if row["mode"] == "eval"]
    assert (last["metrics"]["politeness"]["n"], last["gt_score"]["mean"]) == (12, 1.0)


def test_in_plain_mode_a_metric_is_judged_and_excuses_no_item(rude: Project) -> None:
    rude.write("gates.yaml", "gates:\n  polite: {metric: politeness, min_mean: .5}\n")
    rude.run().assert_outcomes(passed=13, failed=1)
    rude.write("gates.yaml", "gates:\n  polite: {metric: politeness, min_mean: .3}\n")
    rude.run().assert_outcomes(passed=14)
    rude.run("--tfgrpo-actor=python:agent:wrong").assert_outcomes(passed=2, failed=12)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("politness", "gates.yaml:2: #/gates/polite/metric: nothing in this run reports the metric 'politness'; did you mean 'politeness'?"),  # noqa: E501
        ("judge", "there are gt_score, reward, relative_rank, politeness"),
    ],
)  # fmt: skip
def test_a_metric_that_no_rewarder_gives_is_found_before_anybody_is_asked(
    rude: Project, metric: str, said: str
) -> None:
    rude.write("gates.yaml", f"gates:\n  polite: {{metric: {metric}, min_mean: .5}}\n")
    for flags in ((), ("--tfgrpo",)):
        assert said in refusal(rude, *flags)


@pytest.fixture
def saved(rude: Project) -> Path:
    """A stored baseline of the project, whose gate compares politeness with it from now on."""
    rude.write("gates.yaml", "gates:\n  polite: {metric: politeness, min_mean: .1}\n")
    rude.conftest(POLITENESS.replace("0.3", "0.9")).learn()
    tfgrpo("baseline", "save", "main")
    rude.write("gates.yaml", "gates:\n  polite: {metric: politeness, margin: .3, baseline: main}\n")
    return Path("baselines/main.json")


def test_an_old_baseline_without_the_metric_skips_the_rule_and_says_so(rude: Project, saved: Path) -> None:
    value = json.loads(saved.read_text())
    del value["metrics"], value["hash"]
    for row in value["scenarios"].values():
        del row["metrics"]
    saved.write_text(json.dumps(value))
    result = rude.learn("-v")
    assert gates_of(rude)["polite"] == "pass"
    result.stdout.fnmatch_lines(
        ["*skipped * baseline politeness: the baseline main has no metric politeness*"]
    )


def test_in_plain_mode_a_gates_file_adds_them_and_the_default_gate(gated: Project) -> None:
    result = gated.run("-v")
    assert item_names(result)[-3:] == [
        "pytest.ini::gate[everything]",
        "pytest.ini::gate[watched]",
        "pytest.ini::gate",
    ]
    result.assert_outcomes(passed=15)


def test_nothing_that_a_gates_file_says_removes_a_rule_of_the_default_gate(gated: Project) -> None:
    result = gated.learn("--tfgrpo-budget-tokens", "1", "--tfgrpo-actor", "python:agent:provider")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = {r["name"]: r["outcome"] for r in gated.report()["gate"]["results"]}
    assert {"complete", "contamination"} <= found.keys()
    assert found["complete"] == "fail"
    assert gates_of(gated) == {"everything": "fail", "watched": "fail"}


def test_a_part_of_the_suite_is_not_judged_by_any_gate(gated: Project) -> None:
    result = gated.learn("-k", "eval3", "-v")
    assert result.ret == 0
    assert item_names(result)[-3:] == [
        "pytest.ini::gate[everything]",
        "pytest.ini::gate[watched]",
        "pytest.ini::gate",
    ]
    assert gates_of(gated) == {"everything": "inconclusive", "watched": "inconclusive"}
    by_id = gated.learn("suite.scenario.json::suite-eval3[epoch3-eval]", "-v")
    assert item_names(by_id)[-1] == "pytest.ini::gate"
    gated.write("gates.yaml", "gates: {a: {min_mean: 0.9, strict: true}}")
    assert gated.learn("-k", "eval3").ret == pytest.ExitCode.TESTS_FAILED


def test_a_node_id_does_not_make_a_selection_empty(project: Project) -> None:
    project.scenarios("a", train=0, sweep=1, domain="dates").scenarios("b", train=0, sweep=1)
    project.write("gates.yaml", "gates: {d: {domains: [dates], min_mean: 0.5}}").ini(
        actor="python:agent:right", gates="gates.yaml"
    )
    assert project.learn("b.scenario.json::b-eval0[baseline]").ret == 0
    assert gates_of(project) == {"d": "inconclusive"}


def test_a_gate_sees_its_domains_and_tags_alone(project: Project) -> None:
    project.scenarios("a", train=0, sweep=2, domain="dates", tags=["smoke"]).scenarios("b", train=0, sweep=3)
    agent = "def solve(context):\n    return '3' if context.scenario.domain == 'dates' else '4'\n"
    project.agent(agent).ini(actor="python:agent2:solve", gates="gates.yaml")
    project.write(
        "gates.yaml",
        "gates:\n  dates: {domains: [dates], min_mean: 1}\n  text: {domains: [text], min_mean: 1}\n"
        "  smoke: {tags: [smoke], min_mean: 1}\n",
    )
    project.learn()
    assert gates_of(project) == {"dates": "pass", "text": "fail", "smoke": "pass"}
    counts = {gate["name"]: gate["scenarios"] for gate in project.report()["gate"]["gates"]}
    assert counts == {"dates": 2, "text": 3, "smoke": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gates: {a: {min_men: 1}}", "gates.yaml:1: #/gates/a/min_men: unknown key 'min_men'; did you mean"),
        ("gates:\n  a: {min_mean: 1}\n  a: {min_mean: 0}", "gates.yaml:3: #/gates/a: duplicate key 'a'"),
        ("gates:\n  a/b: {min_mean: 1}", "gates.yaml:2: #/gates/a~1b: 'a/b' must be 1 to 64 letters"),
        ("gates: {a: {severity: off}}", "#/gates/a/severity: "),
        ("gates: {a: {margin: 2}}", "#/gates/a/margin: 2 is greater than the maximum of 1"),
        ("gates: {}", "gates.yaml:1: #/gates: "),
        ("", "gates.yaml:1: #: "),
        ("gates:\n  a:\n    min_mean: 1\n    domains: [txt]", "gates.yaml:4: #/gates/a/domains: no eval scenario has the domain 'txt'; did you mean 'text'?"),  # noqa: E501
        ("gates: {a: {tags: [slow], min_mean: 1}}", "#/gates/a/tags: no eval scenario has the tag 'slow'"),
        ("gates: {a: {baseline: nope}}", "#/gates/a/baseline: "),
        ("gates: {a: {baseline: nope}}", "nope.json: there is no such baseline; create it with"),
        ("gates: {a: {baseline: ../up}}", "'../up' does not name a baseline"),
        ("gates: {a: {}}", "gates.yaml:1: #/gates/a: has nothing to check; set a baseline, "),
    ],
)  # fmt: skip
def test_misuse_is_found_before_anybody_is_asked(gated: Project, text: str, said: str) -> None:
    gated.write("gates.yaml", text)
    assert said in refusal(gated, "--tfgrpo")


def test_misuse_is_a_usage_error(gated: Project) -> None:
    gated.write("gates.yaml", "gates:\n  a:\n    min_mean: 1\n    domains: [txt]")
    result = gated.learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "gates.yaml:4: #/gates/a/domains: no eval scenario has the domain 'txt'; did you mean 'text'?"
    assert said in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
    assert gated.calls == []


def test_a_file_that_is_not_there_is_a_usage_error(gated: Project) -> None:
    result = gated.learn("--tfgrpo-gates", "other.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "other.yaml:1: #: cannot be read" in result.stderr.str()


def test_domains_and_tags_that_no_scenario_has_together_are_a_usage_error(project: Project) -> None:
    project.scenarios("a", train=0, sweep=1, domain="dates").scenarios("b", train=0, sweep=1, tags=["smoke"])
    project.write("gates.yaml", "gates: {a: {domains: [dates], tags: [smoke], min_mean: 1}}")
    project.ini(actor="python:agent:right", gates="gates.yaml")
    result = project.learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "#/gates/a: selects no eval scenario" in result.stderr.str()


def test_collecting_lists_them_and_a_dry_run_checks_them(gated: Project) -> None:
    listed = gated.learn("--co", "-q")
    listed.stdout.fnmatch_lines(
        ["pytest.ini::gate[[]everything]", "pytest.ini::gate[[]watched]", "pytest.ini::gate"]
    )
    assert gated.learn("--tfgrpo-dry-run").ret == 0
    gated.write("gates.yaml", "gates: {a: {baseline: nope}}")
    assert gated.learn("--tfgrpo-dry-run").ret == pytest.ExitCode.USAGE_ERROR


# JUnit


def test_junit_carries_what_a_gate_compared(project: Project) -> None:
    project.scenarios(train=0, sweep=20).ini(actor="python:agent:right")
    project.learn()
    assert project.cli("baseline", "save", "main") == 0
    project.write("gates.yaml", "gates: {mine: {baseline: main, margin: 0.1}}")
    project.ini(actor="python:agent:wrong", baseline="main", gates="gates.yaml")
    project.learn("--junitxml", "junit.xml")
    cases = junit(project)
    expected = {
        "tfgrpo_gate": "fail",
        "tfgrpo_severity": "fail",
        "tfgrpo_baseline": "main",
        "tfgrpo_margin": "0.05",
        "tfgrpo_difference": "-1.0",
        "tfgrpo_n": "20",
    }
    found = cases["gate"][1]
    assert {name: found[name] for name in expected} == expected
    assert float(found["tfgrpo_low"]) <= -1.0 <= float(found["tfgrpo_high"]) < 0
    named = cases["gate[mine]"][1]
    assert {name: named[name] for name in expected} == expected | {"tfgrpo_margin": "0.1"}


def test_junit_carries_the_figures_of_a_scenario(project: Project) -> None:
    project.scenarios(train=1, sweep=4).ini(
        actor="python:agent:unsteady", group_size=4, baseline_sweep="early"
    )
    project.learn("--junitxml", "junit.xml")
    seen = 0
    for name, (_, found) in junit(project).items():
        if name == "gate":
            continue
        assert int(found["tfgrpo_n"]) + int(found["tfgrpo_errors"]) == 4
        assert found["tfgrpo_mode"] == (
            "baseline" if "baseline" in name else "eval" if "eval]" in name else "train"
        )
        assert f"epoch{found['tfgrpo_epoch']}" in name or found["tfgrpo_epoch"] == "0"
        assert "tfgrpo_gt_mean" in found
        seen += int(found["tfgrpo_errors"])
    assert seen > 0


# GitHub Actions


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def test_annotations_have_the_level_of_the_severity(gated: Project, page: Path) -> None:
    result = gated.learn("--tfgrpo-actor", "python:agent:wrong")
    commands = [line for line in result.outlines if line.startswith("::") and "minimum mean" in line]
    assert [command.partition("::minimum")[0] for command in commands] == [
        "::error title=tfgrpo gate everything",
        "::warning title=tfgrpo gate watched",
    ]
    text = page.read_text()
    assert "## tfgrpo: gate failed, with warnings from watched" in text
    assert "| everything | fail | minimum mean | **failed** |" in text
    assert "| watched | warn | minimum mean | **failed** |" in text


def test_the_summary_has_one_row_for_a_gate_that_passed(gated: Project, page: Path) -> None:
    gated.learn()
    assert "| everything | fail | all rules | passed | 12 scenarios |" in page.read_text()
    assert "## tfgrpo: gate passed\n" in page.read_text()
