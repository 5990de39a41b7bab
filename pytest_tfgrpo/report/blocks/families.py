"""The block `families`: how many a gain rests on, how alike they gain, and what untaught ones gain."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TypedDict

from pytest_tfgrpo.core.report_blocks import ComparisonFigures
from pytest_tfgrpo.core.texts.text import interval, plural, scenarios_of
from pytest_tfgrpo.metrics.comparison import Comparison, Sweeps, compare, figures
from pytest_tfgrpo.numerics.agreement import intraclass_correlation
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL
from pytest_tfgrpo.numerics.stats import effective_families
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock
from pytest_tfgrpo.suite.families import family_of

ENOUGH = 20
"""Effective families from which an interval holds the truth as often as it says."""


class FamiliesBlock(TypedDict):
    """What a gain is of by families."""

    scenarios: int
    families: int
    effective: float
    icc: float | None
    seen: ComparisonFigures | None
    """The gain of the families that train scenarios have."""
    unseen: ComparisonFigures | None
    """That of all others."""


def _value(at: BlockSources) -> FamiliesBlock | None:
    """Return the families of a gain; None where each scenario is its own."""
    compared = at.compared
    taught = {family for s in at.run.scenarios if s.split == "train" and (family := family_of(s))}
    known = set(compared.families_K)
    if not compared.ids or (len(known) == len(compared.ids) and known.isdisjoint(taught)):
        return None

    return {
        "scenarios": len(compared.ids),
        "families": len(known),
        "effective": effective_families(compared.families_K),
        "icc": intraclass_correlation(compared.differences_K, compared.families_K),
        "seen": _part(at.sweeps, compared, known & taught),
        "unseen": _part(at.sweeps, compared, known - taught),
    }


def _text(found: FamiliesBlock) -> str:
    even = f"{found['effective']:.1f}".removesuffix(".0")
    counted = "one family" if found["families"] == 1 else f"{found['families']} families"
    text = f"{plural(found['scenarios'], 'scenario')} of {counted}"
    if even != str(found["families"]):
        text += f" ({even} of equal size)"
    if found["icc"] is not None:
        text += f", gains within one correlate by {found['icc']:.2f}"
    return f"{text}; {_taught(found)}"


def _warnings(found: FamiliesBlock) -> Iterator[str]:
    """Yield that a gain rests on few families, though on many scenarios."""
    if found["families"] == found["scenarios"] or found["effective"] >= ENOUGH:
        return
    even = f"{found['effective']:.1f}".removesuffix(".0")
    why = "its interval may be too narrow"
    if found["effective"] < MIN_INTERVAL:
        why = "its interval is not one of tasks like these"
    counted = (
        "one family" if found["families"] == 1 else f"{found['families']} families ({even} of equal size)"
    )
    yield f"the gain rests on {counted}: below {ENOUGH} {why}; add families rather than scenarios to them"


def _part(sweeps: Sweeps, compared: Comparison, families: Set[str]) -> ComparisonFigures | None:
    """Return the figures of the scenarios of some families; None without any."""
    ids = {id_ for id_, family in zip(compared.ids, compared.families_K, strict=True) if family in families}
    after = {id_: row for id_, row in sweeps.rows_after.items() if id_ in ids}
    return figures(compare(sweeps.rows_before, after)) if after else None


def _taught(found: FamiliesBlock) -> str:
    """Return the gain by whether training has the family."""
    if found["unseen"] is None:
        return "training has them all, so the gain says nothing of other families"
    if found["seen"] is None:
        return "training has none of them"
    parts = ((found["seen"], "seen in training"), (found["unseen"], "not seen"))
    return "; ".join(f"{what} {_figures(part)}" for part, what in parts)


def _figures(part: ComparisonFigures) -> str:
    span = f" ({interval(part['ci95'], '+.3f')})" if part["ci95"] else ""
    of = scenarios_of(part["n"], part["families"], part["just_these"])
    return f"{part['difference']:+.3f}{span}, {of}"


FAMILIES = ReportBlock(
    "families", _value, _text, always=lambda found, _: found["unseen"] is not None, warnings=_warnings
)
