"""Clusters of failures: the failed rollouts of the final sweep, by what they have in common.

There are four views: by reason, failed checks, sequence of tools, and exception. In each of them every failed
rollout is in exactly one cluster, whatever the order in which rollouts are read.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from pytest_tfgrpo.core.records import Group, PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import FailureCluster, FailuresBlock, FailureView
from pytest_tfgrpo.core.settings.gate import MIN_SCORE
from pytest_tfgrpo.core.texts.text import line, plural, wrapped
from pytest_tfgrpo.report.failures.failure_labels import (
    NO_ANSWER,
    NO_TOOL,
    FailureLabels,
    FailureText,
    labels_of,
    told,
    tools_of,
)

MOST = 20
"""Clusters of a view that a report keeps."""
SHORT = 3
"""Clusters that the terminal shows without ``-v``."""
LONGEST_ID = 40
"""Characters of a rollout's id."""
RECURS, SHARE = 3, 0.2
"""Scenarios, and share of those with such a message, in which a value recurs that a label keeps."""
LONGEST_VALUE = 80
"""Characters of it."""
COMMON = 0.8
"""Share of a cluster's rollouts from which on it is worth saying that they have something in common."""


TRAITS = ("domain", "tools")


class Failed(NamedTuple):
    """One failed rollout."""

    scenario: str
    domain: str
    place: int
    """In its group."""
    id: str
    labels: FailureLabels


class Cluster(NamedTuple):
    """What identifies a cluster in its view: a template, and the values that its label keeps."""

    template: str
    kept: tuple[str | None, ...]
    shapes: tuple[str, ...]


Recurring = Collection[tuple[str, int, str]]


def failures_report(run: Run) -> FailuresBlock | None:
    """Return the clusters of the final sweep's failures; None where nothing failed.

    Of a run that ended before its final sweep, those of its last phase. `before` counts what failed alike in
    the baseline sweep.
    """
    sweep = _judged_sweep(run)
    if sweep is None:
        return None
    found, passed = _sorted_out(sweep.groups, run)
    if not found:
        return None
    baseline = _baseline(run, sweep)
    old = _sorted_out(baseline.counted, run)[0] if baseline is not None else None
    failures = _Failures(found, old, passed)
    return {
        "sweep": sweep.phase.label,
        "rollouts": sum(len(group.rollouts) for group in sweep.groups),
        "failed": len(found),
        "scenarios": len({failed.scenario for failed in found}),
        "failed_before": None if old is None else len(old),
        "views": {name: failures.view(name) for name in FailureLabels._fields},
    }


def _judged_sweep(run: Run) -> PhaseResult | None:
    """Return the sweep whose failures count: the final one, else the last phase that has results."""
    known = [result for result in run.phases if result.groups]
    final = [result for result in known if result.phase.mode == "eval"]
    return (final or known)[-1] if known else None


def _baseline(run: Run, sweep: PhaseResult) -> PhaseResult | None:
    if sweep.phase.mode != "eval":
        return None
    return next((result for result in run.phases if result.phase.mode == "baseline"), None)


def _sorted_out(groups: Sequence[Group], run: Run) -> tuple[list[Failed], Counter[str]]:
    """Return the failed rollouts of some groups, and how many passed by their sequence of tools.

    A rollout fails without an answer, or with a score below that of an item that passes.
    """
    scenarios = {s.id: s for s in run.scenarios}
    found, passed = list[Failed](), Counter[str]()
    for group in groups:
        scenario = scenarios[group.scenario_id]
        least = MIN_SCORE.of(run.settings) if scenario.min_score is None else scenario.min_score
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            if rollout.status != "ok" or (score.gt_score is not None and score.gt_score < least):
                labels = labels_of(rollout, scenario)
                found.append(Failed(scenario.id, scenario.domain, rollout.index, rollout.rollout_id, labels))
            elif score.gt_score is not None:
                passed[tools_of(rollout)] += 1
    return found, passed


class _Failures:
    """The failed rollouts of a sweep, beside those of the baseline sweep where there is one."""

    def __init__(self, found: Sequence[Failed], old: Sequence[Failed] | None, passed: Counter[str]) -> None:
        self._found, self._old, self._passed = found, old, passed
        self._traits = {what: Counter(_trait(failed, what) for failed in found) for what in TRAITS}

    def view(self, name: str) -> FailureView:
        """Return the largest clusters of a view, and how many more there are."""
        recurring = _recurring([*self._found, *(self._old or ())], name)
        clusters = [_cluster(_message_in(failed, name), recurring) for failed in self._found]
        before = Counter(_cluster(_message_in(failed, name), recurring) for failed in self._old or ())
        sizes = Counter(clusters)
        shown = sorted(sizes, key=lambda cluster: (-sizes[cluster], repr(cluster)))[:MOST]
        members: dict[Cluster, list[Failed]] = {cluster: [] for cluster in shown}
        for failed, cluster in zip(self._found, clusters, strict=True):
            if cluster in members:
                members[cluster].append(failed)
        rows = [self._row(name, cluster, members[cluster], before[cluster]) for cluster in shown]
        left_out = len(self._found) - sum(row["n"] for row in rows)
        return {"clusters": rows, "more": len(sizes) - len(shown), "more_rollouts": left_out}

    def _row(self, name: str, cluster: Cluster, members: Sequence[Failed], before: int) -> FailureCluster:
        first = min(members, key=lambda failed: (failed.scenario, failed.place))
        messages = [_message_in(failed, name) for failed in members]
        same = [len({message.values[i].text for message in messages}) == 1 for i in range(len(cluster.kept))]
        row: FailureCluster = {
            "key": f"{name}-{hashlib.sha256(repr(cluster).encode()).hexdigest()[:10]}",
            "label": told(messages[0], same),
            "n": len(members),
            "scenarios": sorted({failed.scenario for failed in members}),
            "common": self._common(name, members),
            "example": {"rollout": first.id, "scenario": first.scenario, "index": first.place},
        }
        if self._old is not None:
            row["before"] = before
        if name == "tools":
            row["passed"] = self._passed[cluster.template]
        return row

    def _common(self, view: str, members: Sequence[Failed]) -> list[str]:
        """Return what most rollouts of a cluster share, and most failed ones do not: domain, tools."""
        shared = list[str]()
        for what, everywhere in self._traits.items():
            values = Counter(_trait(failed, what) for failed in members)
            value, n = max(values.items(), key=lambda item: (item[1], item[0]))
            rare = everywhere[value] < COMMON * everywhere.total()
            if value == NO_TOOL and any(f.labels.check.template == NO_ANSWER for f in members):
                continue  # it ended before it called any
            if what != view and rare and len(members) > 1 and n >= COMMON * len(members):
                name = line(value, 120) if value == NO_TOOL else f"{what} {line(value, 120)}"
                shared.append(name + (f" in {n}" if n < len(members) else ""))
        return shared


