"""The selector: who gets which arm, with which probability."""

import json
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.live_runs import ARMS, POINTS, LiveWorld

from pytest_tfgrpo.numerics.rl.softmax import ArmPolicy, probabilities
from pytest_tfgrpo.production.live.records import ArmChoice
from pytest_tfgrpo.production.live.selection.selector import (
    CONTROL_SHARE,
    FLOOR,
    KEPT_FOR,
    OTHER,
    AwayArm,
    PointPolicy,
    SelectorState,
    is_control,
    open_selector,
)

logits = st.floats(-30, 30)


def learned(*, shared: dict[str, float], own: dict[str, dict[str, float]] | None = None) -> SelectorState:
    point = PointPolicy(arms=ARMS, shared=shared, own=own or {})
    return SelectorState(number=3, categories=tuple(own or ()), points={"config": point})


def choices(state: SelectorState, n: int = 2000) -> list[ArmChoice]:
    return [state.draw("shop", f"ticket-{i}", 1, "config", 0, category="freight") for i in range(n)]


@given(st.lists(logits, min_size=3, max_size=3), st.lists(logits, min_size=3, max_size=3))
def test_probabilities_are_those_of_the_policy_that_learns(shared: list[float], own: list[float]) -> None:
    names = sorted(ARMS)
    state = learned(
        shared=dict(zip(names, shared, strict=True)), own={"a": dict(zip(names, own, strict=True))}
    )
    found = state.probabilities("config", "a")
    wanted = probabilities(ArmPolicy(np.array(shared), np.array([own]), FLOOR))[0]
    np.testing.assert_allclose([found[arm] for arm in names], wanted, atol=1e-12)
    assert sum(found.values()) == pytest.approx(1)
    assert min(found.values()) >= FLOOR - 1e-12


@settings(max_examples=40)
@given(st.text(max_size=9), st.text(max_size=9), st.integers(1, 5), st.integers(0, 5))
def test_c01_a_draw_is_reproducible_from_the_identity_of_its_run(
    namespace: str, run: str, attempt: int, place: int
) -> None:
    one, other = (open_selector(0, None, POINTS) for _ in range(2))
    drawn = [state.draw(namespace, run, attempt, "config", place, category="x") for state in (one, other)]
    assert drawn[0] == drawn[1]
    assert drawn[0].arm in ARMS


def test_the_order_of_arms_in_a_file_changes_no_draw() -> None:
    turned = dict(reversed(ARMS.items()))
    one, other = open_selector(0, None, POINTS), open_selector(0, None, {"config": turned})
    assert [c.arm for c in choices(one)] == [c.arm for c in choices(other)]


def test_arms_come_as_often_as_their_logged_propensity_says() -> None:
    state = learned(shared={"bare": 0.0, "learned": 1.5, "misled": -1.0})
    drawn = choices(state, 4000)
    for arm, p in state.probabilities("config", "freight").items():
        margin = 4 * (p * (1 - p) / 4000) ** 0.5
        assert sum(c.arm == arm for c in drawn) / 4000 == pytest.approx(p, abs=margin)
    assert all(c.propensity == c.probabilities[c.arm] and c.selector == 3 for c in drawn)


def test_another_run_attempt_point_or_place_is_another_draw() -> None:
    state = open_selector(0, None, {"a": ARMS, "b": ARMS})
    first = [state.draw("shop", f"t{i}", 1, "a", 0, category="") for i in range(600)]
    others = [
        [state.draw("mall", f"t{i}", 1, "a", 0, category="") for i in range(600)],
        [state.draw("shop", f"t{i}", 2, "a", 0, category="") for i in range(600)],
        [state.draw("shop", f"t{i}", 1, "b", 0, category="") for i in range(600)],
        [state.draw("shop", f"t{i}", 1, "a", 1, category="") for i in range(600)],
    ]
    for other in others:
        equal = statistics.mean(x.arm == y.arm for x, y in zip(first, other, strict=True))
        assert equal == pytest.approx(1 / 3, abs=0.08)


def test_logged_propensities_equal_those_that_each_selector_s_document_gives() -> None:
    world = LiveWorld(seed=2, control=False)
    documents = {}
    for _ in range(150):
        documents[world.selector.number] = json.dumps(world.selector.document())
        world.serve(1)
    seen = set()
    for number, document in documents.items():
        state = open_selector(number, json.loads(document), POINTS)
        for run in world.runs:
            if run.choices[0].selector == number:
                assert run.choices[0].probabilities == state.probabilities("config", run.category)
                seen.add(number)
    assert len(seen) > 10


def test_a_tenth_of_the_runs_is_control() -> None:
    found = [is_control("shop", f"ticket-{i}") for i in range(10_000)]
    assert statistics.mean(found) == pytest.approx(CONTROL_SHARE, abs=0.01)
    assert found == [is_control("shop", f"ticket-{i}") for i in range(10_000)]
    assert found != [is_control("mall", f"ticket-{i}") for i in range(10_000)]


def test_after_64_categories_the_rest_are_other() -> None:
    state = open_selector(0, None, POINTS).with_categories(f"c{i}" for i in range(100))
    assert len(state.categories) == 65
    assert state.categories[-1] == OTHER
    assert state.category("c63") == "c63"
    assert {state.category("c64"), state.category("never seen")} == {OTHER}
    assert open_selector(0, None, POINTS).category("never seen") == ""


