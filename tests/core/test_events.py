"""Events: each subject has a valid example, and what is wrong is refused with a code and a pointer."""

import copy
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core import events
from pytest_tfgrpo.core.events import (
    ENVELOPE,
    LARGEST_EVENT,
    REWARD,
    SCHEMAS,
    TRAJECTORY,
    EventFault,
    EventRefusal,
    RlEvent,
    check_event,
    derived_id,
    expected_total,
    wrap,
)
from pytest_tfgrpo.core.wire.schema import load_schema, violations
from pytest_tfgrpo.core.wire.schema_accepts import accepts

GOLDEN = Path(__file__).parents[1] / "golden" / "agent-rl"
NEGATIVE = sorted(path.name for path in GOLDEN.glob("*.json"))


def example(subject: str) -> dict:
    return copy.deepcopy(load_schema(SCHEMAS[subject])["examples"][0])


def changed(value: dict, path: str, new: object) -> dict:
    """Return a copy of `value` with another value at a JSON pointer; ... removes it."""
    value = copy.deepcopy(value)
    *way, last = path.strip("/").split("/")
    at = value
    for part in way:
        at = at[int(part)] if isinstance(at, list) else at[part]
    if new is ...:
        del at[last]
    else:
        at[last] = new
    return value


def refusal(raw: object) -> tuple[str, str]:
    found = check_event(raw)
    assert isinstance(found, EventRefusal)
    assert found.message
    assert len(found.message) < 400
    return found.fault.value, found.pointer


@pytest.mark.parametrize("subject", SCHEMAS)
def test_each_subject_has_an_example_that_is_valid_and_taken_quickly(subject):
    data = example(subject)
    found = check_event(wrap(subject, data))
    assert isinstance(found, RlEvent)
    assert found.data == data
    assert accepts(load_schema(SCHEMAS[subject]))(data)
    assert check_event(found.encode()) == found


def test_the_envelope_has_an_example_that_is_valid():
    assert isinstance(check_event(load_schema(ENVELOPE)["examples"][0]), RlEvent)


@pytest.mark.parametrize("subject", SCHEMAS)
def test_an_unknown_key_of_a_payload_is_refused(subject):
    assert refusal(wrap(subject, {**example(subject), "extra": 1})) == ("schema", "/data/extra")


@pytest.mark.parametrize("name", NEGATIVE)
def test_a_payload_of_the_source_that_contradicts_the_decisions_is_refused(name, golden):
    case = json.loads((GOLDEN / name).read_text())
    found = check_event(case["event"])
    assert isinstance(found, EventRefusal)
    shown = {"fault": found.fault, "pointer": found.pointer, "message": found.message}
    golden(f"agent-rl/{name}", json.dumps({"event": case["event"], "refused": shown}, indent=1) + "\n")


def test_the_negative_examples_are_there():
    appendix = ["appendix-reward.json", "appendix-total.json", "appendix-training-request.json"]
    assert [*appendix, "source-total.json"] == NEGATIVE


WRONG = [
    (TRAJECTORY, "/trajectory_id", "test-123"),
    (TRAJECTORY, "/trajectory_id", "3f2504e0-4f89-41d3-9a0c-0305e82c3303\n"),
    (TRAJECTORY, "/trajectory_id", None),
    (TRAJECTORY, "/session_id", ""),
    (TRAJECTORY, "/start_timestamp", "2025-12-08 12:00"),
    (TRAJECTORY, "/start_timestamp", "2025-02-30T12:00:00Z"),
    (TRAJECTORY, "/end_timestamp", "2025-12-08T12:00:00"),
    (TRAJECTORY, "/subordinate_profile", "boss"),
    (TRAJECTORY, "/task_context/domain", "cooking"),
    (TRAJECTORY, "/outcome/task_status", "done"),
    (TRAJECTORY, "/outcome/completion", 1.01),
    (TRAJECTORY, "/outcome/linter/score", 11),
    (TRAJECTORY, "/outcome/tests/passed", 5),
    (TRAJECTORY, "/outcome/tests/total", True),
    (TRAJECTORY, "/outcome/user_feedback/rating", 0),
    (TRAJECTORY, "/turns/0/action/type", "shrug"),
    (TRAJECTORY, "/turns/0/result/success", "yes"),
    (REWARD, "/reward_components/efficiency/score", -0.1),
    (REWARD, "/reward_components/efficiency/weight", 0),
    (REWARD, "/reward_components", {}),
    (REWARD, "/reward_type", "dense|sparse"),
    ("agent.rl.feedback.v1", "/rating", 6),
    ("agent.rl.feedback.v1", "/type", "applause"),
    ("agent.rl.training.request.v1", "/training_config/algorithm", "sft"),
    ("agent.rl.training.request.v1", "/training_config/hyperparameters/learning_rate", 0),
    ("agent.rl.training.request.v1", "/priority", "asap"),
    ("agent.rl.training.status.v1", "/status", "done"),
    ("agent.rl.model.deployed.v1", "/deployment_config/rollout_strategy", "yolo"),
    ("agent.rl.model.deployed.v1", "/deployment_config/traffic_percentage", 101),
]


