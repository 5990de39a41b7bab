"""Which version a session meets."""

import hashlib
import itertools
import json
from dataclasses import replace

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.deployment.assignment import SessionVersions, assigned, bucket
from pytest_tfgrpo.production.deployment.serving import Ramp, Serving, serving_of

NOON = "2026-01-01T12:00:00.000Z"
SESSIONS = [f"chat-{n}" for n in range(2000)]


def ramping(*shares: float, deployment: str = "one") -> Serving:
    """Return a ramp in the step of the last share."""
    ramp = Ramp(
        deployment=derived_id(deployment),
        version="v2",
        strategy="canary",
        shares=shares,
        waits_min=(60.0,) * len(shares),
        began=(NOON,) * len(shares),
        since=NOON,
        by="ada",
    )
    return Serving(ramp=ramp, states={"v1": "live", "v2": "canary"})


def canaries(serving: Serving) -> set[str]:
    return {session for session in SESSIONS if assigned(serving, session) == "v2"}


def test_a_bucket_is_the_first_32_bits_of_a_hash_of_both_ids() -> None:
    expected = int(hashlib.sha256(b"d\0s").hexdigest()[:8], 16) / 2**32
    assert bucket("d", "s") == expected
    assert len({bucket("d", "s"), bucket("e", "s"), bucket("d", "t"), bucket("ds", "")}) == 4


def test_any_id_that_json_can_hold_has_a_bucket() -> None:
    assert bucket("d", "\ud800") != bucket("d", "\ud801")


@pytest.mark.parametrize("share", [0.05, 0.1, 0.25, 0.5])
def test_a_share_of_the_sessions_meets_the_version_that_ramps(share: float) -> None:
    assert len(canaries(ramping(share))) / len(SESSIONS) == pytest.approx(share, abs=0.03)


def test_a_growing_share_only_adds_and_the_last_one_leaves_a_hold_out() -> None:
    steps = [canaries(ramping(*(0.1, 0.25, 0.5, 1.0)[: n + 1])) for n in range(4)]
    assert all(fewer < more for fewer, more in itertools.pairwise(steps))
    assert len(steps[-1]) / len(SESSIONS) == pytest.approx(0.95, abs=0.02)


def test_a_session_whose_number_is_the_share_itself_meets_the_live_version() -> None:
    numbers = {session: bucket(derived_id("one"), session) for session in SESSIONS[:100]}
    session, share = max(numbers.items(), key=lambda item: item[1] if item[1] < 0.9 else 0.0)
    assert assigned(ramping(share), session) == "v1"
    assert assigned(ramping(share + 1e-9), session) == "v2"


def test_another_deployment_draws_other_sessions() -> None:
    first, second = canaries(ramping(0.25)), canaries(ramping(0.25, deployment="two"))
    assert len(first & second) / len(first) == pytest.approx(0.25, abs=0.06)


def test_a_session_keeps_its_version_while_both_are_served_and_changes_on_rollback_at_once() -> None:
    met = SessionVersions()
    narrow, wide = ramping(0.1), ramping(0.1, 0.5)
    late = next(iter(canaries(wide) - canaries(narrow)))
    early = next(iter(canaries(narrow)))
    assert [met.version(narrow, one) for one in (early, late)] == ["v2", "v1"]
    assert [met.version(wide, one) for one in (early, late)] == ["v2", "v1"], "it began when the share was .1"
    back = replace(wide, ramp=None, states={"v1": "live", "v2": "rolled_back"})
    assert [met.version(back, one) for one in (early, late)] == ["v1", "v1"]
    live = Serving(live="v2", states={"v1": "retired", "v2": "live"})
    assert met.version(live, late) == "v2"


def test_only_the_newest_sessions_are_remembered() -> None:
    met, narrow, wide = SessionVersions(most=2), ramping(0.1), ramping(0.1, 0.5)
    late = sorted(canaries(wide) - canaries(narrow))[:3]
    for session in late:
        met.version(narrow, session)
    assert [met.version(wide, session) for session in reversed(late)] == ["v1", "v1", "v2"]


def test_a_session_that_comes_again_is_among_the_newest() -> None:
    met, narrow, wide = SessionVersions(most=2), ramping(0.1), ramping(0.1, 0.5)
    first, second, third = sorted(canaries(wide) - canaries(narrow))[:3]
    for session in (first, second, first, third):
        met.version(narrow, session)
    assert [met.version(wide, session) for session in (first, third)] == ["v1", "v1"]


def test_without_a_ramp_all_sessions_meet_the_live_version() -> None:
    assert {assigned(Serving(live="v3"), session, "v2") for session in SESSIONS[:50]} == {"v3"}


def test_what_is_served_is_read_as_it_was_written_and_v1_is_live_at_first() -> None:
    serving = ramping(0.1, 0.25)
    assert serving_of(serving.encode()) == serving
    assert (serving_of(None).live, serving_of(None).versions) == ("v1", ("v1",))


def damaged(**changes: object) -> bytes:
    serving = json.loads(ramping(0.1, 0.25).encode())
    ramp = serving["ramp"] | {key: value for key, value in changes.items() if key in serving["ramp"]}
    rest = {key: value for key, value in changes.items() if key not in ramp}
    return json.dumps({**serving, "ramp": ramp, **rest}).encode()


def deployed(**changes: object) -> dict[str, object]:
    return json.loads(ramping(0.1).encode())["ramp"] | changes


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"\xff{", "utf-8"),
        (b"[]", "expected"),
        (damaged(live="v7"), "v7 is served and has no state"),
        (damaged(previous="v7"), "v7 is served and has no state"),
        (damaged(version="v7"), "v7 is served and has no state"),
        (damaged(live="good", states={"good": "live", "v2": "canary"}), "'good' is no name of a version"),
        (damaged(began=[]), "the steps of v2 do not fit each other"),
        (damaged(shares=[0.1]), "the steps of v2 do not fit each other"),
        (damaged(step_positions=[1]), "the steps of v2 do not fit each other"),
        (damaged(shares=[0.1, 1.5]), "the steps of v2 do not fit each other"),
        (damaged(shares=[0.1, 0.0]), "the steps of v2 do not fit each other"),
        (damaged(waits_min=[60.0] * 3), "the steps of v2 do not fit each other"),
        (damaged(deployed=deployed(shares=[])), "the steps of v2 do not fit each other"),
        (damaged(since="noon"), "'noon' is no time"),
        (damaged(began=["noon", NOON]), "'noon' is no time"),
        (damaged(deployed=deployed(since="night")), "'night' is no time"),
    ],
)
def test_a_row_that_is_damaged_is_named_before_anything_is_served_by_it(value: bytes, why: str) -> None:
    with pytest.raises(StoreError, match=f"the row 'serving' of the table state .*{why}"):
        serving_of(value)


def test_the_share_of_a_run_is_that_of_the_step_it_lies_in() -> None:
    ramp = ramping(0.1, 1.0).ramp
    assert ramp is not None
    ramp = replace(ramp, step_positions=(7, 9))
    assert [ramp.share_at(sequence) for sequence in (6, 7, 8, 9, 10)] == [0.0, 0.0, 0.1, 0.1, 0.95]
