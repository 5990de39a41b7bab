"""A run that is merged into a recording: what is refused before, what is said of it, and which rows stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_frame
from support.recordings import ACTOR, make_call, make_entry, make_run, write_recording

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.records import Failure
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.recording import writing
from pytest_tfgrpo.recording.entries import RolloutEntry
from pytest_tfgrpo.recording.file import Recording
from pytest_tfgrpo.recording.lines import Header, encode
from pytest_tfgrpo.recording.writing import Written, check_recordable, describe, record

AWAY = Failure(code="network", message="away")


def header_of(path: Path) -> Header:
    header = Recording.open(path).header
    assert header is not None
    return header


@pytest.mark.parametrize(("redacted", "unfit"), [(0, 0), (1, 0), (0, 1), (2, 3)])
def test_what_was_written_is_said_with_what_is_not_as_it_was(redacted: int, unfit: int) -> None:
    first, *rest = describe("r.jsonl", Written(rollouts=1, calls=2, new=3, redacted=redacted, unfit=unfit))
    assert first == "recorded 1 rollout and 2 model calls in r.jsonl (3 new)"
    expected = [f"  {redacted} of them contained a secret"] * (redacted > 0)
    expected += [f"  {unfit} could not be recorded: too large, or not JSON"] * (unfit > 0)
    assert [text.split(", now redacted")[0] for text in rest] == expected


def test_a_place_for_no_file_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RecordingError, match=r"is a folder; name a file, for example recording\.jsonl"):
        check_recordable(tmp_path, {})
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match=r"cannot read the recording|no file can be written in .*file"):
        check_recordable(tmp_path / "file" / "r.jsonl", {})
    check_recordable(tmp_path / "new" / "folder" / "r.jsonl", {"actor": dict(ACTOR)})
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(writing.os, "access", lambda folder, _: folder != tmp_path)
    with pytest.raises(RecordingError, match=f"no file can be written in {tmp_path}$"):
        check_recordable(tmp_path / "new" / "r.jsonl", {})


def test_a_line_as_long_as_the_limit_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run([make_entry()])
    ((line, _),) = writing._lines(run, ())[0].values()
    for limit, unfit in ((len(line) + 1, 0), (len(line), 1)):
        monkeypatch.setattr(writing, "MAX_LINE", limit)
        written = record(tmp_path / f"{limit}.jsonl", run)
        assert (written.unfit, written.rollouts) == (unfit, 1 - unfit)


def test_a_known_answer_leaves_the_file_alone_and_what_is_new_is_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry()]))
    written = record(path, make_run([make_entry(), make_entry(seed=6)], [make_call()]))
    assert written == Written(rollouts=2, calls=1, new=2, redacted=0, unfit=0)
    assert [model.name for model in header_of(path).models] == ["openai:m"]
    record(path, make_run([make_entry(seed=7)]))
    assert [model.name for model in header_of(path).models] == ["openai:m"], "another run has made no call"


def test_the_settings_that_shaped_answers_and_prompts_are_kept_with_the_actor(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    settings = {"max_tokens": 10, "prompts": "packs/one", "eval_rollouts": 4, "seed": 0, "out": "out"}
    run = replace(make_run([make_entry()]), settings=settings)
    record(path, run)
    (row,) = header_of(path).actors
    assert row.settings["max_tokens"] == 10
    assert row.settings["eval_rollouts"] == 4
    assert not {"out", "actor"} & row.settings.keys()
    before = path.read_bytes()
    record(path, replace(run, settings=settings | {"max_tokens": 20}))
    assert path.read_bytes() == before, "no answer came with the other setting"


def test_an_actor_without_a_new_answer_is_named_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry()]))
    other = {"name": "another", "identity": {}}
    written = record(path, make_run([], actor=other))
    assert written.new == 0
    assert [actor.name for actor in header_of(path).actors] == ["another", ACTOR["name"]]


def test_an_error_takes_the_place_of_an_error_and_other_frames_that_of_the_same_answer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.jsonl"
    for message in ("first", "second"):
        failure = Failure(code="network", message=message)
        record(path, make_run([make_entry(status="error", answer="", failure=failure)]))
    kept = Recording.open(path)
    (entry,) = (kept.entry(key) for key in kept.lines)
    assert isinstance(entry, RolloutEntry)
    assert entry.failure == Failure(code="network", message="second")
    record(path, make_run([make_entry(files_kept=True)]))
    assert record(path, make_run([make_entry(frames=(make_frame(),))])).new == 1
    away = make_entry(status="error", answer="3", failure=AWAY, frames=(make_frame(),))
    assert record(path, make_run([away])).new == 0


def test_an_answer_under_its_own_key_is_replaced_and_not_the_one_under_the_older_key(tmp_path: Path) -> None:
    run = make_run([make_entry(answer="4")])
    (scenario,) = run.scenarios
    own = make_entry(seen=stamp(scenario.seen), answer="3")
    path = write_recording(tmp_path / "r.jsonl", [make_entry(answer="older"), own])
    assert record(path, run).new == 1
    kept = Recording.open(path)
    found = [entry.answer for key in kept.lines if isinstance(entry := kept.entry(key), RolloutEntry)]
    assert sorted(found) == ["4", "older"]
    assert encode(own) not in path.read_bytes()


def test_actors_of_a_header_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for name in ("m", "z", "a"):
        record(path, make_run([make_entry()], actor={"name": name, "identity": {}}))
    assert [actor.name for actor in header_of(path).actors] == ["a", "m", "z"]
    row: Any = {"name": "b", "identity": {}}
    record(path, replace(make_run([make_entry()]), identities={"actor": row}, scenarios=(
        replace(make_run([make_entry()]).scenarios[0], checks=(Check(kind="exact", params={"value": "3"}),)),
    )))  # fmt: skip
    assert len(header_of(path).actors) == 4