@pytest.mark.parametrize(("subject", "where", "value"), WRONG)
def test_a_value_outside_its_schema_is_refused_where_it_stands(subject, where, value):
    found, at = refusal(wrap(subject, changed(example(subject), where, value)))
    assert found == "schema"
    assert at == "/data" + where


def feedback(kind: str, **more: object) -> dict:
    keep = ("feedback_id", "trajectory_id", "timestamp")
    plain = {key: value for key, value in example("agent.rl.feedback.v1").items() if key in keep}
    return wrap("agent.rl.feedback.v1", {**plain, "type": kind, **more})


def test_feedback_has_what_its_kind_needs_and_nothing_else():
    for kind in ("thumbs_up", "thumbs_down", "correction", "abandonment"):
        assert isinstance(check_event(feedback(kind)), RlEvent)
        assert refusal(feedback(kind, rating=3)) == ("schema", "/data/rating")
    assert isinstance(check_event(feedback("score", component="tone", score=0.5)), RlEvent)
    assert refusal(feedback("score", score=0.5)) == ("schema", "/data")
    assert refusal(feedback("rating")) == ("schema", "/data")
    assert refusal(feedback("label")) == ("schema", "/data")
    assert refusal(feedback("rating", rating=3, score=0.5)) == ("schema", "/data/score")
    assert refusal(feedback("score", component="Tone", score=0.5)) == ("schema", "/data/component")


def test_an_error_block_is_there_if_and_only_if_a_job_failed_and_artifacts_if_it_completed():
    subject = "agent.rl.training.status.v1"
    done = example(subject)
    error = {"code": "OOM", "message": None}
    failed = {**changed(done, "/artifacts", ...), "status": "failed", "error": error}
    running = {**changed(done, "/artifacts", ...), "status": "running"}
    for data in (done, failed, running):
        assert isinstance(check_event(wrap(subject, data)), RlEvent)
    for data, where in (
        (changed(done, "/artifacts", ...), "/data"),
        ({**done, "error": error}, "/data/error"),
        (changed(failed, "/error", ...), "/data"),
        ({**failed, "artifacts": done["artifacts"]}, "/data/artifacts"),
        ({**running, "error": error}, "/data/error"),
        ({**running, "artifacts": done["artifacts"]}, "/data/artifacts"),
    ):
        assert refusal(wrap(subject, data)) == ("schema", where)


def test_a_total_that_its_components_do_not_amount_to_is_refused():
    reward = example(REWARD)
    for total, taken in ((0.8775, True), (0.8775009, True), (0.877502, False), (0.8625, False)):
        found = check_event(wrap(REWARD, {**reward, "total_reward": total}))
        assert isinstance(found, RlEvent) == taken
        assert taken or (found.fault, found.pointer) == (EventFault.TOTAL_MISMATCH, "/data/total_reward")


def test_a_blocked_reward_is_0_with_its_components_and_nothing_else():
    reward = example(REWARD)
    reward["metadata"]["hard_gate"] = True
    assert refusal(wrap(REWARD, reward))[0] == "total_mismatch"
    assert isinstance(check_event(wrap(REWARD, {**reward, "total_reward": 0})), RlEvent)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True),
        st.fixed_dictionaries(
            {
                "score": st.floats(0, 1),
                "weight": st.floats(1e-300, 1e6, exclude_min=True),
                "source": st.just("judge"),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
def test_a_recomputed_total_is_always_taken(components):
    reward = {**example(REWARD), "reward_components": components}
    reward["total_reward"] = min(1.0, max(0.0, expected_total(reward)))
    assert isinstance(check_event(wrap(REWARD, reward)), RlEvent)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 10**400])
