"""What live RL says of itself: gate, runs, selector, updates, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache

from pytest_tfgrpo.core.texts.text import interval, line, number, plural, signed, table
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.production.live.config import LiveConfig
from pytest_tfgrpo.production.live.records import GateState, LiveRollout, LiveStatus, LiveUpdate
from pytest_tfgrpo.production.live.selection.control import wealth
from pytest_tfgrpo.production.live.selection.evaluate import (
    ControlDifference,
    NumberedPolicy,
    PolicyValue,
    WorthBy,
    control_difference,
)
from pytest_tfgrpo.production.live.selection.selector import PointPolicy, SelectorState, open_selector
from pytest_tfgrpo.production.live.selection.trends import CategoryTrend, reward_agreement, trends
from pytest_tfgrpo.production.live.selection.update import update_document
from pytest_tfgrpo.production.live.store.store import LiveStore

SCHEMA = "tfgrpo.live-status/1"
FEW = 1000
"""Runs that are searched for the arms they chose among."""
CATEGORIES = 20
"""That a report shows: those with an alert, then those with most runs."""
LEAST_RUNS = 20
"""From which on a report says that runs share their keys."""
LAST_UPDATES = 10
"""Updates that a report shows."""


def status_of(config: LiveConfig, store: LiveStore, gate: GateState | None = None) -> dict[str, Json]:
    """Return gate, runs and selector of a store; `gate` is what a process knows better."""
    state = store.gate() if gate is None else gate
    selector = stored_selector(store)
    updates, executed = store.update_counts()
    last = store.updates(after=updates - 1)
    return {
        "schema": SCHEMA,
        "enabled": config.settings.enabled,
        "config": str(config.path),
        "store": None if config.store is None else str(config.store),
        "namespace": config.settings.namespace,
        "gate": {name: to_wire(getattr(state, name)) for name in _GATE},
        "against_control": wealth(state.control),
        "failures_against_control": wealth(state.failures),
        "rollouts": dict(store.counts()),
        "left_out": dict(store.left_out()),
        "refused": dict(store.refusals()),
        "selector": selector.number,
        "probabilities": probabilities_of(selector),
        "updates": {"executed": executed, "all": updates},
        "last_update": update_document(last[-1]) if last else None,
        "weights_applied": False,
    }


_NOTHING = {
    "no_trajectories": "it had no run that it could use",
    "zero_variance": "all rewards were equal",
    "missing_logprobs": "its runs have no logged probabilities",
}
_GATE = ("state", "streak", "reason", "last_error", "since", "by")


def stored_selector(store: LiveStore) -> SelectorState:
    """Return the newest selector as it was stored, with the arms of its time; 0 without one."""
    found = store.selector()
    if found is None:
        return SelectorState()
    points = {name: dict(point["arms"]) for name, point in found[1]["points"].items()}
    return open_selector(*found, points)


def logged_selector(store: LiveStore) -> SelectorState:
    """Return the newest selector, or before the first update one over the arms that runs chose among."""
    found = stored_selector(store)
    if found.number:
        return found
    choices = (choice for rollout in newest(store, FEW) for choice in rollout.choices)
    return open_selector(0, None, {choice.point: dict(choice.arms) for choice in choices})


def policies_of(store: LiveStore, point: str, arms: Mapping[str, str]) -> NumberedPolicy:
    """Return the policies of a point in stored selectors, over `arms`, each read once."""

    @cache
    def numbered(number: int) -> PointPolicy | None:
        found = store.selector(number)
        return None if found is None else open_selector(*found, {point: arms}).points[point]

    return numbered


def probabilities_of(selector: SelectorState) -> dict[str, dict[str, dict[str, float]]]:
    """Return the probability of each arm by point and category."""
    return {
        point: {category: dict(selector.probabilities(point, category)) for category in selector.categories}
        for point in selector.points
    }


def status_lines(status: Mapping[str, Json]) -> Iterator[str]:
    """Yield a status for people."""
    gate, runs, updates = status["gate"], status["rollouts"], status["updates"]
    held = f"holds: {line(gate['reason'])}" if gate["state"] == "hold" else "passes"
    since = f" since {_time(gate['since'])}" if gate["since"] else ""
    by = f", reset by {line(gate['by'], 60)}: {line(gate['reason'], 120)}" if gate["by"] else ""
    yield f"gate       {held}{since}{by}" + (
        f"; {gate['streak']} failures in a row" if gate["streak"] else ""
    )
    if gate["last_error"]:
        yield f"last error {line(gate['last_error'], 200)}"
    if gate["state"] == "hold":
        yield "           runs take the default arms; `tfgrpo live reset` releases it"
    ended = ", ".join(f"{runs[name]} {name}" for name in ("succeeded", "failed", "cancelled", "running"))
    yield f"runs       {ended}; {runs['used']} used, {runs['control']} control"
    if status["left_out"]:
        yield f"left out   {_counts(status['left_out'])}"
    if status["refused"]:
        yield f"refused    {_counts(status['refused'])}"
    yield (
        f"selector   {status['selector']}, after {plural(updates['all'], 'update')}, "
        f"{updates['executed']} executed; the model stays as it is"
    )
    if (last := status["last_update"]) and not last["executed"]:
        left_out = f"; left out: {_counts(last['left_out'])}" if last["left_out"] else ""
        why = f"{_NOTHING[last['reason']]} ({last['reason']}){left_out}"
        yield f"           the last one learned nothing: {why}"
    for point, categories in status["probabilities"].items():
        yield ""
        yield from probability_lines(point, categories)


def probability_lines(point: str, categories: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the probabilities of a point's arms as a table, a row for each category."""
    arms = sorted({arm for row in categories.values() for arm in row})
    rows = [
        [line(category, 24) or "(none)", *(f"{row.get(arm, 0.0):.2f}" for arm in arms)]
        for category, row in sorted(categories.items())
    ]
    yield from table([line(point, 24), *(line(arm, 16) for arm in arms)], rows)


