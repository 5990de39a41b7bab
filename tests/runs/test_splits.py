"""The dev split: within families, stable, and only where it is large enough to say something."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.scenarios import Scenario, task_key
from pytest_tfgrpo.core.wire.stamp import SEED_BITS, seed_of
from pytest_tfgrpo.runs.schedule import MIN_DEV
from pytest_tfgrpo.runs.splits import shortage, split_lines, unseen_families, with_dev


def suite(families: int = 60, each: int = 3) -> list[Scenario]:
    return [
        make_scenario(id=f"s{f}-{i}", split="train", family=f"family-{f}", prompt=f"task {f} {i}")
        for f in range(families)
        for i in range(each)
    ]


def dev(scenarios: list[Scenario]) -> set[str]:
    return {s.id for s in scenarios if s.split == "dev"}


def test_about_the_share_of_the_families_is_taken_out_of_the_train_split() -> None:
    assert 0.1 < len(dev(with_dev(suite(), 0.2))) / 180 < 0.3


def test_dev_scenarios_see_lessons_of_their_family() -> None:
    found = with_dev(suite(families=20, each=5), 0.2)
    taught = {s.family for s in found if s.split == "train"}
    seen = {s.family for s in found if s.split == "dev"} & taught
    assert len(seen) >= 14
    assert len(taught) == 19


def test_some_families_are_whole_in_the_dev_split_and_known_as_such() -> None:
    found = with_dev(suite(), 0.2)
    apart = unseen_families(found)
    whole = {s.family for s in found} - {s.family for s in found if s.split == "train"}
    assert len(whole) == 3
    assert apart == {s.id for s in found if s.family in whole}
    assert split_lines(found) == ["9 of 38 dev scenarios are of 3 families that training does not use"]


def test_a_family_and_two_families_that_training_does_not_use_are_counted() -> None:
    known = [make_scenario(id=f"d{n}", split="dev", family=f"f{n // 2}") for n in range(4)]
    taught = make_scenario(id="t", split="train", family="f1")
    of_dev = "of 4 dev scenarios are of"
    assert split_lines(known) == [f"4 {of_dev} 2 families that training does not use"]
    assert split_lines([*known, taught]) == [f"2 {of_dev} one family that training does not use"]


def test_few_families_are_never_whole_in_the_dev_split() -> None:
    found = with_dev(suite(families=5, each=30), 0.5)
    assert len(dev(found)) == 75
    assert not unseen_families(found)


def test_eight_families_are_the_fewest_of_which_one_is_whole() -> None:
    assert len(unseen_families(with_dev(suite(families=8, each=5), 0.5))) == 5
    assert not unseen_families(with_dev(suite(families=7, each=6), 0.5))


def test_a_family_larger_than_a_third_of_the_dev_split_is_never_whole() -> None:
    found = with_dev(suite(families=8, each=20), 0.2)
    assert len(dev(found)) == 32
    assert not unseen_families(found)


def test_families_of_two_domains_are_two() -> None:
    known = [replace(s, domain=f"domain {n % 2}", family="same") for n, s in enumerate(suite(families=40))]
    found = Counter((s.domain, s.split) for s in with_dev(known, 0.2))
    assert found == {(f"domain {n}", split): of for n in (0, 1) for split, of in (("train", 48), ("dev", 12))}


def test_without_families_each_task_is_drawn_by_itself() -> None:
    known = [replace(s, family=None) for s in suite()]
    drawn = {s.id for s in known if seed_of("dev", task_key(s)) < 0.2 * 2**SEED_BITS}
    assert dev(with_dev(known, 0.2)) == drawn
    assert len(drawn) >= MIN_DEV


def test_what_only_training_can_score_stays_there() -> None:
    known = [replace(s, truth="majority") if s.id.endswith("-1") else s for s in suite()]
    found = dev(with_dev(known, 0.2))
    assert found
    assert not [id_ for id_ in found if id_.endswith("-1")]


def test_an_interrupted_run_goes_on_with_its_dev_split() -> None:
    known, earlier = suite(), {"s1-1", "s2-0", "gone"}
    assert dev(with_dev(known, 0.2, earlier)) == {"s1-1", "s2-0"}
    assert not dev(with_dev(known, 0.2, frozenset()))
    moved = [replace(s, split="eval") if s.id == "s1-1" else s for s in known]
    assert dev(with_dev(moved, 0.2, earlier)) == {"s2-0"}


def test_more_scenarios_do_not_move_those_that_are_there() -> None:
    more = [*suite(), make_scenario(id="new", split="train", family="new", prompt="new")]
    assert dev(with_dev(more, 0.2)) - {"new"} == dev(with_dev(suite(), 0.2))


def test_too_few_stay_in_training() -> None:
    assert not dev(with_dev(suite(families=20, each=1), 0.2))
    assert MIN_DEV == 20


def test_a_scenario_that_names_the_dev_split_keeps_the_hash_away() -> None:
    named = [replace(suite()[0], split="dev"), *suite()[1:]]
    assert dev(with_dev(named, 0.2)) == {"s0-0"}


def test_equal_tasks_stay_together() -> None:
    twins = [replace(s, id=f"{s.id}-twin", family=f"{s.family}-other") for s in suite()]
    found = dev(with_dev([*suite(), *twins], 0.2))
    assert found
    assert {id_ for id_ in found if not id_.endswith("twin")} == {
        id_.removesuffix("-twin") for id_ in found if id_.endswith("twin")
    }


def test_eval_scenarios_are_left_alone() -> None:
    evals = [replace(s, split="eval") for s in suite()]
    assert with_dev(evals, 0.5) == evals


def test_tasks_that_are_alike_stay_together() -> None:
    tasks = [f"Read the note {n} {chr(97 + n % 26) * (2 + n // 26)} aloud" for n in range(120)]
    words = "and tell which of the friends in it came late to the party in the old mill by the river"
    known = [make_scenario(f"a{n}", split="train", prompt=f"{t} {t} {words}") for n, t in enumerate(tasks)]
    known += [replace(s, id=f"{s.id}-more", prompt=f"Please help me. {s.prompt}") for s in known]
    found = dev(with_dev(known, 0.2))
    assert found
    assert found == {f"{id_.removesuffix('-more')}{end}" for id_ in found for end in ("", "-more")}


def test_what_a_hash_chose_is_counted_in_the_order_of_the_splits() -> None:
    known = [
        make_scenario(f"s{n}", split=split, hashed=True) for n, split in enumerate(["eval", "train", "eval"])
    ]
    assert split_lines([*known, make_scenario("named", split="dev")]) == [
        "a hash chose the split of the 3 scenarios that name none: 1 train, 2 eval"
    ]
    every = [replace(s, split=split) for s, split in zip(known, ("dev", "train", "eval"), strict=True)]
    assert split_lines(every)[0].endswith(": 1 train, 1 dev, 1 eval")
    assert split_lines(known[1:2]) == ["a hash chose the split of the 1 scenario that names none: 1 train"]


UNTESTED = f"lessons are kept without a test: that takes {MIN_DEV} dev scenarios or more"


@pytest.mark.parametrize(
    ("acceptance", "dev", "train", "said"),
    [
        ("off", 3, 0, "3 dev scenarios are not used: acceptance is off"),
        ("off", 0, 9, ""),
        ("each", MIN_DEV, 0, ""),
        (
            "each",
            MIN_DEV - 1,
            0,
            f"{UNTESTED}, so the {MIN_DEV - 1} that there are stay unused; add some, or",
        ),
        (
            "each",
            0,
            3,
            f"{UNTESTED}, and 0 of 3 train scenarios would be such (tfgrpo_dev_share = 0.2); set split: dev",
        ),
    ],
)
def test_where_too_few_dev_scenarios_decide_on_lessons_that_is_said(
    acceptance: str, dev: int, train: int, said: str
) -> None:
    known = [make_scenario(f"d{n}", split="dev") for n in range(dev)]
    known += [make_scenario(f"t{n}", split="train", prompt=f"task {n}") for n in range(train)]
    settings: Any = {"acceptance": acceptance, "dev_share": 0.2}
    found = shortage(known, settings)
    assert found.startswith(said)
    assert bool(found) is bool(said)
    assert (UNTESTED in found) is (acceptance != "off" and bool(said))


@pytest.mark.parametrize(
    ("each", "bound", "share", "most"),
    [(2, 0, 0.5, 1), (2, 1, 0.5, 1), (2, 2, 0.5, 0), (2, 0, 0.0, 0), (3, 1, 0.5, 1)],
)
def test_training_keeps_one_task_of_each_family_that_is_not_whole_apart(
    each: int, bound: int, share: float, most: int
) -> None:
    known = suite(families=40, each=each)
    tied = [replace(s, checker="a.py::test_a") if int(s.id[-1]) < bound else s for s in known]
    chosen = dev(with_dev(tied, share))
    whole = unseen_families(with_dev(tied, share))
    counts = Counter(id_.partition("-")[0] for id_ in chosen - whole)
    assert max(counts.values(), default=0) == most
    assert not chosen & {s.id for s in tied if s.checker}


def test_the_first_of_equal_tasks_says_of_which_family_they_are() -> None:
    known = suite()
    again = [replace(s, id=f"again-{s.id}", family="other") for s in known]
    assert {id_.removeprefix("again-") for id_ in dev(with_dev([*known, *again], 0.2))} == dev(
        with_dev(known, 0.2)
    )
