"""The policy versions of a loop: a row each in the table ``state``, and files in a folder or bucket.

The row gives a job its name, once; the files of a job are written before anyone reads them under that name,
and again where a process died between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pytest_tfgrpo.core.errors import RevisionConflict, StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.file_writing import write_pieces
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.learning.library.library import empty, library_text, load_library, save_library
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import FIRST, Serving
from pytest_tfgrpo.production.training.versions.artifacts import CHECKPOINTS, CURVES, LOGS, PACKS, Artifacts
from pytest_tfgrpo.production.training.versions.card import card_text
from pytest_tfgrpo.production.training.versions.policy import POLICY, PolicyVersion, first_version, policy_of
from pytest_tfgrpo.production.training.versions.retention import to_remove
from pytest_tfgrpo.production.training.versions.rows import VersionRow
from pytest_tfgrpo.production.training.versions.sources import LessonSource, lesson_sources
from pytest_tfgrpo.production.training.versions.validation import Validation
from pytest_tfgrpo.production.training.versions.verdict import add_verdict, judged
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, Table, TablePut

ROW = "policy"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What may be a name, and so part of a key."""


class Policies:
    """The versions of a loop, for several processes."""

    def __init__(self, bus: Bus, files: Artifacts) -> None:
        """`files` get ``rl-checkpoints/<name>/`` for each version, and folders of logs and curves."""
        self._store, self._rows, self._deployments = bus, bus.table(STATE), Deployments(bus)
        self.files = files

    def listed(self) -> list[VersionRow]:
        """Return all versions in the order of their names; raises BusError."""
        return _listed(self._rows)

    def row(self, name: str) -> VersionRow:
        """Return where a version stands; raises StoreError, which names the likely meant one."""
        if (put := self.put_of(name)) is not None:
            return _row(put.value)
        names = [row.name for row in self.listed()]
        known = f"the last is {names[-1]}" if names else "no job has made one yet"
        raise StoreError(f"there is no version {name!r}; {known}")

    def put_of(self, name: str) -> TablePut | None:
        """Return the row of a version as it is, to publish beside what rests on it; None: there is none."""
        if not _NAME.fullmatch(name):
            return None
        value, revision = self._rows.get(f"{ROW}.{name}")
        return None if value is None else TablePut(key=f"{ROW}.{name}", value=value, revision=revision)

    def deployed(self) -> str:
        """Return the name of the live version, from which the next job starts."""
        return self._deployments.serving().live

    def place(self, name: str) -> str:
        """Return the path or URL of a version's folder."""
        return self.files.place(f"{CHECKPOINTS}/{name}")

    def save_library(self, name: str, file: Path) -> None:
        """Write the library of a version to a file, for a run to start from; raises StoreError."""
        data = self.files.read(f"{CHECKPOINTS}/{name}/library.json")
        if data is None and name == FIRST:
            save_library(file, empty())
        elif data is None:
            raise StoreError(f"version {name} has no library at {self.place(name)}; run its job again")
        else:
            write_pieces(file, [data])

    def read(self, name: str) -> PolicyVersion:
        """Return what a version is; raises StoreError."""
        row, _ = self._rows.get(f"{ROW}.{name}")
        known = None if row is None else _row(row)
        if known is not None:
            _check_kept(known)
        file, value = _read(self.files, name, "policy.json")
        if found := violations("policy", value):
            where = f"{found[0].pointer or '/'}: {found[0].message}"
            raise StoreError(f"{file} is no policy version: {where}; run the job of version {name} again")
        version = from_wire(PolicyVersion, {k: v for k, v in value.items() if k not in ("schema", "content")})
        return version if known is None else replace(version, verdict=known.verdict)

    def whole(self) -> list[VersionRow]:
        """Return the versions whose files are there; raises StoreError and BusError."""
        return [row for row in self.listed() if row.state != "removed" and self.is_whole(row.name)]

    def is_whole(self, name: str) -> bool:
        """Return whether the files of a version are there; raises StoreError."""
        return self.files.read(f"{CHECKPOINTS}/{name}/policy.json") is not None

    def sources(self, name: str) -> tuple[LessonSource, ...]:
        """Return what the lessons of a version rest on; none for v1. Raises StoreError."""
        if name == FIRST:
            return ()
        file, value = _read(self.files, name, "sources.json")
        try:
            return from_wire(tuple[LessonSource, ...], value)
        except ValueError as error:
            raise StoreError(
                f"{file} does not hold the sources of lessons: {error}; run the job of version {name} again"
            ) from error

    def add(
        self,
        run: Run,
        *,
        job: str,
        parent: str,
        validation: Validation,
        dataset: Mapping[str, Json],
        attempts: Mapping[str, Sequence[str]],
        checkpoint: str = "",
    ) -> PolicyVersion:
        """Return the version that a job learned, named once however often it is added.

        `attempts` are the ids of trajectories by the key of their group of evidence, and `checkpoint` the
        weights of its model, where an external trainer made them. Raises StoreError and BusError.
        """
        self.add_first(run)
        version = policy_of(
            run,
            name="",
            parents=(parent,),
            job=job,
            dataset=dataset,
            validation=validation,
            checkpoint=checkpoint,
        )
        inherited = {one.lesson: one for one in self.sources(parent)}
        return self.keep(version, run.packs, run.library, lesson_sources(run, attempts, inherited))

    def keep(
        self,
        version: PolicyVersion,
        packs: Sequence[PromptPack],
        library: Library,
        sources: Sequence[LessonSource],
    ) -> PolicyVersion:
        """Return a version under the name that its job has, with its files; raises StoreError, BusError."""
        assert version.validation is not None, "v1 is added first"
        row = _claim(self._rows, version.job, version.validation, version.created_at)
        named = replace(version, name=row.name)
        _write(self.files, named, packs, library, sources)
        self.prune(version.created_at)
        return named

    def decide(
        self,
        name: str,
        state: Literal["approved", "rejected"],
        *,
        by: str,
        reason: str,
        at: str,
        override: bool = False,
    ) -> VersionRow:
        """Note what a person decided of a version, in its row and the audit; raises StoreError, BusError.

        `override`: approved against its validation, which the audit says.
        """

        def decided(before: VersionRow, serving: Serving) -> VersionRow:
            if state == "rejected" and name in serving.versions:
                raise StoreError(f"version {name} is served; roll it back first: tfgrpo loop rollback {name}")
            if before.state == state and not override:
                raise StoreError(f"version {name} is {state} already, by {before.by or 'its validation'}")
            if state == "approved":  # a version whose job died while it wrote it cannot be used
                said["validation"] = to_wire(self.read(name).judged)
            return replace(before, state=state, by=by, reason=reason, at=at)

        action = "policy_override" if override else f"policy_{state}"
        said: dict[str, Json] = {"action": action, "actor": by, "reason": reason}
        return self._note(name, decided, said, at)

    def pin(self, name: str, pinned: bool, *, by: str, reason: str, at: str) -> VersionRow:
        """Keep the files of a version however old they are, or no longer; raises StoreError, BusError."""
        said = {"action": "policy_pinned" if pinned else "policy_unpinned", "actor": by, "reason": reason}
        return self._note(name, lambda row, _: replace(row, pinned=pinned), said, at)

    def judge(
        self,
        name: str,
        *,
        safe: bool | None = None,
        score: float | None = None,
        by: str,
        reason: str,
        at: str,
    ) -> VersionRow:
        """Note what a person says of a version beside its validation, in its row, its files and the audit.

        `score` is that of an evaluation by people, from 0 to 1. Raises StoreError and BusError.
        """
        version = self.read(name)
        if version.validation is None:
            raise StoreError(f"version {name} is the agent without lessons, which nothing validated")
        found = version.validation

        def with_verdict(before: VersionRow, _: Serving) -> VersionRow:
            verdict = add_verdict(before.verdict, safe=safe, score=score, by=by, reason=reason)
            row = replace(before, verdict=verdict)
            if not before.by:
                return replace(row, state=judged(found, verdict).outcome)
            return replace(row, state="rejected", by=by, reason=reason, at=at) if safe is False else row

        said = {"action": "policy_verdict", "actor": by, "reason": reason, "safe": safe, "score": score}
        row = self._note(name, with_verdict, said, at)
        with TemporaryDirectory() as temporary:
            self.save_library(name, file := Path(temporary) / "library.json")
            _describe(self.files, replace(version, verdict=row.verdict), load_library(file))
        return row

    def _note(
        self, name: str, to: Callable[[VersionRow, Serving], VersionRow], said: Mapping[str, Json], at: str
    ) -> VersionRow:
        """Change a row, and say so in the audit, both or neither; raises StoreError and BusError.

        It fails where what is served changes meanwhile, and is tried again: so no version starts unseen.
        """
        key = f"{ROW}.{self.row(name).name}"
        while True:
            value, revision = self._rows.get(key)
            before, (serving, unchanged) = _row(value or b"{}"), self._deployments.unchanged()
            _check_kept(before)
            row = to(before, serving)
            event = BusEvent(
                id=derived_id(key, str(revision), str(said["action"])),
                subject=AUDIT_SUBJECT,
                time=at,
                data=json.dumps({**said, "what": name, "was": before.state}).encode(),
            )
            put = TablePut(key=key, value=_encoded(row), revision=revision)
            try:
                self._store.publish([event], [unchanged, put])
            except RevisionConflict:
                continue
            return row

    def prune(self, now: str) -> list[str]:
        """Remove the files of versions that nobody uses and that are old or too many; return their names.

        Their rows stay, so that no name is given twice. Raises StoreError and BusError.
        """
        rows = self.listed()
        serving = self._deployments.serving()
        waiting = {row.name for row in rows if row.state == "approved" and row.name not in serving.states}
        used = serving.used | waiting | {FIRST}
        scored = [row for row in rows if row.score is not None and row.state != "removed"]
        best = max(scored, key=lambda row: row.score or 0.0).name if scored else None
        gone = to_remove(rows, used=used, best=best, now=now)
        return [name for name in gone if self._remove(name)]

    def _remove(self, name: str) -> bool:
        """Remove the files of a version, and the logs of its job; False where it is used by now."""
        while True:
            put, (serving, unchanged) = self.put_of(name), self._deployments.unchanged()
            if put is None or name in serving.used:
                return False
            row = replace(_row(put.value), state="removed")
            with suppress(RevisionConflict):
                self._store.publish([], [unchanged, replace(put, value=_encoded(row))])
                self.files.remove(f"{CHECKPOINTS}/{name}")
                for kind in (LOGS, CURVES) if row.job else ():
                    self.files.remove(f"{kind}/{row.job}")
                return True

    def add_first(self, run: Run) -> None:
        """Add v1 as a run knows it, unless it is there; raises StoreError and BusError."""
        version = first_version(run)
        row = VersionRow(name=FIRST, job="", state="approved", at=version.created_at)
        if self._rows.get(f"{ROW}.{FIRST}")[0] is None:
            _put_new(self._rows, row)
        if self.files.read(f"{CHECKPOINTS}/{FIRST}/policy.json") is None:
            _write(self.files, version, run.packs, empty(), ())


