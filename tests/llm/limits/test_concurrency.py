"""Concurrency that adapts, against simulated servers: no clock of this machine has a part in it."""

import random

import pytest
from support.simulated_server import fixed, simulate

from pytest_tfgrpo.llm.limits.concurrency import (
    HOLD_MOST_S,
    HOLD_S,
    MOST,
    PROBE_CALLS,
    START,
    WINDOW_LEAST,
    CallOutcome,
    Concurrency,
    SlotPlace,
    most_at_once,
)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20, 40, 63, 64, 65, 100, 130])
def test_it_settles_at_a_hidden_limit_and_is_hardly_refused(limit: int) -> None:
    best = max(simulate(fixed(n), lambda _: limit, calls=6000).rate for n in {max(1, limit - 1), limit})
    concurrency = Concurrency()
    found = simulate(concurrency, lambda _: limit, calls=6000)
    assert found.rate >= 0.9 * best
    assert found.refused <= 0.01
    assert concurrency.found
    assert limit - 2 <= concurrency.limit <= limit + 2


@pytest.mark.parametrize("limit", [4, 20, 64, 100])
def test_it_does_not_flood_a_server_that_queues(limit: int) -> None:
    concurrency = Concurrency()
    auto = simulate(concurrency, lambda _: limit, calls=6000, mode="queue")
    assert auto.rate >= 0.9 * simulate(fixed(limit), lambda _: limit, calls=6000, mode="queue").rate
    assert concurrency.limit <= max(8 * START, 3 * limit)


@pytest.mark.parametrize(
    ("before", "after"), [(60, 15), (15, 100), (100, 1), (2, 64)], ids=["down", "up", "to one", "from two"]
)
def test_it_follows_a_limit_that_moves(before: int, after: int) -> None:
    concurrency = Concurrency()
    calls = 20 * (before + after) * 10
    found = simulate(concurrency, lambda now: before if now < 10 else after, calls=calls)
    assert found.refused <= 0.01
    assert after - 3 <= concurrency.limit <= after + 3


def test_of_a_limit_that_jumps_every_ten_seconds_it_is_hardly_refused() -> None:
    found = simulate(Concurrency(), lambda now: (60, 20)[int(now / 10) % 2], calls=16_000, latency_s=0.2)
    assert found.refused <= 0.01


def test_it_grows_to_its_most_where_nothing_is_refused() -> None:
    concurrency = Concurrency()
    found = simulate(concurrency, lambda _: 10_000, calls=20_000)
    assert (concurrency.limit, concurrency.found, found.refused) == (MOST, False, 0.0)


def test_it_does_not_grow_where_nobody_wants_more() -> None:
    concurrency = Concurrency()
    for _ in range(1000):
        place = concurrency.begin()
        concurrency.end(place, "ok", latency_s=0.1)
    assert concurrency.limit == START


def test_latency_that_rises_at_one_level_takes_places_away_and_they_come_back() -> None:
    concurrency = Concurrency(most=START)

    def window(latency_s: float) -> int:
        for _ in range(8):
            places = [concurrency.begin() for _ in range(concurrency.limit)]
            for place in places:
                concurrency.end(place, "ok", latency_s=latency_s)
            if concurrency.limit != len(places):
                break
        return concurrency.limit

    assert [window(0.1), window(0.1)] == [START, START]
    assert window(0.5) == int(0.8 * START)
    for _ in range(60):
        window(0.5)
    assert concurrency.limit == START, "what is as slow with less is slow by itself"


def test_a_refusal_of_the_only_call_pauses_longer_each_time_and_an_answer_ends_it() -> None:
    concurrency = Concurrency(start=1)
    now, pauses = 0.0, []
    for _ in range(8):
        concurrency.end(concurrency.begin(), "refused", now=now)
        assert not concurrency.is_free(now)
        pauses.append(concurrency.held_until - now)
        now = concurrency.held_until
    assert pauses == [HOLD_S, 1.0, 2.0, 4.0, 8.0, 16.0, HOLD_MOST_S, HOLD_MOST_S]
    concurrency.end(concurrency.begin(), "ok", latency_s=1.0, now=now)
    concurrency.end(concurrency.begin(), "refused", now=now)
    assert concurrency.held_until == now + HOLD_S