def newest(store: LiveStore, runs: int) -> list[LiveRollout]:
    """Return the newest runs of a store, at most so many."""
    counts = store.counts()
    return list(store.rollouts(after=max(sum(counts[status] for status in LiveStatus) - runs, 0)))


def report_lines(store: LiveStore, runs: int) -> Iterator[str]:
    """Yield what the newest runs, the selector and the last updates came to."""
    rollouts = newest(store, runs)
    if not rollouts:
        yield "no runs yet; the application reports them with live.run(...)"
    yield from difference_lines(rollouts)
    agreement = reward_agreement(rollouts)
    if agreement.rank_correlation is not None:
        yield (
            f"trace reward and score: rank correlation {agreement.rank_correlation:.2f} over "
            f"{plural(agreement.runs, 'run')}"
        )
    if agreement.warning:
        yield f"warning: {agreement.warning}"
    keys = len({rollout.run for rollout in rollouts})
    if len(rollouts) >= max(LEAST_RUNS, 2 * keys + 1):
        yield (
            f"warning: {len(rollouts)} runs have only {plural(keys, 'key')}; give each run a key of its own, "
            "as its arm is drawn from it"
        )
    found = sorted(trends(rollouts), key=lambda one: (not one.alert, -one.runs, one.category))
    if found:
        shown = found[:CATEGORIES]
        yield from ("", *_trend_lines(shown), "", *_calibration_lines(shown))
    if len(found) > CATEGORIES:
        yield f"... {len(found) - CATEGORIES} more categories, with fewer runs and no alert"
    if updates := store.updates(after=store.update_counts()[0] - LAST_UPDATES):
        yield from ("", *_update_lines(updates))
        if left_out := store.left_out():
            yield f"left out of all updates: {_counts(left_out)}"


def difference_lines(rollouts: Sequence[LiveRollout]) -> Iterator[str]:
    """Yield what the selector brings over its concurrent control, by reward and, where known, by score."""
    quantities: tuple[WorthBy, ...] = ("reward", "score")
    for quantity in quantities:
        found = control_difference(rollouts, quantity=quantity)
        if found.selected or found.controls:
            yield _difference(found)
        if found.uneven:
            (one, other), name = found.missing, found.quantity
            yield (
                f"warning: {one} of {found.selected + one} runs of the selector were cancelled or have no "
                f"{name}, {other} of {found.controls + other} of the control; that alone may make the "
                "difference"
            )


def _difference(found: ControlDifference) -> str:
    name = "reward (q, 0 to 1)" if found.quantity == "reward" else found.quantity
    text = (
        f"{name}: selector {number(found.selected_mean)} in {plural(found.selected, 'run')}, "
        f"control {number(found.control_mean)} in {found.controls}"
    )
    if found.difference is None or found.low is None or found.high is None:
        return f"{text}; a difference takes 2 runs of each"
    bounds = interval((found.low, found.high), "+.3f")
    return f"{text}; difference {signed(found.difference)}, 95 % interval {bounds}"


def _trend_lines(found: Sequence[CategoryTrend]) -> Iterator[str]:
    rows = [
        [
            line(one.category, 24) or "(none)",
            str(one.runs),
            f"{one.success:.2f}",
            "-" if one.change is None else f"{one.change:+.2f}",
            "-" if one.p is None else f"{one.p:.3f}",
            one.direction + (": ALERT" if one.alert else ""),
        ]
        for one in found
    ]
    yield from table(["category", "runs", "success", "change", "p", "trend"], rows)


def _calibration_lines(found: Sequence[CategoryTrend]) -> Iterator[str]:
    bins = [f"{one.low:.1f}-{one.high:.1f}" for one in found[0].calibration]
    rows = [
        [
            line(one.category, 24) or "(none)",
            *("-" if b.success is None else f"{b.success:.2f} of {b.runs}" for b in one.calibration),
        ]
        for one in found
    ]
    yield from table(["success by confidence", *bins], rows)


def _update_lines(updates: Sequence[LiveUpdate]) -> Iterator[str]:
    rows = [
        [
            str(one.number),
            f"{one.selector_before} to {one.selector_after}" if one.executed else one.reason,
            str(one.trajectories),
            number(one.metrics.get("mean_reward")),
            number(one.metrics.get("kl")),
            number(one.metrics.get("entropy")),
            _counts(one.left_out) or "-",
        ]
        for one in updates
    ]
    yield from table(["update", "selector", "runs", "mean reward", "kl", "entropy", "left out"], rows, left=2)


def value_lines(found: PolicyValue) -> Iterator[str]:
    """Yield what another policy would have earned."""
    left_out = f"; left out: {_counts(found.left_out)}" if found.left_out else ""
    runs = plural(found.decisions, "run") + left_out
    yield f"{found.quantity} of {line(found.policy)} at {line(found.point)}, from {runs}"
    estimates = {"ips": found.ips, "snips": found.snips, "dr": found.dr}
    rows = [
        [
            name,
            f"{one.value:.3f}",
            interval((one.low, one.high)),
            f"{one.ess:.0f}",
            f"{one.largest_weight:.1f}",
        ]
        for name, one in estimates.items()
        if one.value is not None and one.low is not None and one.high is not None
    ]
    if rows:
        yield from table(["", "value", "95 % interval", "effective runs", "largest weight"], rows)
    for name, one in estimates.items():
        if one.value is None:
            yield f"{name:<5}  not estimable: {one.reason}"


def _counts(by_reason: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in by_reason.items())


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
