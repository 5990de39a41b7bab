"""A claim where a placebo ran: which sides of both comparisons allow which one, over all and by domain."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_experience
from support.sweeps import SETTINGS, Credits, evenly, make_run, rule, with_placebo

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Frame, PhaseResult, Reference, Run
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.metrics.placebo import placebo_block
from pytest_tfgrpo.report.markdown import summary
from pytest_tfgrpo.report.outcome import outcome
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.trust import claim
from pytest_tfgrpo.report.value import build

TRAIN: dict[str, Credits] = {"t1": [1, 0], "t2": [0, 1]}
Golden = Callable[[str, str], None]


def shares(solved: int, n: int = 20) -> dict[str, Credits]:
    return {f"s{i}": [1.0, 1.0] if i < solved else [0.0, 0.0] for i in range(n)}


def run_of(before: int, placebo: int, after: int) -> Run:
    return with_placebo(make_run(shares(before), shares(after), TRAIN), shares(placebo))


def value(run: Run) -> Any:
    return build(run, judge(run, baseline=None, settings=SETTINGS))


@pytest.mark.parametrize(
    ("solved", "side", "gate", "told"),
    [
        ((2, 2, 18), "better", "pass", "Better: 10 % to 90 % of the tasks; sure enough (20 tasks), also +0"),
        ((2, 18, 18), None, "inconclusive", "Any text does this (+0.00 over placebo; answers as long as"),
        ((2, 6, 10), None, "inconclusive", "Better than no lessons, but not shown better than placebo (+0.2"),
        ((2, 18, 10), None, "fail", "Any text does this (-0.40 over placebo; answers as long as before)"),
        ((18, 18, 2), "worse", "fail", "Worse: 90 % to 10 % of the tasks; sure enough (20 tasks). 2"),
        ((10, 2, 10), None, "pass", "No difference shown: 50 % of the tasks before and after (20 tasks). 2"),
    ],
)  # fmt: skip
def test_a_gain_is_claimed_only_where_it_is_one_over_nothing_and_over_placebo(
    solved: tuple[int, int, int], side: str | None, gate: str, told: str
) -> None:
    found = value(run_of(*solved))
    assert found["gain"]["claim"]["side"] == side
    assert outcome(found).startswith(told)
    assert rule(judge(run_of(*solved), baseline=None, settings=SETTINGS), "placebo").outcome == gate


def test_terminal_and_summary_say_the_gain_over_both() -> None:
    found = value(run_of(2, 6, 18))
    text = " ".join(" ".join(terminal(found)).split())
    assert "placebo gain +0.800 over no lessons, +0.600 over placebo (95 % interval +0." in text
    assert re.search(r"p [<0. ]+\d+, 20 scenarios\), which gains \+0\.200 itself", text)
    assert "Placebo: gain +0.800 over no lessons, +0.600 over placebo" in summary(found)
    assert claim(found).startswith("this library does better: p ")
    assert "; tfgrpo replicate tests the method; over placebo p " in claim(found)


@pytest.mark.parametrize(("name", "placebo"), [("over-both", 6), ("any-text", 17)])
def test_a_run_with_a_placebo_reads_well(golden: Golden, name: str, placebo: int) -> None:
    golden(f"placebo-{name}.txt", "\n".join(terminal(value(run_of(2, placebo, 18)))) + "\n")


def test_a_run_without_one_says_so_where_it_claims_a_gain_and_only_there() -> None:
    better, worse = (
        value(make_run(shares(2), shares(18), TRAIN)),
        value(make_run(shares(18), shares(2), TRAIN)),
    )
    assert "(20 tasks); no placebo was run." in outcome(better)
    assert claim(better).endswith("; no placebo was run")
    assert "placebo" not in outcome(worse) + claim(worse)


def test_what_a_placebo_changed_in_answers_is_named() -> None:
    def longer(result: PhaseResult) -> PhaseResult:
        if result.phase.mode == "baseline":
            return result
        frame = Frame(kind="model", name="m", tokens=5, finish="length")
        groups = (
            replace(
                g,
                rollouts=tuple(
                    replace(r, answer="12345678", tokens=300, frames=(frame,)) for r in g.rollouts
                ),
            )
            for g in result.groups
        )
        return replace(result, groups=tuple(groups))

    run = run_of(2, 18, 18)
    run = replace(run, phases=tuple(map(longer, run.phases)))
    assert (
        "Any text does this (+0.00 over placebo; characters of an answer 1 to 8, answers cut at max_tokens "
        "0 % to 100 %, tokens 100 to 300)"
    ) in outcome(value(run))


def test_a_domain_is_better_only_where_it_is_so_over_placebo_too() -> None:
    before = evenly(12, [0.0], "s") | evenly(12, [0.0], "date")
    after = evenly(12, [1.0], "s") | evenly(12, [1.0], "date")
    run = with_placebo(make_run(before, after, TRAIN), evenly(12, [0.0], "s") | evenly(12, [1.0], "date"))
    assert {row["domain"]: row["claim"] for row in value(run)["domains"]} == {"text": "better", "dates": None}


def test_where_it_is_not_possible_nothing_is_claimed() -> None:
    run = make_run(shares(2), shares(18), TRAIN)
    final = run.phases[-1]
    carried = tuple(
        replace(g, as_placebo=True, rollouts=tuple(replace(r, experiences=("1",)) for r in g.rollouts))
        for g in final.groups
    )
    run = with_placebo(run, {})
    placebo = replace(run.phases[0], shared=carried)
    run = replace(run, phases=(placebo, *run.phases[1:-1], replace(final, groups=carried)))
    found = value(run)
    assert found["gain"]["claim"]["side"] is None
    assert outcome(found).startswith("Not sure, as a placebo is not possible: 10 % to 90 % of the tasks")
    assert rule(judge(run, baseline=None, settings=SETTINGS), "placebo").outcome == "inconclusive"
    assert "placebo placebo not possible" in " ".join(" ".join(terminal(found)).split())


def block(run: Run) -> Any:
    found: Any = placebo_block(run, Sweeps(run))
    return found


def test_the_block_names_what_the_baseline_sweep_carried() -> None:
    run, old = run_of(2, 6, 18), Library(experiences=(make_experience(1),))
    assert block(run)["beside"] == "no lessons"
    assert block(replace(run, library_start=old))["beside"] == "the lessons at the start"
    reference = Reference(name="old", kind="packs", stamp="4" * 64, library=old, packs=())
    assert block(replace(run, reference=reference))["beside"] == "the reference packs old (444444444444)"
    lengthy = replace(reference, name="x\n" * 200)
    told = block(replace(run, reference=lengthy))["beside"]
    assert told.isprintable()
    assert len(told) <= len("the reference ") + 120
    for n in range(len(run.phases)):
        if run.phases[n].phase.mode != "train":
            assert block(replace(run, phases=run.phases[:n] + run.phases[n + 1 :])) is None


def test_what_answers_are_like_is_of_scenarios_with_a_placebo_and_without_errors_and_tools() -> None:
    cut = {"kind": "model", "finish": "length"}
    frames = [cut, {"kind": "tool", "finish": "length"}, {"kind": "model", "finish": "stop"}, cut]
    run = with_placebo(make_run({"a": [1] * 4, "b": [1] * 4}, {"a": [1] * 3 + [None]}, TRAIN), {"a": [1] * 4})

    def answering(result: PhaseResult) -> PhaseResult:
        groups = [
            replace(
                group,
                rollouts=tuple(
                    replace(
                        r,
                        answer="x" * (2 * n + 50 * (group.scenario_id == "b")),
                        frames=(Frame(name="m", **own),),
                    )
                    for n, (r, own) in enumerate(zip(group.rollouts, frames, strict=False))
                ),
            )
            for group in result.groups
        ]
        return replace(result, groups=tuple(groups))

    found = block(replace(run, phases=tuple(map(answering, run.phases))))
    assert found["changed"] == [
        {"what": "characters", "before": 3.0, "placebo": 3.0, "after": 2.0},
        {"what": "cut", "before": 0.5, "placebo": 0.5, "after": pytest.approx(1 / 3)},
        {"what": "tokens", "before": 101.5, "placebo": 101.5, "after": 101.0},
    ]
    assert (found["possible"], found["impossible"], found["total"]) == (1, 0, 0.0)


def test_scenarios_without_a_placebo_count_in_it_only_where_no_lesson_reached_them() -> None:
    run = with_placebo(
        make_run({"a": [0], "b": [0], "c": [0]}, {"a": [1], "b": [1], "c": [1]}, TRAIN), {"a": [0]}
    )
    _, taught, plain = run.phases[-1].groups
    taught = replace(taught, rollouts=(replace(taught.rollouts[0], experiences=("1",)),))
    run = replace(run, phases=(replace(run.phases[0], shared=(taught, plain)), *run.phases[1:]))
    found = block(run)
    assert [*Sweeps(run).rows_placebo] == ["a", "c"]
    assert (found["possible"], found["impossible"], found["over"]["n"], found["over"]["difference"]) == (
        1,
        1,
        2,
        0.5,
    )
    assert Sweeps(make_run({"a": [1]})).rows_placebo == {}


def test_after_several_looks_what_is_claimed_over_and_of_a_placebo_needs_more() -> None:
    def after(n: int, **preflight: Any) -> Any:
        run = with_placebo(make_run(shares(0, 12), shares(12, 12), TRAIN), shares(6, 12))
        known = {"earlier": 0, "runs": [], "variants": [f"v{i}" for i in range(n)]}
        return block(replace(run, preflight={"evaluations": known} if n else {}))

    found = {n: after(n) for n in (0, 4)}
    assert [(one["level"], one["side"], one["gain_side"]) for one in found.values()] == [
        (0.05, "better", "better"),
        (0.01, None, None),
    ]


def test_errors_make_no_claim_over_a_placebo() -> None:
    before = {f"s{n}": [0.0, 1.0] for n in range(12)}
    after: dict[str, Credits] = {id_: [None, 1.0] for id_ in before}
    found = block(with_placebo(make_run(before, after, TRAIN), before))
    assert (found["over"]["difference"], found["side"]) == (0.5, None)


def test_answers_of_the_final_sweep_that_count_in_the_control_are_part_of_what_it_is_like() -> None:
    run = with_placebo(make_run({"b": [1]}, {"a": [1], "b": [1]}, TRAIN), {"a": [1], "b": [1]})
    placebo, before, *rest, after = run.phases
    (first, second) = after.groups
    longer = replace(first.rollouts[0], answer="12345")
    first = replace(first, shared=True, rollouts=(longer,))
    before = replace(before, shared=(first,), phase=replace(before.phase, scenarios=("a", "b")))
    after = replace(after, groups=(first, second))
    found = block(replace(run, phases=(placebo, before, *rest, after)))
    assert found["changed"][0] == {"what": "characters", "before": 3.0, "placebo": 1.0, "after": 3.0}
