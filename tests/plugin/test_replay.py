"""Record and replay as a user meets them: a run once paid for is repeated from a file, to the same report."""

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.fake_model import Body, Reply, Serve, refused, sampled
from support.preparing import refusal
from support.project import Project
from support.teachers import asked, operation, says
from support.tools import tfgrpo

from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.harness.run.journal_contents import load_run

FILE = "recording.jsonl"
REPLAY = ("--tfgrpo-actor", f"replay:{FILE}")
RECORD = ("--tfgrpo-record", FILE)
LESSON = "For letters: count each of the words, one by one."
TIMES = ("started_at", "finished_at", "updated_at", "created_at")
HISTORY = "evaluations"
"""The runs before it."""


def comparable(path: Path) -> Any:
    """Return a file of a run without what may differ: ids, times, the runs before, and who answers."""
    value = json.loads(path.read_text().replace(path.parent.name, "RUN"))
    value.get("settings", {}).update(actor="", record="")

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            ids = {"id", "parents"} if "polarity" in value else set()
            return {k: clean(v) for k, v in value.items() if k not in {*TIMES, HISTORY, *ids}}
        return [clean(v) for v in value] if isinstance(value, list) else value

    return clean(value)


def assert_same(recorded: Path, replayed: Path) -> None:
    assert recorded != replayed
    for name in ("report.json", "per-epoch.json"):
        assert comparable(replayed / name) == comparable(recorded / name)


