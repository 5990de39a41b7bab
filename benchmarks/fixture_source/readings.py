"""Domain `readings`: figures from sensors and meters."""

from __future__ import annotations

from fixture_source.shape import Family, case, number


def _figures(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _middle(figures: list[float]) -> float:
    ordered, half = sorted(figures), len(figures) // 2
    return ordered[half] if len(figures) % 2 else (ordered[half - 1] + ordered[half]) / 2


FAMILIES = (
    Family(
        domain="readings",
        name="typical",
        chain=("find_numbers", "median_number"),
        truth=lambda d: _middle(_figures(d["log"])),
        checks=number,
        train=(
            case('Typical reading of the sensor log "{log}"?', log="18, 20, 19, 45, 21"),
            case('The gauge wrote "{log}". What is its typical, middle reading?', log="3, 3, 7, 9, 40"),
            case('Outliers must not count: give the typical level for "{log}".', log="7, 8, 30, 6, 9"),
            case(
                'Greenhouse log of last night: "{log}". Report the typical level to the grower.',
                log="14, 15, 16.5, 29, 13.5",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('A probe sent "{log}". Which value is typical for it?', log="52, 50, 51, 90, 49"),
            case('Quote the typical level behind these figures: "{log}"', log="1.2, 1.9, 1.4, 6.6, 1.3"),
        ),
    ),
    Family(
        domain="readings",
        name="swing",
        chain=("find_numbers", "number_spread"),
        truth=lambda d: round(max(_figures(d["log"])) - min(_figures(d["log"])), 9),
        checks=number,
        train=(
            case('What swing did the pressure log "{log}" show?', log="101, 99, 104, 97"),
            case('Give the swing, highest against lowest, of the readings "{log}".', log="13, 19, 7, 15"),
            case('The tide gauge reads "{log}". How wide was the swing?', log="2.1, 5.6, 1.8, 4.9"),
            case(
                'Night shift wrote "{log}" on the boiler sheet. A swing above ten needs a call: how '
                "big was it?",
                log="61, 64, 58, 70, 66",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('Between lowest and highest, what swing has the series "{log}"?', log="8.5, 3.5, 6, 9.75"),
            case('Swing of the voltage trace "{log}"?', log="229, 233, 226, 231"),
        ),
    ),
    Family(
        domain="readings",
        name="load",
        chain=("find_numbers", "add_numbers"),
        truth=lambda d: sum(d["input"] if "input" in d else _figures(d["log"])),
        checks=number,
        train=(
            case('The meter pulses are "{log}". What load did it carry?', log="14, 9, 22, 5"),
            case('Total load of the circuit with the readings "{log}"?', log="120, 75, 60"),
            case("Each feeder reports its share. What is the load together?", input=[3.5, 2.25, 4, 1]),
            case(
                'Pump house, four motors running: "{log}". The load goes on the permit; add it up.',
                log="11, 7.5, 7.25, 4",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('What load do the feeders "{log}" put on the line together?', log="40, 32, 18, 6"),
            case('Report the total load: "{log}"', log="0.75, 1, 0.5, 2.5"),
        ),
    ),
    Family(
        domain="readings",
        name="crest",
        chain=("find_numbers", "largest_number", "add_percent"),
        truth=lambda d: round(max(_figures(d["log"])) * (100 + d["extra"]) / 100, 9),
        checks=number,
        train=(
            case(
                'Crest allowance: raise the largest of "{log}" by {extra} %.',
                log="40, 55, 50",
                extra=10,
            ),
            case(
                'Design crest for the flood marks "{log}", with {extra} % on top of the maximum?',
                log="210, 340, 300",
                extra=5,
            ),
            case(
                'The dyke must hold the crest: the largest mark plus {extra} percent. Marks: "{log}"',
                log="4, 6.5, 5",
                extra=20,
            ),
            case(
                'River watch sends "{log}" from the bridge. Policy adds {extra} % to the largest mark; '
                "which crest do we announce?",
                log="1.4, 2.2, 1.9, 2",
                extra=50,
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                'Marks "{log}" came in. With an allowance of {extra} % on the maximum, which crest should '
                "the wall meet?",
                log="80, 120, 95",
                extra=25,
            ),
        ),
    ),
)
