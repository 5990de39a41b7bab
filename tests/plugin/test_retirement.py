"""Retirement as a user meets it: a committed library with a lesson that harms, until runs show that."""

import pytest
from support.frozen import Frozen
from support.plugin.retirement import HARMFUL, HARMLESS, SETTINGS, begin, texts
from support.project import Project


@pytest.fixture
def begun(frozen: Frozen) -> Project:
    """Return a project whose committed library does harm, after a first run that cannot show it yet."""
    return frozen(begin)


def test_without_leaving_out_by_chance_nothing_is_shown_and_nothing_retired(begun: Project) -> None:
    begun.ini(**SETTINGS | {"lesson_dropout": 0}, sample_size=60, seed=1).learn("-q")
    assert begun.report()["attribution"] is None
    assert set(texts(begun)) == {HARMFUL, HARMLESS}
