"""The evaluator: what the streams amount to, whoever computes it and however often."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from support import ROOT
from support.buses import BusPlace, Clock, EmbeddedPlace
from support.loop_events import LATER, feedback, judged, payloads, publish, totals, trajectory

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.events import (
    MODEL_DEPLOYED,
    REWARD,
    SCHEMAS,
    TRAINING_REQUEST,
    TRAINING_STATUS,
    RlEvent,
    check_event,
    derived_id,
    wrap,
)
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.evaluation import inputs, kept_history
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator, RewardParts, evaluator_lag
from pytest_tfgrpo.production.evaluation.inputs import EvaluatorState, decode_state
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, TablePut

DONE = {"task_status": "completed_successfully"}
FAILED = {"task_status": "failed"}
HOUR = 3600.0

Start = Callable[..., Evaluator]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that makes an evaluator with a view file of its own, or a shared one."""
    with ExitStack() as open_files:

        def begin(bus: Bus, name: str = "one", file: str = "view.db", **options: object) -> Evaluator:
            view = open_files.enter_context(closing(LoopView(tmp_path / file)))
            return Evaluator(bus, view, name, **{"settle_s": 0.0, **options})  # type: ignore[arg-type]

        yield begin


def run(evaluator: Evaluator) -> None:
    for _ in range(1000):
        if not evaluator.step():
            return
    raise AssertionError("it goes on for ever")


def a_day() -> list[list]:
    """Return what happens, as it is published: with feedback that is early, late, repeated, wrong."""
    known = [trajectory(f"t{n}", turns=1 + n % 4, **(DONE if n % 3 else FAILED)) for n in range(50)]
    silent = [trajectory(f"s{n}", domain="general") for n in range(5)]
    return [
        [feedback("early", "thumbs_down", "t3"), judged("early", "t4", style=0.25)],
        known[:20],
        [*silent, feedback("f1", "thumbs_up", "t1"), feedback("f2", "rating", "s2", rating=5)],
        [feedback("f3", "thumbs_down", "t1", at="2025-12-08T14:00:00.000Z"), *known[20:]],
        [
            judged("j", "t1", task_completion=0.5),
            feedback("f4", "correction", "t1"),
            judged("k", "s1", style=1),
        ],
        [trajectory("blocked", safety_blocked=True), feedback("f5", "thumbs_up", "nobody")],
    ]


def test_every_kind_of_event_gives_the_reward_that_it_gives_by_hand(bus: Bus, start: Start):
    publish(bus, *a_day())
    evaluator = start(bus)
    run(evaluator)
    found = totals(bus)
    # 3 turns after 1 and 2: z = (1.5 - 3) / .5, capped at -2, so that efficiency is 0; nobody said anything
    assert found[derived_id("t2")] == (1, round((0.4 * 1 + 0.2 * 0 + 0.25 * 0.5) / 0.85, 6))
    assert derived_id("s0") not in found, "nothing is known of it"
    assert found[derived_id("s2")][0] == found[derived_id("s1")][0] == 1
    assert found[derived_id("t3")][0] == 1, "what came before the trajectory is in its first reward"
    assert found[derived_id("t1")][0] == 4, "a thumb, another one, a judge; the correction is implicit"
    assert found[derived_id("blocked")] == (1, 0.0)
    assert len(found) == 50 + 2 + 1
    own = [one for one in payloads(bus) if one["metadata"]["evaluator"] == "tfgrpo"]
    for payload in own:
        assert isinstance(check_event(wrap(REWARD, payload)), RlEvent)
    assert [one["metadata"]["ordinal"] for one in own] == list(range(1, len(own) + 1))
    last = [one for one in own if one["trajectory_id"] == derived_id("t1")][-1]
    parts = last["reward_components"]
    assert (parts["task_completion"]["score"], parts["user_feedback"]["score"]) == (0.5, 0.0)
    assert last["timestamp"] == "2025-12-08T13:00:00.000Z"


