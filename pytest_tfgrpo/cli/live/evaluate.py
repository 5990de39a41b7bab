"""The command ``tfgrpo live evaluate``: what another policy would have earned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_tfgrpo.cli.live.live_store import opened
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.production.live.report import logged_selector, newest, policies_of, value_lines
from pytest_tfgrpo.production.live.selection.evaluate import evaluate as value
from pytest_tfgrpo.production.live.selection.evaluate import target_policy


def evaluate(arguments: Arguments) -> Iterator[str]:
    """Estimate from past runs what another policy would have earned."""
    with opened(arguments) as (_, store):
        state = logged_selector(store)
        name = _point(arguments.point, list(state.points))
        policies = policies_of(store, name, state.points[name].arms)
        target = target_policy(arguments.policy, state.points[name], policies)
        found = value(
            newest(store, arguments.last),
            target,
            state,
            name,
            policy=arguments.policy,
            quantity=arguments.quantity,
            numbered=policies,
        )
    yield from value_lines(found)


def _point(name: str | None, points: Sequence[str]) -> str:
    """Return the point that is meant; raises SettingError and StoreError."""
    if not points:
        raise StoreError("no run in the store has chosen an arm")
    if name is None and len(points) > 1:
        raise SettingError(f"there are several points; name one of {', '.join(points)} with --point")
    if name is not None and name not in points:
        raise SettingError(f"no point is called {name!r}{nearest(name, points)}; known: {', '.join(points)}")
    return name or points[0]
