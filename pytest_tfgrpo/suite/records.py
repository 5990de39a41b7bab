"""Scenarios as records: the rules of a scenario file, and a stamp, for what a program made."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import Attachment, Check, Scenario, WorkspaceArchive, stamped
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.sandbox.file_digests import digest_of
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.scenario import build_scenario
from pytest_tfgrpo.suite.scenario_files import Suite

AS_THEY_ARE = ("id", "domain", "split", "prompt", "input", "min_score", "timeout_s", "family", "environment")


def scenario(
    id_: str, *, folder: Path | None = None, kinds: Mapping[str, CheckKind] = KINDS, **fields: Json
) -> Scenario:
    """Return a scenario that a program makes: checked and stamped as one in a scenario file.

    `fields` are those of a scenario file; `folder` has the files that they name (default: that of the calling
    module); `kinds` are the check kinds (default: the built-in ones). Raises ScenarioError, which names the
    line of the call.
    """
    caller = sys._getframe(1)
    file = Path(caller.f_code.co_filename)
    source = f"{file.name}:{caller.f_lineno}"
    return build_scenario(
        {"id": id_, **fields}, source=source, checker=None, folder=folder or file.parent, kinds=kinds
    )


def checked(scenario: Scenario, root: Path, kinds: Mapping[str, CheckKind]) -> Scenario:
    """Return a record with its stamp; raises ScenarioError with all that a scenario file may not have."""
    source = scenario.source or f"scenario {scenario.id!r}"
    file = root / source.rpartition(":")[0]
    folder = file.parent if file.is_file() else root
    made = build_scenario(
        _as_written(scenario, folder, kinds),
        source=source,
        checker=scenario.checker,
        folder=folder,
        kinds=kinds,
    )
    attachments = tuple(_attached(one, source) for one in scenario.attachments)
    workspace = None if scenario.workspace is None else _archived(scenario.workspace, source)
    made = replace(made, fixtures=scenario.fixtures, checker_sha256=scenario.checker_sha256)
    return stamped(replace(made, attachments=attachments, workspace=workspace))


def revised(
    before: Iterable[Scenario], after: Iterable[Scenario], root: Path, kinds: Mapping[str, CheckKind]
) -> list[Scenario]:
    """Return the scenarios `after` a change, those that are new or other than `before` checked and stamped.

    Raises ScenarioError, also where an id comes twice or a task is in two splits.
    """
    known = {scenario.id: scenario for scenario in before}
    suite, problems, found = Suite(), [], list[Scenario]()
    for one in after:
        if not isinstance(one, Scenario):
            raise ScenarioError(f"{short(one)} is not a Scenario")
        was = known.get(one.id)
        if one.id in suite.scenarios:
            problems.append(f"{one.source or 'scenario'}: the id {one.id!r} comes twice; ids must be unique")
        elif one.checker is not None and (
            was is None or (was.checker, was.split) != (one.checker, one.split)
        ):
            problems.append(
                f"scenario {one.id!r} is checked by the test function {one.checker}, whose items have "
                "another id or split; remove checker, and add checks"
            )
        else:
            try:
                found.append(one if one is was else checked(one, root, kinds))
                problems += [problem] if (problem := suite.add(found[-1])) is not None else []
            except ScenarioError as error:
                problems.append(str(error))
    if problems:
        raise ScenarioError("\n".join(problems))
    return found


def _as_written(scenario: Scenario, folder: Path, kinds: Mapping[str, CheckKind]) -> dict[str, Json]:
    """Return a record as a scenario file would have it, without its attachments and its workspace."""
    fields = {name: getattr(scenario, name) for name in AS_THEY_ARE}
    fields |= {"tools": scenario.tools, "tags": scenario.tags or None, "truth": scenario.truth}
    fields["agents"] = scenario.agents or None
    fields["rubric"] = [to_wire(criterion) for criterion in scenario.rubric] or None
    fields["checks"] = [_check(c, folder, kinds) for c in scenario.checks if c.turn is None] or None
    fields |= {name: step.written for name, step in scenario.steps.items()}
    if scenario.mocks:
        fields["mocks"] = {mock.tool: [case.written for case in mock.cases] for mock in scenario.mocks}
    if scenario.turns:
        fields |= {"prompt": None, "turns": _turns(scenario, folder, kinds)}
        fields["user"] = None if scenario.user is None else asdict(scenario.user)
    return {
        name: value for name, value in fields.items() if value is not None and (name, value) != ("prompt", "")
    }


def _turns(scenario: Scenario, folder: Path, kinds: Mapping[str, CheckKind]) -> list[Json]:
    """Return turns as written, with the checks after each; raises ScenarioError where they do not fit."""
    turns, source = scenario.turns, scenario.source or f"scenario {scenario.id!r}"
    if scenario.prompt != turns[0]:
        raise ScenarioError(f"{source}: #/prompt: must be the first of the turns; change both alike")
    checks: dict[int, list[Json]] = {}
    for check in scenario.checks:
        if check.turn is not None:
            if not 1 <= check.turn <= len(turns):
                raise ScenarioError(f"{source}: #/checks: there is no turn {check.turn}, but {len(turns)}")
            checks.setdefault(check.turn, []).append(_check(check, folder, kinds))
    return [
        {"user": said} | ({"checks": checks[n]} if n in checks else {}) for n, said in enumerate(turns, 1)
    ]


def _check(check: Check, folder: Path, kinds: Mapping[str, CheckKind]) -> dict[str, Json]:
    """Return a check as written: without what its kind adds to the parameters of one that was loaded."""
    params, kind = dict(check.params), kinds.get(check.kind)
    written = (
        {key: params[key] for key in params if key in kind.params.get("properties", params)}
        if kind
        else params
    )
    if kind is not None and len(written) < len(params):
        with suppress(ValueError, KeyError):  # what is wrong is said where the scenario is built
            params = written if kind.prepare(written, folder) == params else params
    return {"kind": check.kind, "weight": check.weight, **({"not": True} if check.negated else {}), **params}


def _attached(attachment: Attachment, source: str) -> Attachment:
    try:
        return replace(attachment, sha256=stamp_bytes(attachment.path.read_bytes()))
    except OSError as error:
        raise ScenarioError(
            f"{source}: #/attachments: cannot read {attachment.path}: {error.strerror}"
        ) from None


def _archived(archive: WorkspaceArchive, source: str) -> WorkspaceArchive:
    try:
        return replace(archive, sha256=digest_of(archive.path))
    except OSError as error:
        raise ScenarioError(
            f"{source}: #/workspace/archive: cannot read {archive.path}: {error.strerror}"
        ) from None
