"""What JUnit reports say of a gate."""

from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.plugin.items.gates import _compared


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
