"""Draws: by seed and content, one of each family first."""

from dataclasses import replace

from support.fake_ring import tasks

from pytest_tfgrpo.arena.contestants.draws import drawn, families_first


def test_a_draw_depends_on_seed_and_purpose_and_not_on_the_order():
    scenarios = tasks("train", 12)
    assert drawn(scenarios, 1, "a") == drawn(scenarios[::-1], 1, "a")
    assert len({tuple(s.id for s in drawn(scenarios, *by)) for by in ((1, "a"), (2, "a"), (1, "b"))}) == 3


def test_one_of_each_family_comes_before_a_second():
    scenarios = tasks("train", 8)
    lone = [replace(scenario, family=None, id=f"lone-{scenario.id}") for scenario in scenarios[:3]]
    order = families_first(sorted([*scenarios, *lone], key=lambda s: s.family or ""))
    assert [s.family for s in order[:7]] == [None, None, None, "kind0", "kind1", "kind2", "kind3"]
