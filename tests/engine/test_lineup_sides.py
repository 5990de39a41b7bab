"""A lineup of several sides of one kind: together, in a drawn order, equal prompts once."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_rollout, make_scenario

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import SimulatedUser
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.engine.lineup import Arm, Lineup, alike
from pytest_tfgrpo.engine.observers import SharedPrompt
from pytest_tfgrpo.runs.seeds import control_first, place_among, placebo_place


def phase(epoch: int, mode: Any = "eval") -> Phase:
    return Phase(epoch=epoch, mode=mode, temperature=0.3, rollouts=1, scenarios=("a",))


def shared(*sides: tuple[Phase, str]) -> dict[int, int]:
    asked: Any = [(one, SimpleNamespace(prompt_stamp=prompt)) for one, prompt in sides]
    return {one.epoch: server.epoch for one, server in alike(asked)}


def test_a_prompt_runs_in_the_last_side_that_has_it() -> None:
    one, two, three, four = map(phase, (1, 2, 3, 4))
    assert shared((one, "x"), (two, "y"), (three, "x"), (four, "z")) == {1: 3}
    assert shared((one, "x"), (two, "x"), (three, "x"), (four, "z")) == {1: 3, 2: 3}
    assert shared((one, "x"), (two, "y"), (three, "y"), (four, "x")) == {1: 4, 2: 3}
    assert shared((one, "x")) == {}


def test_a_control_and_a_placebo_share_with_the_final_sweep_alone() -> None:
    control, placebo, final = phase(0, "baseline"), phase(-2, "placebo"), phase(3)
    assert shared((control, "x"), (placebo, "x"), (final, "y")) == {}
    assert shared((control, "x"), (placebo, "x"), (final, "x")) == {0: 3, -2: 3}


def test_an_equal_prompt_at_another_temperature_is_another_question() -> None:
    control, final = phase(0, "baseline"), phase(3)
    assert shared((replace(control, temperature=0.7), "x"), (final, "x")) == {}


def test_each_side_starts_as_often_at_each_place() -> None:
    scenario, count = make_scenario("a"), 300
    seen = [[0] * 3 for _ in range(3)]
    for index in range(count):
        placed = [3]
        for side in (1, 2):
            placed.insert(place_among(0, scenario, phase(side), index, len(placed) + 1), side)
        for place, side in enumerate(placed):
            seen[side - 1][place] += 1
    assert min(map(min, seen)) > 70
    control, placebo = phase(0, "baseline"), phase(-2, "placebo")
    places = [place_among(0, scenario, control, index, 2) for index in range(50)]
    assert places == [0 if control_first(0, scenario, index) else 1 for index in range(50)]
    beside = [place_among(0, scenario, placebo, index, 3) for index in range(50)]
    assert beside == [placebo_place(0, scenario, index, 3) for index in range(50)]


class Sides:
    """A lineup over a context in pieces: what was asked of its arms, told and written."""

    def __init__(
        self,
        phases: Sequence[Phase],
        scenarios: Sequence[Any],
        *,
        watch: Any = None,
        done: Sequence[str] = (),
        equal: Sequence[str] = (),
        user: Any = None,
        settings: Any = None,
        **resumed: Any,
    ) -> None:
        """The prompts of the scenarios `equal` are the same in all arms."""
        self.asked: list[tuple[int, str, int]] = []
        self.told: list[object] = []
        self.settled: list[int] = []
        known = {one.id: one for one in scenarios}
        on_file = {"settled": (), "begun": (), "rollouts": {}, "checker_results": {}} | resumed
        job = SimpleNamespace(
            run_id="run1",
            settings={name: setting.default for name, setting in BY_NAME.items()} | (settings or {}),
            resumed=SimpleNamespace(**on_file, forget=lambda id_: on_file["rollouts"].pop(id_, None)),
            user=user,
            made_of=lambda scenario: ("made", scenario.id),
        )
        context: Any = SimpleNamespace(
            job=job,
            scenarios=known,
            workspaces=SimpleNamespace(new=lambda *of: of, left=lambda id_, *of: None),
            observe=self.told.append,
            writer=SimpleNamespace(settled=self.settled.append),
            span_counts="counts",
            calls="calls",
            breaker=SimpleNamespace(stop="stop"),
        )

        def arm(phase: Phase) -> Arm:
            def ask(id_: str, index: int) -> Any:
                self.asked.append((phase.epoch, id_, index))
                stamp = id_ if id_ in equal else f"{phase.epoch} {id_}"
                return SimpleNamespace(
                    scenario=known[id_], task="task", prompt=f"{stamp} {index}", prompt_stamp=stamp
                )

            return Arm(phase=phase, ask=ask)

        self.lineup = Lineup(context, [arm(phase) for phase in phases], watch, {}, done)

    def ids(self) -> list[str]:
        return [slot.rollout_id.removeprefix("run1.") for slot in self.lineup]


def sweeps(*ids: str, rollouts: int = 1) -> list[Phase]:
    """Return a control, a placebo with twice the rollouts, and a final sweep."""
    final = replace(phase(3), scenarios=ids, rollouts=rollouts)
    placebo = replace(final, epoch=-2, mode="placebo", rollouts=2 * rollouts, concurrent=True)
    return [replace(final, epoch=0, mode="baseline", concurrent=True), placebo, final]


class Watch:
    """Takes scenarios in its own order, and is settled once it was fed."""

    def __init__(self, *order: str) -> None:
        self.order, self.settled = order, False
        self.fed: list[tuple[list[str], list[str]]] = []

    def feed(self, after: Any, before: Any) -> bool:
        self.fed.append((sorted(after), sorted(before)))
        self.settled = True
        return True


def test_a_call_has_the_limits_of_its_scenario_else_those_of_the_run() -> None:
    own: Any = make_scenario("own", timeout_s=7.0, mocks=("mock",))
    settings = {"timeout_s": 50.0, "answer_max_bytes": 77, "part_thoughts": True, "seed": 4}
    sides = Sides([replace(phase(2), scenarios=("own", "a"))], [own, make_scenario("a")], settings=settings)
    first, second = sides.lineup
    assert (first.call.timeout_s, first.call.mocks) == (7.0, ("mock",))
    assert (second.call.timeout_s, second.call.mocks) == (50.0, ())
    for slot in (first, second):
        assert (slot.call.answer_max_bytes, slot.call.part_thoughts) == (77, True)
        assert (slot.call.span_counts, slot.call.temperature, slot.index) == ("counts", 0.3, 0)
        assert slot.call.workspace == (slot.rollout_id, "made", slot.question.scenario.id)
        assert slot.rollout_id == f"{slot.group_id}.r0"


def test_a_side_knows_all_that_run_beside_it_unless_it_waits_for_fixtures() -> None:
    fixed: Any = make_scenario("fixed", fixtures=())
    slots = [*Sides(sweeps("a", "fixed"), [make_scenario("a"), fixed]).lineup]
    pairs = {slot.rollout_id: set(slot.pair) for slot in slots}
    beside = {f"run1.e{epoch}.a.r0" for epoch in (0, -2, 3)}
    assert {id_: pairs[id_] for id_ in beside} == {id_: beside - {id_} for id_ in beside}
    assert pairs["run1.e-2.a.r1"] == set(), "the placebo alone has a second one"
    assert {pair == set() for id_, pair in pairs.items() if "fixed" in id_} == {True}


def test_a_model_plays_the_users_of_scenarios_that_have_one_and_the_others_say_their_turns() -> None:
    played: Any = make_scenario("p", turns=("More?",), user=SimulatedUser(goal="a table"))
    sides = Sides(
        [replace(phase(2), scenarios=("p", "t", "a"))],
        [played, make_scenario("t", turns=("And now?",)), make_scenario("a")],
        user="model",
    )
    one, turns, alone = sides.lineup
    given = one.user.keywords  # type: ignore[union-attr]
    assert given == {
        "key": "e2.p.r0.user",
        "epoch": 2,
        "seed": one.call.seed,
        "calls": "calls",
        "stop": "stop",
    }
    assert turns.user.args[1:] == (("And now?",),)  # type: ignore[union-attr]
    assert alone.user is None


def test_on_the_dev_split_each_rollout_but_the_first_is_asked_anew() -> None:
    dev = replace(phase(1, "dev"), rollouts=3)
    sides = Sides([dev], [make_scenario("a")])
    assert [slot.question.prompt for slot in sides.lineup] == [f"1 a {n}" for n in range(3)]
    assert sides.asked == [(1, "a", 0), (1, "a", 1), (1, "a", 2)]
    swept = Sides([replace(phase(1), rollouts=3)], [make_scenario("a")])
    assert len(swept.ids()) == 3
    assert swept.asked == [(1, "a", 0)]


def test_once_the_gate_is_decided_what_has_begun_and_what_has_a_minimum_runs_all_the_same() -> None:
    scenarios = [make_scenario("low", min_score=0.0), *map(make_scenario, "abcd")]
    watch = Watch("a", "low", "b", "c", "d")
    phases = sweeps("a", "b", "c", "d", "low")
    sides = Sides(phases, scenarios, watch=watch, begun=("run1.e0.c",))
    made = iter(sides.lineup)
    assert next(made).question.scenario.id == "a"
    sides.lineup.feed([make_group([1.0], scenario_id="a", epoch=3, group_id="run1.e3.a")])
    rest = [slot.question.scenario.id for slot in made]
    assert rest == ["a"] * 3 + ["low"] * 4 + ["c"] * 4
    assert (sides.lineup.settled, sides.settled) == (["b", "d"], [3])


def test_the_gate_is_told_both_sides_of_a_shared_answer_and_nothing_of_a_placebo() -> None:
    watch = Watch("a", "b")
    sides = Sides(sweeps("a", "b"), [make_scenario("a"), make_scenario("b")], watch=watch)
    sides.lineup.feed(
        [
            make_group([1.0], scenario_id="a", epoch=3, mode="eval", shared=True),
            make_group([1.0], scenario_id="b", epoch=3, mode="eval"),
            make_group([1.0], scenario_id="b", epoch=-2, mode="placebo"),
        ]
    )
    assert watch.fed == [(["a", "b"], ["a"])]
    Sides(sweeps("a"), [make_scenario("a")]).lineup.feed([make_group([1.0], scenario_id="a", epoch=3)])


def test_of_what_is_scored_one_question_of_each_domain_is_made_in_each_arm() -> None:
    scenarios = [make_scenario(name, domain="dates" if name in "cd" else "text") for name in "abcde"]
    phases = sweeps(*"abcde")
    done = [f"run1.e{one.epoch}.{name}" for one in phases for name in "abcd"] + ["run1.e3.e"]
    sides = Sides(phases, scenarios, done=done)
    assert {slot.question.scenario.id for slot in sides.lineup} == {"e"}
    assert sides.asked == [(epoch, name, 0) for name in "ace" for epoch in (0, -2, 3)]


def test_a_shared_prompt_runs_for_its_sides_and_only_a_test_function_is_told() -> None:
    checked: Any = make_scenario("c", checker="t.py::c")
    phases = sweeps("a", "b", "c")
    phases[1] = replace(phases[1], rollouts=1)
    sides = Sides(phases, [make_scenario("a"), make_scenario("b"), checked], equal=("a", "c"))
    assert sorted(sides.ids()) == ["e-2.b.r0", "e0.b.r0", "e3.a.r0", "e3.b.r0", "e3.c.r0"]
    assert sides.told == [SharedPrompt(scenario_id="c", epoch=epoch) for epoch in (0, -2)]
    assert sides.lineup.shared == {0: {"a": 3, "c": 3}, -2: {"a": 3, "c": 3}}
    assert sides.lineup.served_by(3, "a") == {"baseline", "placebo"}
    assert (sides.lineup.served_by(3, "b"), sides.lineup.served_by(0, "a")) == (set(), set())
    assert sides.lineup.slot("b").rollout_id == "run1.e3.b.r0"


@pytest.mark.parametrize(
    ("status", "checker", "torn"),
    [("ok", None, False), ("ok", "t.py::a", True), ("failed", "t.py::a", False)],
)
def test_both_sides_on_file_are_taken_unless_a_test_function_still_needs_a_workspace_that_is_gone(
    status: Any, checker: str | None, torn: bool
) -> None:
    control, _, final = sweeps("a")
    ids = [f"run1.e{one.epoch}.a.r0" for one in (control, final)]
    rollouts = {id_: make_rollout(0, scenario_id="a", rollout_id=id_, status=status) for id_ in ids}
    sides = Sides([control, final], [make_scenario("a", checker=checker)], rollouts=dict(rollouts))
    assert len(sides.ids()) == 2
    assert sides.lineup.torn == (rollouts if torn else {})
