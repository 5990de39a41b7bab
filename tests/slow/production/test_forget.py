"""Forgetting: nothing of a session or user is on any disk after it, while the services go on."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.buses import BusPlace
from support.feedback.forget import DONE, GONE, KEPT, WORDS, settled
from support.loop_events import feedback, payloads, publish, totals, trajectory
from support.loop_spans import agent_trace

from pytest_tfgrpo.core.events import FEEDBACK, TRAJECTORY, derived_id
from pytest_tfgrpo.production.assembly.assembler import Assembler
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator
from pytest_tfgrpo.production.forget import forget
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.view import LoopView


@pytest.fixture
def scrubber() -> LoopScrubber:
    return LoopScrubber(b"k" * 32)


@pytest.fixture
def view(tmp_path: Path) -> Iterator[LoopView]:
    (tmp_path / "views").mkdir()
    with closing(LoopView(tmp_path / "views" / "view.db")) as opened:
        yield opened


def files_with(needle: str, *folders: Path) -> list[str]:
    return [
        path.name
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and needle.encode() in path.read_bytes()
    ]


class Services:
    """Door, assembler and evaluator of another process, which go on with their work."""

    def __init__(self, bus: Bus, scrubber: LoopScrubber, folder: Path) -> None:
        self._opt_outs = OptOuts(bus, scrubber)
        self.intake = Intake(bus, scrubber, self._opt_outs)
        self.view = LoopView(folder / "of-services.db")
        self.roles = [
            Assembler(bus, "services", idle_s=0.1, refuses=self._refuses),
            Evaluator(bus, self.view, "services", settle_s=0.0),
        ]
        self._numbers = itertools.count(1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.errors: list[Exception] = []

    def _refuses(self, session: str, user: str, at: float) -> bool:
        self._opt_outs.refresh()
        return bool(self._opt_outs.reason([session], [user] if user else [], at))

    def bring(self, session: str, text: str) -> None:
        number = next(self._numbers)
        spans = agent_trace(number)
        last = spans[-1]
        said = {"session.id": session, "user.id": "ann-7", "note": text}
        spans[0] = replace(spans[0], attributes={**spans[0].attributes, **said})
        self.intake.spans([*spans[:-1], replace(last, attributes={**last.attributes, "text": text})])
        value = {**json.loads(trajectory(f"direct {number}", session=session, text=text, **DONE).data)}
        self.intake.payloads(TRAJECTORY, [value])
        thumb = json.loads(feedback(f"of {number}", "thumbs_up", f"direct {number}", text=text).data)
        self.intake.payloads(FEEDBACK, [thumb, {**thumb, "type": text}])

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.bring(GONE, WORDS)
                self.bring(KEPT, "quite another thing")
                for role in self.roles:
                    role.step()
        except Exception as error:
            self.errors.append(error)

    def __enter__(self) -> "Services":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for role in self.roles:
            role.close()
        self.view.close()


def test_a_byte_search_finds_nothing_of_a_session_while_the_services_go_on(
    place: BusPlace, scrubber: LoopScrubber, view: LoopView, tmp_path: Path
):
    bus = place.open()
    folders = place.folder, tmp_path / "views"
    with Services(place.open(), scrubber, tmp_path / "views") as services:
        while bus.last("RL_REWARDS") < 20:
            assert not services.errors
        view.catch_up(bus)
        assert files_with(WORDS, place.folder)
        result = forget(bus, view, scrubber=scrubber, actor="ada", session=GONE)
        seen = bus.last("RL_TRAJECTORIES")
        while bus.last("RL_TRAJECTORIES") < seen + 5:
            assert not services.errors
    assert not services.errors
    assert {"RL_DEAD", "RL_FEEDBACK", "RL_REWARDS", "RL_SPANS", "RL_TRAJECTORIES"} <= set(result.removed)
    assert files_with(WORDS, *folders) == []
    assert files_with(GONE, *folders) == []
    assert files_with(KEPT, *folders) != []
    sessions = {one["session_id"] for one in payloads(bus, "RL_TRAJECTORIES") + payloads(bus)}
    assert KEPT in sessions
    assert GONE not in sessions
    records = [one for one in payloads(bus, "RL_AUDIT") if one["action"] == "forget"]
    assert all(len(one.pop("previous")) == 64 for one in records)
    assert records == [
        {
            "action": "forget", "actor": "ada", "what": "session", "ref": scrubber.session_ref(GONE),
            "removed": dict(result.removed),
        }
    ]  # fmt: skip


def test_what_a_users_sessions_have_without_a_user_goes_too_and_nobody_elses(
    bus: Bus, view: LoopView, scrubber: LoopScrubber
):
    ann, bob = scrubber.user_ref("ann"), scrubber.user_ref("bob")
    publish(
        bus,
        [
            trajectory("a", user=ann, session="one", **DONE),
            trajectory("b", session="one", **DONE),
            trajectory("c", user=ann, session="both", **DONE),
            trajectory("d", user=bob, session="both", **DONE),
            trajectory("e", session="both", **DONE),
            trajectory("f", user=bob, session="mine", text=f"{ann} said it", **DONE),
        ],
        [feedback(name, "thumbs_up", name) for name in "abcdef"],
    )
    settled(Evaluator(bus, view, "one", settle_s=0.0))
    forget(bus, view, scrubber=scrubber, actor="ada", user="ann")
    left = [json.loads(event.data)["session_id"] for event in bus.replay("RL_TRAJECTORIES")]
    assert left == ["both", "both"]
    assert bus.table("state").list("forgotten.user.") != {}
    assert queries.stored(view)["RL_TRAJECTORIES"] == 2
    assert queries.stored(view)["RL_FEEDBACK"] == 2
    assert len(totals(bus)) == 2


def test_a_short_name_of_a_session_takes_nothing_with_it_that_has_the_word(
    bus: Bus, view: LoopView, scrubber: LoopScrubber
):
    publish(bus, [trajectory("a", session="main"), trajectory("b", session="other", text="the main thing")])
    forget(bus, view, scrubber=scrubber, actor="ada", session="main")
    assert [one["session_id"] for one in payloads(bus, "RL_TRAJECTORIES")] == ["other"]


def test_rewards_after_it_are_those_of_a_history_without_what_was_forgotten(
    bus: Bus, view: LoopView, scrubber: LoopScrubber, tmp_path: Path
):
    publish(
        bus,
        [trajectory(f"t{n}", turns=1 + n % 3, session=GONE if n % 2 else KEPT, **DONE) for n in range(80)],
    )
    evaluator = Evaluator(bus, view, "one", settle_s=0.0)
    settled(evaluator)
    with closing(LoopView(tmp_path / "elsewhere.db")) as elsewhere:
        elsewhere.catch_up(bus)
        evaluator.close()
        assert derived_id("t0") in view.meta("history")
        forget(bus, view, scrubber=scrubber, actor="ada", session=GONE)
        assert view.meta("history") == ""
        publish(bus, [trajectory("next", turns=2, session=KEPT, **DONE)])
        settled(evaluator)
        elsewhere.catch_up(bus)
        assert list(queries.trajectories(elsewhere)) == list(queries.trajectories(view))
        assert queries.stored(elsewhere)["RL_REWARDS"] == 41
    last = payloads(bus)[-1]
    assert last["normalization"]["components"]["efficiency"]["n"] == 40
