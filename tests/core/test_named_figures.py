"""Named figures: what may be one, at its limits, and what an agent reports as one."""

from typing import Any

import pytest

from pytest_tfgrpo.core.named_figures import NAME, as_figure, as_scale, reported
from pytest_tfgrpo.core.named_scores import SHARE, MetricScale

SECONDS = MetricScale(unit="s", better="lower", most=60.0)


@pytest.mark.parametrize(
    ("name", "fits"),
    [("a", True), ("a" * 64, True), ("a" * 65, False), ("-a", False), ("a.b", False), ("", False)],
)
def test_a_name_has_64_characters_at_most_and_no_dot(name: str, fits: bool) -> None:
    assert (NAME.fullmatch(name) is not None) is fits


def test_a_scale_has_a_unit_a_direction_and_a_largest_value() -> None:
    assert as_scale("u" * 32, "lower", 5) == MetricScale(unit="u" * 32, better="lower", most=5.0)
    assert as_scale("", "higher", 1.0) == SHARE


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (("u" * 33, "higher", 1), "a unit must be up to 32 printable characters"),
        ((" s", "higher", 1), "a unit must be up to 32 printable characters"),
        (("a\nb", "higher", 1), "a unit must be up to 32 printable characters"),
        ((None, "higher", 1), "a unit must be up to 32 printable characters"),
        (("s", "more", 1), "better must be 'higher' or 'lower', not 'more'"),
        (("s", None, 1), "better must be 'higher' or 'lower', not None"),
        (("s", "higher", 0), "most, the largest possible value, must be a number above 0, not 0"),
        (("s", "higher", True), "must be a number above 0, not True"),
        (("s", "higher", float("inf")), "must be a number above 0, not inf"),
        (("s", "higher", float("nan")), "must be a number above 0, not nan"),
    ],
)
def test_what_is_wrong_with_a_scale_is_said(parts: tuple[Any, Any, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        as_scale(*parts)


@pytest.mark.parametrize("value", [0, 60, 60.0, 0.5])
def test_a_value_on_a_scale_is_a_number(value: float) -> None:
    assert as_figure(value, SECONDS) == float(value)
    assert type(as_figure(value, SECONDS)) is float


def test_a_value_off_its_scale_is_refused_and_for_a_share_there_is_advice() -> None:
    with pytest.raises(ValueError, match=r"between 0 and 60 s, not 60\.5$"):
        as_figure(60.5, SECONDS)
    for value in (-0.1, 1.1, True, "1", None, float("nan")):
        with pytest.raises(ValueError, match=r"between 0 and 1, not .*; set `most` and `unit` for larger"):
            as_figure(value, SHARE)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (True, (1.0, SHARE)),
        (1, (1.0, SHARE)),
        (0, (0.0, SHARE)),
        (1.5, None),
        (-1, None),
        ("1", None),
        (None, None),
        ({"value": 0.5}, (0.5, SHARE)),
        ({"value": 30, "unit": "s", "better": "lower", "most": 60}, (30.0, SECONDS)),
        ({"value": 61, "unit": "s", "better": "lower", "most": 60}, None),
        ({"value": 0.5, "other": 1}, None),
        ({"unit": "s"}, None),
        ({"value": True}, None),
    ],
)
def test_what_an_agent_reports_is_a_figure_or_nothing(value: object, found: object) -> None:
    assert reported(value) == found


def test_a_figure_is_a_share_of_the_best_one_and_comes_back() -> None:
    assert [SECONDS.share(value) for value in (0, 15, 60, 90, -5)] == [1.0, 0.75, 0.0, 0.0, 1.0]
    assert [SECONDS.figure(share) for share in (1.0, 0.75, 0.0)] == [0.0, 15.0, 60.0]
    five = MetricScale(most=5.0, unit="stars")
    assert [five.share(value) for value in (0, 4, 6)] == [0.0, 0.8, 1.0]
    assert five.figure(0.8) == 4.0
    assert (five.words, SECONDS.words, SHARE.words) == (
        "shares of 5 stars",
        "shares of 60 s saved, as lower is better",
        "shares of 1",
    )
