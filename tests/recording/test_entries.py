"""What of a run is recorded: which rollouts and calls, in which order, with all that a replay needs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_frame
from support.recordings import ACTOR, make_call, make_entry, make_run, write_recording

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.records import Failure, Run, Status
from pytest_tfgrpo.recording import file
from pytest_tfgrpo.recording.entries import CallEntry, RolloutEntry, entries_of, models_of
from pytest_tfgrpo.recording.file import Recording
from pytest_tfgrpo.recording.lines import (
    Header,
    encode,
    encode_header,
    find_secrets,
    key_in,
    without_secrets,
)
from pytest_tfgrpo.recording.writing import record


def with_rollouts(run: Run, **fields: Any) -> Run:
    """Return a run whose rollouts have other `fields`."""
    (result,) = run.phases
    groups = tuple(
        replace(group, rollouts=tuple(replace(r, **fields) for r in group.rollouts))
        for group in result.groups
    )
    return replace(run, phases=(replace(result, groups=groups),))


def rollouts_of(run: Run, loose: Any = ()) -> list[RolloutEntry]:
    return [entry for entry in entries_of(run, loose) if isinstance(entry, RolloutEntry)]


@pytest.mark.parametrize(
    ("status", "code", "recorded"),
    [
        ("error", "check", "ok"),
        ("error", "checker", "ok"),
        ("error", "judge", "ok"),
        ("error", "network", "error"),
        ("failed", "check", "failed"),
    ],
)
def test_only_an_error_of_judging_leaves_an_answer(status: Status, code: str, recorded: str) -> None:
    (entry,) = rollouts_of(make_run([make_entry(status=status, failure=Failure(code=code, message="m"))]))
    assert (entry.status, entry.failure is None) == (recorded, recorded == "ok")


def test_a_rollout_is_recorded_with_what_its_agent_told_beside_the_answer() -> None:
    run = with_rollouts(make_run([make_entry()]), extra={"steps": 3}, decoy="answer", files_kept=True)
    (entry,) = rollouts_of(run)
    assert (entry.extra, entry.decoy, entry.files_kept) == ({"steps": 3}, "answer", True)
    assert (entry.answer, entry.latency_ms, entry.seed, entry.temperature) == ("3", 1.5, 5, 0.7)


def test_rollouts_that_come_from_a_file_of_evidence_are_not_recorded() -> None:
    assert rollouts_of(with_rollouts(make_run([make_entry()]), mode="evidence")) == []


def test_of_equal_questions_that_of_the_earlier_epoch_is_the_first_take() -> None:
    run = make_run([make_entry(answer="late")])
    ((rollout,),) = (group.rollouts for group in run.phases[0].groups)
    early = replace(rollout, rollout_id="early", epoch=0, index=7, answer="early")
    assert [(entry.take, entry.answer) for entry in rollouts_of(run, [early])] == [(0, "early"), (1, "late")]


def test_a_call_is_recorded_with_its_purpose_its_costs_and_its_end() -> None:
    call = make_call(cost_usd=0.25, finish="length", error="server: 503", purpose="judge")
    (entry,) = (one for one in entries_of(make_run([make_entry()], [call])) if isinstance(one, CallEntry))
    found = entry.purpose, entry.cost_usd, entry.finish, entry.latency_ms, entry.error, entry.usage
    assert found == ("judge", 0.25, "length", 2.0, "server: 503", call.usage)
    assert (entry.settled, replace(entry, error=None).settled) == (False, True)


def test_each_model_of_optimizer_and_judge_is_named_once() -> None:
    def row(model: str) -> dict[str, Any]:
        return {"name": "llm", "identity": {"model": model, "model_identity": {"url": model}}}

    rows = {"actor": ACTOR, "optimizer": row("b"), "judge": row("a"), "simulated_user": row("b")}
    assert [model.name for model in models_of(replace(make_run([]), identities=rows))] == ["b", "a"]


def test_a_call_is_found_by_its_subject_though_a_rollout_has_its_fingerprint(tmp_path: Path) -> None:
    entry = make_entry()
    calls = [make_call(fingerprint=entry.fingerprint, subject="z"), make_call(subject="")]
    record(tmp_path / "r.jsonl", make_run([entry], calls))
    recording = Recording.open(tmp_path / "r.jsonl")
    rollout = rollouts_of(make_run([entry]))[0]
    assert recording.subject_of(entry.fingerprint) == "z"
    assert recording.subject_of(rollout.fingerprint) == ""
    assert [type(one) for one in recording.about("count-words", "rollout")] == [RolloutEntry]
    assert list(recording.about("nowhere", "rollout")) == []


@pytest.mark.parametrize("mark", [b"<<<<<<< ours", b"=======", b">>>>>>> theirs", b"||||||| base"])
def test_each_mark_of_a_merge_conflict_is_known(mark: bytes) -> None:
    with pytest.raises(ValueError, match="unresolved merge conflict; keep one side"):
        key_in(mark)


def test_the_names_of_a_header_are_sorted() -> None:
    names = list(json.loads(encode_header(Header(created="2026-01-31", updated="2026-01-31"))))
    assert names == sorted(names)


def test_no_item_of_a_list_and_no_name_keeps_a_secret() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    clean = without_secrets(make_entry(frames=(make_frame(input=["x", 1, secret]),)))
    assert (clean.redacted, secret in encode(clean).decode()) == (1, False)
    found = find_secrets({secret: [secret]})
    assert (len(found), secret in str(found)) == (2, False)


def test_a_last_line_as_long_as_the_limit_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_recording(tmp_path / "r.jsonl", [])
    path.write_bytes(path.read_bytes() + b"x" * 10_000)
    for limit, why in ((10_000, "the last line is incomplete"), (9_999, "has more than 9999 bytes")):
        monkeypatch.setattr(file, "MAX_LINE", limit)
        with pytest.raises(RecordingError, match=why):
            Recording.open(path)