def _listed(table: Table) -> list[VersionRow]:
    rows = (_row(value) for value, _ in table.list(f"{ROW}.").values())
    return sorted(rows, key=lambda row: int(row.name[1:]))


def _claim(table: Table, job: str, validation: Validation, at: str) -> VersionRow:
    """Return the row of a job's version, which is made where there is none."""
    while True:
        rows = _listed(table)
        if (known := next((row for row in rows if row.job == job), None)) is not None:
            return known
        number = max((int(row.name[1:]) for row in rows), default=1) + 1
        score = validation.holdout_reward
        row = VersionRow(name=f"v{number}", job=job, state=validation.outcome, at=at, score=score)
        if _put_new(table, row):
            return row


def _put_new(table: Table, row: VersionRow) -> bool:
    try:
        table.put(f"{ROW}.{row.name}", _encoded(row), 0)
    except RevisionConflict:
        return False
    return True


def _read(files: Artifacts, name: str, file: str) -> tuple[str, Json]:
    """Return the place and the value of a file of a version; raises StoreError."""
    path = f"{CHECKPOINTS}/{name}/{file}"
    place, data = files.place(path), files.read(path)
    try:
        return place, load_json(data or b"")
    except ValueError as error:
        why = "it is missing" if data is None else error
        raise StoreError(f"cannot read {place}: {why}; run the job of version {name} again") from error


