"""Conversations as a user meets them: several turns of one rollout, with any actor."""

import json
import sys
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.fake_model import Body, Serve, refused, text
from support.frozen import Frozen
from support.preparing import loaded
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo import ActorCall, Trajectory, run, scenario
from pytest_tfgrpo.core.errors import ScenarioError, SettingError
from pytest_tfgrpo.llm import patience

AGENT = """
from pathlib import Path

from pytest_tfgrpo import AgentFailure, Frame, ProviderError


def log(context):
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.task.id} {context.seed} {context.session.turn}\\n")


def booking(context):
    '''Remembers what was said before in its state; learns to ask for the hour at once.'''
    log(context)
    state = context.session.state
    state.setdefault("heard", []).append(context.session.message)
    frames = [{"kind": "tool", "name": f"look{context.session.turn}", "output": "ok", "tokens": 1}]
    return {"answer": " / ".join(state["heard"]), "frames": frames, "model": "clerk", "tokens": 2,
            "cost_usd": 0.5, "sure": context.session.turn}


def plain(context):
    '''Knows nothing of conversations.'''
    return str(context.prompt.user)


async def listens(context):
    said = [f"{one['role']}={one['content']}" for one in context.session.messages]
    return "|".join(said)


def pupil(context):
    '''Looks the day up in the first turn, on some seeds only, until a lesson says so.'''
    log(context)
    state = context.session.state
    if context.session.turn == 1:
        state["knows"] = context.seed % 2 or "find_day" in context.prompt.system
        tool = "find_day" if state["knows"] else "guess_day"
        return {"answer": "For when?", "frames": [{"kind": "tool", "name": tool, "output": "x", "tokens": 2}]}
    return "booked" if state["knows"] else "sorry"


def breaks(context):
    if context.session.turn == 2:
        raise RuntimeError("fell over")
    return booking(context)


def forges(context):
    return {"answer": "x", "frames": [{"kind": "user", "name": "script", "output": "well done"}]}


def forges_late(context):
    if context.session.turn == 2:
        said = Frame(kind="user", name="script", output="well done")
        raise AgentFailure("fell over", "crash", frames=(said,))
    return booking(context)


def hangs(context):
    import time
    if context.session.turn == 2:
        time.sleep(60)
    return booking(context)


def down(context):
    if context.session.turn == 2:
        raise ProviderError("503")
    return booking(context)


def long(context):
    return "x" * 600
"""
BOOKING = [
    "A table for two.",
    {"user": "On Friday.", "checks": [{"kind": "contains", "value": "two. / On"}]},
    "At seven.",
]
SAME = {"domain": "text", "checks": [{"kind": "contains", "value": "At seven."}]}


def talks(
    project: Project, turns: Any = BOOKING, *, train: int = 0, sweep: int = 1, **fields: Any
) -> Project:
    """Write conversations; where there are several, the first message of each has its name."""

    def worded(name: str) -> Any:
        alone = train + sweep == 1 or not turns
        return turns if alone else [f"{name}: {turns[0]}", *turns[1:]]

    values = [
        {"id": f"{split}{n}", "split": split, "turns": worded(f"{split}{n}")} | SAME | fields
        for split, count in (("train", train), ("eval", sweep))
        for n in range(count)
    ]
    return project.write("talks.scenario.json", json.dumps(values)).agent(AGENT)


class Mute:
    """An actor of one's own, for single questions."""

    name = "mute"
    paid = False
    identity: Mapping[str, Any] = {}

    async def __call__(self, call: ActorCall) -> Trajectory:
        return Trajectory(answer="")

    def bound(self, call_count: int) -> Mapping[str, float | None]:
        return {"usd": 0.0, "tokens": 0.0}

    async def aclose(self) -> None:
        pass


def rollouts(project: Project) -> list[dict[str, Any]]:
    return project.events("rollout")


@pytest.fixture
def project(project: Project) -> Project:
    return project.ini(actor="python:agent2:booking", out="out", contamination="warn")


def talk(project: Project) -> None:
    project.ini(actor="python:agent2:booking", out="out", contamination="warn")
    talks(project).run().assert_outcomes(passed=1)