def test_a_learned_category_keeps_its_own_logits_though_there_are_64_of_them() -> None:
    high, low = dict.fromkeys(ARMS, 0.0), dict.fromkeys(ARMS, 0.0)
    high["bare"], low["bare"] = 9.0, -9.0
    own = {**{f"c{n}": low for n in range(64)}, OTHER: high}
    point = PointPolicy(arms=ARMS, shared=dict.fromkeys(ARMS, 0.0), own=own)
    assert point.probabilities("c63")["bare"] < 0.1
    assert point.probabilities("new")["bare"] > 0.7
    few = PointPolicy(arms=ARMS, shared=dict.fromkeys(ARMS, 0.0), own={"c": low, OTHER: high})
    assert few.probabilities("new")["bare"] == pytest.approx(1 / 3)


def test_categories_that_were_never_learned_draw_by_the_shared_logits() -> None:
    state = learned(
        shared={"bare": 0.0, "learned": 2.0, "misled": 0.0},
        own={"a": {"bare": 4.0, "learned": 0.0, "misled": 0.0}},
    )
    assert state.probabilities("config", "new") == state.probabilities("config", "newer")
    assert state.probabilities("config", "new")["learned"] > 0.7
    assert state.probabilities("config", "a")["bare"] > 0.7


def test_a_new_arm_starts_at_the_mean_logit_of_its_point_in_every_category() -> None:
    state = learned(
        shared={"bare": 0.0, "learned": 3.0, "misled": -1.5},
        own={"a": {"bare": 1.0, "learned": 0.0, "misled": 2.0}},
    )
    found = state.with_points({"config": {**ARMS, "fresh": "s-fresh"}}).points["config"]
    assert found.shared == {"bare": 0.0, "learned": 3.0, "misled": -1.5, "fresh": 0.5}
    assert found.own["a"]["fresh"] == 1.0


def test_a_changed_arm_is_new_and_a_renamed_one_is_not() -> None:
    state = learned(shared={"bare": 0.0, "learned": 3.0, "misled": -1.5})
    changed = state.with_points({"config": {**ARMS, "learned": "s-changed"}}).points["config"]
    assert changed.shared["learned"] == 0.5
    renamed = state.with_points({"config": {"bare": "s-bare", "taught": "s-learned"}}).points["config"]
    assert renamed.shared == {"bare": 0.0, "taught": 3.0}
    old = choices(state)
    assert {renamed.arm_of(c) for c in old if c.arm == "learned"} == {"taught"}
    assert {renamed.arm_of(c) for c in old if c.arm == "misled"} == {None}


def test_what_another_process_learned_of_its_arms_is_kept_for_it() -> None:
    mine = {"config": ARMS}
    others = {"config": {"bare": "s-bare", "learned": "s-changed"}, "plan": {"short": "s-short"}}
    shared = {"bare": 0.0, "learned": 3.0, "misled": -1.5}
    own = {"a": {"bare": 1.0, "learned": 0.0, "misled": 2.0}}
    first = learned(shared=shared, own=own)
    away = open_selector(4, first.document(), others)
    assert {name: [*found.arms] for name, found in away.points.items()} == {
        "config": ["bare", "learned"],
        "plan": ["short"],
    }
    back = open_selector(5, away.document(), mine).points["config"]
    assert (back.shared, back.own) == (shared, own)
    assert open_selector(5, away.document(), {}).with_points(mine).points["config"] == back


def test_arms_that_no_process_has_are_forgotten_in_the_end() -> None:
    state = learned(shared={"bare": 0.0, "learned": 3.0, "misled": -1.5})
    others = {"config": {"bare": "s-bare"}}
    away = open_selector(3, state.document(), others).document()
    assert open_selector(3 + KEPT_FOR, away, POINTS).points["config"].shared["learned"] == 3.0
    later = open_selector(4 + KEPT_FOR, away, others).document()
    assert "away" not in later
    assert open_selector(5 + KEPT_FOR, later, POINTS).points["config"].shared["learned"] == 0.0


def test_a_selector_of_another_kind_is_refused() -> None:
    document = open_selector(0, None, POINTS).document()
    with pytest.raises(ValueError, match=r"the selector's schema is 'tfgrpo.live-selector/2'"):
        open_selector(1, {**document, "schema": "tfgrpo.live-selector/2"}, POINTS)


def test_many_arms_keep_room_to_learn() -> None:
    arms = {f"arm-{i}": f"s{i}" for i in range(200)}
    found = open_selector(0, None, {"p": arms}).probabilities("p", "x")
    assert sum(found.values()) == pytest.approx(1)
    assert min(found.values()) >= 0.5 / 200


def test_a_point_without_arms_is_named() -> None:
    with pytest.raises(ValueError, match="the point 'model' has no arms; give it one at least"):
        open_selector(0, None, {"config": dict(ARMS), "model": {}})


def test_an_arm_that_comes_back_has_no_logit_of_its_own_in_a_category_that_came_since() -> None:
    one, other = {"config": {"bare": "s-bare"}}, {"config": {"bare": "s-bare", "learned": "s-learned"}}
    point = PointPolicy(arms=one["config"], shared={"bare": 1.0}, own={"new": {"bare": 2.0}})
    away = {"s-learned": AwayArm(shared=3.0, own={"old": 4.0}, seen=3)}
    state = SelectorState(number=3, points={"config": point}, away={"config": away})
    back = state.with_points(other).points["config"]
    assert (back.shared, back.own) == ({"bare": 1.0, "learned": 3.0}, {"new": {"bare": 2.0, "learned": 2.0}})
    both = {**away, "s-bare": AwayArm(shared=1.0, own={"new": 2.0}, seen=3)}
    whole = SelectorState(number=3, away={"config": both}).with_points(other).points["config"]
    assert whole.own == {"old": {"bare": 0.0, "learned": 4.0}, "new": {"bare": 2.0, "learned": 0.0}}
