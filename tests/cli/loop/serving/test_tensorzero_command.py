"""``tfgrpo loop tensorzero``: what is served, read from the bus and the store of versions."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders import make_experience, make_pack
from support.buses import EmbeddedPlace
from support.serving import ADA, REFUND, add_version, deploy, files_of
from support.tools import tfgrpo

from pytest_tfgrpo.cli.loop.serving.tensorzero import _texts
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.serving.served_version import ServedVersion
from pytest_tfgrpo.production.training.versions.policies import Policies

COMMAND = ("loop", "tensorzero", "gateway", "--function", "support", "--model", "m")


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bus]:
    monkeypatch.chdir(tmp_path)
    place = EmbeddedPlace(tmp_path)
    (tmp_path / "loop.toml").write_text("[bus]\nurl = 'embedded:bus.db'\n[training]\nstore = 'training'\n")
    yield place.open()
    place.close()


def test_each_transition_is_written_once_and_says_whether_the_gateway_must_start_again(bus: Bus) -> None:
    assert tfgrpo(*COMMAND) == "wrote  gateway/tfgrpo.toml: v1\n"
    add_version(Policies(bus, files_of(Path())), 2, REFUND)
    deploy(bus, "v2")
    assert tfgrpo(*COMMAND) == "wrote  gateway/tfgrpo.toml: v1, v2\n"
    assert tfgrpo(*COMMAND) == "unchanged  gateway/tfgrpo.toml: v1, v2\n"
    found = tomllib.loads(Path("gateway/tfgrpo.toml").read_text())["functions"]["support"]
    assert found["experimentation"]["candidate_variants"] == {"v1": 0.95, "v2": 0.05}
    assert REFUND in Path("gateway", found["variants"]["v2"]["system_template"]).read_text()
    Deployments(bus).roll_back("v2", ADA)
    assert tfgrpo(*COMMAND) == "wrote  gateway/tfgrpo.toml: v1\n"
    assert [path.name for path in Path("gateway").iterdir()] == ["tfgrpo.toml"]


def test_a_version_of_several_domains_needs_one_of_them() -> None:
    version = ServedVersion("v2", (make_pack(), make_pack("code")), [make_experience(1), make_experience(2)])
    version = ServedVersion("v2", version.packs, [*version.lessons, make_experience(3, domain="code")])
    for unknown in ("", "music"):
        said = f"version v2 has texts for code, text, and none for --domain {unknown!r}"
        with pytest.raises(SettingError, match=re.escape(said)):
            _texts(version, unknown)
    assert "Solve the task." in _texts(version, "text")


def test_without_a_bus_it_says_what_makes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.toml").write_text("")
    assert "`tfgrpo loop serve` makes it" in tfgrpo(*COMMAND, code=1)
    assert not Path("gateway").exists()
