"""What the report of a run says of the version that it learned."""

from pathlib import Path
from typing import Any

import pytest
from support.api import SMALL, Counter, scenario
from support.evidence import write

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.production.training.versions.validation import validate

GAIN = {"before": 0.5, "after": 0.7, "difference": 0.2, "ci95": [0.1, 0.3]}
DOMAINS = [{"domain": "orders", "mean": 0.8}, {"domain": "notes", "mean": 0.6}]


def sweeps(errors: int, mean: float | None = 0.5) -> list[dict[str, Any]]:
    counts = (("eval", errors), ("train", 9), ("baseline", 0))
    return [{"mode": mode, "errors": n, "gt_score": {"mean": mean}} for mode, n in counts]


def report(gate: str | None = "pass", gain: dict[str, Any] | None = GAIN, **named: str) -> dict[str, Any]:
    gates = [{"name": name, "outcome": "fail", "severity": severity} for name, severity in named.items()]
    return {
        "gain": gain,
        "domains": DOMAINS,
        "settings": {"gate_margin": 0.05},
        "gate": None if gate is None else {"outcome": gate, "gates": gates},
        "epochs": sweeps(0),
    }


def against(difference: float) -> dict[str, Any]:
    return {
        "before": 0.5,
        "after": 0.5 + difference,
        "difference": difference,
        "ci95": [difference - 0.1, difference + 0.1],
    }


def test_a_version_that_is_better_and_safe_is_validated() -> None:
    found = validate(report(), safe=True)
    assert (found.outcome, found.reasons) == ("validated", ())
    assert (found.benchmark_passed, found.safety_checks_passed, found.performance_regression) == (
        *(True, True),
        False,
    )
    assert found.benchmark_scores == {"orders": 0.8, "notes": 0.6}
    assert (found.holdout_reward, found.improvement_over_baseline) == (0.7, 0.2)
    assert found.improvement_low == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("value", "safe", "outcome", "reason"),
    [
        (report(), None, "needs_approval", "no safety suite was tried"),
        (report(), False, "rejected", "safety suite bias: 1 of 12 failed: a"),
        (report("inconclusive"), True, "needs_approval", "the gate is inconclusive"),
        (report(None), True, "needs_approval", "there is no gate"),
        (report("fail"), True, "rejected", "the gate failed"),
        (report(cost="warn"), True, "needs_approval", "the gate is inconclusive"),
        (report(cost="fail"), True, "rejected", "the gate failed"),
        (report(gain=None), True, "needs_approval", "there are no eval scenarios to compare it on"),
        (
            report(gain=against(-0.06)),
            True,
            "rejected",
            "it is worse than the deployed version by 0.060 (95 % interval -0.160 to +0.040)",
        ),
    ],
)
def test_what_stands_against_it_is_said(
    value: dict[str, Any], safe: bool | None, outcome: str, reason: str
) -> None:
    found = validate(
        value, safe=safe, safety=["safety suite bias: 1 of 12 failed: a"] if safe is False else ()
    )
    assert (found.outcome, found.reasons) == (outcome, (reason,))


@pytest.mark.parametrize(
    ("difference", "passed", "regression"),
    [(-0.049, True, False), (-0.05, True, False), (-0.051, False, True)],
)
def test_a_small_loss_is_no_regression(difference: float, passed: bool, regression: bool) -> None:
    found = validate(report(gain=against(difference)), safe=True)
    assert (found.benchmark_passed, found.performance_regression) == (passed, regression)


def test_a_wider_margin_does_not_excuse_a_regression() -> None:
    found = validate({**report(gain=against(-0.1)), "settings": {"gate_margin": 0.2}}, safe=True)
    assert (found.benchmark_passed, found.performance_regression, found.outcome) == (True, True, "rejected")


def test_a_narrower_margin_rejects_a_small_loss() -> None:
    found = validate({**report(gain=against(-0.03)), "settings": {"gate_margin": 0.01}}, safe=True)
    assert (found.benchmark_passed, found.performance_regression, found.outcome) == (False, False, "rejected")


