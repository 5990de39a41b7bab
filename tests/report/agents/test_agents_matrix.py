"""The page of several agents: its rows, what each agent says, and what the scripts read."""

import re
from dataclasses import replace

import pytest
from support.page.matrix import letters_of, page_of, read
from support.sweeps import make_run

from pytest_tfgrpo.report.page import choice
from pytest_tfgrpo.report.page.beside import parting


def test_the_page_has_a_row_for_each_scenario_and_a_cell_for_each_agent() -> None:
    runs = letters_of({"small": 0.4, "large": 0.9, "tuned": 0.9}, 12)
    index, words = read(page_of(runs, {"large": "../large/report.html"}))
    compared = index["compare"]
    assert (compared["name"], compared["place"], compared["alone"]) == ("small", 0, True)
    assert [(one["name"], one["link"]) for one in compared["runs"]] == [
        ("large", "../large/report.html"),
        ("tuned", ""),
    ]
    assert [row[0] for row in compared["rows"]] == list(range(12))
    assert all(len(row) == 3 and row[1] and row[2] for row in compared["rows"])
    ids = [row[0] for row in index["rows"]]
    assert sorted(ids) == sorted(s.id for s in runs["small"].scenarios)
    spread = []
    for row, cells in zip(index["rows"], compared["rows"], strict=True):
        means = [row[6][0], cells[1][0], cells[2][0]]
        spread.append(max(means) - min(means))
    assert spread == sorted(spread, reverse=True), "those that differ most come first"
    answers = {g.scenario_id: g.rollouts[0].answer for g in runs["tuned"].phases[0].groups}
    assert {index["tags"][n] for n in index["tagged"]["letter-3"]} == {"us"}
    assert len(words["answer-1"]) == 12
    start = words["answer-1"][0].removeprefix("... ").removesuffix("...").split()[:6]
    assert " ".join(start) in " ".join(answers[ids[0]].split())


def test_three_agents_or_more_stand_by_score_above_their_differences() -> None:
    runs = letters_of({"small": 0.4, "large": 0.9, "down": 0.5, "tuned": 0.6}, 20)
    runs["down"] = replace(runs["down"], phases=(), status="incomplete", reason="killed")
    found = re.search('<p class="ranking">(.*)</p>', page_of(runs))
    assert found is not None
    scores = {name: [g.gt_mean or 0.0 for p in run.phases for g in p.groups] for name, run in runs.items()}
    means = {name: sum(own) / len(own) for name, own in scores.items() if own}
    ranked = sorted(means, key=lambda name: -means[name])
    assert ranked != list(means)
    assert re.findall("<b>(.*?)</b>", found[1]) == ranked
    assert f"{means[ranked[0]]:.3f}" in found[1]
    assert "ranking" not in page_of(letters_of({"small": 0.4, "large": 0.9}, 3)).partition("<main")[2]


def test_rows_whose_answers_differ_are_known_whatever_their_scores() -> None:
    runs = letters_of({"a": 1.0, "b": 1.0}, 6)
    (phase,) = runs["b"].phases
    same = {g.scenario_id: g.rollouts[0].answer for g in runs["a"].phases[0].groups}
    spaced = tuple(
        replace(g, rollouts=(replace(g.rollouts[0], answer=same[g.scenario_id].replace(" ", "  ")),))
        if n < 4
        else g
        for n, g in enumerate(phase.groups)
    )
    runs["b"] = replace(runs["b"], phases=(replace(phase, groups=spaced),))
    index, _ = read(page_of(runs))
    assert {index["rows"][n][0] for n in index["compare"]["answers"]} == {"letter-4", "letter-5"}


def test_an_agent_that_tried_other_scenarios_has_empty_cells() -> None:
    runs = letters_of({"a": 0.5, "b": 0.5}, 6)
    for name, kept in (("a", slice(0, 4)), ("b", slice(2, 6))):
        (phase,) = runs[name].phases
        left = replace(phase, groups=phase.groups[kept])
        runs[name] = replace(runs[name], scenarios=runs[name].scenarios[kept], phases=(left,))
    index, words = read(page_of(runs))
    by_id = {
        row[0]: (row[6], cells[1]) for row, cells in zip(index["rows"], index["compare"]["rows"], strict=True)
    }
    assert sorted(by_id) == [f"letter-{n}" for n in range(6)]
    assert by_id["letter-0"][1] == 0
    assert by_id["letter-5"][0] == 0
    assert by_id["letter-5"][1][-1] == -1, "no rollout of the first agent stands beside it"
    assert "" in words["answer"]
    assert all(words["task"]), "a task that only the second agent tried is told too"


def test_the_first_agent_with_a_final_sweep_holds_the_rows() -> None:
    runs = letters_of({"down": 0.5, "a": 0.5, "b": 0.5}, 3)
    runs["down"] = replace(runs["down"], phases=(), status="incomplete", reason="killed")
    index, _ = read(page_of(runs))
    assert (index["compare"]["name"], index["compare"]["place"]) == ("a", 1)
    assert [one["name"] for one in index["compare"]["runs"]] == ["down", "b"]
    assert all(row[1] == 0 for row in index["compare"]["rows"])
    none = {name: replace(run, phases=()) for name, run in runs.items()}
    page = page_of(none)
    assert 'id="map"' not in page


def test_a_page_of_many_scenarios_holds_those_that_differ_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "ROWS", 4)
    page = page_of(letters_of({"a": 0.5, "b": 0.5}, 10))
    index, words = read(page)
    assert len(index["rows"]) == len(words["task"]) == len(index["compare"]["rows"]) == 4
    assert index["beyond"]["rows"] == 10
    assert "This page holds 4 of 10 scenarios" in page


def test_hostile_names_tags_and_answers_cannot_leave_their_place() -> None:
    runs = {
        name: make_run(None, {"a": [0.0]}, run_id=f"run1-{name}", task_id="</script><b>")
        for name in ("a", "b")
    }
    for name, run in runs.items():
        (phase,) = run.phases
        (group,) = phase.groups
        bad = replace(group.rollouts[0], answer=f"</script><script>alert('{name}')</script>")
        tagged = replace(run.scenarios[0], tags=("</script><script>alert(1)</script>", "__proto__"))
        groups = (replace(group, rollouts=(bad,)),)
        runs[name] = replace(run, scenarios=(tagged,), phases=(replace(phase, groups=groups),))
    page = page_of(runs)
    assert "<script>alert" not in page
    index, _ = read(page)
    assert index["tags"] == ["</script><script>alert(1)</script>", "__proto__"]


@pytest.mark.parametrize(
    ("answers", "shown"),
    [
        (["same start", "same start"], ["same start", "same start"]),
        (["", "x" * 300], ["", "x" * 197 + "..."]),
        (["a b", "a c"], ["a b", "a c"]),
        (
            ["word " * 20 + "left", "word " * 20 + "right", ""],
            ["... word word word word left", "... word word word word right", ""],
        ),
        (["word " * 20, "word " * 20 + "more"], ["... word word word word", "... word word word word more"]),
    ],
)
def test_answers_that_begin_alike_are_shown_from_where_they_part(
    answers: list[str], shown: list[str]
) -> None:
    assert parting(answers) == shown
