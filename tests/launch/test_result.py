"""Results: six lines, a table for a notebook that trusts no answer, and flat rows."""

import asyncio
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.api import SMALL, SUITE, Counter, scenario

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.launch.result import RunResult, RunResults
from pytest_tfgrpo.launch.result_lines import SHOWN
from pytest_tfgrpo.report.outcome import outcome

HOSTILE = "<script>alert(1)</script>$x$\x1b[31m\u202e" + "long " * 100_000
COLUMNS = [
    *("agent", "scenario", "split", "domain", "tags", "prompt", "phase", "epoch", "rollout", "status"),
    *("answer", "passed", "score", "reward", "reason", "error", "latency_ms", "tokens", "cost_usd"),
    *("lessons", "rollout_id", "run_id"),
]


def hostile(context: tfgrpo.AgentContext) -> str:
    if context.task.id == "c":
        raise ValueError("<img src=x onerror=alert(2)>")
    return HOSTILE


def learned(root: Path, **settings: Any) -> RunResult:
    return tfgrpo.run(root, SUITE, actor=Counter(), **{**SMALL, **settings})


def test_a_result_is_six_lines_the_verdict_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = learned(tmp_path)
    lines = repr(result).splitlines()
    assert [text[:8].strip() for text in lines[1:]] == ["result", "gain", "score", "cost", "files"]
    assert lines[0].startswith(f"passed: run {result.run.run_id}") == result.passed
    assert lines[1] == f"result   {outcome(result.report)}"
    assert " (" in lines[2]
    assert lines[3].endswith("mean of 10 rollouts of 2 scenarios, 0 without an answer, 0 errors")
    assert lines[5] == f"files    {result.folder}"
    monkeypatch.chdir(tmp_path)
    assert repr(result).splitlines()[5].startswith("files    out/")
    odd = replace(result, folder=tmp_path / "two\nlines")
    assert repr(odd).splitlines()[5] == "files    two lines"
    assert str(result) == repr(result)


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({"gate_min_mean": 1}, "FAILED: run {}: minimum mean: "),
        ({"learning": False, "gate_min_mean": None}, "complete: run {}, without a gate"),
    ],
)
def test_the_first_line_says_how_it_ended_and_why(
    settings: dict[str, Any], first: str, tmp_path: Path
) -> None:
    result = learned(tmp_path, **settings)
    assert repr(result).startswith(first.format(result.run.run_id))
    assert len(repr(result).splitlines()) == 6


def test_a_run_that_did_not_end_says_so_first(tmp_path: Path) -> None:
    result = learned(tmp_path, learning=False, gate_min_mean=None)
    report: Any = {**result.report, "status": "incomplete", "reason": "the budget is spent"}
    cut = replace(result, run=replace(result.run, status="incomplete"), report=report)
    assert repr(cut).startswith(f"INCOMPLETE: run {cut.run.run_id}: the budget is spent\n")


def test_what_a_replay_lacks_is_said(tmp_path: Path) -> None:
    result = replace(learned(tmp_path, learning=False, gate_min_mean=None), problems=("no answer of c",))
    assert "FAILED" in repr(result)
    assert "a replay lacks answers" in repr(result)


def test_a_result_is_a_frozen_value_that_a_program_can_compare(tmp_path: Path) -> None:
    result = learned(tmp_path)
    with pytest.raises(FrozenInstanceError):
        result.folder = None  # type: ignore[misc]
    assert result == replace(result)
    assert result != replace(result, folder=None)


def test_the_summary_is_the_report_of_a_terminal(tmp_path: Path) -> None:
    result = learned(tmp_path)
    assert result.summary().splitlines()[0] == outcome(result.report)
    assert len(result.summary(verbosity=1).splitlines()) > len(result.summary().splitlines())


