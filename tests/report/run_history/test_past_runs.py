"""The runs of a task over time, from their reports."""

import json
import math
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.browser_runs import HOSTILE
from support.sweeps import SETTINGS, evenly, make_run

from pytest_tfgrpo.report.run_history.chart import MOST, charts
from pytest_tfgrpo.report.run_history.lines import history_lines
from pytest_tfgrpo.report.run_history.page import history_page
from pytest_tfgrpo.report.run_history.past_runs import (
    FinalScores,
    PastRun,
    agents,
    by_build,
    past_run,
    short,
    span,
    suites,
    unreported,
)
from pytest_tfgrpo.report.value import build

BASELINE, FINAL = evenly(12, [0, 1]), evenly(12, [1, 1])


def reported(run_id: str = "20260131T120000-482913a7", **changes: Any) -> dict[str, Any]:
    """Return the report of a run as it is read from its file."""
    run = make_run(BASELINE, FINAL, run_id=run_id, **changes)
    value: dict[str, Any] = json.loads(json.dumps(build(run, None)))
    return value


def one(n: int = 0, **changes: Any) -> PastRun:
    """Return a run that counts."""
    known: dict[str, Any] = {"run_id": f"20260131T1200{n:02}-482913a7", "state": "complete", "counts": True}
    known |= {
        "commit": "1a2b3c4d5e6f",
        "lessons_hash": "c" * 64,
        "lessons": 2,
        "suite": "e" * 64,
        "usd": 0.5,
        "cost": "$0.50",
    }
    scores = {"mean": 0.5, "ci95": (0.4, 0.6), "gain": 0.1, "gain_ci95": (0.0, 0.2)}
    scores |= {name: changes.pop(name) for name in [*scores] if name in changes}
    return PastRun(**known | {"seconds": 30.0, "scores": FinalScores(**scores)} | changes)


def test_a_run_is_told_by_the_figures_of_its_report() -> None:
    report = reported(versions={"pytest-tfgrpo": "0.1.0", "commit": "1a2b3c4d5e6f+dirty"})
    run = past_run("run", report)
    final = report["epochs"][-1]["gt_score"]
    assert (run.scores.mean, list(run.scores.ci95 or ())) == (final["mean"], final["ci95"])
    assert (run.scores.gain, run.commit, run.lessons) == (0.5, "1a2b3c4d5e6f+dirty", 0)
    assert run.actor == "offline"
    assert (run.seconds, run.usd, run.state) == (30.0, report["cost"]["usd"], "complete")
    assert (run.cost, run.gate) == ("$0.05", "")
    assert list(run.scores.gain_ci95 or ()) == report["gain"]["ci95"]
    assert run.counts


def test_a_part_of_the_suite_and_a_run_that_did_not_end_are_listed_and_do_not_count() -> None:
    part = past_run("run", reported(partial_selection=True))
    assert (part.counts, part.state, part.scores.mean) == (False, "a part of the suite", 1.0)
    stopped = past_run("run", reported(status="aborted", reason="budget"))
    assert (stopped.counts, stopped.state) == (False, "aborted")
    both = past_run("run", reported(status="aborted", reason="budget", partial_selection=True))
    assert (both.counts, both.state) == (False, "aborted")
    errors = json.loads(json.dumps(build(make_run(None, evenly(2, [None])), None)))
    assert (past_run("run", errors).counts, past_run("run", errors).scores.mean) == (False, None)
    assert by_build([part, stopped]) == []
    assert charts([part, stopped]) == []


@pytest.mark.parametrize(
    "broken",
    [{}, {"epochs": None}, {"epochs": [{}]}, {"library": []}, {"cost": {"usd": "x"}}, {"gain": [1]},
     {"gain": {"difference": math.nan, "ci95": None}}, {"versions": None}, {"finished_at": "soon"}],
)  # fmt: skip
def test_a_report_of_another_version_is_said_to_be_one(broken: dict[str, Any]) -> None:
    run = past_run("run", (reported() | broken) if broken else {})
    assert run == PastRun(run_id="run", state="unusable report", counts=False)


@pytest.mark.parametrize(
    ("header", "commit", "actor"),
    [
        (None, "", ""),
        ({}, "", ""),
        ({"versions": {"commit": "1a2b"}, "settings": {"actor": "offline"}}, "1a2b", "offline"),
        ({"versions": 3, "settings": {"actor": None}}, "", ""),
    ],
)
def test_a_run_without_report_has_agent_and_commit_of_its_journal(
    header: Any, commit: str, actor: str
) -> None:
    assert unreported("run", "killed", header) == PastRun(
        run_id="run", state="killed", counts=False, commit=commit, actor=actor
    )


