"""The file of attempts that others made: read whole once, and again group by group."""

import json
import os
from pathlib import Path

import pytest
from support.evidence import GROUPS, group, write

from pytest_tfgrpo.core.errors import EvidenceError
from pytest_tfgrpo.suite import evidence_file
from pytest_tfgrpo.suite.evidence_file import EvidenceFile

HEADER = '{"schema":"tfgrpo.evidence/1"}\n'
ATTEMPTS = [{"total_reward": 1, "answer": ""}, {"total_reward": 0, "answer": ""}]


def line(**changes: object) -> str:
    value = {"domain": "orders", "prompt": "Where is order 17?", "attempts": ATTEMPTS} | changes
    return json.dumps({key: of for key, of in value.items() if of is not None}) + "\n"


def attempt(**changes: object) -> str:
    return line(attempts=[ATTEMPTS[0] | changes, ATTEMPTS[1]])


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


DEEP = {"kind": "tool", "name": "x", "input": nested(100)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: it is empty, where a header of 'tfgrpo.evidence/1' should be"),
        ("[]\n", "1: [] is not an object"),
        ('{"schema":"tfgrpo.evidence/2"}\n', "1: #/schema: 'tfgrpo.evidence/2' is not the schema"),
        (HEADER.replace("}", ',"seed":-1}'), "1: #/seed: -1 "),
        (HEADER + "\n", "2: not a JSON value in UTF-8"),
        (HEADER + '{"a":1,"a":2}\n', "2: not a JSON value in UTF-8: a key occurs twice"),
        (HEADER + line().replace('"total_reward": 1', '"total_reward": NaN'), "2: not a JSON value in UTF-8"),
        (HEADER + attempt(total_reward=1.5), "2: #/attempts/0/total_reward: 1.5 "),
        (HEADER + attempt(total_reward=True), "2: #/attempts/0/total_reward: True "),
        (HEADER + attempt(cost=1), "2: #/attempts/0/cost: "),
        (HEADER + attempt(steps=[DEEP]), "2: nested more than 64 levels deep"),
        (HEADER + attempt(answer="\ud800"), "2: a text holds half a surrogate pair"),
        (HEADER + line(prompt=None), "2: #: missing key 'prompt'"),
        (HEADER + line(prompt=" \n"), "2: #/prompt: the prompt is blank"),
        (HEADER + line(prompt="x" * 200_001), "2: #/prompt: "),
        (HEADER + line(id="../x"), "2: #/id: "),
        (HEADER + line(attempts=ATTEMPTS[:1]), "2: #/attempts: "),
        (HEADER + line(id="a") + line() + line(id="a"), "4: #/id: group 'a' stands on line 2 too"),
        (HEADER + line() + line(), "3: #/id: group "),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) and ":" in value[:4] else "",
)
def test_a_bad_file_is_refused_by_line_and_key(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(EvidenceError) as error:
        EvidenceFile(path)
    assert str(error.value).startswith(f"{path}:{said}")


def test_a_whole_surrogate_pair_is_a_character(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_text(HEADER + line(prompt="Where? \U0001f600"))
    assert b"\\ud83d" in path.read_bytes()
    assert [group.prompt for group in EvidenceFile(path).groups.values()] == ["Where? \U0001f600"]


def test_all_that_is_wrong_with_a_line_is_said(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_text(HEADER + attempt(total_reward=1.5, cost=1))
    with pytest.raises(EvidenceError) as error:
        EvidenceFile(path)
    assert [text.split("#")[1].split(":")[0] for text in str(error.value).splitlines()] == [
        "/attempts/0/cost",
        "/attempts/0/total_reward",
    ]


def test_half_a_surrogate_pair_may_be_written_in_capitals(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_text(HEADER + attempt(answer="\ud800").replace("\\ud800", "\\uD800"))
    with pytest.raises(EvidenceError, match="2: a text holds half a surrogate pair"):
        EvidenceFile(path)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_bytes(HEADER.encode() + b"\xff\n")
    with pytest.raises(EvidenceError, match=":2: not a JSON value in UTF-8"):
        EvidenceFile(path)


def test_lines_and_prompts_have_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "evidence.jsonl")
    monkeypatch.setattr(evidence_file, "PROMPTS_MAX", 100)
    with pytest.raises(EvidenceError, match="the prompts have more than 100 characters"):
        EvidenceFile(path)
    monkeypatch.setattr(evidence_file, "LINE_MAX", 100)
    with pytest.raises(EvidenceError, match=":2: the line is longer than 100 bytes"):
        EvidenceFile(path)


def test_a_folder_and_a_pipe_are_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("", "Is a directory"),
        ("pipe", "it is not a regular file"),
        ("gone", "No such file"),
    ):
        with pytest.raises(EvidenceError, match=said):
            EvidenceFile(tmp_path / name)


def test_attempts_are_read_group_by_group(tmp_path: Path) -> None:
    file = EvidenceFile(write(tmp_path / "evidence.jsonl"))
    assert list(file.groups) == [one.id for one in GROUPS]
    for one in reversed(GROUPS):
        assert file.attempts(one.id) == one.attempts
        assert file.groups[one.id].attempts == len(one.attempts)


def test_a_group_without_an_id_is_named_by_what_it_holds(tmp_path: Path) -> None:
    unnamed = [group(1, id=""), group(2, id="")]
    first = EvidenceFile(write(tmp_path / "a.jsonl", unnamed))
    second = EvidenceFile(write(tmp_path / "b.jsonl", reversed(unnamed)))
    assert set(first.groups) == set(second.groups) == {one.key for one in unnamed}
    assert first.stamp != second.stamp


def test_a_file_that_changes_under_a_run_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "evidence.jsonl")
    file = EvidenceFile(path)
    write(path, [group(1, 0.8, 0.1, 0.2)])
    with pytest.raises(EvidenceError, match=":2: it has changed while the run read it; restore it"):
        file.attempts("g1")


def test_a_file_may_be_as_large_in_every_way_as_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "e.jsonl"
    deep = {"kind": "tool", "name": "x", "input": nested(58)}
    path.write_text(HEADER + attempt(steps=[deep]) + line(id="b", prompt="x"))
    longest = max(map(len, path.read_bytes().splitlines(keepends=True)))
    prompts = len("Where is order 17?") + 1
    for name, most, what in (
        ("LINE_MAX", longest, "the line is longer than"),
        ("PROMPTS_MAX", prompts, "the prompts have more than"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(evidence_file, name, most)
            assert len(EvidenceFile(path).groups) == 2
            patch.setattr(evidence_file, name, most - 1)
            with pytest.raises(EvidenceError, match=what):
                EvidenceFile(path)
    value = json.loads(attempt(steps=[deep]))
    depth = evidence_file.extent(value)[1]
    for most, fits in ((depth, True), (depth - 1, False)):
        monkeypatch.setattr(evidence_file, "DEPTH_MAX", most)
        if fits:
            assert EvidenceFile(path).groups
            continue
        with pytest.raises(EvidenceError, match=f"nested more than {most} levels deep"):
            EvidenceFile(path)


def test_a_group_has_spread_where_its_rewards_differ(tmp_path: Path) -> None:
    same = [{"total_reward": 0.5, "answer": ""}] * 2
    path = tmp_path / "e.jsonl"
    path.write_text(HEADER + line(id="a") + line(id="b", attempts=same))
    file = EvidenceFile(path)
    assert [(one.key, one.has_spread, one.attempts, one.line) for one in file.groups.values()] == [
        ("a", True, 2, 2),
        ("b", False, 2, 3),
    ]
    assert [one.total_reward for one in file.attempts("a")] == [1.0, 0.0]
    assert [one.total_reward for one in file.attempts("b")] == [0.5, 0.5]
    assert [one.total_reward for one in file.attempts("a")] == [1.0, 0.0]
