"""What earlier runs used: journals written event by event, and the units that are read from them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.completers import ScriptedCompleter
from support.jobs import ScriptedActor, make_job

from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.estimate import history
from pytest_tfgrpo.estimate.history import History, history_of
from pytest_tfgrpo.estimate.ranges import UnitUse
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.runs.journal.journal import encode

DOLLAR = Price(input=1_000_000.0, output=1_000_000.0)
GUEST = {"name": "openai:g", "identity": {"model": "openai:g"}}
IDENTITIES = {
    "actor": {"name": "openai:m", "identity": {}},
    "optimizer": GUEST,
    "judge": GUEST,
    "user": GUEST,
}
SCENARIOS = [{"id": "a", "domain": "text", "user": {}}, {"id": "b", "domain": "other", "user": None}]
TWELVE = {"prompt": 10, "completion": 2}


def frame(kind: str = "model", usage: Any = TWELVE) -> dict[str, Any]:
    return {"kind": kind, "usage": usage}


def rollout(n: int = 0, **changes: Any) -> tuple[str, Any]:
    known = {"rollout_id": f"run.e1.a.r{n}", "run_id": "run", "scenario_id": "a", "epoch": 1, "status": "ok"}
    return "rollout", known | {"tokens": 12, "cost_usd": 0.5, "frames": [frame()]} | changes


def call(purpose: str = "learn", key: str = "e1.a.r0.user.1", **changes: Any) -> tuple[str, Any]:
    known = {"purpose": purpose, "key": key, "epoch": 1, "model": "openai:g", "usage": TWELVE}
    return "call", known | {"cost_usd": 0.25, "error": None} | changes


def group(mode: str = "train", epoch: int = 1) -> tuple[str, Any]:
    return "group", {"epoch": epoch, "mode": mode}


def judged(n: int = 0) -> tuple[str, Any]:
    return "opinion", {"rollout_id": f"run.e1.a.r{n}"}


REVISED = ("revision", {"epoch": 1})


def write(folder: Path, events: Sequence[Any], name: str = "run", header: Any = None) -> Path:
    path = folder / name / JOURNAL
    path.parent.mkdir(parents=True, exist_ok=True)
    first = ("run", {"identities": IDENTITIES, "scenarios": SCENARIOS} | (header or {}))
    path.write_bytes(b"".join(encode(n, *event) for n, event in enumerate([first, *events], 1)))
    return path


def read(folder: Path, price: Price | None = None, **identities: Any) -> History:
    models = {name: ScriptedCompleter(lambda _: "x", name=name) for name in ("openai:m", "openai:g")}
    for model in models.values():
        model.price = price
    actor = ScriptedActor(lambda _: "3")
    actor.name = "openai:m"
    job = make_job(actor, folder, job_models=models, job_identities=IDENTITIES | identities)
    return history_of(job, folder)


@pytest.mark.parametrize(
    ("changes", "price", "expected"),
    [
        ({}, None, UnitUse(1, 12, 0.5)),
        ({}, DOLLAR, UnitUse(1, 12, 12.0)),
        ({"frames": [frame(), frame(), frame("tool")]}, DOLLAR, UnitUse(2, 12, 24.0)),
        ({"frames": [frame(), frame(usage=None)]}, DOLLAR, UnitUse(2, 12, 0.5)),
        ({"frames": []}, DOLLAR, UnitUse(1, 12, 0.5)),
        ({"status": "error"}, None, UnitUse(1, 12, 0.5)),
        ({"tokens": 0}, None, UnitUse(1, 0, 0.5)),
        ({"tokens": 0, "status": "error"}, None, None),
    ],
    ids=["told", "priced", "calls-alone", "unknown", "no-calls", "failed-later", "no-tokens", "no-provider"],
)
def test_a_rollout_is_told_in_calls_tokens_and_cost(
    changes: Any, price: Price | None, expected: UnitUse | None, tmp_path: Path
) -> None:
    write(tmp_path, [rollout(**changes)])
    assert read(tmp_path, price).rollouts.get("text") == (None if expected is None else [expected])


@pytest.mark.parametrize(
    ("change", "price", "expected"),
    [
        ({}, None, UnitUse(1, 12, 0.25)),
        ({}, DOLLAR, UnitUse(1, 12, 12.0)),
        ({"usage": None}, DOLLAR, UnitUse(1, 0, 0.25)),
        ({"cost_usd": None}, None, UnitUse(1, 12, None)),
        ({"cost_usd": None, "error": "503", "usage": None}, None, UnitUse(1, 0, 0.0)),
        ({"error": "no answer"}, None, UnitUse(1, 12, 0.25)),
    ],
    ids=["told", "priced", "no-tokens", "unknown-cost", "refused", "failed"],
)
def test_a_call_of_unknown_cost_leaves_the_sum_unknown_unless_it_was_refused(
    change: Any, price: Price | None, expected: UnitUse, tmp_path: Path
) -> None:
    write(tmp_path, [rollout(), call("judge", **change), judged()])
    assert read(tmp_path, price).judge == [expected]


def test_one_call_of_unknown_cost_leaves_the_cost_of_its_answer_unknown(tmp_path: Path) -> None:
    write(tmp_path, [rollout(), call("judge"), call("judge", cost_usd=None), judged()])
    assert read(tmp_path).judge == [UnitUse(2, 24, None)]


def test_learning_is_told_by_group_of_a_training_epoch_that_ended(tmp_path: Path) -> None:
    calls = [call(), call("critique"), call("judge"), call(epoch=2), call("user"), call("user")]
    groups = [group(), group(), group("dev"), group(epoch=2)]
    write(tmp_path, [rollout(), *calls, *groups, REVISED, ("revision", {"epoch": 3})])
    assert read(tmp_path).learning == [UnitUse(1, 12, 0.25)]


def test_judging_is_told_by_rollout_that_was_judged_in_its_epoch(tmp_path: Path) -> None:
    calls = [call("judge"), call("judge"), call("judge", epoch=2), call()]
    rollouts = [rollout(), rollout(1), rollout(2), rollout(3, epoch=2)]
    write(tmp_path, [*rollouts, *calls, judged(), judged(1), judged(3)])
    assert read(tmp_path).judge == [UnitUse(1, 12, 0.25), UnitUse(1, 12, 0.25)]


def test_a_user_is_told_by_conversation_that_began(tmp_path: Path) -> None:
    calls = [call("user"), call("user", "e1.a.r0.user.2"), call("user", "e1.a.r1.user.1"), call("judge")]
    rollouts = [rollout(), rollout(1), rollout(2, frames=[]), rollout(3, scenario_id="b")]
    write(tmp_path, [*rollouts, *calls])
    assert read(tmp_path).user == [UnitUse(2, 24, 0.5), UnitUse(1, 12, 0.25)]


@pytest.mark.parametrize(("role", "field"), [("optimizer", "learning"), ("judge", "judge"), ("user", "user")])
@pytest.mark.parametrize(
    ("other", "same"),
    [
        (GUEST, True),
        ({"name": "openai:g", "identity": {"model": "openai:h"}}, False),
        ({"name": "openai:h", "identity": {"model": "openai:g"}}, False),
        (None, False),
    ],
    ids=["same", "other-model", "other-name", "none"],
)
def test_learning_judge_and_user_count_where_their_own_model_did_it(
    role: str, field: str, other: Any, same: bool, tmp_path: Path
) -> None:
    write(tmp_path, [rollout(), call(), call("judge"), call("user"), group(), judged(), REVISED])
    found = read(tmp_path, **{role: other})
    assert {name: bool(getattr(found, name)) for name in ("learning", "judge", "user")} == {
        "learning": True,
        "judge": True,
        "user": True,
        field: same,
    }


@pytest.mark.parametrize(
    "spoil",
    [
        {"identities": {"actor": {"name": "openai:other", "identity": {}}}},
        {"identities": {}},
        {"identities": {"actor": "openai:m"}},
        {"scenarios": []},
    ],
    ids=["other-actor", "no-actor", "malformed-actor", "no-scenarios"],
)
def test_a_journal_of_another_actor_or_of_no_use_is_passed_over(spoil: Any, tmp_path: Path) -> None:
    write(tmp_path, [rollout()], "run1")
    write(tmp_path, [rollout()], "run2", spoil)
    write(tmp_path, [], "run3")
    write(tmp_path, [], "run4").write_bytes(b"")
    write(tmp_path, [], "run5").write_text(json.dumps([]) + "\n")
    found = read(tmp_path)
    assert (found.runs, len(found.rollouts["text"])) == (1, 1)


def test_a_run_of_which_a_part_is_malformed_adds_nothing(tmp_path: Path) -> None:
    write(tmp_path, [rollout(), ("call", {"epoch": 1, "purpose": "judge"}), judged()])
    assert read(tmp_path) == History()


def test_a_model_of_the_actor_may_have_changed(tmp_path: Path) -> None:
    write(tmp_path, [rollout()])
    assert read(tmp_path, actor={"name": "openai:m", "identity": {"model": "newer"}}).runs == 1


@pytest.mark.parametrize(
    ("limit", "value", "runs"),
    [("RUNS", 2, 2), ("ENOUGH", 2, 2), ("ENOUGH", 1, 1), ("LOOKED_AT", 1, 1)],
)
def test_the_newest_runs_are_read_until_enough_is_known(
    limit: str, value: int, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, limit, value)
    for n in range(3):
        write(tmp_path, [rollout(tokens=n)], f"run{n}")
    found = read(tmp_path)
    assert found.runs == runs
    assert [use.tokens for use in found.rollouts["text"]] == [2, 1, 0][:runs]


def test_a_journal_as_large_as_may_be_is_read_and_no_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = write(tmp_path, [rollout()]).stat().st_size
    monkeypatch.setattr(history, "MAX_BYTES", size)
    assert read(tmp_path).runs == 1
    monkeypatch.setattr(history, "MAX_BYTES", size - 1)
    assert read(tmp_path).runs == 0
