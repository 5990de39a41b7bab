"""Gates in words: what failed first, what is left out where, and what counts as one."""

from typing import Any

from pytest_tfgrpo.report import gates


def finding(outcome: str, name: str = "minimum mean", message: str = "too low", advice: str = "") -> Any:
    return {"name": name, "outcome": outcome, "message": message, "advice": advice, "figures": {}}


def gate(outcome: str, *results: Any, **fields: Any) -> Any:
    return {"outcome": outcome, "strict": False, "results": list(results), **fields}


def test_the_text_of_a_failing_gate_starts_with_what_failed() -> None:
    rules = (finding("pass", "complete", "2 of 2 phases ended"), finding("inconclusive", "gain", "open"))
    failed = gate("fail", *rules, finding("fail", advice="raise it"), finding("skipped", "errors", "not set"))
    assert gates.default_text(failed) == [
        "minimum mean: too low; raise it",
        "  passed        complete: 2 of 2 phases ended",
        "  inconclusive  gain: open",
    ]
    strict = gate("fail", *rules, strict=True)
    assert gates.default_text(strict)[0] == "gate_strict: an inconclusive result fails: gain: open"
    mine = gate("fail", *rules, strict=True, name="mine", severity="fail", scenarios=1)
    assert gates.named_text(gate("pass", gates=[gate("pass", name="other"), mine]), "mine") == [
        "strict: an inconclusive result fails: gain: open"
    ]


def test_gates_come_worst_first_and_quiet_ones_say_what_failed_alone() -> None:
    warned = gate("fail", finding("fail", "a"), name="w", severity="warn", scenarios=2)
    failed = gate("fail", finding("fail", "b"), name="f", severity="fail", scenarios=2)
    passed = gate("pass", finding("pass", "c"), name="p", severity="fail", scenarios=1)
    whole = gate(
        "pass",
        finding("pass", "d"),
        finding("skipped", "e", advice="save one"),
        gates=[passed, warned, failed],
    )
    heads = [text for text in gates.gate_lines(whole, 80, every=False, quiet=True) if text[0] != " "]
    assert heads == [
        "gate f  FAILED",
        "gate w  FAILED (severity warn: the run does not fail)",
        "gate p  passed, 1 scenario",
        "gate  passed",
    ]
    assert gates.overall(whole) == "fail"
    assert gates.overall(gate("pass", gates=[warned])) == "inconclusive"
    assert gates.overall(gate("inconclusive", gates=[passed])) == "inconclusive"
    above = gates.gate_lines(whole, 80, every=False, quiet=True, told_above=True)
    assert "gate f  FAILED, as shown above" in above
    assert "  FAILED        a: too low" in above, "no item has shown what only warns"
    assert "  FAILED        b: too low" not in above
    every = gates.gate_lines(whole, 80, every=True, quiet=True, told_above=True)
    assert "  FAILED        b: too low" in every
    assert "  passed        c: too low" in every
    loud = gates.gate_lines(whole, 80, every=False, quiet=False)
    assert "  skipped       e: too low; save one" in loud
    assert "  passed        d: too low" in loud
    assert gates.gate_lines(None, 80, every=True, quiet=False) == []


def test_a_pass_against_something_else_is_never_left_out() -> None:
    unlike = finding("pass", "baseline", f"not worse{gates.DIFFERS}not signed")
    failed = finding("fail", "errors", f"3 errors{gates.DIFFERS}x")
    lines = gates.gate_lines(gate("pass", unlike, finding("pass"), failed), 80, every=False, quiet=True)
    assert lines[1:] == [
        "  passed        baseline: not worse; the baseline was not signed",
        "  FAILED        errors: 3 errors; the baseline was x",
    ]


def test_rules_that_were_not_judged_are_one_where_the_reason_is() -> None:
    one, two = (finding("not_judged", name, "part", "run all") for name in ("baseline", "gain"))
    assert list(gates._gathered([finding("pass"), one, two])) == [
        finding("pass"),
        {**one, "name": "baseline, gain"},
    ]
    for other in (finding("not_judged", "gain", "other", "run all"), finding("not_judged", "gain", "part")):
        assert list(gates._gathered([one, other])) == [one, other]
