from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_frame, make_pack
from support.completers import ScriptedCompleter
from support.jobs import LessonPerGroup, ScriptedActor, make_job, run_job, suite

from pytest_tfgrpo.core.records import Trajectory, Usage
from pytest_tfgrpo.core.scenarios import Criterion, SimulatedUser
from pytest_tfgrpo.core.texts.text import count
from pytest_tfgrpo.estimate import forecast as forecasts
from pytest_tfgrpo.estimate.forecast import forecast
from pytest_tfgrpo.estimate.history import History, history_of
from pytest_tfgrpo.estimate.lines import estimate_lines
from pytest_tfgrpo.estimate.ranges import Range, UnitUse, predict
from pytest_tfgrpo.learning.optimizer.none import NoOptimizer
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.protocols import ActorCall

IDENTITIES = {"actor": {"name": "openai:m", "identity": {}}}


def model(price: Price | None, **identity: Any) -> ScriptedCompleter:
    completer = ScriptedCompleter(lambda _: "x", name="openai:m")
    completer.price = price
    completer.identity = {"max_tokens": 100, **identity}
    return completer


def planned(tmp_path: Path, price: Price | None, **changes: Any) -> Any:
    actor = ScriptedActor(lambda _: told(Usage(prompt=1000, completion=50), 0.5))
    actor.name = "openai:m"
    changes = {"job_identities": IDENTITIES, "job_models": {"openai:m": model(price)}} | changes
    return make_job(actor, tmp_path, **changes)


def told(usage: Usage, cost_usd: float | None) -> Trajectory:
    frame = make_frame("m", kind="model", tokens=usage.total, usage=usage, cost_usd=cost_usd)
    return Trajectory(answer="3", frames=(frame,))


def recorded(tmp_path: Path, price: Price | None = None, name: str = "run0") -> Path:
    folder = tmp_path / "demo" / "runs"
    run_job(planned(tmp_path, price, job_run_id=name), folder / name)
    return folder


