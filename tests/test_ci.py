"""The table of CI's parts: what each took beside its budget."""

import re
import subprocess
import sys
from pathlib import Path

from support import ROOT

CI = ROOT / ".ci"
TESTS = """<testsuites><testsuite>
<testcase classname="tests.plugin.test_gate" name="test_quick" time="30" />
<testcase classname="tests.browser.test_using" name="test_slow" time="10"><properties>
<property name="part" value="browser" /></properties></testcase>
</testsuite></testsuites>"""


def show(folder: Path, **seconds: int) -> subprocess.CompletedProcess[str]:
    """Return what is printed of a CI run whose parts took `seconds`."""
    (folder / "budgets").write_text("# parts\ntools\t10\ntests\t50\nbrowser tests\t20\ntotal\t100\n")
    (folder / "parts").write_text("".join(f"{took}\t{name}\n" for name, took in seconds.items()))
    (folder / "tests.xml").write_text(TESTS)
    files = [folder / name for name in ("budgets", "parts", "tests.xml")]
    return subprocess.run([sys.executable, CI / "times.py", *files], capture_output=True, text=True)


def test_the_time_of_all_tests_is_shared_by_the_seconds_of_each_kind(tmp_path: Path) -> None:
    shown = show(tmp_path, tools=8, tests=40)
    assert [line.split() for line in shown.stdout.splitlines()[1:5]] == [
        ["tools", "8", "17%", "10"],
        ["tests", "30", "62%", "50"],
        ["browser", "tests", "10", "21%", "20"],
        ["total", "48", "100%", "100"],
    ]
    assert "    30.0 s  tests.plugin.test_gate::test_quick" in shown.stdout
    assert shown.returncode == 0


def test_a_part_over_its_budget_is_named_and_passes(tmp_path: Path) -> None:
    shown = show(tmp_path, tools=11, tests=40)
    assert [line.split()[0] for line in shown.stdout.splitlines() if "OVER ITS BUDGET" in line] == ["tools"]
    assert shown.returncode == 0


def test_a_total_over_its_limit_fails(tmp_path: Path) -> None:
    assert show(tmp_path, tools=61, tests=40).returncode == 1


def test_a_part_that_ran_twice_counts_twice(tmp_path: Path) -> None:
    folder = tmp_path
    show(folder)
    (folder / "parts").write_text("3\ttools\n4\ttools\n1\ttests\n")
    files = [folder / name for name in ("budgets", "parts", "tests.xml")]
    shown = subprocess.run([sys.executable, CI / "times.py", *files], capture_output=True, text=True)
    assert shown.stdout.splitlines()[1].split()[:2] == ["tools", "7"]


COUNT = """
import pytest

class Count:
    def pytest_collection_finish(self, session):
        print("pictures:", sum("screenshots" in item.fixturenames for item in session.items))

pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "tests/browser"], plugins=[Count()])
"""


def test_ci_asks_for_the_picture_of_every_test_that_keeps_one() -> None:
    counted = subprocess.run([sys.executable, "-c", COUNT], cwd=ROOT, capture_output=True, text=True)
    (kept,) = re.findall(r"^pictures: (\d+)$", counted.stdout, re.M)
    (wanted,) = re.findall(r"-name '\*\.png' .* -ge (\d+) ", (CI / "run").read_text(encoding="utf-8"))
    assert wanted == kept


def test_every_part_of_ci_has_a_budget() -> None:
    budgets = (CI / "budgets.tsv").read_text(encoding="utf-8")
    known = {line.split("\t")[0] for line in budgets.splitlines() if not line.startswith("#")}
    run = (CI / "run").read_text(encoding="utf-8")
    parts = {quoted or plain for quoted, plain in re.findall(r"^ *part (?:'([^']+)'|(\w+))", run, re.M)}
    marked = {
        f"{name} tests"
        for name in (
            "browser",
            "service",
            "fault",
            "live fault",
            "loop",
            "numerics",
            "export",
            "framework",
            "executor",
        )
    }
    assert parts == known - marked - {"total"}
