"""Replay: an actor and language models that answer from a recording, without network and for free."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from pytest_tfgrpo.core.errors import AgentFailure, ModelError, ProviderError, RecordingError
from pytest_tfgrpo.core.records import ModelCall, Rollout, Trajectory
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import shaping
from pytest_tfgrpo.core.settings.learning import EVAL_ROLLOUTS
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.texts.text import few, line, plural
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.fingerprint import fingerprint, text_of
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.llm.protocol import Completer, Completion, Finish, Request
from pytest_tfgrpo.protocols import Actor, ActorCall
from pytest_tfgrpo.recording.entries import (
    MISS,
    CallEntry,
    Participant,
    RecordingEntry,
    RolloutEntry,
    rollout_fingerprint,
)
from pytest_tfgrpo.recording.file import Recording
from pytest_tfgrpo.recording.lines import Header, RecordedActor
from pytest_tfgrpo.recording.misses import FILES, PROMPT, why_no_call, why_no_rollout
from pytest_tfgrpo.recording.place import named
from pytest_tfgrpo.sandbox.changes import make_again
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.scoring.checks.registry import KINDS, may_look

_FAULTS: Mapping[str, type[AgentFailure | ProviderError]] = {
    "failed": AgentFailure,
    "error": ProviderError,
}
RECORD = "record it with --tfgrpo-record=FILE first"


class _Asked(NamedTuple):
    """A scenario of the run, as far as its answers depend on it."""

    stamp: str
    """That its seeds come from."""
    seen: str
    """Stamp of what its agent meets."""
    new_checks: bool
    """True where its checks have changed since it was recorded."""
    look: bool
    """True where its checks or its test function may look at the workspace."""


def open_replay(argument: str, root: Path) -> Replay:
    """Return the replay of ``<file>`` or ``<file>#<actor>``; raises RecordingError.

    `actor` is the name of a recorded actor or the start of its stamp; without it there must be only one.
    """
    name, actor = named(argument, root)
    if not name:
        raise RecordingError(f"replay needs a recording: replay:<file>; {RECORD}")
    path = root / name
    if not path.is_file():
        raise RecordingError(f"there is no recording {path}; {RECORD}")
    recording = Recording.open(path)
    if recording.header is None or not recording.header.actors:
        raise RecordingError(f"the recording {path} is empty; {RECORD}")
    return Replay(name, recording, recording.header, _choose(path, recording.header.actors, actor))


def _choose(path: Path, actors: Sequence[RecordedActor], wanted: str) -> RecordedActor:
    """Return the actor that is wanted; of several with one name the latest."""
    names = list(dict.fromkeys(line(actor.name, 200) for actor in actors))
    if wanted:
        found = [actor for actor in actors if wanted == actor.name]
        found = found or [actor for actor in actors if len(wanted) >= 6 and actor.stamp.startswith(wanted)]
        if not found:
            raise RecordingError(
                f"the recording {path} has no actor {wanted!r}; it has {', '.join(names)}"
                f"{nearest(wanted, names)}"
            )
        return found[-1]
    if len(names) > 1:
        choices = ", ".join(f"replay:{path.name}#{name}" for name in names)
        raise RecordingError(f"the recording {path} holds several actors; say which: {choices}")
    return actors[-1]


class Replay:
    """A recording that answers in place of an actor and of the language models of its run."""

    def __init__(self, name: str, recording: Recording, header: Header, actor: RecordedActor) -> None:
        """Use `open_replay` instead."""
        self.name = name
        """The file, as you named it."""
        self.recording = recording
        self._header = header
        self._row = actor
        self._scenarios: Mapping[str, _Asked] = {}
        self._settings: Mapping[str, Json] = {}
        self._takes: Counter[tuple[str, str, str]] = Counter()
        self._misses: Counter[tuple[str, str]] = Counter()
        self.actor: Actor = ReplayActor(self, actor)

    def completer(self, spec: str) -> Completer:
        """Return the language model that was recorded as `spec`; raises RecordingError."""
        names = [line(model.name, 200) for model in self._header.models]
        spec = spec.removesuffix("@default")
        if spec not in names:
            known = f"it has {', '.join(dict.fromkeys(names))}" if names else "it has none"
            raise RecordingError(
                f"the recording {self.recording.path} has no language model {spec!r}; {known}"
                f"{nearest(spec, names)}"
            )
        return ReplayCompleter(self, next(m for m in reversed(self._header.models) if m.name == spec))

    def as_recorded(self, scenarios: Iterable[Scenario]) -> list[Scenario]:
        """Return scenarios; one whose checks alone have changed gets the seeds that it was recorded with."""
        return [
            replace(scenario, recorded_stamp=before)
            if (before := self._stamp_before(scenario)) not in ("", scenario.stamp)
            else scenario
            for scenario in scenarios
        ]

    def _stamp_before(self, scenario: Scenario) -> str:
        """Return the stamp that most answers to a scenario are recorded with; its own before all others."""
        seen, stamps = stamp(scenario.seen), Counter[str]()
        for entry in self._known(scenario.id):
            if entry.stamp == scenario.stamp:
                return entry.stamp
            if entry.seen == seen:
                stamps[entry.stamp] += 1
        return max(sorted(stamps), key=lambda one: stamps[one], default="")

    def _known(self, scenario: str) -> Iterator[RolloutEntry]:
        """Yield what the replayed actor answered to a scenario, in whatever form that had."""
        for entry in self.recording.about(scenario, "rollout"):
            if isinstance(entry, RolloutEntry) and entry.actor == self._row.stamp:
                yield entry

    def begin(
        self,
        scenarios: Iterable[Scenario],
        settings: Mapping[str, object],
        kinds: Mapping[str, CheckKind] = KINDS,
    ) -> None:
        """Take note of the run to come; raises RecordingError when its answers would have been others."""
        self._scenarios = {
            s.id: _Asked(
                s.seed_stamp,
                stamp(s.seen),
                new_checks=s.recorded_stamp is not None,
                look=s.checker is not None or may_look(s.checks, kinds),
            )
            for s in scenarios
        }
        self._settings = settings
        for name, then, now in self._changed("answers"):
            raise RecordingError(
                f"{name} was {then!r} when {self._row.name!r} was recorded in {self.recording.path}, "
                f"and is {now!r}; set it back, or record again"
            )

    def resume(self, rollouts: Iterable[Rollout], calls: Iterable[ModelCall]) -> None:
        """Go on behind what an interrupted replay has on file, and is not replayed again."""
        for rollout in rollouts:
            if rollout.failure is None or rollout.failure.code != MISS:
                prompt, temperature, seed = rollout.prompt_stamp, rollout.temperature, rollout.seed
                asked = self._fingerprint(rollout.scenario_id, prompt, temperature, seed)
                self._takes[rollout.scenario_id, "rollout", asked] += 1
        for call in calls:
            if call.error is None:  # a failed one runs again
                self._takes[self.recording.subject_of(call.fingerprint), "call", call.fingerprint] += 1

    def _fingerprint(self, scenario: str, prompt: str, temperature: float, seed: int) -> str:
        """Return the fingerprint of a rollout: of recordings of before that with the scenario's checks."""
        now = self._scenarios.get(scenario)
        stamps = (now.seen, now.stamp) if now else ("", "")
        first, old = (
            rollout_fingerprint(self._row.stamp, asked, prompt, temperature, seed) for asked in stamps
        )
        return old if (scenario, "rollout", old, 0) in self.recording.lines else first

    def _changed(self, shaped: str) -> list[tuple[str, Json, Json]]:
        recorded = self._row.settings
        return [
            (name, recorded[name], self._settings[name])
            for name in shaping(shaped)
            if name in recorded and name in self._settings and recorded[name] != self._settings[name]
        ]

    def _fewer_rollouts(self) -> str:
        """Return how to have no more rollouts than were recorded; empty where they do not differ."""
        then, now = EVAL_ROLLOUTS.of(self._row.settings), EVAL_ROLLOUTS.of(self._settings)
        fewer = isinstance(then, int) and isinstance(now, int) and then < now
        return f"; set eval_rollouts = {then}, or record the rest" if fewer else ""

    def _plan_changes(self) -> str:
        changed = self._changed("prompts")
        return ", ".join(f"{name} was {then!r}, is {now!r}" for name, then, now in changed)

    @property
    def warnings(self) -> list[str]:
        """What the recording lacked in this run, and how to record it; empty when nothing."""
        if not self._misses:
            return []
        count = sum(self._misses.values())
        causes = "; ".join(f"{kind}s: {n}, {why}" for (kind, why), n in sorted(self._misses.items()))
        settings = self._plan_changes()
        return [
            f"{self.name} lacks {plural(count, 'answer')} that this run needed ({causes})"
            + (f"; settings differ: {settings}" if settings else "")
            + (self._fewer_rollouts() or "; record them")
            + f" with --tfgrpo-actor='{line(self._row.name, 200)}' --tfgrpo-record={self.name}"
        ]

    @property
    def notes(self) -> list[str]:
        """What a reader of this run must know of the answers, and is no fault; empty when nothing."""
        changed = [id_ for id_, asked in self._scenarios.items() if asked.new_checks]
        if not changed:
            return []
        whose = "1 scenario's" if len(changed) == 1 else f"{len(changed)} scenarios'"
        return [f"{whose} checks changed since the recording; scored again: {few(changed)}"]

    def rollout(self, call: ActorCall) -> RolloutEntry:
        """Return the entry of a rollout; raises ProviderError when there is none, saying what differs."""
        scenario, prompt = call.task.id, call.prompt.stamp
        asked = self._fingerprint(scenario, prompt, call.temperature, call.seed)
        entry, now = self._take(scenario, "rollout", asked), self._scenarios.get(scenario)
        if isinstance(entry, RolloutEntry):
            if now is None or not (now.new_checks and now.look) or entry.files_kept or entry.failure:
                return entry
            self._misses["rollout", FILES] += 1
            raise ProviderError(f"{scenario!r} is in {self.name} without files: {FILES}", MISS)
        cause, why = why_no_rollout(
            list(self._known(scenario)),
            asked=None if now is None else (now.seen, now.stamp),
            prompt=prompt,
            temperature=call.temperature,
            seed=call.seed,
        )
        if cause == PROMPT and (changes := self._plan_changes()):
            cause, why = "the prompt changed", f"the prompt changed: {changes}"
        self._misses["rollout", cause] += 1
        raise ProviderError(f"{scenario!r} is not in {self.name} in its current form: {why}", MISS)

    def looks_at_files(self, scenario: str) -> bool:
        """Return whether something may look at what an agent left: its checks, or a test function."""
        asked = self._scenarios.get(scenario)
        return asked is None or asked.look

    def call(self, completer: Completer, request: Request) -> CallEntry:
        """Return the entry of a model call; raises RecordingError when there is none, saying what differs."""
        asked = fingerprint(completer, request)
        entry = self._take(self.recording.subject_of(asked), "call", asked)
        if isinstance(entry, CallEntry):
            return entry
        calls = (self.recording.entry(key) for key in self.recording.lines if key[1] == "call")
        known = (e for e in calls if isinstance(e, CallEntry) and e.model == completer.name)
        why = why_no_call(known, stamp(text_of(request)))
        self._misses["model call", why] += 1
        raise RecordingError(f"a call of {completer.name!r} is not in {self.name}: {why}")

    def knows(self, completer: Completer, request: Request) -> bool:
        """Return whether a model call was recorded."""
        asked = fingerprint(completer, request)
        return self.recording.entry((self.recording.subject_of(asked), "call", asked, 0)) is not None

    def _take(self, scenario: str, kind: str, asked: str) -> RecordingEntry | None:
        """Return the entry of a question: repeated, its next take, as long as there is one."""
        place = scenario, kind, asked
        for take in range(self._takes[place], -1, -1):
            entry = self.recording.entry((*place, take))
            if entry is not None:
                self._takes[place] = take + 1
                return entry
        return None


