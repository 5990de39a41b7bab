"""The command ``tfgrpo export`` on runs as they are made: interrupted, replayed, by a model with tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import fake_model
from support.fake_model import Reply, Serve
from support.frozen import Frozen
from support.harbor import write_suite
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.cli.runs import export as command
from pytest_tfgrpo.core.wire.schema import violations


def learn(project: Project) -> None:
    project.scenarios(train=3).ini(actor="python:agent:learner", group_size=4, epochs=3, out="out")
    assert project.learn().ret == 0


@pytest.fixture
def learned(frozen: Frozen) -> Project:
    """A project that has learned in a run of two epochs."""
    return frozen(learn)


def export(*argv: str, code: int = 0, file: str = "rows.jsonl") -> list[Any]:
    """Return the rows that the command writes."""
    tfgrpo("export", *argv, "--force", "-o", file, code=code)
    return [json.loads(line) for line in Path(file).read_bytes().splitlines()]


def test_the_advantage_is_the_one_that_is_asked_for(learned: Project) -> None:
    kinds = {row["advantage_kind"] for row in export("--format", "rollouts", "--advantage", "rloo")}
    assert kinds == {"rloo"}


def test_the_rows_are_written_into_the_runs_folder_and_named(learned: Project) -> None:
    out = tfgrpo("export", "latest", "--format", "rollouts")
    file = learned.runs()[-1] / "rollouts.jsonl"
    assert out.splitlines() == [
        f"{file.relative_to(learned.root)}: 24 rows from 6 groups of run {file.parent.name}",
        "left out: nothing",
        "advantage grpo: (reward - mean of the group) / (deviation of the group, ddof 1, + 0.0001)",
    ]
    assert "exists; name another file with -o, or replace it with --force" in tfgrpo(
        "export", "--format", "rollouts", code=1
    )
    assert tfgrpo("export", "--format", "rollouts", "--force") == out


def test_answers_are_a_table_of_all_rollouts_in_the_runs_folder(learned: Project) -> None:
    out = tfgrpo("export", "--format", "answers")
    file = learned.runs()[-1] / "answers.csv"
    many = len(learned.events("rollout"))
    assert out == f"{file.relative_to(learned.root)}: {many} rows of run {file.parent.name}\n"
    assert file.read_text().startswith("agent,scenario,")
    for words in (("--bare",), ("--advantage", "grpo")):
        tfgrpo("export", "--format", "answers", *words, code=2)


def test_a_replay_gives_the_rows_of_the_run_that_was_recorded(learned: Project) -> None:
    tfgrpo("record", "add", "recording.jsonl")
    first = export("--format", "rollouts")
    assert learned.learn("--tfgrpo-actor=replay:recording.jsonl").ret == 0
    again = export("--format", "rollouts")
    for row in (*first, *again):
        for name in ("run_id", "group_id", "rollout_id"):
            row[name] = row[name].removeprefix(row["run_id"]) if name != "run_id" else row[name]
    runs = {row.pop("run_id") for row in first} | {row.pop("run_id") for row in again}
    assert len(runs) == 2
    assert again == first


TOOLS = '''
def count_words(text: str) -> int:
    """Count words."""
    return len(text.split())
'''


@pytest.mark.parametrize("kind", ["processed", "raw"])
def test_the_conversation_of_a_model_is_the_one_that_its_server_saw(
    project: Project, serve: Serve, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    wanted = fake_model.calls(("count_words", {"text": "a b c"}), ("nothing", "{")).body
    calling = {"tool_calls": wanted["choices"][0]["message"]["tool_calls"]}

    def answer(body: Any, _: int) -> Reply:
        seed = body["seed"]
        if body["messages"][-1]["role"] == "tool":
            return fake_model.sampled("3" if seed % 2 else "4", [-0.5, -1 / (1 + seed)], ids=[seed, 2])
        return fake_model.sampled("I count.", [-0.25], ids=[3], **calling)

    server = serve(answer, extra=["return_token_ids"])
    project.write("own_tools.py", TOOLS)
    extra = f"{{logprobs: {kind}, extra_body: {{return_token_ids: true}}}}"
    project.write("models.yaml", f"endpoints: {{default: {extra}}}\n")
    settings = {"tools": "own_tools", "models": "models.yaml", "epochs": 2, "allow_paid": "true"}
    project.scenarios(train=2, sweep=1).ini(actor="openai:small", group_size=4, **settings)
    monkeypatch.chdir(project.root)
    assert project.learn().ret == 0
    rows = export("--format", "rollouts")
    assert len(rows) == 8
    assert [violations("rollouts", row) for row in rows if violations("rollouts", row)] == []
    asked = {
        (body["messages"][1]["content"], body["seed"]): body["messages"]
        for body in server.requests
        if body["messages"][-1]["role"] == "tool"
    }
    for row in rows:
        seed = row["seed"] % 2**31
        seen = asked[row["messages"][1]["content"], seed]
        assert [plain(m) for m in row["messages"][:-1]] == [plain(m) for m in seen]
        assert row["messages"][-1]["content"] == ("3" if row["reward"] else "4")
        same = {"kind": kind, "temperature": 0.7} | ({} if kind == "processed" else {"logprobs": None})
        assert row["sampled_reason"] == ("" if kind == "processed" else "raw_at_temperature")
        assert row["sampled"] == [
            {"message": 2, "logprobs": [-0.25], "token_ids": [3]} | same,
            {"message": 5, "logprobs": [-0.5, -1 / (1 + seed)], "token_ids": [seed, 2]} | same,
        ]


def plain(message: Any) -> Any:
    calls = [
        (call["function"]["name"], call["function"]["arguments"].replace(" ", ""))
        for call in message.get("tool_calls") or ()
    ]
    return message["role"], message["content"], calls


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--format", "rollouts", "--bare"], "--bare is for preference and prompt"),
        (["--format", "prompt", "--advantage", "rloo"], "--advantage is for --format rollouts"),
        (["--format", "prompt", "-o", "-"], "-o takes the name of a file"),
        (["--format", "rows"], "invalid choice: 'rows'"),
        ([], "--format"),
    ],
)
def test_options_that_do_not_fit_are_wrong_usage(argv: list[str], said: str) -> None:
    assert said in tfgrpo("export", "latest", *argv, code=2)


def test_a_suite_goes_out_as_tasks_and_comes_back(tmp_path: Path) -> None:
    suite, tasks = write_suite(tmp_path / "suite"), tmp_path / "tasks"
    write_suite(suite, "two", workspace=None, checks=[{"kind": "exact", "value": "4"}])
    first, told, last = tfgrpo("export", "harbor", str(suite), "--into", str(tasks)).splitlines()
    assert first.startswith("1 task in ")
    assert told.startswith("not exported: two: it has no workspace: ")
    assert last.startswith("no container was built or run: ")
    assert "one exists; name another folder" in tfgrpo(
        "export", "harbor", str(suite), "--into", str(tasks), code=1
    )
    assert tfgrpo("import", "harbor", str(tasks), "--into", str(tmp_path / "back")).startswith(
        "1 scenario in "
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("harbor",), "name a suite and a folder: tfgrpo export harbor SUITE --into FOLDER"),
        (("harbor", "suite"), "name a suite and a folder"),
        (("harbor", "suite", "--into", "x", "--format", "rollouts"), "are for the export of a run"),
        (("harbor", "suite", "--into", "x", "-o", "y"), "are for the export of a run"),
        (("harbor", "suite", "--into", "x", "--bare"), "are for the export of a run"),
        (("harbor", "suite", "--into", "x", "--advantage", "rloo"), "are for the export of a run"),
        (("latest", "suite", "--format", "rollouts"), "SUITE and --into are for tfgrpo export harbor"),
        (("--into", "x", "--format", "rollouts"), "SUITE and --into are for tfgrpo export harbor"),
        ((), "the following arguments are required: --format"),
    ],
)
def test_a_run_and_a_suite_are_not_mixed_up(words: tuple[str, ...], why: str) -> None:
    assert why in tfgrpo("export", *words, code=2)


def test_what_is_asked_for_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "project_of", lambda _: None)
    monkeypatch.setattr(command, "find_run", lambda project, wanted: tmp_path / wanted)
    monkeypatch.setattr(command, "write", lambda *given: asked.append(given) or ["written"])
    monkeypatch.setattr(
        command, "export_tasks", lambda *given, force: asked.append((*given, force)) or ["tasks"]
    )
    assert tfgrpo("export", "run1", "--format", "preference", "--bare") == "written\n"
    tfgrpo("export", "--format", "rollouts", "--advantage", "rloo", "--force", "-o", "mine.jsonl")
    tfgrpo("export", "harbor", "suite", "--into", "x", "--force")
    (run, usual, bare), (latest, own, forced), tasks = asked
    assert (run, usual) == (tmp_path / "run1", Path("run1/preference.jsonl"))
    assert (bare.format, bare.advantage, bare.bare, bare.force) == ("preference", "grpo", True, False)
    assert (latest, own) == (tmp_path / "latest", Path("mine.jsonl"))
    assert (forced.format, forced.advantage, forced.bare, forced.force) == ("rollouts", "rloo", False, True)
    assert tasks[2] is True
    assert [str(name) for name in tasks[:2]] == ["suite", "x"]
