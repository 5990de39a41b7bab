"""Named metrics as tables of the terminal and the page."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.sweeps import make_run, rated

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.report.named_metrics import named_metric_lines
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build

IDS = [f"s{i}" for i in range(8)] + [f"date{i}" for i in range(4)]


def polite() -> Run:
    run = make_run(*({id_: [1, 0] for id_ in IDS} for _ in range(2)), train={"t": [1, 0]})
    return rated(run, {id_: [0.25 + 0.5 * (n % 2)] for n, id_ in enumerate(IDS)})


def report(run: Run) -> Report:
    return build(run, None)


def test_a_metric_is_told_by_sweep_and_by_domain() -> None:
    told = named_metric_lines(report(polite()), 80)
    assert told == [
        "metric         baseline  epoch1  epoch2-eval   n   95 % interval",
        "gt_score          0.500   0.500        0.500  12  0.390 to 0.610",
        "reward            0.500   0.500        0.500  12  0.390 to 0.610",
        "relative_rank     0.500   0.500        0.500  12  0.390 to 0.610",
        "politeness        0.500       -        0.500  12  0.333 to 0.667",
        "n: scenarios with a score in the last column, whose 95 % interval it is",
        "",
        "in epoch2-eval  dates   text",
        "gt_score        0.500  0.500",
        "reward          0.500  0.500",
        "relative_rank   0.500  0.500",
        "politeness      0.500  0.500",
    ]


def test_metrics_are_told_from_verbose_on() -> None:
    value = report(polite())
    assert not any("politeness" in line for line in terminal(value))
    assert any("politeness" in line for line in terminal(value, verbosity=1))


def test_a_report_of_an_older_version_has_none() -> None:
    value: Any = report(polite())
    for row in value["epochs"]:
        del row["metrics"]
    assert named_metric_lines(value, 80) == []
    assert 'id="metrics"' not in html(value)


def test_what_does_not_fit_is_left_out_between_the_first_and_the_last_sweep() -> None:
    run = polite()
    train = run.phases[1]
    many = [replace(train, phase=replace(train.phase, epoch=n)) for n in range(1, 12)]
    told = named_metric_lines(report(replace(run, phases=(run.phases[0], *many, run.phases[2]))), 80)
    assert max(map(len, told)) <= 80
    assert told[0].split()[:3] == ["metric", "baseline", "..."]
    assert "epoch2-eval" in told[0]


def test_of_many_domains_the_first_are_shown() -> None:
    run = make_run(final={id_: [1] for id_ in (f"s{i}" for i in range(102))})
    groups = tuple(replace(g, domain=f"d{n:03}") for n, g in enumerate(run.phases[0].groups))
    value = report(replace(run, phases=(replace(run.phases[0], groups=groups),)))
    told = named_metric_lines(value, 80)
    assert told[-1] == "... 78 more domains: see per-epoch.json"
    assert "d023" in "\n".join(told)
    assert "d024" not in "\n".join(told)
    assert "2 more domains: see per-epoch.json" in html(value)


def test_the_page_shows_every_metric_by_domain() -> None:
    page = html(report(polite()))
    assert '<a href="#metrics">Metrics</a>' in page
    assert "<summary>politeness by domain</summary>" in page


@settings(max_examples=25)
@given(st.text(min_size=1), st.text(min_size=1, max_size=60))
def test_foreign_text_stays_text_of_80_columns(name: str, domain: str) -> None:
    run = rated(polite(), {id_: [1.0] for id_ in IDS}, name)
    groups = (
        replace(result, groups=tuple(replace(g, domain=domain + g.domain) for g in result.groups))
        for result in run.phases
    )
    value = report(replace(run, phases=tuple(groups)))
    assert all(len(line) <= 80 and line.isprintable() for line in named_metric_lines(value, 80))
