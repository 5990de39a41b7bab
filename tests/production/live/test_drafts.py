"""Texts of runs in a draft of a suite."""

import pytest
import yaml

from pytest_tfgrpo.production.live.drafts import _scalar


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "a: b # c",
        'quo"ted \\ back',
        "two\nlines\ttab",
        "\u200b zero width",
        "\U000e0001 a tag",
        "\x85\u2028",
    ],
)
def test_a_text_is_one_line_of_yaml_and_reads_back_as_it_was(text: str) -> None:
    written = _scalar(text)
    assert written.isprintable()
    assert yaml.safe_load(written) == text


def test_what_has_no_picture_is_written_by_its_number() -> None:
    assert _scalar("\u200b\U000e0001\U0001f600") == '"\\u200b\\U000e0001\U0001f600"'
