"""What an arena says: its first sentence, and what a reader must know."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.arena.results import arena_result, simulated

from pytest_tfgrpo.arena.report.comparison import compare_sides
from pytest_tfgrpo.arena.report.lines import arena_lines
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
