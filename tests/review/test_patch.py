"""The diff of a suite: git and patch make of the old files just the texts that are written."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import make_scenario
from support.review.patch import TEXT, changed
from support.reviews import false_pass
from support.sweeps import swept

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.review import patch
from pytest_tfgrpo.review.disagreements import Review
from pytest_tfgrpo.review.patch import suite_change, write_files
from pytest_tfgrpo.suite import scenario_files
from pytest_tfgrpo.suite.suite_files import suite_files

TEXT += "- {id: b, prompt: q, checks: [{kind: exact, value: y}]}"


def test_a_file_of_json_lines_has_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (scenario_files, sys.modules[suite_files.__module__], patch):
        monkeypatch.setattr(module, "FILE_MAX_BYTES", 60, raising=False)
    monkeypatch.setattr(read_plain, "__defaults__", (60,))
    row = '{"id": "a", "prompt": "p", "checks": [{"kind": "exact", "value": "value: x"}]}\n'
    one = changed(tmp_path, "a.scenarios.jsonl", "\ufeff" + row + row.replace('"a"', '"b"'))
    write_files([one])
    assert (tmp_path / "a.scenarios.jsonl").read_bytes() == b"\xef\xbb\xbf" + one.text.encode()
    (tmp_path / "a.scenario.yaml").write_text(TEXT)
    _, refused = suite_files([make_scenario(source="a.scenario.yaml:1")], tmp_path)
    assert refused == {"a.scenario.yaml": "larger than 60 bytes; split the file"}


def test_nothing_is_written_if_one_of_the_files_changed(tmp_path: Path) -> None:
    first, second = (changed(tmp_path, name, TEXT) for name in ("a.scenario.yaml", "b.scenario.yaml"))
    (tmp_path / "b.scenario.yaml").write_text(TEXT + "\n# mine\n")
    with pytest.raises(ScenarioError, match=r"b\.scenario\.yaml changed while"):
        write_files([first, second])
    assert (tmp_path / "a.scenario.yaml").read_text() == TEXT
    (tmp_path / "b.scenario.yaml").unlink()
    with pytest.raises(ScenarioError, match=r"b\.scenario\.yaml cannot be read again"):
        write_files([first, second])


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    one = changed(tmp_path, "real.scenario.yaml", TEXT)
    (tmp_path / "real.scenario.yaml").chmod(0o640)
    write_files([one])
    assert (tmp_path / "real.scenario.yaml").stat().st_mode & 0o777 == 0o640


def test_a_scenario_whose_checks_others_share_is_left_to_a_person(tmp_path: Path) -> None:
    text = "".join(
        f"- {{id: {id_}, prompt: ask {id_}, split: eval, checks: {checks}}}\n"
        for id_, checks in {
            "a": "&shared [{kind: contains, value: x}]",
            "b": "*shared",
            "c": "[{kind: contains, value: x}]",
            "d": "[{kind: contains, value: x}]",
        }.items()
    )
    (tmp_path / "a.scenario.yaml").write_text(text)
    files, _ = suite_files([make_scenario(source="a.scenario.yaml:1")], tmp_path)
    scenarios = files["a.scenario.yaml"].scenarios
    answers = tuple(false_pass(scenarios[id_], "x, no y", "y") for id_ in "acd")
    run = replace(swept({}), scenarios=tuple(scenarios.values()))
    found = suite_change(run, Review(run_id="run1", answers=answers, not_applied={}), files, tmp_path)
    assert [one.scenario.id for one in found.proposals] == ["c", "d"]
    assert [one.scenario.id for one in found.left] == ["a"]
    assert "shares what would change" in found.left[0].reason
    (changed,) = found.files
    assert changed.text.split("\n")[:2] == text.split("\n")[:2]
    assert changed.text.count("not: true") == 2
