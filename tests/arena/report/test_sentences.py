"""What an arena says: its first sentence, and what a reader must know."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.arena.results import arena_result, simulated

from pytest_tfgrpo.arena.report.comparison import compare_sides
from pytest_tfgrpo.arena.report.lines import arena_lines, chance, gain_rows, pair_rows, training_rows
from pytest_tfgrpo.arena.report.sentences import first_sentence, remarks
from pytest_tfgrpo.arena.result import Side


def said(gains: Mapping[str, float], *more: Side, **how: float) -> str:
    rng = random.Random(5)
    return first_sentence(compare_sides(arena_result([*simulated(gains, rng, **how), *more])))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gains", "start", "parts"),
    [
        (
            {"none": 0, "placebo": 0, "weak": 0.05, "gepa": 0.3, "few-shot": 0.3},
            "gepa gained +0.",
            [
                " over none (95 % interval +0.",
                " over placebo; it cannot be told from few-shot; it is better than weak",
            ],
        ),
        (
            {"none": 0, "placebo": 0.3, "gepa": 0.3},
            "gepa gained +0.",
            ["; it cannot be told from placebo, so any text may do this"],
        ),
        (
            {"none": 0, "placebo": 0.3, "gepa": 0},
            "any text does this: placebo gained +0.",
            ["no optimizer can be told from none"],
        ),
        (
            {"none": 0, "gepa": 0},
            "no side gained over none for certain: the best, gepa, differs by ",
            ["; a difference of 0.", " is found in 4 of 5 such arenas"],
        ),
        (
            {"none": 0.3, "gepa": 0},
            "no side gained over none for certain",
            ["; gepa is worse than none (-0."],
        ),
        ({"few-shot": 0, "gepa": 0.3}, "gepa gained +0.", [" over few-shot (95 % interval "]),
    ],
)
def test_the_first_sentence_says_who_gained_and_from_whom_it_cannot_be_told(
    gains: Mapping[str, float], start: str, parts: list[str]
) -> None:
    sentence = said(gains)
    assert sentence.startswith(start)
    assert [part for part in parts if part not in sentence] == []


def test_it_says_what_is_missing_where_nothing_can_be_said() -> None:
    failed = Side(name="gepa", note="optimizer failed: no answer")
    assert said({"none": 0}, failed) == "nothing to compare: only none has a score"
    assert first_sentence(compare_sides(arena_result([failed]))) == "nothing to compare: no side has a score"
    few = said({"none": 0, "gepa": 0.5}, scenarios=6)
    assert few == "not enough data to tell the sides apart: only 6 eval scenarios; a claim needs 10 or more"
    none = simulated({"none": 0}, random.Random(0))[0]
    idle = replace(none, name="idle", same_as="none")
    value = compare_sides(arena_result([none, idle]))
    assert (
        first_sentence(value) == "no side changed a prompt of the eval split, so that none differs from none"
    )


def test_equal_sides_are_said_to_be_equal_within_the_margin() -> None:
    sides = simulated({"none": 0, "gepa": 0}, random.Random(1), scenarios=90, rollouts=20)
    value = compare_sides(arena_result(sides, margin=0.2))
    assert first_sentence(value) == "no side differs from none by more than 0.2"


def test_with_few_families_a_gain_is_of_just_these_scenarios() -> None:
    sentence = said({"none": 0, "gepa": 0.45}, scenarios=18, rollouts=10)
    assert "on 18 scenarios of 6 families (says nothing of others)" in sentence


def test_failures_errors_and_the_correction_are_said_below_the_tables() -> None:
    sides = simulated({"none": 0, "gepa": 0.05, "few-shot": 0}, random.Random(2), errors=0.05)
    value = compare_sides(arena_result([*sides, Side(name="llm", note="optimizer failed: no answer")]))
    texts = list(remarks(value))
    counts = ", ".join(f"{one['name']} {one['errors']}" for one in value["sides"] if one["errors"])
    assert texts[0] == "llm: optimizer failed: no answer"
    assert texts[1].startswith(f"rollouts of the final sweep without a score: {counts};")
    assert "would be enough in 4 of 5 runs" in texts[2]
    assert texts[3].startswith("each p is corrected for 3 comparisons (Holm)")
    assert texts[4].startswith("each side was trained once")


def test_the_terminal_shows_gains_what_training_took_and_every_other_pair() -> None:
    sides = simulated({"none": 0, "gepa": 0.3, "few-shot": 0}, random.Random(4))
    sides[1] = replace(sides[1], tokens_added=None, usd=None)
    lines = arena_lines(compare_sides(arena_result(sides)))
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("arena  gepa gained +0.")
    rows = {" ".join(row.split()[:1]): row.split() for row in lines if row}
    assert rows["none"][1:] == ["0", "0", "$0.00", "-", "+0"]
    assert rows["gepa"][:3] == ["gepa", "-", "few-shot"]
    assert rows["gepa"][-1] == "better"
    assert any(row.split() == ["gepa", "400", "12", "?", "128", "s", "?"] for row in lines)


def test_it_says_how_many_arenas_were_run_on_the_same_eval_split() -> None:
    sides = simulated({"none": 0, "gepa": 0.3}, random.Random(5))
    told = {n: "\n".join(remarks(compare_sides(arena_result(sides, earlier=n)))) for n in (0, 2)}
    assert "earlier runs and arenas of this task on the same eval scenarios: 2; the best" in told[2]
    assert "earlier runs" not in told[0]


def pair(
    before: str, after: str, gain: float | None, claim: str | None = None, **changes: Any
) -> dict[str, Any]:
    """Return the value of a pair of sides; `changes` may be of what is found of their difference."""
    found = {"n": 12, "families": 12, "difference": gain, "p_adjusted": 0.5, "detectable": 0.2}
    found |= {"ci95": gain and [gain - 0.1, gain + 0.2], "just_these": False}
    found = {key: changes.pop(key, known) for key, known in found.items()}
    known = {"claim": claim, "equal_within": None, "alike": False, "obstacles": [], "settling": None}
    return {"before": before, "after": after, "difference": found, **known, **changes}


BEST = pair("none", "gepa", 0.3, "better")
GAINED = "gepa gained +0.300 over none (95 % interval +0.200 to +0.500)"
LLM = pair("none", "llm", 0.2, "better")


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([LLM, BEST], GAINED),
        ([BEST, LLM, pair("gepa", "llm", -0.1, "worse")], f"{GAINED}; it is better than llm"),
        ([BEST, LLM, pair("llm", "gepa", 0.1, "worse")], f"{GAINED}; it is worse than llm"),
        ([BEST, LLM, pair("llm", "gepa", 0.0, equal_within=0.1)], f"{GAINED}; it is as good as llm"),
        (
            [BEST, *(pair(other, "gepa", 0.1) for other in ("llm", "few-shot", "heuristic"))],
            f"{GAINED}; it cannot be told from llm, few-shot and heuristic",
        ),
        ([BEST, pair("llm", "gepa", 0.0, alike=True), pair("none", "x", None, n=0)], GAINED),
        ([BEST, pair("llm", "gepa", None, n=0)], GAINED),
        (
            [BEST, pair("none", "llm", -0.25, "worse"), pair("none", "x", -0.5, "worse")],
            f"{GAINED}; llm is worse than none (-0.250); x is worse than none (-0.500)",
        ),
        (
            [BEST, pair("gepa", "placebo", -0.15, "worse")],
            f"{GAINED} and +0.150 over placebo",
        ),
        (
            [pair("none", "gepa", 0.3, "better", just_these=True, families=3, ci95=None)],
            "gepa gained +0.300 over none, on 12 scenarios of 3 families (says nothing of others)",
        ),
        (
            [pair("none", "x", 0.1, equal_within=0.15), pair("none", "y", 0.0, equal_within=0.2)],
            "no side differs from none by more than 0.2",
        ),
        (
            [pair("none", "x", 0.1, equal_within=0.15), pair("none", "y", 0.05, ci95=None)],
            "no side gained over none for certain: the best, x, differs by +0.100 (95 % interval +0.000 to "
            "+0.300); a difference of 0.200 is found in 4 of 5 such arenas",
        ),
        (
            [pair("none", "y", 0.05, ci95=None, detectable=None), pair("none", "x", 0.1, alike=True)],
            "no side gained over none for certain: the best, y, differs by +0.050",
        ),
        (
            [pair("none", "y", 0.05, obstacles=["few"]), pair("none", "x", -0.1, ci95=None, detectable=None)],
            "no side gained over none for certain: the best, y, differs by +0.050 (95 % interval -0.050 to "
            "+0.250); a difference of 0.200 is found in 4 of 5 such arenas",
        ),
        (
            [pair("none", "placebo", 0.4, "better", ci95=None), pair("none", "x", -0.1, "worse")],
            "any text does this: placebo gained +0.400 over none, and no optimizer can be told from none; x "
            "is worse than none (-0.100)",
        ),
    ],
)
def test_each_answer_has_its_words(pairs: list[dict[str, Any]], sentence: str) -> None:
    assert first_sentence({"over": "none", "pairs": pairs}) == sentence


def test_a_row_of_the_terminal_has_the_better_side_first_and_says_what_a_pair_came_to() -> None:
    sides = [{"name": name, "mean": mean} for name, mean in (("none", 0.5), ("gepa", 0.8), ("llm", None))]
    assert gain_rows({"over": "none", "sides": sides, "pairs": [BEST]}) == [
        ["none", "0.500", "-", "-", "-", "gains are over it"],
        ["gepa", "0.800", "+0.300", "+0.200 to +0.500", "0.500", "better"],
        ["llm", "-", "-", "-", "-", "no score"],
    ]
    rows = [
        pair("a", "b", -0.25, "worse"),
        pair("a", "b", -0.25, "better", ci95=None, p_adjusted=0.0005),
        pair("a", "b", 0.0, ci95=None, equal_within=0.1, p_adjusted=0.001),
        pair("a", "b", None, n=0, p_adjusted=None, obstacles=["few"]),
        pair("a", "b", -0.25, ci95=None, alike=True, obstacles=["equal"]),
        pair("a", "b", 0.25, ci95=None),
    ]
    assert pair_rows(rows) == [
        ["a - b", "+0.250", "+0.050 to +0.350", "0.500", "better"],
        ["a - b", "+0.250", "-", "< .001", "worse"],
        ["b - a", "+0.000", "-", "0.001", "equal within 0.1"],
        ["b - a", "-", "-", "-", "too little data"],
        ["a - b", "+0.250", "-", "0.500", "same prompts"],
        ["b - a", "+0.250", "-", "0.500", "not sure"],
    ]
    assert chance(0.0009999) == "< .001"


def settled(means: Mapping[str, float | None], *pairs: dict[str, Any], **changes: Any) -> list[str]:
    quiet = {"note": "", "teacher_limited": False, "errors": 0}
    sides = [{"name": name, "mean": mean, **quiet, **changes} for name, mean in means.items()]
    known = {"over": "none", "sides": sides, "pairs": pairs, "comparisons": 1, "earlier": 0}
    return list(remarks(known | {"budget_teacher_calls": 7}))


def test_what_would_settle_the_best_side_is_said_of_the_first_pair_that_has_it() -> None:
    open_one = pair("none", "llm", 0.1, settling="about 80 scenarios")
    means = {"none": 0.5, "llm": 0.6, "gepa": 0.7, "x": None}
    once = "each side was trained once: with another seed an optimizer may come out better or worse"
    best = pair("llm", "gepa", 0.1, settling="about 90 scenarios")
    told = "to tell gepa from llm, about 90 scenarios"
    assert settled(means, open_one, best) == [told, once]
    first = pair("none", "gepa", 0.2, settling="about 30 scenarios")
    assert settled(means, open_one, best, first) == ["to tell gepa from none, about 30 scenarios", once]
    assert settled(means, open_one) == [once]
    assert settled({"x": None}) == []
    assert settled({"none": 0.1, "llm": 0.1, "x": 0.1}, teacher_limited=True) == [
        "the limit of 7 teacher calls stopped none, llm and x; give more with --budget-teacher-calls"
    ]


def test_long_names_and_notes_are_cut_and_two_comparisons_are_corrected() -> None:
    name = "a-name-" * 6
    sides = [*simulated({"none": 0, name: 0.3, "b": 0.3}, random.Random(5)), Side(name="x", note="no " * 200)]
    value = compare_sides(arena_result(sides))
    assert all(len(row[0]) <= 24 for row in (*gain_rows(value), *training_rows(value)))
    told = list(remarks({**value, "comparisons": 2}))
    assert told[0].startswith("x: no no ")
    assert len(told[0]) <= 303
    assert any(text.startswith("each p is corrected for 2 comparisons (Holm)") for text in told)
