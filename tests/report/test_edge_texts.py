"""Lines of a report at the edge of what they tell: one more, one less, none, all alike."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import make_frame, make_rollout, make_scenario
from support.report.families import learned, told
from support.sweeps import make_run

from pytest_tfgrpo.core.records import Frame, JudgeResult, Score
from pytest_tfgrpo.report.agents.lines import rows_of
from pytest_tfgrpo.report.attribution import attribution_lines
from pytest_tfgrpo.report.comparison.compare_lines import SHORT, apart
from pytest_tfgrpo.report.cost import budget
from pytest_tfgrpo.report.gates import gate_lines
from pytest_tfgrpo.report.page.page_tables import settings_rows
from pytest_tfgrpo.report.replication import _side
from pytest_tfgrpo.report.rollout import rollout_text
from pytest_tfgrpo.report.rollout_summary import summarise
from pytest_tfgrpo.report.tables import domain_table, tool_table
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build


@pytest.mark.parametrize(
    ("prompt", "answer", "turns", "text"),
    [
        ("one two", "x", 0, "one two: no tool; answered 'x'"),
        ("1 2 3 4 5 6 7 8", "a b c d e", 1, "1 2 3 4 5 6 7 8: no tool; answered 'a b c d e'"),
        (
            "1 2 3 4 5 6 7 8 9", "a b c d e f", 2,
            "1 2 3 4 5 6 7 8...: 2 turns, no tool; answered 'a b c d e...'",
        ),
        ("p", "é" * 60, 0, f"p: no tool; answered {'é' * 60!r}"),
        ("p", "a" + " " * 239, 0, "p: no tool; answered 'a'"),
        ("p", "a" + " " * 240, 0, "p: no tool; answered 'a...'"),
        ("", "  ", 0, "count-words: no tool; returned no answer"),
    ],
)  # fmt: skip
def test_a_summary_has_dots_only_where_something_is_left_out(
    prompt: str, answer: str, turns: int, text: str
) -> None:
    frames = tuple(Frame(kind="user", name="script", output="hm") for _ in range(turns))
    found = summarise(make_rollout(frames=frames, answer=answer), make_scenario(prompt=prompt))
    assert found == f"{text}, 1 of 1 checks passed"


def scored(**changes: Any) -> Score:
    fields: dict[str, Any] = {"gt_score": 1.0, "reward": 0.5, "relative_rank": None, "advantage": None}
    return Score(rollout_id="r", **fields | changes)


@pytest.mark.parametrize(
    ("opinion", "extra", "lines"),
    [
        (None, {}, []),
        (None, {"judge": 0.5, "tone": None}, ["  judge 0.500: says j", "  tone -"]),
        (JudgeResult(score=0.5), {"judge": 0.5, "tone": 0.25}, ["  tone 0.250"]),
        (JudgeResult(score=0.5, criteria={"warm": 1.0}), {"judge": 0.5}, ["  judge.warm 1.000"]),
        (JudgeResult(score=0.5), {"judge": 0.5, "judge.x": 0.5, "a": 1.0}, ["  judge.x 0.500", "  a 1.000"]),
    ],
)
def test_a_judged_rollout_tells_each_rewarder_once(opinion: Any, extra: Any, lines: list[str]) -> None:
    shown = rollout_text(make_rollout(opinion=opinion), scored(extra=extra, evidence={"judge": "says j"}))
    found = shown.splitlines()[3:]
    assert found[: len(lines)] == lines
    assert not any(text.startswith(("  judge ", "  tone")) for text in found[len(lines) :])


@pytest.mark.parametrize(
    ("prompt", "data", "user", "shown"),
    [
        ("Ask", None, False, "prompt: Ask 1."),
        ("", {"a": 1}, False, 'prompt: { "a": 1 } 1.'),
        ("Ask", 0, False, "prompt: Ask 0 1."),
        ("Ask", None, True, None),
    ],
)
def test_a_prompt_is_told_where_no_conversation_holds_it(
    prompt: str, data: Any, user: bool, shown: str | None
) -> None:
    frames = (Frame(kind="user", name="script", output="hello"),) if user else (make_frame(),)
    text = rollout_text(make_rollout(frames=frames), scenario=make_scenario(prompt=prompt, input=data))
    words = " ".join(text.split())
    assert ("prompt:" in words) is (shown is not None)
    assert shown is None or shown in words


def row(limit: float, used: float) -> dict[str, float]:
    return {"limit": limit, "used": used, "left": max(limit - used, 0.0), "over": max(used - limit, 0.0)}


@pytest.mark.parametrize(
    ("rows", "unknown", "lines"),
    [
        (None, 1, []),
        ({"usd": row(2.0, 2.0)}, 0, ["budget_usd  $2.00 of $2.00 used, $0.00 left"]),
        ({"usd": row(2.0, 3.0)}, 2, ["budget_usd  at least $3.00 of $2.00 used, $1.00 over"]),
        ({"tokens": row(10, 4)}, 2, ["budget_tokens  4 of 10 used, 6 left"]),
    ],
)
def test_only_money_may_be_more_than_is_known(rows: Any, unknown: int, lines: list[str]) -> None:
    cost: Any = {"budget": rows, "unknown": unknown}
    assert list(budget(cost)) == lines


@pytest.mark.parametrize("n", [0, 1, SHORT, SHORT + 1])
def test_a_list_of_scenarios_apart_is_cut_only_where_it_is_longer(n: int) -> None:
    ids = [f"s{i}" for i in range(n)]
    kinds: Any = {"before": ids, "after": [], "changed": [], "unscored": ["x"]}
    whole = [f"only in A: {n}: {', '.join(ids)}"] if n else []
    short = [f"only in A: {n}: s0, s1, s2, s3, s4, ... 1 more; -v shows all"] if n > SHORT else whole
    rest = ["only errors in A or B: 1: x"]
    assert list(apart(kinds, "B", every=True)) == [*whole, *rest]
    assert list(apart(kinds, "B", every=False)) == [*short, *rest]


def effect(verdict: str, value: float | None = None, n: int = 1) -> dict[str, Any]:
    return {
        "id": f"l{n}", "domain": "text", "polarity": "do", "text": f"Lesson {n}.", "in_force": True,
        "effect": value, "shrunken": value, "ci95": None, "p": None, "p_adjusted": None, "included": 1,
        "left_out": 1, "scenarios": 1, "verdict": verdict,
    }  # fmt: skip


def effects(*rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "lesson_dropout": 0.2, "groups": 4, "earlier_groups": 0, "unread": [], "errors": 0,
        "lessons": [*rows], "estimated": sum(row["effect"] is not None for row in rows),
    }  # fmt: skip


def test_lessons_without_an_estimate_are_not_yet_known_and_shown_with_minus_v_alone() -> None:
    nothing, one = (
        effects(effect("not_estimable")),
        effects(effect("helpful", 0.25), effect("not_estimable", n=2)),
    )
    alone = " ".join(" ".join(attribution_lines(nothing, 80, every=True)).split())  # type: ignore[arg-type]
    assert "not yet known: it takes" in alone
    mixed = " ".join(" ".join(attribution_lines(one, 80, every=True)).split())  # type: ignore[arg-type]
    assert "not yet known: it takes" not in mixed
    run = make_run(None, {"a": [1]}, {"t": [1, 0]})
    for known, default in ((nothing, False), (one, True)):
        value: Any = build(run, None) | {"attribution": known}
        head = attribution_lines(known, 80, every=True)[0]  # type: ignore[arg-type]
        assert (head in terminal(value)) is default
        assert head in terminal(value, verbosity=1)


def domain(name: str, claim: str | None, just_these: bool | None = False) -> dict[str, Any]:
    gain = None
    if just_these is not None:
        gain = {"difference": 0.25, "ci95": None, "just_these": just_these}
    return {"domain": name, "scenarios": 9, "mean": 0.5, "gain": gain, "p_adjusted": 0.0004, "claim": claim}


@pytest.mark.parametrize(
    ("rows", "tail"),
    [
        ([domain("a", "better")], []),
        ([domain("a", "better"), domain("b", "worse")], []),
        ([domain("a", "better"), domain("b", None)], ["open: within chance"]),
        ([domain("a", "better"), domain("b", None, None)], ["open: within chance"]),
        ([domain("a", "better"), domain("b", "worse", True)], ["with fewer than 8 families"]),
    ],
)
def test_domains_are_explained_where_one_is_open_or_of_few_families(rows: Any, tail: list[str]) -> None:
    report: Any = {"domains": rows, "gain": {"claim": {"level": 0.025}}}
    lines = domain_table(report)
    legends = [text for text in lines if text.startswith(("open: ", "with fewer"))]
    assert [text[: len(start)] for text, start in zip(legends, tail, strict=True)] == tail
    assert len(lines) == (0 if len(rows) < 2 else 1 + len(rows) + len(tail))
    assert all("<0.001" in text for text in lines[1 : 1 + len(rows)])
    assert not any("0.025" in text for text in legends) or "open" in legends[0]


def test_tools_come_by_their_calls_busiest_first() -> None:
    def used(tool: str, calls: int) -> dict[str, Any]:
        known = {"n": calls, "sum": float(calls), "mean": 1.0}
        return {"tool": tool, "calls": calls, "tokens": known, "latency_ms": known}

    rows: Any = [
        {"tools": [used("a", 1), used("b", 3)]},
        {"tools": [used("c", 2), used("b", 1)]},
        {"tools": []},
    ]
    assert [text.split()[:2] for text in tool_table(rows)[1:]] == [["b", "4"], ["c", "2"], ["a", "1"]]
    assert tool_table(rows[2:]) == []


def test_families_of_uneven_size_are_told_with_the_number_that_they_are_worth() -> None:
    assert "of equal size" not in told(learned(24, 2, 12))
    uneven = learned(24, 2, 12, without=12)
    assert "of equal size" in told(uneven)


@pytest.mark.parametrize(
    ("low", "high", "side"),
    [
        (None, None, None),
        (0.1, 0.2, "better"),
        (-0.2, -0.1, "worse"),
        (-0.1, 0.1, None),
        (0.0, 0.1, None),
        (-0.1, 0.0, None),
    ],
)
def test_seeds_claim_what_the_whole_interval_shows(low: Any, high: Any, side: str | None) -> None:
    found: Any = type("Found", (), {"low": low, "high": high})
    assert _side(found) == side


def test_no_gate_has_no_lines() -> None:
    assert gate_lines(None, 80, every=True, quiet=False) == []


def test_a_gain_of_any_agent_makes_a_row_of_gains() -> None:
    def agent(gain: float | None) -> dict[str, Any]:
        own: dict[str, Any] = {"name": "x", "run_id": "r", "actor": "a", "model": None, "status": "complete"}
        return own | {"gain": None if gain is None else {"difference": gain}}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_tfgrpo.report.agents.lines.facts", lambda *_: [["fact", "1"]])
        assert rows_of({"agents": [agent(None), agent(None)]}) == [["fact", "1"]]
        assert rows_of({"agents": [agent(None), agent(0.25)]})[1:] == [
            ["gain by its own lessons", "-", "+0.250"]
        ]


def test_settings_that_are_defaults_are_apart_from_those_that_are_not() -> None:
    changed, kept = settings_rows(dict(build(make_run(), None)["settings"]) | {"group_size": 3})
    names = [dict(changed), dict(kept)]
    assert "group_size" in names[0]
    assert "group_size" not in names[1]
