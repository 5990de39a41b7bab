"""Settings and arms of live RL, from ``live.toml``, the environment and arguments."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import ROOT
from support.builders import make_experience

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.production.live.config import LiveConfig, load_live_config
from pytest_tfgrpo.production.live.settings import PREFIX, TABLE
from pytest_tfgrpo.suite.packs import load_pack

POINT = """
[points.config]
default = "bare"

[points.config.arms.bare]

[points.config.arms.warm]
temperature = 0.7
limits = {turns = 4, tools = ["search", "read"]}
"""


def load(folder: Path, text: str, environ: Mapping[str, str] = {}, **arguments: object) -> LiveConfig:
    (folder / "live.toml").write_text(text)
    return load_live_config(folder / "live.toml", arguments, environ)


def test_the_defaults_are_those_of_the_specification(tmp_path: Path) -> None:
    settings = load(tmp_path, "").settings
    assert settings.enabled is False
    assert (settings.update_interval, settings.max_rollouts_per_update) == (8, 64)
    assert (settings.max_failure_streak, settings.max_blocked) == (3, 3)
    assert (settings.inference, settings.outcome_wait_s, settings.text) == ("trace_v2", 0.0, "redacted")


def test_an_argument_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    text = "[settings]\nenabled = true\nupdate_interval = 2\nnamespace = 'file'\ntext = 'none'\n"
    environ = {PREFIX + "UPDATE_INTERVAL": "3", PREFIX + "NAMESPACE": "shop", "TFGRPO_SEED": "x"}
    found = load(tmp_path, text, environ, namespace="mine").settings
    assert (found.enabled, found.update_interval, found.namespace, found.text) == (True, 3, "mine", "none")


def test_every_setting_can_be_set_in_the_environment_and_is_checked_there(tmp_path: Path) -> None:
    for key in TABLE.keys() - {"config"}:
        with pytest.raises(SettingError, match=f"environment {PREFIX}{key.upper()}"):
            load(tmp_path, "", {PREFIX + key.upper(): " "})


@pytest.mark.parametrize("spelled", ["1", "true", "YES", "on"])
def test_truth_values_are_spelled_as_everywhere(tmp_path: Path, spelled: str) -> None:
    assert load(tmp_path, "", {PREFIX + "ENABLED": spelled}).settings.enabled
    with pytest.raises(SettingError, match="live_rl_enabled must be one of 1, true"):
        load(tmp_path, "", {PREFIX + "ENABLED": "maybe"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[settings]\nupdate_intervall = 2",
            "'update_intervall' is no setting; did you mean 'update_interval'",
        ),
        (
            "[settings]\nupdate_interval = 0",
            r"must be an integer .* not 0 .*live.toml: \[settings\] update_int",
        ),
        ("[settings]\ninference = 'outcome_v2'", "inference must be one of trace_v1, .*live.toml"),
        (
            "[settings]\ninference = 'python:rewards'",
            "inference must be one of .*, or python:module:callable",
        ),
        (
            "[settings]\nmax_blocked = 33",
            r"must be an integer .* not 33 .*live.toml: \[settings\] max_blocked",
        ),
        ("[settings]\nconfig = 'other.toml'", "config names this very file"),
        ("[settings]\nenabled = 2020-01-01", "live_rl_enabled must be one of"),
        ("settings = 3", "settings: must be a table, not 3"),
        ("[point.config]", "live.toml: point: unknown key; did you mean 'points'"),
        ("[points.config]", r"points.config.arms: a point has 1 to 32 arms, not 0"),
        ("[points.config]\n[points.config.arms.a]", "points.config.default: None is no arm.*name one of a"),
        (POINT.replace('"bare"', '"bear"'), "points.config.default: 'bear' is no arm.*did you mean 'bare'"),
        (POINT.replace("default", "standard"), "points.config.standard: unknown key"),
        (POINT + "seen = 2020-01-01", "points.config.arms.warm.seen: .* is no text, number or truth value"),
        (POINT + "x = {y = [nan]}", "points.config.arms.warm.x.y.0: nan is no text"),
        (POINT.replace("arms.warm", "arms.'a b'"), r"points.config.arms.a b: a name must match"),
        (
            "[settings]\n\n[settings]",
            r"live.toml: line 3 begins the section \[settings\] again; write its keys where it begins first",
        ),
        (POINT + "a = 1\na = 2", "cannot read .*live.toml: Cannot overwrite a value"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        load(tmp_path, text)


def test_unknown_names_are_errors_wherever_they_stand(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="variable TFGRPO_LIVE_RL_INTERVAL; did you mean 'TFGRPO_LIVE_RL_"):
        load(tmp_path, "", {PREFIX + "INTERVAL": "3"})
    with pytest.raises(SettingError, match="argument 'interval' is no setting"):
        load(tmp_path, "", interval=3)


def test_a_named_file_must_exist_and_the_default_one_need_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_live_config(None, {}, {}).points == {}
    for path, environ in ((tmp_path / "no.toml", {}), (None, {PREFIX + "CONFIG": "no.toml"})):
        with pytest.raises(SettingError, match=r"no.toml does not exist; write one with `tfgrpo live init`"):
            load_live_config(path, {}, environ)


def test_the_store_lies_beside_the_file(tmp_path: Path) -> None:
    assert load(tmp_path, "").store == tmp_path / "live.db"
    assert load(tmp_path, "[settings]\nstore = 'none'").store is None


def test_an_arm_is_the_stamp_of_its_values_and_of_the_content_of_its_files(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "prompt-packs", tmp_path / "packs")
    save_library(tmp_path / "library.json", of(()))
    files = "library = 'library.json'\nprompt_pack = 'packs'\n"
    first = load(tmp_path, POINT + files, enabled=True).points["config"]
    assert set(first.arms) == {"bare", "warm"}
    assert len(set(first.stamps.values())) == 2

    (tmp_path / "library.json").rename(tmp_path / "moved.json")
    moved = load(tmp_path, POINT + files.replace("library.json", "moved.json"), enabled=True).points["config"]
    assert moved.stamps == first.stamps

    save_library(tmp_path / "moved.json", of([make_experience()]))
    changed = load(tmp_path, POINT + files.replace("library.json", "moved.json"), enabled=True)
    assert changed.points["config"].stamps["warm"] != first.stamps["warm"]
    assert changed.points["config"].stamps["bare"] == first.stamps["bare"]

    warmer = load(tmp_path, POINT.replace("0.7", "0.8"), enabled=True).points["config"]
    assert warmer.stamps["warm"] != load(tmp_path, POINT, enabled=True).points["config"].stamps["warm"]


@pytest.mark.parametrize(
    ("key", "value"), [("library", "'no.json'"), ("prompt_pack", "'no'"), ("library", 3), ("library", "''")]
)
def test_a_file_that_cannot_be_loaded_is_named_while_it_could_be_used(
    tmp_path: Path, key: str, value: object
) -> None:
    with pytest.raises(SettingError, match=f"live.toml: points.config.arms.warm.{key}: "):
        load(tmp_path, f"{POINT}{key} = {value}", enabled=True)
    assert set(load(tmp_path, f"{POINT}{key} = {value}").points["config"].arms) == {"bare"}


def test_a_pack_of_prompts_may_be_named_alone(tmp_path: Path) -> None:
    pack = load_pack(ROOT / "prompt-packs" / "calendar")
    shutil.copytree(ROOT / "prompt-packs" / "calendar", tmp_path / "calendar")
    found = load(tmp_path, POINT + "prompt_pack = 'calendar'", enabled=True).points["config"].arms["warm"]
    assert {name: one.stamp for name, one in found.packs.items()} == {pack.domain: pack.stamp}
    (tmp_path / "none").mkdir()
    with pytest.raises(SettingError, match="none is neither a prompt pack nor a folder of them"):
        load(tmp_path, POINT + "prompt_pack = 'none'", enabled=True)


def test_a_point_has_as_many_arms_as_is_said(tmp_path: Path) -> None:
    def point(arms: int) -> str:
        names = "".join(f"[points.config.arms.a{n}]\n" for n in range(arms))
        return f"[points.config]\ndefault = 'a0'\n{names}"

    assert len(load(tmp_path, point(32), enabled=True).points["config"].arms) == 32
    with pytest.raises(SettingError, match="a point has 1 to 32 arms, not 33"):
        load(tmp_path, point(33))