def test_a_notebook_shows_no_answer_as_html(tmp_path: Path) -> None:
    result = tfgrpo.run(tmp_path, SUITE, actor=hostile, learning=False)
    shown = result._repr_html_()
    assert not any(tag in shown for tag in ("<script", "<img", "\x1b", "\u202e"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "crash: ValueError: &lt;img src=x onerror=alert(2)&gt;" in shown
    assert "mathjax_ignore" in shown
    assert len(shown) < 5_000
    assert len(repr(result)) < 1_000
    assert "1 without an answer, 0 errors (crash: ValueError: <img" in repr(result)


def test_a_notebook_shows_so_many_scenarios_and_names_the_rest(tmp_path: Path) -> None:
    suite = [scenario(f"s{n}", "eval") for n in range(SHOWN + 3)]
    shown = tfgrpo.run(tmp_path, suite, actor=Counter(), learning=False)._repr_html_()
    assert shown.count("<tr>") == SHOWN + 1
    assert "3 more scenarios" in shown


def test_rows_are_flat_one_for_each_rollout_and_have_the_same_columns(tmp_path: Path) -> None:
    suite = [{**one, "tags": ["new", "odd"]} for one in SUITE]
    result = tfgrpo.run(tmp_path, suite, actor=hostile, **SMALL)
    rows = result.rows()
    assert len(rows) == sum(len(g.rollouts) for p in result.run.phases for g in p.with_dev)
    assert all(list(row) == [*COLUMNS, "check.exact"] for row in rows)
    assert all(isinstance(cell, str | int | float | bool | None) for row in rows for cell in row.values())
    crashed = next(row for row in rows if row["scenario"] == "c")
    assert (crashed["status"], crashed["passed"], crashed["score"]) == ("failed", False, 0.0)
    assert str(crashed["error"]).startswith("crash: ")
    answered = rows[0]
    assert (answered["tags"], answered["split"], answered["phase"]) == ("new, odd", "train", "epoch1")
    assert answered["answer"] == HOSTILE
    assert str(answered["reason"]).startswith("expected ")


def test_a_rewarder_may_be_called_as_a_column(tmp_path: Path) -> None:
    class Half:
        name, weight = "score", 0.0

        def __call__(self, batch: Any) -> list[float]:
            return [0.5] * len(batch.gt_N)

    result = tfgrpo.run(tmp_path, SUITE, actor="nothing", rewarders=[Half()], learning=False)
    assert {(row["score"], row["metric.score"]) for row in result.rows()} == {(0.0, 0.5)}


def test_a_secret_in_an_answer_is_in_no_row(tmp_path: Path) -> None:
    key = "sk-proj-" + "a1B2" * 10
    result = tfgrpo.run(tmp_path, SUITE, actor=lambda context: key, learning=False)
    assert key not in str(result.rows())
    assert key not in result._repr_html_()


def test_a_secret_in_what_a_crash_says_is_in_no_row(tmp_path: Path) -> None:
    def crash(context: Any) -> str:
        raise ValueError("401 for password=hunter2hunter2")

    rows = tfgrpo.run(tmp_path, SUITE, actor=crash, learning=False).rows()
    assert "hunter2" not in str(rows)
    assert "password=[redacted:named]" in str(rows[0]["error"])


def test_an_attempt_with_half_of_its_checks_has_not_passed(tmp_path: Path) -> None:
    checks = [{"kind": "contains", "value": word} for word in ("amber", "birch")]
    suite = [{"id": "half", "prompt": "?", "checks": checks}]
    (row, *_) = tfgrpo.run(tmp_path, suite, actor=lambda context: "amber", learning=False).rows()
    assert (row["passed"], row["score"]) == (False, 0.5)


def test_a_result_is_a_sequence_of_rows_and_says_how_to_get_a_frame(tmp_path: Path) -> None:
    result: Any = tfgrpo.run(tmp_path, SUITE, actor="nothing", learning=False)
    assert list(result) == result.rows() != []
    with pytest.raises(AttributeError, match=r"'to_pandas'; use pandas.DataFrame\(result.rows\(\)\)"):
        result.to_pandas()
    with pytest.raises(AttributeError, match=r"'df'; use pandas"):
        result.df  # noqa: B018
    for name in ("zzz", "token"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'$"):
            getattr(result, name)

    async def wait() -> None:
        await result

    with pytest.raises(TypeError, match=r"leave out await, or use arun"):
        asyncio.run(wait())


def test_scenarios_that_a_hash_keeps_from_running_are_counted(tmp_path: Path) -> None:
    named = [{"id": f"s{n}", "prompt": f"p{n}?", "expected": "x"} for n in range(6)]
    result: Any = tfgrpo.run(tmp_path, named, actor="nothing", learning=False)
    ran = len({row["scenario"] for row in result})
    assert 0 < ran < 6
    assert f"left     {6 - ran} scenario" in repr(result)
    assert f"left     {6 - ran} scenario" in result._repr_html_()
    learning: Any = tfgrpo.run(tmp_path, named, actor="nothing", out="out", acceptance="off", epochs=2)
    assert "left " not in repr(learning)


def test_a_run_of_which_nothing_ran_has_no_rows(tmp_path: Path) -> None:
    result = learned(tmp_path, learning=False, gate_min_mean=None)
    empty: Any = replace(result, run=replace(result.run, phases=()), report={**result.report, "epochs": []})
    assert empty.rows() == []
    assert repr(empty).startswith("NOTHING RAN: run ")
    assert "<table" not in empty._repr_html_()


def test_rows_of_all_agents_have_every_column_of_any(tmp_path: Path) -> None:
    checked = learned(tmp_path / "a", learning=False, gate_min_mean=None)
    (swept,) = checked.run.phases
    groups = [
        replace(group, scores=tuple(replace(score, extra={"zeal": 0.5}) for score in group.scores))
        for group in swept.groups
    ]
    rated = replace(checked, run=replace(checked.run, phases=(replace(swept, groups=tuple(groups)),)))
    for results, agents in (({"a": checked, "b": rated}, "ab"), ({"b": rated, "a": checked}, "ba")):
        rows = RunResults(results=results).rows()
        assert len({frozenset(row) for row in rows}) == 1
        assert [row["zeal"] for row in rows if row["agent"] == "b"] == [0.5] * (len(rows) // 2)
        assert {row["zeal"] for row in rows if row["agent"] == "a"} == {None}
        assert list(dict.fromkeys(row["agent"] for row in rows)) == list(agents)
    told = RunResults(results={"a": checked}).summary()
    assert told.splitlines() == [told]


def test_results_of_several_agents_are_a_mapping_with_a_table_for_all(tmp_path: Path) -> None:
    results: Any = tfgrpo.run(tmp_path, SUITE, actor={"a": Counter(), "b": "nothing"}, learning=False)
    assert isinstance(results, RunResults)
    assert results.summary() == repr(results)
    assert results.passed
    assert list(results.items())[1][0] == "b"
    assert "a: score" in results._repr_html_()
    assert "a: complete: run " in repr(results)
    assert "without a gate; 0 without an answer, 0 errors" in repr(results)
    assert len({tuple(row) for row in results.rows()}) == 1
    assert [one.run.run_id for one in results.values()] == list(
        dict.fromkeys(str(row["run_id"]) for row in results.rows())
    )
    assert {row["agent"] for row in results.rows()} == {"a", "b"}
    broken: Any = SimpleNamespace(passed=False)
    assert not replace(results, results={**results.results, "b": broken}).passed