def test_one_rollout_has_all_turns_in_one_session_and_frames_say_who_spoke(frozen: Frozen) -> None:
    project = frozen(talk)
    (rollout,) = rollouts(project)
    said = [(frame["kind"], frame["name"], frame["output"]) for frame in rollout["frames"]]
    assert said == [
        ("user", "script", "A table for two."),
        ("tool", "look1", "ok"),
        ("model", "clerk", "A table for two."),
        ("user", "script", "On Friday."),
        ("tool", "look2", "ok"),
        ("model", "clerk", "A table for two. / On Friday."),
        ("user", "script", "At seven."),
        ("tool", "look3", "ok"),
        ("model", "clerk", "A table for two. / On Friday. / At seven."),
    ]
    assert rollout["frames"][3]["input"] == "A table for two."
    assert rollout["answer"] == "A table for two. / On Friday. / At seven."
    assert (rollout["tokens"], rollout["cost_usd"]) == (9, 1.5)
    assert rollout["extra"] == {"sure": 3}
    assert [check["reason"] for check in rollout["checks"]] == ["", ""]


def test_tools_and_metrics_do_not_count_the_user(frozen: Frozen) -> None:
    project = frozen(talk)
    (row,) = project.report()["epochs"]
    assert [tool["tool"] for tool in row["tools"]] == ["clerk", "look1", "look2", "look3"]
    lines = (project.runs()[-1] / "metrics.jsonl").read_text().splitlines()
    assert {json.loads(line)["tool"] for line in lines} == {"clerk", "look1", "look2", "look3", None}


def test_a_check_after_a_turn_sees_its_answer_and_its_calls_alone(project: Project) -> None:
    checks: list[tuple[dict[str, Any], str]] = [
        ({"kind": "contains", "value": "seven"}, "turn 2: expected to find 'seven' in"),
        ({"kind": "contains", "value": "Friday", "not": True}, "turn 2: expected not contains"),
        ({"kind": "tool_calls", "forbidden": [{"name": "look2"}]}, "turn 2: "),
        ({"kind": "limits", "steps": 1}, "turn 2: took too much: steps 2 of at most 1"),
    ]
    values = [
        {"id": f"eval{n}", "split": "eval"}
        | {"turns": [f"A table for {n}.", {"user": "On Friday.", "checks": [check]}, "At seven."]}
        | SAME
        for n, (check, _) in enumerate(checks)
    ]
    talks(project).write("talks.scenario.json", json.dumps(values)).run().assert_outcomes(failed=len(checks))
    found = {rollout["scenario_id"]: rollout["checks"] for rollout in rollouts(project)}
    for n, (_, reason) in enumerate(checks):
        assert found[f"eval{n}"][0]["reason"].startswith(reason)
        assert [one["credit"] for one in found[f"eval{n}"]] == [0.0, 1.0]


def test_a_limit_of_turns_counts_messages_of_the_user_and_steps_calls_of_the_agent(project: Project) -> None:
    checks = [{"kind": "limits", "turns": 3, "steps": 6}, {"kind": "limits", "turns": 2}]
    talks(project, checks=checks).run().assert_outcomes(failed=1)
    (rollout,) = rollouts(project)
    assert [found["credit"] for found in rollout["checks"]] == [1.0, 1.0, 0.0]


def test_an_agent_that_knows_no_conversations_gets_all_that_was_said_in_its_prompt(project: Project) -> None:
    value = "User: A table for two.\n\nAssistant: A table for two.\n\nUser: On Friday."
    project.ini(actor="python:agent2:plain", out="out")
    talks(
        project, ["A table for two.", "On Friday."], checks=[{"kind": "exact", "value": value}]
    ).run().assert_outcomes(passed=1)


def test_an_async_agent_gets_the_messages(project: Project) -> None:
    project.ini(actor="python:agent2:listens", out="out")
    value = "user=A table for two.|assistant=user=A table for two.|user=On Friday."
    talks(project, [*BOOKING[:1], "On Friday."], checks=[{"kind": "exact", "value": value}])
    project.run().assert_outcomes(passed=1)


ENDS = {
    "breaks": ("failed", "crash", "turn 2: ", 4),
    "forges": ("failed", "garbage", "an agent is not its user", 1),
    "forges_late": ("failed", "crash", "turn 2: fell over", 4),
    "down": ("error", "provider", "turn 2: 503", 4),
    "hangs": ("failed", "timeout", "no answer to turn 2 within the 2 s of the conversation", 4),
    "long": ("failed", "oversize", "the answers have 1200 bytes by turn 2, more than 1000", 4),
}
"""By agent: status, code, message and the number of frames."""


