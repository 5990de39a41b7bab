"""The optimizer `llm`, from scored groups to a revised library."""

import re
from dataclasses import replace

import pytest
from support.builders import make_experience
from support.completers import ScriptedCompleter, make_calls
from support.teachers import (
    PACKS,
    USE_COUNT,
    context_of,
    learn,
    library_of,
    operation,
    question,
    revise,
    says,
    scored,
    stage_of,
    staged,
    suite,
)
from support.texts import common_start

from pytest_tfgrpo.core.records import JudgeResult, ModelCall
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.learning.optimizer.llm import optimizer
from pytest_tfgrpo.llm.protocol import Request

SUITE = suite()
OLD = make_experience(1, summary32="For letters: guess the number of words.", id="old-one")
STALE = make_experience(2, summary32="For letters with dates: read the date.", id="old-two")
BETTER = "For counting words in letters: split the text, then count the parts."


def test_a_lesson_of_one_group_needs_one_call_and_carries_its_evidence() -> None:
    teacher = ScriptedCompleter(staged(critique=says(operation())))
    context = context_of([scored(SUITE[0], (1.0, 0.5, 0.0, None))], SUITE)
    proposal = learn(context, teacher)
    assert len(teacher.requests) == 1
    assert proposal.failures == {}
    assert proposal.note == ""
    assert proposal.lesson_groups == {context.groups[0].group_id}
    (lesson,) = revise(context, proposal).library.experiences
    assert lesson.summary32 == USE_COUNT
    assert lesson.polarity == "do"
    assert (lesson.support.groups, lesson.support.rollouts) == (1, 1)
    assert (lesson.reward.gt_score, lesson.reward.relative_rank) == (1.0, 1.0)
    assert [stat.tool for stat in lesson.tool_stats] == ["count_words"]
    assert (lesson.stamp_signature, lesson.prompt_pack_id) == (PACKS["text"].stamp, "text")
    assert (lesson.actor, lesson.run_id, lesson.created_at) == ("scripted", "run1", "2026-01-01T00:00:00Z")


def test_a_lesson_to_avoid_something_rests_on_the_losers_and_stores_what_that_cost() -> None:
    answer = says(operation(polarity="avoid", lesson="For letters: never guess the count."))
    context = context_of([scored(SUITE[0], (1.0, 0.25, 0.0))], SUITE)
    (lesson,) = revise(context, learn(context, staged(critique=answer))).library.experiences
    assert lesson.polarity == "avoid"
    assert lesson.support.rollouts == 2
    assert lesson.reward.gt_score == pytest.approx(0.875)
    assert [stat.tool for stat in lesson.tool_stats] == ["count_words", "guess"]


def test_lessons_are_updated_merged_and_deleted_by_their_numbers() -> None:
    library = library_of(OLD, STALE)
    kept = make_experience(3, summary32="For long letters: count line by line.", id="old-three")
    context = context_of([scored(SUITE[0])], SUITE, library=library_of(OLD, STALE, kept))
    numbers = {"old-three": "L3", "old-two": "L1", "old-one": "L2"}
    shown = learn_question(context)
    for id_, number in numbers.items():
        text = next(e.summary32 for e in context.library.experiences if e.id == id_)
        assert any(
            line.startswith(f"{number} |") and line.endswith(f'| "{text}"') for line in shown.splitlines()
        )

    def revised(*operations: dict[str, object]) -> object:
        return revise(context, learn(context, staged(critique=says(*operations))))

    revision = revised(operation("UPDATE", BETTER, ids=["L2"]))
    (update,) = revision.applied
    assert (update.kind, update.targets) == ("update", ("old-one",))
    assert update.experience.parents == ("old-one",)
    assert update.experience.support.groups == OLD.support.groups + 1
    assert update.experience.support.rollouts == OLD.support.rollouts + 1
    assert library.hash != revision.library.hash

    (merge,) = revised(operation("UPDATE", BETTER, ids=["L2", "L1"])).applied
    assert (merge.kind, merge.targets) == ("merge", ("old-one", "old-two"))

    (removal,) = revised(operation("DELETE", "", ids=["L2"], reason="it lost\nall")).applied
    assert (removal.kind, removal.targets, removal.reason) == ("remove", ("old-one",), "it lost all")

    kept_all = revised(operation("KEEP", "", ids=["L1"]))
    assert kept_all.applied == ()
    assert kept_all.library.hash == context.library.hash


def learn_question(context: object) -> str:
    teacher = ScriptedCompleter(staged(critique=says()))
    learn(context, teacher)
    return question(teacher.requests[0])