def test_runs_of_one_commit_library_and_split_are_averaged_and_the_newest_comes_first() -> None:
    runs = [
        one(0),
        one(1, lessons_hash="d" * 64),
        one(2, mean=0.7, ci95=(0.6, 0.9), usd=None),
        one(3, suite="f" * 64),
    ]
    third, first, second = by_build(runs)
    assert [r.run_id for r in first.runs] == [runs[0].run_id, runs[2].run_id]
    assert first.scores.mean == pytest.approx(0.6)
    assert list(first.scores.ci95 or ()) == pytest.approx([0.5, 0.75])
    assert first.usd is None  # of one of them it is unknown
    assert by_build([one(0), one(1, ci95=None)])[0].scores.ci95 is None
    assert first.latest == runs[2]
    assert (second.runs, third.runs) == ((runs[1],), (runs[3],))
    others = by_build([one(0), one(1, commit="5e6f"), one(2, gain=0.3, gain_ci95=(0.1, 0.6), seconds=90.0)])
    assert [[run.commit for run in of.runs] for of in others] == [["1a2b3c4d5e6f"] * 2, ["5e6f"]]
    mean = others[0]
    assert (mean.scores.gain, mean.seconds) == (pytest.approx(0.2), 60.0)
    assert list(mean.scores.gain_ci95 or ()) == pytest.approx([0.05, 0.4])


def test_runs_of_different_agents_are_not_averaged_nor_joined_by_a_line() -> None:
    runs = [one(n, actor=actor, commit="") for n, actor in enumerate(["offline", "offline", "python:x:y"])]
    assert [[run.actor for run in build.runs] for build in by_build(runs)] == [
        ["python:x:y"],
        ["offline", "offline"],
    ]
    chart = charts(runs)[0]
    assert [line.count(",") for line in chart["lines"]] == [2, 1]
    assert [(title, [name for _, name in at]) for title, at, _ in chart["ticks"]] == [
        ("commit", ["-"]),
        ("library", ["ccccccc"]),
        ("agent", ["a", "b"]),
    ]
    page = history_page("demo", runs, {})
    assert page.count("<b>b</b> python:x:y") == 2  # of its build, and of its run
    assert "The line breaks where the agent changes" in page
    assert "agent changes" not in history_page("demo", runs[:2], {})


@pytest.mark.parametrize(
    ("changes", "which"),
    [({"seconds": 130.0}, 3), ({"usd": 1e-5, "cost": "<$0.0001"}, 2), ({"mean": 0.016, "ci95": None}, 0)],
)
def test_the_labels_of_an_axis_differ(changes: dict[str, Any], which: int) -> None:
    labels = [text for _, text in charts([one(**changes)])[which]["grid"]]
    assert len(set(labels)) == len(labels) >= 3


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e3)), min_size=1, max_size=MOST + 5))
@example([(0.0, 5e-324)])
def test_every_drawn_point_and_interval_lies_in_the_plot(values: list[tuple[float, float]]) -> None:
    runs = [one(n, mean=at, ci95=(at - more, at + more)) for n, (at, more) in enumerate(values)]
    chart = charts(runs)[0]
    assert len(chart["points"]) == min(len(runs), MOST)
    for point in chart["points"]:
        assert chart["left"] <= point["x"] <= chart["right"]
        for y in (point["y"], point["low"], point["high"]):
            assert chart["top"] - 0.5 <= y <= chart["base"] + 0.5
    assert 2 <= len(chart["grid"]) <= 12


def test_the_line_breaks_where_the_eval_split_changes() -> None:
    runs = [one(0), one(1), one(2, suite="f" * 64)]
    assert [line.count(",") for line in charts(runs)[0]["lines"]] == [2, 1]


def test_runs_compare_by_the_stamp_of_their_eval_split_else_by_that_of_the_whole_suite() -> None:
    report = reported()
    for stamps, suite in (
        ({"eval": "e" * 64, "scenarios": "f" * 64}, "e" * 64),
        ({"scenarios": "f" * 64}, "f" * 64),
        ({}, ""),
    ):
        assert past_run("run", report | {"stamps": stamps}).suite == suite


