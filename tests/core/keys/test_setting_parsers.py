"""Texts of settings that are none of a few words."""

from collections.abc import Callable
from typing import Any

import pytest

from pytest_tfgrpo.core.keys.setting_parsers import (
    choice,
    default_task_id,
    is_task_id,
    listed_values,
    parse_bool,
    parse_executor,
    parse_task_id,
    parse_text,
    parse_text_or_none,
    real,
    task_of,
    whole,
    whole_or_auto,
)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("local", "local"),
        (" process ", "process"),
        ("process:1", "process:1"),
        ("process:9999", "process:9999"),
        ("ray", "ray"),
        ("ray:head.example:6379", "ray:head.example:6379"),
        ("ray:[::1]:6379", "ray:[::1]:6379"),
    ],
)
def test_an_executor_is_named_with_its_number_or_address(text: str, parsed: str) -> None:
    assert parse_executor(text) == parsed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("local:2", "must be local, process, or process:N"),
        ("process:", "must be local, process, or process:N"),
        ("process:0", "must be local, process, or process:N"),
        ("process:10000", "must be local, process, or process:N"),
        ("ray:head", "must be ray, or ray:<host>:<port>"),
        ("ray:", "must be ray, or ray:<host>:<port>"),
        ("threads", "ray"),
    ],
)
def test_another_executor_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_executor(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop", "shop"),
        ("my shop/\u00e4", "my-shop--"),
        ("._-x", "x"),
        ("--", "suite"),
        ("", "suite"),
        ("x" * 99, "x" * 64),
    ],
)
def test_the_name_of_a_folder_is_made_fit_for_a_task_id(name: str, expected: str) -> None:
    assert default_task_id(name) == expected
    assert is_task_id(expected)


def test_the_task_of_an_agent_of_a_list_is_a_task_id_itself() -> None:
    assert task_of("x" * 64, "small") == "x" * 58 + ".small"
    assert task_of("suite", "small") == "suite.small"


@pytest.mark.parametrize(
    ("parse", "value", "parsed"),
    [
        (whole(1, 5), "1", 1),
        (whole(1, 5), " +5 ", 5),
        (whole(1, 5), 3, 3),
        (whole(-5), "-5", -5),
        (whole(0), "9" * 18, int("9" * 18)),
        (whole_or_auto(1, 5), " auto ", "auto"),
        (whole_or_auto(1, 5), "5", 5),
        (real(0, 1), "1", 1.0),
        (real(0, 1), 0, 0.0),
        (real(0), "1e3", 1000.0),
        (choice("a", "b"), "b", "b"),
        (parse_text, " a b ", "a b"),
        (parse_text_or_none, " none ", None),
        (parse_text_or_none, "None", "None"),
        (listed_values("paths"), "a, b", "a, b"),
        (listed_values("paths"), ["a", "b"], "a\nb"),
        (parse_task_id, "a" * 64, "a" * 64),
        *((parse_bool, text, True) for text in ("1", "true", " YES ", "On", True)),
        *((parse_bool, text, False) for text in ("0", "False", "no", "off", False)),
    ],
)
def test_a_value_within_its_bounds_is_read(
    parse: Callable[[Any], object], value: object, parsed: object
) -> None:
    assert parse(value) == parsed


@pytest.mark.parametrize(
    ("parse", "value", "said"),
    [
        (whole(1, 5), "0", "must be an integer between 1 and 5"),
        (whole(1, 5), "6", "must be an integer between 1 and 5"),
        (whole(0), "-1", "must be an integer >= 0"),
        (whole(0), True, "must be an integer >= 0"),
        (whole(0), "1.0", "must be an integer >= 0"),
        (whole(0), "9" * 19, "must be an integer >= 0"),
        (whole_or_auto(1, 5), "6", "must be an integer between 1 and 5, or auto"),
        (real(0, 1), "1.01", "must be a number between 0 and 1"),
        (real(0.5), "0.4", "must be a number >= 0.5"),
        (real(0), "inf", "must be a number >= 0"),
        (real(0), "nan", "must be a number >= 0"),
        (real(0), True, "must be a number >= 0"),
        (real(0), None, "must be a number >= 0"),
        (choice("a", "b"), "c", "must be one of a, b"),
        (parse_text, "  ", "must not be empty"),
        (listed_values("names"), "A=b", "must be names of environment variables"),
        (listed_values("paths"), [], "must not be empty"),
        (parse_bool, "2", "must be one of 1, true, yes, on, 0, false, no, off"),
        (parse_task_id, "a" * 65, "it names a folder"),
        (parse_task_id, ".a", "it names a folder"),
        (parse_task_id, "a/b", "it names a folder"),
        (parse_task_id, "", "it names a folder"),
    ],
)
def test_a_value_out_of_its_bounds_is_refused_with_what_it_must_be(
    parse: Callable[[Any], object], value: object, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        parse(value)
