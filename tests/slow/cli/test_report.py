"""The command ``tfgrpo report``: from the journal, whatever became of the run, and two runs side by side."""

import json
import re

import pytest
from support import frozen as frozen_projects
from support.cli.report import kill, lines_of
from support.frozen import Frozen
from support.project import Project
from support.tools import tfgrpo


@pytest.fixture
def learned(frozen: Frozen) -> Project:
    return frozen(frozen_projects.learned)


def test_page_and_terminal_made_again_are_those_of_the_run(learned: Project) -> None:
    # nothing differs: what only the run knew is in report.json, and the rest is in the journal
    learned.ini(actor="python:agent:learner", task_id="demo", gate_max_errors=5)
    learned.conftest(
        "def pytest_tfgrpo_report_section(config, run):\n    return ['cache: 12 hits']\n"
        "def pytest_tfgrpo_run(config, run):\n    raise RuntimeError('an observer broke')\n"
    )
    section = learned.pages().learn().stdout.str().partition("= tfgrpo =")[2].partition("\n")[2]
    folder = learned.runs()[-1]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert b"cache: 12 hits" in before["report.html"]
    shown, _, last = tfgrpo("report").rstrip("\n").rpartition("\n")
    assert last == f"page   out/demo/runs/{folder.name}/report.html"
    shown = re.sub(r"(?m)(?:^warning: .*\n(?:  .*\n)*)+\n", "", shown)  # pytest shows those itself
    assert section.startswith(shown)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_cannot_be_judged_again_is_said(learned: Project) -> None:
    learned.cli("baseline", "save", "main")
    learned.ini(actor="python:agent:learner", task_id="demo", baseline="main")
    learned.learn()
    (learned.root / "baselines" / "main.json").unlink()
    (learned.runs()[-1] / "report.json").unlink()
    shown = " ".join(tfgrpo("report").split())
    assert "checked without its baseline: " in shown
    assert "baselines/main.json" in shown.replace(" ", "")  # a long path is broken anywhere


# runs by name


def test_runs_are_named_by_beginning_end_latest_and_previous(learned: Project) -> None:
    learned.learn()
    first, second = (folder.name for folder in learned.runs())
    for names, wanted in (((first, first[:-2], first[-6:], "previous"), first), ((second, "latest"), second)):
        for name in names:
            assert f"runs/{wanted}/report.html" in tfgrpo("report", name, "-q")
    common = first[:8]
    said = tfgrpo("report", common, code=1)
    assert said == f"tfgrpo: {common!r} matches several runs: {first}, {second}\n"
    assert "no run ''" in tfgrpo("report", "", code=1)


# two runs


def run_twice(project: Project) -> None:
    frozen_projects.learned(project)
    project.ini(actor="python:agent:learner", task_id="demo", optimizer="none").learn()


@pytest.fixture
def twice(frozen: Frozen) -> Project:
    return frozen(run_twice)


def test_two_runs_are_compared_in_terminal_and_page(twice: Project) -> None:
    first, second = (folder.name for folder in twice.runs())
    shown = tfgrpo("report", "--compare", "previous")
    assert shown.startswith("result  ")
    assert f"\nA       {first}\nB       {second}\n" in shown
    assert "\noptimizer     heuristic  none\n" in shown
    example, task, a, b, command = shown[shown.index("\nexample ") + 1 :].splitlines()[:5]
    assert example.startswith("example largest loss: ")
    assert task.startswith("task    ")
    assert (a[:8], b[:8]) == ("A       ", "B       ")
    assert a[8:] != b[8:]
    told = tfgrpo(*command.split()[1:])
    assert b[8:] in told
    page = f"out/demo/runs/{second}/compare-{first}.html"
    assert shown.endswith(f"\npage   {page}\n")
    text = (twice.root / page).read_text()
    assert first in text
    assert second in text
    assert f"\nA       {second}\nB       {first}\n" in tfgrpo("report", "previous", "--compare", second[-8:])


