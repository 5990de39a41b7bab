"""Settings of the feedback loop, from ``loop.toml`` and the environment."""

import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.settings import unknown_variables
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.production.config import LoopConfig, config_lines, load_loop_config
from pytest_tfgrpo.production.loop_file import loop_file_text, write_key
from pytest_tfgrpo.production.loop_setting import PREFIX
from pytest_tfgrpo.production.rewards.rewards import WEIGHTS
from pytest_tfgrpo.production.settings import LOOP_TABLE

TOKEN = "a-token-of-the-tests-0123"


def load(folder: Path, text: str, environ: Mapping[str, str] = {}) -> LoopConfig:
    (folder / "loop.toml").write_text(text)
    return load_loop_config(folder / "loop.toml", environ)


def test_the_file_that_init_writes_leaves_every_default(tmp_path: Path) -> None:
    found = load(tmp_path, loop_file_text())
    assert found.settings.rewards.weights == WEIGHTS
    assert set(found.origins.values()) == {"default"}
    assert found.bus_spec == f"embedded:{tmp_path / 'loop-bus.db'}"
    for line in loop_file_text().splitlines():
        assert len(line) <= 110
    lines = loop_file_text().replace('token = ""', f"token = '{TOKEN}'").splitlines()
    set_all = "\n".join(re.sub(r"^# (?=[a-z_]+ = )", "", line) for line in lines)
    same = load(tmp_path, set_all)
    assert replace(same.settings, service=replace(same.settings.service, token=None)) == found.settings
    assert "default" not in same.origins.values()


def test_a_variable_beats_the_file_and_both_are_named(tmp_path: Path) -> None:
    text = f"[service]\nport = 1\nmax_body_mb = 2\ntoken = '{TOKEN}'\n[rewards.weights]\nstyle = 0.5\n"
    found = load(tmp_path, text, {PREFIX + "SERVICE_PORT": "3", PREFIX + "REWARDS_WEIGHTS": "efficiency=0"})
    assert (found.settings.service.port, found.settings.service.max_body_mb) == (3, 2)
    assert found.settings.rewards.weights == {**WEIGHTS, "efficiency": 0.0}
    assert found.origins["service.port"] == "environment TFGRPO_LOOP_SERVICE_PORT"
    assert found.origins["service.token"] == str(tmp_path / "loop.toml")


def test_domains_of_the_suite_are_a_table_or_a_text_and_are_shown(tmp_path: Path) -> None:
    found = load(tmp_path, "[training.domains]\n'order helper' = 'orders'\ngeneral = 'shop'")
    assert found.settings.training.domains == {"order helper": "orders", "general": "shop"}
    same = load(tmp_path, "", {PREFIX + "TRAINING_DOMAINS": "order helper=orders, general = shop"})
    assert same.settings.training.domains == found.settings.training.domains
    assert any(
        one.split()[:3] == ["training.domains.order", "helper", "orders"] for one in config_lines(found)
    )
    for text in ("orders", "a=b, a=c", "a="):
        with pytest.raises(SettingError, match=r"training\.domains must"):
            load(tmp_path, "", {PREFIX + "TRAINING_DOMAINS": text})


def test_names_of_users_are_a_list_or_a_text_with_commas_and_are_shown(tmp_path: Path) -> None:
    found = load(tmp_path, "[privacy]\nuser_attributes = ['customer.id', 'member-ref']")
    assert found.settings.privacy.user_attributes == ("customer.id", "member-ref")
    same = load(tmp_path, "", {PREFIX + "PRIVACY_USER_ATTRIBUTES": "customer.id, member-ref"})
    assert same.settings.privacy.user_attributes == ("customer.id", "member-ref")
    shown = {line.split()[0]: line for line in config_lines(found)}
    assert "customer.id, member-ref" in shown["privacy.user_attributes"]
    assert (
        "none"
        in {line.split()[0]: line for line in config_lines(load(tmp_path, ""))}["privacy.user_attributes"]
    )


