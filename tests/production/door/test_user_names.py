"""Users by every name: a pseudonym before anything is stored, and left out once they opted out."""

import json
from dataclasses import replace
from typing import Any

import pytest
from support.intake import audits, payload, span, stored

from pytest_tfgrpo.core.events import FEEDBACK, TRAJECTORY
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.door.user_names import UserNames, user_kind
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span

USER = "user-lit-77"
NAMED: dict[str, dict[str, Any]] = {
    "llm.user": {"llm.user": USER},
    "litellm's metadata": {"metadata.user_api_key_user_id": USER},
    "litellm's end user": {"metadata.user_api_key_end_user_id": USER},
    "enduser.id": {"enduser.id": USER},
    "end_user_id": {"app.end_user_id": USER},
    "langfuse": {"langfuse.user.id": USER},
    "langfuse's metadata": {"langfuse.trace.metadata.user_id": USER},
    "traceloop": {"traceloop.association.properties.user_id": USER},
    "traceloop's user": {"traceloop.association.properties.user": USER},
    "userId": {"ai.telemetry.metadata.userId": USER},
    "userid": {"app.userid": USER},
    "username": {"app.username": USER},
    "openai": {"openai.user": USER},
    "safety identifier": {"gen_ai.request.safety_identifier": USER},
    "datadog": {"usr.id": USER},
    "JSON": {"metadata": json.dumps({"user_id": USER, "n": 1})},
    "JSON of an object": {"metadata": json.dumps({"user": {"id": USER}})},
    "JSON in JSON": {"metadata": json.dumps({"extra": json.dumps({"end_user": USER})})},
    "kvlist": {"metadata": {"request": {"user": USER}}},
    "kvlist of an object": {"session": {"user": {"id": USER}}},
    "parameters": {"llm.invocation_parameters": json.dumps({"temperature": 0, "user": USER})},
    "list of JSON": {"metadata": json.dumps([{"user_id": USER}])},
    "list of tags": {"langfuse.trace.tags": json.dumps([f"user_id:{USER}"])},
    "Python": {"metadata": str({"user_id": USER})},
    "cut JSON": {"metadata": json.dumps({"user_id": USER, "n": 1})[:-1]},
    "header": {"http.request.header.x-user-id": [USER]},
    "header of an end user": {"http.request.header.x_end_user": USER},
    "URL": {"url.full": f"https://shop.example/?user_id={USER}&n=1"},
    "profile": {"user": {"profile": {"id": USER}}},
    "query": {"url.query": f"n=1&user_id={USER}"},
    "target": {"http.target": f"/shop?user_id={USER}"},
    "second of a list": {"app.user_ids": ["bob-1", USER]},
    **{name: {name: json.dumps({"user_id": USER})} for name in ("baggage", "extra_body", "app.config")},
    "request": {"request_data": json.dumps({"model": "m", "messages": [], "user": USER})},
}
WHOLE = [name for name in NAMED if name not in ("JSON in JSON", "second of a list")]


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", NAMED)
def test_a_user_is_a_pseudonym_by_every_name(
    intake: Intake, bus: Bus, scrubber: LoopScrubber, name: str, resource: bool
):
    text = {"input.value": f"I am {USER}"} if name in WHOLE else {}
    given = replace(span(), attributes={**text, **({} if resource else NAMED[name])})
    intake.spans([replace(given, resource=NAMED[name] if resource else {})])
    (event,) = bus.replay("RL_SPANS")
    assert USER.encode() not in event.data
    assert scrubber.user_ref(USER).encode() in event.data
    ((_, spans),) = stored(bus)
    if name in WHOLE:
        assert read_span(spans[0]).user == scrubber.user_ref(USER)


@pytest.mark.parametrize("name", NAMED)
def test_who_opted_out_is_left_out_by_every_name(intake: Intake, bus: Bus, opt_outs: OptOuts, name: str):
    opt_outs.add(user=USER)
    assert intake.spans([replace(span(), attributes=NAMED[name])]).opted_out == 1
    assert [spans for _, spans in stored(bus)] == [None]
    assert audits(bus) == [("trace", "user")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_agent.original", "Mozilla/5.0"),
        ("user.agent", "Mozilla/5.0"),
        ("llm.input_messages.0.message.role", "user"),
        ("message", '{"role":"user","content":"hi"}'),
        ("user_message", "where is my order 7?"),
        ("user_prompt", "hello"),
        ("app.user", "where is my order 7?"),
        ("sender", '{"user":"assistant"}'),
        ("db.user", "postgres"),
        ("db.connection.user", "postgres"),
        *((f"{part}.user", "root") for part in ("host", "ssh", "os", "k8s", "container")),
        *(("app.user", role) for role in ("Assistant", "developer", "tool", "ai", "human", "system")),
        ("app.user", "x" * 257),
        ("user_count", "17"),
        ("is_user", "yes"),
        ("superuser", "no"),
        ("user_tier", "gold"),
        ("users", "17 of them"),
        ("input.value", "user_id = request['user_id'] or 17"),
        ("url.full", "https://shop.example/?agent=cust-9938"),
        ("gen_ai.input.messages", '[{"role":"user","content":"hi"}]'),
    ],
)
def test_what_only_looks_like_a_user_stays(intake: Intake, bus: Bus, name: str, value: str):
    intake.spans([replace(span(), attributes={name: value})])
    ((_, spans),) = stored(bus)
    assert dict(spans[0].attributes) == {name: value}


