"""Which file a replay names, and what is in it."""

import hashlib
from pathlib import Path

import pytest
from support.builders import make_scenario
from support.recordings import make_entry, write_recording

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.recording.file import locked
from pytest_tfgrpo.recording.place import digest_of, named
from pytest_tfgrpo.recording.replay import open_replay


def test_an_actor_follows_the_first_sign_unless_a_file_is_called_so(tmp_path: Path) -> None:
    assert named("r.jsonl", tmp_path) == ("r.jsonl", "")
    assert named("r.jsonl#openai:m#2", tmp_path) == ("r.jsonl", "openai:m#2")
    (tmp_path / "r#1.jsonl").touch()
    assert named("r#1.jsonl", tmp_path) == ("r#1.jsonl", "")


def test_the_digest_is_that_of_the_whole_file_and_of_none_is_empty(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    (tmp_path / "r.jsonl").write_bytes(data)
    assert digest_of(tmp_path / "r.jsonl") == hashlib.sha256(data).hexdigest()
    assert digest_of(tmp_path / "none") == ""


def test_what_is_no_recording_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    for argument, said in (
        ("", "replay needs a recording"),
        ("#actor", "replay needs a recording"),
        ("none.jsonl#actor", r"there is no recording .*none\.jsonl"),
        ("empty.jsonl", r"empty\.jsonl is empty"),
    ):
        with pytest.raises(RecordingError, match=rf"{said}.*; record it with --tfgrpo-record=FILE first"):
            open_replay(argument, tmp_path)
    with (
        pytest.raises(RecordingError, match="cannot write the recording"),
        locked(tmp_path / "empty.jsonl" / "r"),
    ):
        pass


def test_a_replay_spends_nothing_and_looks_at_files_where_it_knows_no_better(tmp_path: Path) -> None:
    write_recording(tmp_path / "r.jsonl", [make_entry()])
    replay = open_replay("r.jsonl", tmp_path)
    assert replay.actor.bound(3) == {"usd": 0.0, "tokens": 0.0}
    assert not replay.actor.paid
    replay.begin([make_scenario()], {})
    assert (replay.looks_at_files(make_scenario().id), replay.looks_at_files("unknown")) == (False, True)
