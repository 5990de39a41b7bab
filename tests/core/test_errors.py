"""What is said of errors that are not ours."""

import pytest

from pytest_tfgrpo.core.errors import describe


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "said"),
    [(KeyError("a"), "KeyError: 'a'"), (TimeoutError(), "TimeoutError"), (Unspeakable(), "Unspeakable")],
)
def test_an_error_is_told_by_its_type_and_its_message_if_it_has_one(error: Exception, said: str) -> None:
    assert describe(error) == said