def answer(body: Body, attempt: int) -> Reply | Body | str:
    """Be pupil, teacher or judge; never the same answer twice, and now and then none."""
    if body["model"] == "teacher":
        if "Several tasks of one domain" in asked(body):
            return says(operation(lesson=LESSON, sources=["P1"]))
        return "no JSON at all" if attempt == 0 and body["seed"] % 5 == 0 else says(operation(lesson=LESSON))
    if body["model"] == "judge":
        keys = body["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps({key: {"why": "it is so", "met": body["seed"] % 2 == 0} for key in keys})
    if body["seed"] % 11 == 0:
        return refused(400, "not this prompt")
    return "3" if LESSON in body["messages"][0]["content"] or body["seed"] % 3 == 0 else "4"


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


def sampled_of(folder: Path) -> dict[tuple[int, str, int], Any]:
    """Return the log-probabilities of a run's model calls by epoch, scenario and index, from its journal."""
    made = (r for result in load_run(folder).phases for group in result.groups for r in group.rollouts)
    return {(r.epoch, r.scenario_id, r.index): [frame.sampled for frame in r.frames] for r in made}


def test_log_probabilities_are_carried_by_journal_recording_replay_and_resumption(
    project: Project, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(body: Body, _: int) -> Reply:
        assert (body["logprobs"], body["return_token_ids"]) == (True, True)
        values = [-(body["seed"] % 1000 + 1) / 997, -0.1]
        return sampled(str(body["seed"] % 3 + 2), values, ids=[body["seed"], 2])

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    extra = "{logprobs: processed, extra_body: {return_token_ids: true}}"
    project.write("models.yaml", f"endpoints: {{default: {extra}}}\n")
    project.ini(actor="openai:m", models="models.yaml", epochs=2).scenarios(train=3, sweep=2)
    server = serve(answer, extra=["return_token_ids"])
    project.learn(*RECORD)
    server.close()
    (recorded,) = project.runs()
    told = sampled_of(recorded)
    seeds = {body["seed"]: body["temperature"] for body in server.requests}
    for (one,) in told.values():
        seed = one.token_ids[0]
        logprobs = (-(seed % 1000 + 1) / 997, -0.1)
        assert one == Sampled(
            kind="processed", logprobs=logprobs, token_ids=(seed, 2), temperature=seeds[seed]
        )
    assert {one.temperature for (one,) in told.values()} == {0.3, 0.7}
    project.learn(*REPLAY)
    replayed = project.runs()[-1]
    assert sampled_of(replayed) == told
    cut(replayed, 0.5)
    assert sampled_of(replayed) != told
    project.learn(*REPLAY, "--tfgrpo-resume")
    assert sampled_of(replayed) == told
    assert_same(recorded, replayed)
    rollout = project.events("rollout")[0]["rollout_id"]
    assert "log-probabilities: processed, 2 tokens with ids, temperature 0." in tfgrpo("show", rollout)
    tfgrpo("export", "latest", "--format", "rollouts", "-o", "rows.jsonl")
    rows = [json.loads(line) for line in (project.root / "rows.jsonl").read_text().splitlines()]
    assert rows
    for row in rows:
        (one,) = row["sampled"]
        assert (one["kind"], one["temperature"], seeds[one["token_ids"][0]]) == ("processed", 0.7, 0.7)


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
        "    assert not {'aiohttp', 'httpx', 'pytest_tfgrpo.llm.transport'} & sys.modules.keys()\n"
    )
    done = run(paid, *REPLAY)
    assert "INTERNALERROR" not in done
    assert_same(*paid.runs())


AGENTS = '''
from pytest_tfgrpo import AgentFailure, ProviderError


class Moody:
    """Never says the same twice."""

    said = 0


def moody(context):
    """Fail in every way there is; be right on some seeds, and always once the prompt carries a lesson."""
    Moody.said += 1
    match context.seed % 7:
        case 0:
            raise RuntimeError("the agent fell over")
        case 1:
            raise ProviderError("not for this temperature", "declined")
        case 2:
            raise AgentFailure("it gave up", "gave_up")
    right = context.seed % 3 == 0 or "<experiences" in context.prompt.system
    frame = {"kind": "tool", "name": "count" if right else "guess", "tokens": 3, "cost_usd": 0.001}
    frame |= {"output": f"try {Moody.said}", "latency_ms": 1.5}
    return {"answer": "3" if right else "4", "frames": [frame]}
'''


@pytest.fixture
def moody(project: Project) -> Project:
    project.write("moody.py", AGENTS)
    return project.ini(actor="python:moody:moody", group_size=4).scenarios(train=6, sweep=4)


def run(project: Project, *args: str) -> str:
    """Return what a learning run in a process of its own prints."""
    return project.start(*args).communicate(timeout=100)[0]


def test_whatever_became_of_rollouts_becomes_of_them_again(moody: Project) -> None:
    moody.learn(*RECORD)
    moody.learn(*REPLAY, "--tfgrpo-concurrency", "1")
    recorded, replayed = moody.runs()
    report = moody.report()
    assert report["faults"] == {
        "errors": {"declined": report["faults"]["errors"]["declined"]},
        "failed": {code: report["faults"]["failed"][code] for code in ("crash", "gave_up")},
    }
    report["settings"]["concurrency"] = 64
    (replayed / "report.json").write_text(json.dumps(report))
    assert_same(recorded, replayed)


def test_equal_questions_of_two_sweeps_keep_their_own_answers(moody: Project) -> None:
    """Without lessons the final sweep asks what the baseline sweep asked."""
    moody.ini(actor="python:moody:moody", optimizer="none").learn(*RECORD)
    moody.learn(*REPLAY)
    first, last = (rollouts(folder) for folder in moody.runs())
    outputs = [[frame["output"] for frame in rollout["frames"]] for rollout in first]
    assert len({text for texts in outputs for text in texts}) == sum(map(bool, outputs))
    assert [[frame["output"] for frame in rollout["frames"]] for rollout in last] == outputs


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


def cut(folder: Path, keep: float) -> None:
    """Leave of a run what it had written when it was killed, a share of its journal."""
    data = (folder / "journal.jsonl").read_bytes()
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "journal.jsonl").write_bytes(data[: int(keep * len(data))])


def rollouts(folder: Path) -> list[dict[str, Any]]:
    events = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    found = [event["data"] for event in events if event["event"] == "rollout"]
    return sorted(found, key=lambda r: (r["epoch"], r["scenario_id"], r["index"]))


def test_recording_a_replay_changes_nothing(moody: Project) -> None:
    moody.learn(*RECORD)
    before = (moody.root / FILE).read_bytes()
    moody.learn(*REPLAY, *RECORD).stdout.fnmatch_lines(["recorded * (0 new)"])
    assert (moody.root / FILE).read_bytes() == before


def test_plain_mode_records_and_replays_without_writing_anything_else(moody: Project) -> None:
    moody.write("moody.py", AGENTS.replace("context.seed % 7", "5"))
    recorded = moody.run("-v", *RECORD)
    replayed = moody.run("-v", *REPLAY)
    assert recorded.parseoutcomes() == replayed.parseoutcomes()
    assert recorded.parseoutcomes().keys() >= {"passed", "failed"}
    assert not (moody.root / "out").exists()
    assert [path.name for path in moody.root.glob("*.jsonl")] == [FILE]


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


