"""Sentences of blocks: placebo, evidence, untested lessons, scenarios with low scores."""

from typing import Any

from support.sweeps import SETTINGS

from pytest_tfgrpo.report.blocks import evidence, low, placebo


def test_a_placebo_is_told_as_far_as_it_went() -> None:
    over = {"difference": 0.2, "ci95": [0.1, 0.3], "n": 20, "families": 20, "just_these": False}
    found: Any = {
        "possible": 20,
        "impossible": 0,
        "total": 0.5,
        "beside": "no lessons",
        "over": over,
        "p": 0.0005,
        "gain": {"difference": 0.3},
        "gain_side": "better",
        "side": None,
        "changed": [],
    }
    text = placebo.PLACEBO.text
    assert text(found).startswith("gain +0.500 over no lessons, +0.200 over placebo (95 % interval ")
    assert text(found).endswith(", p < 0.001, 20 scenarios), which gains +0.300 itself; any text does this")
    assert not text({**found, "side": "better"}).endswith("any text does this")
    assert text({**found, "impossible": 1}).endswith("; 1 scenario had no other lessons for a placebo")
    assert "(too few for an interval, 20" in text({**found, "over": {**over, "ci95": None}, "p": None})
    assert text({**found, "total": None}) == "no scenario has a score in all three sweeps"
    assert text({**found, "possible": 0}) == "no prompt of the final sweep carried a lesson"
    assert text({**found, "possible": 0, "impossible": 2}).startswith("placebo not possible")
    changed = [
        {"what": "cut", "before": 0.1, "placebo": 0.5, "after": 0.0},
        {"what": "tokens", "before": None, "placebo": 30.4, "after": 1.0},
        {"what": "characters", "before": 5.1, "placebo": 5.2, "after": 9.0},
    ]
    assert placebo.changes({**found, "changed": changed}) == (
        "answers cut at max_tokens 10 % to 50 %, tokens ? to 30"
    )
    assert placebo.changes(found) == "answers as long as before"


def test_evidence_is_told_with_what_was_left_out() -> None:
    value: Any = {
        "file": "/home/me/e.jsonl",
        "attempts": 3,
        "groups": 1,
        "mean": 0.5,
        "left_out": {"no_pack": 2, "overlap": 1},
    }
    assert evidence.EVIDENCE.text(value) == (
        "3 attempts at 1 task from e.jsonl, mean total_reward 0.500; left out: 2 of a domain without a "
        "prompt pack, 1 of tasks that overlap the dev or eval split"
    )
    assert evidence.EVIDENCE.text({**value, "left_out": {}}).endswith("mean total_reward 0.500")


def test_untested_lessons_are_told_in_number_and_one_by_one() -> None:
    lesson = {"id": "e1", "domain": "text", "text": "Count."}
    value: Any = {"held": True, "lessons": [lesson]}
    assert evidence.UNTESTED_LESSONS.text(value) == (
        "1 lesson was in no prompt of the dev or eval split; it is held back; add scenarios that it is about"
    )
    two: Any = {"held": False, "lessons": [lesson, {**lesson, "id": "e2"}]}
    assert evidence.UNTESTED_LESSONS.text(two) == (
        "2 lessons were in no prompt of the dev or eval split; add scenarios that they are about"
    )
    assert list(evidence.UNTESTED_LESSONS.details(two, str, 1)) == ["text: Count. (e1)"]
    assert len(list(evidence.UNTESTED_LESSONS.details(two, str, None))) == 2


def test_scenarios_below_the_minimum_are_counted_of_the_final_sweep() -> None:
    rows = [{"scenario": f"s{n}", "mean": n / 10} for n in range(low.SHOWN + 2)]
    report: Any = {
        "low": rows,
        "epochs": [{"mode": "eval", "groups": 19}, {"mode": "train", "groups": 4}],
        "settings": {**SETTINGS, "min_score": 0.9},
    }
    text = low.low(report)
    assert text.startswith("12 of 19 eval scenarios below min_score = 0.9: s0 0.000, s1 0.100")
    assert text.endswith(" and 2 more")
    assert low.low(report, every=True).endswith("s11 1.100")
    assert low.low({**report, "low": []}) == ""
