"""Conversations as a user meets them: several turns of one rollout, with any actor."""

import sys
import time
from typing import Any

import pytest
from support.fake_model import Body, Serve
from support.plugin.conversations import AGENT, SAME, USER, player, rollouts, talks
from support.project import Project


@pytest.fixture
def project(project: Project) -> Project:
    return project.ini(actor="python:agent2:booking", out="out", contamination="warn")


PROGRAM = """
import json, sys
first = json.loads(sys.stdin.readline())
assert first["conversation"] is True
heard = [first["prompt"]["user"]]
while True:
    print(json.dumps({"frame": {"kind": "tool", "name": f"look{len(heard)}", "output": "ok"}}))
    print(json.dumps({"answer": " / ".join(heard), "tokens": 3}), flush=True)
    line = sys.stdin.readline()
    if not line:
        break
    heard.append(json.loads(line)["user"])
open("said.txt", "w").write(" / ".join(heard))
"""


def command(project: Project, body: str, **fields: Any) -> Project:
    project.write("agent.py", body).ini(actor=f"command:{sys.executable} agent.py", out="out")
    return talks(project, **fields)


def test_a_command_is_one_process_that_answers_line_by_line(project: Project) -> None:
    checks = [*SAME["checks"], {"kind": "file", "path": "said.txt", "contains": "At seven."}]
    command(project, PROGRAM, checks=checks).run().assert_outcomes(passed=1)
    (rollout,) = rollouts(project)
    assert [frame["kind"] for frame in rollout["frames"]] == ["user", "tool", "model"] * 3
    assert rollout["tokens"] == 9


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ('print(\'{"answer": "x"}\')', "no_answer", "the program ended after turn 1 without an answer"),
        ('print(\'{"answr": "x"}\', flush=True); input(); input()', "garbage", "did you mean 'answer'?"),
        ("print(input(), flush=True); input()", "garbage", 'line 1 is not {"frame": {...}}'),
        ("print('hello', flush=True); input(); input()", "garbage", 'a line {"answer": "..."} for each turn'),
        ('input(); print(\'{"answer": "x"}\', flush=True); input(); 1/0', "crash", "ZeroDivisionError"),
        ("print('{\"answer\": 3}', flush=True); input(); input()", "garbage", "must be a string"),
        (
            'for _ in range(10**6): print(\'{"frame": {"kind": "tool", "name": "a"}}\')',
            "oversize",
            "printed more",
        ),
        (
            'print(\'{"answer": "x"}\\n\' * 3, flush=True); [input() for _ in range(3)]',
            "garbage",
            "the program printed an answer before it received message 2",
        ),
        ("import time; time.sleep(60)", "timeout", "no answer to turn 1 within"),
        ('print(\'{"error": "busy"}\', flush=True)', "provider", "the program reported: busy"),
    ],
)
def test_a_command_that_breaks_the_protocol(project: Project, body: str, code: str, message: str) -> None:
    command(project, body, timeout_s=0.5 if code == "timeout" else 100).run().assert_outcomes(failed=1)
    (rollout,) = rollouts(project)
    assert rollout["failure"]["code"] == code
    assert message in rollout["failure"]["message"]
    assert rollout["status"] == ("error" if code == "provider" else "failed")


@pytest.mark.parametrize("end", ["1/0", "pass", "print('{' * 10**6)"])
def test_a_turn_without_an_answer_keeps_the_calls_in_it(project: Project, end: str) -> None:
    frame = '{"frame": {"kind": "model", "name": "m", "cost_usd": 0.25}}'
    answer = '{"answer": "x"}'
    said = [
        f"input(); print({frame!r})",
        f"print({answer!r}, flush=True); input(); print({frame!r}, flush=True)",
    ]
    command(project, "\n".join([*said, end]), timeout_s=100).run().assert_outcomes(failed=1)
    (rollout,) = rollouts(project)
    assert rollout["status"] == "failed"
    assert rollout["cost_usd"] == 0.5


def test_a_large_message_reaches_a_program_that_reads_late(project: Project) -> None:
    body = PROGRAM.replace("heard.append(", "import time; time.sleep(.2); heard.append(")
    turns = ["A table.", "x" * 90_000 + "At seven."]
    command(project, body, turns=turns, timeout_s=100).run().assert_outcomes(passed=1)


def test_a_run_killed_in_a_conversation_repeats_no_finished_rollout(project: Project) -> None:
    slow = AGENT.replace("    log(context)\n", "    log(context); import time; time.sleep(.05)\n")
    talks(project.ini(actor="python:agent2:booking", concurrency=1, contamination="warn"), train=4).agent(
        slow
    )
    process = project.start()
    project.wait_for_rollouts(process, 3)
    process.kill()
    process.communicate()
    done = {tuple(r[k] for k in ("scenario_id", "seed", "epoch")) for r in rollouts(project)}
    before = len(project.calls)
    project.learn("--tfgrpo-resume=latest")
    assert project.manifest()["status"] == "complete"
    on_file = rollouts(project)
    assert len({r["rollout_id"] for r in on_file}) == len(on_file)
    assert 3 * (len(on_file) - len(done)) == len(project.calls) - before


def test_workers_report_the_same(project: Project) -> None:
    talks(project, train=2).learn()
    alone = project.report()["epochs"]
    project.plugins("xdist").learn("-n", "2")
    assert [row["gt_score"] for row in project.report()["epochs"]] == [row["gt_score"] for row in alone]


def test_a_run_killed_while_users_are_played_repeats_no_finished_rollout(
    project: Project, serve: Serve
) -> None:
    def slow(body: Body, attempt: int) -> Any:
        time.sleep(0.03)
        return player(body, attempt)

    server = serve(slow)
    project.ini(actor="openai:waiter", user="openai:guest", concurrency=1, contamination="warn")
    checks = [{"kind": "exact", "value": "Booked for Lee."}]
    talks(project, ["A table for four."], train=3, sweep=3, user=USER, checks=checks)
    process = project.start()
    project.wait_for_rollouts(process, 4)
    process.kill()
    process.communicate()
    done, calls = len(rollouts(project)), len(project.events("call"))
    asked = len(server.requests)
    project.learn("--tfgrpo-resume=latest")
    assert project.manifest()["status"] == "complete"
    ids = [rollout["rollout_id"] for rollout in rollouts(project)]
    assert len(set(ids)) == len(ids) > done >= 4
    assert len(server.requests) - asked <= 4 * (len(ids) - done) + 1  # two of each side, and a first word
    assert len(project.events("call")) > calls


def test_agents_side_by_side_hold_conversations_each_in_a_world_of_its_own(project: Project) -> None:
    (project.root / "pytest.ini").write_text(
        "[pytest]\ntfgrpo_actor = python:agent2:booking, python:agent2:plain\ntfgrpo_out = out\n"
    )
    turns = ["A table for two.", "At seven."]
    step = {"command": ["sh", "-c", "echo x > made.txt"]}
    checks = [*SAME["checks"], {"kind": "file", "path": "made.txt", "contains": "x"}]
    talks(project, turns, setup=step, checks=checks).run().assert_outcomes(passed=2)