def test_earlier_runs_are_told_at_the_prices_of_today(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    found = forecast(planned(tmp_path, Price(input=1.0, output=10.0)), folder)
    rollouts = 2 * 4 * 4 + 2 * 3 * 4
    assert found.total.calls == Range(rollouts - 3 * 4, rollouts)
    assert found.total.usd is not None
    assert found.total.usd.low == pytest.approx((rollouts - 3 * 4) * 0.0015)
    unpriced = forecast(planned(tmp_path, None), folder)
    assert unpriced.total.usd is not None
    assert unpriced.total.usd.high == pytest.approx(rollouts * 0.5)


def test_runs_of_another_actor_say_nothing(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    other = planned(tmp_path, None, job_identities={"actor": {"name": "openai:other", "identity": {}}})
    assert any("estimated from" in source for source in forecast(other, folder).sources)


def test_only_the_newest_three_runs_are_read(tmp_path: Path) -> None:
    for n in range(5):
        folder = recorded(tmp_path, name=f"run{n}")
    found = forecast(planned(tmp_path, None), folder)
    assert found.sources == ("rollouts: mean and spread of 132 in 3 earlier runs",)


def test_a_domain_without_records_is_like_the_others_and_that_is_said(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    scenarios = [replace(s, domain="text" if s.split == "train" else "dates") for s in suite()]
    job = planned(
        tmp_path, None, scenarios=scenarios, job_packs={"text": make_pack(), "dates": make_pack("dates")}
    )
    found = forecast(job, folder)
    assert "domain dates: not recorded, assumed to be like the others" in found.sources
    assert found.total.usd is not None


def test_a_rollout_with_tools_may_take_all_its_steps(tmp_path: Path) -> None:
    job = planned(tmp_path, Price(input=1.0, output=10.0), max_steps=5)
    once = forecast(job, None).total
    job.actor.identity = {"tools": {"spec": "tools"}}
    found = forecast(job, None).total
    assert found.calls == Range(once.calls.low, 5 * once.calls.high)
    assert found.tokens is not None
    assert once.tokens is not None
    assert found.tokens.high > 5 * once.tokens.high


def test_a_guess_of_the_answers_ends_at_max_tokens(tmp_path: Path) -> None:
    found = forecast(planned(tmp_path, Price(input=0.0, output=1_000_000.0)), None).total
    assert found.usd == Range(found.calls.low * 16, found.calls.high * 100)


def test_a_model_that_is_free_has_tokens_and_costs_nothing(tmp_path: Path) -> None:
    job = planned(tmp_path, Price(input=0.0, output=0.0))
    job.models["openai:m"].paid = False
    shown = estimate_lines(forecast(job, None))
    assert any(line.startswith("total") and line.endswith("$0.00") for line in shown)


def test_a_control_is_counted_only_where_a_lesson_can_change_the_prompt(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    untaught = [
        replace(s, domain="other") if s.id in ("eval-0", "eval-1") else s for s in suite(train=4, sweep=3)
    ]
    job = planned(tmp_path, Price(input=1.0, output=10.0), scenarios=untaught)
    certain = 2 * 4 * 4 + 3 * 4
    for optimizer, more in ((open_optimizer("heuristic"), 4), (NoOptimizer(), 0), (LessonPerGroup(), 12)):
        found = forecast(replace(job, optimizer=optimizer), folder)
        assert found.total.calls == Range(certain, certain + more)
        assert [part.figures.calls for part in found.parts][-2:] == [Range(0, more), Range(12, 12)]


def test_rollouts_that_the_gate_may_add_are_no_part_of_the_total_and_of_the_most(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    job = planned(tmp_path, Price(input=1.0, output=10.0))
    once, again = forecast(job, folder), forecast(job, folder, looks=(4, 8, 16))
    assert again.total == once.total == once.most
    final = 3 * 4
    assert again.most.calls == Range(once.total.calls.low, once.total.calls.high + 3 * 2 * final)
    assert again.most.usd is not None
    assert once.total.usd is not None
    assert again.most.usd.high == pytest.approx(once.total.usd.high + 3 * 2 * final * 0.0015)
    limit = once.total.usd.high + 0.001
    job = planned(tmp_path, Price(input=1.0, output=10.0), budget_usd=limit)
    assert forecast(job, folder).warnings == ()
    (warning,) = forecast(job, folder, looks=(4, 8, 16)).warnings
    assert "may not be enough: up to $0.19" in warning
    assert estimate_lines(again)[-2].split() == ["at", "most", "128", "134k", "$0.19"]


def test_lines_stay_within_80_columns(tmp_path: Path) -> None:
    job = planned(tmp_path, None, budget_tokens=10)
    job.models["openai:" + "x" * 300] = model(None)
    for line in estimate_lines(forecast(job, recorded(tmp_path))):
        assert len(line) <= 80
        assert line.isprintable()


class TalkingActor(ScriptedActor):
    """Answers each message of a conversation as it answers a question."""

    converses = True

    def open_session(self, call: ActorCall) -> Any:
        self.call = call
        return self

    async def answer(self, message: str) -> Trajectory:
        return await self(self.call)


def talks(max_turns: int = 4) -> list[Any]:
    user = SimulatedUser(goal="a table", max_turns=max_turns)
    return [replace(s, turns=(s.prompt,), user=user) for s in suite(train=2, sweep=3)]


def played(tmp_path: Path, price: Price | None, **changes: Any) -> Any:
    guest = ScriptedCompleter(lambda _: "x", name="openai:guest")
    guest.price = price
    guest.identity = {"max_tokens": 50}
    changes = {"job_user": guest, "scenarios": talks()} | changes
    models = {"openai:m": model(Price(input=0.0, output=0.0)), "openai:guest": guest}
    return planned(tmp_path, None, job_models=models, epochs=2, **changes)


def test_the_calls_of_the_model_that_plays_users_are_counted_apart(tmp_path: Path) -> None:
    found = forecast(played(tmp_path, Price(input=0.0, output=1_000_000.0)), None)
    calls = {(part.phase, part.purpose): part.figures for part in found.parts}
    assert calls["epoch1", "user"].calls == Range(2 * 4, 2 * 3 * 2 * 4)
    assert calls["epoch1", "user"].usd == Range(8 * 16, 48 * 50)
    assert calls["epoch1", "rollouts"].calls == Range(2 * 4, 4 * 2 * 4)
    assert calls["epoch1", "rollouts"].usd == Range(0.0, 0.0)
    shown = estimate_lines(found)
    assert any(line.startswith("epoch1 user ") for line in shown)
    assert any(line.startswith("user: estimated") for line in shown)


def test_a_user_with_one_message_and_a_script_ask_no_model(tmp_path: Path) -> None:
    price = Price(input=1.0, output=10.0)
    once = forecast(played(tmp_path, price, scenarios=talks(max_turns=1)), None)
    assert {part.figures.calls for part in once.parts if part.purpose == "user"} <= {Range(0, 0)}
    script = [replace(s, turns=(s.prompt, "And?", "Thanks.")) for s in talks()]
    scripted = forecast(played(tmp_path, price, scenarios=script, job_user=None), None)
    assert all(part.purpose == "rollouts" for part in scripted.parts)
    assert scripted.parts[0].figures.calls == Range(3 * 2 * 4, 3 * 2 * 4)


def test_the_user_of_earlier_runs_is_told_with_its_model_alone_and_is_no_learning(tmp_path: Path) -> None:
    identities = IDENTITIES | {
        "user": {"name": "openai:guest", "identity": {"model": "openai:guest"}},
        "optimizer": {"name": "x", "identity": {"model": "openai:m"}},
    }
    reply = '{"over": true, "message": ""}'
    guest = ScriptedCompleter(lambda _: reply, name="openai:guest")
    job = played(tmp_path, None, job_user=guest, job_identities=identities, job_run_id="run0")
    job = replace(job, actor=TalkingActor(lambda _: told(Usage(prompt=9, completion=1), 0.5)))
    folder = tmp_path / "demo" / "runs"
    run_job(job, folder / "run0")
    again = played(tmp_path, Price(input=1.0, output=1.0), job_identities=identities)
    found = history_of(again, folder)
    assert {use.calls for use in found.user} == {1.0}
    assert {use.tokens for use in found.user} == {120.0}
    assert {use.calls for use in found.learning} == {0.0}
    assert any(source.startswith("user: mean and spread of") for source in forecast(again, folder).sources)
    other = identities | {"user": {"name": "openai:guest", "identity": {"model": "openai:other"}}}
    assert history_of(played(tmp_path, None, job_identities=other), folder).user == []


def test_what_the_dev_split_may_take_is_told_from_nothing_to_its_most(tmp_path: Path) -> None:
    for dev, more in ((20, {"epoch1-dev": Range(0, 20 * 2 * 4)}), (19, {})):
        scenarios = [replace(s, split="dev") if n < dev else s for n, s in enumerate(suite(dev + 2, 2))]
        job = planned(tmp_path, Price(input=1.0, output=10.0), scenarios=scenarios)
        found = {part.phase: part.figures.calls for part in forecast(job, None).parts}
        assert {name: calls for name, calls in found.items() if name.startswith("epoch1")} == {
            "epoch1": Range(2 * 4, 2 * 4),
            **more,
        }


@pytest.mark.parametrize(
    ("bound", "ends", "said"),
    [
        ({"usd": 2.0}, Range(0.0, 2.0), "rollouts: at most what the actor declares"),
        ({}, None, "rollouts: the actor declares no limit"),
    ],
)
def test_beside_the_models_of_a_run_an_actor_counts_by_what_it_declares(
    bound: dict[str, float], ends: Range | None, said: str, tmp_path: Path
) -> None:
    job = planned(tmp_path, Price(input=1.0, output=10.0))
    job = replace(job, actor=ScriptedActor(lambda _: "3", bound))
    found = forecast(job, None)
    (epoch,) = [part.figures for part in found.parts if part.phase == "epoch1"]
    assert (epoch.calls, epoch.usd, epoch.tokens) == (Range(16, 16), ends, None)
    assert said in found.sources


class Declaring(ScriptedActor):
    """Declares cents for each call, and no tokens."""

    def bound(self, call_count: int) -> dict[str, float | None]:
        return {"usd": 0.01 * call_count, "tokens": None}


@pytest.mark.parametrize(
    ("looks", "more", "warned"), [((), None, ["up to $0.56"]), ((4, 8), 0.8, ["up to $0.80"])]
)
def test_without_models_the_actor_declares_what_the_planned_and_the_further_rollouts_take(
    looks: tuple[int, ...], more: float | None, warned: list[str], tmp_path: Path
) -> None:
    job = make_job(Declaring(lambda _: "3"), tmp_path, budget_usd=0.5, budget_tokens=1)
    found = forecast(job, None, looks=looks)
    assert found.declared == {"usd": pytest.approx(0.56), "tokens": None}
    assert (found.parts, found.sources, found.free, found.looks) == ((), (), False, looks)
    if more is None:
        assert found.declared_most is None
    else:
        assert found.declared_most is not None
        assert (found.declared_most.tokens, found.declared_most.usd) == (None, Range(0.0, more))
    assert [text.split("enough: ")[1].split(";")[0] for text in found.warnings] == warned


@pytest.mark.parametrize(
    ("bound", "paid", "price", "free", "parts"),
    [
        ({"usd": 0.0}, False, None, True, False),
        ({"usd": 0.0}, False, Price(input=0.0, output=0.0), True, True),
        ({"usd": 0.0}, True, None, False, True),
        ({"usd": 1.0}, False, None, False, True),
    ],
)
def test_a_run_is_free_where_neither_its_actor_nor_a_model_costs_anything(
    bound: dict[str, float], paid: bool, price: Price | None, free: bool, parts: bool, tmp_path: Path
) -> None:
    job = planned(tmp_path, price)
    job = replace(job, actor=ScriptedActor(lambda _: "3", bound))
    job.models["openai:m"].paid = paid
    found = forecast(job, None, looks=(4, 8))
    assert (found.free, bool(found.parts), found.looks) == (free, parts, (4, 8))


@pytest.mark.parametrize(("usage", "known"), [(UnitUse(2, 100, 0.5), True), (UnitUse(2, 100, None), False)])
@pytest.mark.parametrize("modelled", [True, False])
def test_without_earlier_runs_a_recording_counts_with_the_price_of_the_model(
    usage: UnitUse, known: bool, modelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price, asked = Price(input=1.0, output=10.0), []

    def uses(*given: Any) -> dict[str, list[UnitUse]]:
        asked.append(given)
        return {"text": [usage] * 5}

    monkeypatch.setattr(forecasts, "uses_in", uses)
    job = planned(tmp_path, price, **({} if modelled else {"job_models": {}}))
    found = forecast(job, None, tmp_path / "recording")
    domains = {scenario.id: "text" for scenario in suite()}
    assert asked == [(tmp_path / "recording", "openai:m", domains, price if modelled else None)]
    assert found.sources == ("rollouts: mean and spread of 5 in the recording",)
    assert found.total.calls == Range(2 * 44, 2 * 56)
    assert (found.total.usd is not None) is known
    said = [] if known or modelled else ["the cost is unknown: the actor declares none"]
    assert list(found.warnings) == said


@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_learning_and_judging_count_by_earlier_runs_or_are_estimated(
    epochs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = History(runs=min(1, epochs), rollouts={"text": [UnitUse(1, 10, 0.1)] * 5})
    past.learning = [UnitUse(3, 30, 0.3)] * epochs
    past.judge = [UnitUse(2, 20, 0.2)] * (5 * epochs)
    monkeypatch.setattr(forecasts, "history_of", lambda job, folder: past)
    optimizer = LessonPerGroup()
    optimizer.identity = {"model": "openai:m"}
    rubric = (Criterion(name="kind", text="Is the answer kind?"),)
    scenarios = [replace(s, rubric=rubric) if s.id in ("train-0", "eval-0") else s for s in suite()]
    price = Price(input=1.0, output=10.0)
    job = planned(tmp_path, price, job_optimizer=optimizer, scenarios=scenarios)
    found = forecast(replace(job, judge=SimpleNamespace(name="openai:m")), None)  # type: ignore[arg-type]
    calls = {(part.phase, part.purpose): part.figures.calls for part in found.parts}
    assert [key for key in calls if key[1] == "learning"] == [("epoch1", "learning"), ("epoch2", "learning")]
    sweeps = [phase.label for phase in job.phases]
    assert [key[0] for key in calls if key[1] == "judge"] == sweeps
    judged = [source for source in found.sources if source.startswith("judge: ")]
    learned = [source for source in found.sources if source.startswith("learning: ")]
    if not epochs:
        assert learned == ["learning: estimated, from no group with mixed results to all groups"]
        assert judged == ["judge: estimated, from one call per vote to one repair of each"]
        return
    several = "1 epoch" if epochs == 1 else "2 epochs"
    assert learned == [f"learning: mean and spread of {several} in 1 earlier run"]
    assert judged == [f"judge: mean and spread of {5 * epochs} phases in 1 earlier run"]
    assert calls["epoch1", "judge"] == Range(8, 8)
    assert calls["epoch1", "learning"] == predict(past.learning, 4).calls


def test_a_model_without_a_limit_of_its_own_has_that_of_the_settings(tmp_path: Path) -> None:
    job = planned(tmp_path, Price(input=0.0, output=1_000_000.0), max_tokens=70)
    job.models["openai:m"].identity = {}
    found = forecast(job, None).total
    assert found.usd == Range(found.calls.low * 16, found.calls.high * 70)
    assert any(text.endswith("to max_tokens (70)") for text in forecast(job, None).sources)


@pytest.mark.parametrize(
    ("unit", "limit", "said"),
    [
        ("usd", 0.0001, "budget_usd of $0.0001 is not enough: at least $"),
        ("tokens", 10, "budget_tokens of 10 is not enough: at least "),
        ("tokens", 10**9, None),
    ],
)
def test_a_budget_that_surely_ends_the_run_is_named_with_the_least_that_it_takes(
    unit: str, limit: float, said: str | None, tmp_path: Path
) -> None:
    job = planned(tmp_path, Price(input=1.0, output=10.0), **{f"budget_{unit}": limit})
    found = forecast(job, None)
    assert [text.startswith(said or "?") for text in found.warnings] == [True] * (said is not None)


def test_only_paid_models_without_a_price_are_named(tmp_path: Path) -> None:
    models = {name: model(None) for name in ("openai:z", "openai:m", "openai:free", "openai:known")}
    models["openai:free"].paid = False
    models["openai:known"].price = Price(input=1.0, output=1.0)
    found = forecast(planned(tmp_path, None, job_models=models), None)
    asked_for = "is unknown; add it to the file of the setting models"
    assert found.warnings == tuple(f"the price of {name} {asked_for}" for name in ("openai:m", "openai:z"))


def test_rollouts_are_counted_from_what_is_certain_to_what_the_dev_split_and_the_gate_may_add(
    tmp_path: Path,
) -> None:
    job = planned(tmp_path, None)
    assert forecasts.rollouts_of(job) == (44, 56, 0)
    assert forecasts.rollouts_of(job, (4, 8, 16)) == (44, 56, 72)
    scenarios = [replace(s, split="dev") if n < 20 else s for n, s in enumerate(suite(24, 3))]
    assert forecasts.rollouts_of(planned(tmp_path, None, scenarios=scenarios)) == (44, 56 + 2 * 160, 0)


@pytest.mark.parametrize(
    ("below", "said"),
    [("low", "is not enough: at least"), ("high", "may not be enough: up to"), ("", "")],
)
def test_a_budget_is_held_against_both_ends(below: str, said: str, tmp_path: Path) -> None:
    most = forecast(planned(tmp_path, None), None).total.tokens
    assert most is not None
    limit = {"low": most.low - 1, "high": most.high - 1, "": most.high}[below]
    found = forecast(planned(tmp_path, None, budget_tokens=limit), None).warnings
    texts = [text for text in found if text.startswith("budget_tokens of ")]
    ends = {"low": count(most.low), "high": count(most.high)}
    assert len(texts) == bool(below)
    assert all(f"{said} {ends[below]}; the run would end incomplete" in text for text in texts)
