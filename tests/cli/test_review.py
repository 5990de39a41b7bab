"""The command ``tfgrpo review``, on a run with answers that its checks misjudge."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.frozen import TASK_ID, Frozen
from support.project import Project

from pytest_tfgrpo.core.wire.schema import violations

AGENT = '''
def tourist(context):
    """Four answers by turns: two that a check takes for right, and two that it takes for wrong."""
    said = {"capital": ["It is Paris.", "It is Lyon, not Paris."],
            "river": ["the Seine", "THE SEINE", "the Rhine"]}
    answers = said[context.scenario.id]
    return answers[context.seed % len(answers)]
'''
SUITE = """\
# Asked by the tourist office.
defaults: {split: eval, domain: travel}
scenarios:
  - id: capital
    prompt: What is the capital of France?
    checks:
      - {kind: contains, value: Paris}  # nothing else counts

  - id: river   # of that town
    prompt: Which river runs through it?
    checks:
      - kind: exact
        value: the Seine
"""
Golden = Callable[[str, str], None]


def tour(project: Project) -> None:
    project.agent(AGENT).ini(actor="python:agent2:tourist", eval_rollouts=10)
    project.write("travel.scenario.yaml", SUITE)
    assert project.learn().ret == 0


@pytest.fixture
def toured(frozen: Frozen) -> Project:
    """A project with a complete run, ten answers for each of its two scenarios."""
    return frozen(tour)


def marks_of(project: Project, reviewer: str, **opinions: str) -> dict[str, Any]:
    """Return the marks of a reviewer for one answer of each text, by its first letters."""
    (run,) = project.events("run")
    stamps = {scenario["id"]: scenario["stamp"] for scenario in run["scenarios"]}
    first: dict[str, dict[str, Any]] = {}
    for rollout in sorted(project.events("rollout"), key=lambda one: str(one["rollout_id"])):
        first.setdefault(rollout["answer"], rollout)
    marks = []
    for answer, opinion in opinions.items():
        rollout = first[answer]
        mark, _, comment = opinion.partition(": ")
        words = next(iter(re.findall("'(.*)'", comment)), "")
        id_ = rollout["scenario_id"]
        marks.append({"rollout": rollout["rollout_id"], "scenario": id_, "stamp": stamps[id_], "mark": mark})
        marks[-1] |= {"comment": comment} if comment else {}
        marks[-1] |= {"words": words} if words else {}
    return {"schema": "tfgrpo.marks/1", "run_id": run["run_id"], "reviewer": reviewer, "marks": marks}


ANN = {
    "It is Paris.": "right",
    "It is Lyon, not Paris.": "wrong: it names 'Lyon'",
    "the Seine": "right",
    "THE SEINE": "right: capitals are fine",
    "the Rhine": "wrong",
}


@pytest.fixture
def ann(toured: Project) -> Path:
    """The file of marks of a reviewer."""
    value = marks_of(toured, "Ann", **ANN)
    assert violations("marks", value) == []
    toured.write("marks.json", json.dumps(value))
    return toured.root / "marks.json"


def said(project: Project, capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    """Return what a command prints, the run's id replaced."""
    capsys.readouterr()
    assert project.cli("review", *args) == code
    out, err = capsys.readouterr()
    text: str = (err if code else out).replace(project.runs()[-1].name, "RUN")
    return text


