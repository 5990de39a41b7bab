"""The forecast as lines of a dry run."""

from __future__ import annotations

from collections.abc import Callable

from pytest_tfgrpo.core.texts.text import count, money, table, wrapped
from pytest_tfgrpo.estimate.forecast import Forecast
from pytest_tfgrpo.estimate.ranges import Figures, Range, high_ends

WIDTH = 80


def estimate_lines(forecast: Forecast) -> list[str]:
    """Return the table of a forecast, the sources of its figures, and its warnings."""
    shown = _figures(forecast)
    for text in forecast.sources:
        shown += wrapped(text, WIDTH, hanging="  ")
    for text in forecast.warnings:
        shown += wrapped(f"warning: {text}", WIDTH, hanging="  ")
    return shown


def _figures(forecast: Forecast) -> list[str]:
    if forecast.declared is not None:
        first, more = forecast.declared, forecast.declared_most or Figures(tokens=None, usd=None)
        return [
            f"cost    {_most(first.get('usd'), money, more.usd)}",
            f"tokens  {_most(first.get('tokens'), count, more.tokens)}",
        ]
    if not forecast.parts:
        return ["cost    nothing"]
    labels = [
        part.phase if part.purpose == "rollouts" else f"{part.phase} {part.purpose}"
        for part in forecast.parts
    ]
    rows = [_row(name, part.figures) for name, part in zip(labels, forecast.parts, strict=True)]
    rows.append(_row("total", forecast.total))
    if forecast.extension is not None:
        rows.append(_row("at most", high_ends(forecast.most)))
    return table(["estimate", "calls", "tokens", "cost"], rows)


def _most(declared: float | None, show: Callable[[float | None], str], more: Range | None) -> str:
    if declared is None:
        return "unknown: the actor does not declare it"
    further = "" if more is None else f", or {show(more.high)} if the gate takes more rollouts"
    return f"at most {show(declared)}{further}"


def _row(name: str, figures: Figures) -> list[str]:
    tokens = "?" if figures.tokens is None else _ends(count(figures.tokens.low), count(figures.tokens.high))
    usd = "?" if figures.usd is None else _ends(money(figures.usd.low), money(figures.usd.high))
    return [name, _whole(figures.calls), tokens, usd]


def _whole(found: Range) -> str:
    return _ends(f"{found.low:.0f}", f"{found.high:.0f}")


def _ends(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
