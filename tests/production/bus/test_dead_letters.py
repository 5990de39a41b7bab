"""Dead letters as events and back."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.buses import event

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event, dead_letter_of, died
from pytest_tfgrpo.production.bus.protocol import MAX_EVENT_BYTES, check_events

TIME = "2026-03-04T05:06:07Z"
SUBJECTS = {"agent.rl.dead.v1": None}


@settings(max_examples=30)
@given(st.text(max_size=30), st.text(), st.text(), st.text(max_size=250), st.text(max_size=250), st.binary())
def test_what_a_dead_letter_says_comes_back(
    code: str, message: str, pointer: str, name: str, subject: str, data: bytes
) -> None:
    letter = DeadLetter(code=code, message=message, pointer=pointer, id=name, subject=subject, data=data)
    made = dead_event(letter, TIME)
    check_events([made], SUBJECTS)
    back = dead_letter_of(made)
    assert (back.code, back.message, back.pointer) == (code, message, pointer)
    assert (back.id, back.subject) == (name[:200], subject[:200])
    assert (back.data, back.size) == (data, len(data))


def test_a_dead_letter_is_never_too_large() -> None:
    long = "\x00" * 100_000
    letter = DeadLetter(code="too_large", message=long, pointer=long, id=long, data=b"x" * 3_000_000)
    made = dead_event(letter, TIME)
    check_events([made], SUBJECTS)
    back = dead_letter_of(made)
    assert back.size == 3_000_000 > MAX_EVENT_BYTES
    assert (len(back.message), len(back.pointer), len(back.id)) == (2000, 2000, 200)
    assert dead_letter_of(dead_event(replace(letter, data=b"x", size=7), TIME)).size == 7


def test_a_dead_letter_says_how_often_its_event_was_tried() -> None:
    tried = replace(event(1), sequence=5, attempts=3)
    for number, told in ((None, 3), (0, 0), (6, 6)):
        assert dead_letter_of(died(tried, "A", "one", "x", "no", number)).attempts == told


def test_equal_letters_are_one_event_and_others_are_not() -> None:
    letter = DeadLetter(code="schema", message="no", data=b"{}")
    assert dead_event(letter, TIME).id == dead_event(letter, "2026-01-02T00:00:00Z").id
    assert dead_event(letter, TIME).id != dead_event(replace(letter, data=b"[]"), TIME).id
    stored = replace(event(1), sequence=5)
    assert died(stored, "A", "one", "x", "1").id == died(stored, "A", "one", "y", "2").id
    others = [
        died(stored, "A", "two", "x", "1"),
        died(stored, "B", "one", "x", "1"),
        died(replace(stored, sequence=6), "A", "one", "x", "1"),
        died(replace(stored, id=event(2).id), "A", "one", "x", "1"),
    ]
    assert len({died(stored, "A", "one", "x", "1").id, *(one.id for one in others)}) == 5


def test_a_dead_letter_says_which_event_it_was_and_where() -> None:
    stored = replace(event(1, b"poison"), sequence=5, attempts=2, time=TIME)
    made = died(stored, "A", "one", "schema", "no task")
    assert made.time == TIME
    assert dead_letter_of(made) == DeadLetter(
        code="schema",
        message="no task",
        stream="A",
        consumer="one",
        attempts=2,
        id=stored.id,
        subject=stored.subject,
        time=TIME,
        size=6,
        data=b"poison",
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"{}\n", b"[1]\n", b"\xff\n", b"[" * 100_000 + b"\n", b'{"code": "a", "x": 1}\n', b"null\n"],
)
def test_an_event_that_is_no_dead_letter_is_an_error(data: bytes) -> None:
    with pytest.raises(BusError, match="is no dead letter"):
        dead_letter_of(replace(event(1), data=data))


def test_an_event_that_is_no_dead_letter_is_named() -> None:
    made = dead_event(DeadLetter(code="schema", message="m", data=b"x"), TIME)
    head = made.data.partition(b"\n")[0]
    for data in (b"", b"no json\nx", head):
        with pytest.raises(BusError, match=f"event '{made.id}' of RL_DEAD is no dead letter: "):
            dead_letter_of(replace(made, data=data))
