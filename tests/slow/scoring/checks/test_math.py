"""The check on mathematics: what is equivalent, what the library gets wrong, and hostile answers."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.math_pairs import DIFFERENT, EQUAL, UNREADABLE, UNSURE, WRONGLY_DIFFERENT, WRONGLY_EQUAL

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.scoring.checks import math
from pytest_tfgrpo.scoring.checks.math_worker import MathLibrary, answer

SLOW = "$9^{9^{9^{9}}}$"
"""Takes for ever, inside C code."""


@pytest.fixture
def impatient(monkeypatch):
    """Return a limit that a worker in use keeps and SLOW does not."""
    monkeypatch.setattr(math, "LIMIT_S", 2.0)


def workers() -> list[int]:
    return [process.pid for process in math._alive if process.poll() is None]


@pytest.mark.parametrize(("value", "answer"), EQUAL)
def test_what_is_equivalent_passes(judge, value, answer):
    assert judge("math", answer, value=value).reason == ""


@pytest.mark.parametrize(("value", "answer"), DIFFERENT)
def test_what_differs_fails_and_the_reason_shows_the_expected_value(judge, value, answer):
    result = judge("math", answer, value=value)
    assert not result.passed
    assert result.reason.startswith("expected ")


@pytest.mark.parametrize(("value", "answer"), UNSURE)
def test_a_numeral_that_cannot_be_read_for_certain_fails_with_that_reason(judge, value, answer):
    for negated in ({}, {"not": True}):
        result = judge("math", answer, value=value, **negated)
        assert not result.passed
        assert "cannot be read for certain" in result.reason


@pytest.mark.parametrize(
    ("value", "answer", "passed"),
    [(v, a, True) for v, a in WRONGLY_EQUAL] + [(v, a, False) for v, a in WRONGLY_DIFFERENT],
)
def test_known_limits_of_the_library(judge, value, answer, passed):
    assert judge("math", answer, value=value).passed is passed


@pytest.mark.parametrize("value", UNREADABLE)
def test_an_expected_value_that_is_no_mathematics_is_a_broken_check(judge, value):
    with pytest.raises(CheckError, match="check 'math' cannot use the value") as raised:
        judge("math", "3", value=value)
    assert math.short(value) in str(raised.value)


def test_decimals_say_how_exact_a_decimal_fraction_must_be(judge):
    assert not judge("math", "3.14", value=r"\pi").passed
    assert judge("math", "3.14", value=r"\pi", decimals=2).passed
    assert not judge("math", "0.333333", value="1/3", decimals=8).passed


def test_loading_starts_no_worker():
    code = (
        "from pathlib import Path; from pytest_tfgrpo.suite.scenario import build_scenario as b\n"
        "from pytest_tfgrpo.scoring.checks import math; import sys\n"
        "b({'id': 'a', 'prompt': 'p', 'checks': [{'kind': 'math', 'value': 3}]}, source='x', checker=None, "
        "folder=Path())\n"
        "assert not math._alive and not {'sympy', 'math_verify'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("answer", [SLOW, "$100000000!$", "$10^{10^{10}}$"])
def test_an_answer_that_takes_for_ever_fails_and_the_next_one_is_judged(judge, impatient, answer):
    before = workers()
    reason = judge("math", answer, value=3).reason
    assert "took more than 2 s" in reason
    assert judge("math", "3", value=3).passed
    assert len(workers()) <= max(1, len(before))


@pytest.mark.parametrize(
    "answer",
    [
        "9**9**9**9", r"\input{/etc/passwd}", r"$\input{/etc/passwd}$", r"\write18{touch x}", "\0", "4\0",
        "\ud800", "\ud800 4", "𝟜𝟜", "$" * 5000, "\\boxed{" * 2000, "}" * 5000, "\\frac" * 3000,
        "__import__('os').system('touch x')", "(" * 200 + "4" + ")" * 200, "1e999999999",
        "nan", "zoo", "$\\text{" + "a" * 15_000 + "}$", "4" * 5000, "1/0", "$0^0/0$", "\r\n\u2028", "[" * 999,
    ],
)  # fmt: skip
def test_a_hostile_answer_is_a_failed_check_or_a_slow_one(judge, monkeypatch, tmp_path, answer):
    monkeypatch.setattr(math, "LIMIT_S", 1.0)
    monkeypatch.chdir(tmp_path)
    result = judge("math", answer, value=3)
    assert not result.passed
    assert len(result.reason) < 600
    assert not (tmp_path / "x").exists()


def test_deep_nesting_takes_no_more_than_its_time(judge, impatient):
    assert not judge("math", "$" + "(" * 3000 + "1" + ")" * 3000 + "$", value=3).passed


def test_of_a_huge_answer_the_end_is_read(judge):
    assert judge("math", "x " * 1_000_000 + "so it is \\boxed{3}", value=3).passed
    assert not judge("math", "\\boxed{3}" + " x" * 1_000_000, value=3).passed


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: no /proc here")
def test_the_memory_of_a_worker_is_limited(judge):
    assert judge("math", "3", value=3).passed
    for pid in workers():
        limits = Path(f"/proc/{pid}/limits").read_text()
        assert re.search(rf"Max address space +{math.MEMORY_BYTES} ", limits)


def test_an_expected_value_that_takes_for_ever_is_a_broken_check(judge, impatient):
    with pytest.raises(CheckError, match=r"cannot use the value .*: it takes more than 2 s to read"):
        judge("math", "3", value=SLOW)


def test_workers_that_somebody_kills_are_replaced(judge):
    judge_at_once(judge, 4)
    for pid in workers():
        os.kill(pid, 9)
    assert judge("math", "3", value=3).passed


def judge_at_once(judge, count: int) -> list[bool]:
    """Judge ten right answers on each of `count` threads."""
    passed: list[bool] = []

    def work() -> None:
        passed.extend(judge("math", f"\\boxed{{{n}}}", value=n).passed for n in range(10))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return passed


def test_many_threads_share_a_few_workers(judge):
    assert judge_at_once(judge, 16) == [True] * 160
    assert len(workers()) <= math.WORKERS


def test_a_worker_is_replaced_before_its_tables_grow_without_end(judge, monkeypatch):
    monkeypatch.setattr(math, "REQUESTS_MAX", 2)
    monkeypatch.setattr(math, "_idle", math.deque())
    before = set(workers())
    seen = set()
    for _ in range(4):
        assert judge("math", "3", value=3).passed
        seen |= set(workers()) - before
    assert len(seen) == 2
    assert set(workers()) <= before


def test_a_worker_that_cannot_start_is_a_broken_check(judge, monkeypatch):
    monkeypatch.setattr(math, "_idle", math.deque())
    monkeypatch.setattr(math.sys, "executable", "/no/such/python")
    with pytest.raises(CheckError, match="the worker of check 'math' cannot be started"):
        judge("math", "3", value=3)
    monkeypatch.setattr(math.sys, "executable", "/bin/true")
    with pytest.raises(CheckError, match="the worker of check 'math' did not start"):
        judge("math", "3", value=3)


def test_a_library_that_is_missing_in_the_worker_is_a_broken_check(judge, monkeypatch):
    assert math._is_installed(), "which is asked once, and with the path that follows would be denied"
    monkeypatch.setattr(math, "_idle", math.deque())
    monkeypatch.setattr(math.sys, "path", [])
    monkeypatch.setattr(math.sys, "executable", getattr(sys, "_base_executable", sys.executable))
    with pytest.raises(CheckError, match=r"lacks a library: .*pip install 'pytest-tfgrpo\[math\]'"):
        judge("math", "3", value=3)


def test_a_worker_says_first_what_is_wrong_with_the_value_and_then_what_it_found():
    reader = MathLibrary()

    def said(value: str | float, given: str, decimals: int | None = None) -> list[dict[str, object]]:
        lines: list[dict[str, object]] = []
        request = {"value": value, "answer": given, "decimals": decimals}
        answer(reader, request, lambda **line: lines.append(line))
        return lines

    assert said("1/2", "0.5") == [{"wrong": None}, {"found": True, "written": r"\frac{1}{2}", "equal": True}]
    assert said(0.5, "it is 7") == [{"wrong": None}, {"found": True, "written": "7", "equal": False}]
    assert said("i^2", "-1")[1]["equal"]
    assert said("1/3", "0.33", 2)[1]["equal"]
    assert said("1/3", "")[1] == {"found": False, "written": "", "equal": False}
    assert said(3, r"$\frac{0}{0}$")[1]["equal"] is False
    (wrong,) = said("?", "3")
    assert str(wrong["wrong"]).startswith("ValueError: it cannot be read")


PROGRAM = """
import sys, threading, time
from pathlib import Path
from pytest_tfgrpo.core.scenarios import Check, Task
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks import math
from pytest_tfgrpo.sandbox.workspace import Workspace

def judge(answer):
    context = CheckContext(answer=answer, frames=(), workspace=Workspace(Path("w"), left=True),
                           task=Task(id="a", domain="d", prompt="p"))
    return evaluate([Check(kind="math", params={"value": 3})], context, KINDS)[0]

assert judge("3").passed
thread = threading.Thread(target=judge, args=("$9^{9^{9^{9}}}$",), daemon=True)
thread.start()
time.sleep(0.2)
print(*(process.pid for process in math._alive), flush=True)
"""


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="NOT TESTED: no /proc here")
@pytest.mark.parametrize("ending", ["", "import os; os.kill(os.getpid(), 9)"], ids=["exit", "kill"])
def test_no_worker_outlives_the_process_that_started_it(ending):
    code = "from pytest_tfgrpo.scoring.checks import math; math.LIMIT_S, math.GRACE_S = 1.0, 0.2\n"
    done = subprocess.run([sys.executable, "-c", code + PROGRAM + ending], stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in done.stdout.split()]
    assert pids
    for _ in range(5000):
        if all(map(gone, pids)):
            break
        threading.Event().wait(0.02)
    assert all(map(gone, pids))
