"""The scenario of a comparison whose answers the terminal shows."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.sweeps import Credits, evenly, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.report.compare_example import example_lines
from pytest_tfgrpo.report.comparison.compare import versus


def run(final: dict[str, Credits], run_id: str, answers: dict[str, str] | None = None, **changes: Any) -> Run:
    """Return a run with this final sweep; `answers` replace those of whole scenarios."""
    made = make_run(None, final, run_id=run_id, **changes)
    result, said = made.phases[-1], answers or {}
    groups = tuple(
        replace(g, rollouts=tuple(replace(r, answer=said.get(g.scenario_id, r.answer)) for r in g.rollouts))
        for g in result.groups
    )
    scenarios = tuple(replace(s, stamp=f"stamp of {s.id}") for s in made.scenarios)
    return replace(made, scenarios=scenarios, phases=(replace(result, groups=groups),))


def shown(*runs: Run, width: int = 80) -> list[str]:
    before, after, *further = runs
    return example_lines(versus(before, after, further), runs, width)


FULL = evenly(12, [1, 1])


def test_the_largest_loss_is_shown_with_both_answers_and_the_command_for_the_worse_one() -> None:
    after = run({**FULL, "s2": [0, 1], "s4": [1, 0], "s7": [0, -1]}, "run2")
    assert shown(run({**FULL, "s1": [0, 0]}, "run1"), after) == [
        "example largest loss: s7 (1.000 to 0.000)",
        "task    How many words are in 'a b s7'?",
        "A       3",
        "B       4",
        "        tfgrpo show run2.e2.s7.r0",
    ]


def test_the_worst_rollout_of_the_lower_mean_stands_below_the_best_of_the_higher() -> None:
    lines = shown(run({**FULL, "s3": [0, 1]}, "run1"), run({**FULL, "s3": [0.4, -1]}, "run2"))
    assert lines[2:] == [
        "A       3",
        "B       no answer, timeout: no answer in 2 s",
        "        tfgrpo show run2.e2.s3.r1",
    ]


def test_without_any_loss_the_largest_gain_is_shown() -> None:
    lines = shown(run({**FULL, "s3": [0, 0], "s5": [0, 1]}, "run1"), run(FULL, "run2"))
    assert lines[0] == "example largest gain: s3 (0.000 to 1.000)"
    assert lines[2:4] == ["A       4", "B       3"]


def test_where_all_scores_are_equal_there_is_no_example() -> None:
    assert shown(run(FULL, "run1"), run(FULL, "run2")) == []
    assert shown(run(FULL, "run1"), run(evenly(12, [1], "t"), "run2")) == []


def test_of_several_runs_the_one_that_lost_most_stands_below_a() -> None:
    lines = shown(run(FULL, "run1"), run({**FULL, "s2": [0, 1]}, "run2"), run({**FULL, "s5": [0, 0]}, "run3"))
    assert lines[0] == "example largest loss: s5 (1.000 to 0.000)"
    assert [line[:8].strip() for line in lines] == ["example", "task", "A", "C", ""]
    assert lines[-1] == "        tfgrpo show run3.e2.s5.r0"


def test_long_answers_that_begin_alike_are_shown_where_they_differ() -> None:
    same = "The report was checked line by line and " * 8
    before = run(FULL, "run1", {"s1": f"{same}nothing is missing."})
    after = run({**FULL, "s1": [0, 0]}, "run2", {"s1": f"{same}two lines are missing."})
    assert shown(before, after)[2:4] == [
        "A       ...ed line by line and nothing is missing.",
        "B       ...ed line by line and two lines are missing.",
    ]


def test_an_answer_that_goes_on_where_the_other_ends_is_shown_from_there() -> None:
    same = "The report was checked line by line and " * 8
    before = run(FULL, "run1", {"s1": same.strip()})
    after = run({**FULL, "s1": [0, 0]}, "run2", {"s1": f"{same}nothing is missing."})
    assert shown(before, after)[2:4] == [
        "A       ...ked line by line and",
        "B       ...ked line by line and nothing is missing.",
    ]


@given(text=st.text(max_size=200) | st.just("\x1b[2J\u202e\ud800" + "x" * 300), same=st.booleans())
def test_no_foreign_text_breaks_out_of_80_columns(text: str, same: bool) -> None:
    id_ = f"{text}."
    before = run({"a": [1], id_: [1]}, "run1", {id_: text})
    after = run({"a": [1], id_: [0]}, "run2", {id_: text if same else f"{text} and more"})
    before, after = (
        replace(one, scenarios=tuple(replace(s, prompt=text) for s in one.scenarios))
        for one in (before, after)
    )
    *lines, command = shown(before, after)
    assert len(lines) == 4
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert command.isprintable()
