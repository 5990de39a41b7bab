"""Upkeep of a recording: what it tells of itself, what it finds wrong, what it removes."""

import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.recordings import make_call, make_entry, make_run, write_recording

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.records import Failure, Run
from pytest_tfgrpo.recording.entries import RecordingEntry, key_of
from pytest_tfgrpo.recording.file import Recording
from pytest_tfgrpo.recording.lines import encode
from pytest_tfgrpo.recording.maintenance import prune, stat, use_of, verify
from pytest_tfgrpo.recording.writing import record

OTHER = {"name": "openai:other", "identity": {}}


def test_a_recording_tells_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry(scenario=f"s{n}") for n in range(3)], [make_call()]))
    record(path, make_run([make_entry(seed=9)], actor=OTHER))
    text = "\n".join(stat(path))
    assert "rollouts: 4, model calls: 1, redacted: 0" in text
    assert [line.split()[:2] for line in text.splitlines()[3:]] == [
        ["model", "calls"],
        ["rollouts", "openai:other"],
        ["rollouts", "python:agent:solve"],
    ]


def test_a_recording_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry(scenario=f"s{n}", answer="x" * 50_000) for n in range(40)]))
    tracemalloc.start()
    try:
        assert " 40 " in list(stat(path))[-1]
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 2
    finally:
        tracemalloc.stop()


def test_what_is_recorded_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    record(path, make_run([make_entry(answer=secret), make_entry(seed=6)], [make_call(answer="x " + secret)]))
    assert list(verify(path)) == []


def lines(*entries: RecordingEntry | bytes) -> list[bytes]:
    return [entry if isinstance(entry, bytes) else encode(entry) for entry in entries]


FIRST, SECOND = sorted([make_entry(seed=1), make_entry(seed=2)], key=key_of)
DAMAGED = encode(SECOND).replace(b'"answer":"3"', b'"answer":"4"')


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (lines(SECOND, FIRST), [":3: out of order"]),
        (lines(FIRST, FIRST, SECOND), [":3: the same entry is on line 2", ":1: the header states 2"]),
        (lines(FIRST, DAMAGED), [":3: the line was changed", ":1: the header states 2"]),
        (lines(FIRST), [":1: the header states 2"]),
        (lines(FIRST, replace(SECOND, seed=3)), [":3: the fingerprint is not that of"]),
        (
            lines(FIRST, make_entry(seed=2, actor="f" * 16)),
            [":3: out of order", ":3: the header names no actor 'ffffffffffffffff'"],
        ),
        (lines(FIRST, replace(SECOND, answer="sk-abcdefghijklmnop0123")), [":3: a secret: /answer: api_key"]),
        (lines(FIRST, b"<<<<<<< HEAD"), [":3: not JSON", ":1: the header states 2"]),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, found: list[bytes], said: list[str]) -> None:
    path = write_recording(tmp_path / "r.jsonl", [FIRST, SECOND])
    header = path.read_bytes().splitlines()[0]
    path.write_bytes(b"".join(line + b"\n" for line in [header, *found]))
    problems = [problem.removeprefix(str(path)) for problem in verify(path)]
    wanted = [part for part in said if "out of order" not in part or any(part in p for p in problems)]
    assert len(problems) == len(wanted), problems
    assert all(any(p.startswith(part) for p in problems) for part in wanted)


def test_a_header_that_was_changed_is_named(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.jsonl", [FIRST])
    path.write_bytes(path.read_bytes().replace(b'"sha256":"1', b'"sha256": "2'))
    problems = list(verify(path))
    assert [p.removeprefix(f"{path}:1: ") for p in problems] == [
        "the header is not in canonical form",
        "the stamp of actor 'python:agent:solve' is not that of its name and identity",
    ]


def use(run: Run) -> Any:
    return use_of(run, ())


def test_what_no_run_uses_is_removed_and_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    both = make_run([make_entry(scenario="old"), make_entry(scenario="kept")], [make_call()])
    record(path, both)
    now = make_run([make_entry(scenario="kept")])
    before = path.read_bytes()
    told = list(prune(path, [use(now)], others=False, dry=True))
    assert told == ["would remove 1 rollout of old", "would remove 1 model call of s", told[-1]]
    assert path.read_bytes() == before
    told = list(prune(path, [use(now)], others=False, dry=False))
    assert told[-1] == f"{path}: removed 2 of 3 entries"
    recording = Recording.open(path)
    assert [key[0] for key in recording.lines] == ["kept"]
    assert recording.header is not None
    assert recording.header.models == ()
    assert list(verify(path)) == []


def test_a_line_whose_key_holds_the_checks_stays_for_a_run_that_uses_it(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.jsonl", [make_entry(), make_entry(scenario="old")])
    told = list(prune(path, [use(make_run([make_entry(scenario="count-words")]))], others=False, dry=False))
    assert told[0] == "removed 1 rollout of old"
    assert [key[0] for key in Recording.open(path).lines] == ["count-words"]


def test_nothing_to_remove_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run = make_run([make_entry()], [make_call()])
    record(path, run)
    inode = path.stat().st_ino
    assert list(prune(path, [use(run)], others=False, dry=False)) == [f"{path}: removed 0 of 2 entries"]
    assert path.stat().st_ino == inode


def test_an_actor_without_a_run_is_removed_only_when_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run, other = make_run([make_entry()]), make_run([make_entry()], actor=OTHER)
    record(path, run)
    record(path, other)
    with pytest.raises(RecordingError, match="also holds answers of openai:other; name a run of each"):
        list(prune(path, [use(run)], others=False, dry=False))
    assert list(prune(path, [use(run), use(other)], others=False, dry=False))[-1].endswith("0 of 2 entries")
    assert list(prune(path, [use(run)], others=True, dry=False))[-1].endswith("1 of 2 entries")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "incomplete"}, "is incomplete"),
        ({"partial_selection": True}, "ran on part of the suite"),
        ({"identities": {}}, "was made by a version that did not record"),
    ],
)
def test_a_run_that_does_not_tell_what_others_need_removes_nothing(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecordingError, match=said):
        use(replace(make_run([make_entry()]), **changes))


