"""A disk that is full from a named point on: the run stops with a reason, and the next command finishes."""

from __future__ import annotations

from functools import partial

import pytest
from support.attacks import KILLER, KINDS, Attacked, attacked
from support.campaign import Campaign
from support.forks import Forks
from support.project import Project

pytestmark = pytest.mark.faults


def fill(one: Attacked, point: str) -> None:
    code, output = one.run(*KILLER, KILL=point, KILL_BY="disk")
    assert one.mark.exists() or "fsync" in point, output  # how often depends on the time that writing takes
    assert "INTERNALERROR" not in output, output
    assert "Traceback" not in output, output
    assert code in (one.code, 1, 2, 4), f"exit {code}: {output}"  # xdist ends with 2
    told = any(words in output for words in ("cannot write", "cannot open", "disk is full"))
    # after the last write a run ends as it would have: a gate that fails is one of the kinds
    assert told or (code == one.code and (not code or "gate  FAILED" in output)), output
    one.finish()
    left = one.changes()
    assert not left, left


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_stops_the_run_with_a_reason_and_the_next_command_finishes(
    kind: str, project: Project, forks: Forks, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    if kind not in campaign.sample(sorted(KINDS, reverse=True), 1):
        pytest.skip("not in the sample")
    for one in attacked(kind, project, forks, monkeypatch):
        draw = campaign.random("full disk", kind)
        for place in campaign.sample(sorted(one.counted.keys() - {"event"}), 2):
            point = f"{place}:{draw.randint(1, one.counted[place])}"
            one.survive(point, partial(fill, one, point))
        one.conclude()
