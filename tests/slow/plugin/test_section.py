"""The section of a run at the end of pytest's output."""

import re
from pathlib import Path

import pytest
from support.terminals import watching
from support.tools import tfgrpo


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the small suite that ``tfgrpo init`` writes, to run without other plugins."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p tfgrpo")
    folder = tmp_path / "shop"
    folder.mkdir()
    tfgrpo("init", str(folder))
    return folder


def test_the_section_of_a_small_suite_fits_on_a_screen(started: Path) -> None:
    with watching(started, ["--tfgrpo"], terminal=True) as run:
        shown = run.end().split("\n")
    begin = next(n for n, line in enumerate(shown) if re.fullmatch("=+ tfgrpo =+", line))
    section = shown[begin + 1 : next(n for n, line in enumerate(shown) if re.match("=+ .*passed", line))]
    assert sum(not line.startswith("file:") for line in section) <= 27
    heads = [
        "Better: 26 % to 80 % of the tasks; sure for these tasks alone",
        "gate  passed",
        "gain  +",
        "3 active lessons",
        "failures  ",
        "baseline ",
        "files  ",
    ]
    places = [next(n for n, line in enumerate(section) if line.startswith(head)) for head in heads]
    assert places == sorted(places)
    end = section.index("-v shows all lessons, tables, costs and rules of the gate") + 1
    (page,) = started.glob("out/*/runs/*/report.html")
    assert "".join(section[end:]) == page.as_uri()  # the screen breaks it, nothing else does
    assert f"{page.as_uri()}\r\n" in run.written
    assert "\x1b[1mBetter: " in run.written
    assert "\x1b[32mgate  passed" in run.written
    assert "\x1b[1mgain  +" in run.written
    assert "TfgrpoWarning: " in run.written.partition(section[0])[0]


CRASHING = """
def solve(call):
    n = len(call.prompt.user) % 3
    if n == 0:
        raise ValueError(f"cannot parse the question, which has {len(call.prompt.user)} characters")
    if n == 1:
        return {"a": 1}["a key that nobody has ever seen in any dictionary of this program"]
    raise RuntimeError("the machinery of this agent is broken beyond repair and always was")
"""


def test_the_section_of_an_agent_that_crashes_in_several_ways_fits_too(started: Path) -> None:
    (started / "agent.py").write_text(CRASHING)
    with watching(started, ["--tfgrpo", "--tfgrpo-actor=python:agent:solve"], terminal=False) as run:
        run.end()
    section = re.split("=+ tfgrpo =+\n", run.written)[1].partition("\n====")[0].splitlines()
    assert len(section) <= 25
    assert all(len(line) <= 80 for line in section[:-1])
    assert section[-1].startswith("file:///")
    told = "\n".join(section)
    for what in ("RuntimeError: the machinery", "ValueError: cannot parse", "KeyError: 'a key"):
        assert told.count(what) == 1
    assert "170 rollouts without an answer, scored 0: crash 170" in section


BAD = r"""
import re
from pathlib import Path

FILES = "".join(path.read_text() for path in Path(__file__).parent.glob("fixtures/*.yaml"))
KNOWN = re.findall(r"prompt: '(.*)'\n  checks:\n  - kind: \w+\n    value: (.*)", FILES)


def solve(call):
    n = call.seed % 7
    if n == 0:
        raise RuntimeError("out of patience")
    right = next((value for prompt, value in KNOWN if prompt in call.prompt.user), "?")
    return right if n in (2, 3) else "I cannot help" if n < 5 else "42"
"""


def test_the_section_of_an_agent_that_answers_badly_fits_too(started: Path) -> None:
    (started / "agent.py").write_text(BAD)
    with watching(started, ["--tfgrpo", "--tfgrpo-actor=python:agent:solve"], terminal=False) as run:
        run.end()
    section = re.split("=+ tfgrpo =+\n", run.written)[1].partition("\n====")[0].splitlines()
    assert len(section) <= 25
    assert all(len(line) <= 80 for line in section[:-1])
    assert section[-1].startswith("file:///")
    told = "\n".join(section)
    for what in (
        "gain  ",
        "4 active lessons",
        "crash: RuntimeError",
        "I ca...",
    ):
        assert told.count(what) == 1


def test_there_is_no_colour_where_pytest_has_none(started: Path) -> None:
    with watching(started, ["--tfgrpo"], terminal=False) as run:
        run.end()
    assert "\ngate  passed\n" in run.written
    assert "\x1b" not in run.written