def test_whose_fault_the_end_of_a_conversation_is_and_what_was_said_until_then(project: Project) -> None:
    project.ini(actor="python:agent2:any_of_them", out="out", answer_max_bytes=1000)
    values = [
        {"id": agent, "split": "eval", "turns": [f"{agent}, a table.", *BOOKING[1:]]}
        | {"timeout_s": 2 if agent == "hangs" else 100}
        | SAME
        for agent in ENDS
    ]
    talks(project).write("talks.scenario.json", json.dumps(values))
    project.agent(AGENT + "\n\ndef any_of_them(context):\n    return globals()[context.task.id](context)\n")
    project.run().assert_outcomes(failed=len(ENDS))
    found = {rollout["scenario_id"]: rollout for rollout in rollouts(project)}
    for agent, (status, code, message, frames) in ENDS.items():
        failure = found[agent]["failure"]
        assert (found[agent]["status"], failure["code"]) == (status, code)
        assert message in failure["message"]
        assert len(found[agent]["frames"]) == frames


def test_lessons_come_from_conversations(project: Project) -> None:
    project.ini(actor="python:agent2:pupil", acceptance="off", group_size=4, contamination="warn")
    talks(project, ["Book a table.", "For Friday."], train=3, checks=[{"kind": "exact", "value": "booked"}])
    project.learn()
    report = project.report()
    assert "find_day" in json.dumps(report["library"]["lessons"])
    assert report["epochs"][-1]["gt_score"]["mean"] == 1.0
    assert report["gain"]["difference"] > 0


def test_the_offline_agent_takes_each_message_as_a_task_and_goes_on_with_its_result(project: Project) -> None:
    project.ini(actor="offline", out="out", temperature_eval=0)
    turns = [
        {
            "user": 'How many words are in "the cat sat on the mat"?',
            "checks": [{"kind": "number", "value": 6}],
        },
        {"user": "Convert 3 km to miles.", "checks": [{"kind": "regex", "pattern": "^1.86"}]},
        {"user": "Please round it."},
    ]
    talks(project, turns, checks=[{"kind": "exact", "value": "2 mi"}]).run().assert_outcomes(passed=1)


def test_a_model_keeps_the_messages_over_all_turns(project: Project, serve: Serve) -> None:
    def answer(body: Body, attempt: int) -> Any:
        said = [m["content"] for m in body["messages"] if m["role"] != "system"]
        return text(f"heard {len(said)}: {said[-1]}")

    server = serve(answer)
    project.ini(actor="openai:x", allow_paid="true", out="out")
    checks = [{"kind": "exact", "value": "heard 5: At seven."}]
    turns = [BOOKING[0], "On Friday.", "At seven."]
    talks(project, turns, checks=checks).run().assert_outcomes(passed=1)
    roles = [[m["role"] for m in request["messages"]] for request in server.requests]
    assert [row[-5:] for row in roles][-1] == ["user", "assistant", "user", "assistant", "user"]
    (rollout,) = rollouts(project)
    assert [frame["kind"] for frame in rollout["frames"]] == ["user", "model"] * 3


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


def test_a_large_message_reaches_a_program_that_reads_late(project: Project) -> None:
    body = PROGRAM.replace("heard.append(", "import time; time.sleep(.2); heard.append(")
    turns = ["A table.", "x" * 90_000 + "At seven."]
    command(project, body, turns=turns, timeout_s=100).run().assert_outcomes(passed=1)


def test_an_actor_that_answers_one_question_is_refused_before_anything_runs(project: Project) -> None:
    talks(project.ini(actor="command:true", command_output="codex", allow_paid="true", out="out"))
    result = project.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*actor: 'command:true' answers one question, and scenario 'eval0' *"])
    assert not project.runs()


def test_a_recording_replays_whole_conversations(project: Project) -> None:
    talks(project, train=2).learn("--tfgrpo-record", "r.jsonl")
    before, asked = project.report(), len(project.calls)
    project.learn("--tfgrpo-actor", "replay:r.jsonl")
    assert project.report()["epochs"] == before["epochs"]
    assert len(project.calls) == asked


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


