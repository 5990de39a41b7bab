"""What a person proves of a fix with git, a virtual environment and pytest: the measure of a harvest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from real_sets import SourceSet, git

RUNS = 3
TIMEOUT_S = 600
TEST = re.compile(r"(^|/)(tests?|testing)/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
HOLDS_TESTS = re.compile(r"(test_.*|.*_test|tests?)\.py")
PASSED = re.compile(r"^PASSED (.+)$", re.MULTILINE)


class ShellOracle:
    """Runs the tests of a package's repository before and after its commits, as a shell script would."""

    def __init__(self, source: SourceSet, repository: Path, folder: Path) -> None:
        self._source = source
        self._repository = repository
        self._folder = folder
        self._python = folder / "venv" / "bin" / "python"
        folder.mkdir(parents=True, exist_ok=True)
        if not self._python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
            package = f"{source.name}=={source.versions[-1]}"
            pip = [str(self._python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "pytest", package, *source.needs], check=True)

    def fail_to_pass(self, commit: str) -> set[str]:
        """Return the tests that never pass before the change and always pass after it."""
        names = git(self._repository, "diff", "--name-only", "--no-renames", f"{commit}^", commit)
        files = [name for name in names.splitlines() if TEST.search(name)]
        after, before = self._tree(commit), self._tree(f"{commit}^")
        try:
            for name in files:
                kept = after / name
                (before / name).unlink(missing_ok=True)
                if kept.is_file():
                    (before / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(kept, before / name)
            there = [name for name in files if (after / name).is_file()]
            chosen = sorted({self._tests_of(after, name) for name in there} - {""})
            if not chosen:
                return set()
            passed = [self._passed(after, chosen) for _ in range(RUNS)]
            ever: set[str] = set().union(*(self._passed(before, chosen) for _ in range(RUNS)))
        finally:
            for tree in (after, before):
                git(self._repository, "worktree", "remove", "--force", str(tree))
        return set.intersection(*passed) - ever

    @staticmethod
    def _tests_of(tree: Path, name: str) -> str:
        """Return a file of tests; of what tests share, such as texts, the folder of tests above it."""
        folder, _, last = name.rpartition("/")
        if HOLDS_TESTS.fullmatch(last):
            return name
        while folder and not any(HOLDS_TESTS.fullmatch(path.name) for path in (tree / folder).iterdir()):
            folder = folder.rpartition("/")[0]
        return folder

    def _tree(self, commit: str) -> Path:
        tree = self._folder / re.sub(r"\W", "-", commit)
        shutil.rmtree(tree, ignore_errors=True)
        git(self._repository, "worktree", "prune")
        git(self._repository, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        return tree

    def _passed(self, tree: Path, files: list[str]) -> set[str]:
        words = ["-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "--rootdir=.", "-o", "addopts="]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "PYTHONPATH": os.pathsep.join([str(tree / self._source.imports), str(tree)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            ran = subprocess.run(
                [str(self._python), "-m", "pytest", *words, *files],
                cwd=tree,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            return set()
        return set(PASSED.findall(ran.stdout))
