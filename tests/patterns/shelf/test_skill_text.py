"""Skills as files."""

from support.patterns.shelves import make_pattern

from pytest_tfgrpo.patterns.shelf.skill_text import is_as_written, is_ours, skill_text


def test_a_skill_is_as_written_with_the_line_ends_of_windows() -> None:
    text = skill_text(make_pattern()).replace("\n", "\r\n")
    assert is_ours(text)
    assert is_as_written(text)


def test_a_text_that_is_no_skill_of_ours_is_somebodys_own() -> None:
    text = skill_text(make_pattern())
    assert is_ours(text)
    for other in (
        "",
        "x\n" + text,
        text.partition("\n")[2],
        text.replace("\n---\n", "\n--\n"),
        "---\n: [\n---\n\nx",
    ):
        assert not is_ours(other)
        assert not is_as_written(other)
    assert is_ours(text + "More.\n")
    assert not is_as_written(text + "More.\n")
