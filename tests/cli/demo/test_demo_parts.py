"""What demonstrations are made of: an application, its traffic, misleading libraries, made-up versions."""

import json
import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience

from pytest_tfgrpo.cli.demo import demo_library
from pytest_tfgrpo.cli.demo.demo_library import CONFIG, misled
from pytest_tfgrpo.cli.demo.demo_service import fixtures
from pytest_tfgrpo.cli.loop import demo_traffic, loop_demo
from pytest_tfgrpo.cli.loop.demo_traffic import open_traffic
from pytest_tfgrpo.cli.loop.deployment import demo_rollout
from pytest_tfgrpo.cli.loop.deployment.demo_rollout import DemoRollout, demo_versions
from pytest_tfgrpo.cli.loop.training import demo_learning
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.learning.optimizer.wording import parse
from pytest_tfgrpo.production.bus.streams import STREAMS


def applied(folder: Path, seed: int = 0) -> Path:
    """Write what `prepare` writes, with libraries that hold nothing."""
    packs = (fixtures() / "prompt-packs").as_posix()
    (folder / "live.toml").write_text(CONFIG.format(seed=seed, packs=packs))
    for name in ("learned", "misled"):
        save_library(folder / f"{name}.json", of(()))
    return folder


def test_three_days_of_traffic_are_the_same_for_a_seed_and_say_what_came_of_each_task(tmp_path: Path) -> None:
    day = demo_traffic.DAY_NS
    traffic = open_traffic(applied(tmp_path), 3, 24, 10 * day)
    requests = list(traffic.requests())
    again = list(open_traffic(tmp_path, 3, 24, 10 * day).requests())
    assert [one.body for one in again] == [one.body for one in requests]
    assert [(one.day, one.path, one.refused) for one in requests if one.day == 1] == [
        (1, "/v1/traces", 0), (1, "/feedback", 1), (1, "/feedback", 1), (1, "/rewards", 1),
        (1, "/feedback", 0),
    ]  # fmt: skip
    spans = [span for one in requests if one.path == "/v1/traces" for span in spans_of(one.body)]
    roots = [span for span in spans if not span["parentSpanId"]]
    agents = [known(span) for span in spans if span["name"].startswith("invoke_agent")]
    assert len(roots) == len(agents) == 24
    assert {span["traceId"] for span in spans} == {span["traceId"] for span in roots}
    sent = [one for one in requests if one.path == "/v1/traces"]
    kept = [agent for agent in agents if agent["user.id"] != "user-3"]
    assert sum(one.runs for one in sent) == len(kept) < 24
    versions = {(agent["session.id"], agent["tfgrpo.policy_version"]) for agent in agents}
    assert {version for _, version in versions} == {"bare", "learned"}
    assert all(int(id_[5:]) >= 80 and int(id_[5:]) % 2 for id_, version in versions if version == "learned")
    assert {agent["tfgrpo.domain"] for agent in agents} <= {"general", "research", "coding", "data_analysis"}
    said = [
        row for one in requests if one.path == "/feedback" and not one.refused for row in json.loads(one.body)
    ]
    assert said
    assert all(row["session_id"] in {agent["session.id"] for agent in kept} for row in said)
    times = sorted(int(root["startTimeUnixNano"]) for root in roots)
    assert (times[0], times[-1] < 13 * day) == (10 * day, True)
    content = b"".join(one.body for one in requests).decode()
    secrets = [secret for secret in traffic.planted if not secret.startswith("user-")]
    assert [secret.split("-")[0] for secret in secrets][:1] == ["sk"]
    assert all(secret in content for secret in secrets)
    assert len(secrets) == sum(n % 9 == 0 or n % 7 == 0 or n % 11 == 0 for n in range(24))


def spans_of(body: bytes) -> list[Any]:
    found: list[Any] = json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return found