def test_proposals_of_several_groups_are_made_one_list_and_share_their_evidence() -> None:
    def consolidate(request: Request) -> str:
        assert 'P1 | ADD | better 1.00, worse 0.00 | do | "For counting' in question(request)
        assert "P3 | " in question(request)
        return says(operation("ADD", BETTER, sources=["P1", "P3"]))

    teacher = ScriptedCompleter(staged(critique=says(operation()), consolidation=consolidate))
    context = context_of([scored(s) for s in SUITE], SUITE)
    proposal = learn(context, teacher)
    (lesson,) = revise(context, proposal).library.experiences
    assert lesson.summary32 == BETTER
    assert (lesson.support.groups, lesson.support.rollouts) == (2, 2)
    sources = (context.groups[0].group_id, context.groups[2].group_id)
    assert proposal.lesson_groups == set(sources)
    assert [operation.groups for operation in proposal.operations] == [sources]
    assert [stage_of(r) for r in teacher.requests] == ["critique"] * 3 + ["consolidation"]


def test_more_proposals_than_one_consolidation_is_shown_are_made_one_list_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optimizer, "MAX_PROPOSALS", 2)
    shown: list[list[str]] = []

    def consolidate(request: Request) -> str:
        shown.append(re.findall(r"^P\d", question(request), re.MULTILINE))
        return says(operation("ADD", BETTER, sources=["P1", "P2"]))

    tasks = suite(5)
    context = context_of([scored(s) for s in tasks], tasks)
    proposal = learn(context, staged(critique=says(operation()), consolidation=consolidate))
    assert shown == [["P1", "P2"], ["P1", "P2"]]
    assert [len(one.groups) for one in proposal.operations] == [2, 2, 1]


def test_of_proposals_that_nobody_could_consolidate_so_many_stay_as_one_list_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optimizer, "MAX_FINAL", 2)
    context = context_of([scored(s) for s in SUITE], SUITE)
    proposal = learn(context, staged(critique=says(operation()), consolidation="no list", repair="neither"))
    assert len(proposal.operations) == 2
    assert proposal.failures["unconsolidated"] == 1


def test_each_domain_has_its_own_list() -> None:
    scenarios = [*suite(2), *(replace(s, id=f"d-{s.id}", domain="dates") for s in suite(2))]
    of_dates = make_experience(7, domain="dates", summary32="For dates: use the calendar.", id="of-dates")

    def critique(request: Request) -> str:
        return says(operation(lesson=BETTER if "calendar" in question(request) else USE_COUNT))

    teacher = ScriptedCompleter(
        staged(
            critique=critique,
            consolidation=lambda r: says(
                operation(lesson=BETTER if "calendar" in question(r) else USE_COUNT, sources=["P1", "P2"])
            ),
        )
    )
    context = context_of([scored(s) for s in scenarios], scenarios, library=library_of(of_dates))
    revision = revise(context, learn(context, teacher))
    found = {(e.domain, e.summary32) for e in revision.library.experiences}
    assert found == {("dates", "For dates: use the calendar."), ("dates", BETTER), ("text", USE_COUNT)}
    assert [stage_of(r) for r in teacher.requests].count("consolidation") == 2


def test_lessons_of_another_prompt_pack_are_not_shown() -> None:
    foreign = make_experience(5, summary32="For parcels: weigh them.", stamp_signature="b" * 64)
    assert "parcels" not in learn_question(context_of([scored(SUITE[0])], SUITE, library=library_of(foreign)))


def test_studies_that_would_keep_a_lesson_are_told_to_whoever_consolidates() -> None:
    seen: list[str] = []

    def consolidate(request: Request) -> str:
        seen.append(question(request))
        return says()

    answer = says(operation(), operation("KEEP", "", ids=["L1"]))
    context = context_of([scored(s) for s in SUITE], SUITE, library=library_of(OLD))
    proposal = learn(context, staged(critique=answer, consolidation=consolidate))
    assert "studies that would keep L1: 3" in seen[0]
    assert proposal.operations == ()
    assert proposal.note == "the teacher proposed no change"


def test_calls_of_an_epoch_share_instructions_and_lessons_before_anything_else() -> None:
    teacher = ScriptedCompleter(staged(critique=says(operation()), consolidation=says()))
    context = context_of([scored(SUITE[0]), scored(SUITE[1])], SUITE, library=library_of(OLD, STALE))
    learn(context, teacher)
    one, other = (question(r) for r in teacher.requests if stage_of(r) == "critique")
    shared = re.sub("[0-9a-f]+$", "", common_start(one, other))  # two marks may begin alike
    assert shared.endswith("]\n\nThe task, as it was put to the agent:\n\n[begin task ")
    assert '{"comparison": "what made the difference' in shared
    assert all(lesson.summary32 in shared for lesson in (OLD, STALE))
    assert len({r.messages[0].content for r in teacher.requests}) == 1


def test_calls_about_other_lessons_share_all_instructions() -> None:
    teacher = ScriptedCompleter(staged(critique=says(operation())))
    for library in (library_of(OLD), library_of(STALE)):
        learn(context_of([scored(SUITE[0])], SUITE, library=library), teacher)
    shared = common_start(*map(question, teacher.requests))
    assert "Lessons that the agent has at present:\n\n[begin lessons " in shared
    assert "Answer with one JSON object and nothing else" in shared


