"""Gates as items: the named ones, their JUnit properties, and what makes a run fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from pytest_tfgrpo.core.settings.gate import BASELINE, GATE_MARGIN
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.plugin.categories import Apart
from pytest_tfgrpo.plugin.items.failures import ItemFailed
from pytest_tfgrpo.plugin.items.items import GateItem
from pytest_tfgrpo.report.gates import default_text, named_text

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.result import RuleResult
    from pytest_tfgrpo.launch.conclusion import Conclusion

JUNIT_CHARACTERS = 300


def show(item: GateItem, conclusion: Conclusion) -> None:
    """Report to JUnit what the gate of `item` found, and raise ItemFailed when it fails."""
    verdict, gate = conclusion.verdict, conclusion.report["gate"]
    assert verdict is not None, "a run with a gate item is gated"
    assert gate is not None
    if item.named is None:
        compared = _compared(verdict.results)
        settings = conclusion.report["settings"]
        note(item, verdict.outcome, compared, BASELINE.of(settings), GATE_MARGIN.of(settings))
        if verdict.failed:
            raise ItemFailed("\n".join(default_text(gate)), _reason(verdict.results))
        return
    found = next(one for one in verdict.gates if one.name == item.named.name)
    note(item, found.outcome, _compared(found.results), found.baseline, found.margin)
    if found.outcome == "fail":
        fall(item, "\n".join(named_text(gate, found.name)), _reason(found.results))


def fall(item: GateItem, text: str, reason: str) -> NoReturn:
    """Raise ItemFailed with `text` and `reason`; the item of a gate that only warns ends as tolerated."""
    if item.named is None or item.named.severity == "fail":
        raise ItemFailed(text, reason)
    raise Apart("tolerated", f"severity warn: {reason}")


def note(
    item: GateItem, outcome: str, compared: RuleResult | None, baseline: str | None, margin: float
) -> None:
    """Put what a gate found into its item's junit properties; what is not known is left out."""
    figures = compared.figures if compared is not None else {}
    low, high = figures.get("ci95") or (None, None)
    properties = {
        "tfgrpo_gate": outcome,
        "tfgrpo_severity": item.named.severity if item.named is not None else "fail",
        "tfgrpo_baseline": baseline or None,
        "tfgrpo_margin": margin,
        "tfgrpo_difference": figures.get("difference"),
        "tfgrpo_low": low,
        "tfgrpo_high": high,
        "tfgrpo_n": figures.get("n"),
    }
    item.user_properties += [(name, value) for name, value in properties.items() if value is not None]


def _compared(results: Sequence[RuleResult]) -> RuleResult | None:
    """Return the finding about the baseline; the worst one where there are several, by domain."""
    found = [r for r in results if r.name.startswith("baseline") and r.figures.get("difference") is not None]
    return min(found, key=lambda result: result.figures["difference"], default=None)


def _reason(results: Sequence[RuleResult]) -> str:
    failed = [r for r in results if r.outcome == "fail"] or [r for r in results if r.outcome != "pass"]
    return "; ".join(line(f"{result.name}: {result.message}", JUNIT_CHARACTERS) for result in failed)