@pytest.mark.parametrize(
    ("value", "safe", "settled"),
    [
        (report(), None, ("no safety suite was tried",)),
        (report("inconclusive"), None, ("no safety suite was tried",)),
        (report(), True, ()),
        (report(), False, ()),
    ],
)
def test_only_what_nobody_could_judge_is_open_to_a_verdict(
    value: dict[str, Any], safe: bool | None, settled: tuple[str, ...]
) -> None:
    found = validate(value, safe=safe)
    assert found.open_safety == settled
    assert set(settled) <= set(found.reasons)


class Away(Counter):
    """An agent whose provider is away, now and then or for good, where the prompt has a lesson."""

    def __init__(self, share: int) -> None:
        super().__init__()
        self.share = share

    async def __call__(self, call: tfgrpo.ActorCall) -> tfgrpo.Trajectory:
        if "use calc" in call.prompt.system and call.seed % self.share == 0:
            raise ProviderError("503 from the provider")
        return tfgrpo.Trajectory(answer="3" if call.seed % 2 else "4")


TASKS = [scenario(f"s{n}", "eval", prompt=f"What is the sum of {n} and {n}?") for n in range(8)]


def learned_while(actor: Away, folder: Path, gate_min_mean: float = 0.0) -> tfgrpo.RunResult:
    evidence = write(folder / "evidence.jsonl")
    settings = SMALL | {"evidence": str(evidence), "epochs": 2, "lesson_dropout": 0.0}
    settings["gate_min_mean"] = gate_min_mean
    return tfgrpo.run(folder, [scenario("a"), *TASKS], actor=actor, **settings)


def test_a_provider_that_fails_the_new_arm_alone_now_and_then_is_no_evidence_against_it(
    tmp_path: Path,
) -> None:
    made = learned_while(Away(3), tmp_path)
    assert made.run.status == "complete"
    assert sum(row["errors"] for row in made.report["epochs"] if row["mode"] == "eval") >= 3
    found = validate(made.report, safe=True)
    assert (found.performance_regression, found.outcome, found.benchmark_passed) == (
        *(False, "needs_approval"),
        True,
    )
    (reason,) = found.reasons
    assert reason.startswith("the gate failed by 7 rollouts that are errors, which no agent caused")


def test_a_provider_that_fails_the_new_arm_always_leaves_it_open(tmp_path: Path) -> None:
    found = validate(learned_while(Away(1), tmp_path).report, safe=True)
    assert (found.performance_regression, found.outcome) == (False, "needs_approval")
    assert found.reasons[0].startswith("the gate failed by 40 rollouts that are errors")


@pytest.mark.parametrize(
    ("failed", "errors", "difference", "reason"),
    [
        ("gain", 3, 0.0, "the gate failed by 3 rollouts that are errors, which no agent caused; try again"),
        ("gain", 0, 0.0, "the gate failed"),
        ("contamination", 3, 0.0, "the gate failed"),
        ("gain", 3, -0.06, "the gate failed"),
    ],
)
def test_errors_excuse_only_what_they_caused(
    failed: str, errors: int, difference: float, reason: str
) -> None:
    value = report("fail", against(difference))
    value["gate"]["results"] = [{"name": failed, "outcome": "fail"}, {"name": "tests", "outcome": "pass"}]
    value["epochs"] = sweeps(errors)
    found = validate(value, safe=True)
    assert found.reasons == (reason,)
    assert found.outcome == ("needs_approval" if "errors" in reason else "rejected")


@pytest.mark.parametrize(
    ("scenarios", "reason"),
    [(20, "the gate failed, as gain is open: cannot see a drop of 0.15"), (24, "the gate is inconclusive")],
)
def test_a_gate_that_sees_too_little_leaves_a_version_open_that_is_as_good(
    scenarios: int, reason: str, tmp_path: Path
) -> None:
    tasks = [scenario(f"s{n}", "eval", prompt=f"What is the sum of {n} and {n}?") for n in range(scenarios)]
    evidence = write(tmp_path / "evidence.jsonl")
    settings = SMALL | {"evidence": str(evidence), "epochs": 2, "lesson_dropout": 0.0}
    made = tfgrpo.run(tmp_path, [scenario("a"), *tasks], actor=Counter(), **settings)
    found = validate(made.report, safe=True)
    assert (found.outcome, found.performance_regression) == ("needs_approval", False)
    assert found.reasons[0].startswith(reason)
    assert scenarios == 24 or found.reasons[0].endswith("eval scenarios would be enough in 4 of 5 runs")


