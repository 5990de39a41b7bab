"""Record and replay as a user meets them: a run once paid for is repeated from a file, to the same report."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.fake_model import Body, Reply, Serve, sampled
from support.frozen import Frozen
from support.plugin.replay import (
    AGENTS,
    FILE,
    RECORD,
    REPLAY,
    WRITER,
    assert_same,
    cut,
)
from support.preparing import refusal
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.runs.journal.journal_contents import load_run


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


def write_moody(project: Project) -> Project:
    project.write("moody.py", AGENTS)
    return project.ini(actor="python:moody:moody", group_size=4).scenarios(train=6, sweep=4)


def record(project: Project) -> None:
    write_moody(project).learn(*RECORD)


def record_twice(project: Project) -> None:
    """Record a run without lessons, whose final sweep asks what the baseline sweep asked."""
    write_moody(project).ini(actor="python:moody:moody", group_size=4, optimizer="none").learn(*RECORD)


@pytest.fixture
def moody(project: Project) -> Project:
    return write_moody(project)


@pytest.fixture
def recorded(frozen: Frozen) -> Project:
    """Return a project whose one run is recorded."""
    return frozen(record)


def test_whatever_became_of_rollouts_becomes_of_them_again(recorded: Project) -> None:
    recorded.learn(*REPLAY, "--tfgrpo-concurrency", "1")
    first, replayed = recorded.runs()
    report = recorded.report()
    assert report["faults"] == {
        "errors": {"declined": report["faults"]["errors"]["declined"]},
        "failed": {code: report["faults"]["failed"][code] for code in ("crash", "gave_up")},
    }
    report["settings"]["concurrency"] = 64
    (replayed / "report.json").write_text(json.dumps(report))
    assert_same(first, replayed)


def test_equal_questions_of_two_sweeps_keep_their_own_answers(frozen: Frozen) -> None:
    recorded = frozen(record_twice)
    recorded.learn(*REPLAY)
    first, last = (rollouts(folder) for folder in recorded.runs())
    outputs = [[frame["output"] for frame in rollout["frames"]] for rollout in first]
    assert len({text for texts in outputs for text in texts}) == sum(map(bool, outputs))
    assert [[frame["output"] for frame in rollout["frames"]] for rollout in last] == outputs


def rollouts(folder: Path) -> list[dict[str, Any]]:
    events = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    found = [event["data"] for event in events if event["event"] == "rollout"]
    return sorted(found, key=lambda r: (r["epoch"], r["scenario_id"], r["index"]))


def test_recording_a_replay_changes_nothing(recorded: Project) -> None:
    before = (recorded.root / FILE).read_bytes()
    recorded.learn(*REPLAY, *RECORD).stdout.fnmatch_lines(["recorded * (0 new)"])
    assert (recorded.root / FILE).read_bytes() == before


def test_plain_mode_records_and_replays_without_writing_anything_else(moody: Project) -> None:
    moody.write("moody.py", AGENTS.replace("context.seed % 7", "5"))
    recorded = moody.run("-v", *RECORD)
    replayed = moody.run("-v", *REPLAY)
    assert recorded.parseoutcomes() == replayed.parseoutcomes()
    assert recorded.parseoutcomes().keys() >= {"passed", "failed"}
    assert not (moody.root / "out").exists()
    assert [path.name for path in moody.root.glob("*.jsonl")] == [FILE]


def test_a_cancelled_run_records_what_was_done(moody: Project) -> None:
    moody.write("moody.py", AGENTS.replace("context.seed % 7", "1")).learn(*RECORD, "-x")
    assert len(moody.runs()) == 1
    assert moody.report()["status"] == "cancelled"
    assert len((moody.root / FILE).read_text().splitlines()) - 1 == len(moody.events("rollout")) > 0


CHECKERS = """
import pytest

@pytest.mark.tfgrpo(id="counted", domain="text", split="eval", prompt="How many letters has a word?")
def test_counted(rollout):
    assert rollout.answer in ("3", "4")

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


def test_too_much_in_a_workspace_is_an_error_of_the_replay_not_of_the_agent(project: Project) -> None:
    project.write("writer.py", WRITER.replace('"done"', '"done" * 2_000_000')).ini(
        actor="python:writer:write"
    )
    project.scenarios(checks=[{"kind": "file", "path": "sub/note.txt", "contains": "done"}])
    project.learn(*RECORD)
    project.learn(*REPLAY)
    assert project.report()["faults"] == {"errors": {"replay_files": 12}, "failed": {}}


def test_a_baseline_of_the_recorded_run_compares_with_the_replay(recorded: Project) -> None:
    assert recorded.cli("baseline", "save", "main") == 0
    result = recorded.learn(*REPLAY, "--tfgrpo-baseline", "main", "-v")
    assert "another actor" not in result.stdout.str()
    (rule,) = [rule for rule in recorded.report()["gate"]["results"] if rule["name"] == "baseline"]
    assert "notes" not in rule["figures"]
    assert rule["figures"]["difference"] == 0.0


def edited(line: bytes) -> bytes:
    """Return the line of an entry with a blank before its answer, and the checksum that then fits."""
    head = line[: line.rindex(b',"crc"')].replace(b'"answer":"', b'"answer":" ', 1)
    return b'%s,"crc":"%08x"}' % (head, zlib.crc32(head))


