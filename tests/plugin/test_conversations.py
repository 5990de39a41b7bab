"""Conversations as a user meets them: several turns of one rollout, with any actor."""

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.fake_model import Body, Serve, refused, text
from support.frozen import Frozen
from support.plugin.conversations import AGENT, BOOKING, SAME, USER, player, rollouts, talks
from support.preparing import loaded
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo import ActorCall, Trajectory, run, scenario
from pytest_tfgrpo.core.errors import ScenarioError, SettingError
from pytest_tfgrpo.llm.limits import patience


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
    "forges": ("failed", "garbage", "the kind must be model or tool, not user", 1),
    "forges_late": ("failed", "crash", "turn 2: fell over", 4),
    "down": ("error", "provider", "turn 2: 503", 4),
    "hangs": ("failed", "timeout", "no answer to turn 2 within the 1 s of the conversation", 4),
    "long": ("failed", "oversize", "the answers have 1200 bytes by turn 2, more than 1000", 4),
}
"""By agent: status, code, message and the number of frames."""


def test_whose_fault_the_end_of_a_conversation_is_and_what_was_said_until_then(project: Project) -> None:
    project.ini(actor="python:agent2:any_of_them", out="out", answer_max_bytes=1000)
    values = [
        {"id": agent, "split": "eval", "turns": [f"{agent}, a table.", *BOOKING[1:]]}
        | {"timeout_s": 1 if agent == "hangs" else 100}
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
