"""Flags and ini keys as pytest is told of them."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.settings import TABLE, resolve
from pytest_tfgrpo.plugin.start import options
from pytest_tfgrpo.plugin.start.options import declare


def test_the_help_of_a_setting_has_its_default_be_it_0_or_false() -> None:
    helps: dict[str, str] = {}
    group = SimpleNamespace(addoption=lambda flag, **given: helps.update({flag: given["help"]}))
    parser: Any = SimpleNamespace(getgroup=lambda _: group, addini=lambda *_, **__: None)
    declare(parser)
    assert helps["--tfgrpo-seed"].endswith("(default: 0)")
    assert helps["--tfgrpo-otel"].endswith("(default: False)")
    for setting in TABLE:
        assert ("(default: " in helps[setting.flag]) == (setting.default is not None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[pytest]\ntfgrpo_a = 1\ntfgrpo_b=\n  tfgrpo_c = 1\n", ["tfgrpo_a", "tfgrpo_b"]),
        ("[other]\ntfgrpo_a = 1\n[tool:pytest]\ntfgrpo_b : 1\nx_tfgrpo_c = 1", ["tfgrpo_b"]),
        (
            '[tool.pytest.ini_options] # ours\n"tfgrpo_a" = 1\naddopts = [\n  ["x"]\n]\ntfgrpo_b = 2',
            ["tfgrpo_a", "tfgrpo_b"],
        ),
        ("tfgrpo_a = 1\n# [pytest]\ntfgrpo_b = 1", []),
        ("", []),
    ],
)
def test_keys_are_read_from_the_sections_of_pytest(text: str, found: list[str]) -> None:
    assert [*options._keys(text)] == found


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], ""),
        (["--tfgrpo", "--tfgrpo-", "--tfgrpo=1", "--other-acter", "a--tfgrpo-acter"], ""),
        (["--tfgrpo-resume", "--tfgrpo-dry-run", "--tfgrpo-group-size=3", "--tfgrpo-xyzzy"], ""),
        (["--tfgrpo-prices=x"], "unknown flag '--tfgrpo-prices'; did you mean '--tfgrpo-models'?"),
        (["--tfgroup"], "unknown flag '--tfgroup'; did you mean '--tfgrpo'?"),
        (["--tfgrpo-acter=x"], "unknown flag '--tfgrpo-acter'; did you mean '--tfgrpo-actor'?"),
        (["tests", "--tfgrpo-dry-rum"], "unknown flag '--tfgrpo-dry-rum'; did you mean '--tfgrpo-dry-run'?"),
    ],
)
def test_a_flag_that_is_nearly_one_is_refused_and_others_may_be_somebody_elses(
    args: list[str], message: str
) -> None:
    if not message:
        options.refuse_misspelt(args)
        return
    with pytest.raises(pytest.UsageError) as refusal:
        options.refuse_misspelt(args)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], ""),
        (["--", "--tfgrpo-actor"], ""),
        (["--tfgrpo-actor=offline", "--tfgrpo-actor", "offline", "--tfgrpo-seed=1"], ""),
        (["--tfgrpo-seed=1", "--tfgrpo-seed=2", "--tfgrpo-actor=offline", "--", "--tfgrpo-actor=x"], ""),
        (["--tfgrpo-actor=offline", "--tfgrpo-actor", "nothing"], "write one: .*actor=offline,nothing$"),
        (["--tfgrpo-tools=a", "--tfgrpo-tools=mcp:b c"], r"2 times.*write one: .*=\$'a\\nmcp:b c'$"),
    ],
)
def test_a_flag_that_takes_several_is_not_given_twice(args: list[str], message: str) -> None:
    if not message:
        options.refuse_repeated(args)
        return
    with pytest.raises(pytest.UsageError, match=message):
        options.refuse_repeated(args)


class Config(SimpleNamespace):
    """As much of pytest's configuration as settings are read from."""

    def __init__(self, ini: dict[str, Any], override: Any = None, **flags: Any) -> None:
        text = "\n".join(["[pytest]", *(f"{key} = 1" for key in ini)])
        path = SimpleNamespace(read_text=lambda encoding: text)
        super().__init__(inipath=path, inicfg=ini, flags=flags | {"override_ini": override})

    def getoption(self, name: str, default: object = None) -> Any:
        return self.flags.get(name, default)

    def getini(self, name: str) -> Any:
        found = self.inicfg.get(name)
        if found is ValueError:
            raise ValueError(f"unknown configuration value: {name!r}")
        if found is TypeError:
            raise TypeError("expects a string")
        return found() if callable(found) else found


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (Config({}), (False, {})),
        (Config({}, tfgrpo=True), (True, {})),
        (Config({}, tfgrpo_dry_run=True), (False, {"allow_paid": True})),
        (Config({"tfgrpo_seed": "0", "tfgrpo_mine": "declared"}), (False, {"seed": 0})),
        (Config({"tfgrpo_seed": "1"}, tfgrpo_seed="0"), (False, {"seed": 0})),
        (Config({"other": "1"}, ["other=2", "tfgrpo_seed=3"], tfgrpo_task_id=""), "task_id"),
        (Config({"tfgrpo_sead": ValueError}), "unknown ini key 'tfgrpo_sead'"),
        (Config({"tfgrpo-seed": ValueError}), "'tfgrpo-seed'; did you mean 'tfgrpo_seed'?"),
        (Config({"tfgrpo_prices": ValueError}), "'tfgrpo_prices'; did you mean 'tfgrpo_models'?"),
        (Config({"tfgrpo_sead": ValueError}, ["tfgrpo_sead=1"]), "unknown ini key 'tfgrpo_sead'"),
        (
            Config({"tfgrpo_seed": TypeError}),
            "seed must be an integer >= 0: expects a string (ini key tfgrpo_seed)",
        ),
        (
            Config({"tfgrpo_seed": lambda: int("four")}),
            "seed must be an integer >= 0, not 'four' (ini key tfgrpo_seed)",
        ),
        (
            Config({"tfgrpo_budget_usd": lambda: float("a lot")}),
            "budget_usd must be a number >= 0, not 'a lot' (ini key tfgrpo_budget_usd)",
        ),
        (Config({"tfgrpo_seed": "x"}), "seed must be an integer >= 0, not 'x' (ini key tfgrpo_seed)"),
    ],
)
def test_settings_are_read_from_flags_and_ini_file_or_refused_by_key(
    config: Any, found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options.os, "environ", {})
    if isinstance(found, str):
        with pytest.raises(pytest.UsageError) as refusal:
            options.read(config)
        assert found in str(refusal.value)
        return
    settings = options.read(config)
    assert (settings.learning, {name: settings.values[name] for name in settings.origins}) == found


@pytest.mark.parametrize(
    ("learning", "flags", "shown"),
    [
        (False, {"actor": "offline"}, None),
        (True, {}, "tfgrpo: actor of each test, group size 2, 3 epochs, seed 0"),
        (
            True,
            {"actor": "offline", "judge": "big", "epochs": 1, "eval_mode": "separate"},
            "tfgrpo: actor offline, judge big, group size 2, 1 epoch, seed 0",
        ),
        (True, {"actor": "a=offline, b=command:b"}, "tfgrpo: agents a, b, group size 2, 3 epochs, seed 0"),
    ],
)
def test_the_head_of_a_run_that_learns_names_who_takes_part(
    learning: bool, flags: dict[str, Any], shown: str | None
) -> None:
    assert options.headline(resolve(flags, {}, {}, learning_flag=learning)) == shown
