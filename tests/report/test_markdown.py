import re
from dataclasses import replace
from typing import Any

import pytest
from support.sweeps import evenly, make_run

from pytest_tfgrpo.report.markdown import escaped, summary
from pytest_tfgrpo.report.value import build


@pytest.mark.parametrize(
    "text",
    ["a | b", "<script>", "[x](http://evil.example)", "@everyone", "`code`", "# head", "![](x)", "a\nb"],
)
def test_foreign_text_says_just_what_it_says(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown
    assert "<" not in shown
    assert re.sub(r"\\(.)", r"\1", shown).replace("&lt;", "<").replace("&gt;", ">") == " ".join(text.split())


def test_answers_shared_with_the_final_sweep_are_explained_below_the_table() -> None:
    report = build(make_run({"s1": [1.0]}, {"s1": [1.0]}), None)
    legend = "N + M: the agent ran N times; M answers are taken from the final sweep."
    assert legend not in summary(report)
    report["epochs"][0]["shared_rollouts"] = 65
    assert f"\n\n{legend}\n" in summary(report)


def test_a_run_without_epochs_has_no_table_of_them() -> None:
    report = build(make_run({"s1": [1.0]}, {"s1": [1.0]}), None)
    assert "| epoch |" in summary(report)
    report["epochs"] = []
    assert "| epoch |" not in summary(report)


ENDPOINT: dict[str, Any] = {
    "endpoint": "http://a",
    "found": True,
    "lowest": 3,
    "highest": 8,
    "concurrency": 5,
    "calls": 40,
    "refused": 0,
}


def rule(name: str = "errors", outcome: str = "fail", **changes: Any) -> dict[str, Any]:
    return {"name": name, "outcome": outcome, "message": "why", "advice": "", "figures": {}} | changes


def gate(name: str, outcome: str = "fail", severity: str = "fail", **changes: Any) -> dict[str, Any]:
    fields = {"name": name, "outcome": outcome, "severity": severity, "strict": False, "scenarios": 7}
    return fields | {"results": [rule(outcome=outcome)]} | changes


def with_gate(*named: dict[str, Any], outcome: str = "pass", results: Any = ()) -> Any:
    value: Any = build(make_run({"s1": [1.0]}, {"s1": [1.0]}), None)
    value["gate"] = {"outcome": outcome, "results": [*results], "strict": False, "gates": [*named]}
    return value


def test_the_headline_names_each_gate_that_only_warns() -> None:
    value = with_gate(gate("slow", severity="warn"), gate("x|y", severity="warn"), gate("ok", "pass"))
    assert summary(value).startswith("## tfgrpo: gate inconclusive, with warnings from slow, x\\|y\n")
    assert "\n| x\\|y | warn | errors | **failed** | why |\n" in summary(value)
    value = with_gate(gate("slow"), gate("dear", severity="warn"))
    assert summary(value).startswith("## tfgrpo: gate failed, with warnings from dear\n")


def test_rules_are_told_with_reason_and_advice_unless_they_are_skipped() -> None:
    results = [
        rule("a|b", message="seen 3 > 2", advice="look at c|d " + "x" * 300 + " end"),
        rule("fine", "pass"),
        rule("later", "not_judged"),
        rule("unset", "skipped"),
    ]
    text = summary(with_gate(outcome="fail", results=results))
    assert "\n| a\\|b | **failed** | seen 3 &gt; 2; look at c\\|d xxx" in text
    assert "xxx end |\n" in text
    assert "\n| fine | passed | why |\n| later | not checked | why |\n" in text
    assert "unset" not in text


def test_named_gates_stand_worst_first_and_a_passed_one_says_how_many_scenarios_it_has() -> None:
    named = [gate("ok", "pass"), gate("open", "inconclusive"), gate("worst"), gate("warned", severity="warn")]
    text = summary(with_gate(*named))
    rows = [line.split(" | ") for line in text.splitlines() if line.endswith((" why |", " 7 scenarios |"))]
    assert [row[0] for row in rows[2:]] == ["| worst", "| warned", "| open", "| ok"]
    assert rows[-1][1:] == ["fail", "all rules", "passed", "7 scenarios |"]


def test_foreign_names_and_words_are_escaped_wherever_they_stand() -> None:
    run = make_run({"s1": [1.0], "date1": [1.0]}, {"s1": [0.0], "date1": [0.5]}, {"t": [1, 0]})
    value: Any = build(replace(run, status="incomplete", reason="a|b"), None)
    value["domains"][0]["domain"] = "c|d"
    value["regressions"][0] |= {"scenario": "e|f", "flaky": True}
    value["regressions"][1]["flaky"] = False
    value["library"]["lessons"][0] |= {"domain": "g|h", "text": "i|j " + "x" * 300 + " end"}
    value["warnings"] = ["k|l", "m|n"]
    text = summary(value)
    assert "\nRun `run1` is incomplete: a\\|b\n" in text
    assert "\n| c\\|d | 1 | " in text
    assert "\n| e\\|f (flaky) | 1.0" in text
    assert text.count("(flaky)") == 1
    assert "\n- do, g\\|h: i\\|j xxx" in text
    assert "xxx end\n" in text
    assert text.endswith("\n- k\\|l\n- m\\|n\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a & b", "a &amp; b"), ("&lt;", "&amp;lt;"), ("~~x~~", r"\~\~x\~\~"), ("1. a", "1. a")]
    + [(f"{sign} a", f"\\{sign} a") for sign in "+-#*_!:`"],
)
def test_signs_that_mean_something_in_markdown_are_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_domains_are_a_table_where_there_are_two_with_their_gains() -> None:
    value = build(make_run({"s1": [1.0], "date1": [0.0]}, {"s1": [0.5], "date1": [1.0]}), None)
    text = summary(value)
    assert "| domain | scenarios | mean | gain |" in text
    assert "| dates | 1 | 1.000 | +1.000 |" in text.replace("\\", "")
    value["domains"] = value["domains"][:1]
    assert "| domain |" not in summary(value)


