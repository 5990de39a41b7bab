"""Runs at the edges, each with all that a person reads of it: terminal, summary, page, the figures behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.report.worlds import WORLDS, rounded
from support.sweeps import SETTINGS

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.report.compare_example import example_lines
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.comparison.compare_lines import compare_lines
from pytest_tfgrpo.report.markdown import summary
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build

Golden = Callable[[str, str], None]
PARTS = ("gain", "domains", "library", "acceptance", "cost", "noise", "fault_messages", "failures")
"""Keys of a report whose values the texts show in part."""


def reported(run: Run) -> Report:
    return build(run, judge(run, baseline=None, settings=SETTINGS), files="out/demo/runs/run1")


@pytest.mark.parametrize("name", WORLDS)
def test_all_that_a_person_reads_of_a_run_at_the_edge(golden: Golden, name: str) -> None:
    run = WORLDS[name]()
    value = reported(run)
    assert violations("report", value) == []
    parts = {
        "default": terminal(value),
        "verbose": terminal(value, verbosity=1),
        "summary": summary(value).splitlines(),
        "report": (f"{key} {json.dumps(rounded(value[key]))}" for key in PARTS if value.get(key)),
    }
    told = ("\n".join((f"=== {title}", *lines)) for title, lines in parts.items())
    golden(f"worlds/{name}.txt", "\n".join(told) + "\n")


PAGES = ("failing-alike", "interrupted", "nothing", "paid", "worse-in-one-domain")


def words_of(page: str) -> str:
    """Return the words of a page, without its scripts, and the index that its scripts read."""
    (index,) = re.findall(r'id="index">(.*?)</script>', page)
    body = re.sub(r"(?s)<(script|style)[^>]*>.*?</\1>|<(option|title)[^>]*>.*?</\2>", "", page)
    text = re.sub(r"\s+", " ", re.sub(r"(?s)<[^>]+>", "|", body))
    return re.sub(r"(\| ?)+", "\n", text).strip() + f"\n{index}\n"


@pytest.mark.parametrize("name", PAGES)
def test_all_that_a_page_shows_of_a_run_at_the_edge(golden: Golden, name: str) -> None:
    run = WORLDS[name]()
    golden(f"worlds/{name}-page.txt", words_of(html(reported(run), run)))


PAIRS = {
    "same": ("one", "one"),
    "nothing": ("nothing", "one"),
    "errors": ("errors-alone", "all-failed"),
    "apart": ("one-size-each", "all-solved"),
    "prices": ("free", "unpriced"),
    "better": ("all-failed", "better-in-all"),
    "worse": ("better-in-all", "worse-in-one-domain"),
    "cut": ("paid", "interrupted"),
    "failing": ("failing-alike", "rated"),
}


def as_run(name: str, run_id: str) -> Run:
    run = WORLDS[name]()
    scenarios = tuple(replace(s, stamp=f"stamp of {s.id}") for s in run.scenarios)
    return replace(run, run_id=run_id, scenarios=scenarios)


@pytest.mark.parametrize("name", PAIRS)
def test_all_that_a_person_reads_of_two_runs_at_the_edge(golden: Golden, name: str) -> None:
    before, after = (as_run(world, f"run{n}") for n, world in enumerate(PAIRS[name], 1))
    value = versus(before, after)
    assert violations("versus", value) == []
    lines = {
        "default": compare_lines(value, example=example_lines(value, (before, after))),
        "verbose": compare_lines(value, verbosity=1),
    }
    if name != "worse":  # the one with more than the default shows
        del lines["verbose"]
    told = ("\n".join((f"=== {title}", *texts)) for title, texts in lines.items())
    golden(f"worlds/versus-{name}.txt", "\n".join(told) + "\n")


def test_all_that_a_person_reads_of_several_runs(golden: Golden) -> None:
    first, *others = (
        as_run(name, f"run{n}") for n, name in enumerate(("all-failed", "rated", "unpriced"), 1)
    )
    value = versus(first, others[0], others[1:])
    shown = [
        *compare_lines(value, example=example_lines(value, (first, *others))),
        *compare_lines(value, verbosity=1),
    ]
    golden("worlds/versus-several.txt", "\n".join(shown) + "\n")
