"""Paraphrases: tasks in other words about the same data, as far as a task quotes its data or has numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.core.wire.wire import Json, leaves
from pytest_tfgrpo.suite.contamination.words import words

MIN_QUOTED = 16
"""Letters and digits that a task must quote for its data to be its own."""
MIN_NUMBERS = 3
"""Different numbers that make data too; those of one digit mean nothing."""
_QUOTED = lazy_pattern(
    r"\"([^\"]++)\"|“([^“”]++)”|„([^„“”]++)[“”]|«([^«»]++)»|(?<!`)`++([^`]++)`"
    r"|(?<!\w)'([^'\n]++)'(?!\w)|(?<!\w)‘([^‘’\n]++)’(?!\w)"
)


def numbers_of(found: Iterable[str]) -> tuple[str, ...]:
    """Return the numbers among the words of a task, sorted."""
    return tuple(sorted(word for word in found if word[0].isdigit()))


def quotations(prompt: str, given: Json) -> tuple[str, ...]:
    """Return what a task with the input `given` quotes, spelled alike and sorted; takes linear time."""
    return tuple(sorted({spelled for text in _texts(prompt, given) if (spelled := " ".join(words(text)))}))


def are_telling(numbers: tuple[str, ...], quoted: tuple[str, ...]) -> bool:
    """Return whether so much data is hardly that of another task."""
    letters = sum(character.isalnum() for text in quoted for character in text)
    return letters >= MIN_QUOTED or len({number for number in numbers if len(number) > 1}) >= MIN_NUMBERS


def _texts(prompt: str, given: Json) -> Iterator[str]:
    for match in _QUOTED.finditer(prompt):
        yield match[match.lastindex or 0]
    yield from (str(leaf) for leaf in leaves(given) if leaf is not None and not isinstance(leaf, bool))
