"""Recordings for tests: entries, and runs that were made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import ModelCall, Phase, PhaseResult, Rollout, Run, Usage
from pytest_tfgrpo.recording.entries import (
    Participant,
    RecordingEntry,
    RolloutEntry,
    actor_stamp,
    key_of,
    rollout_fingerprint,
)
from pytest_tfgrpo.recording.file import write
from pytest_tfgrpo.recording.lines import Header, RecordedActor, encode
from pytest_tfgrpo.recording.writing import record
from support.builders import make_group, make_scenario

ACTOR: Mapping[str, Any] = {"name": "python:agent:solve", "identity": {"sha256": "1" * 64}}
STAMP = "0" * 64
PROMPT = "b" * 64


def participant(actor: Mapping[str, Any] = ACTOR) -> Participant:
    return Participant(name=actor["name"], identity=actor["identity"])


def make_entry(**changes: Any) -> RolloutEntry:
    """Return the entry of a rollout whose fingerprint is right."""
    fields: dict[str, Any] = {"scenario": "count-words", "actor": actor_stamp(participant()), "stamp": STAMP}
    fields |= {
        "prompt": PROMPT,
        "temperature": 0.7,
        "seed": 5,
        "status": "ok",
        "answer": "3",
        "latency_ms": 1.5,
    }
    fields |= changes
    asked = fields.get("seen") or fields["stamp"]
    found = rollout_fingerprint(
        fields["actor"], asked, *(fields[n] for n in ("prompt", "temperature", "seed"))
    )
    return RolloutEntry(**{"fingerprint": found} | fields)


def make_call(**changes: Any) -> ModelCall:
    fields: dict[str, Any] = {"key": "e1.learn.s.critique", "purpose": "learn", "epoch": 1, "subject": "s"}
    fields |= {"model": "openai:m", "fingerprint": "c" * 64, "prompt": "Compare.", "answer": "Count."}
    fields |= {"usage": Usage(prompt=3, completion=2), "latency_ms": 2.0, "finish": "stop"}
    return ModelCall(**fields | changes)


def make_run(
    entries: Sequence[RolloutEntry], calls: Sequence[ModelCall] = (), *, actor: Mapping[str, Any] = ACTOR
) -> Run:
    """Return a run that a recording of `entries` comes from, all of them in one epoch."""
    rollouts = [
        Rollout(
            rollout_id=f"run1.e1.{entry.scenario}.r{index}",
            group_id=f"run1.e1.{entry.scenario}",
            run_id="run1",
            scenario_id=entry.scenario,
            epoch=1,
            mode="train",
            index=index,
            seed=entry.seed,
            temperature=entry.temperature,
            status=entry.status,
            answer=entry.answer,
            frames=entry.frames,
            failure=entry.failure,
            latency_ms=entry.latency_ms,
            prompt_stamp=entry.prompt,
            files=entry.files,
            files_kept=entry.files_kept,
        )
        for index, entry in enumerate(entries)
    ]
    ids = tuple(dict.fromkeys(entry.scenario for entry in entries))
    groups = tuple(
        replace(
            make_group([1.0], scenario_id=id_),
            rollouts=tuple(r for r in rollouts if r.scenario_id == id_),
            scores=(),
        )
        for id_ in ids
    )
    phase = Phase(epoch=1, mode="train", temperature=0.7, rollouts=len(entries), scenarios=ids)
    result = PhaseResult(phase=phase, groups=groups, status="complete", library_hash="", calls=tuple(calls))
    model = {"model": "openai:m", "model_identity": {"url": "http://127.0.0.1"}}
    identities = {"actor": actor, "optimizer": {"name": "llm", "identity": model if calls else {}}}
    return Run(
        run_id="run1",
        task_id="demo",
        status="complete",
        started_at="",
        finished_at="",
        settings={"seed": 0, "max_tokens": 10},
        stamps={"packs": "p"},
        versions={},
        scenarios=tuple(make_scenario(id_, stamp=STAMP) for id_ in ids),
        phases=(result,),
        library_start=Library(),
        library=Library(),
        identities=identities,
    )


def write_recording(path: Path, entries: Sequence[RecordingEntry]) -> Path:
    """Write entries as they are, under a header that names `ACTOR`."""
    row = RecordedActor(name=ACTOR["name"], identity=ACTOR["identity"], stamp=actor_stamp(participant()))
    header = Header(created="2026-01-31", updated="2026-01-31", actors=(row,))
    write(path, header, {key_of(entry): encode(entry) for entry in entries})
    return path


def record_five(path: Path, start: int) -> None:
    """Record five rollouts, one after the other; here, where a process that is started anew finds it."""
    for n in range(start, start + 5):
        record(path, make_run([make_entry(seed=n)]))