def test_summaries_of_a_group_share_all_but_their_attempt() -> None:
    teacher = ScriptedCompleter(staged(summary="It talked.", critique=says()))
    learn(context_of([scored(SUITE[0], answer=lambda n: f"{n} {'long ' * 2_000}")], SUITE), teacher)
    one, other = (question(r) for r in teacher.requests if stage_of(r) == "summary")
    assert re.search(r"\n\nThe attempt:\n\nReward [0-9.]*$", common_start(one, other))
    assert one.endswith("]\n\nRetell this attempt as described above.")


def test_without_spread_nothing_is_asked() -> None:
    teacher = ScriptedCompleter(staged())
    proposal = learn(context_of([scored(SUITE[0], (1.0, 1.0))], SUITE), teacher)
    assert teacher.requests == []
    assert "no group had mixed results" in proposal.note


def test_the_teacher_sees_task_attempts_rewards_findings_and_expected_answers() -> None:
    text = learn_question(context_of([scored(SUITE[1], (1.0, 0.0), answer=lambda n: f"I say {n}")], SUITE))
    assert "How many words has letter 1?" in text
    assert '{"value": "answer1"}' in text
    assert "Reward 1.000:\n[begin attempt 1 " in text
    assert "1. tool count_words -> 3\nanswer: I say 0\ncheck exact: passed" in text
    assert "Reward 0.000:\n[begin attempt 2 " in text
    assert "1. tool guess -> 3\nanswer: I say 1\ncheck exact: " in text


@pytest.mark.parametrize(("truth", "words"), [("majority", "a vote among"), ("judge", "a language model")])
def test_without_ground_truth_the_rewards_are_called_an_estimate_and_no_answer_is_shown(
    truth: str, words: str
) -> None:
    scenarios = suite(1, truth=truth)
    opinion = JudgeResult(score=0.5, reason="it skipped a line")
    text = learn_question(context_of([scored(scenarios[0], opinion=opinion)], scenarios))
    assert "estimate" in text
    assert words in text
    assert "answer0" not in text
    assert "check exact" not in text
    assert "judge: it skipped a line" in text


def test_of_a_marked_test_function_the_name_is_shown() -> None:
    scenarios = suite(1, checks=(), checker="tests/test_letters.py::test_count")
    text = learn_question(context_of([scored(scenarios[0])], scenarios))
    assert "what the test tests/test_letters.py::test_count asks for" in text


def test_attempts_that_did_the_same_are_shown_once() -> None:
    group = scored(SUITE[0], (1.0, 0.0, 1.0, 0.0), answer=lambda n: "the same")
    text = learn_question(context_of([group], SUITE))
    assert "[begin attempts 1, 3 " in text
    assert "[begin attempts 2, 4 " in text
    assert text.count("answer: the same") == 2


def test_of_very_many_attempts_the_best_and_the_worst_are_shown() -> None:
    rewards = [n / 99 for n in range(100)]
    text = learn_question(context_of([scored(SUITE[0], rewards)], SUITE))
    assert text.count("Reward ") == 16
    assert "[begin attempt 1 " in text
    assert "[begin attempt 100 " in text
    assert "[begin attempt 50 " not in text


def test_a_long_attempt_is_summarised_by_a_call_of_its_own_and_a_short_one_is_not() -> None:
    group = scored(SUITE[0], answer=lambda n: "word " * 1_000 if n else "brief")
    teacher = ScriptedCompleter(staged(summary="It went round in circles.", critique=says(operation())))
    written: list[ModelCall] = []
    context = context_of([group], SUITE, calls=make_calls(written))
    assert learn(context, teacher).failures == {}
    assert [stage_of(r) for r in teacher.requests] == ["summary", "critique"]
    asked, shown = map(question, teacher.requests)
    assert "Reward 0.000:\n[begin attempt 2 " in asked
    assert "It went round in circles." in shown
    assert "answer: brief" in shown
    assert "word word" not in shown
    assert [call.key for call in written] == ["e1.learn.letter-0.summary.2", "e1.learn.letter-0.critique"]
    assert {(c.purpose, c.epoch, c.subject) for c in written} == {("learn", 1, "letter-0")}


def test_answers_are_asked_for_with_a_closed_schema_and_no_randomness() -> None:
    teacher = ScriptedCompleter(staged(critique=says(operation()), consolidation=says()))
    learn(context_of([scored(s) for s in SUITE], SUITE), teacher)
    assert {r.temperature for r in teacher.requests} == {0.0}
    assert len({r.seed for r in teacher.requests}) == 4
    for request in teacher.requests:
        assert request.schema is not None
        assert request.schema["additionalProperties"] is False
        item = request.schema["properties"]["operations"]["items"]
        assert ("sources" in item["required"]) is (stage_of(request) == "consolidation")


def test_a_lesson_that_leaks_an_answer_or_a_secret_is_refused_by_the_screen() -> None:
    leak = operation(lesson="For letters: the answer is answer2.")
    secret = operation(lesson="For letters: use password=hunter2hunter2 first.")
    context = context_of([scored(SUITE[0])], SUITE)
    revision = revise(context, learn(context, staged(critique=says(leak, secret))))
    assert [refusal.code for refusal in revision.refused] == ["leak", "secret"]
    assert revision.library.hash == empty().hash
