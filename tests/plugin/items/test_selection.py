"""Which items run, and in which order, whatever other plugins make of them."""

import pytest
from support.project import Project, item_names

OTHERS = "def test_a(): pass\ndef test_b(): pass\n"


def test_failed_first_changes_neither_the_order_of_epochs_nor_the_place_of_the_gate(project: Project) -> None:
    project.scenarios("a", train=1, sweep=1).scenarios("b", train=1, sweep=1, min_score=1.0)
    project.ini(actor="python:agent:wrong").write("test_x.py", OTHERS)
    run = project.pytester.runpytest_inprocess
    first = run("--tfgrpo", "-v")
    second = run("--tfgrpo", "--ff", "-v")
    assert first.ret == second.ret == pytest.ExitCode.TESTS_FAILED
    assert item_names(second) == item_names(first)
    assert item_names(second)[-1] == "pytest.ini::gate"


def test_a_random_order_of_tests_is_none_of_epochs_and_gate(project: Project) -> None:
    project.scenarios("a", train=2, sweep=2).scenarios("b", train=2, sweep=2)
    project.write("test_x.py", OTHERS).plugins("randomly")
    orders = set()
    for seed in ("1", "2", "3"):
        ran = item_names(project.learn("-v", f"--randomly-seed={seed}"))
        labels = [name.partition("[")[2].rstrip("]") for name in ran if "scenario" in name]
        assert labels == sorted(labels, key=["epoch1", "epoch2", "baseline", "epoch3-eval"].index)
        assert ran[-1] == "pytest.ini::gate"
        orders.add(tuple(ran))
    assert len(orders) > 1


def test_without_a_selected_scenario_there_is_no_gate_and_no_run(project: Project) -> None:
    project.scenarios().write("test_x.py", OTHERS).ini()
    result = project.learn("-v", "-k", "test_a or test_b")
    assert sorted(item_names(result)) == ["test_x.py::test_a", "test_x.py::test_b"]
    assert result.ret == 0


def test_an_epoch_draws_from_the_selected_scenarios_alone(project: Project) -> None:
    project.scenarios(train=10, sweep=1).ini(actor="python:agent:half", sample_size=3)
    project.learn("-k", "train1 or train2 or train3")
    draws = project.manifest()["draws"]
    wanted = [f"suite-train{n}" for n in (1, 2, 3)]
    assert draws["epoch1"]["scenarios"] == draws["epoch2"]["scenarios"] == wanted


def test_a_scenario_is_selected_by_its_tags(project: Project) -> None:
    project.scenarios("a", tags=["smoke"]).scenarios("b", tags=["slow"])
    assert {name[0] for name in item_names(project.run("-v", "-k", "smoke"))} == {"a"}


def test_items_are_listed_in_the_order_in_which_they_run(project: Project) -> None:
    project.scenarios(train=1, sweep=1)
    project.learn("--co", "-q").stdout.fnmatch_lines(
        [
            "suite.scenario.json::suite-train0[[]epoch1[]]",
            "suite.scenario.json::suite-train0[[]epoch2[]]",
            "suite.scenario.json::suite-eval0[[]baseline[]]",
            "suite.scenario.json::suite-eval0[[]epoch3-eval[]]",
            "pytest.ini::gate",
        ],
        consecutive=True,
    )


def test_files_of_every_spelling_are_collected(project: Project) -> None:
    check = '{"kind": "exact", "value": "3"}'
    one = f'{{"id": "%s", "split": "eval", "prompt": "How many words, %s?", "checks": [{check}]}}'
    names = ("a.scenario.yml", "b.scenarios.yaml", "c.scenario.jsonl", "d.scenarios.json")
    for name in names:
        project.write(name, one % (name[0], name[0]))
    project.write("e.scenario.csv", "id,prompt,answer,split\ne,How many words has e?,3,eval\n")
    project.run().assert_outcomes(passed=5)
    assert sorted(project.calls) == ["a", "b", "c", "d", "e"]