@pytest.fixture
def expected(tmp_path: Path, start: Start) -> Iterator[Callable[[list[list]], list[Json]]]:
    """Return a function that returns the rewards of an evaluation without any disturbance."""
    folder = tmp_path / "calm"
    folder.mkdir()
    place = EmbeddedPlace(folder)

    def rewards(day: list[list]) -> list[Json]:
        bus = place.open()
        publish(bus, *day)
        run(start(bus, file="calm.db"))
        return payloads(bus)

    yield rewards
    place.close()


def test_rewards_are_equal_when_they_are_computed_bit_by_bit(bus: Bus, start: Start, expected):
    evaluator = start(bus)
    for group in a_day():
        publish(bus, group)
        run(evaluator)
    own = [one for one in payloads(bus) if one["metadata"]["evaluator"] == "tfgrpo"]
    calm = [one for one in expected(a_day()) if one["metadata"]["evaluator"] == "tfgrpo"]
    assert own == calm


def test_rewards_are_equal_after_the_view_was_deleted_and_another_process_goes_on(
    place: BusPlace, start: Start, expected
):
    bus = place.open()
    for number, group in enumerate(a_day()):
        publish(bus, group)
        evaluator = start(place.open(), f"owner-{number}", f"view-{number // 2}.db")
        run(evaluator)
        evaluator.close()  # its history stays in the view
    assert totals(bus) == {
        one["trajectory_id"]: (one["metadata"]["revision"], round(one["total_reward"], 6))
        for one in expected(a_day())
        if one["metadata"]["evaluator"] == "tfgrpo"
    }


def test_rewards_that_the_stream_has_let_go_of_still_count_in_the_history(bus: Bus, start: Start, expected):
    publish(bus, *a_day())
    first = start(bus, "first")
    run(first)
    first.close()
    assert bus.delete("RL_REWARDS", [event.id for event in bus.replay("RL_REWARDS")])
    new = [trajectory("new", turns=2, **DONE)]
    publish(bus, new)
    run(start(bus, "second", "another-view.db"))
    (calm,) = (one for one in expected([*a_day(), new]) if one["trajectory_id"] == derived_id("new"))
    (found,) = (one for one in payloads(bus) if one["trajectory_id"] == derived_id("new"))
    assert found == calm
    assert found["normalization"]["components"]["task_completion"]["n"] == 50


def test_of_two_evaluators_one_waits_until_the_other_is_gone(place: BusPlace, start: Start):
    clock = Clock()
    bus = place.open()
    first = start(bus, "first", clock=clock)
    second = start(place.open(), "second", clock=clock)
    publish(bus, [trajectory("a", **DONE)])
    assert first.step() == 1
    publish(bus, [trajectory("b", **DONE)])
    assert second.step() == 0
    clock.now += 16.0
    assert second.step() == 1
    publish(bus, [trajectory("c", **DONE)])
    assert first.step() == 0, "it has lost the lease"
    assert second.step() == 1
    assert len(totals(bus)) == 3


class TickingClock(Clock):
    """A clock that goes on a little whenever somebody looks."""

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


class Failing:
    """A bus that is not atomic, and fails between events and rows, or before both."""

    def __init__(self, bus: Bus, fail: str) -> None:
        self._bus, self.fail = bus, fail
        self.atomic = False

    def __getattr__(self, name: str):
        return getattr(self._bus, name)

    def publish(self, events: list, puts: list[TablePut] = []) -> list[int]:  # noqa: B006
        if puts and events and self.fail:
            kind, self.fail = self.fail, ""
            if kind == "rows":
                self._bus.publish(events)
            elif kind == "some":
                self._bus.publish(events[::2][::-1])
            raise BusError("the server is gone")
        return self._bus.publish(events, puts)


