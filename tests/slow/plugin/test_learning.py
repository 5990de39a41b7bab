"""Learning mode: pytest --tfgrpo."""

import json

import pytest
from support.project import Project, item_names


def test_random_order_plugins_change_neither_order_nor_results(project: Project) -> None:
    project.scenarios("a").scenarios("b").ini(actor="python:agent:half", group_size=3)
    first = project.learn("-v")
    one = project.report()["epochs"]
    second = project.learn("-v", "-p", "randomly", "-p", "no:cacheprovider")
    other = project.report()["epochs"]
    assert item_names(first) == item_names(second)
    assert [row["gt_score"] for row in one] == [row["gt_score"] for row in other]


def test_a_committed_library_is_where_a_run_starts(project: Project) -> None:
    project.ini(actor="python:agent:learner", group_size=4, library="lessons.json", gate_alarm=1)
    project.scenarios(train=12, sweep=12)
    missing = project.learn()
    assert missing.ret == pytest.ExitCode.USAGE_ERROR
    missing.stderr.fnmatch_lines(["*lessons.json*--tfgrpo-library=none*tfgrpo library promote*"])
    assert project.learn("--tfgrpo-library", "none").ret == 0
    learned = project.report()["epochs"][-1]["gt_score"]["mean"]
    assert project.cli("library", "promote", project.runs()[-1].name) == 0
    assert project.learn().ret == 0
    assert project.report()["epochs"][0]["gt_score"]["mean"] == learned


def test_very_large_files_collect_to_one_item_per_epoch(project: Project) -> None:
    check = {"kind": "exact", "value": "3"}
    scenarios = [
        {
            "id": f"s{n}",
            "domain": "d",
            "split": "eval" if n < 3 else "train",
            "prompt": f"{n}",
            "checks": [check],
        }
        for n in range(20_001)
    ]
    project.write("big.scenarios.jsonl", "".join(json.dumps(s) + "\n" for s in scenarios))
    result = project.learn("-v", "--tfgrpo-sample-size", "2")
    assert item_names(result) == [
        "big.scenarios.jsonl::epoch1",
        "big.scenarios.jsonl::epoch2",
        "big.scenarios.jsonl::baseline",
        "big.scenarios.jsonl::epoch3-eval",
        "pytest.ini::gate",
    ]
    assert len(project.calls) == 14  # nothing was learned: one answer serves both sweeps


def test_an_epoch_starts_with_its_first_item_and_not_before(project: Project) -> None:
    project.scenarios(train=2, sweep=2, min_score=1.0).ini(actor="python:agent:wrong", baseline_sweep="early")
    project.conftest("""
import time
from pathlib import Path

def pytest_runtest_logreport(report):
    if report.when == "call" and "baseline" in report.nodeid:
        time.sleep(0.1)
        calls = Path(__file__).with_name("calls.log").read_text()
        assert "train" not in calls, "the next epoch was started while this one was still reported"
""")
    assert project.learn().ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.calls) == 4 + 4 * 2 + 4
