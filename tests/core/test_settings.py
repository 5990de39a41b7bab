"""Settings: one table, one rule for names, guards that hold whenever a value is set (decision 20)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.settings import (
    BY_NAME,
    TABLE,
    parse_bool,
    resolve,
    sets_gate,
    shaping,
    unknown_variables,
)


def refused(flags=(), environ=(), ini=()) -> str:
    with pytest.raises(SettingError) as error:
        resolve(dict(flags), dict(environ), dict(ini))
    return str(error.value)


def test_where_nothing_is_set_each_setting_has_its_default():
    settings = resolve({}, {}, {})
    assert settings.values == {one.name: one.default for one in TABLE}
    assert not settings.learning
    assert settings.origins == {}


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.name)
def test_every_default_but_none_passes_its_own_guard(setting):
    if setting.default is not None:
        assert setting.parse(setting.default) == setting.default
    assert setting.help


def test_the_table_says_what_each_setting_shapes():
    words = {"prompts", "answers", "gate"}
    assert all(setting.shapes == ["none"] or words.issuperset(setting.shapes) for setting in TABLE)
    assert shaping("answers") == ("max_tokens", "max_steps", "tools", "command_output", "part_thoughts")
    assert {"lesson_dropout", "dev_share", "seed", "sandbox", "gate_sequential"} <= set(shaping("prompts"))
    assert {"actor", "out", "concurrency", "gate_margin"}.isdisjoint(shaping("prompts", "answers"))


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.name)
def test_a_gate_is_asked_for_by_its_settings_that_have_no_default(setting):
    asking = {"baseline", "gates", "gate_min_mean", "gate_max_errors", "gate_max_cost_per_success_usd"}
    assert sets_gate({setting.name: 1}) == (setting.name in asking)


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.name)
def test_one_rule_makes_flag_environment_and_ini_names(setting):
    assert setting.flag == "--tfgrpo-" + setting.name.replace("_", "-")
    assert setting.env == "TFGRPO_" + setting.name.upper()
    assert setting.ini == "tfgrpo_" + setting.name


def test_a_flag_beats_the_environment_which_beats_the_ini_file():
    flag, env, ini = {"seed": "1"}, {"TFGRPO_SEED": "2"}, {"seed": "3"}
    found = [resolve(f, e, i) for f, e, i in [(flag, env, ini), ({}, env, ini), ({}, {}, ini), ({}, {}, {})]]
    assert [settings["seed"] for settings in found] == [1, 2, 3, 0]
    assert [settings.origins.get("seed") for settings in found] == [
        "flag --tfgrpo-seed", "environment TFGRPO_SEED", "ini key tfgrpo_seed", None,
    ]  # fmt: skip


@pytest.mark.parametrize("value", ["0", "1", "-3", "2.5", "two", "", "1e1", True, None])
def test_a_group_size_that_is_no_integer_from_2_on_is_an_error(value):
    message = refused(flags={"group_size": value})
    assert message == f"group_size must be an integer >= 2, not {value!r} (flag --tfgrpo-group-size)"


def test_guards_hold_with_the_feature_off_and_for_values_that_a_stronger_source_overrides():
    message = refused(flags={"group_size": 4}, ini={"group_size": "0"})
    assert message == "group_size must be an integer >= 2, not '0' (ini key tfgrpo_group_size)"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("temperature_train", "2.1", "must be a number between 0 and 2"),
        ("temperature_eval", "nan", "must be a number between 0 and 2"),
        ("temperature_eval", "-0.1", "must be a number between 0 and 2"),
        ("budget_usd", "inf", "must be a number >= 0"),
        ("budget_usd", "-1", "must be a number >= 0"),
        ("experience_max_words", 33, "must be an integer between 1 and 32"),
        ("experience_max_words", 0, "must be an integer between 1 and 32"),
        ("eval_mode", "sometimes", "must be one of last_epoch, separate"),
        ("task_id", "../up", "must match [A-Za-z0-9][A-Za-z0-9._-]{0,63}; it names a folder"),
        ("task_id", "a" * 65, "must match [A-Za-z0-9][A-Za-z0-9._-]{0,63}; it names a folder"),
        ("task_id", "a\n", "must match [A-Za-z0-9][A-Za-z0-9._-]{0,63}; it names a folder"),
        ("allow_paid", "maybe", "must be one of 1, true, yes, on, 0, false, no, off"),
        ("actor", "  ", "must not be empty"),
        ("seed", "1" * 40, "must be an integer >= 0"),
    ],
)
def test_a_bad_value_is_named_with_its_key_rule_and_source(name, value, rule):
    setting = BY_NAME[name]
    assert refused(flags={name: value}) == f"{name} {rule}, not {value!r} (flag {setting.flag})"
    assert refused(environ={setting.env: str(value)}).endswith(f"(environment {setting.env})")
    assert refused(ini={name: value}).endswith(f"(ini key {setting.ini})")


def test_a_key_in_place_of_its_name_is_not_shown():
    with pytest.raises(SettingError) as error:
        resolve({}, {"TFGRPO_SANDBOX_ENV": "KEY=sk-123"}, {})
    assert "names of environment variables" in str(error.value)
    assert "sk-123" not in str(error.value)


def test_the_aliases_of_the_source_are_understood():
    settings = resolve({}, {"TFGRPO_TRAIN_TEMP": "0.9", "TFGRPO_EVAL_TEMP": "0.1"}, {})
    assert (settings["temperature_train"], settings["temperature_eval"]) == (0.9, 0.1)


def test_an_alias_may_agree_with_its_setting_and_must_not_contradict_it():
    assert (
        resolve({}, {"TFGRPO_TRAIN_TEMP": "0.9", "TFGRPO_TEMPERATURE_TRAIN": "0.90"}, {})["temperature_train"]
        == 0.9
    )
    message = refused(environ={"TFGRPO_TRAIN_TEMP": "0.9", "TFGRPO_TEMPERATURE_TRAIN": "0.8"})
    assert "TFGRPO_TEMPERATURE_TRAIN='0.8' and TFGRPO_TRAIN_TEMP='0.9' contradict" in message


def test_one_epoch_is_enough_only_when_evaluation_is_separate():
    assert "epochs must be >= 2 with eval_mode=last_epoch, not 1 (flag --tfgrpo-epochs)" in refused(
        {"epochs": 1}
    )
    assert resolve({"epochs": 1, "eval_mode": "separate"}, {}, {})["epochs"] == 1


@pytest.mark.parametrize(("value", "learning"), [("1", True), ("YES", True), ("off", False), ("0", False)])
def test_the_feature_flag_switches_grouping_on(value, learning):
    assert resolve({}, {"FEATURE_TFGRPO_GROUP": value}, {}).learning is learning
    assert resolve({}, {"FEATURE_TFGRPO_GROUP": value}, {}, learning_flag=True).learning


def test_a_feature_flag_that_is_neither_yes_nor_no_is_an_error():
    assert "FEATURE_TFGRPO_GROUP must be one of" in refused(environ={"FEATURE_TFGRPO_GROUP": "maybe"})


def test_eval_rollouts_are_five_when_learning_whatever_the_group_size_and_one_in_plain_mode():
    assert resolve({}, {}, {}, learning_flag=True).eval_rollouts == 5
    assert resolve({"group_size": 8}, {}, {}, learning_flag=True).eval_rollouts == 5
    assert resolve({"eval_rollouts": 3}, {}, {}, learning_flag=True).eval_rollouts == 3
    assert resolve({}, {}, {}).eval_rollouts == 1
    assert resolve({"eval_rollouts": 3}, {}, {}).eval_rollouts == 3


def test_variables_that_no_setting_answers_to_are_found():
    environ = {"TFGRPO_GROUPSIZE": "3", "TFGRPO_SEED": "1", "TFGRPO_LIVE_RL_ENABLED": "1", "HOME": "x"}
    assert unknown_variables(environ) == ["TFGRPO_GROUPSIZE"]


BOOLEANS = {"1": True, "true": True, "yes": True, "on": True}
BOOLEANS |= {"0": False, "false": False, "no": False, "off": False}
spelled = st.sampled_from([how(word) for word in BOOLEANS for how in (str, str.upper, str.title)])


@reaches("true", "false", "an error")
@given(spelled | st.builds("{}{}{}".format, st.sampled_from(["", " ", "x"]), spelled, st.text(max_size=2)))
def test_a_boolean_is_one_of_eight_words_and_anything_else_an_error(text):
    word = text.strip().lower()
    if word in BOOLEANS:
        reached(str(BOOLEANS[word]).lower())
        assert parse_bool(text) is BOOLEANS[word]
    else:
        reached("an error")
        with pytest.raises(ValueError, match="must be one of"):
            parse_bool(text)


numbers = st.integers(0, 9) | st.floats(0, 1) | st.integers() | st.floats()


@reaches("a number", "refused")
@given(
    st.sampled_from([s for s in TABLE if s.ini_type in ("int", "float")]),
    numbers | numbers.map(str) | numbers.map(" {} ".format) | st.text(max_size=6),
)
def test_a_number_either_parses_to_a_number_or_is_refused_by_name(setting, value):
    kind = int if setting.ini_type == "int" else float
    try:
        parsed = kind(str(value)) if isinstance(value, str) else kind(value)
    except (ValueError, OverflowError):
        parsed = None
    try:
        found = setting.parse(value)
    except ValueError:
        reached("refused")
        return
    reached("a number")
    assert found == parsed
    assert type(found) is kind
    assert abs(found) < float("inf")


def test_two_controls_need_four_rollouts_of_a_sweep() -> None:
    def resolved(rollouts: str, learning: bool) -> Any:
        flags = {"baseline_sweep": "both", "eval_rollouts": rollouts}
        return resolve(flags, {}, {}, learning_flag=learning)

    assert resolved("4", True)["baseline_sweep"] == "both"
    assert resolve({"baseline_sweep": "both"}, {}, {}, learning_flag=True)["baseline_sweep"] == "both"
    assert not resolved("3", False).learning
    with pytest.raises(
        SettingError, match=r"a quarter of the 3 rollouts early .*set eval_rollouts to at least"
    ):
        resolved("3", True)


def _rule(setting: Setting[Any]) -> str:
    try:
        setting.parse(None)
        return "any text"
    except ValueError as rule:
        return str(rule)


def test_each_setting_has_its_default_and_bounds_and_says_what_it_shapes(
    golden: Callable[[str, str], None],
) -> None:
    rows = [
        f"{one.name}: {one.ini_type}, {one.default!r}, {_rule(one)}; shapes {' '.join(one.shapes)}"
        + (f"; also {', '.join(one.aliases)}" if one.aliases else "")
        for one in TABLE
    ]
    golden("settings.txt", "\n".join([*rows, ""]))


def test_a_placebo_needs_a_baseline_sweep_where_a_run_learns() -> None:
    flags = {"placebo_sweep": "true", "baseline_sweep": "off"}
    with pytest.raises(SettingError, match=r"placebo_sweep \(flag .*\) needs a baseline sweep"):
        resolve(flags, {}, {}, learning_flag=True)
    assert resolve(flags, {}, {})["placebo_sweep"] is True
