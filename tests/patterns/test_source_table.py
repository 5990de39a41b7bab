"""The table of docs/continuous-learning.md: each section has a module and a test, and both are there."""

import pytest
from support.source_table import check_row, rows_of

ROWS = rows_of("continuous-learning.md")


def test_the_table_has_each_section_once() -> None:
    sections = [row[0] for row in ROWS]
    assert len(sections) == len(set(sections)) >= 15


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_section_has_modules_and_tests_that_are_there(row: list[str]) -> None:
    check_row(*row)
