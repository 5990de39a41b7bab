"""What is served, followed on the bus; without the bus, as it was last."""

import json
import re
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.buses import EmbeddedPlace
from support.serving import ADA, LIVE, PARCEL, REFUND, add_version, deploy, files_of, state_of

from pytest_tfgrpo.cli.loop.serving.open_policy import LAST_KNOWN, open_follower, open_policy
from pytest_tfgrpo.core.errors import BusError, StoreError
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.config import load_loop_config
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.serving.follow import ServingFollower
from pytest_tfgrpo.production.serving.last_known import (
    ServedState,
    decode_state,
    encode_state,
    read_last_known,
)
from pytest_tfgrpo.production.serving.policy import ServedPolicy, VersionChoice
from pytest_tfgrpo.production.serving.served_version import ServedVersion
from pytest_tfgrpo.production.serving.version_files import load_version
from pytest_tfgrpo.production.training.versions.policies import Policies


@pytest.fixture
def bus(embedded: EmbeddedPlace) -> Bus:
    return embedded.open()


@pytest.fixture
def policies(bus: Bus, tmp_path: Path) -> Policies:
    return Policies(bus, files_of(tmp_path))


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def follower(bus: Bus, tmp_path: Path, reports: list[str]) -> ServingFollower:
    return opened(tmp_path, lambda: bus, reports)


def opened(folder: Path, open_bus: Callable[[], Bus], reports: list[str]) -> ServingFollower:
    return ServingFollower(
        open_bus,
        lambda bus, name: load_version(Policies(bus, files_of(folder)), name),
        folder / "served.json",
        reports.append,
    )


def no_bus() -> Bus:
    raise BusError("the server is away")


def looked(follower: ServingFollower) -> VersionChoice:
    follower.look()
    return VersionChoice(follower)


def texts(
    choice: VersionChoice, session: str, task: str = "A refund for the order of a parcel"
) -> tuple[str, str]:
    version, prompt = choice.choose(session, task)
    return version, " ".join(prompt.parts)


