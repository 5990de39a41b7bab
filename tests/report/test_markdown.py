import re

import pytest
from support.sweeps import make_run

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
