"""The files of a harvested suite; a scenario's own file is written last, so that there is no half one."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError, StoreError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import write_atomic
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.harvest.fixes import HarvestRow, HarvestStatus
from pytest_tfgrpo.harvest.history.candidates import is_code
from pytest_tfgrpo.harvest.suite.fix_families import FixPlace, families_by_files
from pytest_tfgrpo.harvest.suite.provenance import Provenance, read_provenance, write_provenance
from pytest_tfgrpo.harvest.suite.scenario_text import (
    family_in,
    scenario_text,
    split_in,
    with_family,
    with_split,
)
from pytest_tfgrpo.harvest.suite.split_by_time import splits_by_time
from pytest_tfgrpo.sandbox.programs.environments import Environment, to_file

ARCHIVES, REFERENCES, ENVIRONMENTS, PROVENANCE = "archives", "references", "environments", "provenance"


@dataclass(frozen=True, kw_only=True, slots=True)
class FixArchives:
    """The three archives of a fix, as tar.gz."""

    base: bytes
    """The files before the fix."""
    hidden: bytes
    """Protected files as the fix has them."""
    reference: bytes
    """What the fix added or changed besides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SuitePaths:
    """Where the files of a scenario lie in a suite."""

    suite: Path
    id: str

    @property
    def scenario(self) -> Path:
        """The scenario itself."""
        return self.suite / f"{self.id}.scenario.yaml"

    @property
    def base(self) -> Path:
        """The archive of the tree before the fix."""
        return self.suite / ARCHIVES / f"{self.id}.base.tar.gz"

    @property
    def hidden(self) -> Path:
        """The archive of the fix's protected files."""
        return self.suite / ARCHIVES / f"{self.id}.hidden.tar.gz"

    @property
    def reference(self) -> Path:
        """The archive of the rest of the fix."""
        return self.suite / REFERENCES / f"{self.id}.tar.gz"

    @property
    def provenance(self) -> Path:
        """Where it comes from, and how it was proven."""
        return self.suite / PROVENANCE / f"{self.id}.json"

    @property
    def partial(self) -> Path:
        """What is known of a scenario that a person must complete."""
        return self.suite / f"{self.id}.scenario.partial.json"

    @property
    def manual(self) -> Path:
        """What that person has to do."""
        return self.suite / f"{self.id}.manual.md"


def environment_path(suite: Path, stamp: str) -> Path:
    """Return where a suite keeps an environment."""
    return suite / ENVIRONMENTS / f"{stamp}.json"


def digests(paths: SuitePaths, archives: FixArchives) -> dict[str, str]:
    """Return the sha256 of a scenario's archives, by path in the suite."""
    named = {paths.base: archives.base, paths.hidden: archives.hidden, paths.reference: archives.reference}
    return {path.relative_to(paths.suite).as_posix(): stamp_bytes(data) for path, data in named.items()}


def write_proof(suite: Path, provenance: Provenance, environment: Environment | None) -> None:
    """Write what is proven, from which with the repository all else follows; raises StoreError."""
    stamp = provenance.validation.environment
    if stamp is not None and environment is not None:
        _write_json(environment_path(suite, stamp), to_file(environment))
    path = SuitePaths(suite=suite, id=provenance.id).provenance
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_provenance(path, provenance)
    except (OSError, JournalError) as error:
        raise _no_room(path, error) from error


def write_archives(suite: Path, id_: str, archives: FixArchives) -> None:
    """Write the archives of a proven fix; raises StoreError."""
    paths = SuitePaths(suite=suite, id=id_)
    for path, data in (
        (paths.base, archives.base),
        (paths.hidden, archives.hidden),
        (paths.reference, archives.reference),
    ):
        _write(path, data)


def lacks_archives(suite: Path, id_: str) -> bool:
    """Return whether a scenario is there whose archives are gone; a proof says what they must be."""
    paths = SuitePaths(suite=suite, id=id_)
    whole = all(path.is_file() for path in (paths.base, paths.hidden, paths.reference))
    return not whole and paths.scenario.is_file() and paths.provenance.is_file()


def write_scenario(suite: Path, provenance: Provenance, archives: FixArchives, domain: str) -> None:
    """Write the archives of a proven fix, and its scenario last; raises StoreError."""
    paths = SuitePaths(suite=suite, id=provenance.id)
    write_archives(suite, provenance.id, archives)
    job = provenance.origin.job
    found = f"Captured as job {job}, commit" if job else "Harvested from commit"
    heading = f"{found} {provenance.commit}; its proof: {PROVENANCE}/{provenance.id}.json"
    _write(paths.scenario, scenario_text(scenario_value(provenance, domain), heading).encode())
    for left in (paths.partial, paths.manual):
        left.unlink(missing_ok=True)