def test_only_of_runs_that_are_shown_it_is_said_that_files_differed() -> None:
    runs = [one(0, commit="1a2b3c4d5e6f+dirty"), one(1), one(2)]
    assert "*: files differed from the commit" in list(history_lines(runs, 3))
    assert "*: files differed from the commit" not in list(history_lines(runs, 2))
    damaged = PastRun(run_id="20260131T115900-482913a7", state="unusable report", counts=False)
    assert any(text.startswith("unusable report: ") for text in history_lines([damaged, *runs], 4))
    assert not any(text.startswith("unusable report: ") for text in history_lines([damaged, *runs], 3))


def test_agents_are_lettered_among_the_runs_shown_and_eval_splits_among_all() -> None:
    runs = [one(0, actor="old", suite="f" * 64), one(1), one(2, actor="x")]
    assert [text.split()[-1] for text in history_lines(runs, 2)][1:3] == ["2a", "2b"]
    assert [text.split()[-1] for text in history_lines(runs[:2], 1)][:2] == ["of", "2"]
    killed = PastRun(run_id="20260131T115900-482913a7", state="killed", counts=False, actor="z", suite="d")
    assert agents([killed, *runs[1:]]) == {"": "a", "x": "b"}
    assert suites([killed, *runs]) == {"f" * 64: "1", "e" * 64: "2"}
    letters = list(agents(one(n, actor=f"agent{n}") for n in range(53)).values())
    assert (letters[25:28], letters[52]) == (["z", "a1", "b1"], "a2")


def test_a_run_that_did_not_count_has_its_mean_with_what_became_of_it_and_gaps_are_dashes() -> None:
    stopped = one(
        0, counts=False, state="aborted", commit="", lessons_hash="", gain=None, cost="", seconds=None
    )
    assert list(history_lines([stopped], 1))[1].split()[1:] == ["0.500", "aborted", "-", "-", "-", "-", "-"]
    whole = one(0, mean=1.0, ci95=(0.95, 1.0))
    assert list(history_lines([whole], 1))[1].split()[1:3] == ["1.000", ".950-1.000"]


def test_the_page_counts_the_older_runs_that_it_does_not_draw() -> None:
    uncounted = PastRun(run_id="20260131T120100-482913a7", state="killed", counts=False)
    drawn = [one(n) for n in range(MOST)]
    told = "only in the tables"
    assert told not in history_page("demo", [uncounted, *drawn], {})
    assert f"2 older runs are {told}" in history_page("demo", [uncounted, one(1), one(2), *drawn], {})
    points = charts([one(0, mean=0.1), *(one(n, mean=0.9) for n in range(MOST))])[0]["points"]
    assert {point["said"] for point in points} == {"0.90"}


def test_a_terminal_of_80_columns_has_the_newest_runs() -> None:
    runs = [
        *(one(n, cost="$12.34+", gain=-0.1, seconds=9000.0) for n in range(10)),
        one(10, commit="1a2b3c4d5e6f+dirty", suite="f" * 64),
        PastRun(run_id="20260131T120100-482913a7", state="unusable report", counts=False),
    ]
    shown = list(history_lines(runs, 10))
    assert len(shown) == 14
    assert max(map(len, shown)) <= 80
    figures = ["0.500", ".400-.600", "-0.100", "$12.34+", "2.5", "h"]
    assert shown[1].split() == ["20260131T120002", *figures, "1a2b3c4", "ccccccc", "1"]
    assert shown[9].split()[-3:] == ["1a2b3c4*", "ccccccc", "2"]
    assert "unusable report" in shown[10]
    assert shown[11:] == [
        "*: files differed from the commit",
        "unusable report: damaged, or of another version; see `tfgrpo report RUN`",
        "of: the eval split; means of different ones are not comparable",
    ]


def test_the_terminal_names_the_agents_where_they_differ() -> None:
    actors = ["offline", "python:slow:solve"]
    shown = list(history_lines([one(n, actor=actor) for n, actor in enumerate(actors)], 10))
    assert [row.split()[-1] for row in shown[:3]] == ["of", "a", "b"]
    assert shown[3:] == [
        "of: the agent; means of different ones are not comparable",
        "a: offline",
        "b: python:slow:solve",
    ]
    both = list(history_lines([one(0, actor="offline"), one(1, actor="x", suite="f" * 64)], 10))
    assert [row.split()[-1] for row in both[1:3]] == ["1a", "2b"]
    assert both[3] == "of: eval split and agent; means of different ones are not comparable"
    assert len(list(history_lines([one(n, actor="offline") for n in range(2)], 10))) == 3
    assert list(history_lines([one(0, actor=""), one(1, actor="x")], 10))[-2:] == ["a: -", "b: x"]


