"""References of a gate: what is compared with in the run itself, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import PACK_STAMP, make_experience, make_pack, make_scenario

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.engine.preparation.reference import names_reference, open_reference
from pytest_tfgrpo.gate.baseline import locate
from pytest_tfgrpo.learning.library.library import empty, of, save_library
from pytest_tfgrpo.suite.packs import rewritten, write_pack

TEXT = make_experience(1, stamp_signature=PACK_STAMP)
EVALS = [make_scenario("e1", split="eval"), make_scenario("t1", domain="dates")]
PACKS = {"text": make_pack(), "dates": make_pack("dates", stamp="d" * 64)}


def opened(root: Path, *lessons: Any, packs: Any = PACKS, learning: bool = False, **flags: str) -> Any:
    """Open the reference of a run whose baseline is a library of these lessons."""
    if lessons:
        save_library(root / "old.json", of(lessons))
    given = {"actor": "offline", "baseline": "old.json" if lessons else "no-lessons"} | flags
    settings = resolve(given, {}, {}, learning_flag=learning)
    return open_reference(root, settings, EVALS, packs=packs, library=of([TEXT]))


@pytest.mark.parametrize(
    ("flags", "learning", "refused"),
    [
        ({"baseline_sweep": "off"}, False, "is asked in the baseline sweep, and baseline_sweep is 'off'"),
        (
            {"baseline_sweep": "both", "eval_rollouts": "3"},
            False,
            "is asked a quarter of the 3 rollouts early",
        ),
        ({"baseline_sweep": "both", "eval_rollouts": "4"}, False, ""),
        ({"baseline_sweep": "concurrent", "eval_rollouts": "1"}, False, ""),
        ({}, True, "is not what a learning run starts from"),
    ],
)
def test_a_reference_needs_a_sweep_and_a_learning_run_starts_from_it(
    tmp_path: Path, flags: dict[str, str], learning: bool, refused: str
) -> None:
    if refused:
        with pytest.raises(SettingError, match=r"baseline = 'no-lessons' \(.*\) " + refused.replace("(", "")):
            opened(tmp_path, learning=learning, **flags)
        return
    found = opened(tmp_path, learning=learning, **flags)
    assert (found.name, found.kind, found.library, found.packs) == (
        "no-lessons", "library", empty(), (PACKS["text"],)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "learning", "refused"),
    [
        ({}, True, "set placebo_sweep = true where you learn"),
        ({"placebo_sweep": "true"}, False, "runs the placebo already; set placebo_sweep to false"),
        ({}, False, ""),
    ],
)
def test_a_library_can_be_held_against_its_own_placebo(
    tmp_path: Path, flags: dict[str, str], learning: bool, refused: str
) -> None:
    assert names_reference("placebo", tmp_path)
    if refused:
        with pytest.raises(SettingError, match=refused):
            opened(tmp_path, baseline="placebo", learning=learning, **flags)
        return
    found = opened(tmp_path, baseline="placebo", **flags)
    assert (found.kind, found.library.experiences) == ("placebo", (TEXT,))
    assert found.stamp == found.library.hash != of([TEXT]).hash
    assert (found.name, found.packs) == ("placebo", (PACKS["text"],))


def test_a_run_without_lessons_has_no_placebo(tmp_path: Path) -> None:
    settings = resolve({"baseline": "placebo"}, {}, {})
    with pytest.raises(SettingError, match="needs lessons, and the run has none"):
        open_reference(tmp_path, settings, EVALS, packs=PACKS, library=empty())


def test_the_library_that_a_learning_run_starts_from_may_be_its_reference(tmp_path: Path) -> None:
    found = opened(tmp_path, TEXT, learning=True)
    assert found.library.hash == found.stamp == of([TEXT]).hash


@pytest.mark.parametrize(
    ("lesson", "refused"),
    [
        (TEXT, ""),
        (replace(TEXT, domain="dates", stamp_signature="0" * 64), ""),
        (replace(TEXT, domain="elsewhere", stamp_signature="0" * 64), ""),
        (replace(TEXT, stamp_signature="0" * 64), "1 lesson of the domain 'text' would be left out"),
    ],
)
def test_lessons_of_another_pack_are_refused_where_an_eval_scenario_would_carry_them(
    tmp_path: Path, lesson: Any, refused: str
) -> None:
    if refused:
        with pytest.raises(SettingError, match=refused):
            opened(tmp_path, lesson)
    else:
        assert opened(tmp_path, lesson).library == of([lesson])


def test_a_library_is_refused_where_no_prompt_can_carry_a_lesson(tmp_path: Path) -> None:
    mute = {"text": make_pack(experience_slots=0), "dates": make_pack("dates")}
    with pytest.raises(SettingError, match="no prompt can carry a lesson: 'text' has experience_slots 0"):
        opened(tmp_path, packs=mute)
    domains = [make_scenario("e2", domain="dates", split="eval")]
    settings = resolve({"actor": "offline", "baseline": "no-lessons"}, {}, {}, learning_flag=False)
    both = open_reference(tmp_path, settings, [*EVALS, *domains], packs=mute, library=empty())
    assert both is not None
    assert {pack.domain for pack in both.packs} == {"text", "dates"}


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        (None, None, False),
        ("", None, False),
        ("no-lessons", None, True),
        ("main", None, False),
        ("old.json", None, False),
        ("old.json", "[]", False),
        ("old.json", "{", False),
        ("old.json", '{"schema": "tfgrpo.library/1"}', True),
        ("old.txt", '{"schema": "tfgrpo.library/1"}', False),
        ("old.json", '{"schema": "tfgrpo.baseline/1", "x": "tfgrpo.library/"}', False),
        ("old.json", '{"schema": "tfgrpo.report/1"}', False),
        ("old.json", '{"x": 3}', False),
    ],
)
def test_what_is_a_library_is_a_reference_and_a_stored_baseline_is_none(
    tmp_path: Path, name: str | None, text: str | None, named: bool
) -> None:
    if text is not None:
        (tmp_path / str(name)).write_text(text)
    assert names_reference(name, tmp_path) is named


def test_one_old_pack_replaces_that_pack_alone_and_carries_the_lessons_that_were_rebased(
    tmp_path: Path,
) -> None:
    text, dates = (rewritten(make_pack(name), "Solve it now.") for name in ("text", "dates"))
    old = rewritten(text, "Solve it as before.")
    write_pack(tmp_path / "old", old)
    packs = {"text": text, "dates": dates}
    scenarios = [make_scenario(f"e-{name}", split="eval", domain=name) for name in packs]
    carried = make_experience(1, stamp_signature=text.stamp)
    foreign = make_experience(2, stamp_signature="0" * 64)
    other = make_experience(3, domain="dates", stamp_signature=dates.stamp)
    unused = make_experience(4, domain="elsewhere", stamp_signature="0" * 64)
    library = of([carried, foreign, other, unused])
    for name in (
        "old",
        "old/text",
    ):  # a folder of packs is all of them, and the folder of a pack is that pack
        settings = resolve({"actor": "offline", "baseline": name}, {}, {}, learning_flag=False)
        assert names_reference(name, tmp_path)
        domains = scenarios if name == "old/text" else scenarios[:1]
        found = open_reference(tmp_path, settings, domains, packs=packs, library=library)
        assert found is not None
        assert (found.name, found.kind) == (name, "packs")
        assert [pack.system for pack in found.packs if pack.domain == "text"] == ["Solve it as before."]
        assert (dates in found.packs) is (name == "old/text")
        lessons = {lesson.id: lesson.stamp_signature for lesson in found.library.experiences}
        assert lessons == {carried.id: old.stamp, foreign.id: "0" * 64} | (
            {other.id: dates.stamp} if name == "old/text" else {}
        )
    with pytest.raises(SettingError, match="of the domain 'text', and no eval scenario would use it"):
        open_reference(tmp_path, settings, scenarios[1:], packs=packs, library=library)
    learning = resolve({"actor": "offline", "baseline": "old"}, {}, {}, learning_flag=True)
    with pytest.raises(SettingError, match="is not what a learning run starts from"):
        open_reference(tmp_path, learning, scenarios[:1], packs=packs, library=of([]))


@pytest.mark.parametrize("name", ["no-lessons", "placebo", "old"])
def test_a_stored_baseline_of_a_name_goes_before_what_else_it_stands_for(tmp_path: Path, name: str) -> None:
    write_pack(tmp_path / "old", rewritten(make_pack(), "Solve it as before."))
    assert names_reference(name, tmp_path)
    stored = locate(name, tmp_path)
    stored.parent.mkdir()
    stored.write_text("{}")
    assert not names_reference(name, tmp_path)