def _write(
    files: Artifacts,
    version: PolicyVersion,
    packs: Sequence[PromptPack],
    library: Library,
    sources: Sequence[LessonSource],
) -> None:
    folder = f"{CHECKPOINTS}/{version.name}"
    files.write(f"{folder}/{PACKS}", _json(to_wire(packs)))
    files.write(f"{folder}/library.json", library_text(library).encode())
    if version.name != FIRST:
        files.write(f"{folder}/sources.json", _json(to_wire(sources)))
    _describe(files, version, library)


def _describe(files: Artifacts, version: PolicyVersion, library: Library) -> None:
    folder = f"{CHECKPOINTS}/{version.name}"
    files.write(f"{folder}/README.md", card_text(version, library.experiences).encode())
    value = {"schema": POLICY, "content": version.content, **to_wire(version)}
    files.write(f"{folder}/policy.json", _json(value))


def _json(value: Json) -> bytes:
    return json.dumps(value, indent=1, allow_nan=False).encode() + b"\n"


def _check_kept(row: VersionRow) -> None:
    if row.state == "removed":
        raise StoreError(f"version {row.name} was removed, and its files are gone; take a newer one")


def _row(value: bytes) -> VersionRow:
    try:
        row = from_wire(VersionRow, load_json(value))
        int(row.name.removeprefix("v"))
    except ValueError as error:
        raise StoreError(
            f"a row {ROW}.v<n> of the table state holds no version: {error}, in {value[:200]!r}; "
            "put the bus back from a copy of its data"
        ) from error
    return row


def _encoded(row: VersionRow) -> bytes:
    return json.dumps(to_wire(row), separators=(",", ":")).encode()