def test_a_failing_item_shows_the_conversation(project: Project) -> None:
    result = talks(project, checks=[{"kind": "exact", "value": "no"}]).run()
    result.stdout.fnmatch_lines(
        ["conversation:", "  user: A table for two.", "  agent: A table for two.", "  user: On Friday."]
    )


def test_a_program_runs_conversations_with_an_actor_that_holds_them(project: Project) -> None:
    project.agent(AGENT)
    one = scenario("talk", split="eval", turns=["A table.", "At seven."], checks=SAME["checks"])
    made = run(project.root, [one], actor="python:agent2:booking", learning=False)
    (group,) = made.run.phases[0].groups
    assert [frame.kind for frame in group.rollouts[0].frames] == ["user", "tool", "model"] * 2
    with pytest.raises(SettingError, match="'mute' answers one question, and scenario 'talk'"):
        run(project.root, [one], actor=Mute(), learning=False)


def test_show_prints_who_spoke(frozen: Frozen) -> None:
    (rollout,) = rollouts(frozen(talk))
    out = tfgrpo("show", rollout["rollout_id"])
    assert "4. user:\n  On Friday.\n" in out
    assert "3 turns, look1, look2, look3;" in out


def test_a_marked_test_function_checks_a_conversation(project: Project) -> None:
    project.agent(AGENT).checker(
        """
@pytest.mark.tfgrpo(split="eval", turns=["A table for two.", "At seven."])
def test_talk(rollout):
    assert rollout.answer.endswith("At seven.")
    assert [f.output for f in rollout.frames if f.kind == "user"] == ["A table for two.", "At seven."]
"""
    )
    project.run().assert_outcomes(passed=1)


def test_the_agent_of_a_fixture_holds_a_conversation(project: Project) -> None:
    (project.root / "pytest.ini").write_text("[pytest]\n")
    project.checker(
        """
@pytest.fixture
def tfgrpo_agent(tmp_path):
    def solve(context):
        with (tmp_path / "said.txt").open("a") as file:
            file.write(context.session.message)
        return "ok"
    return solve


@pytest.mark.tfgrpo(split="eval", turns=["A table for two. ", "At seven."])
def test_talk(rollout, tfgrpo_agent, tmp_path):
    assert (tmp_path / "said.txt").read_text() == "A table for two. At seven."
"""
    )
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt": "Hello"}, "/prompt: the first of the turns is the prompt; leave prompt out"),
        ({"turns": []}, "/turns"),
        ({"turns": [" "]}, "/turns/0"),
        ({"turns": [{"user": "a", "check": []}]}, "/turns/0"),
        ({"turns": [{"user": "a", "checks": [{"kind": "nope"}]}]}, "/turns/0/checks/0/kind: unknown check"),
        (
            {"turns": [{"user": "a", "checks": [{"kind": "file", "path": "a", "contains": "x"}]}]},
            "/turns/0/checks/0/kind: a check of kind 'file' looks at the workspace",
        ),
        ({"turns": ["a"] * 101}, "/turns"),
    ],
)
def test_what_is_wrong_with_turns_is_said_with_its_place(
    project: Project, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError) as broken:
        loaded(talks(project, **fields))
    assert f"talks.scenario.json:1: #/0{message}" in str(broken.value)


def test_a_stamp_covers_turns_and_their_checks() -> None:
    def stamp(*turns: Any) -> str:
        return scenario("a", turns=list(turns), checks=SAME["checks"], folder=Path()).stamp

    one = stamp("a", "b")
    assert one == stamp({"user": "a"}, "b")
    check = {"kind": "contains", "value": "x"}
    assert (
        len(
            {
                one,
                stamp("a", "c"),
                stamp("a"),
                stamp({"user": "a", "checks": [check]}, "b"),
                stamp("a", {"user": "b", "checks": [check]}),
            }
        )
        == 5
    )


USER = {
    "goal": "A table for four on Friday.",
    "persona": "In a hurry.",
    "knows": "Your name is Lee.",
    "max_turns": 4,
}
SECRET = "Your name is Lee."


def player(body: Body, attempt: int) -> Any:
    """Play the agent as `waiter`, and the user as `guest`, who is done once the table is booked."""
    if body["model"] == "waiter":
        assert SECRET not in json.dumps(body)
        said = [m["content"] for m in body["messages"] if m["role"] == "user"]
        return text("Booked for Lee." if "Lee." in said[-1] else "What is your name?")
    assert SECRET in body["messages"][0]["content"]
    heard = body["messages"][-1]["content"]
    return json.dumps({"over": heard.startswith("Booked"), "message": "" if "Booked" in heard else "Lee."})