def test_a_number_that_is_not_finite_is_refused_with_its_place(number):
    data = changed(example(TRAJECTORY), "/turns/0/result/output", {"n": number})
    assert refusal(wrap(TRAJECTORY, data)) == ("not_finite", "/data/turns/0/result/output/n")
    if isinstance(number, float):
        assert refusal(json.dumps(wrap(TRAJECTORY, data, event_id="x"))) == (
            "not_finite",
            "/data/turns/0/result/output/n",
        )


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"", "schema"),
        (b"\xff\xfe\x00", "schema"),
        (b'{"id": "\x80"}', "schema"),
        ("[" * 100_000, "schema"),
        ("[" * 500 + "]" * 500, "schema"),
        ("1" * 5000, "not_finite"),
        ("1e999", "not_finite"),
        ("null", "schema"),
        ("[]", "schema"),
    ],
)
def test_what_is_no_event_is_refused(raw, fault):
    assert refusal(raw)[0] == fault


def test_an_unknown_subject_is_refused_with_the_nearest_one():
    found = check_event(wrap("agent.rl.trajectory.v2", example(TRAJECTORY)))
    assert isinstance(found, EventRefusal)
    assert (found.fault, found.pointer) == (EventFault.UNKNOWN_SUBJECT, "/subject")
    assert "did you mean 'agent.rl.trajectory.v1'?" in found.message


def test_a_long_text_is_cut_and_what_is_still_too_large_is_refused():
    data = changed(example(TRAJECTORY), "/turns/0/result/output", "x" * 10_000_000)
    found = check_event(wrap(TRAJECTORY, data))
    assert isinstance(found, RlEvent)
    assert "characters left out" in found.data["turns"][0]["result"]["output"]
    assert len(found.encode()) < 100_000
    data["turns"][0]["result"]["output"] = ["x" * 60_000] * 20
    assert refusal(wrap(TRAJECTORY, data)) == ("too_large", "")
    assert LARGEST_EVENT < 1024 * 1024


def test_an_event_of_exactly_the_largest_size_is_taken(monkeypatch: pytest.MonkeyPatch):
    raw = json.dumps(wrap(TRAJECTORY, example(TRAJECTORY)))
    event = check_event(raw)
    assert isinstance(event, RlEvent)
    monkeypatch.setattr(events, "LARGEST_INPUT", len(raw))
    monkeypatch.setattr(events, "LARGEST_EVENT", len(event.encode()))
    assert check_event(raw) == event
    assert refusal(raw + " ") == ("too_large", "")
    monkeypatch.setattr(events, "LARGEST_EVENT", len(event.encode()) - 1)
    assert refusal(raw) == ("too_large", "")


def test_ids_are_in_lower_case_and_times_in_utc():
    data = example(TRAJECTORY)
    raw = wrap(TRAJECTORY, {**data, "trajectory_id": data["trajectory_id"].upper()})
    found = check_event({**raw, "id": raw["id"].upper(), "time": "2025-12-08T13:00:00.5+01:00"})
    assert isinstance(found, RlEvent)
    assert (found.id, found.time) == (raw["id"], "2025-12-08T12:00:00.500Z")
    assert found.data["trajectory_id"] == data["trajectory_id"]


def test_the_raw_value_is_left_as_it_is():
    raw = wrap(TRAJECTORY, changed(example(TRAJECTORY), "/turns/0/result/output", "a\x00b\ud800"))
    before = copy.deepcopy(raw)
    found = check_event(raw)
    assert isinstance(found, RlEvent)
    assert raw == before
    assert found.data["turns"][0]["result"]["output"] == "a\ufffdb\ufffd"


def test_derived_ids_depend_on_their_parts_alone():
    assert derived_id("a", "b") == derived_id("a", "b") != derived_id("ab")
    assert derived_id("a\x1f", "b") != derived_id("a", "\x1fb")
    assert wrap("s", {"a": 1, "b": 2})["id"] == wrap("s", {"b": 2, "a": 1})["id"]


