"""Mocks: what stands in for the tools of a scenario's rollouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.model_actor import Bench, script, wants

from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.scenarios import Scenario, Task
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult
from pytest_tfgrpo.suite.records import scenario

SHOP = '''
def get_order(id: int, full: bool = False) -> str:
    """Look up an order."""
    return f"real {id}"

def refund(id: int) -> str:
    """Pay back."""
    raise AssertionError("nobody may call it")
'''


def made(folder: Path, mocks: dict[str, Any]) -> Scenario:
    check = {"kind": "exact", "value": "3"}
    return scenario("order-7", folder=folder, prompt="p", checks=[check], mocks=mocks)


def ask(bench: Bench, mocks: dict[str, Any], *calls: tuple[str, str]) -> AttemptResult:
    """Ask a model that makes one call a turn, then answers 3."""
    bench.tools(SHOP)
    one = made(bench.root, mocks)
    turns = [wants(call) for call in calls]
    return bench.ask(
        script(*turns, "3"),
        settings={"max_steps": 9},
        mocks=one.mocks,
        task=Task(id=one.id, domain="d", prompt="p"),
    )


def failure(said: AttemptResult) -> str:
    assert said.status == "error", said
    assert said.failure is not None
    assert said.failure.code == "mock"
    return said.failure.message


def test_each_kind_of_mock_answers_in_place_of_its_tool(bench: Bench) -> None:
    mocks = {"get_order": {"returns": {"id": 7, "state": "sent"}}, "refund": {"raises": "the bank is closed"}}
    said = ask(bench, mocks, ("get_order", '{"id": 7}'), ("refund", '{"id": 7}'))
    assert said.answer == "3"
    assert bench.told() == ['{"id": 7, "state": "sent"}', "error: the bank is closed"]


def test_a_sequence_answers_in_the_order_of_the_calls_of_each_rollout(bench: Bench) -> None:
    steps = [{"returns": "packed"}, {"raises": "busy"}, {"returns": "sent"}]
    call = ("get_order", '{"id": 7}')
    for _ in range(2):
        ask(bench, {"get_order": {"sequence": steps}}, call, call, call)
        assert bench.told() == ["packed", "error: busy", "sent"]
    said = ask(bench, {"get_order": {"sequence": steps}}, call, call, call, call)
    assert failure(said) == (
        "no mock of scenario 'order-7' covers the call get_order({\"id\": 7}): its sequence has 3 results; "
        "add one to it"
    )
    assert [frame.kind for frame in said.frames] == ["model", "tool"] * 4


def test_calls_of_one_turn_take_a_sequence_in_their_order(bench: Bench) -> None:
    bench.tools(SHOP)
    one = made(bench.root, {"get_order": {"sequence": [{"returns": n} for n in range(9)]}})
    turn = wants(*(("get_order", json.dumps({"id": n})) for n in range(9)))
    bench.ask(script(turn, "3"), mocks=one.mocks)
    assert bench.told() == [str(n) for n in range(9)]


def test_the_first_case_whose_arguments_fit_answers(bench: Bench) -> None:
    cases = [
        {"when": {"id": 7, "full": True}, "returns": "all of 7"},
        {"when": {"id": 7}, "returns": "7"},
        {"when": {"id": 8}, "real": True},
    ]
    calls = ['{"id": 7}', '{"id": 7, "full": true}', '{"id": 8}']
    ask(bench, {"get_order": cases}, *(("get_order", call) for call in calls))
    assert bench.told() == ["7", "all of 7", "real 8"]
    said = ask(bench, {"get_order": cases}, ("get_order", '{"id": 9}'))
    assert 'get_order({"id": 9}): no `when` of its mocks fits' in failure(said)


def test_a_call_of_a_tool_without_a_mock_is_an_error_that_names_it(bench: Bench) -> None:
    said = ask(bench, {"get_order": {"real": True}}, ("get_order", '{"id": 1}'), ("refund", '{"id": 1}'))
    assert 'refund({"id": 1}): it has no mock' in failure(said)
    ask(bench, {"refund": {"returns": 1}, "*": {"returns": "any"}}, ("get_order", '{"id": 1}'))
    assert bench.told() == ["any"]


def test_arguments_must_still_fit_the_tool(bench: Bench) -> None:
    ask(bench, {"*": {"returns": 1}}, ("get_order", '{"id": "x"}'), ("gone", "{}"))
    assert bench.told()[0].startswith("error: the arguments do not fit: /id")
    assert bench.told()[1].startswith("error: there is no tool 'gone'")


def test_a_python_mock_gets_the_arguments(bench: Bench) -> None:
    (bench.root / "shop_mocks_here.py").write_text(
        "def order(id, full=False):\n"
        "    if id == 9:\n        raise SystemExit('no')\n"
        "    return {'id': id, 'full': full}\n"
    )
    mocks = {"get_order": {"python": "shop_mocks_here:order"}}
    ask(bench, mocks, ("get_order", '{"id": 7, "full": true}'), ("get_order", '{"id": 9}'))
    assert bench.told() == ['{"id": 7, "full": true}', "error: SystemExit: no"]


def test_a_python_mock_may_return_what_is_to_be_awaited(bench: Bench) -> None:
    (bench.root / "later_mocks_here.py").write_text(
        "async def later(id):\n    return id + 1\ndef order(id):\n    return later(id)\n"
    )
    ask(bench, {"get_order": {"python": "later_mocks_here:order"}}, ("get_order", '{"id": 7}'))
    assert bench.told() == ["8"]


def recording(folder: Path, *lines: object) -> None:
    (folder / "session.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def tool(id_: int, output: str, **more: object) -> dict[str, object]:
    return {"kind": "tool", "name": "get_order", "input": {"id": id_}, "output": output, **more}


def test_a_recorded_session_gives_its_results_again(bench: Bench) -> None:
    rollouts = [
        {"kind": "rollout", "scenario": "other", "frames": [tool(7, "of another")]},
        {"kind": "rollout", "scenario": "order-7", "frames": [tool(7, "packed"), tool(8, "", error="gone")]},
        {"kind": "rollout", "scenario": "order-7", "frames": [tool(7, "sent"), tool(9, "late")]},
    ]
    recording(bench.root, {"schema": "tfgrpo.recording/1"}, *rollouts)
    mocks = {"*": {"recorded": "session.jsonl"}}
    ids = (8, 7, 9)
    ask(bench, mocks, *(("get_order", json.dumps({"id": n})) for n in ids))
    assert bench.told() == ["error: gone", "packed", "late"]
    said = ask(bench, mocks, ("get_order", '{"id": 7}'), ("get_order", '{"id": 7}'))
    assert 'get_order({"id": 7}): session.jsonl has it 1 time' in failure(said)
    said = ask(bench, mocks, ("get_order", '{"id": 70}'))
    assert 'get_order({"id": 70}): session.jsonl has it never' in failure(said)


def test_equal_calls_are_those_with_equal_numbers_and_no_arguments_may_be_left_out(bench: Bench) -> None:
    recording(bench.root, tool(7, "seven") | {"input": {"id": 7.0}}, {"kind": "tool", "name": "ping"})
    bench.tools(
        "def get_order(id: float) -> str:\n    raise AssertionError\ndef ping() -> str:\n    return ''\n"
    )
    mocks = made(bench.root, {"*": {"recorded": "session.jsonl"}}).mocks
    bench.ask(script(wants(("get_order", '{"id": 7}'), ("ping", "{}")), "3"), mocks=mocks)
    assert bench.told() == ["seven", ""]


def test_a_mock_of_a_tool_for_files_offers_it_without_files(bench: Bench) -> None:
    ask(bench, {"read_file": {"returns": "text"}}, ("read_file", '{"name": "a"}'))
    assert bench.told() == ["text"]
    assert [spec.name for spec in bench.model.requests[0].tools] == ["get_order", "refund", "read_file"]


def test_frames_that_a_program_printed_are_a_session_too(bench: Bench) -> None:
    recording(bench.root, {"frame": tool(7, "packed")}, tool(7, "sent"))
    call = ("get_order", '{"id": 7}')
    ask(bench, {"get_order": {"recorded": "session.jsonl"}}, call, call)
    assert bench.told() == ["packed", "sent"]


def test_a_mock_of_a_tool_that_is_not_offered_is_refused_before_the_run(bench: Bench) -> None:
    bench.tools(SHOP)
    actor = bench.actor()
    mocks = made(bench.root, {"get_oder": {"returns": 1}, "*": {"returns": 2}}).mocks
    with pytest.raises(ActorError, match=r"no tool 'get_oder' to mock; .*; did you mean 'get_order'"):
        actor.require_mocks(Task(id="t", domain="d", prompt="p"), mocks)
    known = made(bench.root, {"get_order": {"returns": 1}}).mocks
    with pytest.raises(ActorError, match="there is no tool 'get_order' to mock; there are: refund"):
        actor.require_mocks(Task(id="t", domain="d", prompt="p", tools=("refund",)), known)


@pytest.mark.parametrize(
    ("mocks", "why"),
    [
        (
            {"refund": {"when": {"idd": 7}}},
            "mocks/refund/0: .* refund has no parameter 'idd'; did you mean 'id'",
        ),
        ({"refund": {"when": {"id": "7"}}}, "refund does not take id: '7' is not of type integer"),
        (
            {"*": {"when": {"order": 7}}},
            r"mocks/\*/0: no call can fit its `when`: get_order has no parameter",
        ),
        ({"*": {"when": {"full": True}}}, ""),
        ({"refund": {"when": {"id": 7.0}}}, ""),
    ],
)
def test_a_case_that_no_call_can_fit_is_refused_so_that_the_real_tool_is_not_called_for_it(
    bench: Bench, mocks: dict[str, Any], why: str
) -> None:
    bench.tools(SHOP)
    written = {name: [case | {"returns": 1}, {"real": True}] for name, case in mocks.items()}
    found, task = made(bench.root, written).mocks, Task(id="t", domain="d", prompt="p")
    if not why:
        bench.actor().require_mocks(task, found)
        return
    with pytest.raises(ActorError, match=why):
        bench.actor().require_mocks(task, found)
