"""Evidence: sums of rollouts, whatever is added up at once, are what the rollouts one by one say."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.acceptance.evidence import LESSONS, SCENARIOS, gathered
from support.builders import make_group, make_rollout

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.learning.acceptance import evidence as module
from pytest_tfgrpo.learning.acceptance.evidence import joined
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.numerics.cells import cells_of

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
