"""What a harvest shows while candidates run, on a terminal and elsewhere."""

import io

import pytest
from support.terminals import Display

from pytest_tfgrpo.cli.harvest.harvest_progress import HarvestScreen, estimate_line, live_line
from pytest_tfgrpo.harvest.job.progress import HarvestEstimate, HarvestReading, RunningCandidate


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def reading(*stages: tuple[str, int], estimate: HarvestEstimate | None = None) -> HarvestReading:
    running = [
        RunningCandidate(number=n, id=f"fix-{n}", began_s=60.0, stage=stage, run=run, runs=10)
        for n, (stage, run) in enumerate(stages, 3)
    ]
    return HarvestReading(at_s=100.4, total=22, running=tuple(running), estimate=estimate)


def estimate(least_s: float, most_s: float) -> HarvestEstimate:
    basis = "the first 3 runs of one took 16 s"
    return HarvestEstimate(least_s=least_s, most_s=most_s, candidates=19, basis=basis)


def test_the_live_line_names_run_and_seconds_of_each_candidate() -> None:
    assert live_line(reading(("runs", 4))) == " 3/22  run 4 of 10, 40 s  fix-3"
    assert live_line(reading(("environment", 0), ("runs", 9))) == (
        " 3/22  environment, 40 s    4/22  run 9 of 10, 40 s"
    )


def test_a_terminal_has_one_live_line_that_other_lines_replace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "24")
    stream, display = Terminal(), Display()
    screen = HarvestScreen(stream)
    screen.watch(reading(("environment", 0)))
    screen.watch(reading(("runs", 4)))
    display.feed(stream.getvalue())
    assert display.text == " 3/22  run 4 of 10, 40"
    screen.clear()
    screen.clear()
    display.feed(stream.getvalue()[len(stream.getvalue()) - 4 :])
    assert display.text == ""


def test_a_terminal_that_cannot_rewrite_and_a_pipe_get_the_estimate_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for stream in (io.StringIO(), Terminal()):
        screen = HarvestScreen(stream)
        screen.watch(reading(("runs", 4)))
        assert stream.getvalue() == ""
        for _ in range(2):
            screen.watch(reading(("runs", 5), estimate=estimate(500, 1200)))
        screen.clear()
        assert stream.getvalue() == (
            "from 8 min to 20 min for 19 candidates, if all are alike: the first 3 runs of one took 16 s\n"
        )


def test_a_short_harvest_says_nothing_of_how_long_it_takes() -> None:
    stream = io.StringIO()
    HarvestScreen(stream).watch(reading(("runs", 4), estimate=estimate(20, 59)))
    assert stream.getvalue() == ""
    HarvestScreen(stream).watch(reading(("runs", 4), estimate=estimate(20, 60)))
    assert stream.getvalue().startswith("from 20 s to 60 s for 19 candidates")


def test_an_estimate_with_one_value_is_no_range() -> None:
    assert estimate_line(estimate(1200, 1200)).startswith("about 20 min for 19 candidates, ")
    assert estimate_line(estimate(1.2e4, 1.2e4)).startswith("about 3.3 h for 19 candidates, ")