@pytest.mark.parametrize("fail", ["all", "some", "rows"])
def test_rewards_that_are_ahead_of_the_state_are_not_published_again(
    fail: str, embedded: EmbeddedPlace, start: Start, expected
):
    clock = embedded.clock = TickingClock()
    bus, day = embedded.open(), a_day()
    publish(bus, *day)
    evaluator = start(Failing(bus, fail))
    with pytest.raises(BusError, match="gone"):
        run(evaluator)
    clock.now += 2 * HOUR  # beyond what the bus remembers
    run(evaluator)
    found = [one for one in payloads(bus) if one["metadata"]["evaluator"] == "tfgrpo"]
    calm = [one for one in expected(day) if one["metadata"]["evaluator"] == "tfgrpo"]
    assert sorted(found, key=lambda one: one["metadata"]["ordinal"]) == calm


def test_what_comes_twice_counts_once_also_beyond_the_hour_in_which_the_bus_knows_it(
    embedded: EmbeddedPlace, start: Start
):
    clock = embedded.clock = Clock()
    bus = embedded.open()
    evaluator = start(bus, wall=clock)
    for _ in range(3):
        publish(bus, [trajectory("a", **DONE), feedback("f", "thumbs_up", "a"), judged("j", "a", style=1)])
        run(evaluator)
        clock.now += 2 * HOUR
    assert bus.last("RL_TRAJECTORIES") == 3
    assert [revision for revision, _ in totals(bus).values()] == [3]


@pytest.mark.parametrize("read_between", [True, False])
def test_the_next_revision_of_a_trajectory_takes_its_place(bus: Bus, start: Start, read_between: bool):
    evaluator = start(bus)
    publish(bus, [trajectory("a", **FAILED)])
    if read_between:
        run(evaluator)
    publish(bus, [replace(trajectory("a", metadata={"revision": 2}, **DONE), id=derived_id("a", "2"))])
    run(evaluator)
    publish(bus, [replace(trajectory("a", **FAILED), id=derived_id("a", "old")), trajectory("b", **DONE)])
    run(evaluator)
    found = totals(bus)
    assert found[derived_id("a")] == (2 if read_between else 1, found[derived_id("b")][1])


def test_feedback_waits_a_day_for_its_trajectory_and_is_dead_then(embedded: EmbeddedPlace, start: Start):
    clock = embedded.clock = Clock()
    bus = embedded.open()
    evaluator = start(bus, wall=clock)
    publish(bus, [feedback("in time", "thumbs_up", "a"), feedback("too early", "thumbs_up", "b")])
    run(evaluator)
    clock.now += 23 * HOUR
    publish(bus, [trajectory("a")])
    run(evaluator)
    assert len(totals(bus)) == 1
    clock.now += 2 * HOUR
    run(evaluator)
    publish(bus, [trajectory("b")])
    run(evaluator)
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    assert [letter.code for letter in letters] == ["no_trajectory"]
    assert letters[0].message == "its trajectory did not come within 24 hours"
    assert derived_id("fb", "too early").encode() in letters[0].data
    assert list(totals(bus)) == [derived_id("a")], "what is dead does not count"
    clock.now += 30 * HOUR
    run(start(bus, "after the file was deleted", "new.db", wall=clock, clock=clock))
    assert bus.last("RL_DEAD") == 1


def test_what_anybody_says_of_an_unknown_trajectory_waits_as_long_as_it_was_set(
    embedded: EmbeddedPlace, start: Start
):
    clock = embedded.clock = Clock()
    bus = embedded.open()
    evaluator = start(bus, wall=clock, wait_h=2.0)
    publish(bus, [feedback("f", "thumbs_up", "a"), judged("j", "b", style=1)])
    run(evaluator)
    assert bus.last("RL_DEAD") == 0
    clock.now += 3 * HOUR
    run(evaluator)
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    message = "its trajectory did not come within 2 hours"
    assert [(one.stream, one.message) for one in letters] == [
        ("RL_FEEDBACK", message), ("RL_REWARDS", message),
    ]  # fmt: skip
    publish(bus, [trajectory("b")])
    run(evaluator)
    assert totals(bus) == {}


def test_another_evaluator_waits_as_long_as_it_was_told(place: BusPlace, start: Start):
    clock = Clock()
    bus = place.open()
    publish(bus, [trajectory("a", **DONE)])
    assert start(bus, "first", clock=clock).step() == 1
    second = start(place.open(), "second", clock=clock, ttl_s=60.0)
    publish(bus, [trajectory("b", **DONE)])
    steps = []
    for later_s in (0.0, 59.0, 1.0):
        clock.now += later_s
        steps.append(second.step())
    assert steps == [0, 0, 1]


