"""What settings of the loop may be, and what each says of a value that it cannot be."""

from typing import Any

import pytest

from pytest_tfgrpo.production.bus.settings import parse_options
from pytest_tfgrpo.production.loop_setting import parse_folder, parse_words
from pytest_tfgrpo.production.rewards.components import WEIGHTS
from pytest_tfgrpo.production.rewards.settings import parse_weights
from pytest_tfgrpo.production.training.settings import (
    TRIGGERS,
    parse_checkpoint_args,
    parse_domains,
    parse_safety,
    parse_triggers,
)


@pytest.mark.parametrize("value", ["efficiency=0.3, style = 0", {"efficiency": 0.3, "style": 0}])
def test_a_weight_that_is_not_named_keeps_its_default(value: Any) -> None:
    assert parse_weights(value) == {**WEIGHTS, "efficiency": 0.3, "style": 0.0}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "must be weights such as efficiency=0.3, style=0.1, each once"),
        ("style=0.1, style=0.2", "each once"),
        ({"Style": 0.1}, "must name components in lower case"),
        ("style", "from 0 to 1 such as .*; style has none"),
        ({"style": None}, "; style has none"),
        ({"style": True}, "; style has none"),
        ({"efficiency": 0.1, "style": 1.01}, "; style has none"),
        ({"style": -0.1}, "; style has none"),
        ({"style": "nan"}, "; style has none"),
        ({"style": 10**400}, "; style has none"),
        (dict.fromkeys(WEIGHTS, 0), "must leave a weight above 0"),
    ],
)
def test_weights_that_are_none_are_named(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_weights(value)


def test_weights_may_be_0_and_1() -> None:
    found = parse_weights({**dict.fromkeys(WEIGHTS, 0), "mine_2": 1})
    assert {name for name, weight in found.items() if weight} == {"mine_2"}


@pytest.mark.parametrize("value", ["none", ["none"]])
def test_none_are_no_triggers_and_no_safety_suites(value: Any) -> None:
    assert parse_triggers(value) == parse_safety(value) == ()


def test_triggers_and_safety_suites_are_names_each_once() -> None:
    one, two = TRIGGERS[:2]
    assert parse_triggers(f"{two}, {one}") == parse_triggers([two, one, two]) == (two, one)
    assert parse_safety(["a", "b", "a"]) == ("a", "b")
    for odd in ("", f"{one}, other", ["none", one]):
        with pytest.raises(ValueError, match=f"must be some of {one}, .*, or none"):
            parse_triggers(odd)
    with pytest.raises(ValueError, match="must be packaged, names of suites, folders, or none"):
        parse_safety(" ")


@pytest.mark.parametrize("value", ["[1]", "7", {"a": []}, {"a": None}, '{"a": {}}'])
def test_options_of_the_bus_are_a_table_of_plain_values(value: Any) -> None:
    with pytest.raises(ValueError, match="must be names with texts, numbers or truth values"):
        parse_options(value)


def test_options_of_the_bus_may_be_json() -> None:
    said = '{"user": "a", "connect_timeout": 2.5, "max": 1, "no_echo": true}'
    assert parse_options(said) == {"user": "a", "connect_timeout": 2.5, "max": 1, "no_echo": True}
    for odd in ("{", "[" * 100_000):
        with pytest.raises(ValueError, match="must be a JSON object"):
            parse_options(odd)


def test_arguments_are_read_as_a_shell_reads_them() -> None:
    assert parse_words("run 'a b' --n=3") == parse_words(["run", "a b", "--n=3"]) == ("run", "a b", "--n=3")
    assert parse_words("") == parse_words([]) == ()
    assert parse_words(["--n", 3]) == ("--n", "3")
    with pytest.raises(ValueError, match="must be arguments as a shell reads them: No closing quotation"):
        parse_words("run 'a")
    with pytest.raises(ValueError, match="must be arguments, or empty"):
        parse_words("  ")


def test_a_folder_is_a_path_or_empty() -> None:
    assert (parse_folder("a b"), parse_folder("")) == ("a b", "")
    with pytest.raises(ValueError, match="must be a folder, or empty"):
        parse_folder(" ")


@pytest.mark.parametrize(
    "value", ["order helper=orders, general = shop", {"order helper": "orders", "general": "shop"}]
)
def test_domains_of_a_suite_are_by_name_each_once(value: Any) -> None:
    assert parse_domains(value) == {"order helper": "orders", "general": "shop"}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "each name once"),
        ("a=b, a=c", "each name once"),
        ("=b", "letters, digits"),
        ("a=", "letters, digits"),
        ("a", "letters, digits"),
        ("a=" + "b" * 65, "letters, digits"),
        ({"a": "tfgrpo.x"}, "letters, digits"),
        ({"": "b"}, "letters, digits"),
    ],
)
def test_domains_that_are_none_are_named(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_domains(value)


def test_arguments_that_run_a_checkpoint_have_its_place_or_there_are_none() -> None:
    assert parse_checkpoint_args("") == ()
    assert parse_checkpoint_args("-q --model={checkpoint}") == ("-q", "--model={checkpoint}")
    with pytest.raises(ValueError, match=r"must have \{checkpoint\} in one of them"):
        parse_checkpoint_args("--model=x")
