"""The file of a recording: what is read, what is refused and where, what a merge keeps."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_frame
from support.recordings import ACTOR, make_call, make_entry, make_run, record_five, write_recording

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.records import Failure, FileChange, Usage
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.recording import file
from pytest_tfgrpo.recording.entries import MISS, CallEntry, RecordingEntry, RolloutEntry, key_of
from pytest_tfgrpo.recording.file import Recording
from pytest_tfgrpo.recording.lines import decode, encode, find_secrets, key_in, without_secrets
from pytest_tfgrpo.recording.writing import check_recordable, record

ENTRIES: list[RecordingEntry] = [
    make_entry(),
    make_entry(scenario='odd "name" \\ \u00e9', answer="\ud800 \x00 \u2028 \U0001f600"),
    make_entry(
        frames=(make_frame(input={"a": [1, 2.5, None, {"b": "x"}]}, usage=Usage(prompt=1, completion=2)),)
    ),
    make_entry(status="failed", failure=Failure(code="timeout", message="no answer within 1 s")),
    make_entry(
        files=(FileChange(name="a/b", text="x"), FileChange(name="c", hex="00ff"), FileChange(name="d"))
    ),
    make_entry(files=None),
    CallEntry(scenario="s", fingerprint="f" * 64, model="openai:m", purpose="learn", prompt="p" * 64),
    CallEntry(
        fingerprint="e" * 64,
        take=3,
        model="openai:m",
        purpose="judge",
        prompt="p" * 64,
        answer="yes",
        usage=Usage(prompt=5, completion=1, reasoning=1, cached=2),
        cost_usd=0.0,
        latency_ms=0.1,
        finish="stop",
        error="server: 503",
    ),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=range(len(ENTRIES)))
def test_an_entry_survives_its_line(entry: RecordingEntry) -> None:
    line = encode(entry)
    assert line.isascii()
    assert b"\n" not in line
    assert decode(line) == entry
    assert key_in(line) == key_of(entry)
    assert violations("recording", json.loads(line)) == []
    spaced = json.dumps(json.loads(line)).encode()
    assert key_in(spaced) == key_of(entry)


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.jsonl", ENTRIES[1:3])
    recording = Recording.open(path)
    assert [recording.entry(key) for key in recording.lines] == sorted(ENTRIES[1:3], key=key_of)
    assert violations("recording", json.loads(path.read_bytes().splitlines()[0])) == []


GOOD = encode(make_entry())
OTHER = encode(make_entry(scenario="other"))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([b"{}"], ":1: it does not start with a header"),
        ([b"\xff"], ":1: not UTF-8"),
        ([b""], ":1: not JSON: Expecting value, column 1; is this a recording?"),
        ([b"[" * 100_000], ":1: it is nested too deeply"),
        ([b'{"schema":"tfgrpo.recording/1"}'], ":1: /: missing key"),
        ([b"HEADER", GOOD, GOOD], ":3: the same entry is on line 2"),
        ([b"HEADER", b"<<<<<<< ours", GOOD], ":2: the file has an unresolved merge conflict"),
        ([b"HEADER", GOOD, b"=======", OTHER], ":3: the file has an unresolved merge conflict"),
        ([b"HEADER", b"[]"], ":2: an entry is an object of kind"),
        ([b"HEADER", b'{"kind":"rollout"}'], ":2: /: missing key"),
        ([b"HEADER", b'{"kind":"rollout","seed":NaN}'], ":2: NaN is not a valid JSON number"),
        ([b"HEADER", b'{"kind":"rollout","seed":1e999}'], ":2: 1e999 is not a valid JSON number"),
        ([b"HEADER", b'{"kind":' + b"[" * 100_000], ":2: it is nested too deeply"),
        ([b"HEADER", b""], ":2: not JSON"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(tmp_path: Path, lines: list[bytes], said: str) -> None:
    path = write_recording(tmp_path / "r.jsonl", [])
    header = path.read_bytes().splitlines()[0]
    path.write_bytes(b"".join((header if line == b"HEADER" else line) + b"\n" for line in lines))
    with pytest.raises(RecordingError) as caught:
        Recording.open(path)
    assert str(path) + said in str(caught.value)
    with pytest.raises(RecordingError):
        check_recordable(path, {})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"answer":"3"', b'"answer":"4"', "its checksum does not match"),
        (b'"crc":"', b'"CRC":"', "its checksum does not match"),
    ],
)
def test_a_line_that_was_changed_by_hand_is_refused_when_it_is_used(
    tmp_path: Path, old: bytes, new: bytes, said: str
) -> None:
    path = write_recording(tmp_path / "r.jsonl", [make_entry()])
    path.write_bytes(path.read_bytes().replace(old, new))
    recording = Recording.open(path)
    with pytest.raises(RecordingError, match=rf"r\.jsonl:2: .*{said}"):
        recording.entry(key_of(make_entry()))


@pytest.mark.parametrize(
    "broken",
    [
        {"temperature": 3.0},
        {"status": "fine"},
        {"answer": 5},
        {"latency_ms": -1.0},
        {"seed": "x"},
        {"frames": ({"kind": "tool"},)},
        {"status": "failed"},
        {"failure": Failure(code="x", message="y")},
    ],
    ids=str,
)
def test_a_line_of_the_wrong_shape_is_refused_though_its_checksum_is_right(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="/"):
        decode(encode(make_entry(**broken)))


def test_a_line_that_does_not_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MAX_LINE", 10_000)
    path = write_recording(tmp_path / "r.jsonl", [])
    with path.open("ab") as out:
        out.write(b"x" * 1_000_000)
    with pytest.raises(RecordingError, match=r"r\.jsonl:2: the line has more than 10000 bytes"):
        Recording.open(path)


def test_a_torn_last_line_is_refused(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.jsonl", [make_entry()])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RecordingError, match=r"r\.jsonl:2: the last line is incomplete"):
        Recording.open(path)


def test_a_missing_and_an_empty_file_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("empty", "missing"):
        assert Recording.open(tmp_path / name).header is None


def test_recording_the_same_run_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    run = make_run([make_entry(scenario=f"s{n}", seed=n) for n in range(9)], [make_call()])
    path = tmp_path / "r.jsonl"
    first = record(path, run)
    assert (first.rollouts, first.calls, first.new) == (9, 1, 10)
    before, inode = path.read_bytes(), path.stat().st_ino
    assert record(path, run).new == 0
    assert (path.read_bytes(), path.stat().st_ino) == (before, inode)
    record(tmp_path / "again.jsonl", replace(run, run_id="run2"))
    assert (tmp_path / "again.jsonl").read_bytes() == before
    assert b"run1" not in before


def test_the_day_of_a_recording_stays_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    days: list[list[str]] = []
    for day, entries in (("01", 1), ("02", 1), ("03", 2)):
        monkeypatch.setattr(
            "pytest_tfgrpo.recording.writing.utc_now", lambda day=day: f"2026-01-{day}T00:00:00Z"
        )
        record(path, make_run([make_entry(seed=n) for n in range(entries)]))
        header = Recording.open(path).header
        assert header is not None
        days.append([header.created, header.updated])
    assert days == [["2026-01-01", "2026-01-01"], ["2026-01-01", "2026-01-01"], ["2026-01-01", "2026-01-03"]]


def the_answer(path: Path) -> str:
    recording = Recording.open(path)
    (key,) = recording.lines
    entry = recording.entry(key)
    assert isinstance(entry, RolloutEntry)
    return f"{entry.status} {entry.answer}"


def test_the_newer_answer_stays_but_an_error_never_replaces_one(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    error = make_entry(status="error", answer="", failure=Failure(code="provider", message="503"))
    for entry, kept in (
        (error, "error "),
        (make_entry(answer="first"), "ok first"),
        (make_entry(answer="second"), "ok second"),
        (error, "ok second"),
        (make_entry(status="failed", answer="", failure=Failure(code="crash", message="x")), "failed "),
    ):
        record(path, make_run([entry]))
        assert the_answer(path) == kept


def test_a_line_whose_key_held_the_checks_is_replaced_by_the_same_answer(tmp_path: Path) -> None:
    path, made = tmp_path / "r.jsonl", make_run([make_entry(answer="4")])
    write_recording(path, [make_entry(), make_entry(scenario="other")])
    assert record(path, made).new == 1
    found = [entry for key in Recording.open(path).lines if (entry := Recording.open(path).entry(key))]
    assert [(entry.scenario, entry.answer) for entry in found] == [("count-words", "4"), ("other", "3")]
    away = make_entry(status="error", failure=Failure(code="network", message="away"))
    write_recording(path, [make_entry()])
    assert record(path, make_run([away])).new == 0


def test_an_answer_without_its_files_never_replaces_the_same_with_them(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry(files=(FileChange(name="a", text="x"),), files_kept=True)]))
    before = path.read_bytes()
    assert record(path, make_run([make_entry()])).new == 0
    assert path.read_bytes() == before
    assert record(path, make_run([make_entry(answer="4")])).new == 1


def test_other_entries_of_the_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry(seed=1)]))
    record(path, make_run([make_entry(seed=2)], actor={"name": "other", "identity": {}}))
    recording = Recording.open(path)
    assert recording.header is not None
    assert [actor.name for actor in recording.header.actors] == ["other", ACTOR["name"]]
    assert len(recording.lines) == recording.header.rollouts == 2


def test_what_json_cannot_hold_is_counted_and_the_rest_recorded(tmp_path: Path) -> None:
    entries = [make_entry(seed=1), make_entry(seed=2, frames=(make_frame(input={"a": float("nan")}),))]
    written = record(
        tmp_path / "r.jsonl", make_run([*entries, make_entry(seed=3, frames=(make_frame(input=object()),))])
    )
    assert (written.rollouts, written.unfit) == (1, 2)


def test_a_secret_is_taken_out_and_counted() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    frame = make_frame(input={"token": secret, secret: 1}, output=f"{secret} {secret}")
    clean = without_secrets(
        make_entry(answer=secret, frames=(frame,), files=(FileChange(name="x", text=secret),))
    )
    line = encode(clean)
    assert secret.encode() not in line
    assert clean.redacted == 5
    assert find_secrets(json.loads(line)) == []
    assert file.REDACTED.search(line)
    assert not file.REDACTED.search(encode(make_entry(frames=(make_frame(input={"redacted": 5}),))))


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"


@pytest.mark.parametrize(
    "entry",
    [
        make_entry(status="error", failure=Failure(code="network", message=f"refused {SECRET}")),
        make_entry(extra={"header": SECRET}),
        CallEntry(fingerprint="c" * 64, model="m", purpose="learn", prompt="p", error=f"401 for {SECRET}"),
    ],
)
def test_a_secret_beside_the_answer_is_taken_out(entry: RecordingEntry) -> None:
    clean = without_secrets(entry)
    assert SECRET.encode() not in encode(clean)
    assert clean.redacted == 1


def test_calls_with_equal_messages_are_kept_each(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry()], [make_call(answer="one"), make_call(answer="two")]))
    recording = Recording.open(path)
    found = [entry for key in recording.lines if (entry := recording.entry(key))]
    assert [(e.take, e.answer) for e in found if isinstance(e, CallEntry)] == [(0, "one"), (1, "two")]


def test_tokens_that_would_spell_a_secret_are_taken_out_with_it() -> None:
    sampled = Sampled(kind="raw", logprobs=(-1.0, -2.0), token_ids=(5, 6), temperature=0.7)
    entry = make_entry(answer="3", frames=(make_frame(kind="model", sampled=sampled),))
    assert without_secrets(entry) == entry
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    clean = decode(encode(without_secrets(replace(entry, answer=secret))))
    assert isinstance(clean, RolloutEntry)
    assert clean.frames[0].sampled == Sampled(kind="raw", temperature=0.7, reason="redacted")
    assert decode(encode(entry)) == entry


def test_an_identity_with_a_secret_is_refused_before_the_run(tmp_path: Path) -> None:
    row = {"name": "command:./agent", "identity": {"argv": ["./agent", "--key", "sk-abcdefghijklmnop0123"]}}
    with pytest.raises(RecordingError, match="/identity/argv/2: api_key"):
        check_recordable(tmp_path / "r.jsonl", {"actor": row})


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry(seed=1)]))
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file.os, "fsync", full)
    with pytest.raises(RecordingError, match="No space left"):
        record(path, make_run([make_entry(seed=2)]))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["r.jsonl"]


def test_threads_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ThreadPoolExecutor() as workers:
        list(workers.map(lambda n: record_five(path, 10 * n), range(3)))
    assert len(Recording.open(path).lines) == 15


def test_where_a_secret_is_told_without_it() -> None:
    key, value = "sk-abcdefghijklmnop0123", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    found = find_secrets({"a\x1b[31m": [{key: value}]})
    assert found == ["/a/0/[redacted:api_key]: api_key", "/a/0/[redacted:api_key]: git_token"]


def test_a_check_before_the_run_writes_nothing(tmp_path: Path) -> None:
    check_recordable(tmp_path / "new" / "folder" / "r.jsonl", {})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "plain").touch()
    with pytest.raises(RecordingError, match="plain"):
        check_recordable(tmp_path / "plain" / "r.jsonl", {})


def entry_of(status: str, **changes: Any) -> RolloutEntry:
    codes = {"error": "provider", "failed": "crash"}
    failure = None if status == "ok" else Failure(code=codes[status], message="m")
    return make_entry(status=status, failure=failure, **changes)


@pytest.mark.parametrize(
    ("known", "new", "kept"),
    [
        (entry_of("ok", answer="1"), entry_of("ok", answer="2"), "2"),
        (entry_of("ok", answer="1"), entry_of("failed", answer="2"), "2"),
        (entry_of("ok", answer="1"), entry_of("error", answer="2"), "1"),
        (entry_of("failed", answer="1"), entry_of("error", answer="2"), "1"),
        (entry_of("error", answer="1"), entry_of("error", answer="2"), "2"),
        (entry_of("error", answer="1"), entry_of("ok", answer="2"), "2"),
        (entry_of("ok", files_kept=True, latency_ms=1.0), entry_of("ok", latency_ms=2.0), 1.0),
        (entry_of("ok", latency_ms=1.0), entry_of("ok", files_kept=True, latency_ms=2.0), 2.0),
        (entry_of("ok", files_kept=True, answer="1"), entry_of("ok", answer="2"), "2"),
        (entry_of("error", files_kept=True, answer="1"), entry_of("error", answer="1", latency_ms=9.0), 1.5),
        (entry_of("error", latency_ms=1.0), entry_of("error", latency_ms=2.0), 2.0),
    ],
)
def test_the_newer_of_two_answers_stays_but_no_error_in_the_place_of_an_answer(
    tmp_path: Path, known: RolloutEntry, new: RolloutEntry, kept: str | float
) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([known]))
    written = record(path, make_run([new]))
    (found,) = (Recording.open(path).entry(key) for key in Recording.open(path).lines)
    assert isinstance(found, RolloutEntry)
    assert (found.answer if isinstance(kept, str) else found.latency_ms) == kept
    assert written.new == ((found.answer, found.latency_ms) == (new.answer, new.latency_ms))


def test_rollouts_in_no_group_are_recorded_once_and_answers_that_a_replay_lacked_are_not(
    tmp_path: Path,
) -> None:
    run = make_run([make_entry()])
    (group,) = run.phases[0].groups
    (inside,) = group.rollouts
    lacked = Failure(code=MISS, message="m")
    missed = replace(inside, rollout_id="missed", index=7, seed=7, status="error", failure=lacked)
    outside = replace(inside, rollout_id="outside", index=8, seed=8)
    written = record(tmp_path / "r.jsonl", run, [replace(inside, answer="older"), missed, outside])
    assert (written.rollouts, written.new) == (2, 2)
    found = Recording.open(tmp_path / "r.jsonl")
    entries = [one for key in found.lines if isinstance(one := found.entry(key), RolloutEntry)]
    assert sorted((one.seed, one.answer) for one in entries) == [(5, "3"), (8, "3")]
    assert record(tmp_path / "s.jsonl", run).rollouts == 1


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ("ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2", ["/"]),
        ([1, "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2", 2.5, True], ["/1"]),
        ({"a": [0, {"b": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"}]}, ["/a/1/b"]),
        ({"a": 3, "b": None, "c": []}, []),
    ],
)
def test_the_place_of_a_secret_is_told_and_never_the_secret(value: Any, places: list[str]) -> None:
    found = find_secrets(value)
    assert [text.split(":")[0] for text in found] == places
    assert not any("ghp_" in text for text in found)
