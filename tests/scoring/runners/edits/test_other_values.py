"""Other values in the place of literals."""

import pytest

from pytest_tfgrpo.scoring.runners.edits import other_values
from pytest_tfgrpo.scoring.runners.edits.other_values import ALPHABETS, with_other


@pytest.mark.parametrize("letter", ["a", "B", "z", "E", "7"])
def test_a_letter_or_digit_becomes_any_other_of_its_kind(
    monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    offered: list[str] = []

    class First:
        def choice(self, letters: str) -> str:
            offered.append(letters)
            return letters[0]

    monkeypatch.setattr(other_values, "_random", First())
    found = with_other(f"x{letter}y", 1)
    (kind,) = (alphabet for alphabet in ALPHABETS if letter in alphabet)
    assert sorted([*offered[0], letter]) == sorted(kind)
    assert found == f"x{offered[0][0]}y"
