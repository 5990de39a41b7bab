"""Which items run, and in which order, whatever other plugins make of them."""

import json

import pytest
from support.project import Project, item_names


def test_failed_first_and_last_failed_find_items_by_their_ids_in_a_folder(project: Project) -> None:
    one = "id: {0}\nprompt: {0}?\nsplit: eval\nchecks: [{{kind: exact, value: '3'}}]\n"
    project.write("deep/a.scenario.yaml", one.format("good"))
    project.write("deep/b.scenario.yaml", one.format("bad") + "min_score: 1\n")
    project.ini(actor="python:agent:wrong")
    run = project.pytester.runpytest_inprocess
    assert run("--tfgrpo").ret == pytest.ExitCode.TESTS_FAILED
    assert item_names(run("--tfgrpo", "--lf", "-v")) == [
        "deep/b.scenario.yaml::bad[epoch3-eval]",
        "pytest.ini::gate",
    ]


def test_in_plain_mode_a_very_large_file_is_one_item_that_names_what_fails(project: Project) -> None:
    check = {"kind": "exact", "value": "3"}
    one = {"domain": "d", "checks": [check]}
    rows = [
        one | {"id": f"s{n}", "split": "eval" if n < 3 else "train", "prompt": str(n)} for n in range(20_001)
    ]
    project.write("big.scenarios.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    result = project.run("-v")
    assert item_names(result) == ["big.scenarios.jsonl::eval"]
    assert result.ret == 0
    result = project.run("--tfgrpo-actor", "python:agent:wrong")
    result.stdout.fnmatch_lines([f"s{n}: gt_score 0.000, at least 1 required" for n in range(3)])
