"""Coins: which lessons a dev prompt carries, whatever has room in it."""

from pathlib import Path

from support.builders import make_experience, make_pack, make_scenario
from support.jobs import ScriptedActor, make_job, three_or_not

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.learning.acceptance.dev_prompts import DevPrompts
from pytest_tfgrpo.learning.acceptance.pool import pool_of
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.library.library import carry_out, empty

TRAINING = Phase(epoch=1, mode="train", temperature=0.7, rollouts=2, scenarios=())


def test_a_coin_is_tossed_for_each_lesson_also_where_a_prompt_has_room_for_one(tmp_path: Path) -> None:
    lessons = [make_experience(n) for n in range(3)]
    adds = [Operation(kind="add", experience=lesson) for lesson in lessons]
    pool = pool_of(
        empty(), carry_out(empty(), adds, cap=9, epoch=1), refused={}, helps={}, started=frozenset()
    )
    job = make_job(
        ScriptedActor(three_or_not),
        tmp_path,
        scenarios=[make_scenario("one")],
        job_packs={"text": make_pack(experience_slots=1)},
    )
    coins = DevPrompts(job, pool, TRAINING)
    pair = [coins.ask("one", index) for index in range(2)]
    assert all(len(asked.experiences) <= 1 for asked in pair)
    assert sorted((*pair[0].left_out, *pair[1].left_out)) == [lesson.id for lesson in lessons]


def test_a_lesson_that_no_coin_decides_on_is_carried_and_not_tossed(tmp_path: Path) -> None:
    known, new = (make_experience(n) for n in range(2))
    active = carry_out(empty(), [Operation(kind="add", experience=known)], cap=9, epoch=0).library
    adds = carry_out(active, [Operation(kind="add", experience=new)], cap=9, epoch=1)
    pool = pool_of(active, adds, refused={}, helps={content_key(known): 1.0}, started=frozenset())
    job = make_job(
        ScriptedActor(three_or_not),
        tmp_path,
        scenarios=[make_scenario("one")],
        job_packs={"text": make_pack(experience_slots=2)},
    )
    coins = DevPrompts(job, pool, TRAINING)
    pair = sorted((coins.ask("one", index) for index in range(2)), key=lambda asked: len(asked.experiences))
    assert [(set(asked.experiences), asked.tossed, asked.left_out) for asked in pair] == [
        ({known.id}, (), (new.id,)),
        ({known.id, new.id}, (new.id,), ()),
    ]


def test_few_rollouts_go_to_scenarios_that_show_every_lesson_in_doubt(tmp_path: Path) -> None:
    words = ("apple", "bread", "cider")
    lessons = [make_experience(n, summary32=f"Weigh each {word}.") for n, word in enumerate(words)]
    adds = [Operation(kind="add", experience=lesson) for lesson in lessons]
    pool = pool_of(
        empty(), carry_out(empty(), adds, cap=9, epoch=1), refused={}, helps={}, started=frozenset()
    )
    asked = ["apple"] * 4 + ["bread"] * 2 + ["cider"] + ["stone"]
    scenarios = [make_scenario(f"s{n}", prompt=f"Sell {word}.") for n, word in enumerate(asked)]
    job = make_job(
        ScriptedActor(three_or_not), tmp_path, scenarios=scenarios,
        job_packs={"text": make_pack(experience_slots=3, retrieval="relevant")},
    )  # fmt: skip
    coins, ids = DevPrompts(job, pool, TRAINING), [scenario.id for scenario in scenarios]
    assert coins.open(ids, 99) == tuple(ids[:7])
    assert coins.open(ids, 3) == ("s0", "s4", "s6")
    assert coins.open(ids, 5) == ("s0", "s1", "s4", "s5", "s6")
    assert coins.open(ids, 0) == ()
