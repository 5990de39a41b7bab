"""Entries of a recording: what an actor or a model answered, looked up by its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Failure, FileChange, Frame, ModelCall, Rollout, Run, Status, Usage
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import SPARSE, Json, to_wire

ACTOR_STAMP = 16
"""Digits of an actor's stamp that distinguish the actors of a recording."""
MISS = "replay_miss"
"""Reason code of a rollout that a recording does not hold."""
JUDGED = frozenset({"check", "checker", "judge"})
"""Reason codes of rollouts that were answered, and could not be judged afterwards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Participant:
    """An actor or a model whose answers are recorded."""

    name: str
    identity: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutEntry:
    """One attempt of an actor, before any check."""

    scenario: str
    fingerprint: str
    take: int = 0
    """How often the same input occurred before in its run: sweeps repeat each other."""
    actor: str
    """Start of the actor's stamp."""
    stamp: str
    """Stamp of the scenario, from which the seed comes."""
    seen: str = ""
    """Stamp of what its agent met of the scenario; empty in recordings of before, which key by `stamp`."""
    prompt: str
    """Stamp of the prompt."""
    temperature: float
    seed: int
    status: Status
    answer: str = ""
    frames: tuple[Frame, ...] = ()
    files: tuple[FileChange, ...] | None = ()
    """What it did to the files of its workspace; None: too much to keep."""
    files_kept: bool = False
    """True where `files` is all that it did there, as checks could look; else nothing is known of them."""
    failure: Failure | None = None
    latency_ms: float
    redacted: int = 0
    """Texts of it that a secret was taken out of."""
    extra: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """What the agent reported beside its answer."""
    decoy: str | None = field(default=None, metadata=SPARSE)
    """Where it repeated the decoy of the run that was recorded."""

    @property
    def asked(self) -> str:
        """Stamp of the scenario that its fingerprint was made with."""
        return self.seen or self.stamp

    @property
    def settled(self) -> bool:
        """True when an answer, or the lack of one, is the agent's own."""
        return self.status != "error"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEntry:
    """One call of a model that is no part of a rollout."""

    scenario: str = ""
    """Scenario that it was about; may be empty."""
    fingerprint: str
    take: int = 0
    model: str
    purpose: str
    prompt: str
    """Stamp of the messages as text."""
    answer: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_ms: float = 0.0
    finish: str = ""
    error: str | None = None
    redacted: int = 0

    @property
    def settled(self) -> bool:
        """True when there is an answer."""
        return self.error is None


RecordingEntry: TypeAlias = RolloutEntry | CallEntry
RecordingKey: TypeAlias = tuple[str, str, str, int]
"""Scenario, kind (``call`` or ``rollout``), fingerprint, take: the order of a recording."""


def key_of(entry: RecordingEntry) -> RecordingKey:
    """Return what an entry is found by, and sorted by."""
    return entry.scenario, kind_of(entry), entry.fingerprint, entry.take


def old_key_of(entry: RecordingEntry) -> RecordingKey:
    """Return what an entry was found by in recordings whose keys held the checks of the scenario."""
    if not isinstance(entry, RolloutEntry):
        return key_of(entry)
    asked = entry.actor, entry.stamp, entry.prompt, entry.temperature, entry.seed
    return entry.scenario, "rollout", rollout_fingerprint(*asked), entry.take


def kind_of(entry: RecordingEntry) -> str:
    """Return the name of an entry's kind."""
    return "rollout" if isinstance(entry, RolloutEntry) else "call"


def actor_stamp(actor: Participant) -> str:
    """Return what an actor is called in its entries."""
    return stamp({"name": actor.name, "identity": dict(actor.identity)})[:ACTOR_STAMP]


def rollout_fingerprint(actor: str, scenario: str, prompt: str, temperature: float, seed: int) -> str:
    """Return the stamp of all that a rollout depends on; `actor`, `scenario` and `prompt` are stamps.

    That of the scenario has what its agent meets, and no checks: these change what an answer is worth.
    """
    return stamp([actor, scenario, prompt, float(temperature), seed])


def actor_of(run: Run) -> Participant:
    """Return the actor of a run."""
    row = run.identities["actor"]
    return Participant(name=row["name"], identity=to_wire(row["identity"]))


def models_of(run: Run) -> list[Participant]:
    """Return the models that a run's optimizer and judge could call, each once."""
    models: list[Participant] = []
    for identity in (to_wire(row["identity"]) for row in run.identities.values()):
        if "model_identity" in identity:
            model = Participant(name=identity["model"], identity=identity["model_identity"])
            if model not in models:
                models.append(model)
    return models


def entries_of(run: Run, loose: Iterable[Rollout] = ()) -> Iterator[RecordingEntry]:
    """Yield what a run has to record; `loose` are rollouts that may belong to no group of it."""
    yield from _rollouts(run, loose)
    takes: Counter[str] = Counter()
    for call in (call for result in run.phases for call in result.calls):
        yield _call(call, takes[call.fingerprint])
        takes[call.fingerprint] += 1


def _rollouts(run: Run, loose: Iterable[Rollout]) -> Iterator[RolloutEntry]:
    grouped = (r for result in run.phases for group in result.with_dev for r in group.rollouts)
    asked = (r for r in (*loose, *grouped) if r.mode != "evidence")  # those come from their file again
    known = {r.rollout_id: r for r in asked}.values()
    scenarios = {s.id: (s.seed_stamp, stamp(s.seen)) for s in run.scenarios}
    actor = actor_stamp(actor_of(run))
    takes: Counter[tuple[str, str]] = Counter()
    for rollout in sorted(known, key=lambda r: (r.epoch, r.scenario_id, r.index)):
        if rollout.failure is not None and rollout.failure.code == MISS:
            continue
        entry = _rollout(rollout, actor, *scenarios[rollout.scenario_id])
        place = entry.scenario, entry.fingerprint
        yield replace(entry, take=takes[place])
        takes[place] += 1


def _rollout(rollout: Rollout, actor: str, scenario: str, seen: str) -> RolloutEntry:
    status, failure = rollout.status, rollout.failure
    if status == "error" and failure is not None and failure.code in JUDGED:
        status, failure = "ok", None
    prompt, temperature, seed = rollout.prompt_stamp, rollout.temperature, rollout.seed
    return RolloutEntry(
        scenario=rollout.scenario_id,
        fingerprint=rollout_fingerprint(actor, seen, prompt, temperature, seed),
        actor=actor,
        stamp=scenario,
        seen=seen,
        prompt=prompt,
        temperature=temperature,
        seed=seed,
        status=status,
        answer=rollout.answer,
        frames=rollout.frames,
        files=rollout.files,
        files_kept=rollout.files_kept,
        failure=failure,
        latency_ms=rollout.latency_ms,
        extra=rollout.extra,
        decoy=rollout.decoy,
    )


def _call(call: ModelCall, take: int) -> CallEntry:
    return CallEntry(
        scenario=call.subject,
        fingerprint=call.fingerprint,
        take=take,
        model=call.model,
        purpose=call.purpose,
        prompt=stamp(call.prompt),
        answer=call.answer,
        usage=call.usage,
        cost_usd=call.cost_usd,
        latency_ms=call.latency_ms,
        finish=call.finish,
        error=call.error,
    )
