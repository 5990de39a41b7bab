"""The dev split: by family, stable, and only where it is large enough to say something."""

from dataclasses import replace

from support.builders import make_scenario

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.harness.run.schedule import MIN_DEV
from pytest_tfgrpo.harness.run.splits import with_dev


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


def test_a_family_stays_whole() -> None:
    for part in (
        {s.family for s in with_dev(suite(), 0.2) if s.split == split} for split in ("train", "dev")
    ):
        assert len([s for s in suite() if s.family in part]) == 3 * len(part)


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
    assert {id for id in found if not id.endswith("twin")} == {
        id.removesuffix("-twin") for id in found if id.endswith("twin")
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
    assert found == {f"{id.removesuffix('-more')}{end}" for id in found for end in ("", "-more")}
