"""What of a suite pytest selects for a run, and why the rest is not in it."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.records import Mode, Phase
from pytest_tfgrpo.plugin.items import selection
from pytest_tfgrpo.plugin.items.markers import RolloutSlot


class Config(SimpleNamespace):
    """As much of pytest's as says what was asked for."""

    def __init__(self, args: Any = ("suite",), last: Any = (), added: int = 0, **options: Any) -> None:
        super().__init__(args=list(args), options=options)
        self.cache = SimpleNamespace(get=lambda key, default: dict.fromkeys(last) or default)
        hooks = SimpleNamespace(get_hookimpls=lambda: [object()] * added)
        self.hook = SimpleNamespace(pytest_tfgrpo_scenarios=hooks)

    def getoption(self, name: str, default: object = None) -> object:
        return self.options.get(name, default)


def session(config: Config, failed: int = 0) -> Any:
    return SimpleNamespace(config=config, testsfailed=failed)


@pytest.mark.parametrize(
    ("config", "failed", "why"),
    [
        (Config(), 0, ""),
        (Config(lf=True), 0, ""),
        (Config(last=["a"]), 0, ""),
        (Config(lf=True, last=["a"]), 0, "--lf"),
        (Config(), 1, "a file could not be collected"),
        (Config(["suite", "b::c", "d::e"]), 0, "only b::c and the like were selected"),
    ],
)
def test_why_pytest_did_not_look_at_the_whole_suite(config: Config, failed: int, why: str) -> None:
    assert selection.narrowed(session(config, failed)) == why


@pytest.mark.parametrize(
    ("config", "asked", "may"),
    [
        (Config(), True, False),
        (Config(added=1), False, True),
        (Config(added=1, keyword="a"), False, False),
        (Config(added=1, markexpr="a"), False, False),
        (Config(["b::c"], added=1), False, False),
        (Config(["b::c"], added=1, keyword="a"), True, True),
    ],
)
def test_a_hook_adds_scenarios_to_tests_that_are_not_selected_by_name(
    config: Config, asked: bool, may: bool
) -> None:
    assert selection.may_add(session(config), asked=asked) is may


@pytest.mark.parametrize(
    ("selected", "wanted", "text"),
    [
        ("abcd", "abcd", ""),
        ("ac", "ac", "b and d deselected"),
        ("abcd", "acd", "a hook pytest_tfgrpo_scenarios dropped b"),
        ("abc", "ab", "d deselected"),
    ],
)
def test_what_is_left_out_is_named_in_its_order(selected: str, wanted: str, text: str) -> None:
    assert selection.left_out("abcd", selected, wanted).replace(", ", " and ") == text


class Item(SimpleNamespace):
    """An item of a phase."""

    def __init__(self, name: str, epoch: int, **fields: Any) -> None:
        super().__init__(nodeid=f"{name}[{epoch}]", slot=RolloutSlot(epoch, 0), **fields)
        self.phase, self.scenarios = SimpleNamespace(epoch=epoch), [SimpleNamespace(id=name)]


def phase(epoch: int, mode: Mode, *scenarios: str, dev: tuple[str, ...] = ()) -> Phase:
    return Phase(epoch=epoch, mode=mode, temperature=0.0, rollouts=1, scenarios=scenarios, dev=dev)


def test_items_run_epoch_by_epoch_in_the_order_of_their_scenarios() -> None:
    items: Any = [Item(name, epoch) for name in "badc" for epoch in (2, 1)]
    marked: Any = [
        SimpleNamespace(scenario=SimpleNamespace(id="f"), items={1: [Item("f0", 1), Item("f1", 1)]}),
    ]
    phases = [phase(1, "train", "a", "f", "b", dev=("d",)), phase(2, "eval", "c", "a")]
    found = [item.nodeid for item in selection.order(phases, items, marked)]
    assert found == ["a[1]", "f0[1]", "f1[1]", "b[1]", "d[1]", "c[2]", "a[2]"]


def test_a_file_of_many_scenarios_has_one_item_in_each_phase() -> None:
    whole = Item("whole", 1)
    whole.scenarios = [SimpleNamespace(id=name) for name in "ab"]
    items: Any = [whole]
    assert selection.order([phase(1, "train", "b")], items, []) == [whole]


def test_the_items_of_runs_side_by_side_go_phase_by_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "slot_of", lambda item: item.slot)
    phases = [phase(3, "train", "a"), phase(0, "baseline", "a"), phase(4, "eval", "a")]
    runs: Any = [[Item(name, epoch) for epoch in (3, 0, 4)] for name in "xy"]
    found = [item.nodeid for item in selection.in_turn(phases, runs)]
    assert found == ["x[3]", "y[3]", "x[0]", "y[0]", "x[4]", "y[4]"]


def test_choosing_one_item_brings_those_of_its_scenario_once() -> None:
    first, second, other = Item("a", 1), Item("a", 2), Item("b", 1)
    for item, all_ in ((first, [Item("a", 1), second]), (second, [first, second]), (other, [other])):
        item.siblings = lambda found=all_: found
    items: Any = [other, first]
    assert [item.nodeid for item in selection.whole(items)] == ["b[1]", "a[1]", "a[2]"]
    chosen: list[Any] = [*selection.whole(items)]
    assert chosen[1] is first
