"""Families in a report: how many a gain rests on, how alike they gain, and what untaught ones gain."""

from __future__ import annotations

from collections.abc import Iterator, Set

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import ComparisonFigures, FamiliesBlock, Report
from pytest_tfgrpo.core.text import interval, plural, scenarios_of
from pytest_tfgrpo.harness.metrics.comparison import Comparison, Sweeps, compare, figures
from pytest_tfgrpo.harness.suite.families import family_of
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL
from pytest_tfgrpo.numerics.stats import effective_families

ENOUGH = 20
"""Effective families from which an interval holds the truth as often as it says."""


def families_report(run: Run, sweeps: Sweeps, compared: Comparison) -> FamiliesBlock | None:
    """Return what a gain is of by families; None where each scenario is its own.

    `seen` is the gain of the families that train scenarios have, `unseen` that of all others.
    """
    taught = {family for s in run.scenarios if s.split == "train" and (family := family_of(s))}
    known = set(compared.families_K)
    if not compared.ids or (len(known) == len(compared.ids) and known.isdisjoint(taught)):
        return None
    from pytest_tfgrpo.numerics.agreement import intraclass_correlation

    return {
        "scenarios": len(compared.ids),
        "families": len(known),
        "effective": effective_families(compared.families_K),
        "icc": intraclass_correlation(compared.differences_K, compared.families_K),
        "seen": _part(sweeps, compared, known & taught),
        "unseen": _part(sweeps, compared, known - taught),
    }


def _part(sweeps: Sweeps, compared: Comparison, families: Set[str]) -> ComparisonFigures | None:
    """Return the figures of the scenarios of some families; None without any."""
    ids = {id_ for id_, family in zip(compared.ids, compared.families_K, strict=True) if family in families}
    after = {id_: row for id_, row in sweeps.rows_after.items() if id_ in ids}
    return figures(compare(sweeps.rows_before, after)) if after else None


def families_text(report: Report) -> str:
    """Return what a gain is of by families, in words; empty where each scenario is its own."""
    found = report.get("families")
    if not found:
        return ""
    even = f"{found['effective']:.1f}".removesuffix(".0")
    counted = "one family" if found["families"] == 1 else f"{found['families']} families"
    text = f"{plural(found['scenarios'], 'scenario')} of {counted}"
    if even != str(found["families"]):
        text += f" ({even} of equal size)"
    if found["icc"] is not None:
        text += f", gains within one correlate by {found['icc']:.2f}"
    return f"{text}; {_taught(found)}"


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


def families_warnings(found: FamiliesBlock | None) -> Iterator[str]:
    """Yield that a gain rests on few families, though on many scenarios."""
    if found is None or found["families"] == found["scenarios"] or found["effective"] >= ENOUGH:
        return
    even = f"{found['effective']:.1f}".removesuffix(".0")
    why = "its interval may be too narrow"
    if found["effective"] < MIN_INTERVAL:
        why = "its interval is not one of tasks like these"
    counted = (
        "one family" if found["families"] == 1 else f"{found['families']} families ({even} of equal size)"
    )
    yield f"the gain rests on {counted}: below {ENOUGH} {why}; add families rather than scenarios to them"
