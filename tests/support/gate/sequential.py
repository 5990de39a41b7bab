"""What the tests of gate/test_sequential.py share with the slow ones."""

from typing import Any

from pytest_tfgrpo.gate.sequential import (
    Bars,
    Watch,
    WatchedBar,
    WatchedRule,
)
from pytest_tfgrpo.metrics.comparison import Tally


def row(mean: float | None, errors: int = 0, n: int = 1) -> Tally:
    known = 0 if mean is None else n
    total = 0.0 if mean is None else mean * n
    return Tally(stamp="s", n=known, sum=total, sum_sq=total, errors=errors)


def watch(before: dict[str, Tally], *, margin: float = 0.05, **bars: Any) -> Watch:
    rule = WatchedRule("gain", before, dict.fromkeys(before, "s"), bar=WatchedBar(at=margin, difference=True))
    return Watch(tuple(before), [rule], Bars(**bars))


def ids(n: int) -> list[str]:
    return [f"s{i}" for i in range(n)]


def tallies(credited: list[float]) -> dict[str, Tally]:
    return {id_: row(credit) for id_, credit in zip(ids(len(credited)), credited, strict=True)}
