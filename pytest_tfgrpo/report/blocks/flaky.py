"""The block `flaky`: scenarios that some seeds solve and some do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from pytest_tfgrpo.core.records import Mode
from pytest_tfgrpo.metrics.noise import Flaky, flaky
from pytest_tfgrpo.report.blocks.block import ReportBlock

SWEEPS: Mapping[Mode, str] = {"eval": "final", "baseline": "baseline"}


def _text(found: list[Flaky]) -> str:
    by_mode = Counter(row["mode"] for row in found)
    told = [f"{by_mode[mode]} in the {name} sweep" for mode, name in SWEEPS.items() if by_mode[mode]]
    return f"scenarios that only some seeds solve: {', '.join(told)}" if told else ""


def _named(found: list[Flaky], shown: Callable[[object], str], limit: int | None) -> Iterator[str]:
    """Yield for each sweep its scenarios, with the rollouts that solved them."""
    for mode, name in SWEEPS.items():
        own = [row for row in found if row["mode"] == mode]
        told = [
            f"{shown(row['scenario'])} {round(row['solved'] * row['n'])}/{row['n']}" for row in own[:limit]
        ]
        more = f" and {len(own) - len(told)} more" if len(told) < len(own) else ""
        if own:
            yield f"{name} sweep: {', '.join(told)}{more}"


FLAKY = ReportBlock("flaky", lambda at: flaky(at.run, at.sweeps), _text, details=_named)
