"""What the tests of harvest/job/test_harvest.py share with the slow ones."""

from pathlib import Path
from typing import Any

from pytest_tfgrpo.harvest.job.harvest import harvest
from pytest_tfgrpo.harvest.job.plan import HarvestPlan, HarvestStep, HarvestTools
from support.repositories import Repository
from support.text_tests import TextRunner, text_plan, text_tools

TEST = "tests/test_a.py"


class Shop:
    """A repository of text tests, and a suite for it."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository(folder / "shop")
        self.suite = folder / "suite"
        self.first = self.repository.commit(
            {"a.py": "zero", TEST: "old a.py zero\n", "README.md": "x"}, "First"
        )
        self.words = "zero"
        self.tests = "old a.py zero\n"
        self.runner = TextRunner()

    def fix(self, word: str, message: str | None = None, **files: Any) -> str:
        """Commit a fix, which adds a word and a test of it."""
        self.words += f" {word}"
        self.tests += f"has_{word} a.py {word}\n"
        changed: dict[Any, Any] = {"a.py": self.words, TEST: self.tests, **files}
        return self.repository.commit(changed, message or f"Add {word}")

    def change(self, source: str, test: str, message: str = "Change") -> str:
        """Commit a source and a file with tests of its own."""
        number = len(list(self.suite.parent.iterdir()))
        return self.repository.commit({"b.py": source, f"tests/test_{number}_{source}.py": test}, message)

    def harvest(self, commits: str = "", tools: HarvestTools | None = None, **more: Any) -> list[HarvestStep]:
        """Harvest what is new; return the rows by commit."""
        return list(harvest(self.plan(commits, **more), tools or text_tools(self.runner)))

    def plan(self, commits: str = "", **more: Any) -> HarvestPlan:
        """Return the plan of a harvest of the whole history."""
        return text_plan(self.repository.folder, commits or f"{self.first}..main", self.suite, **more)
