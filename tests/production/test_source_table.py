"""The table of docs/feedback-loop-source.md: each section has a module and a test, and both are there."""

import re

import pytest
from support import ROOT
from support.documentation import text_of

PAGE = ROOT / "docs" / "feedback-loop-source.md"
ROWS = [
    [cell.strip() for cell in row.strip("|").split("|")]
    for row in text_of(PAGE).splitlines()
    if row.startswith("| ") and not row.startswith(("| section", "| ---"))
]


def test_the_table_has_rows_and_no_section_twice() -> None:
    sections = [row[0] for row in ROWS]
    assert len(sections) == len(set(sections)) >= 30


@pytest.mark.parametrize(("section", "modules", "tests"), ROWS, ids=[row[0] for row in ROWS])
def test_each_section_has_modules_and_tests_that_are_there(section: str, modules: str, tests: str) -> None:
    for cell, folder in ((modules, "pytest_tfgrpo"), (tests, "tests")):
        named = re.findall(r"\[([^]]+)\]\(\.\./([^)]+)\)", cell)
        assert named, section
        for name, path in named:
            assert path.startswith(f"{folder}/")
            assert path.endswith(f"/{name}")
            text = (ROOT / path).read_text(encoding="utf-8")
            assert folder != "tests" or re.search(r"^(async )?def test_", text, re.MULTILINE), path
