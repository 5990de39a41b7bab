from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_frame, make_rollout, make_scenario

from pytest_tfgrpo.core.records import Failure, JudgeResult
from pytest_tfgrpo.report.rollout_summary import summarise


def test_a_summary_says_what_was_done_with_which_tools_and_what_came_out() -> None:
    frames = (
        make_frame("split_words"),
        make_frame("unique_items", error="no list"),
        make_frame("count_items"),
        make_frame("count_items"),
        make_frame("model-x", kind="model"),
    )
    text = summarise(make_rollout(frames=frames), make_scenario())
    assert text == (
        "How many words are in 'a b c': split_words, unique_items (failed), count_items x2; "
        "answered '3', 1 of 1 checks passed"
    ).replace("'a b c':", "'a b c'?:")


def test_a_failed_rollout_says_why_and_one_without_tools_says_so() -> None:
    failed = make_rollout(
        credit=0.0,
        status="failed",
        frames=(),
        answer="",
        failure=Failure(code="timeout", message="after 2 s"),
    )
    assert summarise(failed, make_scenario()).endswith("no tool; failed: timeout")
    silent = make_rollout(credit=0.0, frames=(), answer="")
    assert summarise(silent, make_scenario()).endswith("no tool; returned no answer, 0 of 1 checks passed")


def test_of_a_long_list_of_tools_the_end_is_cut_and_how_it_ended_stays() -> None:
    rollout = make_rollout(frames=tuple(make_frame(f"tool_{n}") for n in range(2000)))
    text = summarise(rollout, make_scenario())
    assert "tool_0, tool_1, " in text
    assert text.endswith("...; answered '3', 1 of 1 checks passed")
    assert len(text.split()) == 32


def test_a_secret_in_the_answer_does_not_reach_the_summary() -> None:
    text = summarise(make_rollout(answer="password: open-sesame"), make_scenario())
    assert "open-sesame" not in text


@given(
    st.text(max_size=300),
    st.text(max_size=300),
    st.lists(st.text(max_size=20), max_size=50),
    st.integers(1, 32),
)
def test_a_summary_is_one_printable_line_within_the_cap(
    prompt: str, answer: str, tools: list[str], max_words: int
) -> None:
    rollout = make_rollout(answer=answer, frames=tuple(make_frame(name) for name in tools))
    text = summarise(rollout, make_scenario(prompt=prompt), max_words)
    assert 1 <= len(text.split()) <= max_words
    assert text.isprintable()


def test_a_verdict_of_a_judge_is_part_of_the_outcome() -> None:
    judged = make_rollout(opinion=JudgeResult(score=0.5, votes=(0.5,)))
    assert summarise(judged, make_scenario()).endswith("1 of 1 checks passed, judge 0.50")
    unchecked = replace(judged, checks=())
    assert summarise(unchecked, make_scenario()).endswith("answered '3', judge 0.50")
    none = replace(judged, checks=(), opinion=JudgeResult(score=None))
    assert summarise(none, make_scenario()).endswith("answered '3'")
