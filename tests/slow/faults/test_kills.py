"""Runs killed at named and at random points: the next command ends as if nothing was."""

from __future__ import annotations

from functools import partial

import pytest
from support.attacks import KINDS, Attacked, answers_on_file, attacked
from support.campaign import Campaign
from support.forks import Forks
from support.project import Project

pytestmark = pytest.mark.faults


def kill_and_finish(one: Attacked, *points: tuple[str, float], surely: bool) -> None:
    """Kill a run at one point after the other, then finish it."""
    killed = [one.kill(point, delay_s) for point, delay_s in points]
    assert all(killed) or not surely, "it did not come to that point"
    unpaid, before = one.asked - answers_on_file(one.root, one.expected["rollouts"]), one.questions()
    one.finish()
    left = one.changes()
    assert not left, left
    assert not one.asked or one.questions() - before == unpaid, "asked again"


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_at_a_named_point_ends_as_if_it_was_not(
    kind: str, project: Project, forks: Forks, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    if kind not in campaign.sample(sorted(KINDS), 1):
        pytest.skip("not in the sample")
    for one in attacked(kind, project, forks, monkeypatch):
        draw = campaign.random("kills", kind)
        for place in campaign.sample(sorted(one.counted.keys() - {"event"}), 2):
            point = f"{place}:{draw.randint(1, one.counted[place])}"
            surely = "fsync" not in place  # how often depends on the time that writing takes
            one.survive(point, partial(kill_and_finish, one, (point, 0.0), surely=surely))
        one.conclude()


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_at_random_and_again_while_it_is_resumed_ends_as_if_it_was_not(
    kind: str, project: Project, forks: Forks, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    if kind not in campaign.sample(sorted(KINDS, reverse=True), 1):
        pytest.skip("not in the sample")
    for one in attacked(kind, project, forks, monkeypatch):
        draw = campaign.random("random kills", kind)
        for _ in range(campaign.count(1, 50)):
            points = [
                (f"event:{draw.randint(1, one.counted['event'])}", draw.choice([0.0, draw.random() / 50]))
                for _ in range(draw.choice([1, 1, 2]))
            ]
            one.survive(f"{points}", partial(kill_and_finish, one, *points, surely=False))
        one.conclude()