def test_whom_a_span_is_about_is_who_is_named_for_that(scrubber: LoopScrubber):
    names = UserNames(["customer.id"])
    content = {
        "input.value": json.dumps({"user_id": "bob-1"}),
        "tool.parameters": json.dumps({"user_id": "bob-2"}),
    }
    assert names.named([content]) == []
    assert names.named([{"db.user": "postgres", "process.user.name": "root", "user.id": "anonymous"}]) == []
    payer = {"metadata.user_api_key_user_id": "payer-1", "user.email": "ann@example.org", "llm.user": "ann-7"}
    assert names.named([payer])[0] == "ann-7"
    assert names.named([{"user.id": "ann-7", "customer.id": 4711, "user_ids": ["x-1", "x-2"]}]) == [
        "4711", "ann-7", "x-1", "x-2",
    ]  # fmt: skip
    assert names.named([{"metadata": {"messages": {"user_id": "bob-1"}, "user_id": True}}]) == []


@pytest.mark.parametrize(
    "attributes",
    [
        {"customer.id": USER},
        {"app.customer.id": USER},
        {"metadata": json.dumps({"customer": {"id": USER}})},
        {"metadata": {"customer": {"id": USER}}},
        {"metadata": json.dumps({"memberRef": USER})},
        {"app.member_ref": USER},
        {"member-ref": USER},
        {"output.value": json.dumps({"rows": [{"member_ref": USER}]})},
    ],
)
def test_names_that_somebody_adds_are_users_too(bus: Bus, attributes: dict[str, Any]):
    scrubber = LoopScrubber(b"k" * 32, user_attributes=["customer.id", "member_ref"])
    opt_outs = OptOuts(bus, scrubber)
    intake = Intake(bus, scrubber, opt_outs)
    given = replace(span(), attributes=attributes)
    intake.spans([given])
    (event,) = bus.replay("RL_SPANS")
    assert USER.encode() not in event.data
    assert scrubber.user_ref(USER).encode() in event.data
    opt_outs.add(user=USER)
    assert intake.spans([given]).opted_out == 1


@pytest.mark.parametrize(
    "nobody", ["Anonymous", "n/a", "null", "NONE", "nil", "undefined", " unknown ", "", " ", None, True, 1.5]
)
def test_who_is_nobody_is_no_user(nobody: object):
    given = {"user.id": nobody, "app.user_ids": [nobody], "metadata": json.dumps({"user_id": nobody})}
    assert UserNames().named([given]) == []


@pytest.mark.parametrize(
    "part", ["container", "db", "host", "k8s", "network", "os", "process", "server", "ssh"]
)
def test_the_user_of_a_machine_is_none_whom_a_span_is_about(part: str):
    assert UserNames().named([{f"{part}.user.name": "root", f"{part}.user.id": 0}]) == []


def test_a_name_has_256_characters_at_most_where_it_may_be_a_text():
    assert UserNames().named([{"app.user": " " + "x" * 256}, {"app.usr": "y" * 257}]) == ["x" * 256]


@pytest.mark.parametrize("key", ["args", "arguments", "content", "kwargs", "outputs", "result", "tools"])
def test_what_a_call_was_about_names_nobody(key: str):
    inner = {"user_id": "bob-1", "deeper": {"user_id": "bob-2"}}
    assert UserNames().named([{"metadata": {key: inner}}, {"metadata": json.dumps({key: inner})}]) == []
    assert (
        UserNames().named([{f"{part}.parameters": json.dumps(inner) for part in ("tool", "function")}]) == []
    )


def test_of_several_names_the_surest_counts():
    names = UserNames(["customer.id"])
    given = {
        "metadata.user_api_key_user_id": "payer",
        "app.user_email": "mail",
        "app.user_id": "id",
        "app.end_user": "end",
        "user.id": "known",
        "customer.id": "ours",
    }
    assert names.named([given]) == ["ours", "known", "end", "id", "mail", "payer"]
    assert names.named([{"app.user_id": "x-1", "user.id": "y-1", "app.user_email": "y-1"}]) == ["y-1", "x-1"]


def test_attributes_are_left_as_they_were_given(intake: Intake):
    given = replace(span(), attributes={"metadata": {"user": {"id": USER}}})
    intake.spans([given])
    assert given.attributes == {"metadata": {"user": {"id": USER}}}