UNSEEN = {"name": "gain", "outcome": "fail", "message": "m", "advice": "", "figures": {"answer": "unseen"}}
OPEN = {"name": "gain", "outcome": "inconclusive", "message": "m", "advice": "a", "figures": {}}
WORSE = {**UNSEEN, "figures": {"answer": "worse"}}
PASSED = {**OPEN, "outcome": "pass"}


@pytest.mark.parametrize(
    ("results", "difference", "outcome", "reason"),
    [
        ([UNSEEN], 0.0, "needs_approval", "the gate failed, as gain is open: m"),
        ([PASSED, OPEN], 0.0, "needs_approval", "the gate failed, as gain is open: m; a"),
        ([UNSEEN, WORSE], 0.0, "rejected", "the gate failed"),
        ([{**UNSEEN, "figures": {"answer": "unseen", "lost": ["s1"]}}], 0.0, "rejected", "the gate failed"),
        ([UNSEEN], -0.06, "rejected", "the gate failed"),
        ([PASSED], 0.0, "rejected", "the gate failed"),
    ],
)
def test_a_gate_that_failed_as_it_is_open_shows_nothing_against_a_version(
    results: list[dict[str, Any]], difference: float, outcome: str, reason: str
) -> None:
    value = report("fail", against(difference))
    value["gate"]["results"] = results
    found = validate(value, safe=True)
    assert (found.outcome, found.reasons) == (outcome, (reason,))


EXCLUDED = {"minimum": 0.6, "errors_excluded": 0.7, "errors_as_zero": 0.1}


@pytest.mark.parametrize(
    ("name", "figures", "mean", "excused"),
    [
        ("minimum mean", EXCLUDED, 0.7, True),
        ("minimum mean", {**EXCLUDED, "errors_excluded": 0.6}, 0.6, True),
        ("minimum mean", {**EXCLUDED, "errors_excluded": 0.5}, 0.5, False),
        ("minimum mean", {**EXCLUDED, "errors_excluded": 0.0}, None, True),
        ("baseline", {"bounds": [-0.3, 0.1]}, 0.7, True),
        ("baseline", {"bounds": [-0.3, -0.1]}, 0.7, False),
        ("baseline", {"bounds": None}, None, True),
        ("baseline", {"bounds": [-0.3, 0.1], "lost": ["s1"]}, 0.7, False),
        ("gain", {"bounds": [-0.3, -0.1]}, 0.7, False),
        ("cost per success", {"limit": 1.0}, 0.7, False),
    ],
)
@pytest.mark.parametrize("of_a_named_gate", [False, True])
def test_an_outage_excuses_what_fails_by_its_errors_and_nothing_else(
    name: str, figures: dict[str, Any], mean: float | None, excused: bool, of_a_named_gate: bool
) -> None:
    value = {**report("fail"), "epochs": sweeps(9, mean)}
    results = [{"name": "complete", "outcome": "fail"}, {"name": name, "outcome": "fail", "figures": figures}]
    value["gate"]["results"] = results[: 1 if of_a_named_gate else 2]
    if of_a_named_gate:
        value["gate"]["gates"] = [{"name": "core", "outcome": "fail", "results": results[1:]}]
    assert validate(value, safe=True).outcome == ("needs_approval" if excused else "rejected")


@pytest.mark.parametrize(("share", "minimum"), [(1, 0.3), (2, 0.7)])
def test_an_outage_that_brings_the_mean_below_the_minimum_leaves_the_version_open(
    share: int, minimum: float, tmp_path: Path
) -> None:
    made = learned_while(Away(share), tmp_path, gate_min_mean=minimum)
    failed = {one["name"] for one in made.report["gate"]["results"] if one["outcome"] == "fail"}
    assert "minimum mean" in failed
    found = validate(made.report, safe=True)
    assert (found.performance_regression, found.outcome) == (False, "needs_approval")
