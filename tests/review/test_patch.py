"""The diff of a suite: git and patch make of the old files just the texts that are written."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import make_scenario
from support.review.patch import TEXT, changed
from support.reviews import answered, false_pass
from support.sweeps import swept

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.review import patch
from pytest_tfgrpo.review.disagreements import Review
from pytest_tfgrpo.review.patch import SuiteChange, suite_change, write_files
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
    assert (tmp_path / "real.scenario.yaml").read_bytes() == one.text.encode()


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
    alone = Review(run_id="run1", answers=answers[:1], not_applied={})
    assert suite_change(run, alone, files, tmp_path).files == ()


def test_the_diff_says_where_a_file_ends_without_a_newline(tmp_path: Path) -> None:
    one = changed(tmp_path, "a.scenario.yaml", TEXT)
    assert not TEXT.endswith("\n")
    assert one.diff.endswith("value: y}]}\n\\ No newline at end of file\n")
    assert "No newline" not in changed(tmp_path, "b.scenario.yaml", TEXT + "\n").diff
    long = changed(
        tmp_path, "c.scenario.yaml", "# more\n" * 9 + TEXT.partition("- {id: b")[0] + "# more\n" * 9
    )
    assert [line[0] for line in long.diff.splitlines()[3:]] == [*"   -+   "]


def copied(folder: Path, id_: str = "a") -> SuiteChange:
    """Return what a wrong answer to a scenario proposes as a copy; its run drew it for the eval split."""
    (folder / "a.scenario.yaml").write_text(
        f"- {{id: {id_}, prompt: p, checks: [{{kind: contains, value: x}}]}}\n"
    )
    files, _ = suite_files([make_scenario(source="a.scenario.yaml:1")], folder)
    scenario = replace(files["a.scenario.yaml"].scenarios[id_], split="eval")
    run = replace(swept({}), scenarios=(scenario,))
    review = Review(run_id="run1", answers=(false_pass(scenario, "x, no y", "y"),), not_applied={})
    return suite_change(run, review, files, folder, new=True)


def test_a_copy_is_named_after_its_scenario_as_far_as_an_id_may_be_long(tmp_path: Path) -> None:
    (one,) = copied(tmp_path, "a" * 128).files
    assert one.file.path.name == "a" * 119 + "-reviewed.scenario.yaml"
    assert f"id: {'a' * 119}-reviewed\n" in one.text


def test_a_copy_whose_file_is_there_already_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "a-reviewed.scenario.yaml").write_text("# mine\n")
    found = copied(tmp_path)
    assert found.files == ()
    assert [one.reason for one in found.left] == ["a-reviewed is there already"]


def test_a_copy_has_the_split_that_its_scenario_had_in_the_run(tmp_path: Path) -> None:
    (one,) = copied(tmp_path).files
    assert "split: eval\n" in one.text


def test_a_copy_is_a_new_file_beside_that_of_its_scenario_with_the_defaults_of_that(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.scenario.yaml").write_text(
        "defaults: {domain: towns, prompt: p}\n"
        "scenarios:\n- {id: a, split: eval, checks: [{kind: contains, value: x}]}\n"
    )
    files, _ = suite_files([make_scenario(source="sub/a.scenario.yaml:1")], tmp_path)
    scenario = files["sub/a.scenario.yaml"].scenarios["a"]
    run = replace(swept({}), scenarios=(scenario,))
    review = Review(run_id="run1", answers=(false_pass(scenario, "x, no y", "y"),), not_applied={})
    (one,) = suite_change(run, review, files, tmp_path, new=True).files
    assert one.diff.startswith("--- /dev/null\n+++ b/sub/a-reviewed.scenario.yaml\n@@ -0,0 ")
    assert "domain: towns\n" in one.text
    assert "prompt: p\n" in one.text
    taken = replace(scenario, id="a-reviewed", source="b.scenario.yaml:1")
    found = suite_change(replace(run, scenarios=(scenario, taken)), review, files, tmp_path, new=True)
    assert (found.files, [one.reason for one in found.left]) == ((), ["a-reviewed is there already"])


def test_a_copy_takes_what_a_row_of_csv_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "a.scenarios.csv").write_text("id,prompt,split,answer\na,p,eval,x\n")
    files, _ = suite_files([make_scenario(source="a.scenarios.csv:2")], tmp_path)
    scenario = files["a.scenarios.csv"].scenarios["a"]
    run = replace(swept({}), scenarios=(scenario,))
    right = false_pass(scenario, "so X", "")
    mark = replace(right.marks[0], opinion="right")
    answer = replace(right, marks=(mark,), passed=False)
    review = Review(run_id="run1", answers=(answer,), not_applied={})
    assert suite_change(run, review, files, tmp_path).files == ()
    (one,) = suite_change(run, review, files, tmp_path, new=True).files
    assert one.file.name == "a-reviewed.scenario.yaml"
    assert "flags: i}" in one.text


def test_an_error_of_the_run_is_no_answer_that_a_change_would_fail(tmp_path: Path) -> None:
    (tmp_path / "a.scenario.yaml").write_text(
        "{id: s, prompt: p, split: eval, checks: [{kind: contains, value: x}]}\n"
    )
    files, _ = suite_files([make_scenario(source="a.scenario.yaml:1")], tmp_path)
    scenario = files["a.scenario.yaml"].scenarios["s"]
    run = swept({"s": [1.0, 1.0, 1.0]})
    phase = run.phases[-1]
    (group,) = phase.groups
    first, lost, other = (
        replace(answered(scenario, n, text), scenario_id="s", rollout_id=f"run1.e1.s.r{n}")
        for n, text in enumerate(["x, no y", "x y", "x and y"])
    )
    lost = replace(lost, status="error")
    groups = (replace(group, rollouts=(first, lost, other)),)
    run = replace(run, scenarios=(scenario,), phases=(*run.phases[:-1], replace(phase, groups=groups)))
    answers = (false_pass(scenario, "x, no y", "y"),)
    (one,) = suite_change(
        run, Review(run_id="run1", answers=answers, not_applied={}), files, tmp_path
    ).proposals
    assert one.now_failed == ("run1.e1.s.r2",)
