import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience, make_pack
from support.reached import reached, reaches

from pytest_tfgrpo.core.lessons import Experience, Reward
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.learning.library.retrieval import (
    MIN_RELEVANCE,
    Retrieval,
    raw_score,
    relevances,
    select,
    weigh_by_relevance,
)

TOP = make_pack(retrieval="top")
RELEVANT = make_pack(retrieval="relevant")


def scored(n: int, gt: float, rank: float = 0.5, **changes: Any) -> Experience:
    return make_experience(n, reward=Reward(gt_score=gt, relative_rank=rank), **changes)


def retrieve(
    *candidates: Experience, pack: PromptPack = TOP, prompt: str = "", limit: int = 9, domain: str = "text"
) -> Retrieval:
    return select(candidates, pack=pack, domain=domain, prompt=prompt, limit=limit)


def test_the_raw_score_weighs_ground_truth_and_rank() -> None:
    assert raw_score(scored(0, 0.5, 1.0), (0.7, 0.3)) == pytest.approx(0.65)
    given = make_experience(reward=Reward(total_reward=0.5, relative_rank=1.0))
    assert raw_score(given, (0.7, 0.3)) == pytest.approx(0.65)
    low, high = scored(0, 0.5, 1.0), scored(1, 0.7, 0.0)
    assert retrieve(low, high, pack=make_pack(retrieval="top", weights=(1.0, 0.0))).picked == (high, low)
    assert retrieve(low, high, pack=make_pack(retrieval="top", weights=(0.0, 1.0))).picked == (low, high)


def test_each_earlier_pick_from_a_source_group_halves_a_score() -> None:
    first, second, third = (scored(n, gt, group_id="a") for n, gt in enumerate((1.0, 0.99, 0.98)))
    other, last = scored(3, 0.4, group_id="b"), scored(4, 0.1, group_id="c")
    # raw: .85 .843 .836 | .43 | .22; then .4215 and .418; then .209 is less than .22
    assert retrieve(third, last, other, second, first).picked == (first, other, second, last, third)


def test_ties_go_to_the_newest_then_by_text_and_last_by_id() -> None:
    old = scored(0, 1.0, summary32="a", created_at="2026-01-01T00:00:00Z")
    new = scored(1, 1.0, summary32="z", created_at="2026-01-01T00:00:00.5Z")
    alike = scored(2, 1.0, summary32="b", created_at="2026-01-01T00:00:00+00:00")
    twin = scored(3, 1.0, summary32="b", created_at="2026-01-01T00:00:00Z")
    assert retrieve(twin, alike, old, new).picked == (new, old, alike, twin)


def test_every_candidate_left_out_has_its_reason() -> None:
    pack = make_pack(retrieval="relevant", min_reward=0.5)
    found = retrieve(
        scored(0, 1.0, domain="dates"),
        scored(1, 1.0, stamp_signature="b" * 64),
        scored(2, 0.1),
        scored(3, 1.0, summary32="For calendars use weekday_name."),
        scored(4, 1.0, summary32="For distinct words use unique_items."),
        scored(5, 0.9, summary32="For many words use count_items."),
        pack=pack, prompt="How many distinct words?", limit=1,
    )  # fmt: skip
    assert [e.id for e in found.picked] == [f"{4:016x}"]
    assert found.stamp_mismatches == 1
    reasons = dict(found.left_out)
    assert reasons[f"{0:016x}"] == "its domain is 'dates'"
    assert "stamp" in reasons[f"{1:016x}"]
    assert reasons[f"{2:016x}"] == "raw score 0.22 is below min_reward 0.5"
    assert "no content word" in reasons[f"{3:016x}"]
    assert "no slot" in reasons[f"{5:016x}"]


def test_each_lesson_of_another_pack_is_counted() -> None:
    others = (scored(n, 1.0, stamp_signature="b" * 64) for n in range(3))
    assert retrieve(*others, scored(3, 1.0)).stamp_mismatches == 3


def test_the_relevant_policy_prefers_the_lesson_about_the_task_to_a_better_paid_one() -> None:
    near = scored(0, 0.6, summary32="For tasks about distinct words: use unique_items.")
    far = scored(1, 1.0, summary32="For tasks about sorted words: use sort_items.")
    prompt = "Count the distinct words in 'a b a'."
    assert retrieve(near, far, pack=RELEVANT, prompt=prompt).picked == (near, far)
    assert retrieve(near, far, pack=TOP, prompt=prompt).picked == (far, near)


