"""What collections pass over while a session of scenarios runs alone."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from pytest_tfgrpo.plugin.start import garbage


class Collector:
    """Python's collector and its end, as far as they are used."""

    def __init__(self, frozen: int) -> None:
        self.frozen, self.told, self.at_exit = frozen, list[str](), list[object]()

    def get_freeze_count(self) -> int:
        return self.frozen

    def freeze(self) -> None:
        self.told.append("freeze")

    def unfreeze(self) -> None:
        self.told.append("unfreeze")

    def register(self, function: object) -> None:
        self.at_exit.append(function)

    def unregister(self, function: object) -> None:
        self.at_exit = [one for one in self.at_exit if one != function]


@pytest.mark.parametrize("frozen", [0, 3])
def test_objects_are_passed_over_until_the_end_unless_somebody_froze_some(
    frozen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Collector(frozen)
    monkeypatch.setattr(garbage, "gc", fake)
    monkeypatch.setattr(garbage, "atexit", fake)
    monkeypatch.setattr(garbage, "collecting_seldom", nullcontext)
    for _ in range(2):
        with garbage.spare_lasting():
            before = fake.told.copy()
        assert fake.told == (before if frozen else [*before, "unfreeze"])
    assert fake.told == ([] if frozen else ["freeze", "unfreeze"] * 2)
    assert fake.at_exit == ([] if frozen else [fake.freeze]), "once, however often pytest runs"