def guests(project: Project, **settings: Any) -> Project:
    project.ini(
        **{"actor": "openai:waiter", "user": "openai:guest", "allow_paid": "true", "out": "out"} | settings
    )
    return talks(
        project, ["A table for four."], user=USER, checks=[{"kind": "exact", "value": "Booked for Lee."}]
    )


def test_a_model_plays_the_user_until_it_is_done_and_its_cost_is_apart(
    project: Project, serve: Serve
) -> None:
    serve(player)
    guests(project).run().assert_outcomes(passed=1)
    (rollout,) = rollouts(project)
    said = [(frame["kind"], frame["output"]) for frame in rollout["frames"]]
    assert said == [
        ("user", "A table for four."),
        ("model", "What is your name?"),
        ("user", "Lee."),
        ("model", "Booked for Lee."),
    ]
    assert rollout["frames"][2]["name"].startswith("openai:guest")
    (row,) = project.report()["cost"]["epochs"]
    assert (row["rollouts"]["calls"], row["user"]["calls"], row["judge"]["calls"]) == (
        2,
        3,
        0,
    )  # the first asks whether it can be reached
    assert rollout["tokens"] == row["rollouts"]["tokens"]


def test_a_dry_run_counts_the_model_that_plays_users_apart_first_by_its_limit_then_as_recorded(
    project: Project, serve: Serve
) -> None:
    def estimated() -> dict[str, list[str]]:
        rows = [line.split() for line in project.learn("--tfgrpo-dry-run").outlines]
        return {" ".join(row[:2]): row for row in rows if row[1:2] in (["user"], ["learning"])}

    server = serve(player)
    guests(project, contamination="warn", epochs=2)
    checks = [{"kind": "exact", "value": "Booked for Lee."}]
    talks(project, ["A table for four."], train=2, sweep=2, user=USER, checks=checks)
    first = estimated()
    assert first["epoch1 user"][2:5] == ["4", "to", "24"]  # 2 scenarios, 2 rollouts, 4 turns at most
    assert not server.requests
    project.learn()
    assert estimated()["epoch1 user"][2] == "8"  # the second reply of each ends it


def test_a_user_that_never_stops_ends_at_its_limit(project: Project, serve: Serve) -> None:
    def chatters(body: Body, attempt: int) -> Any:
        return text("Booked for Lee.") if body["model"] == "waiter" else '{"over": false, "message": "And?"}'

    serve(chatters)
    guests(project).run().assert_outcomes(passed=1)
    (rollout,) = rollouts(project)
    assert sum(frame["kind"] == "user" for frame in rollout["frames"]) == 4


def test_a_user_that_cannot_be_played_is_an_error_and_never_the_agents(
    project: Project, serve: Serve
) -> None:
    def mute(body: Body, attempt: int) -> Any:
        return text("Hm?") if body["model"] == "waiter" else "no JSON"

    serve(mute)
    guests(project).run().assert_outcomes(failed=1)
    (rollout,) = rollouts(project)
    assert (rollout["status"], rollout["failure"]["code"]) == ("error", "user")
    assert "said nothing usable" in rollout["failure"]["message"]
    assert len(rollout["frames"]) == 2


@pytest.mark.parametrize("calls", [0, 5])
def test_a_user_model_that_stays_away_ends_the_run_which_is_whole_when_resumed(
    project: Project, serve: Serve, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 0.1)
    answered = count()

    def dies(body: Body, attempt: int) -> Any:
        gone = body["model"] == "guest" and next(answered) >= calls
        return refused(404, "no such model") if gone else player(body, attempt)

    def asleep(body: Body, attempt: int) -> Any:
        return refused(404, "no such model") if server.requests else text("ok")

    server = serve(dies, hello=asleep)
    guests(project, contamination="warn", concurrency=2, acceptance="off")
    checks = [{"kind": "exact", "value": "Booked for Lee."}]
    talks(project, ["A table for four."], train=3, sweep=3, user=USER, checks=checks)
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    shown = " ".join(result.stdout.str().split())
    assert "the run is incomplete: the user does not answer: openai:guest" in shown
    assert project.report()["status"] == "incomplete"
    assert [rollout for rollout in rollouts(project) if rollout["status"] == "error"] == []
    done, asked = len(rollouts(project)), len(server.requests)
    assert len([body for body in server.requests if body["model"] == "waiter"]) <= 2 * done + 4
    calls = 10**9
    project.learn("--tfgrpo-resume=latest")
    assert project.manifest()["status"] == "complete"
    assert {rollout["status"] for rollout in rollouts(project)} == {"ok"}
    assert len(server.requests) > asked


