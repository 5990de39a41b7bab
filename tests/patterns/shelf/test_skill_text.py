"""Skills as files."""

from support.patterns.shelves import make_pattern

from pytest_tfgrpo.patterns.shelf.skill_text import is_as_written, is_ours, skill_text


def test_a_skill_is_as_written_with_the_line_ends_of_windows() -> None:
    text = skill_text(make_pattern()).replace("\n", "\r\n")
    assert is_ours(text)
    assert is_as_written(text)
