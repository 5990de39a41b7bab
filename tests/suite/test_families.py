"""Families: given ones, those of one domain, and tasks that are alike where none is given."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_scenario
from support.sweeps import evenly, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.metrics.comparison import Tally, compare
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.suite.families import families_of, family_of, sweeps_of, ungrouped

REPLAY = 'Say when the 42 trains of the line "Under the old mill" left on 2026-03-14 and 2026-05-09.'
IN_OTHER_WORDS = (
    'On 2026-03-14 and 2026-05-09, "Under the old mill" had 42 trains: tell their times of leaving.'
)


def task(id_: str, prompt: str, **changes: object) -> Scenario:
    return make_scenario(id_, split="eval", prompt=prompt, **changes)


def test_a_family_is_one_of_its_domain() -> None:
    known = [
        task("a", "one", family="f"),
        task("b", "two", family="f"),
        task("c", "3", family="f", domain="d"),
    ]
    found = families_of(known)
    assert found["a"] == found["b"] != found["c"]
    assert [family_of(s) for s in (known[0], task("e", "5"))] == ["text f", ""]


@pytest.mark.parametrize(("n", "families"), [(MIN_INTERVAL - 1, set()), (MIN_INTERVAL, {"text task of s0"})])
def test_tasks_that_are_alike_are_looked_for_where_there_are_enough_for_an_interval(
    n: int, families: set[str]
) -> None:
    run = make_run(final=evenly(n, [1.0]))
    run = replace(run, scenarios=tuple(replace(s, prompt=REPLAY) for s in run.scenarios))
    assert {row.family for row in sweeps_of(run).rows_after.values()} - {None} == families


def test_a_scenario_without_a_family_is_its_own() -> None:
    assert families_of([task("a", "What is 3 + 4?"), task("b", "What is 5 + 6?")]) == {}


def test_tasks_that_are_alike_are_one_family() -> None:
    known = [task("a", REPLAY), task("b", REPLAY + "  "), task("c", IN_OTHER_WORDS), task("d", "Another")]
    found = families_of(known)
    assert found["a"] == found["b"] == found["c"]
    assert "d" not in found


def test_alike_tasks_of_two_domains_are_two() -> None:
    assert families_of([task("a", REPLAY), task("b", REPLAY, domain="other")]) == {}


def test_a_task_without_a_family_joins_that_of_one_like_it() -> None:
    known = [task("a", REPLAY), task("b", REPLAY, family="f"), task("c", "Another", family="f")]
    found = families_of(known)
    assert found["a"] == found["b"] == found["c"]


@given(st.permutations(range(6)))
def test_the_order_of_the_scenarios_changes_nothing(order: list[int]) -> None:
    known = [task("a", REPLAY), task("b", REPLAY), task("c", IN_OTHER_WORDS)]
    known += [task("d", "x", family="f"), task("e", "x", family="g"), task("z", "x")]
    assert families_of([known[n] for n in order]) == families_of(known)


def doubled(n: int = 24) -> Run:
    """Return a run of `n` tasks, each twice, of which every fourth is lost."""
    before = evenly(2 * n, [1.0])
    after = {id_: [float(int(id_[1:]) // 2 % 4 > 0)] for id_ in before}
    run = make_run(before, after, evenly(1, [1.0], "t"))
    prompt = {s.id: f"What is {10 * int(s.id[1:]) // 20}?" for s in run.scenarios}
    return replace(run, scenarios=tuple(replace(s, prompt=prompt[s.id]) for s in run.scenarios))


def test_gain_gate_and_comparison_count_a_task_once_that_stands_twice_in_the_suite() -> None:
    run = doubled()
    sweeps = sweeps_of(run)
    once = compare(sweeps.rows_before, sweeps.rows_after)
    verdict = judge(run, baseline=None, settings=run.settings)
    report = build(run, verdict)
    rule = next(result for result in verdict.results if result.name == "gain")
    for found in (report["gain"], report["domains"][0]["gain"], rule.figures, versus(run, run)["difference"]):
        assert found is not None
        assert (found["n"], found["families"]) == (48, 24)
    assert report["gain"] is not None
    assert report["gain"]["ci95"] == once.difference.ci95


def test_a_suite_of_doubles_has_the_interval_of_its_half() -> None:
    sweeps = sweeps_of(doubled())
    half = [
        {id_: row for id_, row in rows.items() if int(id_[1:]) % 2}
        for rows in (sweeps.rows_before, sweeps.rows_after)
    ]
    plain = [{id_: replace(row, family=None) for id_, row in rows.items()} for rows in half]
    whole, once = compare(sweeps.rows_before, sweeps.rows_after).difference, compare(*plain).difference
    assert isinstance(next(iter(half[0].values())), Tally)
    assert (whole.mean, whole.low, whole.high) == (once.mean, once.low, once.high)


def sums(n: int, **changes: object) -> list[Scenario]:
    return [task(f"sum{i}", f"What is the sum of {i} and {i * i + 1}?", **changes) for i in range(n)]


def test_many_tasks_that_differ_in_data_only_are_advised_a_family() -> None:
    names = ("Ada", "Grace Hopper", "Alan", "Edsger W Dijkstra")
    told = [task(f"name{i}", f"Please greet {name} in a friendly way.") for i, name in enumerate(names)]
    quoted = [task(f"word{i}", f"Spell the word '{'abcdefgh'[i]}x' backwards.") for i in range(8)]
    assert ungrouped([*sums(16), *told, *quoted]) == (
        "28 of 28 eval scenarios differ from others in data only (sum0 and 15 like it, name0 and 3 like it, "
        "word0 and 7 like it): they gain or lose together, but count as 28 independent ones; set one family "
        "for each kind"
    )


def test_three_tasks_of_one_text_are_a_kind_and_two_are_none() -> None:
    told = [
        task(f"name{i}", f"Please greet {name} in a friendly way.")
        for i, name in enumerate(("Ada", "Al", "Jo"))
    ]
    assert ungrouped([*sums(20), *told]).startswith("23 of 23 eval scenarios")
    assert ungrouped([*sums(20), *told[:2]]).startswith("20 of 22 eval scenarios")
    lines = [replace(s, prompt=s.prompt.replace("greet ", "greet\n")) for s in told]
    assert ungrouped([*sums(20), *lines]).startswith("23 of 23 eval scenarios")


def test_conversations_that_share_a_greeting_are_not_alike() -> None:
    asked = [f"Please {' '.join(words(40)[i : i + 5])} for the garden." for i in range(20)]
    hello = "Hello there, could you please help me with something today?"
    assert ungrouped([task(f"t{i}", hello, turns=(hello, text)) for i, text in enumerate(asked)]) == ""
    assert ungrouped([task(f"t{i}", hello) for i in range(20)]) != ""


def test_where_a_hash_chose_the_split_the_advice_names_it() -> None:
    assert ungrouped(sums(24, hashed=True)).endswith(
        "set one family for each kind and a split, as a hash puts a family on one side"
    )


def words(n: int) -> list[str]:
    """Return so many different words."""
    return [f"{chr(97 + i % 26) * 3}{chr(97 + i // 26) * 2}" for i in range(n)]


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(sums(24, family="sums"), id="they have a family"),
        pytest.param(sums(19), id="they are few"),
        pytest.param([*sums(20), *(task(w, f"Tell me of {w} now") for w in words(70))], id="most differ"),
        pytest.param([replace(s, split="train") for s in sums(24)], id="they train"),
        pytest.param([task(w, f"'{w}' 7?") for w in words(24)], id="data is all there is"),
        pytest.param([replace(s, domain=s.id) for s in sums(24)], id="domains differ"),
        pytest.param([task(w, f"Add two {w} numbers, 3 and 4.") for w in words(24)], id="words differ"),
    ],
)
def test_there_is_no_advice_where(known: list[Scenario]) -> None:
    assert ungrouped(known) == ""


def test_the_family_of_alike_tasks_is_called_by_the_first_id_and_the_first_given_one() -> None:
    known = [task("z", REPLAY), task("b", REPLAY), task("m", IN_OTHER_WORDS)]
    assert set(families_of(known).values()) == {"text task of b"}
    lent = [task("z", REPLAY), task("b", REPLAY, family="g"), task("m", REPLAY, family="f")]
    assert families_of(lent) == {"z": "text f", "b": "text g", "m": "text f"}


@pytest.mark.parametrize(("others", "advised"), [(60, True), (61, False)])
def test_a_quarter_of_the_scenarios_are_many(others: int, advised: bool) -> None:
    known = [*sums(20), *(task(w, f"Tell me of {w} now") for w in words(others))]
    assert (ungrouped(known) != "") is advised


@pytest.mark.parametrize(
    ("words_left", "advised"),
    [("Please add", False), ("Please add now", True), ("Please add\nnow", True), ("PLEASE add now,", True)],
)
def test_a_text_has_three_words_besides_its_data(words_left: str, advised: bool) -> None:
    assert (ungrouped([task(f"t{n}", f"{words_left} {n}?") for n in range(20)]) != "") is advised


def test_three_kinds_are_named_and_more_are_counted() -> None:
    kinds = [f"Please tell me the {word} of town number" for word in ("age", "size", "name", "flag", "song")]
    few = [task(f"{k[19:22]}{n}", f"{k} {n}.") for k in kinds[:3] for n in range(8)]
    assert "more kinds" not in ungrouped(few)
    many = [task(f"{k[19:22]}{n}", f"{k} {n}.") for k in kinds for n in range(8)]
    assert "and 2 more kinds" in ungrouped(many)