def test_a_replay_that_lacked_answers_removes_nothing() -> None:
    miss = make_entry(status="error", answer="", failure=Failure(code="replay_miss", message="x"))
    run = make_run([make_entry(seed=1), miss])
    (group,) = run.phases[0].groups
    with pytest.raises(RecordingError, match="is a replay with missing answers"):
        use_of(run, group.rollouts)


def test_a_run_of_another_recording_removes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry(scenario="here")]))
    with pytest.raises(RecordingError, match="uses nothing from"):
        list(prune(path, [use(make_run([make_entry(scenario="there")]))], others=False, dry=False))


def test_removed_calls_about_no_scenario_have_a_dash_for_one(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    kept, gone = make_run([make_entry()], [make_call()]), make_call(subject="", fingerprint="d" * 64)
    record(path, make_run([make_entry(), make_entry(scenario="s2", seed=6)], [make_call(), gone]))
    for dry, verb in ((True, "would remove"), (False, "removed")):
        assert list(prune(path, [use_of(kept, [])], others=False, dry=dry)) == [
            f"{verb} 1 model call of -",
            f"{verb} 1 rollout of s2",
            f"{path}: {verb} 2 of 4 entries",
        ]
    assert len(Recording.open(path).lines) == 2
    assert list(verify(path)) == []


def test_a_reader_sees_who_answered_how_often_and_how_much_of_the_file_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_recording(tmp_path / "r.jsonl", [FIRST, SECOND, make_entry(scenario="s2", actor="f" * 16)])
    path.write_bytes(path.read_bytes().replace(b'"updated":"2026-01-31"', b'"updated":"2026-03-01"'))
    texts = list(stat(path))
    assert texts[1] == f"  created 2026-01-31, updated 2026-03-01, {path.stat().st_size} bytes"
    size = sum(len(encode(one)) + 1 for one in (FIRST, SECOND))
    rows = {line.split()[1]: line.split()[2:] for line in texts[3:]}
    assert rows["python:agent:solve"] == [FIRST.actor[:6], "1", "2", str(size)]
    assert rows["unknown"][:3] == ["ffffff", "1", "1"]
    empty = write_recording(tmp_path / "empty.jsonl", [])
    assert len(list(stat(empty))) == 2
    for read in (stat, verify):
        with pytest.raises(RecordingError, match=r"there is no recording .*missing, or it is empty"):
            list(read(tmp_path / "missing"))
    with pytest.raises(RecordingError, match=r"there is no recording .*missing, or it is empty"):
        list(prune(tmp_path / "missing", [], others=True, dry=False))


def test_each_of_several_faults_is_named_by_the_line_that_it_is_about(tmp_path: Path) -> None:
    third = make_entry(scenario="x", answer="sk-abcdefghijklmnop0123", redacted=2)
    path = write_recording(tmp_path / "r.jsonl", [FIRST, SECOND, third])
    assert [p.removeprefix(str(path)) for p in verify(path)] == [":4: a secret: /answer: api_key"]
    header = path.read_bytes().splitlines()[0]
    rows = [header, *map(encode, (third, FIRST, SECOND, FIRST, FIRST))]
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    assert [p.removeprefix(str(path)) for p in verify(path)] == [
        ":2: a secret: /answer: api_key",
        ":3: out of order: it belongs before the line above",
        ":5: the same entry is on line 3",
        ":6: the same entry is on line 3",
        ":1: the header states 3 entries of kind 'rollout', there are 5",
    ]
    path.write_bytes(path.read_bytes().replace(header, header.replace(b"1" * 64, b"sk-abcdefghijklmnop0123")))
    assert any(":1: a secret: /actors/0/identity/sha256" in problem for problem in verify(path))
    spaced = encode(FIRST)[:-1].replace(b'":', b'": ') + b"}"
    path.write_bytes(header + b"\n" + spaced + b"\n")
    assert any(":2: the line was changed" in problem for problem in verify(path))


def test_a_pruned_header_names_those_who_still_answer_and_the_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    run = make_run([make_entry()], [make_call()])
    for name in ("b", "a", "c"):
        record(path, make_run([make_entry(seed=9)], actor={"name": name, "identity": {}}))
    record(path, run)
    with pytest.raises(RecordingError, match="also holds answers of a, b, c; name a run of each"):
        list(prune(path, [use(run)], others=False, dry=False))
    monkeypatch.setattr("pytest_tfgrpo.recording.maintenance.utc_now", lambda: "2030-05-06T00:00:00Z")
    list(prune(path, [use(run)], others=True, dry=False))
    header = Recording.open(path).header
    assert header is not None
    assert ([actor.name for actor in header.actors], header.updated) == (["python:agent:solve"], "2030-05-06")
    assert [model.name for model in header.models] == ["openai:m"]


def test_scenarios_count_once_however_often_they_were_run(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    runs = [make_entry(scenario=f"s{n}") for n in range(3)] + [make_entry(scenario="s0", seed=9)]
    record(path, make_run(runs))
    assert re.search(r"rollouts .* [0-9a-f]{6} +3 +4 ", "\n".join(stat(path)))
