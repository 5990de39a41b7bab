import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.lessons import LearnedEffects
from pytest_tfgrpo.learning.library.learned_effects import (
    MOST_KEPT,
    measure_of_effects,
    prior_for,
    read_effects,
    with_effects,
    with_effects_of,
)
from pytest_tfgrpo.learning.library.library import empty


def learned(series: str, mean: float, measure: str = "m") -> LearnedEffects:
    """Return what the run with the draws of `series` learned."""
    spread = (mean, 1.0, 5.0)
    return LearnedEffects(run_id=series, series=series, measure=measure, on_topic=spread, elsewhere=spread)


@pytest.mark.parametrize(
    ("series", "mean"), [("first", None), ("second", 0.1), ("third", 0.2), ("another", 0.3)]
)
def test_a_run_starts_from_what_was_learned_before_the_run_that_it_repeats(
    series: str, mean: float | None
) -> None:
    known = (learned("first", 0.1), learned("second", 0.2), learned("third", 0.3))
    elsewhere = (learned(series, 0.8, "other"), learned("last", 0.9, "other"))
    for effects in (known, (*elsewhere, *known), (*known, *elsewhere)):
        prior = prior_for(replace(empty(), effects=effects), series=series, measure="m")
        assert (prior and (prior.on_topic.mean, prior.elsewhere.mean)) == (mean and (mean, mean))


ROW: dict[str, Any] = {
    "run_id": "r", "series": "s", "measure": "m", "on_topic": [0.1, 0.2, 3.0], "elsewhere": [0.0, 0.1, 0.0]
}  # fmt: skip


@pytest.mark.parametrize(
    ("on_topic", "read"),
    [
        ([99.9, 99.9, 999_999.0], True),
        ([-99.9, 1e-9, 0.0], True),
        ([100.0, 1.0, 1.0], False),
        ([-100.0, 1.0, 1.0], False),
        ([0.0, 0.0, 1.0], False),
        ([0.0, 100.0, 1.0], False),
        ([0.0, 1.0, -0.1], False),
        ([0.0, 1.0, 1e6], False),
    ],
)
@pytest.mark.parametrize("side", ["on_topic", "elsewhere"])
def test_figures_of_a_library_file_lie_within_what_lessons_can_do(
    tmp_path: Path, side: str, on_topic: list[float], read: bool
) -> None:
    path = tmp_path / "library.json"
    data = [ROW, ROW | {side: on_topic}]
    path.write_text(json.dumps({"effects": data}))
    library = empty()
    if read:
        assert [getattr(one, side) for one in read_effects(path, data)] == [tuple(ROW[side]), tuple(on_topic)]
        assert len(with_effects_of(library, path).effects) == 2
    else:
        with pytest.raises(StoreError, match=r"/effects: 1: .* lessons; remove them"):
            read_effects(path, data)
        assert with_effects_of(library, path) is library


@pytest.mark.parametrize("text", [None, "", "[]", "3", '{"effects": 3}', "{}"])
def test_a_library_file_that_says_nothing_of_effects_changes_nothing(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "library.json"
    if text is not None:
        path.write_text(text)
    assert with_effects_of(empty(), path) == empty()
    known = replace(empty(), effects=(learned("s", 0.1),))
    assert with_effects_of(known, path) is known


def test_a_measure_changes_with_all_that_effects_depend_on() -> None:
    stamps, settings = {"actor": "a", "packs": "p", "suite": "s"}, {"judge_weight": 0.5}
    who: dict[str, Any] = {"judge": {"name": "j"}, "optimizer": {"name": "o"}}
    known = measure_of_effects(stamps, who, settings)
    others = [
        measure_of_effects(stamps | {"actor": "b"}, who, settings),
        measure_of_effects(stamps | {"packs": "q"}, who, settings),
        measure_of_effects(stamps, who | {"judge": {"name": "k"}}, settings),
        measure_of_effects(stamps, who | {"optimizer": {"name": "n"}}, settings),
        measure_of_effects(stamps, who, {"judge_weight": 0.25}),
    ]
    assert len({known, *others}) == 6
    assert measure_of_effects(stamps | {"suite": "t"}, who, settings) == known


def test_what_a_run_learned_by_another_measure_is_kept_beside_what_it_learns_now() -> None:
    prior: Any = SimpleNamespace(
        on_topic=SimpleNamespace(mean=0.1, sd=1.0, weight=2.0),
        elsewhere=SimpleNamespace(mean=0.0, sd=0.5, weight=1.0),
    )
    library = replace(empty(), effects=(learned("s", 0.3, "other"), learned("s", 0.2)))
    found = with_effects(library, prior, run_id="s", series="s", measure="m").effects
    assert [(one.measure, one.on_topic[0]) for one in found] == [("other", 0.3), ("m", 0.1)]
    library = replace(empty(), effects=(learned("s", 0.3, "other"),))
    found = with_effects(library, prior, run_id="new", series="s", measure="m").effects
    assert [(one.run_id, one.measure) for one in found] == [("s", "other"), ("new", "m")]


def test_an_equal_run_has_said_it_and_the_latest_are_kept() -> None:
    prior: Any = SimpleNamespace(
        on_topic=SimpleNamespace(mean=0.1234567, sd=1.0, weight=2.0),
        elsewhere=SimpleNamespace(mean=0.0, sd=0.5, weight=1.0),
    )
    library = replace(empty(), effects=tuple(learned(f"s{n}", 0.1) for n in range(MOST_KEPT)))
    assert with_effects(library, prior, run_id="other", series="s3", measure="m") is library
    own = with_effects(library, prior, run_id="s3", series="s3", measure="m").effects
    assert len(own) == MOST_KEPT
    assert (own[-1].run_id, own[-1].on_topic) == ("s3", (0.123457, 1.0, 2.0))
    assert own[-1].elsewhere == (0.0, 0.5, 1.0)
    new = with_effects(library, prior, run_id="new", series="t", measure="m").effects
    assert [one.run_id for one in new] == [*(f"s{n}" for n in range(1, MOST_KEPT)), "new"]