def test_a_cancelled_run_records_what_was_done(moody: Project) -> None:
    moody.write("moody.py", AGENTS.replace("context.seed % 7", "1")).learn(*RECORD, "-x")
    assert len(moody.runs()) == 1
    assert moody.report()["status"] == "cancelled"
    assert len((moody.root / FILE).read_text().splitlines()) - 1 == len(moody.events("rollout")) > 0


CHECKERS = """
import pytest

@pytest.mark.tfgrpo(id="counted", domain="text", split="eval", prompt="How many letters has a word?")
def test_counted(rollout):
    assert rollout.answer == "3"

@pytest.mark.tfgrpo(id="written", domain="text", split="eval", prompt="Write a file.")
def test_written(rollout):
    assert (rollout.workspace / "sub" / "note.txt").read_text() == "done"

@pytest.mark.tfgrpo(id="skipped", domain="text", split="eval", prompt="Not here?")
def test_skipped(rollout):
    pytest.skip("not on this machine")

@pytest.mark.tfgrpo(id="broken", domain="text", split="eval", prompt="What breaks?")
def test_broken(rollout):
    raise RuntimeError("the checker fell over")
"""


WRITER = """
import json
from pathlib import Path

def write(context):
    note = Path(context.workspace) / "sub" / "note.txt"
    note.parent.mkdir()
    note.write_text("done")
    (note.parent / "raw.bin").write_bytes(bytes(range(256)))
    (Path(context.workspace) / "given.txt").unlink(missing_ok=True)
    return "3" if context.seed % 2 else "4"
"""


@pytest.mark.parametrize("mode", [(), ("--tfgrpo",)], ids=["plain", "learning"])
def test_test_functions_judge_a_replay_as_they_judged_the_run(
    project: Project, mode: tuple[str, ...]
) -> None:
    project.write("writer.py", WRITER).write("test_all.py", CHECKERS).ini(
        actor="python:writer:write", group_size=3
    )
    recorded = project.run(*mode, *RECORD, "--tfgrpo-out", "out")
    (project.root / "writer.py").unlink()
    replayed = project.run(*mode, *REPLAY, "--tfgrpo-out", "out")
    assert recorded.parseoutcomes() == replayed.parseoutcomes()
    assert {"passed", "skipped", "failed"} <= recorded.parseoutcomes().keys()
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


def test_too_much_in_a_workspace_is_an_error_of_the_replay_not_of_the_agent(project: Project) -> None:
    project.write("writer.py", WRITER.replace('"done"', '"done" * 2_000_000')).ini(
        actor="python:writer:write"
    )
    project.scenarios(checks=[{"kind": "file", "path": "sub/note.txt", "contains": "done"}])
    project.learn(*RECORD)
    project.learn(*REPLAY)
    assert project.report()["faults"] == {"errors": {"replay_files": 12}, "failed": {}}