def test_of_too_much_feedback_the_newest_counts(bus: Bus, start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inputs, "MOST_CLAIMS", 2)
    publish(
        bus,
        [trajectory("a", **DONE), feedback("f", "thumbs_up", "a", at="2025-12-08T14:00:00.000Z")],
        [feedback("g", "rating", "a", rating=2), feedback("h", "rating", "a", rating=2)],
    )
    run(start(bus))
    assert payloads(bus)[-1]["reward_components"]["user_feedback"]["score"] == 0.4


def test_what_a_later_release_keeps_of_itself_is_passed_over():
    assert decode_state({"ordinal": 3, "rewards_waited": 2, "of_later": 7}) == EvaluatorState(
        ordinal=3, rewards_waited=2
    )
    assert decode_state(None) == EvaluatorState()


def test_a_clock_that_is_set_back_loses_nothing_and_stops_nothing(embedded: EmbeddedPlace, start: Start):
    clock = embedded.clock = Clock()
    bus = embedded.open()
    evaluator = start(bus, wall=clock)
    publish(bus, [trajectory("a", **DONE)])
    run(evaluator)
    clock.now -= 50 * HOUR
    publish(
        bus, [trajectory("b", **DONE)], [feedback("f", "thumbs_up", "a"), feedback("g", "thumbs_up", "b")]
    )
    run(evaluator)
    full = round((0.4 + 0.1 + 0.25) / 0.85, 6)
    assert totals(bus) == {derived_id("a"): (2, full), derived_id("b"): (1, full)}, "it came before b"
    assert bus.last("RL_DEAD") == 0


def test_events_wait_for_what_arrived_before_them_elsewhere(embedded: EmbeddedPlace, start: Start):
    clock = Clock()
    bus = embedded.open()
    publish(bus, [trajectory("a", **DONE)])
    evaluator = start(bus, settle_s=1.0, clock=clock)
    assert evaluator.step() == 0
    clock.now += 1.0
    assert evaluator.step() == 1


def test_a_clock_that_is_ahead_does_not_beat_what_is_said_later(bus: Bus, start: Start):
    publish(
        bus,
        [trajectory("a", task_status="failed")],
        [feedback("ahead", "thumbs_up", "a", at="2999-01-01T00:00:00Z")],
    )
    evaluator = start(bus)
    run(evaluator)
    publish(bus, [feedback("later", "thumbs_down", "a", at="2998-01-01T00:00:00Z")])
    run(evaluator)
    last = payloads(bus)[-1]
    assert last["metadata"]["revision"] == 3
    assert last["reward_components"]["user_feedback"]["score"] == 0
    assert last["timestamp"] < "2998"


def test_what_others_publish_and_is_no_event_is_dead(bus: Bus, start: Start):
    lie = judged("j", "a", style=1.0)
    publish(
        bus,
        [
            trajectory("a", **DONE),
            replace(lie, data=lie.data.replace(b'"total_reward": 1.0', b'"total_reward": 0.5')),
        ],
        [replace(feedback("f", "thumbs_up", "a"), data=b'{"a": [1')],
    )
    evaluator = start(bus)
    run(evaluator)
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    assert [(letter.code, letter.pointer) for letter in letters] == [
        ("total_mismatch", "/data/total_reward"), ("schema", ""),
    ]  # fmt: skip
    assert [(letter.id, letter.time) for letter in letters] == [
        (lie.id, LATER), (feedback("f", "thumbs_up", "a").id, LATER),
    ]  # fmt: skip
    assert all(" " in letter.message for letter in letters), "they say what is wrong"
    assert [revision for revision, _ in totals(bus).values()] == [1]


