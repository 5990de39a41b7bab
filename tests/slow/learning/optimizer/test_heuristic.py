from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.optimizer.heuristic import (
    PACKS,
    SUITE,
    context_of,
    group_of,
    propose,
    rollouts,
)

from pytest_tfgrpo.learning.library.library import apply, empty
from pytest_tfgrpo.learning.library.screen import Screen


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(rollouts, min_size=2, max_size=4), min_size=len(SUITE), max_size=len(SUITE)),
    st.booleans(),
)
def test_whatever_the_trajectories_every_proposal_can_be_applied(
    attempts: list[list[tuple[float | None, dict[str, Any]]]], families: bool
) -> None:
    suite = [s if families else replace(s, family=None) for s in SUITE]
    library = empty()
    for epoch in (1, 2, 3):
        turned = attempts[epoch:] + attempts[:epoch]
        groups = [group_of(s, a, epoch) for s, a in zip(suite, turned, strict=True)]
        context = context_of(groups, suite, library, epoch)
        proposal = propose(context)
        screen = Screen(suite, answers=lambda s: (), packs=PACKS, max_words=32)
        revision = apply(library, proposal.operations, screen=screen, cap=200, epoch=epoch)
        assert {r.code for r in revision.refused} <= {"duplicate"}
        assert proposal.lesson_groups <= {g.group_id for g in groups if g.informative}
        library = revision.library
