"""Scenario files that a run was made of, and those that cannot be read any more."""

import json
from pathlib import Path

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.suite_files import source_of, suite_files

TEXT = json.dumps({"id": "a", "prompt": "p", "checks": [{"kind": "own", "x": 1}]})


def test_a_file_is_read_as_it_is_today_with_checks_that_only_a_hook_knows(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "a.scenario.json").write_text(
        "\ufeff" + TEXT + "\r\n", encoding="utf-8", newline=""
    )
    checks = (Check(kind="own", params={"x": 1}), Check(kind="exact", params={"value": "3"}))
    known = [
        make_scenario("a", source="suite/a.scenario.json:1", checks=checks),
        make_scenario("t", source="test_a.py:3", checker="test_a.py::test_t"),
    ]
    found, refused = suite_files(known, tmp_path)
    assert refused == {}
    (file,) = found.values()
    assert (file.name, file.text, file.path) == (
        "suite/a.scenario.json",
        TEXT + "\r\n",
        tmp_path / "suite" / "a.scenario.json",
    )
    assert (list(file.scenarios), list(file.written)) == (["a"], ["a"])
    assert file.kinds["exact"] is KINDS["exact"]
    with pytest.raises(ValueError, match="the kind 'own' comes from a hook"):
        file.kinds["own"].evaluate(known[0].checks[0], None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.scenario.json", "No such file"),
        ("../a.scenario.json", "is not a scenario file of this project"),
        ("{root}/a.scenario.json", "is not a scenario file of this project"),
        ("notes.json", "is not a scenario file of this project"),
        ("link.scenario.json", "is not a scenario file of this project"),
        ("bad.scenario.json", "bad.scenario.json:1: "),
    ],
)
def test_a_file_that_is_none_of_the_project_or_cannot_be_read_is_told(
    tmp_path: Path, name: str, why: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for path in (root / "a.scenario.json", tmp_path / "a.scenario.json", root / "notes.json"):
        path.write_text(TEXT)
    (root / "link.scenario.json").symlink_to("../a.scenario.json")
    (root / "bad.scenario.json").write_text('{"id": "a"}')
    name = name.format(root=root)
    found, refused = suite_files([make_scenario("a", source=f"{name}:1")], root)
    assert found == {}
    assert list(refused) == [name]
    assert why in refused[name]
    assert source_of(make_scenario("a", source="a:b.json:12")) == "a:b.json"
