"""Turns of a rollout, as its frames have them."""

from support.builders import make_frame, make_rollout, make_scenario

from pytest_tfgrpo.core.conversations import SAID_MAX, SHOWN_MAX, turns_of, without_repeats
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.export.messages import completion_of
from pytest_tfgrpo.learning.optimizer.llm.transcript import transcript
from pytest_tfgrpo.scoring.judge.prompt import shown


def said(text: str, answer: str | None = None) -> Frame:
    return make_frame("script", kind="user", output=text, input=answer, tokens=0, cost_usd=None)


LOOK = make_frame("look")
MODEL = make_frame("gpt", kind="model", output="For when?")
TALK = (said("A table."), LOOK, MODEL, said("Friday.", "For when?"), said("Hello?", "..."), MODEL)


def test_a_rollout_of_one_question_has_no_turns() -> None:
    assert turns_of((), "3") == ()
    assert turns_of((LOOK,), "3") == ()


def test_turns_have_their_answers_and_calls() -> None:
    turns = turns_of(TALK, "Done.")
    assert [(turn.number, turn.user, turn.answer) for turn in turns] == [
        (1, "A table.", "For when?"),
        (2, "Friday.", "..."),
        (3, "Hello?", "Done."),
    ]
    assert [turn.frames for turn in turns] == [(LOOK, MODEL), (), (MODEL,)]


def test_a_reader_sees_an_answer_once() -> None:
    assert [frame.input for frame in without_repeats(TALK) if frame.kind == "user"] == [None, None, "..."]


def test_a_call_that_takes_what_the_step_before_gave_keeps_its_input() -> None:
    first, second = make_frame("look", output="3"), make_frame("count", input="3")
    assert list(without_repeats([first, second])) == [first, second]


def test_an_export_has_the_messages_in_order_after_those_of_the_prompt() -> None:
    made = completion_of(make_rollout(answer="Done.", frames=TALK))
    rows = [(row["role"], row["content"]) for row in made.messages if isinstance(row, dict)]
    assert rows == [
        ("assistant", ""),
        ("tool", "3"),
        ("assistant", "For when?"),
        ("user", "Friday."),
        ("assistant", "..."),
        ("user", "Hello?"),
        ("assistant", "Done."),
    ]


def test_a_judge_reads_who_said_what() -> None:
    rollout = make_rollout(answer="Done.", frames=TALK)
    steps = shown(make_scenario(), rollout)["steps"].splitlines()
    assert steps == [
        "user: A table.",
        '1. look() -> "3"',
        "agent: For when?",
        "user: Friday.",
        "agent: ...",
        "user: Hello?",
        "(what the agent said last is the answer)",
    ]


def test_a_teacher_reads_who_said_what() -> None:
    text = transcript(make_rollout(answer="Done.", frames=TALK), make_scenario())
    assert "4. user says: Friday.\nanswer: ...\n5. user says: Hello?\n6. model gpt -> For when?" in text


def test_what_is_no_text_is_no_answer_and_only_a_repeated_one_is_left_out() -> None:
    frames = (
        said("A"),
        make_frame("user", kind="user", output="B", input={"n": 1}),
        LOOK,
        said("C", "other"),
    )
    assert [turn.answer for turn in turns_of(frames, "D")] == ["", "other", "D"]
    assert [frame.input for frame in without_repeats(frames)] == [None, {"n": 1}, LOOK.input, "other"]
    assert (SHOWN_MAX, SAID_MAX) == (24_000, 20_000)
