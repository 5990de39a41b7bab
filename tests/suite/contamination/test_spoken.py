import pytest

from pytest_tfgrpo.suite.contamination.spoken import spoken


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("seven", ["7"]),
        ("forty-eight thousand two hundred and thirteen", ["48213"]),
        ("hundred and one million thousand", ["101001000"]),
        ("three hundred hundred", ["300"]),
        ("nineteen forty-seven", ["19", "1947"]),
        ("twenty seven and seven", ["27", "2707"]),
        ("and two and cats and three", ["2", "3"]),
        ("one two three four", ["1234", "1", "102", "3", "304"]),
        ("one thousand nineteen forty", ["1019", "40"]),
        ("two million five six", ["2000005", "6"]),
        ("null eins zwei drei", ["123"]),
        ("oh oh oh", []),
        ("zero zero zero zero", ["0"]),
        ("cats", []),
    ],
)
def test_numbers_in_words_are_read(text: str, numbers: list[str]) -> None:
    assert list(spoken(text)) == numbers
