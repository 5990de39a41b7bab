"""What live RL says of itself: gate, runs, selector, updates, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from pytest_tfgrpo.core.text import line, plural, table
from pytest_tfgrpo.core.wire import Json, to_wire
from pytest_tfgrpo.live.config import LiveConfig
from pytest_tfgrpo.live.control import wealth
from pytest_tfgrpo.live.records import GateState
from pytest_tfgrpo.live.selector import SelectorState, open_selector
from pytest_tfgrpo.live.store import LiveStore
from pytest_tfgrpo.live.update import update_document

SCHEMA = "tfgrpo.live-status/1"


def status_of(config: LiveConfig, store: LiveStore, gate: GateState | None = None) -> dict[str, Json]:
    """Return gate, runs and selector of a store; `gate` is what a process knows better."""
    state = store.gate() if gate is None else gate
    selector = stored_selector(store)
    updates = store.updates()
    return {
        "schema": SCHEMA,
        "enabled": config.settings.enabled,
        "config": str(config.path),
        "store": None if config.store is None else str(config.store),
        "namespace": config.settings.namespace,
        "gate": {name: to_wire(getattr(state, name)) for name in _GATE},
        "against_control": wealth(state.control),
        "rollouts": dict(store.counts()),
        "refused": dict(store.refusals()),
        "selector": selector.number,
        "probabilities": probabilities_of(selector),
        "updates": {"executed": sum(one.executed for one in updates), "all": len(updates)},
        "last_update": update_document(updates[-1]) if updates else None,
        "weights_applied": False,
    }


_GATE = ("state", "streak", "reason", "last_error", "since", "by")


def stored_selector(store: LiveStore, number: int | None = None) -> SelectorState:
    """Return a selector as it was stored, with the arms of its time; the newest by default, 0 without one."""
    found = store.selector(number)
    if found is None:
        return SelectorState()
    points = {name: dict(point["arms"]) for name, point in found[1]["points"].items()}
    return open_selector(*found, points)


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
    if status["refused"]:
        yield "refused    " + ", ".join(f"{name} {n}" for name, n in status["refused"].items())
    yield (
        f"selector   {status['selector']}, after {plural(updates['all'], 'update')}, "
        f"{updates['executed']} executed; the model stays as it is"
    )
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


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