def test_every_setting_is_in_the_schema_and_can_be_set_in_the_environment(tmp_path: Path) -> None:
    sections = load_schema("loop-file")["properties"]
    assert [f"{name}.{key}" for name in sections for key in sections[name]["properties"]] == list(LOOP_TABLE)
    for row in LOOP_TABLE.values():
        with pytest.raises(SettingError, match=f"^environment {row.env}: {row.name} must"):
            load(tmp_path, "", {row.env: " "})


def test_no_secret_is_shown_in_lines_or_errors(tmp_path: Path) -> None:
    text = f"[service]\ntoken = '{TOKEN}'\n[bus]\nurl = 'nats:nats://me:{TOKEN}@bus.example:4222'\n"
    shown = "\n".join(config_lines(load(tmp_path, text + f"options = {{password = '{TOKEN}'}}\n")))
    assert TOKEN not in shown
    assert "nats:nats://...@bus.example:4222" in shown
    assert "bus.options.password" in shown
    for wrong in ("token = 31415926535", "token = 'hunter2'", "token = 'caf\\u00e9-31415926535'"):
        with pytest.raises(SettingError, match="token") as caught:
            load(tmp_path, f"[service]\n{wrong.replace(chr(39), chr(34))}")
        assert not {"31415926535", "hunter2"} & set(str(caught.value).replace("-", " ").split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[servise]", "loop.toml: servise: unknown key 'servise'; did you mean 'service'"),
        ("[service]\nprot = 1", "loop.toml: service.prot: unknown key 'prot'; did you mean 'port'"),
        ("[service]\nport = '1'", "loop.toml: service.port: '1' is not of type integer"),
        ("[service]\nport = 65536", "loop.toml: service.port: 65536"),
        ("[assembler]\nidle_s = nan", "loop.toml: assembler.idle_s must be a number between 0.1 and 86400"),
        ("[bus]\nurl = 'redis:x'", "loop.toml: bus.url must be embedded:<path> or nats:<url>"),
        (
            "[alerts]\ncommand = 'page'",
            r"alerts.command: does not fit; .*such as \[\"./page-me\", \"--now\"",
        ),
        ("[bus.options]\nservers = ['a']", "loop.toml: bus.options.servers: does not fit"),
        (
            "[privacy]\nuser_attributes = 'customer.id'",
            "loop.toml: privacy.user_attributes: .* is not of type array",
        ),
        ("[privacy]\nuser_attributes = ['id']", "loop.toml: privacy.user_attributes.0: 'id' is too short"),
        (
            "[privacy]\nuser_attributes = ['a b.c']",
            "loop.toml: privacy.user_attributes must be up to 100 names",
        ),
        ("[rewards.weights]\nStyle = 0.1", "loop.toml: rewards.weights: .*Style"),
        ("[training.domains]\na = 2", "loop.toml: training.domains.a: 2 is not of type"),
        ("[training.domains]\na = 'b c'", "loop.toml: training.domains.a: 'b c' does not match: 1 to 64"),
        ("[rewards.weights]\nstyle = 2", "loop.toml: rewards.weights.style: 2 is greater"),
        ("[rewards]\nweights = 1979-05-27", "loop.toml: rewards.weights: .* is not of type object"),
        (
            "[training]\ncheckpoint_args = ['--tfgrpo-actor=openai:x']",
            r"loop.toml: training.checkpoint_args must have \{checkpoint\} in one of them",
        ),
        ("[view]\npath = ", "cannot read .*loop.toml"),
        (
            "[view]\n\n[proxy]\n\n[proxy]\nupstream = 'http://x/v1'",
            r"loop.toml: line 5 begins the section \[proxy\] again; write its keys where it begins first",
        ),
        (
            "[rewards]\nweights = {task_completion=0, efficiency=0, code_quality=0, user_feedback=0}",
            "loop.toml: rewards.weights must leave a weight above 0",
        ),
    ],
)
def test_a_mistake_names_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        load(tmp_path, text)