def scenario_value(provenance: Provenance, domain: str) -> dict[str, Json]:
    """Return a scenario as its file has it."""
    validation, recipe, id_ = provenance.validation, provenance.recipe, provenance.id
    base, hidden = f"{ARCHIVES}/{id_}.base.tar.gz", f"{ARCHIVES}/{id_}.hidden.tar.gz"
    check: dict[str, Json] = {
        "kind": "tests",
        "runner": _runner(provenance),
        "hidden": hidden,
        "hidden_sha256": provenance.archives[hidden],
        "fail_to_pass": list(validation.fail_to_pass),
        "pass_to_pass": list(validation.pass_to_pass),
        "timeout_s": provenance.timeout_s,
    }
    if recipe.protected:
        check["protected"] = list(recipe.protected)
    if validation.uses:
        check["allow"] = list(validation.uses)
    if validation.changes is not None:
        check["changes"] = to_wire(validation.changes)
    if provenance.removed_tests:
        check["removed"] = list(provenance.removed_tests)
    value: dict[str, Json] = {
        "id": id_,
        "domain": domain,
        "split": "eval",
        "tags": tags_of(provenance),
        "prompt": provenance.prompt.text,
        "workspace": {"archive": base, "sha256": provenance.archives[base]},
    }
    if validation.environment is not None:
        value["environment"] = validation.environment
    return {**value, "checks": [check]}


def tags_of(provenance: Provenance) -> list[str]:
    """Return the tags of a harvested scenario."""
    found = "captured" if provenance.origin.source == "capture" else "harvested"
    return [found, *(["leak"] if provenance.prompt.cut else []),
            *(["relaxed"] if provenance.validation.relaxed else [])]  # fmt: skip


def _runner(provenance: Provenance) -> Json:
    command = provenance.recipe.command
    if command.folder == "." and not command.run:
        return command.runner
    value: dict[str, Json] = {"name": command.runner, "folder": command.folder}
    return {**value, "run": list(command.run)} if command.run else value


def write_partial(suite: Path, id_: str, value: Mapping[str, Json], advice: str) -> None:
    """Write what is known of a scenario that a person must complete, and what to do; raises StoreError."""
    paths = SuitePaths(suite=suite, id=id_)
    _write(paths.manual, advice.encode("utf-8", "backslashreplace"))
    _write_json(paths.partial, value)


def resplit(suite: Path, rows: Iterable[HarvestRow]) -> int:
    """Put the scenarios of a suite into their splits by time and families by files; return how many changed.

    A scenario that is gone, or has no line ``split:`` any more, is left as it is, and so is a family that a
    person wrote. Raises StoreError.
    """
    times, texts, named = {}, {}, set[str | None]({None})
    for row in rows:
        named.add(row.id)
        if row.status is HarvestStatus.VALIDATED:
            try:
                texts[row.id] = SuitePaths(suite=suite, id=row.id).scenario.read_text("utf-8")
                times[row.id] = row.committed_at
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                raise StoreError(f"cannot read a scenario of {suite}: {error}") from error
    present = {id_: split for id_, text in texts.items() if (split := split_in(text)) is not None}
    splits = splits_by_time(times.items(), present)
    ours = {id_ for id_ in present if family_in(texts[id_]) in named}
    places = _places(suite, {id_: times[id_] for id_ in ours})
    families = families_by_files(places)
    changed = 0
    for id_ in present:
        text = with_split(texts[id_], splits[id_]) if present[id_] != splits[id_] else texts[id_]
        if text is not None and id_ in places and families.get(id_) != family_in(text):
            text = with_family(text, families.get(id_))
        if text is not None and text != texts[id_]:
            _write(SuitePaths(suite=suite, id=id_).scenario, text.encode())
            changed += 1
    return changed


def _places(suite: Path, times: Mapping[str, int]) -> dict[str, FixPlace]:
    """Return where each fix lies; one whose provenance is lost is left out."""
    found = {}
    for id_, committed_at in times.items():
        with suppress(StoreError):
            sources = read_provenance(SuitePaths(suite=suite, id=id_).provenance).sources
            code = {path for path in sources if is_code(path)}
            found[id_] = FixPlace(committed_at=committed_at, sources=code)
    return found


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [data])
    except OSError as error:
        raise _no_room(path, error) from error


def _write_json(path: Path, value: Mapping[str, Json]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, value)
    except (OSError, JournalError) as error:
        raise _no_room(path, error) from error


def _no_room(path: Path, error: Exception) -> StoreError:
    cause = error.__cause__ if isinstance(error, JournalError) else error
    full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    advice = "; make room and harvest again, what is proven is kept" if full else ""
    return StoreError(f"cannot write {path}: {cause}{advice}")