def test_of_many_lessons_the_first_twenty_are_listed_with_what_they_are_flagged_for() -> None:
    value: Any = build(make_run(train={"t": [1, 0]}), None)
    one = value["library"]["lessons"][0]
    for n, told in ((20, ""), (21, "- and 1 more"), (25, "- and 5 more")):
        value["library"]["lessons"] = [one | {"text": f"Lesson {k}."} for k in range(n)]
        text = summary(value)
        assert f"<summary>{n} active lessons</summary>" in text
        assert text.count("- do, text: Lesson ") == 20
        assert "Lesson 0." in text
        assert ("more" in text) is bool(told)
        assert told in text
    value["library"]["lessons"] = [one | {"flags": ["tests", "secrets"]}]
    assert "(read before promote: tests, secrets)\n" in summary(value)


def test_an_interval_stands_in_the_table_and_a_drift_beside_the_gain() -> None:
    value: Any = build(make_run(evenly(12, [0.0, 1.0]), evenly(12, [1.0, 1.0])), None)
    low, high = value["epochs"][1]["gt_score"]["ci95"] = [0.25, 0.75]
    assert f"| {low:.3f} to {high:.3f} |" in summary(value)
    assert "Drift" not in summary(value)
    value["gain"]["control"]["drift"] = {
        "difference": 0.1,
        "ci95": None,
        "n": 3,
        "families": 3,
        "just_these": False,
    }
    assert "\nDrift +0.100 without new lessons, " in summary(value)
    assert "Shown: " in summary(value)
    value["gain"]["control"]["reference"] = {"name": "a|b", "kind": "library", "stamp": "1" * 64}
    assert " over the reference, library a\\|b \\(111111111111\\), 95 % " in summary(value)


def test_endpoints_that_adapted_are_told() -> None:
    value: Any = build(make_run({"s1": [1.0]}, {"s1": [1.0]}), None)
    assert "Endpoint" not in summary(value)
    value["endpoints"] = [ENDPOINT | {"endpoint": "http://a|b"}, ENDPOINT]
    text = summary(value)
    assert text.count("\n- Endpoint http") == 2
    assert "a\\|b" in text