def _trait(failed: Failed, what: str) -> str:
    return failed.domain if what == "domain" else failed.labels.tools.template


def _message_in(failed: Failed, view: str) -> FailureText:
    message: FailureText = getattr(failed.labels, view)
    return message


def _recurring(rows: Sequence[Failed], view: str) -> Recurring:
    """Return the values of messages that are no accident of one scenario, by template and place."""
    by_scenario: dict[str, set[FailureText]] = {}
    for failed in rows:
        message = _message_in(failed, view)
        if message.values:
            by_scenario.setdefault(failed.scenario, set()).add(message)
    values, templates = Counter[tuple[str, int, str]](), Counter[str]()
    for messages in by_scenario.values():
        values.update({(m.template, i, v.text) for m in messages for i, v in enumerate(m.values) if v.text})
        templates.update({message.template for message in messages})
    return {
        value
        for value, n in values.items()
        if n >= RECURS and n >= SHARE * templates[value[0]] and len(value[2]) <= LONGEST_VALUE
    }


def _cluster(message: FailureText, recurring: Recurring) -> Cluster:
    kept = tuple(
        value.text if (message.template, i, value.text) in recurring else None
        for i, value in enumerate(message.values)
    )
    shapes = tuple("" if keep else value.shape for keep, value in zip(kept, message.values, strict=True))
    return Cluster(message.template, kept, shapes)


def cluster_lines(block: FailuresBlock | None, width: int, *, kept: bool) -> list[str]:
    """Return all clusters by reason; `kept` says that the run has files for ``tfgrpo show``."""
    if block is None:
        return []
    lines = _cluster_head(block, width)
    for cluster in block["views"]["reason"]["clusters"]:
        lines += wrapped(cluster_text(cluster), width, "  ", "    ")
        lines += [f"    tfgrpo show {line(cluster['example']['rollout'])}"] if kept else []
    more = block["views"]["reason"]["more"]
    return [*lines, f"  ... {plural(more, 'further reason')}; the page shows them"] if more else lines


def cluster_rows(block: FailuresBlock | None, width: int, *, kept: bool) -> list[str]:
    """Return the largest clusters by reason, each with an id for ``tfgrpo show``, in SHORT lines or so."""
    if block is None:
        return []
    of = f"{plural(block['rollouts'], 'rollout')} of {block['sweep']}"
    before = "" if block["failed_before"] is None else f" ({block['failed_before']} before)"
    lines = wrapped(
        f"failures  {block['failed']} of {of}{before}" + ("; tfgrpo show ID:" if kept else ""),
        width,
        hanging=" " * 10,
    )
    clusters = block["views"]["reason"]["clusters"][:SHORT]
    sizes = [f"{one['n']}{_before(one)}" for one in clusters]
    indent = max(map(len, sizes)) + 4
    for place, (size, cluster) in enumerate(zip(sizes, clusters, strict=True), len(clusters)):
        id_ = line(cluster["example"]["rollout"].partition(".")[2], LONGEST_ID) if kept else ""
        room = max(20, width - indent - len(id_) - 2)
        label, spare = cluster["label"].removeprefix("check "), place < SHORT
        first, *rest = wrapped(line(label, 2 * room - 8), room) if spare else [line(label, room)]
        lines.append(f"{size.rjust(indent - 2)}  {first:{room}}  {id_}".rstrip())
        lines += [" " * indent + text for text in rest[:1]]
    return lines


def _before(cluster: FailureCluster) -> str:
    return f" ({cluster['before'] or 'new'})" if "before" in cluster else ""


def _cluster_head(block: FailuresBlock, width: int) -> list[str]:
    before = "" if block["failed_before"] is None else f" ({block['failed_before']} in the baseline sweep)"
    head = (
        f"failures  {block['failed']} of {plural(block['rollouts'], 'rollout')} of {block['sweep']}{before}, "
        f"in {plural(block['scenarios'], 'scenario')}"
    )
    return wrapped(head, width, hanging=" " * 10)


def cluster_text(cluster: FailureCluster) -> str:
    """Return a cluster in words."""
    size = f"{plural(cluster['n'], 'rollout')} of {plural(len(cluster['scenarios']), 'scenario')}"
    before = (
        "" if "before" not in cluster else f", {cluster['before']} before" if cluster["before"] else ", new"
    )
    common = f" ({'; '.join(cluster['common'])})" if cluster["common"] else ""
    return f"{size}{before}: {line(cluster['label'], 300)}{common}"
