"""Ramps with many sessions: of one user, and as many as a service has in days."""

from pathlib import Path

from support.buses import EmbeddedPlace
from support.deployments import DrawnSession, publish_sessions, reward_event
from support.loop_events import payloads
from support.ramp_loop import RampLoop


def test_one_user_with_ten_thousand_sessions_decides_nothing(embedded: EmbeddedPlace, tmp_path: Path) -> None:
    loop = RampLoop(embedded.open(), tmp_path)
    loop.look(0)
    loop.send(300, "v1", 5)
    loop.send(29, "v2", 5)
    for start in range(0, 10_000, 1000):
        publish_sessions(
            loop.bus,
            [
                DrawnSession(f"h{n}", "v2", 6, blocked=True, failed=True, reward=0.0, user="u-hostile")
                for n in range(start, start + 1000)
            ],
        )
    serving = loop.look(61)
    assert serving.ramp is not None
    assert serving.ramp.step == 1
    evidence = payloads(loop.bus, "RL_DEPLOYMENTS")[-1]["metadata"]["evidence"]
    assert evidence["sessions"] == {"canary": 31, "control": 300}
    loop.view.close()


def test_a_worse_version_is_found_among_ten_thousand_sessions_that_are_rewarded_hours_later(
    embedded: EmbeddedPlace, tmp_path: Path
) -> None:
    loop = RampLoop(embedded.open(), tmp_path)
    loop.look(0)
    drawn = [
        DrawnSession(
            f"s{n}", ("v2" if n % 10 == 0 else "v1"), 1 + n / 200, reward=0.5 if n % 10 == 0 else 0.7
        )
        for n in range(10_000)
    ]
    publish_sessions(loop.bus, [one._replace(reward=None) for one in drawn])
    assert loop.look(299).ramp is not None
    loop.bus.publish([reward_event(one, one.reward or 0.0, at=one.at + 300) for one in drawn])
    assert loop.look(400).states["v2"] == "rolled_back"
    loop.view.close()