def test_a_baseline_of_the_recorded_run_compares_with_the_replay(moody: Project) -> None:
    moody.learn(*RECORD)
    assert moody.cli("baseline", "save", "main") == 0
    result = moody.learn(*REPLAY, "--tfgrpo-baseline", "main", "-v")
    assert "another actor" not in result.stdout.str()
    (rule,) = [rule for rule in moody.report()["gate"]["results"] if rule["name"] == "baseline"]
    assert "notes" not in rule["figures"]
    assert rule["figures"]["difference"] == 0.0


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--tfgrpo-seed", "5"), "the seed changed); settings differ: seed was 0, is 5"),
        (
            ("--tfgrpo-temperature-eval", "0.5"),
            "the temperature changed); settings differ: temperature_eval was 0.3",
        ),
        (
            ("--tfgrpo-group-size=5", "--tfgrpo-eval-rollouts=4"),
            "the seed changed); settings differ: group_size was 4, is 5",
        ),
    ],
)
def test_what_a_recording_lacks_is_told_with_what_differs(
    moody: Project, args: tuple[str, ...], why: str
) -> None:
    moody.ini(actor="python:moody:moody", group_size=4, optimizer="none").learn(*RECORD)
    result = moody.learn(*REPLAY, *args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert moody.report()["faults"]["errors"]["replay_miss"] > 0
    (warning,) = [w for w in moody.report()["warnings"] if "lacks" in w]
    assert why in warning
    assert warning.endswith(
        "record them with --tfgrpo-actor='python:moody:moody' --tfgrpo-record=recording.jsonl"
    )


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


def test_a_changed_scenario_and_a_changed_prompt_are_told_apart(moody: Project) -> None:
    moody.learn(*RECORD)
    file = moody.root / "suite.scenario.json"
    values = json.loads(file.read_text())
    values[-1]["prompt"] += " Think!"
    file.write_text(json.dumps(values))
    moody.learn(*REPLAY)
    (warning,) = [w for w in moody.report()["warnings"] if "lacks" in w]
    assert "(rollouts: 8, the scenario's stamp changed" in warning


def test_a_replay_is_never_recorded_as_if_it_had_answers(moody: Project) -> None:
    moody.learn(*RECORD)
    before = (moody.root / FILE).read_bytes()
    moody.learn(*REPLAY, *RECORD, "--tfgrpo-seed", "5")
    assert (moody.root / FILE).read_bytes() == before
    assert moody.cli("record", "prune", FILE) == 1


OTHER_STEPS = (*REPLAY, "--tfgrpo-max-steps", "3")
MISUSE = {
    ("--tfgrpo-actor", "replay:none.jsonl"): "there is no recording",
    ("--tfgrpo-actor", "replay:"): "replay needs a recording",
    ("--tfgrpo-actor", f"replay:{FILE}#python:moody:wrong"): "did you mean 'python:moody:moody'",
    OTHER_STEPS: "max_steps was 10 when 'python:moody:moody' was recorded",
    (*REPLAY, "--tfgrpo-judge", "openai:judge"): "no language model 'openai:judge'; it has none",
    ("--tfgrpo-record", "moody.py"): "moody.py:1: not JSON",
    ("--tfgrpo-record", "."): "is a folder; name a file",
}


def test_misuse_is_found_before_anything_is_asked(moody: Project) -> None:
    moody.learn(*RECORD)
    runs = moody.runs()
    found = {args: refusal(moody, "--tfgrpo", *args) for args in MISUSE}
    assert [(args, said) for args, said in found.items() if MISUSE[args] not in said] == []
    result = moody.learn(*OTHER_STEPS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert MISUSE[OTHER_STEPS] in result.stderr.str() + result.stdout.str()
    assert moody.runs() == runs


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


def test_a_secret_in_an_answer_stays_out_of_the_file_and_is_told(project: Project) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    project.write("agent.py", f"def leak(context):\n    return 'the token is {secret}'\n")
    project.ini(actor="python:agent:leak").scenarios().learn(*RECORD).stdout.fnmatch_lines(
        ["*12 of them contained a secret, now redacted; replays use the redacted text"]
    )
    text = (project.root / FILE).read_text()
    assert secret not in text
    assert json.loads(text.splitlines()[0])["redacted"] == len(text.splitlines()) - 1


def test_a_budget_is_not_spent_by_a_replay(moody: Project) -> None:
    moody.learn(*RECORD)
    moody.learn(*REPLAY, "--tfgrpo-budget-usd", "0.001", "--tfgrpo-budget-tokens", "1")
    assert moody.report()["status"] == "complete"


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


def entries(project: Project) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in (project.root / FILE).read_text().splitlines()[1:]]


def test_the_file_of_a_run_is_fit_for_git(moody: Project) -> None:
    moody.learn(*RECORD)
    text = (moody.root / FILE).read_bytes()
    assert text.isascii()
    found = entries(moody)
    order = [(e["scenario"], e["kind"], e["fingerprint"], e["take"]) for e in found]
    assert order == sorted(set(order))
    assert moody.runs()[0].name.encode() not in text
    assert moody.cli("record", "verify", FILE) == 0


def test_a_recording_that_cannot_be_written_is_made_later(project: Project) -> None:
    project.scenarios(train=0, sweep=1).conftest(
        "import os\ndef pytest_tfgrpo_rollout():\n    os.makedirs('recording.jsonl', exist_ok=True)\n"
    )
    result = project.ini(actor="python:agent:right", baseline_sweep="off").learn(*RECORD)
    result.stdout.fnmatch_lines(["*to record the finished run, use: tfgrpo record add recording.jsonl*"])
    (project.root / FILE).rmdir()
    (project.root / "conftest.py").unlink()
    tfgrpo("record", "add", FILE)
    project.learn(*REPLAY).assert_outcomes(passed=2)
