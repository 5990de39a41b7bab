"""Record and replay as a user meets them: a run once paid for is repeated from a file, to the same report."""

import re
import sys

import pytest
from support.fake_model import Serve
from support.plugin.replay import AGENTS, FILE, LESSON, RECORD, REPLAY, WRITER, answer, assert_same, cut
from support.project import Project
from support.tools import tfgrpo


@pytest.fixture
def models(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose actor, teacher and judge are models, asked through ``OPENAI_BASE_URL``."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    project.write(
        "models.yaml",
        "endpoints: {default: {retries: 0}}\n"
        "prices: {pupil: {input: 1, output: 10}, judge: {input: 2, output: 20}}\n",
    )
    project.ini(
        actor="openai:pupil",
        optimizer="llm",
        teacher="openai:teacher",
        judge="openai:judge",
        models="models.yaml",
        group_size=4,
        judge_votes=3,
    )
    return project.scenarios(train=6, sweep=3, rubric=["The answer is short.", "The answer is a number."])


@pytest.fixture
def paid(models: Project, serve: Serve) -> Project:
    """Return that project after a run that was recorded; its server has gone."""
    server = serve(answer)
    models.learn(*RECORD)
    server.close()
    return models


def test_a_run_with_models_replays_to_the_same_report_without_a_server(
    models: Project, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    server = serve(answer)
    done = models.learn(*RECORD)
    server.close()
    done.stdout.fnmatch_lines(["recorded * rollouts and * model calls in recording.jsonl *"])
    by_model = {body["model"] for body in server.requests}
    assert by_model == {"pupil", "teacher", "judge"}
    monkeypatch.delenv("OPENAI_API_KEY")
    models.learn(*REPLAY)
    recorded, replayed = models.runs()
    assert_same(recorded, replayed)
    report = models.report()
    assert report["library"]["lessons"][0]["text"] == LESSON
    assert report["faults"]["errors"] == {"rejected": report["faults"]["errors"]["rejected"]}
    assert "sk-test" not in (models.root / FILE).read_text()


def test_a_run_is_recorded_after_it_was_made(
    models: Project, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    server = serve(answer)
    models.learn()
    server.close()
    tfgrpo("record", "add", FILE)
    text = (models.root / FILE).read_text()
    tfgrpo("record", "add", FILE, "--run", models.runs()[-1].name)
    assert (models.root / FILE).read_text() == text
    monkeypatch.delenv("OPENAI_API_KEY")
    models.learn(*REPLAY)
    assert_same(*models.runs())


def test_a_run_whose_files_are_gone_is_not_recorded_afterwards(project: Project) -> None:
    project.ini(actor="python:agent:right").scenarios(checks=[{"kind": "file", "path": "a", "contains": "x"}])
    project.learn()
    assert "was made without --tfgrpo-record" in tfgrpo("record", "add", FILE, code=1)
    assert not (project.root / FILE).exists()


def test_a_replay_loads_no_client(paid: Project) -> None:
    paid.conftest(
        "import sys\n"
        "def pytest_sessionfinish():\n"
        "    assert not {'aiohttp', 'httpx', 'pytest_tfgrpo.llm.server.transport'} & sys.modules.keys()\n"
    )
    done = run(paid, *REPLAY)
    assert "INTERNALERROR" not in done
    assert_same(*paid.runs())


@pytest.fixture
def moody(project: Project) -> Project:
    project.write("moody.py", AGENTS)
    return project.ini(actor="python:moody:moody", group_size=4).scenarios(train=6, sweep=4)


def run(project: Project, *args: str) -> str:
    """Return what a learning run in a process of its own prints."""
    return project.start(*args).communicate(timeout=100)[0]


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.8])
def test_a_replay_that_was_killed_goes_on_where_it_was(moody: Project, keep: float) -> None:
    moody.ini(actor="python:moody:moody", optimizer="none").learn(*RECORD)
    moody.learn(*REPLAY)
    first, last = moody.runs()
    cut(last, keep)
    moody.learn(*REPLAY, "--tfgrpo-resume", last.name)
    assert moody.runs() == [first, last]
    assert_same(first, last)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_a_replay_with_models_that_was_killed_goes_on_where_it_was(paid: Project, keep: float) -> None:
    paid.learn(*REPLAY)
    first, last = paid.runs()
    cut(last, keep)
    paid.learn(*REPLAY, "--tfgrpo-resume", last.name)
    assert_same(first, last)


def test_workers_record_and_replay_as_one_process_does(moody: Project) -> None:
    moody.plugins("xdist").learn("-n", "2", *RECORD)
    moody.learn("-n", "2", *REPLAY)
    assert_same(*moody.runs())