parts = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.text(max_size=3),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3),
    max_leaves=5,
)


def like(value):
    """Draw values of the same type, of which many are valid in the same place."""
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int | float):
        return st.integers(0, 1) | st.floats(0, 1)
    if isinstance(value, str):
        return st.just(value) | st.text(max_size=3)
    if isinstance(value, list):
        return st.lists(st.sampled_from(value), max_size=3) if value else st.just([])
    return st.dictionaries(st.text(max_size=3), parts, max_size=2).map(lambda more: {**more, **value})


@reaches("valid", "refused")
@given(st.sampled_from(list(SCHEMAS)), st.data())
def test_whatever_is_changed_an_event_is_valid_or_refused_in_few_words(subject, data):
    value = example(subject)
    key = data.draw(st.sampled_from(sorted(value)))
    value[key] = data.draw(like(value[key]) | parts)
    found = check_event(wrap(subject, value))
    if isinstance(found, RlEvent):
        reached("valid")
        assert not violations(SCHEMAS[subject], found.data)
        assert check_event(found.encode()) == found
    else:
        reached("refused")
        assert found.pointer.startswith("/data")


def test_an_event_of_as_many_bytes_as_it_may_have_is_taken(monkeypatch):
    value = wrap(TRAJECTORY, example(TRAJECTORY))
    size = len(check_event(value).encode())
    monkeypatch.setattr(events, "LARGEST_EVENT", size)
    assert isinstance(check_event(value), RlEvent)
    monkeypatch.setattr(events, "LARGEST_EVENT", size - 1)
    assert refusal(value) == ("too_large", "")
    raw = json.dumps(value)
    monkeypatch.undo()
    assert LARGEST_EVENT == 1_000_000
    monkeypatch.setattr(events, "LARGEST_INPUT", len(raw))
    assert isinstance(check_event(raw), RlEvent)
    monkeypatch.setattr(events, "LARGEST_INPUT", len(raw) - 1)
    assert refusal(raw) == ("too_large", "")


@pytest.mark.parametrize("subject", SCHEMAS)
def test_all_times_are_checked_and_all_ids_are_in_lower_case(subject):
    data = example(subject)
    for name in ("timestamp", "start_timestamp", "end_timestamp"):
        if name in data:
            assert refusal(wrap(subject, {**data, name: "2025-02-30T12:00:00Z"})) == (
                "schema",
                f"/data/{name}",
            )
    ids = [
        name
        for name in data
        if name.endswith("_id") and data[name] == data[name].lower() and len(data[name]) == 36
    ]
    upper = {**data, **{name: data[name].upper() for name in ids if name != "session_id"}}
    found = check_event(wrap(subject, upper, event_id="3F2504E0-4F89-41D3-9A0C-0305E82C3303"))
    assert found.id == "3f2504e0-4f89-41d3-9a0c-0305e82c3303"
    own = {"trajectory_id", "reward_id", "feedback_id", "training_job_id", "deployment_id"} & {*ids}
    assert own
    assert {name: found.data[name] for name in own} == {name: data[name] for name in own}


def test_all_tests_may_pass_and_a_total_may_be_rounded_either_way():
    data = example(TRAJECTORY)
    full = changed(changed(data, "/outcome/tests/passed", 4), "/outcome/tests/total", 4)
    assert isinstance(check_event(wrap(TRAJECTORY, full)), RlEvent)
    reward = example(REWARD)
    total = expected_total(reward)
    for off, fault in ((5e-7, None), (-5e-7, None), (2e-6, "total_mismatch"), (-2e-6, "total_mismatch")):
        event = wrap(REWARD, {**reward, "total_reward": total + off})
        if fault is None:
            assert isinstance(check_event(event), RlEvent)
        else:
            assert refusal(event) == (fault, "/data/total_reward")


def test_an_id_follows_from_what_an_event_says_in_whatever_order_it_says_it():
    data = example(REWARD)
    assert wrap(REWARD, data)["id"] == wrap(REWARD, dict(reversed(data.items())))["id"]
    assert wrap(REWARD, data)["id"] != wrap(TRAJECTORY, data)["id"]
    assert wrap(REWARD, data, event_id="x", at="y") == {
        "id": "x",
        "subject": REWARD,
        "time": "y",
        "data": data,
    }
