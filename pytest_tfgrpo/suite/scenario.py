"""One scenario: from a JSON value to a validated, stamped record."""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from sys import intern
from typing import Any

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import (
    Attachment,
    Check,
    Scenario,
    SimulatedUser,
    Split,
    Truth,
    WorkspaceArchive,
    stamped,
)
from pytest_tfgrpo.core.texts.named_values import nearest, same_thing, short
from pytest_tfgrpo.core.wire.schema import Violation, check_schema, load_schema, violations
from pytest_tfgrpo.core.wire.schema_accepts import Accepts, accepts
from pytest_tfgrpo.core.wire.stamp import SEED_BITS, seed_of, stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.paths import confined
from pytest_tfgrpo.scoring.checks.protocol import BadParam, CheckKind
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.ground_truth import criteria_of, misfits, with_checks
from pytest_tfgrpo.suite.mocks.scenario_mocks import read_mocks
from pytest_tfgrpo.suite.workspace_archive import WrongDigest, find_archive
from pytest_tfgrpo.suite.world_steps import read_step

EVAL_SHARE = 0.3
"""Share of the families that a hash puts into the eval split."""
ATTACHMENT_MAX_BYTES = 10_000_000
MAX_WEIGHT = 1_000_000
"""Of a check, as its schema has it."""
DEFAULT_DOMAIN = "general"
KNOWN_CHECKS = 1000
"""Checks of one folder that scenarios may share, the first ones."""


class Invalid(ValueError):
    """A value that is no scenario."""

    def __init__(self, found: list[Violation]) -> None:
        super().__init__(found)
        self.violations = found


def build_scenario(
    data: Mapping[str, Json],
    *,
    source: str,
    checker: str | None,
    folder: Path,
    kinds: Mapping[str, CheckKind] = KINDS,
) -> Scenario:
    """Return the scenario that `data` describes, from a mark or a program; `folder` has the files it names.

    With a `checker`, the test function of a mark, the checks may be left out. Raises ScenarioError.
    """
    try:
        plain = json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ScenarioError(f"{source}: #{_unfit(data)}: JSON cannot hold the value: {error}") from None
    try:
        return Loader(folder, kinds).build(plain, source=source, checker=checker)
    except Invalid as error:
        lines = [f"{source}: #{found.pointer}: {found.message}" for found in error.violations]
        raise ScenarioError("\n".join(lines)) from None


def _without_kind(check: Json, kinds: Iterable[str]) -> list[Violation]:
    """Return which keys of a check without a kind seem to name it, as in ``equals: Paris``."""
    if not isinstance(check, dict) or "kind" in check:
        return []
    named = {key: key if key in kinds else same_thing(key, kinds) for key in check}
    return [
        Violation((key,), f"write kind: {kind}, and its parameters as keys of their own")
        for key, kind in named.items()
        if kind is not None
    ]


def _unfit(data: Mapping[str, Json]) -> str:
    """Return the pointer of the first value that JSON cannot hold, such as NaN where a table has no value."""
    for key, value in data.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            return f"/{key}"
    return ""


