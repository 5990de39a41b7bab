"""The file of the setting ``gates``: named gates, each with a selection of eval scenarios and rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path as FilePath
from typing import Literal

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.named_figures import NAME as FIGURE
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Scenario, criterion_names
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.texts.text import few, line
from pytest_tfgrpo.core.wire.schema import Path, pointer, violations
from pytest_tfgrpo.core.wire.wire import from_wire
from pytest_tfgrpo.metrics.values import BUILT_IN, check_metric, source_of
from pytest_tfgrpo.suite.documents.document import Document, Problem, Refused, read_text
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

MAX_BYTES = 1_000_000
SCHEMA = "gates"
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
JUDGING = ("min_mean", "margin", "alarm", "baseline", "gain")
"""Keys of which a gate of a metric has one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GatePlace:
    """Where a gate is written."""

    source: str = ""
    """The file."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Line of each of its keys in the file, its own under the empty name."""

    def line(self, key: str) -> int:
        """Return the line of a key, or that of the gate."""
        return self.lines.get(key, self.lines.get("", 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedGate:
    """A gate beside the one that the settings make."""

    name: str
    severity: Literal["fail", "warn"] = "fail"
    """warn: a failure is shown and never fails the run."""
    domains: tuple[str, ...] = ()
    """Domains of the eval scenarios that it judges; empty: all."""
    tags: tuple[str, ...] = ()
    """Tags, one of which those scenarios have; empty: any."""
    baseline: str | None = None
    """None: that of the setting; ``none``: no baseline."""
    margin: float | None = None
    """None: that of the setting."""
    alarm: float | None = None
    """None: that of the setting."""
    metric: str | None = None
    """What is judged; None: gt_score. It compares a metric where it has a margin, alarm or baseline."""
    min_mean: float | None = None
    max_errors: int | None = None
    max_cost_per_success_usd: float | None = None
    gain: bool = False
    """Whether it compares with the run's own baseline sweep."""
    strict: bool | None = None
    """None: as the setting says."""
    per_domain: bool = False
    """Whether means and differences are judged for each domain apart."""
    place: GatePlace = field(default_factory=GatePlace)

    @property
    def compares(self) -> bool:
        """Whether it compares with a stored baseline, where there is one."""
        if self.metric is None:
            return True
        return self.baseline != "none" and (self.margin, self.alarm, self.baseline) != (None, None, None)

    def selects(self, scenario: Scenario) -> bool:
        """Return whether it judges the scenario."""
        return (
            scenario.split == "eval"
            and (not self.domains or scenario.domain in self.domains)
            and (not self.tags or not set(self.tags).isdisjoint(scenario.tags))
        )

    def error(self, message: str, key: str = "") -> SettingError:
        """Return the error about one of its keys, or about all of it, naming file, line and place."""
        path: Path = ("gates", self.name, *([key] if key else []))
        return _error(self.place.source, [Problem(self.place.line(key), path, message)])


def load_gates(path: FilePath) -> tuple[NamedGate, ...]:
    """Return the gates of the file `path`, in its order.

    Raises SettingError, whose lines name file, line and JSON pointer.
    """
    try:
        document = parse_yaml(read_text(path, MAX_BYTES))
    except Refused as error:
        raise _error(str(path), [error.problem]) from None
    found = [Problem(document.line(v.path), v.path, v.message) for v in violations(SCHEMA, document.value)]
    if not found:
        found = [Problem(document.line(place), place, message) for place, message in _faults(document)]
    if found:
        raise _error(str(path), found)
    return tuple(_gate(name, document, str(path)) for name in document.value["gates"])


def require_selections(gates: Iterable[NamedGate], scenarios: Iterable[Scenario]) -> None:
    """Raise SettingError when a gate names a domain or tag that no eval scenario has, or selects none."""
    known = [s for s in scenarios if s.split == "eval"]
    domains, tags = {s.domain for s in known}, {tag for s in known for tag in s.tags}
    for gate in gates:
        _require_known(gate, "domains", gate.domains, domains)
        _require_known(gate, "tags", gate.tags, tags)
        if not any(map(gate.selects, known)):
            raise gate.error("selects no eval scenario: none has one of these domains and one of these tags")


def resolve_metrics(
    gates: Iterable[NamedGate], rewarders: Iterable[str], scenarios: Iterable[Scenario], *, judged: bool
) -> list[NamedGate]:
    """Return the gates with the full names of their metrics; raises SettingError on one that nothing gives.

    ``helpful`` alone is a rewarder, else the one criterion or check kind of that name, else what a marked
    test function scores so. `rewarders` are additional ones, `judged` says whether there is a judge. What
    parts a rewarder has, what a test function scores and an agent reports is not known before the run.
    """
    swept = [s for s in scenarios if s.split == "eval"]
    derived = {check_metric(check.title) for s in swept for check in s.checks}
    tested = any(s.checker is not None for s in swept)
    if tested:
        derived.add(check_metric("test"))
    if judged:
        derived |= {f"judge.{name}" for s in swept for name in criterion_names(s.rubric)}
    given = [*BUILT_IN, *rewarders]
    return [_resolved(gate, given, sorted(derived), tested=tested) for gate in gates]


def _resolved(gate: NamedGate, given: Sequence[str], derived: Sequence[str], *, tested: bool) -> NamedGate:
    metric = gate.metric
    if metric is None or metric in given or metric in derived:
        return gate
    source, (first, dot, _) = source_of(metric), metric.partition(".")
    if source == "extra" or (source == "test" and tested) or (dot and not source and first in given[3:]):
        return gate
    alike = [name for name in derived if name.partition(".")[2] == metric]
    if len(alike) > 1:
        raise gate.error(f"{short(metric)} may be {' or '.join(alike)}; write which of them", "metric")
    if alike:
        return replace(gate, metric=alike[0])
    if tested and not dot and FIGURE.fullmatch(metric):
        return replace(gate, metric=f"test.{metric}")
    known = [*given, *derived]
    hint = nearest(metric, known) or f"; there are {few(known, 20)}"
    raise gate.error(f"nothing in this run reports the metric {short(metric)}{hint}", "metric")


def _require_known(gate: NamedGate, key: str, wanted: Sequence[str], known: Iterable[str]) -> None:
    for word in wanted:
        if word not in known:
            what = key.removesuffix("s")
            raise gate.error(f"no eval scenario has the {what} {short(word)}{nearest(word, known)}", key)


def _gate(name: str, document: Document, source: str) -> NamedGate:
    fields = document.value["gates"][name]
    place: Path = ("gates", name)
    lines = {"": document.line(place)} | {key: document.line((*place, key)) for key in fields}
    gate = from_wire(NamedGate, {"name": name, **fields})
    return replace(gate, place=GatePlace(source=source, lines=lines))


def _faults(document: Document) -> Iterator[tuple[Path, str]]:
    """Yield what a schema cannot say."""
    for name, fields in document.value["gates"].items():
        if "metric" in fields:
            if fields.keys().isdisjoint(JUDGING):
                message = "a metric needs a min_mean, a margin beside a baseline, or gain to be judged by"
                yield ("gates", name, "metric"), message
            if fields["metric"] == "relative_rank" and fields.keys() & {*JUDGING[1:]}:
                message = "a rank within a group cannot be compared with another run's; use reward"
                yield ("gates", name, "metric"), message
        if not NAME.fullmatch(name):
            yield (
                ("gates", name),
                f"{short(name)} must be 1 to 64 letters, digits, '.', '_' and '-', as it names an item",
            )


def _error(source: str, problems: Sequence[Problem]) -> SettingError:
    lines = [f"gates: {source}:{p.line}: #{line(pointer(p.path), 200)}: {p.message}" for p in problems]
    return SettingError("\n".join(lines))
