"""What a rollout has of each metric: scores of rewarders by plain name, all others by their source.

``check.KIND``, ``judge.CRITERION``, ``test.NAME`` and ``extra.KEY`` are derived from what a rollout is on
file with; no rewarder may take the name of a source, so no two metrics share a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from pytest_tfgrpo.core.named_figures import NAME, reported
from pytest_tfgrpo.core.named_scores import SHARE, MetricScale
from pytest_tfgrpo.core.records import Group, Rollout, RunHeader, Score
from pytest_tfgrpo.core.scenarios import criterion_names
from pytest_tfgrpo.core.wire.stamp import stamp

GT = "gt_score"
BUILT_IN = (GT, "reward", "relative_rank")
"""Metrics that every run has."""

Criteria: TypeAlias = Mapping[str, Sequence[str]]
"""Names of the criteria of each scenario that a judge looks at, by id."""
RolloutFigures: TypeAlias = dict[str, tuple[float, MetricScale]]
DROPPED = "dropped"
"""Key that counts what was too much to keep of what an agent reported."""
NOBODY: Criteria = MappingProxyType({})


def criteria_of(run: RunHeader) -> Criteria:
    """Return the names of the criteria of each scenario; none in a run without a judge."""
    if "judge" not in run.identities:
        return NOBODY
    return {s.id: criterion_names(s.rubric) for s in run.scenarios if s.rubric}


@lru_cache(maxsize=1024)
def check_metric(kind: str) -> str:
    """Return the metric of a check kind, or of its opposite: ``check.not-contains`` of ``not contains``."""
    name = kind.replace(" ", "-") if kind.startswith("not ") else kind
    if not NAME.fullmatch(name):
        name = re.sub(r"[^A-Za-z0-9_-]", "-", name).strip("-_")[:50] + "-" + stamp(kind)[:6]
        name = name.lstrip("-")
    return f"check.{name}"


def _checks(rollout: Rollout, _: Sequence[str]) -> RolloutFigures:
    """Return the weighted share of the checks of each kind that passed; one not reached counts as failed."""
    checks = rollout.checks
    if len(checks) == 1:
        return {check_metric(checks[0].kind): (checks[0].credit, SHARE)}
    sums: dict[str, list[float]] = {}
    for check in checks:
        of = sums.setdefault(check.kind, [0.0, 0.0])
        of[0] += check.weight * check.credit
        of[1] += check.weight
    return {
        check_metric(kind): (got / planned if planned else 0.0, SHARE)
        for kind, (got, planned) in sums.items()
    }


def _judge(rollout: Rollout, criteria: Sequence[str]) -> RolloutFigures:
    """Return the share of votes that call each criterion met; 0 where the agent failed."""
    if rollout.status == "failed":
        return {f"judge.{name}": (0.0, SHARE) for name in criteria}
    opinion = rollout.opinion
    if opinion is None:
        return {}
    return {f"judge.{name}": (value, SHARE) for name, value in opinion.criteria.items()}


def _test(rollout: Rollout, _: Sequence[str]) -> RolloutFigures:
    return {f"test.{one.name}": (one.value, one.scale) for one in rollout.scores}


def _extra(rollout: Rollout, _: Sequence[str]) -> RolloutFigures:
    """Return the figures among what the agent reported beside its answer; anything else is passed over."""
    return {
        f"extra.{key}": found
        for key, value in rollout.extra.items()
        if key != DROPPED
        and isinstance(key, str)
        and NAME.fullmatch(key)
        and (found := reported(value)) is not None
    }


SOURCES: Mapping[str, Callable[[Rollout, Sequence[str]], RolloutFigures]] = {
    "check": _checks,
    "judge": _judge,
    "test": _test,
    "extra": _extra,
}
"""Sources of derived metrics by the first part of their names."""


def source_of(metric: str) -> str:
    """Return the source of a derived metric; empty for one of a rewarder, and for a built-in one."""
    first, dot, _ = metric.partition(".")
    return first if dot and first in SOURCES else ""


def derived(rollout: Rollout, criteria: Sequence[str] = ()) -> RolloutFigures:
    """Return the derived metrics of a rollout with their scales; none of an error, which nobody judged."""
    if rollout.status not in ("ok", "failed"):
        return {}
    found = _checks(rollout, criteria)
    if criteria or rollout.opinion is not None:
        found |= _judge(rollout, criteria)
    if rollout.scores:
        found |= _test(rollout, criteria)
    if rollout.extra:
        found |= _extra(rollout, criteria)
    return found


def scale_of(groups: Iterable[Group], metric: str) -> MetricScale:
    """Return the scale of a metric: that of the first rollout that has it."""
    if source_of(metric) in ("test", "extra"):
        for group in groups:
            for rollout in group.rollouts:
                if (found := _own(rollout, metric, ())) is not None:
                    return found[1]
    return SHARE


def column(
    group: Group, metric: str, criteria: Criteria = NOBODY, scale: MetricScale = SHARE
) -> list[float | None]:
    """Return what each rollout of a group has of a metric; None without a figure, or on another scale."""
    if metric in BUILT_IN:
        return [getattr(score, metric) for score in group.scores]
    if not source_of(metric):
        return [score.extra.get(metric) for score in group.scores]
    names = criteria.get(group.scenario_id, ())
    found = [_own(rollout, metric, names) for rollout in group.rollouts]
    return [None if one is None or one[1] != scale else one[0] for one in found]


def evidence_of(rollout: Rollout, score: Score, metric: str) -> str:
    """Return why a rollout has what it has of a metric, in the words of what measured it; may be empty."""
    source, _, name = metric.partition(".")
    if not source_of(metric):
        return score.evidence.get(metric, "")
    if source == "check":
        return "; ".join(c.reason for c in rollout.checks if c.reason and check_metric(c.kind) == metric)
    if source == "judge":
        return rollout.opinion.reason if rollout.opinion is not None else ""
    return next((one.why for one in rollout.scores if source == "test" and one.name == name), "")


def _own(rollout: Rollout, metric: str, criteria: Sequence[str]) -> tuple[float, MetricScale] | None:
    if rollout.status not in ("ok", "failed"):
        return None
    return SOURCES[source_of(metric)](rollout, criteria).get(metric)
