"""A task that ``tfgrpo export harbor`` wrote, on its way back."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.stamp import stamp, stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.archives import ArchiveProblem, read_entries
from pytest_tfgrpo.suite.imports.harbor import task_form
from pytest_tfgrpo.suite.imports.harbor.task_folder import TEXT_MAX_BYTES, TaskFolder, TaskProblem
from pytest_tfgrpo.suite.imports.harbor.task_parts import TaskParts, archive_names

ARCHIVE = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,200}/){1,9}[A-Za-z0-9_][A-Za-z0-9._-]{0,200}\.tar\.gz")
"""A name that nothing else can have in a suite: below a folder, and no file that pytest looks at."""
JSON_MAX_BYTES = 64_000_000
FOLLOWED = ("schema_version", "agent.timeout_sec", "environment.build_timeout_sec")
"""Values of ``task.toml`` that an export writes."""


def read_own(
    folder: TaskFolder, config: Mapping[str, Json], id_: str, *, own_names: bool = True
) -> TaskParts:
    """Return the scenario that a task of ours was made of; raises TaskProblem.

    `own_names`: its archives keep the names that they had in its suite, where these can do no harm.
    """
    said = config["metadata"][task_form.OURS]
    if not isinstance(said, Mapping) or said.get("form") != task_form.FORM:
        raise TaskProblem(
            f"metadata.{task_form.OURS} of its task.toml has another form than {task_form.FORM}; import it "
            "with the version that wrote it"
        )
    written = _scenario_in(said)
    check: Mapping[str, Json] = written["checks"][0]
    scenario: dict[str, Json] = {key: written[key] for key in task_form.KEPT if key in written}
    scenario["prompt"] = folder.text(task_form.INSTRUCTION)
    if (limit := _agent_limit(config)) is not None:
        scenario["timeout_s"] = limit
    base = _archive(folder, task_form.WORKSPACE)
    archive, hidden = _names(written, check, id_) if own_names else archive_names(id_)
    files = {archive: base, hidden: _archive(folder, task_form.HIDDEN)}
    scenario["workspace"] = {"archive": archive, "sha256": stamp_bytes(base)}
    if folder.holds(task_form.LOCKED):
        data = folder.data(task_form.LOCKED, JSON_MAX_BYTES)
        scenario["environment"] = digest = _environment(data)
        files[f"environments/{digest}.json"] = data
    scenario["checks"] = [{**check, "hidden": hidden}]
    files |= _beside(folder, archive, id_)
    renamed = [] if (archive, hidden) == _said(written, check) else ["names of archives that cannot be kept"]
    return TaskParts(
        scenario=scenario,
        files=files,
        lost=(*renamed, *_unread_keys(config, written), *_changed_files(folder, said)),
    )


def _scenario_in(said: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return our values of a scenario; its check is of one kind, as others could run any program here."""
    written = said.get("scenario")
    if not isinstance(written, Mapping) or not _has_one_check(written.get("checks")):
        raise TaskProblem(
            f"metadata.{task_form.OURS}.scenario of its task.toml must have one check, of kind tests with "
            "the runner pytest"
        )
    return written


def _has_one_check(checks: Json) -> bool:
    one = isinstance(checks, list) and len(checks) == 1 and isinstance(checks[0], Mapping)
    return one and task_form.runs_pytest(checks[0])


def _agent_limit(config: Mapping[str, Json]) -> Json:
    agent = config.get("agent")
    return agent.get("timeout_sec") if isinstance(agent, Mapping) else None


def _archive(folder: TaskFolder, name: str) -> bytes:
    data = folder.data(name)
    try:
        for _ in read_entries(io.BytesIO(data)):
            pass
    except ArchiveProblem as error:
        raise TaskProblem(f"{name}: {error}") from None
    return data


def _said(written: Mapping[str, Json], check: Mapping[str, Json]) -> tuple[Json, Json]:
    workspace = written.get("workspace")
    return workspace.get("archive") if isinstance(workspace, Mapping) else None, check.get("hidden")


def _names(written: Mapping[str, Json], check: Mapping[str, Json], id_: str) -> tuple[str, str]:
    """Return where the archives go: as the scenario had them if that can do no harm."""
    archive, hidden = _said(written, check)
    for name in (archive, hidden):
        if not isinstance(name, str) or not ARCHIVE.fullmatch(name):
            return archive_names(id_)
    return (archive, hidden) if archive != hidden else archive_names(id_)


def _environment(data: bytes) -> str:
    value = _json(data, task_form.LOCKED)
    if found := violations("environment", value):
        raise TaskProblem(f"{task_form.LOCKED}: {found[0].pointer or '/'}: {found[0].message}")
    if value["setup"]:
        raise TaskProblem(f"{task_form.LOCKED} has set-up commands, which no export writes")
    return stamp(value)


def _beside(folder: TaskFolder, archive: str, id_: str) -> dict[str, bytes]:
    """Return the reference and the provenance, which lie beside the folder of the archive."""
    start = str(PurePosixPath(archive).parent.parent / "x").removesuffix("x")
    found = {}
    if folder.holds(task_form.REFERENCE):
        found[f"{start}references/{id_}.tar.gz"] = _archive(folder, task_form.REFERENCE)
    if folder.holds(task_form.PROVENANCE):
        found[f"{start}provenance/{id_}.json"] = data = folder.data(task_form.PROVENANCE, JSON_MAX_BYTES)
        _json(data, task_form.PROVENANCE)
    return found


def _json(data: bytes, name: str) -> Mapping[str, Json]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TaskProblem(f"{name} is not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise TaskProblem(f"{name} must be an object, not {short(value)}")
    return value


def _unread_keys(config: Mapping[str, Json], written: Mapping[str, Json]) -> Iterator[str]:
    """Yield what somebody wrote into ``task.toml`` since its export."""
    metadata = f"metadata.{task_form.OURS}."
    limit = task_form.verifier_limit(written["checks"][0])
    for key, value in task_form.settings_of(config):
        if (
            (key, value) != ("verifier.timeout_sec", limit)
            and key not in FOLLOWED
            and not key.startswith(metadata)
            and value not in ("", [], {})
        ):
            yield f"`{key}` of a task.toml"
    for key in written:
        if key not in (*task_form.KEPT, "checks", "workspace"):
            yield f"`{metadata}scenario.{key}` of a task.toml"


def _changed_files(folder: TaskFolder, said: Mapping[str, Json]) -> Iterator[str]:
    """Yield the files that an export made of the scenario and that somebody changed or added since."""
    made = said.get("made")
    known = dict(made) if isinstance(made, Mapping) else {}
    data = {
        *(task_form.WORKSPACE, task_form.HIDDEN, task_form.LOCKED),
        *(task_form.REFERENCE, task_form.PROVENANCE),
    }
    for name, digest in known.items():
        try:
            same = stamp_bytes(folder.data(name, TEXT_MAX_BYTES * 64)) == digest
        except TaskProblem:
            same = False
        if not same:
            yield f"changes of `{name}` since the export"
    for under in (task_form.ENVIRONMENT, task_form.TESTS, task_form.SOLUTION):
        for name in folder.names(under):
            if f"{under}/{name}" not in data | known.keys():
                yield f"the file `{under}/{name}`, added since the export"