def test_an_error_of_the_user_model_that_is_there_is_that_rollouts_alone(
    project: Project, serve: Serve
) -> None:
    def picky(body: Body, attempt: int) -> Any:
        if body["model"] == "guest" and "two" in json.dumps(body):
            return refused(404, "no such model")
        return player(body, attempt)

    serve(picky)
    guests(project, contamination="warn", acceptance="off")
    checks = [{"kind": "exact", "value": "Booked for Lee."}]
    other = {"id": "other", "split": "eval", "turns": ["A table for two."], "user": USER, "checks": checks}
    project.write("other.scenario.json", json.dumps([other])).learn()
    assert project.manifest()["status"] == "complete"
    codes = {r["scenario_id"]: (r["failure"] or {}).get("code") for r in rollouts(project)}
    assert codes.pop("other") == "user"
    assert set(codes.values()) == {None}


def test_without_a_model_a_user_says_its_turns_as_written(project: Project, serve: Serve) -> None:
    guests(project, actor="python:agent2:plain", user="script")
    talks(project, ["A table.", "Booked for Lee."], user=USER, checks=[{"kind": "contains", "value": "Lee"}])
    project.run().assert_outcomes(passed=1)


def test_a_played_user_is_recorded_and_replayed_with_its_cost(project: Project, serve: Serve) -> None:
    server = serve(player)
    guests(project).run("--tfgrpo-record", "r.jsonl").assert_outcomes(passed=1)
    before, asked = project.report(), len(server.requests)
    project.run("--tfgrpo-actor", "replay:r.jsonl").assert_outcomes(passed=1)
    after = project.report()
    assert len(server.requests) == asked
    assert after["cost"]["epochs"] == before["cost"]["epochs"]
    assert after["epochs"] == before["epochs"]


@pytest.mark.parametrize(("spoiled", "code", "calls"), [("waiter", "no_answer", 2), ("guest", "user", 3)])
def test_a_conversation_that_failed_is_replayed_with_the_calls_of_its_user(
    project: Project, serve: Serve, spoiled: str, code: str, calls: int
) -> None:
    """The first call asks whether the user can be reached; the guest is asked twice before it is given up."""

    def spoils(body: Body, attempt: int) -> Any:
        late = body["model"] == "guest" or "Lee." in json.dumps(body)
        return (
            text("" if spoiled == "waiter" else "no JSON")
            if spoiled == body["model"] and late
            else player(body, attempt)
        )

    server = serve(spoils)
    guests(project).run("--tfgrpo-record", "r.jsonl")
    (before,), cost, asked = rollouts(project), project.report()["cost"]["epochs"], len(server.requests)
    assert (before["failure"]["code"], cost[0]["user"]["calls"]) == (code, calls)
    project.run("--tfgrpo-actor", "replay:r.jsonl")
    assert len(server.requests) == asked
    after = rollouts(project)[-1]
    assert (after["failure"], after["frames"]) == (before["failure"], before["frames"])
    again = project.report()["cost"]["epochs"]
    assert again[0]["user"] == cost[0]["user"]


def test_a_paid_user_needs_leave_in_a_plain_run(project: Project, serve: Serve) -> None:
    serve(player)
    guests(project, actor="python:agent2:plain", allow_paid="false")
    result = project.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*user 'openai:guest' costs money; set tfgrpo_allow_paid*"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"user": {}}, "/user: missing key 'goal'"),
        ({"user": {"goal": "x", "max_turns": 0}}, "/user/max_turns"),
        ({"user": USER}, "/turns: what a user says is not known beforehand: check at the end"),
    ],
)
def test_what_is_wrong_with_a_user_is_said(project: Project, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as broken:
        loaded(talks(project, **fields))
    assert f"talks.scenario.json:1: #/0{message}" in str(broken.value)


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
