"""What the tests of test_documentation.py share with the slow ones."""

from pathlib import Path

from support import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
]


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")
