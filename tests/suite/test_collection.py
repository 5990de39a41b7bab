"""A suite collected without pytest has the scenarios that pytest collects, in the same order."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario
from support.project import Project, item_names

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect, uncollected
from pytest_tfgrpo.suite.scenario_paths import scenario_paths

FOLDERS = ("", "b", "b/inner", "a.d", "b.c", "fixtures", "build", ".hidden", "node_modules")


def write(path: Path, *names: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    check = {"kind": "exact", "value": "3"}
    values = [{"id": n, "split": "eval", "prompt": f"Task {n}?", "checks": [check]} for n in names]
    path.write_text(json.dumps(values))


def test_a_folder_is_collected_in_the_order_of_pytest(project: Project) -> None:
    for n, folder in enumerate(FOLDERS):
        for name, key in (("z", "z"), ("m.n", "mn"), ("m", "m")):
            ids = [f"{key}{dash}{n}" for dash in ("-", "")]
            write(project.root / folder / f"{name}.scenario.json", *ids)
    found = [scenario.id for scenario in collect(project.root, ["."], KINDS)]
    theirs = item_names(project.run("-v", "--tfgrpo-actor=python:agent:right"))
    assert found == [name.rpartition("::")[2] for name in theirs]
    assert len(found) == 6 * 6


def test_what_runs_left_behind_is_no_suite(tmp_path: Path) -> None:
    write(tmp_path / "a.scenario.json", "a")
    write(tmp_path / "out" / "demo" / "runs" / "r1" / "work" / "planted.scenario.json", "planted")
    assert [scenario.id for scenario in collect(tmp_path, ["."], KINDS)] == ["a"]


def test_files_folders_and_records_come_in_the_order_given_each_with_its_stamp(tmp_path: Path) -> None:
    write(tmp_path / "one.scenario.json", "one")
    write(tmp_path / "more" / "two.scenario.json", "two")
    record = make_scenario("three", stamp="")
    data = {"id": "four", "prompt": "Four?", "checks": [{"kind": "exact", "value": "4"}]}
    found = collect(tmp_path, ["more", record, tmp_path / "one.scenario.json", data], KINDS)
    assert [scenario.id for scenario in found] == ["two", "three", "one", "four"]
    assert len({scenario.stamp for scenario in found} - {""}) == 4


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    write(tmp_path / "one.scenario.json", "one")
    (tmp_path / "bad.scenario.json").write_text("{}")
    with pytest.raises(ScenarioError) as error:
        collect(tmp_path, [".", "nowhere", make_scenario("x", checker="t.py::test_x")], KINDS)
    assert [word in str(error.value) for word in ("bad.scenario.json", "nowhere", "t.py::test_x")] == [
        True
    ] * 3


def test_a_record_of_a_file_is_taken_as_it_is_and_one_made_by_hand_is_completed(tmp_path: Path) -> None:
    (tmp_path / "golden.txt").write_text("3\n")
    checks = [
        {"kind": "file", "path": "a.txt", "golden": "golden.txt"},
        {"kind": "command", "run": "test -f a.txt", "weight": 2},
        {"kind": "contains", "not": True, "value": "sorry"},
    ]
    data = {"id": "one", "split": "eval", "prompt": "Write.", "attachments": ["golden.txt"], "checks": checks}
    more = {
        "tags": ["t"],
        "tools": ["x"],
        "min_score": 0.5,
        "timeout_s": 3,
        "family": "f",
        "rubric": "Is short.",
    }
    (tmp_path / "one.scenario.json").write_text(json.dumps(data | more))
    (loaded,) = collect(tmp_path, ["."], KINDS)
    assert collect(tmp_path, [loaded], KINDS) == [loaded]
    made = [
        Check(
            kind=str(c.pop("kind")),
            weight=float(c.pop("weight", 1)),
            negated=bool(c.pop("not", False)),
            params=c,
        )
        for c in checks
    ]
    (by_hand,) = collect(tmp_path, [replace(loaded, checks=tuple(made), stamp="")], KINDS)
    assert by_hand == loaded


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checks": (Check(kind="exact", params={"valu": "3"}),)}, "#/checks/0/valu: unknown key 'valu'"),
        ({"id": ".."}, "'..' does not match"),
        ({"timeout_s": -1}, "#/timeout_s: "),
    ],
)
def test_a_record_keeps_the_rules_of_a_file(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        collect(tmp_path, [make_scenario(**{"id": "x"} | changes)], KINDS)
    assert said in str(error.value)


def test_what_a_file_outside_of_the_collected_places_holds_is_named(tmp_path: Path) -> None:
    ids = [f"{name}-{n}" for n, name in enumerate(("here", "there", "code.x", "hidden", "built", "ran"))]
    for name, folder in zip(
        ("here", "there", "hidden", "built", "ran"), ("a", "b", ".c", "build", "o"), strict=True
    ):
        write(tmp_path / folder / f"{name}.scenario.json", "t")
    (tmp_path / "o" / "demo" / "runs").mkdir(parents=True)
    (tmp_path / "b" / "code.py").write_text("")
    assert uncollected(tmp_path, [tmp_path / "a"], ids) == ["code.x-2", "there-1"]
    write(tmp_path / "b" / "more.scenario.json", "here-0")
    assert uncollected(tmp_path, [tmp_path / "a"], ids) == ["code.x-2", "here-0", "there-1"]


def test_a_test_function_has_an_id_that_begins_with_its_whole_module(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("")
    assert uncollected(tmp_path, [], ["test_a.one", "test_ab.two", "test_a"]) == ["test_a.one"]
    (tmp_path / "x.scenario.json").symlink_to("nowhere")
    assert uncollected(tmp_path, [], ["x-1"]) == [], "a file that cannot be read holds none"


@pytest.mark.parametrize("folder", ["__pycache__", "build", "dist", "node_modules", "venv", ".hidden"])
def test_folders_of_programs_hold_no_suite_and_files_come_by_name(tmp_path: Path, folder: str) -> None:
    for name in ("b", "a", f"{folder}/c", "sub/d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / f"{name}.scenario.json", name[-1])
    (tmp_path / "out" / "demo" / "runs").mkdir(parents=True)
    write(tmp_path / "out" / "e.scenario.json", "e")
    assert [path.name[0] for path in scenario_paths(tmp_path)] == ["a", "b", "d"]