def test_a_run_of_another_folder_is_named_by_its_path(twice: Project) -> None:
    first = twice.runs()[0]
    elsewhere = twice.root / "kept runs <b>"
    first.rename(elsewhere)
    shown = tfgrpo("report", "--compare", "kept runs <b>")
    assert "/compare-kept_runs_b_.html" in shown
    assert "claim" not in shown.partition("by domain")[0]
    assert "is not the folder of a run" in tfgrpo("report", "--compare", "kept runs <b>/..", code=1)


def test_a_killed_run_is_compared_as_far_as_it_goes(twice: Project) -> None:
    kill(twice.runs()[0], "rollout")
    shown = " ".join(tfgrpo("report", "--compare", "previous").split())
    name = twice.runs()[0].name
    assert f"not sure whether B is better or worse than A: run {name} has no final sweep" in shown
    assert f"A {name}, incomplete: killed; finish it with pytest --tfgrpo --tfgrpo-resume={name}" in shown


def test_several_runs_are_compared_with_the_first_one_named(twice: Project) -> None:
    twice.learn()
    first, second, third = (folder.name for folder in twice.runs())
    shown = tfgrpo("report", "latest", "--compare", first, "--compare", second)
    assert f"\nA       {first}\nB       {third}\nC       {second}\n" in shown
    assert re.search(r"\nfinal sweep +A +B +C\n", shown)
    assert f"\npage   out/demo/runs/{third}/compare-{first}-{second}.html" in shown


def test_runs_are_named_once_and_not_more_than_fit(twice: Project) -> None:
    first = twice.runs()[0].name
    named = ("--compare", first)
    assert f"--compare names the run {first} twice" in tfgrpo("report", *named, *named, code=1)
    assert "at most 4 runs fit beside one" in tfgrpo("report", *named * 5, code=1)


def test_hostile_names_of_runs_to_compare_are_told_in_print(twice: Project) -> None:
    hostile = twice.runs()[0].rename(twice.root / "\x1b[2Jevil")
    named = ("--compare", str(hostile))
    for argv in (named, named * 2, named * 5, ("--compare", "\x1b[2J")):
        shown = tfgrpo("report", *argv, code=int(argv != named))
        assert "\x1b" not in shown, argv


def test_a_run_of_another_suite_has_nothing_to_compare(twice: Project) -> None:
    (twice.root / "suite.scenario.json").unlink()
    twice.scenarios("other", train=4, sweep=12)
    twice.learn()
    shown = " ".join(tfgrpo("report", "--compare", "previous").split())
    assert "not sure whether B is better or worse than A: no scenario is scored in both A " in shown
    assert "Not sure" in (twice.runs()[-1] / f"compare-{twice.runs()[-2].name}.html").read_text()


def test_a_run_of_another_version_is_named(twice: Project) -> None:
    from pytest_tfgrpo.runs.journal.journal import encode

    journal = twice.runs()[0] / "journal.jsonl"
    first, *rest = lines_of(journal.parent)
    header = json.loads(first)["data"] | {"schema": "tfgrpo.journal/0"}
    journal.write_bytes(encode(1, "run", header) + b"".join(rest))
    said = tfgrpo("report", "--compare", "previous", code=1)
    assert (
        f"{journal} does not start as a journal of schema 'tfgrpo.journal/1' but of 'tfgrpo.journal/0'"
        in said
    )


@pytest.mark.parametrize("cut", [5, 12, 40, 60])
def test_a_run_killed_anywhere_is_no_claim_and_no_traceback(twice: Project, cut: int) -> None:
    folder = twice.runs()[1]
    (folder / "journal.jsonl").write_bytes(b"".join(lines_of(folder)[:-cut]))
    (folder / "report.json").unlink()
    shown = " ".join(tfgrpo("report", "--compare", "previous").split())
    assert shown.startswith("result not sure whether B is better or worse than A: ")
    assert f"B {folder.name}, incomplete: killed; finish it with" in shown
