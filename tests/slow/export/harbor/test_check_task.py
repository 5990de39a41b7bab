"""The scripts of an exported task, run on paths like those of a container: what work gets which reward."""

import json
from pathlib import Path

import pytest
from support.fixes import FAIL_TO_PASS, SOLVED
from support.harbor import attempt, exported, write_suite
from support.tools import require_tool

from pytest_tfgrpo.sandbox.programs.environments import Environment, stamp_of, to_file

pytestmark = pytest.mark.timeout(120)
WRITE = "cat > {name} <<'EOF'\n{text}\nEOF\n"


@pytest.fixture(autouse=True)
def _needs_bwrap() -> None:
    require_tool("bwrap")


def task_of(folder: Path, **fields) -> Path:
    exported(write_suite(folder / "suite", **fields), folder / "tasks")
    return folder / "tasks" / "one"


def files(**texts: str) -> str:
    """Return a script that writes files; ``__`` stands for a slash, and each name ends with ``.py``."""
    names = {name.replace("__", "/") + ".py": text for name, text in texts.items()}
    return "".join(
        f"mkdir -p $(dirname {name})\n" + WRITE.format(name=name, text=text) for name, text in names.items()
    )


FORGE = """import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    out = yield
    out.get_result().outcome = 'passed'
"""


@pytest.mark.parametrize(
    ("script", "reward"),
    [
        ("/solution/solve.sh", "1\n"),
        ("true", "0\n"),
        (files(tests__test_cart="def test_total(): ...\ndef test_total_of_nothing(): ..."), "0\n"),
        (files(conftest=FORGE), "0\n"),
        (files(shop__conftest=FORGE), "0\n"),
        (files(pytest="import sys; main = lambda *a, **b: sys.exit(0)"), "0\n"),
        (files(shop__cart="import os; os._exit(0)"), "0\n"),
        (files(shop__cart="raise SystemExit(0)"), "0\n"),
        ("printf '[pytest]\\naddopts = -p forge\\n' > pytest.ini\n" + files(forge=FORGE), "0\n"),
        ("rm -rf shop", "0\n"),
        ("rm -rf tests pytest.ini; ln -s / tests; /solution/solve.sh", "1\n"),
        ("mkdir -p /app/.git/x; ln -s /app/shop /app/same; /solution/solve.sh", "1\n"),
        (files(shop__cart=SOLVED.replace("sum(prices)", "sum(prices) and 3")), "0\n"),
    ],
)
def test_the_reward_is_that_of_the_work(tmp_path, script, reward):
    given, output = attempt(task_of(tmp_path), tmp_path / "made", script)
    assert given == reward, output


def test_a_share_of_the_tests_gets_its_share(tmp_path):
    work = files(shop__cart=SOLVED.replace("sum(prices)", "sum(prices[:2]) if prices[1:] else 1"))
    given, output = attempt(task_of(tmp_path, check={"credit": "share"}), tmp_path / "made", work)
    assert given == "0.5\n", output
    assert f"did not pass: {FAIL_TO_PASS[1]}" in output


def test_work_that_hangs_ends_at_the_limit_with_nothing(tmp_path):
    work = files(shop__cart="import time, os\nif os.fork(): time.sleep(900)\ntime.sleep(900)")
    given, output = attempt(task_of(tmp_path, check={"timeout_s": 3}), tmp_path / "made", work)
    assert given == "0\n", output


def test_without_pytest_there_is_no_reward(tmp_path):
    task = task_of(tmp_path)
    script = task / "tests" / "check_task.py"
    script.write_text(script.read_text().replace('import_module("pytest")', 'import_module("no_pytest")'))
    given, output = attempt(task, tmp_path / "made", "true")
    assert given is None
    assert "the tests cannot be run: pytest did not start" in output


def test_variables_and_import_paths_of_the_environment_hold(tmp_path):

    suite = tmp_path / "suite"
    environment = Environment(python="3.11", imports=("lib",), variables={"PRICE": "3"})
    stamp = stamp_of(environment)
    (suite / "environments").mkdir(parents=True)
    (suite / "environments" / f"{stamp}.json").write_text(json.dumps(to_file(environment)))
    task = task_of(tmp_path, environment=stamp)
    work = files(lib__prices="import os\ntotal = lambda prices: int(os.environ['PRICE']) * len(prices) // 2")
    work += files(shop__cart="from prices import total as total_of\n" + SOLVED)
    given, output = attempt(task, tmp_path / "made", work)
    assert given == "1\n", output
