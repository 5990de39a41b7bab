"""A model as judge: verdict or reason, never a default score."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.builders import make_frame, make_rollout, make_scenario
from support.completers import Answer, ScriptedCompleter, make_calls

from pytest_tfgrpo.core.errors import BudgetError, JournalError, ModelError, RecordingError
from pytest_tfgrpo.core.records import JudgeResult, ModelCall
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.llm.fingerprint import fingerprint
from pytest_tfgrpo.llm.protocol import Completion, Request
from pytest_tfgrpo.scoring.judge.model import open_judge
from pytest_tfgrpo.scoring.judge.prompt import vote_schema

pytestmark = pytest.mark.asyncio

SCENARIO = make_scenario(rubric=(Criterion(text="It greets."), Criterion(text="It says 3.", weight=3)))
ROLLOUT = make_rollout(answer="Hello, 3", epoch=2)


def votes(*met: bool) -> str:
    return json.dumps({f"c{n}": {"why": "so", "met": one} for n, one in enumerate(met, 1)})


def by_ballot(*replies: str | Exception) -> Answer:
    """Answer the votes in order of their seeds' first appearance."""
    left = list(replies)

    def answer(_request: Request) -> str:
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return answer


async def ask_judge(answer: Answer, *, count: int = 3, written: list[ModelCall] | None = None) -> JudgeResult:
    judge = open_judge(ScriptedCompleter(answer), votes=count, seed=7)
    return await judge.ask_judge(SCENARIO, ROLLOUT, make_calls(written))


async def test_a_verdict_is_the_mean_of_the_votes():
    opinion = await ask_judge(by_ballot(votes(True, True), votes(False, True), votes(True, True)))
    assert opinion.votes == (1.0, 0.75, 1.0)
    assert opinion.score == pytest.approx(2.75 / 3)
    assert opinion.agreement == pytest.approx((1 / 3 + 1) / 2)


async def test_every_vote_is_a_call_of_its_own_in_the_journal():
    written: list[ModelCall] = []
    completer = ScriptedCompleter(lambda _: votes(True, True))
    judge = open_judge(completer, votes=3, seed=7)
    await judge.ask_judge(SCENARIO, ROLLOUT, make_calls(written))
    assert sorted(call.key for call in written) == [f"e2.judge.count-words.r0.v{n}" for n in range(3)]
    assert {(call.purpose, call.epoch, call.subject) for call in written} == {("judge", 2, "count-words")}
    assert completer.most_in_flight == 3
    assert len({request.seed for request in completer.requests}) == 3
    assert all(request.schema == vote_schema(2) for request in completer.requests)


async def test_the_sweeps_over_the_dev_split_after_an_epoch_have_calls_of_their_own():
    written: list[ModelCall] = []
    judge = open_judge(ScriptedCompleter(lambda _: votes(True, True)), votes=1, seed=7)
    calls = make_calls(written)
    for sweep in ("d1", "d2"):
        group = f"{ROLLOUT.run_id}.e2{sweep}.{ROLLOUT.scenario_id}"
        await judge.ask_judge(SCENARIO, replace(ROLLOUT, group_id=group), calls)
    assert [call.key for call in written] == [f"e2{sweep}.judge.count-words.r0.v0" for sweep in ("d1", "d2")]
    assert calls.of(2) == tuple(written)


async def test_one_vote_is_cast_cold_and_several_are_not():
    for count, cold in ((1, True), (2, False), (3, False)):
        completer = ScriptedCompleter(lambda _: votes(True, True))
        await open_judge(completer, votes=count, seed=7).ask_judge(SCENARIO, ROLLOUT, make_calls())
        assert all((request.temperature == 0) is cold for request in completer.requests)


async def requests_of(seed: int = 7, **changes) -> list[str]:
    completer = ScriptedCompleter(lambda _: "nonsense")
    judge = open_judge(completer, votes=2, seed=seed)
    await judge.ask_judge(SCENARIO, replace(ROLLOUT, **changes), make_calls())
    return sorted(fingerprint(completer, request) for request in completer.requests)


async def test_two_runs_ask_in_equal_requests_and_two_rollouts_of_a_run_in_different_ones():
    once = await requests_of()
    again = await requests_of(
        run_id="run2", rollout_id="run2.e2.count-words.r0", group_id="run2.e2.count-words", latency_ms=5.0
    )
    assert once == again
    assert len(set(once)) == 4  # two votes, each with its repair
    for changes in ({"index": 1}, {"epoch": 3}, {"answer": "4"}, {"seed": 8}):
        other = await requests_of(**changes)
        assert set(once).isdisjoint(other)


async def test_a_malformed_vote_is_repaired_once_and_the_repair_shows_the_error():
    written: list[ModelCall] = []
    opinion = await ask_judge(by_ballot("I say yes", votes(True, True)), count=1, written=written)
    assert opinion.score == 1.0
    assert [call.key for call in written] == [
        "e2.judge.count-words.r0.v0",
        "e2.judge.count-words.r0.v0.repair",
    ]
    assert "it is not JSON" in written[1].prompt
    assert "[assistant]\nI say yes" in written[1].prompt