def published(subject: str, number: int, **changes: Json) -> BusEvent:
    """Return the schema's example of a subject, changed."""
    data = load_schema(SCHEMAS[subject])["examples"][0] | changes
    return BusEvent(
        id=derived_id(subject, str(number)),
        subject=subject,
        time="2025-12-08T13:00:00.000Z",
        data=json.dumps(data).encode(),
    )


def test_events_of_training_and_deployment_that_others_publish_are_checked(bus: Bus, start: Start):
    case = json.loads((ROOT / "tests/golden/agent-rl/appendix-training-request.json").read_text())["event"]
    bad = [
        published(TRAINING_REQUEST, 2, **case["data"]),
        published(TRAINING_STATUS, 2, status="somehow"),
        published(MODEL_DEPLOYED, 2, model_info=None),
    ]
    good = [published(subject, 1) for subject in (TRAINING_REQUEST, TRAINING_STATUS, MODEL_DEPLOYED)]
    publish(bus, [*good, *bad])
    evaluator = start(bus)
    run(evaluator)
    evaluator.close()
    run(start(bus, "two", "other.db"))
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    assert sorted((letter.subject, letter.code, letter.pointer) for letter in letters) == [
        (MODEL_DEPLOYED, "schema", "/data/model_info"),
        (TRAINING_REQUEST, "schema", "/data/training_job_id"),
        (TRAINING_STATUS, "schema", "/data/status"),
    ]
    (letter,) = (one for one in letters if one.subject == TRAINING_REQUEST)
    assert (letter.stream, json.loads(letter.data)) == ("RL_TRAINING", json.loads(bad[0].data))


def test_components_of_a_project_are_asked_once_for_each_trajectory(bus: Bus, start: Start):
    asked = []

    def polite(payload: Json) -> tuple[float, str]:
        asked.append(payload["trajectory_id"])
        return float("please" in payload["turns"][0]["action"]["raw_response"]), "said please"

    publish(
        bus, [trajectory("a", text="please", **DONE), trajectory("b", **DONE), trajectory("c", text="please")]
    )
    parts = RewardParts(further={"polite": polite}, weights={"polite": 1.0, "task_completion": 1.0})
    run(start(bus, parts=parts))
    publish(bus, [feedback("f", "label", "a", text="failed"), feedback("g", "label", "c", text="failed")])
    run(start(bus, parts=parts))
    assert sorted(asked) == sorted(derived_id(name) for name in "abc")
    assert totals(bus) == {derived_id("a"): (2, 0.5), derived_id("b"): (1, 0.5), derived_id("c"): (1, 0.5)}


def test_a_component_that_is_added_later_is_asked_for_what_is_known(bus: Bus, start: Start):
    publish(bus, [trajectory("a", **DONE)])
    weights = {"task_completion": 1.0, "polite": 1.0, "brief": 1.0}
    run(start(bus, parts=RewardParts(further={"polite": lambda _: 0.5}, weights=weights)))
    publish(bus, [feedback("f", "label", "a", text="failed")])
    both = {"polite": lambda _: 0.5, "brief": lambda _: 0.25}
    run(start(bus, parts=RewardParts(further=both, weights=weights)))
    assert payloads(bus)[-1]["reward_components"]["brief"]["score"] == 0.25


def test_a_component_is_asked_once_for_a_trajectory_whose_id_has_capitals(bus: Bus, start: Start):
    asked = []

    def polite(payload: Json) -> float:
        asked.append(payload["trajectory_id"])
        return 0.5

    event = trajectory("a", **DONE)
    payload = json.loads(event.data) | {"trajectory_id": derived_id("a").upper()}
    publish(bus, [replace(event, data=json.dumps(payload).encode())])
    run(
        start(
            bus,
            parts=RewardParts(further={"polite": polite}, weights={"polite": 1.0, "task_completion": 1.0}),
        )
    )
    assert asked == [derived_id("a").upper()]
    assert totals(bus) == {derived_id("a"): (1, 0.75)}


def test_a_component_that_fails_is_named_in_the_reward(bus: Bus, start: Start):
    publish(bus, [trajectory("a", **DONE)])
    run(start(bus, parts=RewardParts(further={"broken": lambda data: data["nothing"]})))
    assert list(payloads(bus)[-1]["metadata"]["problems"]) == ["broken"]


