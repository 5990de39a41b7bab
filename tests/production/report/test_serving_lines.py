"""What `tfgrpo loop status` says of what is served."""

from __future__ import annotations

from typing import Any

import pytest
from support.deployments import minute, ramp_of

from pytest_tfgrpo.production.deployment.monitor_state import MonitorState
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.report.serving_lines import serving_lines


def lines(serving: Serving, **said: Any) -> list[str]:
    return [" ".join(text.split()) for text in serving_lines(serving, MonitorState(**said))]


def test_without_a_ramp_the_live_version_and_what_cannot_begin_are_named() -> None:
    assert lines(Serving()) == ["live v1"]
    live = Serving(live="v2", since=minute(0), states={"v1": "retired", "v2": "live"})
    assert lines(live, skipped={"v3": "its folder\nis gone", "v4": "too"}) == [
        f"live v2 since {minute(0)}",
        "skipped v3 cannot begin its ramp: its folder is gone",
        "skipped v4 cannot begin its ramp: too",
    ]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({}, ["waits for noon"]),
        ({"held_for": "a holiday", "held_by": "ada"}, ["held by ada: a holiday"]),
        ({"held_for": "errors"}, ["held by the monitor: errors"]),
    ],
)
def test_a_ramp_says_how_far_it_is_and_what_it_waits_for(held: dict[str, str], said: list[str]) -> None:
    ramp = ramp_of(began=(minute(0), minute(60)), since=minute(60), **held)
    state = "held" if held else "canary"
    found = lines(Serving(ramp=ramp, states={"v1": "live", "v2": state}), waits="noon")
    assert found[1].startswith(f"{state} v2 meets 25 % of new sessions, step 2 of 4 since")
    assert found[-1:] == said
    assert len(lines(Serving(ramp=ramp, states={"v1": "live", "v2": state}))) == len(found) - (not held)
