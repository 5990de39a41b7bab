"""Agents side by side: value, lines, picture and page."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sweeps import Credits, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.report.agents.chart import HEIGHT, LETTER, ROW, WIDTH, cost_chart
from pytest_tfgrpo.report.agents.lines import agents_lines
from pytest_tfgrpo.report.agents.page import agents_page
from pytest_tfgrpo.report.agents.value import agents_value

Golden = Callable[[str, str], None]
IDS = [f"count-{n}" for n in range(20)]


def run(name: str, passed: float, seed: int, ids: Sequence[str] = IDS) -> Run:
    rng = random.Random(seed)
    credited: dict[str, Credits] = {id_: [float(rng.random() < passed) for _ in range(5)] for id_ in ids}
    made = make_run(None, credited, run_id=f"run1-{name}")
    return replace(made, scenarios=tuple(replace(s, stamp=f"stamp of {s.id}") for s in made.scenarios))


def three() -> dict[str, Run]:
    return {"small": run("small", 0.3, 1), "middle": run("middle", 0.75, 2), "large": run("large", 0.8, 3)}


def test_three_agents_read_well(golden: Golden) -> None:
    value = agents_value("run1", three())
    assert violations("agents", value) == []
    golden("agents.txt", "\n".join(agents_lines(value)) + "\n")


def test_every_pair_is_compared_and_corrected_for_their_number() -> None:
    value = agents_value("run1", three())
    assert value["comparisons"] == len(value["pairs"]) == 3
    assert [(pair["before"], pair["after"]) for pair in value["pairs"]] == [
        ("small", "middle"),
        ("small", "large"),
        ("middle", "large"),
    ]
    two = agents_value("run1", {name: of for name, of in three().items() if name != "middle"})
    once, among = two["pairs"][0]["difference"], value["pairs"][1]["difference"]
    assert once["p"] == once["p_adjusted"] == among["p"]
    assert among["p_adjusted"] >= 2 * among["p"]


def test_equal_agents_are_not_told_apart() -> None:
    value = agents_value("run1", {"a": run("a", 0.5, 1), "b": run("b", 0.5, 1)})
    assert value["pairs"][0]["claim"] is None
    assert value["pairs"][0]["difference"]["difference"] == 0
    assert "largest differences" not in "\n".join(agents_lines(value))
    assert "Holm" not in "\n".join(agents_lines(value)), "one comparison needs no correction"


def test_agents_that_ran_other_scenarios_are_not_compared() -> None:
    value = agents_value("run1", {"a": run("a", 0.1, 1), "b": run("b", 0.9, 1, IDS[:3])})
    assert value["pairs"][0]["claim"] is None
    assert value["pairs"][0]["obstacles"]
    assert {len(row["means"]) for row in value["scenarios"]} == {2}


def test_the_page_escapes_names_and_says_what_differs() -> None:
    runs = three()
    value = agents_value("run1", runs)
    value["agents"][0]["actor"] = "python:<script>alert(1)</script>"
    page = agents_page(value, runs, {"small": "./small.html"})
    assert "<script>alert" not in page
    assert "middle is better than small" in page
    assert '<a href="./small.html">small</a>' in page
    assert page == agents_page(value, runs, {"small": "./small.html"})


def agent(name: str, mean: float | None, usd: float | None, tokens: float | None = 10.0) -> dict[str, Any]:
    cost = {"n": 0 if usd is None else 5, "sum": (usd or 0) * 5, "mean": usd}
    bounds = None if mean is None else [max(mean - 0.1, 0), min(mean + 0.1, 1)]
    rest = {"rollouts": 5, "errors": 0, "tokens": {"n": 5, "sum": 1, "mean": tokens}, "p50_ms": 3.0}
    final = {"mean": mean, "ci95": bounds, "cost_usd": cost, **rest}
    return {"name": name, "final": final}


@pytest.mark.parametrize(
    ("agents", "title"),
    [
        ([agent("a", 0.5, 0.1), agent("b", 0.9, 0.3)], "US dollars per rollout"),
        ([agent("a", 0.5, 0.1), agent("b", 0.9, None)], "tokens per rollout"),
        ([agent("a", 0.5, 0.1, None), agent("b", 0.9, None)], "time per rollout (median)"),
        ([agent("a", 0.5, 0.0, 0.0), agent("b", 0.9, 0.0, 0.0)], "time per rollout (median)"),
        ([agent("a", 0.5, 0.0), agent("b", 0.9, 0.1)], "US dollars per rollout"),
    ],
)
def test_the_picture_takes_what_is_known_of_all(agents: list[dict[str, Any]], title: str) -> None:
    chart = cost_chart(agents)
    assert chart is not None
    assert chart["title"] == title


def test_an_agent_without_a_score_is_named_beside_the_picture() -> None:
    chart = cost_chart([agent("a", 0.5, 0.1), agent("b", 0.9, 0.3), agent("down", None, None)])
    assert chart is not None
    assert chart["left_out"] == ["down"]
    assert cost_chart([agent("a", 0.5, 0.1), agent("down", None, None)]) is None
    assert cost_chart([agent("a", 0.5, 0.1), {"name": "b", "final": None}]) is None


COSTS = st.floats(0, 1e4, allow_subnormal=False)
NAMES = st.text("abcdefgh", min_size=1, max_size=30)


@given(st.lists(st.tuples(st.floats(0, 1), COSTS, NAMES), min_size=2, max_size=5))
def test_points_lie_in_the_picture_and_names_never_on_each_other(
    rows: list[tuple[float, float, str]],
) -> None:
    chart = cost_chart([agent(name, mean, usd) for mean, usd, name in rows])
    assert chart is not None
    boxes = []
    for point in chart["points"]:
        assert 0 <= point["x"] <= WIDTH
        assert 0 <= point["y"] <= HEIGHT
        wide = LETTER * len(point["name"])
        start = point["name_x"] - (wide if point["anchor"] == "end" else 0)
        boxes.append((start, start + wide, point["name_y"]))
    for place, (low, high, at) in enumerate(boxes):
        for other_low, other_high, other in boxes[:place]:
            assert high <= other_low or other_high <= low or abs(at - other) >= ROW - 0.11
    assert all(re.fullmatch(r"\S+ ?\S*", text) for _, text in chart["ticks"])


@pytest.mark.parametrize(
    ("usd", "ticks"),
    [
        ((0.0002, 0.0030), ["$0.001", "$0.002", "$0.003", "$0.004"]),
        ((0.1, 0.11), ["$0.025", "$0.05", "$0.075", "$0.10", "$0.125"]),
        ((0.0002, 0.18), ["$0.0001", "$0.001", "$0.01", "$0.10", "$1.00"]),
        ((0.0, 0.18), ["$0.05", "$0.10", "$0.15", "$0.20"]),
    ],
)
def test_the_axis_of_costs_tells_small_ones_apart(usd: tuple[float, float], ticks: list[str]) -> None:
    chart = cost_chart([agent("a", 0.5, usd[0]), agent("b", 0.9, usd[1])])
    assert chart is not None
    assert [text for _, text in chart["ticks"]] == ticks
    assert chart["title"].endswith(", logarithmic") == (min(usd) > 0 and max(usd) > 30 * min(usd))
    places = [x for x, _ in chart["ticks"]]
    assert places == sorted(set(places))


def test_few_tokens_are_told_apart_too() -> None:
    chart = cost_chart([agent("a", 0.5, None, 0.4), agent("b", 0.9, None, 0.9)])
    assert chart is not None
    assert [text for _, text in chart["ticks"]] == ["0.2", "0.4", "0.6", "0.8", "1"]


def test_scores_that_lie_close_fill_the_axis() -> None:
    close = [agent("a", 0.91, 0.1), agent("b", 0.93, 0.2)]
    for one in close:
        one["final"]["ci95"] = [one["final"]["mean"] - 0.02, one["final"]["mean"] + 0.02]
    chart = cost_chart(close)
    assert chart is not None
    assert [text for _, text in chart["grid"]] == ["0.85", "0.9", "0.95"]
    assert chart["from"] == 0.85
    apart = cost_chart([agent("a", 0.2, 0.1), agent("b", 0.9, 0.2)])
    assert apart is not None
    assert [text for _, text in apart["grid"]] == ["0", "0.25", "0.5", "0.75", "1"]


def test_each_agent_of_the_picture_has_its_interval_around_its_mean() -> None:
    sure, unsure = agent("a", 0.5, 0.1), agent("b", 0.9, 0.3)
    sure["final"] |= {"ci95": [0.25, 0.75]}
    unsure["final"] |= {"ci95": None}
    chart = cost_chart([sure, unsure])
    assert chart is not None
    drawn, bare = chart["points"]
    assert drawn["high"] < drawn["y"] < drawn["low"], "higher scores are drawn further up"
    assert drawn["y"] - drawn["high"] == pytest.approx(drawn["low"] - drawn["y"], abs=0.2)
    assert (bare["low"], bare["high"]) == (None, None)