def test_what_all_lessons_share_makes_none_of_them_relevant() -> None:
    lessons = [
        make_experience(n, summary32=f"For text about {chr(97 + n) * 5}: read_text.") for n in range(26)
    ]
    found = retrieve(*lessons, pack=RELEVANT, prompt="Is ccccc in the text?")
    assert found.picked[0] == lessons[2]


def test_an_empty_library_gives_an_empty_choice() -> None:
    assert retrieve(pack=RELEVANT, prompt="anything") == Retrieval(picked=(), left_out=(), stamp_mismatches=0)


lessons = st.builds(
    lambda n, gt, group, words: scored(n, gt, group_id=f"g{group}", summary32=" ".join(words)),
    st.integers(0, 10**6),
    st.floats(0, 1),
    st.integers(0, 3),
    st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "use"]), min_size=1, max_size=6),
)
foreign = st.builds(
    lambda lesson, changes: replace(lesson, **changes),
    lessons,
    st.sampled_from([{"domain": "dates"}, {"stamp_signature": "b" * 64}]),
)


@reaches("domain", "stamp", "min_reward", "no slot")
@given(
    st.lists(lessons | lessons | foreign, max_size=15, unique_by=lambda e: e.id),
    st.sampled_from([TOP, RELEVANT, replace(TOP, min_reward=0.5), replace(RELEVANT, min_reward=0.5)]),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
)
def test_the_choice_is_bounded_complete_and_independent_of_order(
    candidates: list[Experience], pack: PromptPack, limit: int, chance: Any
) -> None:
    prompt = "which alpha or gamma"
    found = retrieve(*candidates, pack=pack, prompt=prompt, limit=limit)
    assert len(found.picked) <= limit
    assert sorted([e.id for e in found.picked] + [id_ for id_, _ in found.left_out]) == sorted(
        e.id for e in candidates
    )
    for reason in ("domain", "stamp", "min_reward", "no slot"):
        reached(reason, any(reason in why for _, why in found.left_out))
    chance.shuffle(candidates)
    assert retrieve(*candidates, pack=pack, prompt=prompt, limit=limit).picked == found.picked


@reaches("more", "no more")
@given(st.lists(lessons, max_size=12, unique_by=lambda e: e.id), st.integers(0, 3) | st.integers(0, 12))
def test_a_larger_limit_only_adds_picks(candidates: list[Experience], limit: int) -> None:
    fewer = retrieve(*candidates, limit=limit).picked
    reached("more" if limit < len(candidates) else "no more")
    assert retrieve(*candidates, limit=limit + 1).picked[: len(fewer)] == fewer


@given(st.lists(lessons, min_size=1, max_size=10, unique_by=lambda e: e.id), st.integers(0, 10))
def test_the_pick_is_greedy_by_its_definition(candidates: list[Experience], limit: int) -> None:
    picked: list[Experience] = []
    rest = list(candidates)
    while rest and len(picked) < limit:

        def worth(e: Experience) -> float:
            return raw_score(e, TOP.weights) * 0.5 ** sum(p.group_id == e.group_id for p in picked)

        best = max(map(worth, rest))
        picked.append(min((e for e in rest if worth(e) == best), key=lambda e: (e.summary32, e.id)))
        rest.remove(picked[-1])
    assert retrieve(*candidates, limit=limit).picked == tuple(picked)


def test_a_rare_word_weighs_more_than_one_that_many_lessons_have() -> None:
    texts = ("kelvin degrees", "kelvin rivers", "kelvin rivers")
    rare, common = math.log(4 / 1), math.log(4 / 3)
    found = relevances(texts, "kelvin degrees")
    between = common / math.sqrt((rare + common) * (common + math.log(4 / 2)))
    assert list(found) == pytest.approx([1.0, between, between])
    assert relevances(texts, "nothing of it") == (0.0, 0.0, 0.0)


def test_a_word_that_nearly_all_lessons_have_makes_none_of_them_relevant() -> None:
    texts = [f"refund pa{c}er st{c}mp le{c}er" for c in "abcdefghijklmnopqrstuvwxyz"]
    lessons = [replace(scored(n, 1.0), id=f"l{n}", summary32=text) for n, text in enumerate(texts)]
    weighed = [(1.0, lesson) for lesson in lessons]
    near, *far = relevances(tuple(texts), "refund stamp")
    assert 0 < max(far) < MIN_RELEVANCE < near
    able, left_out = weigh_by_relevance(weighed, "refund stamp")
    assert ([lesson for _, lesson in able], left_out) == (lessons[:1], lessons[1:])