class Loader:
    """Builds the scenarios of one folder."""

    def __init__(self, folder: Path, kinds: Mapping[str, CheckKind]) -> None:
        self._folder = folder
        self._kinds = kinds
        self._accepts = {name: _params(kind) for name, kind in kinds.items()}
        self._attachment: Callable[[str], Attachment] = cache(self._read_attachment)
        self._known: dict[bytes, Check] = {}
        """Checks as they are written, which many scenarios of a file may share."""

    def build(self, data: Json, *, source: str, checker: str | None = None) -> Scenario:
        """Return the scenario that `data` describes; raises Invalid with all that is wrong."""
        if not isinstance(data, dict):
            raise Invalid([Violation((), f"a scenario must be an object, not {short(data)}")])
        data = with_checks(data)
        schema, accept = _schema()
        found = [] if accept(data) else violations(schema, data)
        found.extend(misfits(data, checker))
        written = data.get("checks", [])
        checks = self._each("checks", written, self._check, found) if isinstance(written, list) else ()
        checks = (*self._after_turns(data.get("turns"), found), *checks)
        names = data.get("attachments", [])
        attachments = () if found else self._each("attachments", names, self._attach, found)
        workspace = self._workspace(data["workspace"], found) if "workspace" in data and not found else None
        extras = {} if found else self._extras(data, found)
        if found:
            raise Invalid(found)
        made = _record(data, checks, attachments, workspace, source, checker)
        return stamped(replace(made, **extras) if extras else made)

    def _each(
        self, key: str, items: list[Json], read: Callable[[Json], Any], found: list[Violation]
    ) -> tuple[Any, ...]:
        """Return what `read` makes of each item; adds the violations it raises, placed under `key`."""
        made = []
        for i, item in enumerate(items):
            try:
                made.append(read(item))
            except Invalid as error:
                found.extend(Violation((key, i, *path), message) for path, message in error.violations)
        return tuple(made)

    def _after_turns(self, turns: Json, found: list[Violation]) -> Iterator[Check]:
        """Yield the checks after single turns; adds the violations of those that are none."""
        for place, turn in enumerate(turns if isinstance(turns, list) else ()):
            written = turn.get("checks") if isinstance(turn, dict) else None
            if not isinstance(written, list):
                continue
            broken: list[Violation] = []
            for check in self._each("checks", written, self._check_after_turn, broken):
                yield replace(check, turn=place + 1)
            found.extend(Violation(("turns", place, *path), message) for path, message in broken)

    def _check_after_turn(self, data: Json) -> Check:
        check = self._check(data)
        if not self._kinds[check.kind].after_turn:
            message = f"a check of kind {check.kind!r} looks at the workspace, which is checked at the end"
            raise Invalid([Violation(("kind",), f"{message}; move it to the checks of the scenario")])
        return check

    def _check(self, data: Json) -> Check:
        written = marshal.dumps(data, 2)
        known = self._known.get(written)
        if known is None:
            known = self._made_check(data)
            if len(self._known) < KNOWN_CHECKS:
                self._known[written] = known
        return known

    def _made_check(self, data: Json) -> Check:
        weight = data.get("weight", 1.0) if isinstance(data, dict) else None
        if (
            not isinstance(weight, int | float)
            or abs(weight) > MAX_WEIGHT
            or not isinstance(data.get("kind"), str)
        ):
            raise Invalid(_without_kind(data, self._kinds))  # the schema of the scenario has said the rest
        params = {intern(key): v for key, v in data.items() if key not in ("kind", "weight", "not")}
        kind = self._kinds.get(data["kind"])
        if kind is None:
            hint = nearest(data["kind"], self._kinds) or f"; known are {', '.join(self._kinds)}"
            raise Invalid([Violation(("kind",), f"unknown check kind {short(data['kind'])}{hint}")])
        if not self._accepts[data["kind"]](params) and (found := violations(kind.params, params)):
            raise Invalid(found)
        try:
            prepared = kind.prepare(params, self._folder)
        except ValueError as error:
            path = (error.key,) if isinstance(error, BadParam) else ()
            raise Invalid([Violation(path, str(error))]) from error
        if data.get("not") and not kind.negatable:
            raise Invalid([Violation(("not",), f"a check of kind {kind.name!r} cannot be turned around")])
        return Check(
            kind=intern(data["kind"]), weight=float(weight), params=prepared, negated=data.get("not") is True
        )

    def _workspace(self, data: Mapping[str, Json], found: list[Violation]) -> WorkspaceArchive | None:
        try:
            return find_archive(data, self._folder)
        except (ValueError, OSError) as error:
            key = "sha256" if isinstance(error, WrongDigest) else "archive"
            found.append(Violation(("workspace", key), str(error)))
        return None

    def _extras(self, data: Mapping[str, Json], found: list[Violation]) -> dict[str, Any]:
        """Return what sets up and tears down the world of each rollout, and mocks of tools, by its name."""
        extras: dict[str, Any] = {}
        for name in (name for name in ("setup", "teardown") if name in data):
            try:
                extras[name] = read_step(data[name], self._folder)
            except BadParam as error:
                found.append(Violation((name, error.key), str(error)))
        if "mocks" in data:
            extras["mocks"] = read_mocks(data["mocks"], data["id"], self._folder, found)
        return extras

    def _attach(self, name: str) -> Attachment:
        try:
            return self._attachment(name)
        except (ValueError, OSError) as error:
            raise Invalid([Violation((), str(error))]) from None

    def _read_attachment(self, name: str) -> Attachment:
        path = confined(self._folder, name, ATTACHMENT_MAX_BYTES)
        return Attachment(name=name, path=path, sha256=stamp_bytes(path.read_bytes()))


def _params(kind: CheckKind) -> Accepts:
    """Return the fast path of a kind's parameters; raises ScenarioError when a plugin's schema is none."""
    if KINDS.get(kind.name) is kind:
        return _builtin_accepts(kind.name)
    try:
        check_schema(kind.params)
    except ValueError as error:
        raise ScenarioError(
            f"params of the check kind {kind.name!r} are not a JSON Schema: {error}"
        ) from None
    return accepts(kind.params)


@cache
def _builtin_accepts(name: str) -> Accepts:
    """Compiled once: each marked test function is built by itself."""
    return accepts(KINDS[name].params)


@cache
def _schema() -> tuple[Mapping[str, Json], Accepts]:
    schema = load_schema("scenario")
    return schema, accepts(schema)


def _record(
    data: Mapping[str, Json],
    checks: tuple[Check, ...],
    attachments: tuple[Attachment, ...],
    workspace: WorkspaceArchive | None,
    source: str,
    checker: str | None,
) -> Scenario:
    tools = data.get("tools")
    truth: Truth = data.get("truth", "checks")
    turns = tuple(turn if isinstance(turn, str) else turn["user"] for turn in data.get("turns", ()))
    return Scenario(
        id=data["id"],
        domain=intern(data.get("domain", DEFAULT_DOMAIN)),
        split=data.get("split") or _split(data, truth),
        prompt=turns[0] if turns else data.get("prompt", ""),
        input=data.get("input"),
        attachments=attachments,
        tools=None if tools is None else tuple(tools),
        checks=checks,
        min_score=data.get("min_score"),
        tags=tuple(data.get("tags", ())),
        timeout_s=data.get("timeout_s"),
        family=data.get("family"),
        agents=tuple(data.get("agents", ())),
        source=source,
        checker=checker,
        rubric=criteria_of(data["rubric"]) if "rubric" in data else (),
        truth=truth,
        hashed=True if not data.get("split") and truth != "majority" else None,
        workspace=workspace,
        environment=data.get("environment"),
        turns=turns,
        user=SimulatedUser(**data["user"]) if "user" in data else None,
    )


def _split(data: Mapping[str, Json], truth: Truth) -> Split:
    """Return the split of a scenario that names none; the majority of a group is only ever learned from."""
    return "train" if truth == "majority" else split_of(data.get("family", data["id"]))


def split_of(family: str) -> Split:
    """Return the split of a family that names none: the same for ever, eval for about 3 families in 10."""
    return "eval" if seed_of("split", family) < EVAL_SHARE * 2**SEED_BITS else "train"