def test_a_long_id_of_a_session_is_remembered_by_a_short_text(
    bus: Bus, policies: Policies, follower: ServingFollower
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2")
    choice = looked(follower)
    long = ["s" * 100_000 + end for end in "abcdefgh"]
    met = [texts(choice, session)[0] for session in long]
    assert [texts(choice, session)[0] for session in long] == met
    assert max(map(len, choice._sessions._met)) <= 256


def test_before_anything_is_deployed_v1_is_served_and_adds_nothing(follower: ServingFollower) -> None:
    assert texts(looked(follower), "s") == ("v1", "")


def test_a_session_keeps_its_version_while_that_is_served_and_changes_at_once_on_rollback(
    bus: Bus, policies: Policies, follower: ServingFollower
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2")
    choice = looked(follower)
    sessions = [f"s{n}" for n in range(200)]
    before = {one: texts(choice, one) for one in sessions}
    canaries = [one for one, (version, _) in before.items() if version == "v2"]
    assert 0 < len(canaries) < 40
    assert all(REFUND in before[one][1] and before[one][1].startswith("Solve the task.") for one in canaries)
    Deployments(bus).advance("v2", ADA)
    follower.look()
    after = {one: texts(choice, one) for one in sessions}
    assert all(after[one] == before[one] for one in sessions)  # who met v1 keeps it, too
    assert texts(choice, "s201")[0] in ("v1", "v2")
    Deployments(bus).roll_back("v2", ADA)
    follower.look()
    assert {texts(choice, one) for one in sessions} == {("v1", "")}


def test_what_was_served_last_outlives_the_bus_and_the_process(
    bus: Bus, policies: Policies, follower: ServingFollower, tmp_path: Path, reports: list[str]
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    known = texts(looked(follower), "s5")
    assert known[0] == "v2"
    alone = opened(tmp_path, no_bus, reports)
    alone.start()
    assert texts(VersionChoice(alone), "s5") == known
    alone.close()
    assert reports == ["what is served stays as it was: BusError: the server is away"]


def test_without_a_bus_and_without_a_file_nothing_is_known(tmp_path: Path, reports: list[str]) -> None:
    alone = opened(tmp_path, no_bus, reports)
    alone.start()
    assert VersionChoice(alone).choose("s", "task")[0] == ""
    alone.close()
    assert not (tmp_path / "served.json").exists()


OTHER = '{"schema": "tfgrpo.served/2", "serving": {"live": "v1", "states": {"v1": "live"}}, "versions": {}}'


@pytest.mark.parametrize("damage", ["{", "[]", "{}", '{"schema": "tfgrpo.served/1", "serving": {}}', OTHER])
def test_a_damaged_file_is_named_and_written_again(
    follower: ServingFollower, tmp_path: Path, reports: list[str], damage: str
) -> None:
    (tmp_path / "served.json").write_text(damage)
    follower.start()
    follower.close()
    assert "served.json, which keeps what was served last" in reports[0]
    assert read_last_known(tmp_path / "served.json") is not None


def test_a_version_whose_files_are_missing_is_named_and_its_sessions_meet_the_live_one(
    bus: Bus, policies: Policies, follower: ServingFollower, reports: list[str], tmp_path: Path
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    packs = Path(policies.place("v2")) / "packs.json"
    text = packs.read_text()
    packs.unlink()
    choice = looked(follower)
    assert texts(choice, "s5") == ("v1", "")
    assert f"version v2 cannot be served: cannot read {packs}: it is missing" in reports[0]
    known = read_last_known(tmp_path / "served.json")
    assert known is not None
    assert known.versions.keys() == {"v1"}
    packs.write_text(text)
    follower.look()
    assert texts(choice, "s6")[0] == "v2"
    known = read_last_known(tmp_path / "served.json")
    assert known is not None
    assert known.versions.keys() == {"v1", "v2"}, "what is served is the same, and more of it is known"


def test_where_not_even_the_live_version_is_here_requests_stay_as_they_are(
    bus: Bus, policies: Policies, follower: ServingFollower
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    Deployments(bus).advance("v2", ADA)
    (Path(policies.place("v2")) / "library.json").unlink()
    assert texts(looked(follower), "s") == ("", "")


def test_files_of_this_bus_beat_those_that_an_earlier_one_left(
    bus: Bus, policies: Policies, follower: ServingFollower, tmp_path: Path
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    follower.look()
    old = (tmp_path / "served.json").read_text().replace(REFUND, "Old words about a refund.")
    (tmp_path / "served.json").write_text(old)
    other = opened(tmp_path, lambda: bus, [])
    other.state = read_last_known(tmp_path / "served.json")
    assert "Old words" in texts(VersionChoice(other), "s5")[1]
    assert REFUND in texts(looked(other), "s5")[1]


def test_a_row_that_does_not_change_is_not_read_again(
    bus: Bus, policies: Policies, follower: ServingFollower
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2")
    follower.look()
    state = follower.state
    follower.look()
    assert follower.state is state


def test_the_state_on_disk_says_all(bus: Bus, policies: Policies, follower: ServingFollower) -> None:
    add_version(policies, 2, REFUND)
    add_version(policies, 3, PARCEL)
    deploy(bus, "v2", at_once=True)
    Deployments(bus).advance("v2", ADA)
    deploy(bus, "v3", "v2")
    follower.look()
    assert follower.state is not None
    again = decode_state(encode_state(follower.state))
    assert again.serving == follower.state.serving
    assert again.versions.keys() == {"v1", "v2", "v3"}
    assert again.versions["v3"].prompt("a parcel") == follower.state.versions["v3"].prompt("a parcel")
    with pytest.raises(StoreError, match="does not hold what is served"):
        decode_state(json.dumps({"schema": "tfgrpo.served/1", "serving": 7}).encode())


@pytest.fixture
def loop_folder(tmp_path: Path, bus: Bus, embedded: EmbeddedPlace) -> Path:
    """A folder whose ``loop.toml`` names the bus and the versions."""
    text = f"[bus]\nurl = 'embedded:{embedded.path}'\n[training]\nstore = 'training'\n"
    (tmp_path / "loop.toml").write_text(text)
    return tmp_path


def test_a_policy_is_opened_by_the_file_of_the_loop(loop_folder: Path, bus: Bus, policies: Policies) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    with open_policy(loop_folder / "loop.toml") as policy:
        found = policy.for_session("s5", "A refund")
        assert found.version == "v2"
        assert found.prompt.startswith("Solve the task.\n\n<experiences")
        assert len(found.lessons) == 1
        assert policy.for_session("s5", "Nothing of that kind").lessons == ()
    assert (loop_folder / LAST_KNOWN).exists()


def test_a_policy_without_a_bus_warns_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").write_text("")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with open_policy(tmp_path / "loop.toml") as policy:
            assert policy.for_session("s") == policy.for_session("t", "task", domain="text")
            assert policy.for_session("s").version == policy.for_session("s").prompt == ""
    assert ["there is no bus" in str(one.message) for one in caught] == [True]
    assert not (tmp_path / "loop-bus.db").exists()


def test_a_bus_that_was_put_back_from_a_copy_is_followed(
    loop_folder: Path, bus: Bus, policies: Policies, embedded: EmbeddedPlace, tmp_path: Path
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(embedded.path)) as now, closing(sqlite3.connect(copy)) as then:
        now.backup(then)
    follower = open_follower(load_loop_config(loop_folder / "loop.toml", {}), lambda _: None)
    choice = looked(follower)
    assert texts(choice, "s5")[0] == "v2"
    moved = embedded.path.rename(tmp_path / "moved.db")
    with pytest.raises(BusError, match="there is no bus"):
        follower.look()
    assert texts(choice, "s5")[0] == "v2"
    copy.rename(embedded.path)
    with closing(open_bus(f"embedded:{embedded.path}")) as again:
        Deployments(again).roll_back("v2", ADA)
    follower.look()
    assert texts(choice, "s5") == ("v1", "")
    follower.start()
    follower.close()
    moved.unlink()


@pytest.mark.parametrize("error", [OSError("no space"), ValueError("damaged")])
def test_a_version_that_cannot_be_read_keeps_nobody_from_a_rollback(
    bus: Bus, policies: Policies, tmp_path: Path, reports: list[str], error: Exception
) -> None:
    def fail(_: Bus, name: str) -> ServedVersion:
        if name != "v1":
            raise error
        return ServedVersion(name, (), ())

    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    follower = ServingFollower(lambda: bus, fail, tmp_path / "served.json", reports.append)
    assert texts(looked(follower), "s5") == ("v1", "")
    assert reports == [f"version v2 cannot be served: {error}"]


def test_packs_that_cannot_be_served_are_found_when_they_are_read(
    bus: Bus, policies: Policies, follower: ServingFollower, reports: list[str]
) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    packs = Path(policies.place("v2")) / "packs.json"
    packs.write_text(re.sub('"experience_slots": *[0-9]+', '"experience_slots": -1', packs.read_text()))
    assert texts(looked(follower), "s5") == ("v1", "")
    assert f"cannot read {packs}" in reports[0]


def test_a_forked_process_goes_on_with_what_its_parent_knew_and_waits_for_nothing() -> None:
    calls: list[object] = []

    class Follower:
        state: Any = None

        def start(self) -> None:
            calls.append("start")
            self.state = state_of(LIVE, REFUND)

        def go_on(self, state: object) -> None:
            calls.append(state)
            self.state = state

        def close(self) -> None:
            calls.append("close")

    open_it: Any = Follower
    with ServedPolicy(open_it) as policy:
        before = policy.for_session("s5", "A refund")
        policy._begin_anew()
        assert policy.for_session("s5", "A refund") == before
        assert len(before.lessons) == 1
    assert (calls[0], calls[2:]) == ("start", ["close"])
    assert isinstance(calls[1], ServedState)


def test_a_policy_raises_for_no_argument(loop_folder: Path, bus: Bus, policies: Policies) -> None:
    add_version(policies, 2, REFUND)
    deploy(bus, "v2", at_once=True)
    with open_policy(loop_folder / "loop.toml") as policy:
        odd: Any = None
        assert policy.for_session(odd, odd, domain=odd).version in ("v1", "v2")
        assert policy.for_session("s5", odd) == policy.for_session("s5")
        assert len(policy.for_session("s5", "A refund", domain=odd).lessons) == 1
        assert policy.for_session("\ud800" * 300).version in ("v1", "v2")
        odd = ["a refund"]
        assert policy.for_session(odd, odd).version in ("v1", "v2")
        assert policy.for_session("\ud800", "\ud800").version in ("v1", "v2")
