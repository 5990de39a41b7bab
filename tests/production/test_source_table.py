"""The table of docs/feedback-loop-source.md: each section has a module and a test, and both are there."""

import pytest
from support.source_table import check_row, rows_of

ROWS = rows_of("feedback-loop-source.md")


def test_the_table_has_rows_and_no_section_twice() -> None:
    sections = [row[0] for row in ROWS]
    assert len(sections) == len(set(sections)) >= 30


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_section_has_modules_and_tests_that_are_there(row: list[str]) -> None:
    check_row(*row)
