"""Sinks of ``loop.toml``, by the commands: what status says, and that forget reaches them or says why not."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.loop_events import publish, trajectory
from support.loop_sinks import audit
from support.tools import tfgrpo

from pytest_tfgrpo.cli.loop.observe import sink_roles
from pytest_tfgrpo.cli.loop.open_loop import load_config, open_configured, open_scrubber
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.production import forget as forgetting
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.config import LoopConfig
from pytest_tfgrpo.storage.event_store import BusEvent


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoopConfig:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sink_roles, "_REST_S", 0.0)
    tfgrpo("loop", "init")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://u:secret-word@127.0.0.1:{taken.getsockname()[1]}"
    text = f'[archive]\nfolder = "kept"\n[logs]\npath = "loop.log"\n[warehouse]\nurl = "{url}"\n'
    (tmp_path / "loop.toml").write_text(text)
    return load_config(None)


@pytest.fixture
def bus(config: LoopConfig) -> Iterator[Bus]:
    with closing(open_configured(config)) as opened:
        ref = open_scrubber(config).user_ref("ada")
        run = trajectory("a", user=ref, session="hers")
        roles = sink_roles.sink_roles(opened, config, "first")
        for role in roles:
            _step(role)
        publish(opened, [BusEvent(id=run.id, subject=run.subject, time=utc_now(), data=run.data)])
        for role in roles:
            role.close()
        for role in sink_roles.sink_roles(opened, config, "second"):
            _step(role)
            role.close()
        opened.publish([audit("forget", what="user", ref=ref, actor="me", removed={})])
        yield opened


def _step(role: sink_roles.SinkFollower) -> None:
    try:
        role.step()
    except StoreError:
        if role.name != "warehouse":
            raise


def test_forget_reaches_the_archive_and_says_that_the_warehouse_waits(
    bus: Bus, config: LoopConfig, tmp_path: Path
) -> None:
    assert json.loads((tmp_path / "loop.log").read_text())["kind"] == "collection"
    assert len(list((tmp_path / "kept").glob("*.gz"))) == 1
    done, waiting = sink_roles.forget_in_sinks(bus, config, "me")
    assert done == ["archive"]
    assert list((tmp_path / "kept").glob("*.gz")) == []
    assert list(waiting) == ["warehouse"]
    assert "refused" in waiting["warehouse"]
    assert sink_roles.forget_in_sinks(bus, config, "me")[0] == []  # nothing is left to do there


def test_forget_ends_with_an_error_where_a_sink_still_has_rows(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "_PAUSE_S", 0.0)
    said = tfgrpo("loop", "forget", "--user", "ada", code=1)
    assert "archive still has" not in said
    assert "warehouse still has rows of u-" in said
    assert "a service removes them once it can; `tfgrpo loop status`" in said


def test_status_says_why_a_sink_waits(bus: Bus) -> None:
    sink_roles.forget_in_sinks(bus, load_config(None), "me")
    text = " ".join(tfgrpo("loop", "status").split())
    assert "archive up to date; nobody holds its lease" in text
    assert "logs up to date; nobody holds its lease" in text
    assert "warehouse 1 events behind; nobody holds its lease waits since 20" in text
    assert "still has rows of 1 that are to be forgotten" in text
    found = json.loads(tfgrpo("loop", "status", "--json"))["sinks"]
    assert (found["warehouse"]["to_forget"], found["archive"]["to_forget"]) == (1, 0)
    assert "secret-word" not in text + json.dumps(found) + tfgrpo("loop", "config")


def test_a_sink_that_another_service_fills_or_that_is_not_named_is_waited_for(
    bus: Bus, config: LoopConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_roles, "PATIENCE_S", 0.02 - config.settings.evaluator.lease_s)
    other = next(role for role in sink_roles.sink_roles(bus, config, "other") if role.name == "archive")
    assert other._lease.hold()
    waiting = sink_roles.forget_in_sinks(bus, config, "me")[1]
    assert waiting["archive"] == "another service has its lease"
    other.close()
    (tmp_path / "loop.toml").write_text("")
    waiting = sink_roles.forget_in_sinks(bus, load_config(None), "me")[1]
    assert waiting["archive"] == sink_roles.NOBODY


@pytest.mark.parametrize(
    "url",
    [
        "clickhouse:8123",
        "http://",
        "ftp://host",
        "http://host/a/b",
        "http://h:x",
        "http://h/a?b",
        "http://h/a#b",
    ],
)
def test_a_url_that_names_no_server_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.toml").write_text(f'[warehouse]\nurl = "{url}"\n')
    assert "warehouse.url must be a URL such as http://host:8123/database" in tfgrpo("loop", "config", code=1)
