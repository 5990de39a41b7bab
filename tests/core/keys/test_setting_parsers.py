"""Texts of settings that are none of a few words."""

import pytest

from pytest_tfgrpo.core.keys.setting_parsers import default_task_id, is_task_id, parse_executor, task_of


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
