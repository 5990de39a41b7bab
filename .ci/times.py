"""Print what each part of CI took beside its budget, and the slowest tests; fail if all took too long.

Usage: times.py BUDGETS PARTS TESTS. PARTS has a line `seconds<TAB>part` for each part that ran; TESTS is the
JUnit file of the test command, in which the property `part` names the mark of a slow test.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

TESTS = "tests"
"""The part that runs all tests, and from which the marked ones are told apart."""
SLOWEST = 10


def main(budgets: Path, parts: Path, tests: Path) -> int:
    """Print the table; return 1 if the total is over its limit."""
    allowed = {name: float(seconds) for name, seconds in rows(budgets)}
    took: Counter[str] = Counter()
    for seconds, name in rows(parts):
        took[name] += float(seconds)
    total = took.total()
    marked, slowest = read_tests(tests)
    wall = took.pop(TESTS, 0.0)
    for name, seconds in marked.items():
        took[name] += wall * seconds / marked.total()
    print(f"{'part':<18}{'seconds':>9}{'share':>8}{'budget':>8}")
    for name in [*allowed, *(took.keys() - allowed.keys())]:
        seconds = total if name == "total" else took[name]
        note = "  OVER ITS BUDGET" if seconds > allowed.get(name, 0) else ""
        print(f"{name:<18}{seconds:>9.0f}{seconds / total:>8.0%}{allowed.get(name, 0):>8.0f}{note}")
    print(f"the {SLOWEST} slowest tests:")
    for seconds, test in slowest[:SLOWEST]:
        print(f"{seconds:>8.1f} s  {test}")
    return int(total > allowed["total"])


def rows(file: Path) -> list[list[str]]:
    """Return the cells of each line that is no comment."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def read_tests(file: Path) -> tuple[Counter[str], list[tuple[float, str]]]:
    """Return the seconds of the tests by part, and each test with its seconds, the slowest first."""
    by_part: Counter[str] = Counter()
    tests = []
    for case in ElementTree.parse(file).iter("testcase"):
        seconds = float(case.get("time", 0))
        part = case.find("properties/property[@name='part']")
        by_part[f"{part.get('value')} tests" if part is not None else TESTS] += seconds
        tests.append((seconds, f"{case.get('classname')}::{case.get('name')}"))
    return by_part, sorted(tests, reverse=True)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