def test_a_crowd_of_components_does_not_make_an_event_that_nobody_takes(bus: Bus, start: Start):
    crowd = [judged(str(n), "a", **{f"c{n}_{m}": 0.5 for m in range(50)}) for n in range(3)]
    publish(bus, [trajectory("a", **DONE)], crowd)
    run(start(bus))
    for payload in payloads(bus):
        assert isinstance(check_event(wrap(REWARD, payload)), RlEvent)
    parts = payloads(bus)[-1]["reward_components"]
    assert len(parts) <= 64
    assert "task_completion" in parts, "what has a weight here stays"


def test_lag_says_how_much_is_not_taken_into_account(bus: Bus, start: Start, tmp_path: Path):
    evaluator = start(bus)
    publish(bus, [trajectory("a", **DONE), feedback("f", "thumbs_up", "a")])
    with closing(LoopView(tmp_path / "view.db")) as view:
        view.catch_up(bus)
        assert evaluator_lag(bus, view) == 2
        run(evaluator)
        assert evaluator_lag(bus, view) == 0
    assert bus.table(STATE).get("lease.evaluator")[0] is not None


def test_the_history_is_kept_at_once_after_a_start_then_once_a_day_and_once_more_at_the_end(
    bus: Bus, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    saved: list[int] = []
    monkeypatch.setattr(kept_history, "save_history", lambda *args: saved.append(args[3]))
    clock = Clock()
    evaluator = start(bus, clock=clock)
    for name, later_s, expected in (
        ("a", 0, [1]),
        ("b", 86_399, [1]),
        ("c", 86_400, [1, 3]),
        ("d", 0, [1, 3]),
    ):
        clock.now = 1_800_000_000.0 + later_s
        publish(bus, [trajectory(name, session=name, **DONE)])
        run(evaluator)
        assert saved == expected
    with closing(LoopView(tmp_path / "view.db")) as view:
        view.forget("session", "a", [], {})  # what was concluded is void: it begins again
    publish(bus, [trajectory("e", **DONE)])
    run(evaluator)
    assert saved == [1, 3, 5]
    evaluator.close()
    assert saved == [1, 3, 5]
    publish(bus, [trajectory("f", **DONE)])
    monkeypatch.setattr(kept_history, "_SAVE_AFTER", 2)
    run(evaluator)
    publish(bus, [trajectory("g", **DONE)])
    run(evaluator)
    assert saved == [1, 3, 5, 6]
    publish(bus, [trajectory("h", **DONE)])
    run(evaluator)
    assert saved == [1, 3, 5, 6, 8]
    publish(bus, [trajectory("i", **DONE)])
    run(evaluator)
    evaluator.close()
    assert saved == [1, 3, 5, 6, 8, 9]


def test_rewards_of_what_is_forgotten_meanwhile_are_taken_back_and_no_others(
    embedded: EmbeddedPlace, start: Start, tmp_path: Path
):
    bus = embedded.open()
    forgotten = [trajectory(name, session="one", **DONE) for name in ("a", "d")]
    publish(bus, [*forgotten, trajectory("b", session="two", **DONE)])
    evaluator = start(bus)
    run(evaluator)
    bus.delete("RL_TRAJECTORIES", [one.id for one in forgotten])
    with closing(LoopView(tmp_path / "view.db")) as view, view.transaction() as db:
        db.execute("DELETE FROM trajectories WHERE session = 'one'")  # the rewards came after it had looked
        view.set_meta("generation", str(view.generation + 1))
    publish(bus, [trajectory("c", **DONE)])
    run(evaluator)
    assert {one["trajectory_id"] for one in payloads(bus)} == {derived_id("b"), derived_id("c")}
    with closing(LoopView(tmp_path / "view.db")) as view:
        kept = view.rows("SELECT trajectory_id FROM rewards ORDER BY ordinal")
    assert kept == [(derived_id("b"),), (derived_id("c"),)]
