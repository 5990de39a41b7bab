"""Scenario files that a run was made of, as they are today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.scoring.checks.protocol import CheckContext, CheckKind
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.scenario_files import (
    Candidate,
    candidates_in,
    read_scenarios_text,
    scenarios_in,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteFile:
    """One scenario file."""

    path: Path
    name: str
    """Relative to the root folder, with forward slashes."""
    text: str
    """Without a byte order mark, line ends as they are."""
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    """By id."""
    written: Mapping[str, Candidate] = field(default_factory=dict)
    """The same as they stand in the file."""
    kinds: Mapping[str, CheckKind] = field(default_factory=dict)
    """Kinds of check by name, with a stand-in for each that only pytest's hooks know."""


def suite_files(scenarios: Iterable[Scenario], root: Path) -> tuple[dict[str, SuiteFile], dict[str, str]]:
    """Return the files of a run's scenarios by name, and why each other one cannot be read.

    Scenarios of marked test functions have none.
    """
    known = list(scenarios)
    kinds = {**KINDS, **{c.kind: _foreign(c.kind) for s in known for c in s.checks if c.kind not in KINDS}}
    names = dict.fromkeys(source_of(s) for s in known if s.checker is None)
    found: dict[str, SuiteFile] = {}
    refused: dict[str, str] = {}
    for name in names:
        try:
            found[name] = _read(root, name, kinds)
        except (ScenarioError, Refused, OSError) as error:
            refused[name] = str(error)
    return found, refused


def source_of(scenario: Scenario) -> str:
    """Return the name of the file that a scenario stands in."""
    return scenario.source.rpartition(":")[0]


def _read(root: Path, name: str, kinds: Mapping[str, CheckKind]) -> SuiteFile:
    inside = PurePosixPath(name)
    path = (root / name).resolve()
    if (
        inside.is_absolute()
        or not path.is_relative_to(root.resolve())
        or not name.endswith(SCENARIO_SUFFIXES)
    ):
        raise ScenarioError(f"{name} is not a scenario file of this project")
    text = read_scenarios_text(path)
    scenarios = {s.id: s for s in scenarios_in(text, root / name, root=root, kinds=kinds)}
    written = {one.data["id"]: one for one in candidates_in(text, path) if isinstance(one, Candidate)}
    return SuiteFile(
        path=root / name, name=name, text=text, scenarios=scenarios, written=written, kinds=kinds
    )


def _foreign(kind: str) -> CheckKind:
    """Return a stand-in for a kind of check that only pytest's hooks know: it takes any parameters."""

    def unknown(_check: Check, _context: CheckContext) -> CheckResult:
        raise ValueError(f"the kind {kind!r} comes from a hook")

    return CheckKind(name=kind, params={}, evaluate=unknown)
