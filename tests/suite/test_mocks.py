"""Mocks in scenario files: what they may say, and what of them is the scenario's content."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import ScenarioError, ToolFailure
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.mocks import recorded_calls
from pytest_tfgrpo.suite.mocks.recorded_calls import key_of, plain, read_calls, result_of
from pytest_tfgrpo.suite.records import checked, scenario


def made(folder: Path, mocks: Any) -> Scenario:
    return scenario("s", folder=folder, prompt="p", checks=[{"kind": "exact", "value": "3"}], mocks=mocks)


@pytest.mark.parametrize(
    ("mocks", "reason"),
    [
        ({}, "#/mocks: {} should be non-empty"),
        ({"f": {}}, "#/mocks/f: a mock has one of returns, raises, .*, real, not none"),
        ({"f": {"returns": 1, "raises": "x"}}, "#/mocks/f: a mock has one of .*, not returns and raises"),
        ({"f": {"retruns": 1}}, "#/mocks/f.*'retruns'"),
        ({"f": [{"returns": 1}, {"when": {}}]}, "#/mocks/f/1: a mock has one of"),
        ({"f": [{"real": True}, {"when": {"n": 1}, "returns": 1}]}, "#/mocks/f/1: no call reaches this case"),
        (
            {"f": [{"when": {"a": 1}, "raises": "x"}, {"when": {"b": 2, "a": 1.0}, "returns": 1}]},
            "#/mocks/f/1: no call reaches this case, as case 0 fits all of its",
        ),
        (
            {"f": [{"when": {"a": {"b": 1}}, "raises": ""}, {"when": {"a": {"b": 1, "c": 2}}, "returns": 1}]},
            "#/mocks/f/1: no call reaches this case",
        ),
        ({"f": {"raises": 1}}, "#/mocks/f/raises"),
        ({"f": {"real": False}}, "#/mocks/f/real"),
        ({"f": {"sequence": []}}, "#/mocks/f/sequence"),
        ({"f": {"sequence": ["x"]}}, "#/mocks/f/sequence/0"),
        ({"f": {"sequence": [{"returns": 1, "raises": "x"}]}}, "#/mocks/f/sequence/0"),
        ({"f": {"python": "nowhere_at_all:f"}}, "#/mocks/f/python: 'nowhere_at_all:f' cannot be used"),
        ({"f": {"recorded": "none.jsonl"}}, "#/mocks/f/recorded: .*none.jsonl"),
        ({"f": {"recorded": "../x.jsonl"}}, "#/mocks/f/recorded: "),
        ({"f": {"recorded": "bad.jsonl"}}, "#/mocks/f/recorded: 'bad.jsonl', line 2: "),
        ({"f": {"recorded": "empty.jsonl"}}, "#/mocks/f/recorded: there is no call of the tool 'f' in"),
        ({"*": {"recorded": "empty.jsonl"}}, "there is no call of a tool in 'empty.jsonl'; record a session"),
    ],
)  # fmt: skip
def test_a_mock_that_is_none_is_named(tmp_path: Path, mocks: Any, reason: str) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n{\n")
    (tmp_path / "empty.jsonl").write_text('{"kind": "model", "name": "f"}\n3\n\n')
    with pytest.raises(ScenarioError, match=reason):
        made(tmp_path, mocks)


def test_cases_that_share_some_calls_are_all_reached(tmp_path: Path) -> None:
    whens = [{"a": 1, "b": 2}, {"a": 1, "c": True}, {"c": 1}, {"a": {}}, {"a": {"b": 1}}, {"a": 1}, {}]
    (mock,) = made(tmp_path, {"f": [{"when": when, "returns": 1} for when in whens]}).mocks
    assert [case.when for case in mock.cases] == [*whens[:-1], None], "an empty one is none"


ALL: dict[str, Any] = {
    "a": {"returns": None},
    "b": [{"when": {"n": 1}, "raises": "x"}, {"sequence": [{"returns": 1}, {"raises": "y"}]}],
    "c": {"python": "json:dumps"},
    "d": {"recorded": "session.jsonl"},
    "*": {"real": True},
}


def written(folder: Path, output: str = "42") -> None:
    call = {"kind": "tool", "name": "d", "input": {"x": 1.5}, "output": output}
    (folder / "session.jsonl").write_text(json.dumps(call) + "\n")


def test_mocks_are_part_of_what_the_agent_meets(tmp_path: Path) -> None:
    written(tmp_path)
    first = made(tmp_path, ALL)
    assert made(tmp_path, ALL).stamp == first.stamp
    assert made(tmp_path, ALL | {"a": {"returns": 0}}).stamp != first.stamp
    written(tmp_path, "43")
    other = made(tmp_path, ALL)
    assert (other.stamp, other.seen) != (first.stamp, first.seen)
    assert other.stamp != first.stamp
    plain = scenario("s", folder=tmp_path, prompt="p", checks=[{"kind": "exact", "value": "3"}])
    assert "mocks" not in plain.seen


def test_the_code_of_a_mock_is_part_of_it_where_it_is_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mock_of_a_bank.py"
    file.write_text("def pay():\n    return 1\n")
    mocks = {"f": [{"when": {"n": 1}, "python": "mock_of_a_bank:pay"}, {"python": "json:dumps"}]}
    first = made(tmp_path, mocks)
    monkeypatch.delitem(sys.modules, "mock_of_a_bank")
    assert made(tmp_path, mocks).stamp == first.stamp
    file.write_text("def pay():\n    return 2\n")
    other = made(tmp_path, mocks)
    assert (other.stamp != first.stamp, other.seen != first.seen) == (True, True)
    assert [bool(case.sha256) for case in other.mocks[0].cases] == [True, False]
    assert from_wire(Scenario, json.loads(json.dumps(to_wire(other)))).mocks == other.mocks


def test_a_mock_in_an_archive_is_used_without_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "mocks.zip", "w") as archive:
        archive.writestr("mock_in_an_archive.py", "def pay():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path / "mocks.zip")
    monkeypatch.delitem(sys.modules, "mock_in_an_archive", raising=False)
    (mock,) = made(tmp_path, {"f": {"python": "mock_in_an_archive:pay"}}).mocks
    assert mock.cases[0].sha256 == ""


def test_a_mock_whose_module_ends_the_process_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mock_that_exits.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(ScenarioError, match=r"'mock_that_exits:pay' cannot be used: SystemExit\(3\)"):
        made(tmp_path, {"f": {"python": "mock_that_exits:pay"}})


def test_mocks_survive_a_record_and_the_wire(tmp_path: Path) -> None:
    written(tmp_path)
    first = made(tmp_path, ALL)
    assert from_wire(Scenario, json.loads(json.dumps(to_wire(first)))).mocks == first.mocks
    placed = Scenario(
        **{name: getattr(first, name) for name in Scenario.__dataclass_fields__} | {"source": ""}
    )
    assert checked(placed, tmp_path, KINDS).mocks == first.mocks


def test_of_equal_calls_in_several_sessions_the_first_result_counts(tmp_path: Path) -> None:
    def session(scenario: str, *results: str) -> str:
        frames = [{"kind": "tool", "name": "f", "input": {"n": 1}, "output": result} for result in results]
        return json.dumps({"scenario": scenario, "frames": frames})

    path = tmp_path / "session.jsonl"
    path.write_text("\n".join([session("s", "one", "two"), session("s", "late"), session("other", "wrong")]))
    assert [call[2] for call in read_calls(path, "s", "f")] == ["one", "two"]
    assert [call[2] for call in read_calls(path, "nobody", "*")] == ["one", "two"]
    path.write_text("\n".join([session("other", "wrong"), session("s", "one")]))
    assert [call[2] for call in read_calls(path, "s", "f")] == ["one"]
    frames = [{"kind": "tool", "name": name, "input": {"n": 1}, "output": name} for name in "fg"]
    more = [
        json.dumps({"scenario": name, "frames": [frame]}) for name, frame in zip("st", frames, strict=True)
    ]
    path.write_text("\n".join(more))
    assert sorted(call[2] for call in read_calls(path, "nobody", "*")) == ["f", "g"]
    assert [call[2] for call in read_calls(path, "nobody", "g")] == ["g"]


def test_calls_are_equal_by_name_and_arguments_whatever_their_numbers_look_like(tmp_path: Path) -> None:
    assert key_of("f", {"a": [40.0], "b": {"c": 1.0}}) == key_of("f", {"b": {"c": 1}, "a": (40,)})
    assert key_of("f", None) == key_of("f", {})
    assert len({key_of("f", {"a": 1}), key_of("f", {"a": 1.5}), key_of("g", {"a": 1}), key_of("f", {})}) == 4
    assert (plain(1.0), plain(True), plain("1.0"), plain(None)) == (1, True, "1.0", None)
    assert type(plain(1.0)) is int


def test_a_recorded_failure_is_one_again_and_lines_of_frames_are_one_session(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    frames = [
        {"kind": "tool", "name": "f", "input": {"n": 1}, "error": "no such n"},
        {"kind": "tool", "name": "g", "output": "2"},
        {"kind": "model", "name": "f", "output": "3"},
    ]
    path.write_text(
        "\n".join([json.dumps(frames[0]), "", json.dumps({"frame": frames[1]}), json.dumps(frames[2])])
    )
    failed, done = read_calls(path, "s", "*")
    assert (failed[0], done) == ("f", ["g", None, "2", None])
    assert result_of(done) == "2"
    with pytest.raises(ToolFailure, match="no such n"):
        result_of(failed)
    assert read_calls(path, "s", "g") == [done]


def test_a_recording_has_as_many_calls_as_it_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(json.dumps({"kind": "tool", "name": "f", "input": {"n": n}}) for n in range(3)))
    monkeypatch.setattr(recorded_calls, "CALLS_MAX", 3)
    assert len(read_calls(path, "s", "f")) == 3
    monkeypatch.setattr(recorded_calls, "CALLS_MAX", 2)
    with pytest.raises(ValueError, match=r"there are 3 calls in 'calls.jsonl', more than 2"):
        read_calls(path, "s", "f")


def test_a_real_tool_has_no_value_and_a_single_case_no_place(tmp_path: Path) -> None:
    (mock,) = made(tmp_path, {"f": {"real": True}}).mocks
    assert [(case.kind, case.value, case.when) for case in mock.cases] == [("real", None, None)]
    with pytest.raises(ScenarioError, match=r"#/mocks/f/0: no call reaches|#/mocks/f/1: no call reaches"):
        made(tmp_path, {"f": [{"when": {"a": 1}, "returns": 1}, {"when": {"a": 1}, "returns": 2}]})