def test_a_resumed_run_records_also_what_was_paid_for_before_it_was_killed(project: Project) -> None:
    project.write(
        "moody.py", AGENTS.replace("    Moody.said += 1\n", "    Moody.said += 1\n    time.sleep(0.01)\n")
    )
    project.write("moody.py", "import time\n" + (project.root / "moody.py").read_text())
    project.ini(actor="python:moody:moody", group_size=4, concurrency=2).scenarios(train=6, sweep=4)
    process = project.start(*RECORD)
    project.wait_for_rollouts(process, 26)
    process.kill()
    process.communicate()
    assert not (project.root / FILE).exists()
    run(project, "--tfgrpo-resume", "latest", *RECORD)
    run(project, *REPLAY)
    assert_same(*project.runs())


def test_what_an_agent_left_in_its_workspace_is_there_again(project: Project) -> None:
    project.write("writer.py", WRITER).write("given.txt", "take this away").ini(actor="python:writer:write")
    gone = "import pathlib, sys; sys.exit(pathlib.Path('given.txt').exists())"
    checks = [
        {"kind": "file", "path": "sub/note.txt", "contains": "done"},
        {"kind": "command", "run": [sys.executable, "-c", gone]},
    ]
    project.scenarios(checks=checks, attachments=["given.txt"])
    project.learn(*RECORD)
    (project.root / "writer.py").unlink()
    project.learn(*REPLAY)
    assert_same(*project.runs())
    assert project.report()["epochs"][-1]["gt_score"]["mean"] == 1.0


def test_prompts_that_differ_for_a_setting_are_not_blamed_on_the_pack(project: Project) -> None:
    project.ini(actor="python:agent:learner", group_size=4, lesson_dropout=0.9).scenarios(train=80).learn(
        *RECORD
    )
    assert project.report()["library"]["lessons"]
    project.learn(*REPLAY, "--tfgrpo-lesson-dropout", "0")
    (warning,) = [w for w in project.report()["warnings"] if "lacks" in w]
    assert "the prompt changed); settings differ: lesson_dropout was 0.9, is 0.0;" in warning
    journal = (project.runs()[-1] / "journal.jsonl").read_text()
    assert "in its current form: the prompt changed: lesson_dropout was 0.9, is 0.0" in journal
    assert "its prompt pack" not in journal


def test_a_replay_with_larger_sweeps_than_recorded_names_the_size_that_there_is(project: Project) -> None:
    project.scenarios(train=2, sweep=2).ini(actor="python:agent:half", acceptance="off")
    assert project.learn(*RECORD, "--tfgrpo-eval-rollouts=2").ret == 0
    lacking = project.pytester.runpytest_inprocess("-p", "no:cacheprovider", "--tfgrpo", *REPLAY)
    assert lacking.ret == pytest.ExitCode.TESTS_FAILED
    said = " ".join(lacking.stdout.str().split())
    assert "settings differ: eval_rollouts was 2, is 5; set eval_rollouts = 2, or record the rest" in said
    assert project.learn(*REPLAY, "--tfgrpo-eval-rollouts=2").ret == 0


def test_of_several_actors_in_a_file_one_is_named(project: Project) -> None:
    project.scenarios()
    for actor in ("python:agent:right", "python:agent:wrong"):
        project.learn("--tfgrpo-actor", actor, *RECORD)
    result = project.learn(*REPLAY)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"replay:{FILE}#python:agent:wrong" in result.stderr.str() + result.stdout.str()
    for actor, mean in (("python:agent:right", 1.0), ("python:agent:wrong", 0.0)):
        project.learn("--tfgrpo-actor", f"replay:{FILE}#{actor}")
        assert project.report()["epochs"][-1]["gt_score"]["mean"] == mean


def test_a_model_call_that_is_lacking_aborts_the_run_and_says_why(paid: Project) -> None:
    file = paid.root / FILE
    kept = [line for line in file.read_text().splitlines() if '"purpose":"learn"' not in line]
    file.write_text("\n".join(kept) + "\n")
    paid.learn(*REPLAY)
    report = paid.report()
    assert report["status"] == "aborted"
    assert re.search(
        r"a call of 'openai:teacher' is not in recording.jsonl: it was never recorded", report["reason"]
    )


def test_votes_that_are_lacking_are_no_verdict(paid: Project) -> None:
    file = paid.root / FILE
    kept = [line for line in file.read_text().splitlines() if '"purpose":"judge"' not in line]
    file.write_text("\n".join(kept) + "\n")
    paid.learn(*REPLAY)
    (warning,) = [w for w in paid.report()["warnings"] if "lacks" in w]
    assert "model calls: " in warning