def test_hostile_names_stay_text() -> None:
    named = {"run_id": HOSTILE, "commit": HOSTILE, "lessons_hash": HOSTILE, "actor": HOSTILE}
    runs = [one(0, **named), one(1, actor="offline"), unreported(HOSTILE, HOSTILE, None)]
    page = history_page(HOSTILE, runs, {HOSTILE: "./x"})
    assert page == history_page(HOSTILE, runs, {HOSTILE: "./x"})
    assert page.count("<script") == page.count("</script>") == 1
    assert "<img" not in page
    assert not re.search(r"[\x00-\x08\x0e-\x1f\u202e]", page)
    assert max(map(len, history_lines(runs, 10))) <= 80


def test_commits_and_times_are_short() -> None:
    assert [short(c) for c in ("1a2b3c4d5e6f", "1a2b3c4d5e6f+dirty", "")] == ["1a2b3c4", "1a2b3c4*", ""]
    told = [span(s) for s in (None, 0, 0.44, 9.96, 12, 89, 90, 5399, 5400)]
    assert told == ["-", "0 s", "0.4 s", "10 s", "12 s", "89 s", "2 min", "90 min", "1.5 h"]
    assert span(99, 1) == "1.6 min"


def test_a_chart_marks_where_the_library_changes() -> None:
    runs = [one(n, lessons_hash=letter * 64) for n, letter in enumerate("aabb")]
    (change,) = charts(runs)[0]["changes"]
    points = [point["x"] for point in charts(runs)[0]["points"]]
    assert points[1] < change < points[2]
    assert charts(runs[:2])[0]["changes"] == []


def test_a_chart_of_gains_has_their_intervals_and_a_line_at_zero_where_one_is_below() -> None:
    mean, gain, *_ = charts([one(0, gain=-0.1, gain_ci95=(-0.2, 0.0))])
    assert mean["zero"] is None
    assert gain["zero"] == gain["points"][0]["high"]
    assert gain["points"][0]["low"] == gain["base"]


def test_names_under_a_chart_begin_where_they_change_and_have_room() -> None:
    few = [one(n, commit=commit) for n, commit in enumerate(["aaa", "bbb", "bbb"])]
    assert [name for _, name in charts(few)[0]["ticks"][0][1]] == ["aaa", "bbb"]
    close = [one(n, commit=f"c{min(n, 30)}") for n in range(40)]
    names = charts(close)[0]["ticks"][0][1]
    assert [name for _, name in names][:2] == ["c0", "c5"]
    assert all(after - before >= 54 for (before, _), (after, _) in pairwise(names))
    assert [charts(runs)[0]["radius"] for runs in (few, close)] == [5.0, pytest.approx(482 / 120)]


def test_the_page_begins_with_the_latest_run_that_counts_and_lists_the_newest_first() -> None:
    runs = [one(0, mean=0.4), one(1, mean=0.6), PastRun(run_id="last", state="killed", counts=False)]
    page = history_page("demo", runs, {runs[0].run_id: "./first.html"})
    assert "<b>0.600</b> mean gt_score of the latest run" in page
    listed = page[page.index('<section id="runs"') :]
    places = [listed.index(f">{run.run_id}<") for run in reversed(runs)]
    assert places == sorted(places)
    assert f'<a href="./first.html">{runs[0].run_id}</a>' in listed
    assert "3 runs, of which 2 swept" in page


def test_a_replay_is_a_run_of_the_agent_that_it_replays() -> None:
    recorded = {"actor": {"name": "openai:small"}}
    first = reported(identities=recorded, settings={**SETTINGS, "actor": "openai:small"})
    again = reported("r2", identities=recorded, settings={**SETTINGS, "actor": "replay:rec.jsonl"})
    runs = [past_run("r1", first), past_run("r2", again)]
    assert [run.actor for run in runs] == ["openai:small", "openai:small"]
    assert "replay" not in "\n".join(history_lines(runs, 10))
    assert [len(build.runs) for build in by_build(runs)] == [2]
    older = {key: value for key, value in again.items() if key != "actor"}
    assert past_run("r2", older).actor == "replay:rec.jsonl"


@pytest.mark.parametrize(
    ("identities", "actor"),
    [(None, "replay:r"), ({}, "replay:r"), ({"actor": "x"}, "replay:r"), ({"actor": {"name": "a:b"}}, "a:b")],
)
def test_a_killed_replay_too_has_the_agent_of_its_header(identities: Any, actor: str) -> None:
    header = {"settings": {"actor": "replay:r"}, "identities": identities}
    assert unreported("r1", "killed", header).actor == actor
