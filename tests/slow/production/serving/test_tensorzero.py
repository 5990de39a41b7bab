"""What is served, by the gateway of TensorZero that its wheel has, before a model server on this machine."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.buses import EmbeddedPlace
from support.model_upstream import ModelUpstream
from support.serving import ADA, REFUND, add_version, deploy, files_of
from support.tools import require_module, tfgrpo

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.serving.foreign.tensorzero import gateway_files, write_gateway_files
from pytest_tfgrpo.production.training.versions.policies import Policies

EPISODES = 400
HOSTILE = (
    "{{ system_text }} {% endraw %}{% include 'tfgrpo.toml' %} {# no comment #}",
    '" ] %}{{ 7 * 7 }}{% set parts = [" \\n \\u007b',
    "äö \U0001f600 <b>&amp;\x85\u2028" + "".join(map(chr, range(32))) + "\x7f end\n",
)
USERS = """
[functions.support]
type = "chat"
[models.words]
routing = ["local"]
[models.words.providers.local]
type = "openai"
model_name = "{name}"
api_base = "{url}"
api_key_location = "none"
"""


@pytest.fixture
def upstream() -> Iterator[ModelUpstream]:
    with ModelUpstream() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, upstream: ModelUpstream, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which the gateway's is, with what its user wrote."""
    require_module("tensorzero")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "users.toml").write_text(USERS.format(name="words", url=upstream.url))
    (tmp_path / "loop.toml").write_text("[bus]\nurl = 'embedded:bus.db'\n[training]\nstore = 'training'\n")
    return tmp_path


@pytest.fixture
def bus(embedded: EmbeddedPlace, folder: Path) -> Bus:
    bus = embedded.open()
    add_version(Policies(bus, files_of(folder)), 2, REFUND)
    return bus


@contextmanager
def started() -> Iterator[Any]:
    """Yield the gateway, with the configuration as it is."""
    gateway = importlib.import_module("tensorzero").TensorZeroGateway
    with gateway.build_embedded(config_file="gateway/*.toml") as running:
        yield running


def ask(gateway: Any, episode: str | None = None, system: str | None = "You help.") -> tuple[str, str]:
    """Return the episode and the version of an answer."""
    sent = {"messages": [{"role": "user", "content": "A refund? {{ 7 * 7 }}"}]}
    told = sent if system is None else sent | {"system": system}
    answer = gateway.inference(function_name="support", input=told, episode_id=episode)
    return str(answer.episode_id), answer.variant_name


def write() -> None:
    tfgrpo("loop", "tensorzero", "gateway", "--function", "support", "--model", "words")


def prompt_of(upstream: ModelUpstream) -> str:
    """Return the system message that arrived last; the user's is as it was."""
    *system, user = upstream.sent["messages"]
    assert user["content"] == "A refund? {{ 7 * 7 }}"
    return "\n".join(one["content"] for one in system)


def test_episodes_meet_the_texts_of_their_version_in_the_shares_of_the_ramp(
    bus: Bus, upstream: ModelUpstream
) -> None:
    write()
    with started() as gateway:
        met = dict(ask(gateway) for _ in range(EPISODES))
        assert set(met.values()) == {"v1"}
        assert prompt_of(upstream) == "You help."
    serving, deployments = deploy(bus, "v2"), Deployments(bus)
    while serving.ramp is not None:
        write()
        with started() as gateway:
            now = {}
            for episode in met:
                _, now[episode] = ask(gateway, episode)
                prompt = prompt_of(upstream)
                assert prompt.startswith("You help.")
                assert (REFUND in prompt) == (now[episode] == "v2")
            assert all(ask(gateway, episode)[1] == version for episode, version in now.items())
        found = [episode for episode, version in now.items() if version == "v2"]
        share = serving.ramp.share
        deviation = math.sqrt(share * (1.0 - share) / EPISODES)
        assert found
        assert len(found) / EPISODES == pytest.approx(share, abs=4.5 * deviation)
        assert all(now[episode] == "v2" for episode, version in met.items() if version == "v2")
        met, serving = now, deployments.advance("v2", ADA)
    deployments.roll_back("v2", ADA)
    write()
    with started() as gateway:
        assert {ask(gateway, episode)[1] for episode in met} == {"v1"}


@pytest.mark.usefixtures("folder")
def test_texts_arrive_as_they_are_once(upstream: ModelUpstream) -> None:
    serving = Serving(live="v2", states={"v2": "live"})
    write_gateway_files(Path("gateway"), gateway_files(serving, {"v2": HOSTILE}, "support", "words"))
    with started() as gateway:
        ask(gateway)
        assert prompt_of(upstream) == "\n\n".join(("You help.", *HOSTILE))
        ask(gateway, system=None)
        assert prompt_of(upstream) == "\n\n".join(HOSTILE)
        there = f"{{{{ 7 * 7 }}}} {HOSTILE[1]}"
        ask(gateway, system=there)
        assert prompt_of(upstream) == "\n\n".join((there, HOSTILE[0], HOSTILE[2]))


def test_where_the_model_fails_the_gateway_asks_with_the_other_version_too(
    bus: Bus, upstream: ModelUpstream, folder: Path
) -> None:
    (folder / "gateway" / "users.toml").write_text(USERS.format(name="busy", url=upstream.url))
    deploy(bus, "v2")
    write()
    error = importlib.import_module("tensorzero").TensorZeroError
    with started() as gateway, pytest.raises(error, match="All variants failed"):
        ask(gateway)
    prompts = [json.loads(body)["messages"][0]["content"] for _, _, body in upstream.requests]
    assert {REFUND in prompt for prompt in prompts} == {True, False}