def test_a_review_reads_well(
    toured: Project, ann: Path, golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    value = marks_of(toured, "Bob", **{"the Rhine": "right", "THE SEINE": "unsure"})
    value["marks"].append(value["marks"][0] | {"rollout": "RUN.e9.capital.r0"})
    toured.write("bob.json", json.dumps(value))
    golden("review.txt", said(toured, capsys, "--marks", "marks.json", "bob.json"))
    golden("review-apply.txt", said(toured, capsys, "apply", "--marks", "marks.json"))


def test_a_patch_and_a_written_file_are_the_same_and_keep_the_comments(
    toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = toured.root / "travel.scenario.yaml"
    told = said(toured, capsys, "apply", "--marks", "marks.json", "--patch", "change.patch")
    assert "git apply or patch -p1 in ." in told
    again = said(toured, capsys, "apply", "--marks", "marks.json", "--patch", "change.patch", code=1)
    assert again == "tfgrpo: change.patch exists; name another file with --patch\n"
    assert path.read_text() == SUITE
    patched = toured.root / "patched"
    patched.mkdir()
    shutil.copy(path, patched)
    with (toured.root / "change.patch").open("rb") as patch:
        subprocess.run(
            ["git", "apply", "-"],
            cwd=patched,
            stdin=patch,
            check=True,
            env={"GIT_CEILING_DIRECTORIES": str(toured.root), "PATH": "/usr/bin:/bin"},
        )
    assert "wrote  travel.scenario.yaml" in said(toured, capsys, "apply", "--marks", "marks.json", "--write")
    assert path.read_bytes() == (patched / path.name).read_bytes() != SUITE.encode()
    for comment in ("# Asked by the tourist office.", "# nothing else counts", "# of that town"):
        assert comment in path.read_text()


def test_marks_are_not_applied_twice(toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(toured, capsys, "apply", "--marks", "marks.json", "--write")
    before = (toured.root / "travel.scenario.yaml").read_bytes()
    told = said(toured, capsys, "apply", "--marks", "marks.json", "--write")
    assert "the scenario changed since the run" in told
    assert told.endswith("nothing to change\n")
    assert (toured.root / "travel.scenario.yaml").read_bytes() == before


def test_a_new_run_passes_and_fails_what_people_said(
    toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(toured, capsys, "apply", "--marks", "marks.json", "--write")
    toured.learn()
    good = {"It is Paris.", "the Seine", "THE SEINE"}
    for rollout in toured.events("rollout"):
        assert all(check["credit"] == 1 for check in rollout["checks"]) is (rollout["answer"] in good)


def test_marks_of_another_run_are_listed_and_not_applied(
    toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toured.learn()
    told = said(toured, capsys, "latest", "--marks", "marks.json")
    assert "0 marked answers" in told
    assert "not applied: 5 marks" in told
    assert "of run " in told


def test_marks_of_a_run_that_is_not_here_are_refused_by_its_name(
    toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marked = toured.runs()[-1]
    toured.learn()
    shutil.rmtree(marked)
    for words in ((), ("apply",)):
        told = said(toured, capsys, *words, "--marks", "marks.json", code=1)
        assert f"the marks are of 1 run that is not among those of task {TASK_ID!r}: " in told
        assert marked.name in told
    told = said(toured, capsys, "apply", "latest", "--marks", "marks.json")
    assert told.startswith("not applied: 5 marks\n")
    assert told.endswith("nothing to change\n")


def test_of_marks_of_several_runs_those_of_the_one_that_is_here_count(
    toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = toured.runs()[-1].name
    toured.learn()
    second = marks_of(toured, "Bob", **{"the Rhine": "wrong"})
    toured.write("bob.json", json.dumps(second))
    both = ("--marks", "marks.json", "bob.json")
    told = said(toured, capsys, *both, code=1)
    assert f"the marks are of 2 runs: {first}, RUN; name one before --marks" in told
    toured.write("bob.json", json.dumps(second | {"run_id": "elsewhere"}))
    told = said(toured, capsys, *both)
    assert f"run {first}: 5 marked answers" in told
    assert "not applied: 1 mark\n" in told


def test_marks_name_the_run_that_they_are_of(
    toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marked = toured.runs()[-1].name
    toured.learn()
    told = said(toured, capsys, "--marks", "marks.json")
    assert f"run {marked}: 5 marked answers" in told
    assert "not applied" not in told


NO_MARKS = (
    ("{", "not JSON"),
    ("[]", "; name a file that the report page saved"),
    ('{"schema": "tfgrpo.marks/9"}', "has the schema 'tfgrpo.marks/9'"),
    ('{"schema": "tfgrpo.marks/1", "run_id": "x", "marks": [{}]}', "/marks/0"),
    ('{"schema": "tfgrpo.marks/1", "run_id": "x", "marks": [], "path": "/etc/passwd"}', "path"),
    ('{"schema": "tfgrpo.marks/1", "run_id": NaN, "marks": []}', "NaN"),
    ('{"a": ' * 100, "not JSON"),
)


def test_a_file_that_holds_no_marks_is_refused(toured: Project, capsys: pytest.CaptureFixture[str]) -> None:
    for text, message in NO_MARKS:
        toured.write("bad.json", text)
        told = said(toured, capsys, "--marks", "bad.json", code=1)
        assert told.startswith("tfgrpo: bad.json")
        assert message in told


def test_a_missing_file_and_a_pipe_are_refused(toured: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be read" in said(toured, capsys, "--marks", "none.json", code=1)
    assert "cannot be read" in said(toured, capsys, "--marks", "/dev/zero", code=1)


def test_changed_copies_leave_the_scenarios_as_they_are(
    toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(toured, capsys, "apply", "--marks", "marks.json", "--new", "--patch", "new.patch")
    assert "judged twice" in told
    assert not list(toured.root.glob("*-reviewed*"))
    told = said(toured, capsys, "apply", "--marks", "marks.json", "--new", "--write")
    for name in ("capital", "river"):
        assert f"wrote  {name}-reviewed.scenario.yaml\n" in told
    assert (toured.root / "travel.scenario.yaml").read_text() == SUITE
    text = (toured.root / "capital-reviewed.scenario.yaml").read_text()
    assert (
        text
        == """\
# capital, as a review has it
split: eval
domain: travel
id: capital-reviewed
prompt: 'What is the capital of France?'
checks: [{kind: contains, value: Paris}, {kind: contains, not: true, value: Lyon}]
"""
    )
    patch = (toured.root / "new.patch").read_text()
    assert patch.startswith("--- /dev/null\n+++ b/capital-reviewed.scenario.yaml\n@@ -0,0 +1,6 @@\n")
    assert toured.learn("-q").ret == 0
    assert {one["scenario_id"] for one in toured.events("rollout")} == {
        "capital",
        "capital-reviewed",
        "river",
        "river-reviewed",
    }
    toured.write("river.json", json.dumps(marks_of(toured, "Ann", **{"THE SEINE": "right"})))
    assert "river-reviewed is there already" in said(
        toured, capsys, "apply", "--marks", "river.json", "--new"
    )


def test_what_does_not_go_together_is_refused(
    toured: Project, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--write", "--patch=x", "--new"):
        told = said(toured, capsys, option, "--marks", "marks.json", code=1)
        assert "belong to `tfgrpo review apply`" in told
    for runs in (("one", "two"), ("apply", "one", "two")):
        assert "one run at a time" in said(toured, capsys, *runs, "--marks", "marks.json", code=1)
    assert (toured.root / "travel.scenario.yaml").read_text() == SUITE


def test_where_checks_and_people_agree_nothing_is_proposed(
    toured: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    value = marks_of(toured, "Ann", **{"It is Paris.": "right", "the Rhine": "wrong", "THE SEINE": "unsure"})
    toured.write("marks.json", json.dumps(value))
    assert said(toured, capsys, "apply", "--marks", "marks.json") == "nothing to change\n"
    told = said(toured, capsys, "--marks", "marks.json")
    assert "agree on 2 of 2: 0 false passes, 0 false fails" in " ".join(told.split())
    assert "next" not in told