def test_an_unknown_variable_is_an_error_here_and_nothing_to_pytest(tmp_path: Path) -> None:
    with pytest.raises(
        SettingError, match="TFGRPO_LOOP_SERVICE_PROT; did you mean 'TFGRPO_LOOP_SERVICE_PORT'"
    ):
        load(tmp_path, "", {PREFIX + "SERVICE_PROT": "1"})
    assert unknown_variables({PREFIX + "SERVICE_PROT": "1"}) == []


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"none\.toml does not exist; write one with `tfgrpo loop init`"):
        load_loop_config(None, {PREFIX + "CONFIG": str(tmp_path / "none.toml")})
    with pytest.raises(SettingError, match="TFGRPO_LOOP_CONFIG is empty"):
        load_loop_config(None, {PREFIX + "CONFIG": ""})


def test_a_key_is_for_its_owner_and_never_replaced(tmp_path: Path) -> None:
    config = load(tmp_path, "")
    with pytest.raises(SettingError, match=r"key_file \(default\): there is no key .*loop.key.*loop init"):
        config.key()
    assert write_key(config.key_path)
    key = config.key()
    assert len(key) == 32
    assert stat.S_IMODE(config.key_path.stat().st_mode) == 0o600
    assert not write_key(config.key_path)
    assert config.key() == key
    for wrong, message in (("ab", "has 1 bytes"), ("secret", "is not hexadecimal")):
        config.key_path.write_text(wrong)
        with pytest.raises(SettingError, match=message):
            config.key()


def test_certificates_become_the_tls_of_the_connection(tmp_path: Path) -> None:
    text = "[bus.options]\nuser = 'me'\ntls_ca_file = 'ca.pem'\n"
    with pytest.raises(SettingError, match=r"bus\.options: tls_ca_file: "):
        load(tmp_path, text).bus_options()
    assert load(tmp_path, "[bus.options]\nuser = 'me'\n").bus_options() == {"user": "me"}
    both = "[bus.options]\ntls_cert_file = 'c.pem'\ntls_key_file = 'k.pem'\n"
    with pytest.raises(SettingError, match=r"bus\.options: tls_cert_file, tls_key_file: "):
        load(tmp_path, both).bus_options()


def test_certificates_lie_beside_the_file_and_only_those_that_are_named_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []

    class Context:
        def load_cert_chain(self, *files: object) -> None:
            read.append(files)

    context = Context()
    monkeypatch.setattr("ssl.create_default_context", lambda *, cafile: read.append(cafile) or context)
    text = "[bus.options]\nuser = 'me'\ntls_ca_file = 'ca.pem'\n"
    assert load(tmp_path, text).bus_options() == {"user": "me", "tls": context}
    text += "tls_cert_file = 'c.pem'\ntls_key_file = 'k.pem'\n"
    assert load(tmp_path, text).bus_options() == {"user": "me", "tls": context}
    ca, mine = tmp_path / "ca.pem", (tmp_path / "c.pem", tmp_path / "k.pem")
    assert read == [ca, ca, mine]


@pytest.mark.parametrize(
    ("url", "spec", "file", "public"),
    [
        ("embedded:bus.db", "embedded:{0}/bus.db", "{0}/bus.db", "embedded:bus.db"),
        ("embedded:/far/bus.db", "embedded:/far/bus.db", "/far/bus.db", "embedded:/far/bus.db"),
        ("nats://a:1", "nats://a:1", None, "nats://a:1"),
        (
            "nats://ann:s3cret@a:1,nats://tok@b:2",
            "nats://ann:s3cret@a:1,nats://tok@b:2",
            None,
            "nats://...@a:1,nats://...@b:2",
        ),
    ],
)
def test_files_are_relative_to_the_folder_of_the_settings_and_no_secret_is_public(
    tmp_path: Path, url: str, spec: str, file: str | None, public: str
) -> None:
    path = tmp_path / "loop.toml"
    path.write_text(f'[bus]\nurl = "{url}"\n')
    config = load_loop_config(path, {})
    assert config.bus_spec == spec.format(tmp_path)
    assert config.bus_file == (None if file is None else Path(file.format(tmp_path)))
    assert config.public_bus == public
    assert (config.view_path.parent, config.key_path.parent) == (tmp_path, tmp_path)
