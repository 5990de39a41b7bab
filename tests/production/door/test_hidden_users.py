"""The users of a trace are taken out of its texts, however many they are."""

import pytest

from pytest_tfgrpo.production.door.hidden_users import UserHider
from pytest_tfgrpo.production.door.scrubber import LoopScrubber

USERS = (
    "ann-4711",
    "@bob99",
    "carl 007",
    "d.e+f@example.org",
    "ann-4711-x",
    "éloi-77",
    "|auth0|88",
    "gus#1234!",
)


@pytest.mark.parametrize("others", [0, 1000])
def test_ids_are_found_as_whole_words_among_few_users_and_among_many(others: int):
    scrubber = LoopScrubber(b"k" * 32)
    hider = UserHider(scrubber, {*USERS, *(f"other-{n}" for n in range(others))})
    for user in USERS:
        ref = scrubber.user_ref(user)
        assert hider.without(f"({user}) {user}, {user}") == f"({ref}) {ref}, {ref}"
        assert hider.document(f'["{user}",{{"{user}":1}}]') == f'["{ref}",{{"{ref}":1}}]'
        assert hider.without(f"x{user[1:]}y") == f"x{user[1:]}y"
    assert hider.without("ann-47111 xann-4711 -ann-4711") == "ann-47111 xann-4711 -ann-4711"


@pytest.mark.parametrize("others", [0, 1000])
def test_an_id_that_begins_with_another_is_taken_out_whole(others: int):
    scrubber = LoopScrubber(b"k" * 32)
    users = {"annie77", "annie77 miller-3", *(f"other-{n}" for n in range(others))}
    shown = UserHider(scrubber, users).without("annie77 miller-3 met annie77")
    assert shown == f"{scrubber.user_ref('annie77 miller-3')} met {scrubber.user_ref('annie77')}"


def test_a_trace_with_a_new_user_in_each_span_takes_no_time_for_each_pair():
    class Looked(str):
        looks = 0

        def __contains__(self, user: object) -> bool:
            Looked.looks += 1
            return super().__contains__(user)

    hider = UserHider(LoopScrubber(b"k" * 32), {f"user-{n:06d}" for n in range(5000)})
    assert "u-" in hider.without(Looked("user-000017 and user-999999"))
    assert Looked.looks == 1


def test_of_ids_that_begin_alike_the_longest_goes_first():
    scrubber = LoopScrubber(b"k" * 32)
    short, long = "ann-7@mail", "ann-7@mail.example"
    for others in (0, 20):
        hider = UserHider(scrubber, [short, long, *(f"other-{n}" for n in range(others))])
        assert hider.without(f"{long} {short}") == f"{scrubber.user_ref(long)} {scrubber.user_ref(short)}"
