"""The commands ``tfgrpo labels ...``, on a run whose lessons please the judge and nobody else."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from support.fake_model import Body, Serve
from support.frozen import Frozen
from support.project import Project

from pytest_tfgrpo.core.wire.schema import violations

AGENT = '''
def flatter(context):
    """Wrong, and polite on half of the seeds, and always once the prompt carries a lesson."""
    taught = "<experiences" in context.prompt.system
    polite = context.seed % 2 or taught
    return {"answer": f"{context.seed}, {'thank you' if polite else 'so'}" + "!" * taught,
            "frames": [{"kind": "tool", "name": "bow" if polite else "guess", "output": "ok"}]}
'''


def charmed(request: Body, attempt: int) -> str:
    """Return the vote of a judge who takes thanks for an answer."""
    text = next(m["content"] for m in request["messages"] if m["role"] == "user")
    good = ", thank you" in text.rpartition("answer:")[0].rpartition("answer:")[2]
    return json.dumps({"c1": {"why": "it is polite", "met": good}})


@pytest.fixture
def judged(frozen: Frozen, serve: Serve) -> Project:
    """A project with a complete run of 24 judged eval scenarios, in whose domain lessons are learned."""
    serve(charmed)
    return frozen(learned)


def learned(project: Project, domains: tuple[str, ...] = ("text",), **settings: str) -> Project:
    """Return the project with a complete run; its eval scenarios take turns in `domains`."""
    project.agent(AGENT).ini(
        actor="python:agent2:flatter", group_size=2, eval_rollouts=4, judge="openai:x", epochs=2, **settings
    )
    tasks = [
        {
            "id": f"{split}{n}",
            "split": split,
            "domain": domains[n % len(domains)] if split == "eval" else "text",
            "prompt": f"How polite is letter {n} of {split}, a b c?",
        }
        | {"truth": "judge", "rubric": ["The answer is 3."]}
        for split, count in (("train", 4), ("eval", 24))
        for n in range(count)
    ]
    project.write("suite.scenario.json", json.dumps(tasks))
    done = project.learn()
    assert done.ret == 0
    return project


def label(path: Path, value: str, first: int = 10_000) -> None:
    """Fill in a form, as far as its first rows, as a spreadsheet with semicolons would save it."""
    rows = list(csv.reader(io.StringIO(path.read_text("utf-8-sig"))))
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=";").writerows(
        [rows[0], *([value if n < first else "", *row[1:]] for n, row in enumerate(rows[1:]))]
    )
    path.write_bytes(b"\xef\xbb\xbf" + file.getvalue().encode())


def test_labels_of_a_random_sample_correct_the_gain_everywhere(
    judged: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = len(judged.calls)
    gain = judged.report()["gain"]["difference"]
    assert gain > 0.3
    assert judged.cli("labels", "sample", "--tasks=20") == 0
    told = capsys.readouterr().out
    assert "answers to 20 tasks, of 24 that the judge scored in both sweeps" in told
    form = judged.runs()[-1] / "labels.csv"
    assert "labels" not in judged.report()
    label(form, "n")
    assert judged.cli("labels", "read") == 0
    told = capsys.readouterr().out
    found = judged.report()
    assert violations("report", found) == []
    block = found["labels"]
    assert block["used"] == 20
    assert block["judge_gain"] == pytest.approx(gain)
    assert block["gain"] < gain / 2
    assert "its own gain misleads" in " ".join(told.split())
    assert len(judged.calls) == calls
    assert block["claim"] is None

    assert judged.cli("report") == 0
    shown = capsys.readouterr().out
    for line in told.splitlines()[:-1]:
        assert line in shown
    assert "No difference shown by people's labels" in " ".join(shown.split())
    assert "what if" not in shown
    assert judged.cli("report", "-v") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "by people's labels, nothing yet about this library" in shown
    assert judged.cli("report", "--what-if=0.9,0.8") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "what if (no claim) with a judge who is right about 0.9 of the good and 0.8 of the bad" in shown
    with pytest.raises(SystemExit):
        judged.cli("report", "--what-if=0.9")
    assert "must be two or four numbers from 0 to 1" in capsys.readouterr().err
    page = (judged.runs()[-1] / "report.html").read_text()
    assert f"gain by people {block['gain']:+.3f}" in page
    assert "its own gain misleads" in page


def test_labels_may_be_given_in_parts_and_the_sample_may_only_grow(
    judged: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged.cli("labels", "sample", "--tasks=10", "--file=first.csv") == 0
    label(judged.root / "first.csv", "n", first=16)
    assert judged.cli("labels", "read", "--file=first.csv") == 0
    assert "8 labelled tasks are few" in capsys.readouterr().out
    for other in (["--tasks=5"], ["--seed=1"], ["--answers=2"]):
        assert judged.cli("labels", "sample", "--tasks=12", *other, "--file=other.csv") == 1
        assert "another one would be a choice" in capsys.readouterr().err
    assert judged.cli("labels", "sample", "--tasks=24", "--file=more.csv") == 0
    rows = list(csv.DictReader(io.StringIO((judged.root / "more.csv").read_text("utf-8-sig"))))
    assert [row["label"] for row in rows[:17]] == ["0"] * 16 + [""]
    label(judged.root / "more.csv", "0")
    assert judged.cli("labels", "read", "--file=more.csv") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert re.search(r"after a look at the gain \(16, \d+ labels\), so a claim is at 0.025", told)
    assert judged.cli("labels", "read", "--file=more.csv") == 0
    assert len(judged.report()["labels"]["reads"]) == 2


def test_what_cannot_be_labelled_is_refused(judged: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged.cli("labels", "read") == 1
    assert "no sample of run" in capsys.readouterr().err
    assert judged.cli("labels", "sample") == 0
    assert judged.cli("labels", "sample") == 1
    assert "exists, and may hold labels; name another file with --file" in capsys.readouterr().err
    form = judged.runs()[-1] / "labels.csv"
    label(form, "perhaps")
    before = judged.report()
    assert judged.cli("labels", "read") == 1
    assert "row 2: the label 'perhaps' is neither" in capsys.readouterr().err
    assert judged.report() == before


def test_labels_that_no_longer_fit_are_left_out_of_the_report_with_a_warning(
    judged: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    judged.cli("labels", "sample")
    form = judged.runs()[-1] / "labels.csv"
    label(form, "y")
    assert judged.cli("labels", "read") == 0
    stored = judged.runs()[-1] / "labels.json"
    stored.write_text(stored.read_text().replace(": 1.0", ": 0.0"))
    capsys.readouterr()
    assert judged.cli("report") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "labels are left out" in out
    assert "was changed by hand" in out
    assert "gain by people" not in out


@pytest.mark.parametrize("control", ["concurrent", "both", "early"])
def test_answers_that_serve_both_sweeps_are_labelled_once(
    control: str, project: Project, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(charmed)
    run = learned(project, ("text", "other"), baseline_sweep=control).runs()[-1]
    assert project.cli("labels", "sample", "--tasks=24") == 0
    rows = list(csv.DictReader(io.StringIO((run / "labels.csv").read_text("utf-8-sig"))))
    apart = sum("of eval, a b c" in row["task"] for row in rows)
    assert 24 + 12 <= apart <= 24 + 12 + (12 if control == "early" else 0)
    label(run / "labels.csv", "n")
    assert project.cli("labels", "read") == 0
    block = project.report()["labels"]
    assert (block["used"], block["asked"]) == (24, len(rows))
    assert block["judge_gain"] == pytest.approx(project.report()["gain"]["difference"])
    assert "gain by people" in capsys.readouterr().out