def test_nothing_begins_before_the_server_wants_it() -> None:
    concurrency = Concurrency()
    concurrency.end(concurrency.begin(), "refused", wait_s=7.0, now=100.0)
    concurrency.end(concurrency.begin(), "refused", wait_s=2.0, now=101.0)
    assert not concurrency.is_free(106.9)
    assert concurrency.is_free(107.0)


def test_a_call_without_a_word_on_the_load_changes_nothing() -> None:
    concurrency = Concurrency()
    for _ in range(500):
        concurrency.end(concurrency.begin(), "lost")
    assert (concurrency.limit, concurrency.in_flight, concurrency.seen.calls) == (START, 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_it_stays_within_bounds_and_counts(seed: int) -> None:
    chance = random.Random(seed)
    most = chance.choice([1, 2, 16, 100])
    concurrency, inside, now = Concurrency(most=most), list[SlotPlace](), 0.0
    mood = 0.5
    for step in range(4000):
        if step % 200 == 0:
            mood = chance.random()
        if inside and (not concurrency.is_free(now) or chance.random() < 0.5):
            place = inside.pop(chance.randrange(len(inside)))
            outcome: CallOutcome = "refused" if chance.random() < mood else chance.choice(["ok", "lost"])
            wait_s = chance.choice([0.0, 0.0, 5.0])
            concurrency.end(place, outcome, latency_s=chance.expovariate(1), wait_s=wait_s, now=now)
        elif concurrency.is_free(now):
            inside.append(concurrency.begin())
        else:
            now = concurrency.held_until
        assert 1 <= concurrency.limit <= most
        assert concurrency.in_flight == len(inside)
        assert concurrency.seen.refused <= concurrency.seen.calls
        assert concurrency.held_until <= now + HOLD_MOST_S
        assert (
            not concurrency.found or concurrency.seen.lowest <= concurrency.limit <= concurrency.seen.highest
        )


def test_the_setting_is_a_number_or_the_word() -> None:
    assert (most_at_once(7), most_at_once("auto")) == (7, MOST)


@pytest.mark.parametrize(
    ("limit", "found", "step", "size"),
    [
        (1, False, 0, WINDOW_LEAST),
        (64, False, 0, 32),
        (64, False, 4, 32),
        (64, True, 0, 64),
        (4, True, 0, PROBE_CALLS),
        (4, True, 1, WINDOW_LEAST),
        (64, True, 4, 32),
        (10_000, True, 0, 10_000),
        (1, True, 1, WINDOW_LEAST),
    ],
)
def test_a_level_below_a_known_limit_holds_for_longer(limit: int, found: bool, step: int, size: int) -> None:
    concurrency = Concurrency(limit, 10_000)
    concurrency.found, concurrency._step = found, step
    assert concurrency._window_size() == size


@pytest.mark.parametrize(
    ("start", "in_flight", "held_until", "free"),
    [(2, 0, 0.0, True), (2, 1, 0.0, True), (2, 2, 0.0, False), (2, 0, 5.0, True), (2, 0, 5.1, False)],
)
def test_a_call_begins_where_there_is_a_place_and_no_pause(
    start: int, in_flight: int, held_until: float, free: bool
) -> None:
    concurrency = Concurrency(start, 10)
    for _ in range(in_flight):
        concurrency.begin()
    concurrency.held_until = held_until
    assert concurrency.is_free(5.0) is free


@pytest.mark.parametrize(
    ("outcome", "calls", "refused", "limit", "held"),
    [("lost", 0, 0, 4, 0.0), ("answered", 1, 0, 4, 0.0), ("refused", 1, 1, 3, 7.0)],
)
def test_what_a_call_came_to_is_counted_once(
    outcome: CallOutcome, calls: int, refused: int, limit: int, held: float
) -> None:
    concurrency = Concurrency(4, 10)
    place = concurrency.begin()
    concurrency.end(place, outcome, latency_s=1.0, wait_s=2.0, now=5.0)
    found = (concurrency.in_flight, concurrency.seen.calls, concurrency.seen.refused, concurrency.limit)
    assert found == (0, calls, refused, limit)
    assert concurrency.held_until == held
    assert concurrency.found is (outcome == "refused")
