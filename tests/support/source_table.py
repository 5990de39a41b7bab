"""Tables of the docs that name a module and a test for each section of a document that is implemented."""

from __future__ import annotations

import re

from support import ROOT
from support.documentation import text_of


def rows_of(page: str) -> list[list[str]]:
    """Return the cells of each row of the table whose first column is the section."""
    table = text_of(ROOT / "docs" / page).partition("\n| section |")[2].partition("\n\n")[0]
    rows = [row for row in table.splitlines()[2:] if row.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def check_row(section: str, modules: str, tests: str) -> None:
    """Check that the modules and tests of a row are there."""
    for cell, folder in ((modules, "pytest_tfgrpo"), (tests, "tests")):
        named = re.findall(r"\[([^]]+)\]\(\.\./([^)]+)\)", cell)
        assert named, section
        for name, path in named:
            assert path.startswith(f"{folder}/")
            assert path.endswith(f"/{name}")
            text = (ROOT / path).read_text(encoding="utf-8")
            assert folder != "tests" or re.search(r"^(async )?def test_", text, re.MULTILINE), path