def known(span: Any) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def test_a_call_is_a_span_with_its_time_and_its_error() -> None:
    frames = (
        Frame(kind="tool", name="search", input={"q": 1}, output="found", error="too late"),
        Frame(kind="model", name="m", tokens=7),
    )
    given = {"gen_ai.agent.name": "helper", "session.id": "chat-1"}
    draw, second = random.Random(1), demo_traffic.SECOND_NS
    root, agent, tool, model = demo_traffic._spans(draw, "t", 5 * second, given, "asked", "said", frames)
    assert (root["name"], agent["name"], tool["name"], model["name"]) == (
        "POST /chat", "invoke_agent helper", "search", "m",
    )  # fmt: skip
    assert [one["parentSpanId"] for one in (root, agent, tool, model)] == [
        "", root["spanId"], agent["spanId"], agent["spanId"],
    ]  # fmt: skip
    assert [int(one["startTimeUnixNano"]) // second for one in (root, agent, tool, model)] == [5, 5, 6, 7]
    assert [int(one["endTimeUnixNano"]) // second for one in (root, agent, tool, model)] == [9, 9, 7, 8]
    assert tool["status"] == {"code": 2, "message": "too late"}
    assert known(tool)["gen_ai.tool.call.arguments"] == '{"q": 1}'
    assert (known(model)["gen_ai.usage.input_tokens"], model["status"]) == ("7", {})


def test_users_say_the_opposite_now_and_then_and_nothing_of_many() -> None:
    draw = random.Random(7)
    rows = [demo_traffic._feedback(draw, f"t{n}", "chat-1", 0, n % 2 == 0) for n in range(600)]
    said = [(n, row) for n, row in enumerate(rows) if row]
    assert 300 < len(said) < 420
    good = [row["type"] == "thumbs_up" or row.get("rating") == 5 for _, row in said]
    wrong = sum(up is (n % 2 == 1) for up, (n, _) in zip(good, said, strict=True))
    assert 0.04 < wrong / len(said) < 0.18
    kinds = {row["type"] for _, row in said}
    assert kinds == {"thumbs_up", "thumbs_down", "rating", "correction"}
    assert {row["timestamp"] for _, row in said} == {"1970-01-01T01:00:00.000+00:00"}


def test_a_library_is_misled_by_another_tool_of_its_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "For tasks about dates: use calendar."
    assert parse(said) is not None
    lessons = [
        make_experience(1, domain="a", summary32=said, polarity="avoid"),
        make_experience(2, domain="b", summary32=said),
        make_experience(3, domain="a", summary32="Be brief."),
    ]

    def group(domain: str, *tools: str) -> Any:
        frames = [*(Frame(kind="tool", name=name) for name in tools), Frame(kind="model", name="m")]
        return SimpleNamespace(domain=domain, rollouts=[SimpleNamespace(frames=frames)])

    phases = [SimpleNamespace(groups=[group("a", "calendar", "search"), group("b", "calendar")])]
    run: Any = SimpleNamespace(phases=phases, library=of(lessons))
    (lesson,) = misled(run).experiences
    assert lesson.summary32 == "If a task is about dates, use search."
    assert (lesson.domain, lesson.polarity) == ("a", "do")
    assert lesson.id != lessons[0].id
    nothing: Any = SimpleNamespace(phases=[], library=of(()))
    assert misled(nothing).experiences == ()


def test_a_demonstration_is_prepared_by_a_run_of_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    library = of([make_experience(1)])

    def run(root: Path, scenarios: object, **given: Any) -> Any:
        asked.update(given, root=root, scenarios=scenarios)
        return SimpleNamespace(run=SimpleNamespace(library=library, phases=()))

    monkeypatch.setattr(demo_library, "run", run)
    assert demo_library.prepare(tmp_path, 5) == 1
    assert (asked["seed"], asked["actor"], asked["root"]) == (5, "offline", fixtures())
    assert json.loads((tmp_path / "learned.json").read_text())["experiences"]
    assert not json.loads((tmp_path / "misled.json").read_text())["experiences"]
    assert 'namespace = "demo-5"' in (tmp_path / "live.toml").read_text()


def test_made_up_versions_are_better_worse_and_alike_and_numbered_from_the_first() -> None:
    versions = demo_versions(7)
    assert list(versions) == ["v1", "v7", "v8", "v9"]
    assert versions["v7"].completion == versions["v9"].completion > versions["v1"].completion
    assert versions["v8"].completion < versions["v1"].completion
    assert versions["v8"].stars < versions["v1"].stars < versions["v7"].stars
    assert versions["v8"].candidate.performance_regression
    assert versions["v7"].candidate.approved_by == "ada"


def test_outcomes_of_made_up_users_are_drawn_around_their_version() -> None:
    rollout = DemoRollout.__new__(DemoRollout)
    rollout._draw = random.Random(3)
    version = demo_versions(2)["v2"]
    drawn = [rollout._outcome(version, 0.25) for _ in range(800)]
    failed = [one for one in drawn if one["task_status"] == "failed"]
    assert 0.18 < len(failed) / 800 < 0.32
    rest = [one for one in drawn if one not in failed]
    assert all(0 <= one["completion"] <= 1 for one in rest)
    assert 0.55 < sum(one["completion"] for one in rest) / len(rest) < 0.65
    stars = [one["user_feedback"]["rating"] for one in rest]
    assert {1, 5} <= set(stars) <= {1, 2, 3, 4, 5}
    assert [rollout._outcome(version, 1.0) for _ in range(3)] == [{"task_status": "failed"}] * 3


@pytest.mark.parametrize(
    ("state", "missed", "last"),
    [
        ("canary", 0.125, "a drop of 0.12 would still have been missed"),
        ("live", 0.001, "no drop would have been missed"),
        ("rolled_back", 0.125, None),
    ],
)
def test_a_decision_is_told_with_its_evidence(state: str, missed: float, last: str | None) -> None:
    evidence = {
        "sessions": {"canary": 40, "control": 400},
        "reward": {"difference": 0.0625, "low": -0.5, "high": 0.25, "missed_drop": missed},
        "error_rate": {"canary": 0.01, "control": 0.02},
    }
    data: dict[str, Any] = {
        "metadata": {"state": state, "reason": "as\nplanned", "evidence": evidence},
        "deployment_config": {"traffic_percentage": 12.5},
        "model_info": {"model_id": "v2"},
    }
    lines = [" ".join(line.split()) for line in demo_rollout._decision_lines(data, 4 * 3600 + 59.6 * 60)]
    text = " ".join(lines)
    assert text.startswith(f"5 h 00 v2 {state.replace('_', ' ')}, 12.5 % of new sessions: as planned")
    assert "40 sessions against 400" in lines
    assert "reward +0.062 (-0.50 to +0.25), errors 0.010 and 0.020" in lines
    assert (lines[-1] == last) is (last is not None)
    data["metadata"]["evidence"] = None
    assert len(list(demo_rollout._decision_lines(data, 0))) < len(lines)


def test_a_made_up_trajectory_names_its_session_and_version() -> None:
    event = demo_rollout._trajectory("demo-3", "v2", "2026-01-01T00:00:00Z", {"task_status": "failed"})
    said = json.loads(event.data)
    assert (said["trajectory_id"], said["session_id"]) == (event.id, "demo-3")
    assert said["metadata"] == {"policy_version": "v2", "user_ref": "u-demo-3"}
    assert said["outcome"] == {"task_status": "failed"}


def test_the_demo_of_the_loop_searches_events_and_files_for_what_was_planted(tmp_path: Path) -> None:
    (tmp_path / "loop.key").write_text("secret-1")
    events = {STREAMS[0].name: [SimpleNamespace(data=b"kept of user-1")]}
    bus = SimpleNamespace(replay=lambda stream: events.get(stream, []))
    watch: Any = SimpleNamespace(bus=bus, loop=SimpleNamespace(folder=tmp_path))
    assert loop_demo._searched(watch, ["secret-1", "user-9"]) == (
        "secrets    2 secrets, addresses and names of users were sent; none is kept"
    )
    with pytest.raises(StoreError, match=r"^1 of 2 secrets and names of users are kept$"):
        loop_demo._searched(watch, ["secret-1", "user-1"])
    (tmp_path / "view.db").write_bytes(b"\x00secret-1")
    with pytest.raises(StoreError, match=r"^1 of 1 secrets"):
        loop_demo._searched(watch, ["secret-1"])


@pytest.mark.parametrize(
    ("statuses", "refused", "said"),
    [
        ([200], 0, None),
        ([503, OSError("gone"), 429, 200], 0, None),
        ([400], 1, None),
        ([400], 0, "/x was answered with 400"),
        ([200], 1, "/x was answered with 200"),
        ([503] * 9, 0, "/x of here:1 was not answered"),
    ],
)
def test_a_request_is_sent_until_it_is_answered_as_it_should_be(
    statuses: list[Any], refused: int, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(statuses)

    def send(self: object, request: object) -> int:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return int(found)

    monkeypatch.setattr(loop_demo.DemoLoop, "send", send)
    monkeypatch.setattr(loop_demo, "_TRIES", 9)
    monkeypatch.setattr(loop_demo.time, "sleep", lambda _: None)
    loop = loop_demo.DemoLoop(tmp_path, "here:1")
    request = demo_traffic.DemoRequest(0, "/x", b"", refused=refused)
    if said is None:
        loop.post(request)
        assert list(answers) == []
        return
    with pytest.raises(StoreError, match=f"^{said}$"):
        loop.post(request)


def test_a_loop_of_the_demo_is_made_for_a_short_patience_and_learns_from_enough_tasks_alone(
    tmp_path: Path,
) -> None:
    loop = loop_demo._made(tmp_path / "one", "nats://x")
    known = tomllib.loads(loop.config.read_text())
    assert known == {
        "service": {"port": 0},
        "assembler": {"idle_s": 1, "settle_s": 0.2},
        "evaluator": {"lease_s": 1},
        "bus": {"url": "nats://x"},
    }
    assert (tmp_path / "one" / "loop.key").is_file()
    assert "bus" not in tomllib.loads(loop_demo._made(tmp_path / "two", "").config.read_text())
    watch: Any = SimpleNamespace(loop=loop)
    (line,) = loop_demo._learn(watch, demo_learning.THRESHOLD - 1)
    assert line.startswith("learning   takes 300 trajectories; see it with --tasks ")
    training = tomllib.loads(demo_learning.training_config())["training"]
    assert (training["threshold"], training["triggers"], training["safety"]) == (300, ["threshold"], [])
    assert training["project"] == "../suite"
    assert training["domains"]["notes helper"] == "notes"


def test_rewards_are_shuffled_within_each_task_alone() -> None:
    def attempts(key: str) -> list[Any]:
        return [Attempt(total_reward=reward) for reward in rewards[key]]

    @dataclass
    class Attempt:
        total_reward: float

    rewards: Mapping[str, list[float]] = {"a": [n / 10 for n in range(9)], "b": [0.25, 0.75]}
    groups = {key: SimpleNamespace(domain=f"of {key}", prompt=f"do {key}") for key in rewards}
    file: Any = SimpleNamespace(groups=groups, attempts=attempts)
    found = list(demo_learning._shuffled(file))
    assert [(one.id, one.domain, one.prompt) for one in found] == [
        ("a", "of a", "do a"),
        ("b", "of b", "do b"),
    ]
    drawn = [[one.total_reward for one in group.attempts] for group in found]
    assert [sorted(row) for row in drawn] == list(rewards.values())
    assert drawn[0] != rewards["a"]
    assert [[one.total_reward for one in group.attempts] for group in demo_learning._shuffled(file)] == drawn
    assert demo_learning._gain(0.75, 0.25) == "0.50 to 0.75"
