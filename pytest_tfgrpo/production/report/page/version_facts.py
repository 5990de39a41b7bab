"""Each policy version as the page shows it; one whose files cannot be read says why in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.serving import FIRST
from pytest_tfgrpo.production.report.page.transitions import DeployStep, number_of, table_of
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.policy import PolicyVersion
from pytest_tfgrpo.production.training.versions.rows import VersionRow
from pytest_tfgrpo.production.training.versions.sources import LessonSource
from pytest_tfgrpo.production.training.versions.validation import Validation

BY_HAND = "no job of this loop made it"
WITHOUT = "the agent without lessons"


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionFacts:
    """A version."""

    name: str
    state: str
    """Where it stands, once users met it; else what its validation or a person said."""
    note: str = ""
    """Why nothing more is known of it."""
    row: VersionRow | None = None
    """None: only events know it."""
    version: PolicyVersion | None = None
    """None: its files cannot be read."""
    found: Validation | None = None
    """What its validation found, with what people said."""
    sources: tuple[LessonSource, ...] = ()
    inherited: frozenset[str] | None = None
    """Ids of lessons that a parent has too; None: a parent cannot be read."""

    @property
    def made_at(self) -> str:
        """When it was made; empty where that is unknown."""
        return self.version.created_at if self.version else ""

    @property
    def lessons(self) -> int | None:
        """How many it has; None where that is unknown."""
        return self.version.lessons if self.version else 0 if self.name == FIRST else None

    @property
    def attempts(self) -> float | None:
        """Attempts of production that it learned from."""
        counts = table_of(self.version.dataset.get("counts")) if self.version else {}
        return number_of(counts.get("attempts"))

    @property
    def against(self) -> tuple[str, ...]:
        """Why it is not validated."""
        return self.found.reasons if self.found else ()


def versions_of_store(
    bus: Bus, store: str, states: Mapping[str, str], steps: Sequence[DeployStep]
) -> tuple[tuple[VersionFacts, ...], str]:
    """Return all versions, those that only events know included, and why the rest cannot be read.

    `states` are those of versions that users met. Raises BusError.
    """
    try:
        policies = Policies(bus, open_artifacts(store))
        rows = policies.listed()
    except (SettingError, StoreError) as error:
        return tuple(_only_met(states, steps, ())), str(error)
    found = [_version(policies, row, states) for row in rows]
    met = _only_met(states, steps, [one.name for one in found])
    return (*_with_parents(found), *met), ""


def _only_met(
    states: Mapping[str, str], steps: Iterable[DeployStep], known: Sequence[str]
) -> Iterator[VersionFacts]:
    """Yield versions that users met and no row describes."""
    last = {step.version: step.state for step in steps}
    for name, state in sorted({**last, **states}.items(), key=_by_number):
        if name not in known and (name != FIRST or last):
            yield VersionFacts(name=name, state=state, note=WITHOUT if name == FIRST else BY_HAND)


def _by_number(item: tuple[str, str]) -> tuple[int, str]:
    digits = item[0].removeprefix("v")
    return (int(digits) if digits.isdecimal() and len(digits) < 10 else 0), item[0]


def _version(policies: Policies, row: VersionRow, states: Mapping[str, str]) -> VersionFacts:
    facts = VersionFacts(name=row.name, state=row.shown(states.get(row.name)), row=row)
    try:
        version, sources = policies.read(row.name), policies.sources(row.name)
        found = version.judged
    except StoreError as error:
        return replace(facts, note=str(error))
    note = WITHOUT if row.name == FIRST else ""
    return replace(facts, note=note, version=version, found=found, sources=sources)


def _with_parents(found: Sequence[VersionFacts]) -> Iterator[VersionFacts]:
    """Yield versions with what they have of their parents."""
    known = {one.name: {source.lesson for source in one.sources} for one in found if one.version}
    for one in found:
        parents = one.version.parents if one.version else ()
        older = [known[parent] for parent in parents if parent in known]
        yield replace(one, inherited=frozenset().union(*older) if len(older) == len(parents) else None)