@pytest.mark.parametrize(
    "metadata",
    [
        {"user_email": "ann@example.org"},
        {"end_user_id": "ann@example.org"},
        {"user": {"id": "ann@example.org"}},
        {"litellm": {"metadata": {"user_api_key_user_id": "ann@example.org"}}},
    ],
)
@pytest.mark.parametrize("refused", [False, True])
def test_a_payload_names_its_user_by_every_name(
    intake: Intake,
    bus: Bus,
    opt_outs: OptOuts,
    scrubber: LoopScrubber,
    metadata: dict[str, Any],
    refused: bool,
):
    said = payload(TRAJECTORY, metadata=metadata, **({"turns": "none"} if refused else {}))
    intake.payloads(TRAJECTORY, [said])
    (event,) = bus.replay("RL_DEAD" if refused else "RL_TRAJECTORIES")
    assert b"ann@example.org" not in event.data
    if not refused:
        assert json.loads(event.data)["metadata"]["user_ref"] == scrubber.user_ref("ann@example.org")
    opt_outs.add(user="ann@example.org")
    assert intake.payloads(TRAJECTORY, [said]).opted_out == 1


def test_a_session_that_logfire_scrubbed_is_none(intake: Intake, bus: Bus, opt_outs: OptOuts):
    scrubbed = "[Scrubbed due to 'session']"
    opt_outs.add(user="ann-7")
    ann, bob = span(1, "a" * 32), span(2, "b" * 32)
    intake.spans([replace(ann, attributes={"session.id": scrubbed, "user.id": "ann-7"})])
    intake.spans([replace(bob, attributes={"session.id": scrubbed, "user.id": scrubbed})])
    spans = [spans for _, spans in stored(bus) if spans]
    assert [(read_span(one[0]).session, read_span(one[0]).user) for one in spans] == [("", "")]


def test_a_user_takes_the_session_along_unless_somebody_else_is_there(
    intake: Intake, bus: Bus, opt_outs: OptOuts
):
    opt_outs.add(user="ann-7")
    said = payload(FEEDBACK, session_id="chat-of-ann")
    other = {**said, "feedback_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301"}
    intake.spans([replace(span(), attributes={"session.id": "chat-of-ann", "user.id": "ann-7"})])
    assert intake.payloads(FEEDBACK, [said]).opted_out == 1
    bob = replace(span(2, "b" * 32), attributes={"session.id": "chat-of-ann", "user.id": "bob-8"})
    assert intake.spans([bob]).accepted == 1
    assert intake.payloads(FEEDBACK, [other]).accepted == 1
    opt_outs.add(user="bob-8")
    assert intake.spans([replace(bob, key=("c" * 32, "1" * 16))]).opted_out == 1


def test_a_user_who_opts_in_again_has_the_session_back(intake: Intake, opt_outs: OptOuts):
    opt_outs.add(user="ann-7")
    intake.spans([replace(span(), attributes={"session.id": "chat-of-ann", "user.id": "ann-7"})])
    said = payload(FEEDBACK, session_id="chat-of-ann")
    assert intake.payloads(FEEDBACK, [said]).opted_out == 1
    opt_outs.remove(user="ann-7")
    assert intake.payloads(FEEDBACK, [said]).accepted == 1
    back = span(2, "b" * 32, session__id="chat-of-ann", user__id="ann-7")
    opt_outs.add(user="bob-8")
    assert intake.spans([back]).accepted == 1
    opt_outs.add(user="ann-7")
    assert intake.payloads(FEEDBACK, [said]).opted_out == 1, "nobody else was there"


def test_one_call_has_no_order(intake: Intake, bus: Bus, opt_outs: OptOuts):
    """Feedback of a session stands before the trajectory that says whose it is."""
    opt_outs.add(user="ann-7")
    ours = payload(TRAJECTORY, session_id="chat-of-ann", metadata={"user_id": "ann-7"})
    direct = payload(TRAJECTORY, session_id="chat-of-ann", metadata={})
    direct["trajectory_id"] = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    assert intake.payloads(TRAJECTORY, [direct, ours]).opted_out == 2
    assert list(bus.replay("RL_TRAJECTORIES")) == []


def test_a_name_is_known_by_its_last_part():
    assert [user_kind(name) for name in ("user", "a.user", "end_user", "user_id", "a.userEmail")] == [
        "perhaps user", "perhaps user", "perhaps user", "user", "user",
    ]  # fmt: skip
    assert not any(
        map(user_kind, ("user_agent", "role", "agent_user_message", "user.agent.name", "user_api_key"))
    )


def test_users_of_objects_in_lists_are_found_by_their_paths() -> None:
    value = [[{"user": {"id": 7, "name": "x y"}}], {"other": {"id": 8}}, "user"]
    found = [(key, user) for _, key, user in UserNames().by_path("", value)]
    assert ("id", "7") in found
    assert "8" not in [user for _, user in found]