async def test_a_repair_is_drawn_with_a_seed_of_its_own():
    completer = ScriptedCompleter(lambda _: "nonsense")
    await open_judge(completer, votes=1, seed=7).ask_judge(SCENARIO, ROLLOUT, make_calls())
    first, repair = completer.requests
    assert first.seed != repair.seed


@pytest.mark.parametrize("part", ["task", "steps", "answer", "none"])
async def test_a_vote_that_any_part_of_what_is_judged_holds_may_be_quoted_and_is_none(part: str):
    quoted = votes(True, True)
    scenario = replace(SCENARIO, prompt=quoted) if part == "task" else SCENARIO
    frames = (make_frame("look", input=json.loads(quoted)),) if part == "steps" else ()
    rollout = replace(ROLLOUT, frames=frames, answer=quoted if part == "answer" else "Hello")
    reply = f"```json\n{quoted}\n```\nas I said"
    judge = open_judge(ScriptedCompleter(lambda _: reply), votes=1, seed=7)
    opinion = await judge.ask_judge(scenario, rollout, make_calls())
    assert (opinion.score is None) is (part != "none")


async def test_nonsense_is_no_verdict():
    written: list[ModelCall] = []
    opinion = await ask_judge(lambda _: "yes", written=written)
    assert (opinion.score, opinion.votes, opinion.agreement) == (None, (), None)
    assert opinion.reason.startswith("0 of 3 votes are valid: malformed: it is not JSON")
    assert len(written) == 6


async def test_a_vote_that_was_cut_off_says_so():
    opinion = await ask_judge(lambda _: Completion(text='{"c1": {"why": "I', finish="length"), count=1)
    assert "cut off" in opinion.reason
    whole = await ask_judge(lambda _: Completion(text='{"c1": {"why": "I', finish="stop"), count=1)
    assert "cut off" not in whole.reason


async def test_a_model_without_an_answer_leaves_its_vote_void():
    def answer(request: Request) -> str:
        if len(served) < 1:
            served.append(request)
            raise ModelError("no answer in 60 s", "timeout")
        return votes(True, False)

    served: list[Request] = []
    opinion = await ask_judge(answer)
    assert (opinion.score, len(opinion.votes), opinion.asked) == (0.25, 2, 3)


async def test_without_a_majority_of_votes_the_reasons_are_told():
    def answer(_: Request) -> str:
        raise ModelError("503 after 5 tries", "server")

    opinion = await ask_judge(answer)
    assert (opinion.score, opinion.reason) == (None, "0 of 3 votes are valid: server: 503 after 5 tries")


async def test_a_budget_that_ends_is_no_opinion_and_loses_no_vote_that_was_paid_for():
    written: list[ModelCall] = []
    replies = by_ballot(votes(True, True), BudgetError("budget_usd of 1 is used up"), votes(True, True))
    with pytest.raises(BudgetError):
        await ask_judge(replies, written=written)
    assert len(written) == 2


async def test_a_journal_that_cannot_be_written_ends_the_run_even_beside_a_spent_budget():
    with pytest.raises(JournalError):
        await ask_judge(by_ballot(BudgetError("spent"), JournalError("disk full"), RecordingError("miss")))


async def test_a_vote_that_a_recording_lacks_is_no_verdict_even_when_the_others_are_there():
    opinion = await ask_judge(
        by_ballot(votes(True, True), RecordingError("nothing recorded for this"), votes(True, True))
    )
    assert (opinion.score, opinion.reason) == (None, "nothing recorded for this")


async def test_a_resumed_run_pays_for_no_vote_twice():
    written: list[ModelCall] = []
    first = await ask_judge(by_ballot(*[votes(True, False)] * 3), written=written)
    completer = ScriptedCompleter(by_ballot())
    calls = make_calls([], {call.key: call for call in written})
    again = await open_judge(completer, votes=3, seed=7).ask_judge(SCENARIO, ROLLOUT, calls)
    assert again == first
    assert completer.requests == []


async def test_calls_in_flight_are_bounded():
    completer = ScriptedCompleter(lambda _: votes(True, True))
    judge = open_judge(completer, votes=9, seed=7, concurrency=4)
    await judge.ask_judge(SCENARIO, ROLLOUT, make_calls())
    assert completer.most_in_flight == 4


async def test_a_judge_is_identified_by_model_template_and_votes():
    def identity(answer: Callable[[Request], str], count: int) -> dict:
        return dict(open_judge(ScriptedCompleter(answer), votes=count, seed=7).identity)

    one = identity(lambda _: "", 3)
    assert one.keys() == {"model", "model_identity", "template", "votes"}
    assert len(one["template"]) == 64
    assert one != identity(lambda _: "", 5)