class ReplayActor:
    """Answers as the recorded actor did, whose name and identity it has: equal runs have equal stamps."""

    paid = False
    metered = True
    """A replay spends nothing, so it needs no budget."""
    concurrency: int | None = None

    def __init__(self, replay: Replay, recorded: RecordedActor) -> None:
        """`replay` has the answers of the actor `recorded`."""
        self.name = recorded.name
        self.identity: Mapping[str, Json] = recorded.identity
        self._replay = replay

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Return what is recorded, or raise what was raised then."""
        entry = self._replay.rollout(call)
        if entry.failure is not None:
            raise _FAULTS[entry.status](
                entry.failure.message,
                entry.failure.code,
                frames=entry.frames,
                answer=entry.answer,
                latency_ms=entry.latency_ms,
            )
        if entry.files is None and self._replay.looks_at_files(entry.scenario):
            raise ProviderError(
                f"{entry.scenario!r} left more files than a recording keeps; run its actor itself",
                "replay_files",
            )
        if entry.files:
            await asyncio.to_thread(make_again, call.workspace, entry.files)
        return Trajectory(
            answer=entry.answer,
            frames=entry.frames,
            latency_ms=entry.latency_ms,
            extra=entry.extra,
            decoy=entry.decoy,
        )

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Nothing is spent."""
        return {"usd": 0.0, "tokens": 0.0}

    async def aclose(self) -> None:
        """Nothing is held."""


class ReplayCompleter:
    """Answers as a recorded model did."""

    paid = False
    price: Price | None = None
    concurrency: int | None = None

    def __init__(self, replay: Replay, recorded: Participant) -> None:
        """`replay` has the answers of the model `recorded`."""
        self.name = recorded.name
        self.identity: Mapping[str, Json] = recorded.identity
        self._replay = replay

    async def complete(self, request: Request) -> Completion:
        """Return what is recorded; raises the ModelError of then, and RecordingError when nothing is."""
        entry = self._replay.call(self, request)
        if entry.error is not None:
            code, _, message = entry.error.partition(": ")
            raise ModelError(message, code, cost_usd=entry.cost_usd)
        return Completion(
            text=entry.answer,
            finish=cast("Finish", entry.finish or "stop"),
            usage=entry.usage,
            cost_usd=entry.cost_usd,
            latency_ms=entry.latency_ms,
        )

    def bound(self, request: Request) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Nothing is spent."""
        return {"usd": 0.0, "tokens": 0.0}
