"""Findings in words: what two things share, where they stand, and what to do."""

from dataclasses import replace

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.suite.contamination.findings import Finding, called, complaint, excerpt, found_value

PAIR = Finding(
    kind="similar", subject="a [eval]", where="a.yaml:1", other="b [train]", other_where="b.yaml:2",
    similarity=0.914, excerpt="Count.",
)  # fmt: skip


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (
            PAIR,
            "a [eval] (a.yaml:1) and b [train] (b.yaml:2) are 91% alike in wording, with the same numbers: "
            "'Count.'; set the same split for both (or the same family, if no split is set), or remove one",
        ),
        (
            replace(PAIR, kind="same_task", more=3),
            "a [eval] (a.yaml:1) and b [train] (b.yaml:2) and 3 more ask the same, except for case and "
            "typography: 'Count.'; set the same split for both (or the same family, if no split is set), or "
            "remove one",
        ),
        (
            replace(PAIR, kind="answer_in_pack", other="prompt pack p", other_where=""),
            "a [eval] (a.yaml:1) has its answer in prompt pack p: 'Count.'; take it out of the pack, or "
            "remove the scenario",
        ),
        (
            replace(PAIR, kind="answer_in_prompt"),
            "a [eval] (a.yaml:1) has its answer in the prompt of b [train] (b.yaml:2): 'Count.'; take it out "
            "of the prompt, or set the same split for both scenarios",
        ),
    ],
)
def test_a_finding_says_what_to_do(finding: Finding, said: str) -> None:
    assert str(finding) == said


@pytest.mark.parametrize(("n", "more"), [(1, None), (20, None), (21, "  and 1 more")])
def test_twenty_findings_are_listed_and_the_rest_counted(n: int, more: str | None) -> None:
    lines = complaint([PAIR] * n).splitlines()
    assert lines[0].startswith(f"contamination: {n} found; ")
    assert [text for text in lines if text.endswith(" more")] == ([more] if more else [])
    assert sum(text.startswith("  a [eval]") for text in lines) == min(n, 20)
    assert lines[-1] == "to run anyway, with a warning in the report, set contamination = warn"
    value = found_value([*[PAIR] * n, replace(PAIR, kind="paraphrase")])
    assert value["found"] == n + 1
    assert value["kinds"] == {"paraphrase": 1, "similar": n}
    assert len(value["findings"]) == min(n + 1, 20)
    assert value["findings"][0]["text"] == str(PAIR)


def test_a_foreign_text_is_shown_by_its_start() -> None:
    assert excerpt("x" * 60) == "x" * 60
    assert excerpt("x" * 61) == "x" * 57 + "..."
    assert excerpt(" a\n\n b ") == "a b"
    assert called(make_scenario("i" * 81, split="dev")) == "i" * 77 + "... [dev]"
