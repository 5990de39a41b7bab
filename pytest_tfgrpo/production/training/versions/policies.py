"""The policy versions of a loop: a row each in the table ``state``, and files in a folder.

The row gives a job its name, once; the files of a job are written before anyone reads them under that name,
and again where a process died between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.errors import RevisionConflict, StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.evidence import EvidenceGroup
from pytest_tfgrpo.core.files import write_json, write_text
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.learning.library.library import empty, save_library
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT
from pytest_tfgrpo.production.training.versions.card import card_text
from pytest_tfgrpo.production.training.versions.policy import POLICY, PolicyVersion, first_version, policy_of
from pytest_tfgrpo.production.training.versions.sources import LessonSource, lesson_sources
from pytest_tfgrpo.production.training.versions.validation import Validation
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, EventStore, TablePut

ROW = "policy"
CHECKPOINTS = "rl-checkpoints"
FIRST = "v1"

VersionState: TypeAlias = Literal["validated", "rejected", "needs_approval", "approved"]


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRow:
    """Where a version stands."""

    name: str
    job: str
    state: VersionState
    by: str = ""
    """Who approved or rejected it; empty where its validation did."""
    reason: str = ""
    at: str = ""
    """When, ISO 8601 in UTC."""


class Policies:
    """The versions of a loop, for several processes."""

    def __init__(self, store: EventStore, folder: Path) -> None:
        """`folder` gets a folder ``rl-checkpoints/<name>`` for each version."""
        self._store, self._rows = store, store.table(STATE)
        self._folder = folder

    def listed(self) -> list[VersionRow]:
        """Return all versions in the order of their names; raises BusError."""
        rows = (json.loads(value) for value, _ in self._rows.list(f"{ROW}.").values())
        return sorted((VersionRow(**row) for row in rows), key=lambda row: int(row.name[1:]))

    def row(self, name: str) -> VersionRow:
        """Return where a version stands; raises StoreError, which names the likely meant one."""
        rows = {row.name: row for row in self.listed()}
        if name not in rows:
            known = f"the last is {[*rows][-1]}" if rows else "no job has made one yet"
            raise StoreError(f"there is no version {name!r}; {known}")
        return rows[name]

    def deployed(self) -> str:
        """Return the name of the version in use: the last that was approved, else v1."""
        approved = [row for row in self.listed() if row.state == "approved"]
        return max(approved, key=lambda row: row.at).name if approved else FIRST

    def path(self, name: str) -> Path:
        """Return the folder of a version."""
        return self._folder / CHECKPOINTS / name

    def library(self, name: str) -> Path:
        """Return the library file of a version; v1's is empty and may have to be made."""
        file = self.path(name) / "library.json"
        if name == FIRST and not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            save_library(file, empty())
        return file

    def read(self, name: str) -> PolicyVersion:
        """Return what a version is; raises StoreError."""
        file = self.path(name) / "policy.json"
        value = _read(file, name)
        if found := violations("policy", value):
            where = f"{found[0].pointer or '/'}: {found[0].message}"
            raise StoreError(f"{file} is no policy version: {where}; run the job of version {name} again")
        return from_wire(PolicyVersion, {k: v for k, v in value.items() if k not in ("schema", "content")})

    def sources(self, name: str) -> tuple[LessonSource, ...]:
        """Return what the lessons of a version rest on; none for v1. Raises StoreError."""
        if name == FIRST:
            return ()
        file = self.path(name) / "sources.json"
        try:
            return from_wire(tuple[LessonSource, ...], _read(file, name))
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
        evidence: Sequence[EvidenceGroup],
    ) -> PolicyVersion:
        """Return the version that a job learned, named once however often it is added.

        Raises StoreError and BusError.
        """
        self._ensure_first(run)
        row = self._claim(job, validation, run.finished_at)
        parents = (parent,)
        version = policy_of(
            run, name=row.name, parents=parents, job=job, dataset=dataset, validation=validation
        )
        inherited = {one.lesson: one for one in self.sources(parent)}
        self._write(run, version, lesson_sources(run, evidence, inherited))
        return version

    def decide(
        self, name: str, state: Literal["approved", "rejected"], *, by: str, reason: str, at: str
    ) -> VersionRow:
        """Note what a person decided of a version, in its row and the audit; raises StoreError, BusError."""
        key = f"{ROW}.{self.row(name).name}"
        while True:
            value, revision = self._rows.get(key)
            before = VersionRow(**json.loads(value or b"{}"))
            if before.state == state:
                raise StoreError(f"version {name} is {state} already, by {before.by or 'its validation'}")
            if state == "approved" and before.state == "rejected" and not reason:
                raise StoreError(f"version {name} was rejected; say why it is approved all the same")
            row = replace(before, state=state, by=by, reason=reason, at=at)
            said = {
                "action": f"policy_{state}",
                "what": name,
                "ref": by,
                "reason": reason,
                "was": before.state,
            }
            event = BusEvent(
                id=derived_id(key, str(revision), state),
                subject=AUDIT_SUBJECT,
                time=at,
                data=json.dumps(said).encode(),
            )
            try:
                self._store.publish([event], [TablePut(key=key, value=_encoded(row), revision=revision)])
            except RevisionConflict:
                continue
            return row

    def _ensure_first(self, run: Run) -> None:
        version = first_version(run)
        row = VersionRow(name=FIRST, job="", state="approved", at=version.created_at)
        if self._rows.get(f"{ROW}.{FIRST}")[0] is None:
            self._put_new(row)
        if not (self.path(FIRST) / "policy.json").exists():
            self._write(run, version, ())

    def _claim(self, job: str, validation: Validation, at: str) -> VersionRow:
        """Return the row of a job's version, which is made where there is none."""
        while True:
            rows = self.listed()
            if (known := next((row for row in rows if row.job == job), None)) is not None:
                return known
            number = max((int(row.name[1:]) for row in rows), default=1) + 1
            row = VersionRow(name=f"v{number}", job=job, state=validation.outcome, at=at)
            if self._put_new(row):
                return row

    def _put_new(self, row: VersionRow) -> bool:
        try:
            self._rows.put(f"{ROW}.{row.name}", _encoded(row), 0)
        except RevisionConflict:
            return False
        return True

    def _write(self, run: Run, version: PolicyVersion, sources: Sequence[LessonSource]) -> None:
        folder = self.path(version.name)
        folder.mkdir(parents=True, exist_ok=True)
        save_library(folder / "library.json", empty() if version.name == FIRST else run.library)
        if version.name != FIRST:
            write_text(folder / "sources.json", json.dumps(to_wire(sources), indent=1) + "\n")
        write_text(folder / "README.md", card_text(version, run.library.experiences))
        write_json(folder / "policy.json", {"schema": POLICY, "content": version.content, **to_wire(version)})


def _read(file: Path, name: str) -> Json:
    try:
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"cannot read {file}: {error}; run the job of version {name} again") from error


def _encoded(row: VersionRow) -> bytes:
    return json.dumps(to_wire(row), separators=(",", ":")).encode()
