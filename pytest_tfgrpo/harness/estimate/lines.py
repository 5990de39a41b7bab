"""The forecast as lines of a dry run."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.text import count, money, table, wrapped
from pytest_tfgrpo.harness.estimate.forecast import Forecast
from pytest_tfgrpo.harness.estimate.ranges import Figures, Range


def estimate_lines(forecast: Forecast, width: int = 80) -> list[str]:
    """Return the table of a forecast, the sources of its figures, and its warnings."""
    shown = _figures(forecast)
    for text in forecast.sources:
        shown += wrapped(text, width, hanging="  ")
    for text in forecast.warnings:
        shown += wrapped(f"warning: {text}", width, hanging="  ")
    return shown


def _figures(forecast: Forecast) -> list[str]:
    if forecast.declared is not None:
        return [f"cost    {_most(forecast.declared, 'usd')}", f"tokens  {_most(forecast.declared, 'tokens')}"]
    if not forecast.parts:
        return ["cost    nothing"]
    labels = [
        part.phase if part.purpose == "rollouts" else f"{part.phase} {part.purpose}"
        for part in forecast.parts
    ]
    rows = [_row(name, part.figures) for name, part in zip(labels, forecast.parts, strict=True)]
    return table(["estimate", "calls", "tokens", "cost"], [*rows, _row("total", forecast.total)])


def _most(declared: Mapping[str, float | None], unit: str) -> str:
    most = declared.get(unit)
    if most is None:
        return "unknown: the actor does not declare it"
    return f"at most {money(most) if unit == 'usd' else count(most)}"


def _row(name: str, figures: Figures) -> list[str]:
    tokens = "?" if figures.tokens is None else _ends(count(figures.tokens.low), count(figures.tokens.high))
    usd = "?" if figures.usd is None else _ends(money(figures.usd.low), money(figures.usd.high))
    return [name, _whole(figures.calls), tokens, usd]


def _whole(found: Range) -> str:
    return _ends(f"{found.low:.0f}", f"{found.high:.0f}")


def _ends(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
