"""The optimizer `llm` when its teacher errs, when calls fail, and when a run is interrupted."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from support.builders import make_experience
from support.completers import ScriptedCompleter, make_calls
from support.teachers import (
    USE_COUNT,
    context_of,
    learn,
    library_of,
    operation,
    question,
    recorded,
    revise,
    says,
    scored,
    stage_of,
    staged,
    suite,
)

from pytest_tfgrpo.core.errors import BudgetError, ModelError, OutageError, RecordingError
from pytest_tfgrpo.core.records import ModelCall
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.learning.optimizer.llm.optimizer import open_llm
from pytest_tfgrpo.llm.fingerprint import fingerprint
from pytest_tfgrpo.llm.protocol import Completion, Request

SUITE = suite(6)
ONE = [scored(SUITE[0])]
ALL = [scored(s) for s in SUITE]
MADE_ONE = says(operation(sources=["P1", "P2"]))


def fails(code: str) -> Callable[[Request], str]:
    def answer(request: Request) -> str:
        raise ModelError("the server is on fire", code)

    return answer


def test_a_malformed_answer_is_repaired_once_with_the_error_and_the_answer_at_hand() -> None:
    written: list[ModelCall] = []
    teacher = ScriptedCompleter(staged(critique="no JSON today", repair=says(operation())))
    context = context_of(ONE, SUITE, calls=make_calls(written))
    proposal = learn(context, teacher)
    assert proposal.failures == {}
    assert [e.summary32 for e in revise(context, proposal).library.experiences] == [USE_COUNT]
    assert [call.key for call in written] == [
        "e1.learn.letter-0.critique",
        "e1.learn.letter-0.critique.repair",
    ]
    roles = [message.role for message in teacher.requests[1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert teacher.requests[1].messages[2].content == "no JSON today"
    assert "it holds no JSON object of that form" in question(teacher.requests[1])
    assert teacher.requests[0].seed != teacher.requests[1].seed


def test_a_repair_is_told_the_first_problems_of_many() -> None:
    teacher = ScriptedCompleter(staged(critique=says(*[operation("REPLACE")] * 12), repair=says(operation())))
    learn(context_of(ONE, SUITE), teacher)
    told = question(teacher.requests[1])
    assert [f"operation {n}: " in told for n in (1, 10, 11)] == [True, True, False]


def test_an_answer_that_is_malformed_twice_is_dropped_and_counted() -> None:
    teacher = ScriptedCompleter(staged(critique="no", repair="never"))
    proposal = learn(context_of(ONE, SUITE), teacher)
    assert len(teacher.requests) == 2
    assert proposal.operations == ()
    assert proposal.failures == {"malformed": 1}
    assert proposal.note == "the teacher returned no usable answer for 1 of 1 groups (malformed: 1)"


def test_what_is_well_formed_survives_a_repair_that_fails() -> None:
    broken = says(operation(), operation("REPLACE"))
    proposal = learn(context_of(ONE, SUITE), staged(critique=broken, repair=fails("timeout")))
    assert len(proposal.operations) == 1
    assert proposal.failures == {"malformed": 1, "timeout": 1}


def test_a_lesson_over_the_cap_may_be_shortened_once_and_is_never_cut() -> None:
    long = says(operation(lesson="For letters: " + "count " * 31))
    context = context_of(ONE, SUITE)
    short = learn(context, staged(critique=long, repair=says(operation())))
    assert short.failures == {}
    assert len(short.operations) == 1
    stubborn = learn(context, staged(critique=long, repair=long))
    assert stubborn.operations == ()
    assert stubborn.failures == {"word_cap": 1}


def test_endless_prose_is_dropped_and_its_repair_is_shown_a_part() -> None:
    teacher = ScriptedCompleter(staged(critique="so I think " * 1_000_000, repair="well " * 1_000_000))
    assert learn(context_of(ONE, SUITE), teacher).failures == {"malformed": 1}
    assert len(teacher.requests[1].messages[2].content) < 10_000


def test_operations_on_unknown_lessons_are_refused_and_counted() -> None:
    library = library_of(make_experience(1, summary32="For letters: guess.", id="old-one"))
    answer = says(
        operation("UPDATE", ids=["L2"]), operation("DELETE", ids=["old-one"]), operation("KEEP", ids=["L0"]),
        operation("UPDATE", ids=["L1", "L7"]), operation(),
    )  # fmt: skip
    proposal = learn(context_of(ONE, SUITE, library=library), staged(critique=answer))
    assert [o.kind for o in proposal.operations] == ["add"]
    assert proposal.failures == {"unknown_id": 4}


def test_more_operations_than_a_group_may_propose_are_counted() -> None:
    answer = says(*(operation(lesson=f"For letters of kind {n}: count twice.") for n in range(7)))
    proposal = learn(context_of(ONE, SUITE), staged(critique=answer))
    assert len(proposal.operations) == 3
    assert proposal.failures == {"too_many": 4}


def test_a_consolidation_must_name_proposals_that_there_are() -> None:
    answer = says(operation(sources=["P9"]), operation(lesson="For letters: count.", sources=["P1", "P0"]))
    proposal = learn(context_of(ALL, SUITE), staged(critique=says(operation()), consolidation=answer))
    assert [o.experience.summary32 for o in proposal.operations if o.experience] == ["For letters: count."]
    assert proposal.failures == {"unfounded": 1, "unknown_source": 2}


def test_a_lesson_turned_into_its_opposite_without_evidence_is_refused() -> None:
    library = library_of(make_experience(1, summary32="For letters: count.", id="old-one"))
    answer = says(operation("UPDATE", "For letters: do not count.", ids=["L1"], polarity="avoid"))
    proposal = learn(
        context_of(ALL, SUITE, library=library), staged(critique=says(operation()), consolidation=answer)
    )
    assert proposal.operations == ()
    assert proposal.failures == {"unfounded": 1}
    assert proposal.note == "the teacher proposed no change that can be made (unfounded: 1)"


@pytest.mark.parametrize(
    ("consolidation", "codes"),
    [
        (says(operation(), operation()), {"malformed": 2}),
        (says(operation(sources=["P77"])), {"unknown_source": 1, "unfounded": 1}),
        (says(operation(lesson="word " * 200, sources=["P1"])), {"word_cap": 1}),
        (says(operation("REPLACE")), {"malformed": 1}),
    ],
)
def test_a_consolidation_without_one_usable_operation_leaves_the_proposals_as_they_are(
    consolidation: str, codes: dict[str, int]
) -> None:
    answers = staged(critique=says(operation()), consolidation=consolidation, repair=consolidation)
    proposal = learn(context_of(ALL[:2], SUITE), answers)
    assert proposal.failures == codes | {"unconsolidated": 1}
    assert len(proposal.operations) == 2


def test_a_repair_that_is_worse_than_the_answer_is_not_taken() -> None:
    answer = says(operation(sources=["P1"]), operation())
    answers = staged(critique=says(operation()), consolidation=answer, repair=says(operation("REPLACE")))
    assert len(learn(context_of(ALL[:2], SUITE), answers).operations) == 1


def test_without_a_usable_consolidation_the_proposals_stand() -> None:
    context = context_of(ALL[:2], SUITE)
    for consolidation, code in (("no", "malformed"), (fails("server"), "server")):
        answers: dict[str, Any] = {"critique": says(operation()), "consolidation": consolidation}
        proposal = learn(context, staged(**answers, repair="no"))
        assert proposal.failures == {code: 1, "unconsolidated": 1}
        revision = revise(context, proposal)
        assert len(revision.library.experiences) == 1
        assert [refusal.code for refusal in revision.refused] == ["duplicate"]


def test_a_failed_call_costs_its_group_and_no_other() -> None:
    def critique(request: Request) -> str:
        return fails("rate_limit")(request) if "letter 1?" in question(request) else says(operation())

    proposal = learn(context_of(ALL, SUITE), staged(critique=critique, consolidation=MADE_ONE))
    assert proposal.failures == {"rate_limit": 1}
    assert len(proposal.operations) == 1
    assert proposal.note == "the teacher returned no usable answer for 1 of 6 groups (rate_limit: 1)"


def test_when_every_call_fails_nothing_can_be_learned() -> None:
    with pytest.raises(OutageError, match=r"all 6 calls of the teacher failed.*the server is on fire"):
        learn(context_of(ALL, SUITE), staged(critique=fails("auth")))


def test_when_a_content_filter_withholds_every_answer_the_note_says_so() -> None:
    proposal = learn(context_of(ALL, SUITE), staged(critique=fails("content_filter")))
    assert proposal.operations == ()
    assert proposal.failures == {"content_filter": 6}
    assert proposal.note == "the teacher returned no usable answer for 6 of 6 groups (content_filter: 6)"


@pytest.mark.parametrize("finish", ["refusal", "content_filter"])
def test_a_refusal_is_no_answer_and_is_not_repaired(finish: Any) -> None:
    teacher = ScriptedCompleter(lambda request: Completion(text="I can't", finish=finish))
    assert learn(context_of(ONE, SUITE), teacher).failures == {finish: 1}
    assert len(teacher.requests) == 1


@pytest.mark.parametrize("summary", [fails("oversize"), "  \n"])
def test_without_a_summary_the_start_and_end_of_a_long_attempt_are_shown(summary: Any) -> None:
    group = scored(SUITE[0], answer=lambda n: f"first {'word ' * 9_000} last" if n else "brief")
    teacher = ScriptedCompleter(staged(summary=summary, critique=says(operation())))
    proposal = learn(context_of([group], SUITE), teacher)
    assert sum(proposal.failures.values()) == 1
    shown = question(teacher.requests[-1])
    assert "answer: first word" in shown
    assert "characters left out" in shown
    assert len(shown) < 10_000


@pytest.mark.parametrize("error", [BudgetError("budget_usd of 1 is used up"), RecordingError("no answer")])
def test_an_empty_purse_or_a_gap_in_a_recording_ends_the_step_after_the_calls_in_flight(
    error: Exception,
) -> None:
    released = asyncio.Event()

    async def answer(request: Request) -> str:
        if "letter 0?" in question(request):
            released.set()
            raise error
        await released.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        return says(operation())

    written: list[ModelCall] = []
    with pytest.raises(type(error)):
        learn(context_of(ALL, SUITE, calls=make_calls(written)), ScriptedCompleter(answer))
    assert sorted(call.subject for call in written) == [f"letter-{n}" for n in range(1, 6)]


def full_answer(request: Request) -> str:
    """Answer every stage, malformed at first about one of the tasks."""
    text = question(request)
    match stage_of(request):
        case "summary":
            return "It went wrong at the first step."
        case "critique" if "letter 2?" in text:
            return "let me think"
        case "critique" | "repair":
            return says(operation())
    return MADE_ONE


GROUPS = [scored(s, answer=lambda n: "long " * 900 * n) for s in SUITE]
STAGES = {"summary": 6, "critique": 6, "repair": 1, "consolidation": 1}


def test_a_step_interrupted_between_any_two_calls_goes_on_without_repeating_one() -> None:
    whole: list[ModelCall] = []
    teacher = ScriptedCompleter(full_answer)
    expected = learn(context_of(GROUPS, SUITE, calls=make_calls(whole)), teacher)
    assert Counter(map(stage_of, teacher.requests)) == STAGES
    assert len({call.key for call in whole}) == 14
    for done in range(len(whole) + 1):
        teacher = ScriptedCompleter(full_answer)
        resumed = learn(context_of(GROUPS, SUITE, calls=recorded(whole[:done])), teacher)
        assert to_wire(resumed.operations) == to_wire(expected.operations)
        asked = {fingerprint(teacher, request) for request in teacher.requests}
        assert asked == {call.fingerprint for call in whole[done:]}


def test_proposals_do_not_depend_on_the_order_in_which_answers_arrive() -> None:
    def delayed(pauses: list[int]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> str:
            place = next((n for n in range(6) if f"letter {n}?" in question(request)), 0)
            for _ in range(pauses[place]):
                await asyncio.sleep(0)
            return full_answer(request)

        return answer

    first, second = (
        learn(context_of(GROUPS, SUITE), ScriptedCompleter(delayed(pauses)))
        for pauses in ([0, 10, 20, 30, 40, 50], [50, 40, 30, 20, 10, 0])
    )
    assert first == second


@pytest.mark.parametrize("concurrency", [1, 3, 64])
def test_as_many_calls_are_in_flight_as_allowed_and_no_more(concurrency: int) -> None:
    scenarios = suite(40)
    groups = [scored(s, answer=lambda n: "long " * 900 * n) for s in scenarios]

    async def answer(request: Request) -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        return full_answer(request)

    teacher = ScriptedCompleter(answer)
    learn(context_of(groups, scenarios, concurrency=concurrency), teacher)
    assert teacher.most_in_flight == min(concurrency, 40)


def test_a_batch_too_large_for_one_question_is_consolidated_in_parts() -> None:
    scenarios = suite(110)
    written: list[ModelCall] = []
    three = says(*(operation(lesson=f"For letters of kind {n}: count.") for n in range(3)))
    context = context_of([scored(s) for s in scenarios], scenarios, calls=make_calls(written))
    learn(context, staged(critique=three, consolidation=MADE_ONE))
    assert [c.key for c in written if "consolidation" in c.key] == [
        "e1.learn.text.consolidation",
        "e1.learn.text.consolidation.2",
    ]


def test_another_teacher_or_other_prompts_are_another_optimizer() -> None:
    optimizer = open_llm(ScriptedCompleter(full_answer, name="openai:big"), None)
    identity = optimizer.identity  # type: ignore[attr-defined]
    assert optimizer.name == "llm"
    assert identity["model"] == "openai:big"
    assert identity["model_identity"] == {"model": "openai:big"}
    assert len(identity["pack"]) == 64