def test_a_recording_that_differs_from_that_of_the_baseline_is_named(project: Project) -> None:
    project.scenarios(train=0, sweep=2).ini(actor="python:agent:right", baseline_sweep="off")
    project.learn(*RECORD)
    project.learn(*REPLAY)
    assert project.cli("baseline", "save", "main") == 0
    compare = (*REPLAY, "--tfgrpo-baseline", "main")
    project.learn(*compare)
    assert not any("is not as it was" in warning for warning in project.report()["warnings"])
    file = project.root / FILE
    header, first, *others = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([header, edited(first), *others, b""]))
    project.learn(*compare)
    (warning,) = [text for text in project.report()["warnings"] if "is not as it was" in text]
    assert warning.startswith(
        "recording.jsonl is not as it was when baseline main was saved from it (SHA-256 "
    )


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
    frozen: Frozen, args: tuple[str, ...], why: str
) -> None:
    recorded = frozen(record_twice)
    result = recorded.learn(*REPLAY, *args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert recorded.report()["faults"]["errors"]["replay_miss"] > 0
    (warning,) = [w for w in recorded.report()["warnings"] if "lacks" in w]
    assert why in warning
    assert warning.endswith(
        "record them with --tfgrpo-actor='python:moody:moody' --tfgrpo-record=recording.jsonl"
    )


def test_a_changed_scenario_and_a_changed_prompt_are_told_apart(recorded: Project) -> None:
    file = recorded.root / "suite.scenario.json"
    values = json.loads(file.read_text())
    values[-1]["prompt"] += " Think!"
    file.write_text(json.dumps(values))
    recorded.learn(*REPLAY)
    (warning,) = [w for w in recorded.report()["warnings"] if "lacks" in w]
    assert "(rollouts: 8, what the agent meets of the scenario changed" in warning


def test_changed_checks_score_the_recorded_answers_anew_and_the_run_says_so(project: Project) -> None:
    """Also those of sweeps, which share seeds; recording such a replay changes nothing."""
    project.write("moody.py", AGENTS).ini(actor="python:moody:moody", group_size=4, optimizer="none")
    project.scenarios(train=2, sweep=2).learn(*RECORD)
    first, before = rollouts(project.runs()[0]), (project.root / FILE).read_bytes()
    file = project.root / "suite.scenario.json"
    values = json.loads(file.read_text())
    values[-1]["checks"] = [{"kind": "exact", "value": "4"}]
    file.write_text(json.dumps(values))
    project.learn(*REPLAY, *RECORD)
    (folder,) = project.runs()[1:]
    answers = [[(r["answer"], r["status"], r["seed"]) for r in made] for made in (first, rollouts(folder))]
    assert answers[0] == answers[1]
    changed = [
        (old["checks"][0]["credit"], new["checks"][0]["credit"])
        for old, new in zip(first, rollouts(folder), strict=True)
        if old["status"] == "ok" and old["scenario_id"] == values[-1]["id"]
    ]
    assert changed
    assert all(before + after == 1 for before, after in changed)
    said = f"1 scenario's checks changed since the recording; scored again: {values[-1]['id']}"
    assert said in project.report()["warnings"]
    assert (project.root / FILE).read_bytes() == before


def test_a_replay_is_never_recorded_as_if_it_had_answers(recorded: Project) -> None:
    before = (recorded.root / FILE).read_bytes()
    recorded.learn(*REPLAY, *RECORD, "--tfgrpo-seed", "5")
    assert (recorded.root / FILE).read_bytes() == before
    assert recorded.cli("record", "prune", FILE) == 1


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


def test_misuse_is_found_before_anything_is_asked(recorded: Project) -> None:
    runs = recorded.runs()
    found = {args: refusal(recorded, "--tfgrpo", *args) for args in MISUSE}
    assert [(args, said) for args, said in found.items() if MISUSE[args] not in said] == []
    result = recorded.learn(*OTHER_STEPS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert MISUSE[OTHER_STEPS] in result.stderr.str() + result.stdout.str()
    assert recorded.runs() == runs


def test_a_secret_in_an_answer_stays_out_of_the_file_and_is_told(project: Project) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    project.write("agent.py", f"def leak(context):\n    return 'the token is {secret}'\n")
    project.ini(actor="python:agent:leak").scenarios().learn(*RECORD).stdout.fnmatch_lines(
        ["*12 of them contained a secret, now redacted; replays use the redacted text"]
    )
    text = (project.root / FILE).read_text()
    assert secret not in text
    assert json.loads(text.splitlines()[0])["redacted"] == len(text.splitlines()) - 1


def test_a_budget_is_not_spent_by_a_replay(recorded: Project) -> None:
    recorded.learn(*REPLAY, "--tfgrpo-budget-usd", "0.001", "--tfgrpo-budget-tokens", "1")
    assert recorded.report()["status"] == "complete"


def entries(project: Project) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in (project.root / FILE).read_text().splitlines()[1:]]


def test_the_file_of_a_run_is_fit_for_git(recorded: Project) -> None:
    text = (recorded.root / FILE).read_bytes()
    assert text.isascii()
    found = entries(recorded)
    order = [(e["scenario"], e["kind"], e["fingerprint"], e["take"]) for e in found]
    assert order == sorted(set(order))
    assert recorded.runs()[0].name.encode() not in text
    assert recorded.cli("record", "verify", FILE) == 0


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
