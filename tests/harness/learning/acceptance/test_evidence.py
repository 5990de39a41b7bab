"""Evidence: sums of rollouts, whatever is added up at once, are what the rollouts one by one say."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import PACK_STAMP, make_experience, make_group, make_pack, make_rollout, make_scenario

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.harness.learning.acceptance import evidence as module
from pytest_tfgrpo.harness.learning.acceptance.evidence import Evidence, gather, joined
from pytest_tfgrpo.harness.learning.attribution.exposures import content_key
from pytest_tfgrpo.numerics.cells import cells_of

TEXTS = ("Count the words first.", "Sort the names first.", "Sort the names first.", "Add up the prices.")
"""The second and the third say the same under two ids."""
LESSONS = {
    f"l{n}": make_experience(n, id=f"l{n}", summary32=text, stamp_signature=PACK_STAMP)
    for n, text in enumerate(TEXTS)
}
SCENARIOS = [
    *(make_scenario(f"s{n}", prompt=f"Count words, sort names, letter {'abcdef'[n]}.") for n in range(3)),
    *(make_scenario(f"s{n}", split="dev", prompt=f"Add prices, letter {'abcdef'[n]}.") for n in (3, 4)),
    make_scenario("voted", truth="majority"),
    make_scenario("apart", split="eval"),
]
IDS = st.lists(st.sampled_from([*LESSONS, "forgotten"]), max_size=3, unique=True).map(tuple)


@st.composite
def drawn_groups(draw: Any) -> Group:
    scenario = draw(st.sampled_from(["s0", "s1", "s2", "s3", "s4", "voted"]))
    mode = "dev" if scenario in ("s3", "s4") else "train"
    credited = draw(
        st.lists(st.none() | st.sampled_from([0.0, 1.0]) | st.floats(0, 1), min_size=1, max_size=4)
    )
    rollouts = tuple(
        make_rollout(
            n,
            credit,
            scenario_id=scenario,
            mode=mode,
            experiences=(carried := draw(IDS)),
            left_out=draw(IDS),
            tossed=draw(st.sampled_from([None, (), carried])),
        )
        for n, credit in enumerate(credited)
    )
    return make_group(credited, rollouts=rollouts)


def gathered(groups: list[Group]) -> Evidence:
    return gather(groups, LESSONS, SCENARIOS, {"text": make_pack()})


def rows_of(groups: list[Group]) -> tuple[list[tuple[int, float, set[str]]], Counter[str], Counter[str]]:
    """Return (scenario, score, keys of its lessons) of each rollout that counts; lessons of dev prompts."""
    rows, included, left_out = [], Counter[str](), Counter[str]()
    for group in groups:
        if group.scenario_id == "voted":
            continue
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            carried, missing = (
                {content_key(LESSONS[id_]) for id_ in ids if id_ in LESSONS}
                for ids in (rollout.experiences, rollout.left_out)
            )
            tossed = rollout.experiences if rollout.tossed is None else rollout.tossed
            if group.mode == "dev" or tossed or rollout.left_out:
                told = math.nan if score.gt_score is None else score.gt_score
                rows.append((int(group.scenario_id[1:]), told, carried))
            if group.mode == "dev":
                included.update(carried)
                left_out.update(missing)
    return rows, included, left_out


@given(groups=st.lists(drawn_groups(), max_size=12), dev=st.lists(drawn_groups(), max_size=4))
@settings(max_examples=100, deadline=None)
def test_sums_are_those_of_the_rollouts_one_by_one_to_the_last_bit(
    groups: list[Group], dev: list[Group]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "AT_ONCE", 5)
        found = joined(gathered(groups), dev, LESSONS, SCENARIOS)
    rows, included, left_out = rows_of(groups + dev)
    expected = cells_of(
        np.array([score for _, score, _ in rows]),
        np.array([scenario for scenario, _, _ in rows], dtype=np.intp),
        np.array([[key in keys for key in found.keys] for _, _, keys in rows], bool).reshape(len(rows), 3),
    )
    for one, two in zip(found.cells, expected, strict=True):
        np.testing.assert_array_equal(one, two)
    assert (found.included, found.left_out) == (included, left_out)
    assert found.is_empty == (not rows)
    assert found.has_errors == any(math.isnan(score) for _, score, _ in rows)


def test_what_was_gathered_before_a_sweep_stays_as_it_is() -> None:
    before = gathered([make_group([1.0], rollouts=(make_rollout(scenario_id="s0", left_out=("l0",)),))])
    rollout = make_rollout(scenario_id="s3", mode="dev", experiences=("l0",))
    after = joined(before, [make_group([0.0], rollouts=(rollout,))], LESSONS, SCENARIOS)
    assert (before.cells.n_C.sum(), after.cells.n_C.sum()) == (1, 2)
    assert not before.included
    assert after.included == {content_key(LESSONS["l0"]): 1}


def test_evidence_of_many_rollouts_holds_sums_and_none_of_them() -> None:
    group = make_group(
        [1.0, 0.0], rollouts=tuple(make_rollout(n, scenario_id="s0", left_out=("l1",)) for n in (0, 1))
    )
    found = gathered([group] * 3000)
    assert found.cells.n_C.tolist() == [6000.0]
    assert found.cells.sum_C.tolist() == [3000.0]
