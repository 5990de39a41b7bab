"""The table of a forecast."""

import pytest

from pytest_tfgrpo.estimate.forecast import Forecast, PhaseForecast
from pytest_tfgrpo.estimate.lines import estimate_lines
from pytest_tfgrpo.estimate.ranges import Figures, Range

FIRST = PhaseForecast(
    phase="epoch1",
    purpose="rollouts",
    figures=Figures(calls=Range(1.6, 2), tokens=Range(10, 20), usd=Range(1.0, 2.0)),
)
JUDGE = PhaseForecast(
    phase="epoch1", purpose="judge", figures=Figures(calls=Range(1, 4), tokens=None, usd=None)
)


def test_a_row_has_both_ends_of_what_is_known_and_a_question_mark_for_the_rest() -> None:
    rows = estimate_lines(Forecast(parts=(FIRST, JUDGE), extension=FIRST.figures))
    assert [row.split() for row in rows] == [
        ["estimate", "calls", "tokens", "cost"],
        ["epoch1", "2", "10", "to", "20", "$1.00", "to", "$2.00"],
        ["epoch1", "judge", "1", "to", "4", "?", "?"],
        ["total", "3", "to", "6", "?", "?"],
        ["at", "most", "8", "?", "?"],
    ]


@pytest.mark.parametrize(
    ("declared", "more", "lines"),
    [
        (
            {"tokens": 900},
            Figures(tokens=Range(0, 1800)),
            [
                "cost    unknown: the actor does not declare it",
                "tokens  at most 900, or 1.8k if the gate takes more rollouts",
            ],
        ),
        ({"usd": 0.0}, None, ["cost    at most $0.00", "tokens  unknown: the actor does not declare it"]),
        (None, None, ["cost    nothing"]),
    ],
)
def test_what_is_declared_or_free_stands_in_place_of_the_table_before_sources_and_warnings(
    declared: dict[str, float | None] | None, more: Figures | None, lines: list[str]
) -> None:
    found = Forecast(declared=declared, declared_most=more, sources=("a " * 50,), warnings=("b " * 50,))
    shown = estimate_lines(found)
    assert shown[: len(lines)] == lines
    source, source_2, warning, warning_2 = shown[len(lines) :]
    assert (source[:4], source_2[:4]) == ("a a ", "  a ")
    assert (warning[:11], warning_2[:4]) == ("warning: b ", "  b ")
