"""The file of flags; its reading by OpenFeature is in the slow tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.buses import EmbeddedPlace

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.serving.foreign.flag_file import FLAG, FlagFile, flags_of

GOOD = DeployCandidate(version="v2", benchmark_passed=True, safety_checks_passed=True, improvement=0.1)
AT = DeployDecision(at="2026-01-01T00:00:00Z", by="ada", reason="x")


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    place = EmbeddedPlace(tmp_path)
    yield place.open()
    place.close()


class Seconds:
    """A clock whose every look is two seconds later."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 2.0
        return self.now


def test_without_a_ramp_every_session_gets_the_live_version() -> None:
    assert flags_of(Serving())["flags"][FLAG] == {
        "state": "ENABLED",
        "variants": {"v1": "v1"},
        "defaultVariant": "v1",
    }


def test_each_transition_is_written_and_a_growing_share_begins_where_it_began(
    bus: Bus, tmp_path: Path
) -> None:
    deployments, path = Deployments(bus), tmp_path / "flags.json"
    file = FlagFile(bus, path, clock=Seconds())
    assert (file.step(), file.step()) == (1, 0)
    assert json.loads(path.read_text()) == flags_of(Serving())
    serving = deployments.start(GOOD, DeployCandidate(version="v1"), AT)
    shares = []
    while serving.ramp is not None:
        assert (file.step(), file.step()) == (1, 0)
        flag = json.loads(path.read_text())["flags"][FLAG]
        assert flag["defaultVariant"] == "v1"
        assert flag["metadata"] == {"deployment": serving.ramp.deployment}
        condition, draw, other = flag["targeting"]["if"]
        assert (condition, other) == ({"var": "targetingKey"}, None)
        key, first, second = draw["fractional"]
        assert key == {"cat": [f"{serving.ramp.deployment}/", {"var": "targetingKey"}]}
        assert (first[0], second[0], first[1] + second[1]) == ("v2", "v1", 10_000)
        shares.append(first[1])
        serving = deployments.advance("v2", AT)
    assert shares == [1000, 2500, 5000, 9500]
    assert file.step() == 1
    assert json.loads(path.read_text())["flags"][FLAG]["defaultVariant"] == "v2"
    deployments.roll_back("v2", AT)
    assert file.step() == 1
    assert json.loads(path.read_text()) == flags_of(Serving())
    assert [one.name for one in tmp_path.iterdir() if "flags" in one.name] == ["flags.json"]


def test_a_clock_that_goes_back_hides_no_rollback(bus: Bus, tmp_path: Path) -> None:
    path = tmp_path / "flags.json"
    path.write_text("{}")
    os.utime(path, (4e9, 4e9))
    assert FlagFile(bus, path).step() == 1
    assert path.stat().st_mtime > 4e9


def test_between_looks_nothing_is_read(bus: Bus, tmp_path: Path) -> None:
    path = tmp_path / "flags.json"
    file = FlagFile(bus, path, clock=lambda: 5.0)
    assert file.step() == 1
    path.unlink()
    assert file.step() == 0
    assert not path.exists()


def test_a_file_that_cannot_be_written_is_named_and_tried_again(bus: Bus, tmp_path: Path) -> None:
    path = tmp_path / "gone" / "flags.json"
    file = FlagFile(bus, path, clock=lambda: 5.0)
    with pytest.raises(StoreError, match=r"cannot write the flag file .*gone/flags\.json: .*flag_file"):
        file.step()
    path.parent.mkdir()
    assert file.step() == 1
