"""A lesson is for what the user of a conversation says in all of it, not for its greeting alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import make_experience, make_group, make_pack, make_scenario
from support.jobs import ScriptedActor, make_job, three_or_not

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.learning.acceptance.dev_prompts import DevPrompts
from pytest_tfgrpo.learning.acceptance.evidence import gather
from pytest_tfgrpo.learning.acceptance.pool import pool_of
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.library.library import carry_out, empty, of
from pytest_tfgrpo.learning.optimizer.contrast import kinds_of
from pytest_tfgrpo.learning.prompts import PromptBuilder

TABLES, REFUNDS = (
    make_experience(n, summary32=f"For tasks about {what}.")
    for n, what in enumerate(("window tables: use find_table", "order refunds: use refund_order"))
)
PACK = make_pack(retrieval="relevant", experience_slots=4)
TRAINING = Phase(epoch=1, mode="train", temperature=0.7, rollouts=2, scenarios=())


def talk(id_: str, *turns: str) -> Scenario:
    return make_scenario(id_, prompt=turns[0], turns=turns)


TALKS = (
    talk("table", "Hello, please help me.", "Is there a free table by the window?", "Book that table."),
    talk("refund", "Hello, please help me.", "Where are refunds of an order made?", "Refund the order."),
)
OWN = {"table": TABLES, "refund": REFUNDS}


def test_a_prompt_gets_the_lesson_about_a_later_turn(tmp_path: Path) -> None:
    library = of([TABLES, REFUNDS])
    job = make_job(
        ScriptedActor(three_or_not), tmp_path, scenarios=TALKS, job_packs={"text": PACK}, job_library=library
    )
    prompts = PromptBuilder(job, library)
    assert {id_: prompts.ask(id_).experiences for id_ in OWN} == {id_: (own.id,) for id_, own in OWN.items()}


def test_a_coin_is_tossed_where_a_lesson_is_about_a_later_turn(tmp_path: Path) -> None:
    adds = [Operation(kind="add", experience=lesson) for lesson in (TABLES, REFUNDS)]
    pool = pool_of(
        empty(), carry_out(empty(), adds, cap=9, epoch=1), refused={}, helps={}, started=frozenset()
    )
    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=TALKS, job_packs={"text": PACK})
    coins = DevPrompts(job, pool, TRAINING)
    assert tuple(coins.open(OWN, 99)) == ("table", "refund")
    for id_, own in OWN.items():
        asked = [coins.ask(id_, index) for index in range(2)]
        assert {*asked[0].tossed, *asked[1].tossed} == {own.id}


def test_the_effect_of_a_lesson_is_looked_for_where_a_turn_is_about_it() -> None:
    lessons = {lesson.id: lesson for lesson in (TABLES, REFUNDS)}
    found = gather([], lessons, TALKS, {"text": PACK})
    columns = [found.keys.index(content_key(OWN[talk.id])) for talk in TALKS]
    assert found.about_SL[:, columns].tolist() == [[True, False], [False, True]]


def test_conversations_with_one_greeting_are_two_kinds_of_task() -> None:
    groups = [make_group([1, 0], scenario_id=scenario.id) for scenario in TALKS]
    alike = replace(TALKS[0], id="again")
    groups.append(make_group([1, 0], scenario_id="again"))
    kinds = kinds_of(groups, {scenario.id: scenario for scenario in (*TALKS, alike)})
    assert [len(kind.attempts) for kind in kinds] == [4, 2]


@pytest.mark.parametrize("turns", [(), ("How many words are in 'a b c'?",)])
def test_a_question_is_read_as_before(turns: tuple[str, ...]) -> None:
    question = make_scenario(turns=turns)
    assert question.wording == question.prompt
