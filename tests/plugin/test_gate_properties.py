"""What JUnit reports say of a gate."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.plugin.categories import Apart
from pytest_tfgrpo.plugin.items import gates
from pytest_tfgrpo.plugin.items.failures import ItemFailed
from pytest_tfgrpo.plugin.items.gates import _compared, _reason


def test_of_baselines_by_domain_the_worst_is_reported() -> None:
    found = [
        RuleResult(name=name, outcome="pass", message="", figures=figures)
        for name, figures in (
            ("baseline a", {"difference": 0.1}), ("baseline b", {"difference": -0.2}),
            ("baseline c", {}), ("min-reward", {"difference": -0.9}),
        )
    ]  # fmt: skip
    worst = _compared(found)
    assert worst is not None
    assert worst.name == "baseline b"
    assert _compared(found[2:]) is None


def item(severity: str | None = None) -> Any:
    named = None if severity is None else SimpleNamespace(severity=severity)
    return SimpleNamespace(named=named, user_properties=[("mine", 1)])


def test_of_a_gate_what_is_known_is_a_property() -> None:
    figures = {"difference": -0.25, "ci95": (-0.5, 0.0), "n": 12}
    found = RuleResult(name="baseline", outcome="fail", message="", figures=figures)
    whole, bare = item("warn"), item()
    gates.note(whole, "fail", found, "nightly", 0.05)
    gates.note(bare, "pass", None, "", 0.0)
    assert whole.user_properties == [
        ("mine", 1), ("tfgrpo_gate", "fail"), ("tfgrpo_severity", "warn"), ("tfgrpo_baseline", "nightly"),
        ("tfgrpo_margin", 0.05), ("tfgrpo_difference", -0.25), ("tfgrpo_low", -0.5), ("tfgrpo_high", 0.0),
        ("tfgrpo_n", 12),
    ]  # fmt: skip
    assert bare.user_properties[1:] == [
        ("tfgrpo_gate", "pass"), ("tfgrpo_severity", "fail"), ("tfgrpo_margin", 0.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("severity", "ends", "text"),
    [(None, ItemFailed, "whole"), ("fail", ItemFailed, "whole"), ("warn", Apart, "short")],
)
def test_a_gate_that_only_warns_does_not_fail(severity: str | None, ends: Any, text: str) -> None:
    with pytest.raises((ItemFailed, Apart), match=text) as ended:
        gates.fall(item(severity), "whole", "short")
    assert ended.type is ends


def test_the_reason_of_a_gate_is_what_failed_else_what_is_open() -> None:
    outcomes: list[tuple[str, Any]] = [("a", "pass"), ("b", "inconclusive"), ("c", "fail"), ("long", "fail")]
    rules = [
        RuleResult(name=name, outcome=outcome, message=name * 400 if name == "long" else f"{name} says")
        for name, outcome in outcomes
    ]
    told = _reason(rules)
    assert told.startswith("c: c says; long: longlong")
    assert len(told) <= len("c: c says; ") + gates.JUNIT_CHARACTERS
    assert _reason(rules[:2]) == "b: b says"
